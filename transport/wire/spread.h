/*
 * spread.h: how much of the work at hand a channel may take, so that unequal and changing rails finish together.
 *
 * With r_i the rate and o_i the unacknowledged bytes of channel i, and w the bytes nobody has taken yet, all would be
 * done at the earliest in T = (sum o_i + w) / sum r_i. A channel's share is what it can finish by then, with a little
 * slack:
 *
 *     share_i = r_i * (T + slack) - o_i
 *
 * A channel takes no more than its share; the one that would finish a chunk first is open in any case, so that work
 * never waits for an estimate. Rates come from acknowledged bytes. Pure: time is passed in.
 */
#ifndef WF_WIRE_SPREAD_H
#define WF_WIRE_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#define WF_SPREAD_SLACK_NS 2000000.0      /* lateness that does not matter */
#define WF_SPREAD_PROBE_BYTES (32 * 1024) /* what a channel of unknown rate is tried with */
#define WF_SPREAD_LEAST_BYTES 4096        /* a smaller share is none */

/* The rate of one channel. All zero: not measured. */
struct wf_rate {
    double bytes_per_ns; /* 0: not measured */
    int64_t since_ns;    /* start of the present sample; 0: idle */
    uint64_t bytes;      /* acknowledged in the present sample */
    int64_t measured_ns; /* when the estimate was last renewed */
};

/* The channel has something unacknowledged from now on. */
void wf_rate_busy(struct wf_rate *rate, int64_t now_ns);

/* `bytes` more are acknowledged; `busy`: others are not yet. */
void wf_rate_acknowledged(struct wf_rate *rate, int64_t now_ns, uint64_t bytes, bool busy);

/*
 * The rate to plan with. Not measured: `highest`. While nothing is acknowledged the estimate sinks to what
 * `outstanding` bytes in that time would mean; while the channel is idle it rises towards `highest`, so that a
 * recovered rail is tried.
 */
double wf_rate_estimate(const struct wf_rate *rate, int64_t now_ns, uint64_t outstanding, double highest);

/* A channel as the plan sees it. */
struct wf_lane {
    double rate;          /* bytes per ns, > 0 */
    uint64_t outstanding; /* unacknowledged bytes */
};

/*
 * The bytes that lane `index` may take now out of `waiting` bytes, at most `chunk`: 0, or WF_SPREAD_LEAST_BYTES and
 * more (less only where `waiting` or `chunk` is).
 */
uint64_t wf_spread_share(const struct wf_lane *lanes, int count, int index, uint64_t waiting, uint64_t chunk);

#endif
