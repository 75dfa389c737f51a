/*
 * resend.h: frames of lost channels, to be sent again on other channels.
 *
 * From the moment a sequenced frame is sent until the peer has disposed of it, the frame is in exactly one place:
 * retained by its channel, or, after that channel was lost, a stray here. Strays go before any new frame, on any
 * channel that carries their class, of the same kind, with the same boundaries and the flag RESENT. The peer may have
 * disposed of a stray already; it recognises a frame that it has seen.
 *
 * No new frame is sent while there are strays, but while the first one waits for a slot to be staged in.
 * All with the session's lock held.
 */
#ifndef WF_CORE_SESSION_RESEND_H
#define WF_CORE_SESSION_RESEND_H

#include "core/channel/channel.h"

struct wf_session;

/* A frame that was the `sequence`th of a channel (from 0). */
struct wf_stray {
    struct wf_retained retained;
    uint32_t channel, incarnation;
    uint64_t sequence;
    bool over; /* acknowledged: it need not be sent again */
};

/* The strays of one group of channels, in the order in which they were lost. */
struct wf_strays {
    struct wf_stray *ring;
    uint32_t room, first, count;
    bool staging; /* the first was sent from device memory, and copies of it are under way or wait for slots */
};

void wf_strays_fini(struct wf_strays *strays);

/* Makes strays of the frames that a lost channel retains. 0 or -ENOMEM. */
int wf_resend_take_over(struct wf_channel *channel);

/* The peer has disposed of the first `disposed` frames of a lost channel: strays among them are not sent again. */
void wf_resend_acknowledge(struct wf_session *session, uint32_t channel, uint32_t incarnation, uint64_t disposed);

/* Are there no strays for the channels of this group; for none of the session? */
bool wf_resend_idle(const struct wf_session *session, int group);
bool wf_resend_all_idle(const struct wf_session *session);
/* Does the first one wait until it is in slots? Then others go before it: they may have the slots that it needs. */
bool wf_resend_is_staging(const struct wf_session *session, int group);
/* Slots may have come back: the first one takes them before messages that are sent for the first time. */
void wf_resend_stage(struct wf_session *session);

/*
 * Takes the next stray for this channel: true, with the message whose payload it carries (or NULL) in `*outbound`,
 * which counts it in `in_engine`. False: there is none (wf_resend_idle), or it cannot go on this channel now. Refused
 * messages may be gone afterwards.
 */
bool wf_resend_pull(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound **outbound);

/* Takes the peer's total of disposed frames: retires the frames up to it. -EPROTO: more than were sent. */
int wf_channel_acknowledge(struct wf_channel *channel, uint64_t disposed);

#endif
