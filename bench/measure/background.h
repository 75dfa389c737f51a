/*
 * background.h: messages that two endpoints exchange back to back, both ways, while their ping-pong is timed: on the
 * same connection, under a tag of their own, so that neither waits for the other's receives.
 *
 * Each side keeps `inflight` sends and as many receives outstanding. A side that has done its part of the ping-pong
 * sends an empty message in each of its slots instead of the next full one; the other side, which has as many receives
 * posted, posts no new one for an empty message. So every request finds its match, and nothing need be agreed on:
 *
 *     receives posted = full messages + inflight = messages sent
 */
#ifndef WF_BENCH_BACKGROUND_H
#define WF_BENCH_BACKGROUND_H

#include "bed.h"
#include "bench/result/sample.h"

#define BENCH_BACKGROUND_MOST 1024 /* inflight */

/* All zero is none. Owner: the measuring thread. */
struct bench_background {
    struct bench_bed *bed;
    uint32_t pair;
    bool source;    /* this node is the source of the ping-pong */
    uint32_t place; /* of the arena: this node's endpoint */
    uint64_t size, tag;
    uint32_t inflight;       /* 0: there is no background */
    bench_request *requests; /* the caller's: `inflight` receives, then `inflight` sends */
    bool verified;           /* what lands in this run is: landings are poisoned before */
    uint64_t *pending;       /* by receive: number of the message it waits for */
    uint64_t sent;           /* full messages so far */
    uint64_t expected;       /* number that the next receive to be posted waits for */
    uint32_t live;           /* requests under way */
    bool sending;
    bool *ended; /* by send: its empty message is sent */
    int64_t last_ns;
    struct bench_flux flux; /* what came here in measured time */
    struct bench_wrong wrong;
};

/* Requests that the caller's array must have room for. */
static inline uint32_t bench_background_requests(const struct bench_background *background)
{
    return 2 * background->inflight;
}

/* For bed, pair, source, place and tag already set: none unless the plan and the backend have some. -ENOMEM. Can be
 * given to fini either way. */
int bench_background_init(struct bench_background *background, struct wf_status *status);
void bench_background_fini(struct bench_background *background);

/* The parts of a run: receives before the barrier, sends after it, and, when the ping-pong is over, the end; the
 * caller waits until `live` is 0, and hands in each completion of request `index` meanwhile. Without background they
 * do nothing. 0, or an error. */
int bench_background_listen(struct bench_background *background, struct wf_status *status);
int bench_background_start(struct bench_background *background, struct wf_status *status);
void bench_background_stop(struct bench_background *background);
int bench_background_take(struct bench_background *background, uint32_t index, const struct weft_completion *completion,
                          struct wf_status *status);

/* After a run that began at `start_ns`: counts it. */
void bench_background_count(struct bench_background *background, int64_t start_ns);
/* Forgets what was counted: warm-up is over. */
void bench_background_forget(struct bench_background *background);

#endif
