/*
 * spread_plan.h: how much of the waiting bytes of a session's traffic class each of its bulk channels may take (the
 * rule: wire/spread.h).
 */
#ifndef WF_CORE_SESSION_SPREAD_PLAN_H
#define WF_CORE_SESSION_SPREAD_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/hello.h"
#include "wire/spread.h"

struct weft_connection;
struct wf_channel;
struct wf_ring;
struct wf_session;

/*
 * The bulk channels of a traffic class that are up, as lanes. A lane is measured again when its channel takes bytes,
 * gets an acknowledgement, or becomes idle or busy; and, because silence alone lowers an estimate, WF_RIVALS of them in
 * turn in each round of a pump. So no round costs more with more channels. Owner: session lock.
 */
struct wf_spread {
    struct wf_lane *lanes;                    /* `total.lanes` of them */
    struct wf_channel **channels;             /* of the lanes */
    struct wf_lane_total total;               /* over all lanes */
    struct wf_lane_total pairs[WF_RAILS_MAX]; /* over those of a pair of rails */
    uint64_t pairs_up;                        /* pairs of rails that have lanes, as bits */
    uint64_t pairs_of[WF_RAILS_MAX];          /* by rail of this side: its pairs of rails, as bits */
    bool known;                               /* the fields below are of this round */
    int first;                                /* rivals: this lane and those behind it, round to lane 0 */
    int64_t now_ns;                           /* of the round */
    int64_t news_ns;                          /* when the last acknowledgement came on a bulk channel */
    struct wf_channel *better;                /* what the last question found: see wf_spread_take_better() */
};

/* For `count` channels of one traffic class. NULL: no memory. NULL may be destroyed. */
struct wf_spread *wf_spread_create(int count);
void wf_spread_destroy(struct wf_spread *spread);

/* A round begins: silence is measured again. Session lock held, and kept until the last question. */
void wf_spread_begin(struct wf_session *session);

/* The channel has come up or is up no more, has taken bytes, was acknowledged some, or became idle or busy. Session
 * lock held. */
void wf_spread_note(struct wf_channel *channel);

/* The pairs of rails that carry large messages of the ring's connections on channels of the class, as bits: those of
 * wf_ring.rails; or all, if none of these works. 0: no bulk channel of the class is up. Session lock held. */
uint64_t wf_spread_pairs(const struct wf_session *session, unsigned traffic, const struct wf_ring *ring);
/* Is the channel's pair among them? */
bool wf_spread_serves(const struct wf_channel *channel, const struct wf_ring *ring);

/*
 * How many bytes of the connection `channel` may take now, out of `waiting` bytes of the classes that it carries. The
 * channel serves the connection and has nothing posted. 0 only if the question is sure to be asked again: after an
 * acknowledgement, or because wf_spread_take_better() has a channel, which must be asked. Session lock held.
 */
uint64_t wf_spread_plan(struct wf_channel *channel, const struct weft_connection *connection, uint64_t waiting);

/* Would the pair of rails take longer than `most_ns` for so many bytes? By its measured rate where there are others
 * that could help, else by the line rate of the interface. No while neither is known. Session lock held. */
bool wf_spread_is_slow(const struct wf_session *session, unsigned traffic, int pair, uint64_t bytes, int64_t most_ns);

/* The channel because of which `channel` got nothing when the last question of its class was asked; or NULL. It is
 * forgotten. Session lock held. */
struct wf_channel *wf_spread_take_better(const struct wf_channel *channel);

/* May the channel take a chunk of `length` bytes that cannot be cut? No if its share is 0. If its share is smaller than
 * the chunk, only a channel with at least half the rate of the fastest may. */
bool wf_spread_suits(struct wf_channel *channel, uint64_t waiting, uint64_t length);

#endif
