/*
 * spread.h: how much of the waiting work a channel may take, so that unequal and changing rails finish together.
 *
 * With r_i the rate and o_i the unacknowledged bytes of channel i, and w the bytes that no channel has taken yet, all
 * bytes can be done in T = (sum o_i + w) / sum r_i at the earliest. A channel's share is the bytes that it can finish
 * by then, with a little slack:
 *
 *     share_i = r_i * (T + slack) - o_i
 *
 * Little work is handed out at once, and gets no slack. A channel takes more work in pieces, and never has more under
 * way than it carries in a part of T and a few milliseconds: bytes given to a rail cannot be taken back when the rail
 * proves slower than its estimate.
 *
 * Rates come from acknowledged bytes. A channel of unknown rate gets one small chunk. A channel that has been idle for
 * long gets one, too: the rail may have recovered. A wrong guess costs no more than this chunk. Channels that have
 * begun leave it to them, and take no more before it is taken: else one channel takes all, and nothing is ever learnt.
 * With more than WF_RIVALS channels that is so for unknown rates alone.
 *
 * A share is 0 only while bytes are under way (their acknowledgement starts the next question) or while a better
 * channel is ready to take the work. So no work ever waits for time to pass.
 *
 * With many channels a channel's share of a message is small, and small pieces cost processor time at both ends. So
 * with more than WF_RIVALS channels no piece is smaller than what all of them together carry in 0.1 ms, and some
 * channels get none. Nor is a channel compared with all others then, but with a few, in turn. Pure: time is passed in.
 */
#ifndef WF_WIRE_SPREAD_H
#define WF_WIRE_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

#define WF_SPREAD_PROBE_BYTES (32 * 1024) /* bytes of the trial of a channel of unknown rate */
#define WF_SPREAD_LEAST_BYTES 4096        /* the smallest share; bytes of the trial of an idle channel */

/* The rate of one channel. All zero: not measured. */
struct wf_rate {
    double bytes_per_ns; /* 0: not measured */
    uint64_t bytes;      /* acknowledged in the present sample */
    int64_t worked_ns;   /* time with bytes under way in the present sample, up to since_ns */
    int64_t since_ns;    /* start of the present time with bytes under way; 0: no bytes are under way */
    int64_t heard_ns;    /* time of the last acknowledgement */
    int64_t lag_ns; /* from the first call that sends a chunk of an idle channel (without tells_start: from posting the
                     * chunk) to its acknowledgement, less the time that its bytes take; 0: unknown */
    int samples;    /* samples taken; counted only while they are few */
    bool waits;     /* the channel was idle, and no byte sent since then has been acknowledged */
};

/* The channel has unacknowledged bytes from now on. False: it already had some. */
bool wf_rate_busy(struct wf_rate *rate, int64_t now_ns);

/* The first byte since the channel was idle was sent at `began_ns`; 0: not known. It was posted earlier, but the
 * sending thread served other channels meanwhile, which says nothing about the rail. Call this before the first
 * acknowledgement. */
void wf_rate_began(struct wf_rate *rate, int64_t began_ns);

/* `bytes` more are acknowledged; `busy`: more bytes are still unacknowledged. */
void wf_rate_acknowledged(struct wf_rate *rate, int64_t now_ns, uint64_t bytes, bool busy);

/*
 * The rate to plan with; 0: not measured. While other channels get acknowledgements and this one gets none, the
 * estimate sinks to `outstanding` bytes over that time. `news_ns` is the time of the last acknowledgement on any
 * channel: while no channel gets any, the peer or this process stands still, and the estimate of no rail sinks.
 */
double wf_rate_estimate(const struct wf_rate *rate, int64_t news_ns, uint64_t outstanding);

/* True: the channel has been idle so long that its rate may have changed. */
bool wf_rate_is_stale(const struct wf_rate *rate, int64_t now_ns);

/* A channel as the plan sees it. */
struct wf_lane {
    double rate;          /* bytes per ns; 0: not measured */
    uint64_t outstanding; /* unacknowledged bytes */
    int64_t lag_ns;
    bool ready; /* can take work now */
    bool stale;
};

/* Sums over lanes. All zero: over no lane. Integers, so that lanes come and go for years without a rounding error. */
struct wf_lane_total {
    int lanes;
    int known;            /* lanes with a rate */
    uint64_t rates;       /* the sum of their rates, bytes per second */
    uint64_t bytes;       /* unacknowledged bytes of the lanes with a rate */
    uint64_t outstanding; /* unacknowledged bytes of all lanes */
};

void wf_lane_total_add(struct wf_lane_total *total, const struct wf_lane *lane);
void wf_lane_total_remove(struct wf_lane_total *total, const struct wf_lane *lane);
/* Adds all lanes of another total. */
void wf_lane_total_join(struct wf_lane_total *total, const struct wf_lane_total *other);

#define WF_RIVALS 8 /* lanes that a lane is compared with at most: with more lanes, others in turn */

/*
 * The bytes that `lane`, which is ready, may take now out of `waiting` bytes, at most `chunk`: 0, or
 * WF_SPREAD_LEAST_BYTES and more (less only if `waiting` or `chunk` is less). `total`: the sums over all lanes.
 * `rivals`: the lanes to compare it with, of the same array; it may be among them. If another one is ready and better,
 * so that this one gets nothing, `*better` becomes its index in `rivals`: it must be asked; else -1.
 */
uint64_t wf_spread_share_of(const struct wf_lane_total *total, const struct wf_lane *lane,
                            const struct wf_lane *const *rivals, int count, uint64_t waiting, uint64_t chunk,
                            int *better);

#endif
