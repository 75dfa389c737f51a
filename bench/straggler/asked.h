/* asked.h: what `weft straggler` was asked for: the same at the command and at its ranks. */
#ifndef WF_BENCH_STRAGGLER_ASKED_H
#define WF_BENCH_STRAGGLER_ASKED_H

#include "bench/plan/options.h"

#define STRAGGLER_ANY (-1)
#define STRAGGLER_NOBODY (-2)
#define STRAGGLER_CURVE 500 /* points of the curve of a run, at most */

struct straggler_asked {
    uint64_t barriers, delay_ms, every, interval_ms, threshold_ms, seed;
    int delayed_rank; /* STRAGGLER_ANY: the seed says which, each time */
    int timeout_ms;   /* of a barrier */
};

int straggler_read_asked(struct straggler_asked *asked, const struct bench_options *options, struct wf_status *status);

/* The rank that is delayed before barrier `number`, from 1; STRAGGLER_NOBODY. */
int straggler_delayed(const struct straggler_asked *asked, uint64_t number, uint32_t ranks);

/* Barriers to a point of the curve. */
uint64_t straggler_step(const struct straggler_asked *asked);

/* What a process is that was started as one of the ranks; its exit status. */
int straggler_member(const struct bench_options *options);

#endif
