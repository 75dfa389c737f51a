/*
 * spread_plan.h: how much of a session's waiting bytes each bulk channel may take (the rule: wire/spread.h).
 */
#ifndef WF_CORE_SESSION_SPREAD_PLAN_H
#define WF_CORE_SESSION_SPREAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/spread.h"

struct weft_connection;
struct wf_channel;
struct wf_session;

/*
 * All bulk channels of a session, as lanes, during one round of a pump. The first channel that asks measures all of
 * them. The session's lock is held, so after that a lane changes only when its channel takes bytes. So the cost of a
 * round grows with the number of channels, not with its square. Owner: session lock.
 */
struct wf_spread {
    struct wf_lane *lanes; /* by channel; all zero for a channel that is not bulk or not up */
    struct wf_lane *some;  /* scratch: the lanes that serve a connection kept to some rails */
    bool known;            /* the fields below, and `lanes`, are of this round */
    struct wf_lane_total total;
    double fastest;          /* rate, as measured */
    int64_t now_ns, news_ns; /* of the round; when the last acknowledgement came on a bulk channel */
};

/* Room for `count` channels. 0 or -ENOMEM. fini accepts an object of zeroes. */
int wf_spread_init(struct wf_spread *spread, int count);
void wf_spread_fini(struct wf_spread *spread);

/* A round begins: the lanes must be measured again. Session lock held, and kept until the last question. */
void wf_spread_begin(struct wf_session *session);

/* The channel has taken bytes, or became idle or busy: updates its lane. Session lock held. */
void wf_spread_note(const struct wf_channel *channel);

/* Does the channel carry large messages of the connection? Yes if its rail is in connection.rails, or if no rail in
 * connection.rails works. Session lock held. */
bool wf_spread_serves(const struct wf_channel *channel, const struct weft_connection *connection);

/*
 * How many bytes of the connection `channel` may take now, out of `waiting` bytes of the session. The channel serves
 * the connection and has nothing posted. 0 only if the question is sure to be asked again: after an acknowledgement, or
 * at the turn of a better channel that serves the connection too. Session lock held.
 */
uint64_t wf_spread_plan(const struct wf_channel *channel, const struct weft_connection *connection, uint64_t waiting);

/* May the channel take a chunk of `length` bytes that cannot be cut? No if its share is 0. If its share is smaller than
 * the chunk, only a channel with at least half the rate of the fastest may. */
bool wf_spread_suits(const struct wf_channel *channel, uint64_t waiting, uint64_t length);

#endif
