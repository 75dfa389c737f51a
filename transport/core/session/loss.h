/*
 * loss.h: a lost channel does not end the session: its frames move to other channels, DOWN tells the peer, and the
 * channel is dialled again. All with the session's lock held, where nothing else is said.
 */
#ifndef WF_CORE_SESSION_LOSS_H
#define WF_CORE_SESSION_LOSS_H

#include <stdbool.h>

#include "base/log.h"
#include "core/channel/roster.h"
#include "core/session/resend.h"
#include "core/session/route.h"
#include "core/session/spread_plan.h"

struct wf_session;

/* What the session keeps about lost channels. Owner: session lock. */
struct wf_loss {
    struct wf_strays strays[WF_GROUPS]; /* by group of the channels that were lost */
    uint32_t stray_count;               /* in all of `strays` */
    int downs_due;                      /* channels with `down.due`: a DOWN frame is to be sent */
    bool place_wanted;                  /* a channel waits until another channel ends its claim on the same bytes */
    struct wf_log_limit lost_log;
    struct wf_spread *spreads[WF_CLASSES]; /* NULL: the class is not in use */
    unsigned planned;                      /* dialer: classes whose channels are planned, as bits; the door's thread, */
    uint32_t strands_planned;              /* and strands */
};

/* The object is zeroed before init. fini accepts a zeroed object. */
void wf_loss_init(struct wf_loss *loss);
void wf_loss_fini(struct wf_loss *loss);
/* Room for `count` channels of a traffic class. 0 or -ENOMEM. */
int wf_loss_expect(struct wf_loss *loss, unsigned traffic, int count);
/* Not so many, after all: no channel of the class has joined. */
void wf_loss_forget(struct wf_loss *loss, unsigned traffic);

/* A channel is lost: its halves let go, its retained frames go on other channels, and it will be dialled again.
 * `doing`: what failed, for the log. */
void wf_channel_lost(struct wf_channel *channel, int code, const char *doing) __attribute__((cold));

/* The same for a channel that was never joined: it has no descriptor and no retained frames. */
void wf_channel_missed(struct wf_channel *channel, int code);

/* An attempt to dial the channel again has failed; `refused`: nobody listens there. The next one comes after the pause,
 * which is 20 ms first, then doubles, up to a second or a quarter of rail_timeout_ms: the acceptor must not lose
 * patience before the dialer has tried. */
void wf_route_failed(struct wf_route *route, bool refused);

/* Is any channel of the rail up? */
bool wf_rail_is_up(const struct wf_session *session, int rail);

/* Sends all totals (STATE, CREDIT) again: a lost channel may have held some, and a new channel has sent none yet. */
void wf_session_repeat_totals(struct wf_session *session);

/* The receive half has let go, so `rx.disposed` is final: makes DOWN due. */
void wf_channel_tell_down(struct wf_channel *channel);

/* A claim has ended: kicks the channels whose receive half is held, so that they look again. */
void wf_session_place_free(struct wf_session *session);

/* Loses every channel of the rail, with `code`; `why`: for the log. */
void wf_rail_lose(struct wf_session *session, int rail, int code, const char *why);

/* A rail has damaged too many frames: loses its channels and uses it no more. */
void wf_rail_retire(struct wf_session *session, int rail);

/* This side's rail `local` went down or came back; `gone`: sockets bound to its interface are lost. Takes the lock
 * itself. */
void wf_session_rail_changed(struct wf_session *session, int local, bool down, bool gone);

#endif
