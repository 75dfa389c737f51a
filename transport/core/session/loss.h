/*
 * loss.h: a lost channel is not a lost session: what it carried moves to others, the peer is told, and it is dialled
 * again. All with the session's lock held, where nothing else is said.
 */
#ifndef WF_CORE_SESSION_LOSS_H
#define WF_CORE_SESSION_LOSS_H

#include <stdbool.h>

#include "base/log.h"
#include "core/session/resend.h"
#include "core/session/route.h"
#include "core/session/spread_plan.h"

struct wf_session;

/* What lost channels have left. Owner: session lock. */
struct wf_loss {
    struct wf_strays strays[2]; /* express, bulk */
    int downs_due;              /* channels of whose end the peer is to be told */
    bool place_wanted;          /* a channel waits until another lets go of a place */
    struct wf_log_limit lost_log;
    struct wf_spread spread;
};

/* All zero before. fini accepts that, too. */
void wf_loss_init(struct wf_loss *loss);
void wf_loss_fini(struct wf_loss *loss);
/* Room for `count` channels. 0 or -ENOMEM. */
int wf_loss_expect(struct wf_loss *loss, int count);

/* A channel is lost: lets go, what it retained goes elsewhere, it will be dialled again. `doing`: how it showed. */
void wf_channel_lost(struct wf_channel *channel, int code, const char *doing) __attribute__((cold));

/* The same for a channel that was never joined: there is nothing to let go or to send again. */
void wf_channel_missed(struct wf_channel *channel, int code);

/* The next pause: none, then short, then longer up to a second, or `most_ns`: the acceptor must not take the dialer for
 * lost. Session lock held. */
void wf_redial_slow_down(struct wf_redial *redial, int64_t most_ns);

/* Is any channel of the rail up? */
bool wf_rail_is_up(const struct wf_session *session, int rail);

/* Totals may have gone down with a channel, or a new one has not heard them: all are told again. */
void wf_session_repeat_totals(struct wf_session *session);

/* The receive half has let go: nothing more is disposed of, which the peer is to be told. */
void wf_channel_tell_down(struct wf_channel *channel);

/* A claim has ended: channels that wait for a place look again. */
void wf_session_place_free(struct wf_session *session);

/* Every channel of the rail is lost, with `code`; `why`: how it showed. */
void wf_rail_lose(struct wf_session *session, int rail, int code, const char *why);

/* A rail has damaged so much that it is used no more. */
void wf_rail_retire(struct wf_session *session, int rail);

/* Our rail `local` went down, or is back; `gone`: what was bound to its interface is lost. Takes the lock itself. */
void wf_session_rail_changed(struct wf_session *session, int local, bool down, bool gone);

#endif
