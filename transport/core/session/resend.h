/*
 * resend.h: frames of lost channels, on their way to others.
 *
 * A sequenced frame is, from the moment it has left until the peer has disposed of it, in exactly one place: retained
 * by the channel it went on, or astray here. What is astray goes before anything new, on any channel of the same kind,
 * as it was: same boundaries, flag RESENT. The peer may have disposed of it already; it recognises what it has seen.
 *
 * Nothing is new while something is astray, so there is never more of it than all channels can retain.
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
    bool over; /* it needs not be sent again */
};

/* Those of one kind of channel, in the order in which they were lost. */
struct wf_strays {
    struct wf_stray *ring;
    uint32_t room, first, count;
};

void wf_strays_fini(struct wf_strays *strays);

/* Takes over what a lost channel retains. 0 or -ENOMEM. */
int wf_resend_take_over(struct wf_channel *channel);

/* The peer has disposed of so many frames of a lost channel: those of them that are still here need not be sent. */
void wf_resend_acknowledge(struct wf_session *session, uint32_t channel, uint32_t incarnation, uint64_t disposed);

/* Is there nothing for channels of this kind? */
bool wf_resend_idle(const struct wf_session *session, enum wf_channel_kind kind);

/*
 * The next frame for this channel: true, with the message whose payload it carries (or NULL) in `*outbound`, accounted
 * for. False: there is none (wf_resend_idle), or it cannot go here now. Ended messages may be gone afterwards.
 */
bool wf_resend_pull(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound **outbound);

/* Takes the peer's total of disposed frames: retires what it covers. -EPROTO if it never was sent. Session lock. */
int wf_channel_acknowledge(struct wf_channel *channel, uint64_t disposed);

#endif
