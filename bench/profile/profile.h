/*
 * profile.h: the command `profile`, from what both nodes have agreed on to its files: every directed pair and every
 * size, one message at a time.
 *
 *     clocks locked, warmed up | clocks compared | warm-up of all configurations | repetition 0 of all, in one shuffled
 *     order | repetition 1 of all, in the same order | ... | clocks compared | files
 *
 * A configuration is a pair, a size and a backend. Its time runs from the post of the send to the last byte's arrival,
 * both by node0's clock.
 */
#ifndef WF_BENCH_PROFILE_H
#define WF_BENCH_PROFILE_H

#include <stdio.h>
#include <sys/types.h>

#include "bench/machine/clock_lock.h"
#include "bench/measure/measure.h"
#include "bench/nodes/link.h"
#include "bench/result/result.h"
#include "bench/words/progress.h"

/* What became of --lock-clocks at this node. All zero: nothing yet. */
struct bench_profile_lock {
    struct bench_clock_lock lock;
    bool locked;
    char text[200];
};

/* Early, see clock_lock.h: before there are buffers, and anybody uses NVML or NCCL. Where it is not allowed, the run
 * goes on, and says so. */
void bench_profile_lock(struct bench_profile_lock *lock, const struct bench_options *options,
                        const struct bench_gpus *gpus, uint32_t endpoints, FILE *news);
void bench_profile_unlock(struct bench_profile_lock *lock);

/* What a run of the command works on. The backends are open. */
struct bench_profile_site {
    const struct bench_options *options;
    struct bench_bed *bed;
    struct bench_link *link;
    struct bench_result *result; /* gets a sample of each configuration, at both nodes */
    struct bench_progress *progress;
    FILE *news; /* for people; NULL: nobody reads */
    const struct bench_profile_lock *lock;
    pid_t companion; /* the other node's process, where one has started the other; 0: it is on its own */
};

/* Measures, and at node0 writes the files. */
int bench_profile(const struct bench_profile_site *site, struct wf_status *status);

/* --unlock-clocks: the exit status. */
int bench_profile_undo_locks(void);

#endif
