/*
 * spread_plan.h: which bulk channel may take how much of what a session has to send (wire/spread.h has the rule).
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
 * All bulk channels of a session, as they are in one round of a pump. Found out by the first channel that asks; after
 * that only what each one takes changes them, for the session's lock is held. So a round costs as much as there are
 * channels, not as much as there are pairs of them. Owner: session lock.
 */
struct wf_spread {
    struct wf_lane *lanes; /* by channel; those of others are all zero */
    struct wf_lane *some;  /* scratch: the lanes that serve a connection kept to some rails */
    bool known;
    struct wf_lane_total total;
    double fastest; /* rate, as measured */
    int64_t now_ns, news_ns;
};

/* Room for `count` channels. 0 or -ENOMEM. fini accepts an object of zeroes. */
int wf_spread_init(struct wf_spread *spread, int count);
void wf_spread_fini(struct wf_spread *spread);

/* A round begins: what was known is not any more. Session lock held, and kept until the last question. */
void wf_spread_begin(struct wf_session *session);

/* The channel has taken something, or has become busy. Session lock held. */
void wf_spread_note(const struct wf_channel *channel);

/* Does the channel carry large messages of the connection? One of its rails does, and any other while none of them
 * works. Session lock held. */
bool wf_spread_serves(const struct wf_channel *channel, const struct weft_connection *connection);

/*
 * The most that `channel`, which serves the connection and has nothing posted, may take now of it, out of `waiting`
 * bytes of the session. 0 only if an event is sure to come that asks again: an acknowledgement, or the turn of a better
 * channel that serves it, too. Session lock held.
 */
uint64_t wf_spread_plan(const struct wf_channel *channel, const struct weft_connection *connection, uint64_t waiting);

/* May the channel take a chunk of `length` bytes that cannot be cut? The fastest always may, in its turn. */
bool wf_spread_suits(const struct wf_channel *channel, uint64_t waiting, uint64_t length);

#endif
