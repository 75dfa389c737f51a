/*
 * sets.h: the sets of one size and mode, one for each backend, measured in turns; and samples as nodes tell them.
 */
#ifndef WF_BENCH_SETS_H
#define WF_BENCH_SETS_H

#include "bench/measure/measure.h"
#include "bench/words/progress.h"

/* Owner: the measuring thread. Large: on the heap where there are several. */
struct bench_sets {
    struct bench_set of[BENCH_BACKENDS_MAX]; /* their `busy` are these sets' */
    struct bench_budget budgets[BENCH_BACKENDS_MAX], paces[BENCH_BACKENDS_MAX];
    struct bench_load loads[BENCH_BACKENDS_MAX];
    int count;
    uint32_t step; /* pairs that run together */
    uint32_t turn; /* the backend that is first in this step */
};

/* For nodes of the plan's number. -ENOMEM; can be given to fini either way. */
int bench_sets_init(struct bench_sets *sets, const struct bench_plan *plan, enum bench_mode mode, uint64_t size,
                    struct wf_status *status);
void bench_sets_fini(struct bench_sets *sets);

/* What was busy at this node meanwhile; as it is told to another one, and what another one has told. */
void bench_sets_sum_up(struct bench_sets *sets, int node);
json_t *bench_sets_busy(const struct bench_sets *sets, int node);
void bench_sets_take_busy(struct bench_sets *sets, int node, const json_t *busy);

/* What was busy at each process of the plan, as that of whole nodes: where there are several, the first one tells what
 * the machine did, and all of them what their own part was. */
void bench_sets_join(struct bench_sets *sets, const struct bench_plan *plan);

/* The same pairs on every backend, one right after the other, so that what disturbs the machine disturbs all alike.
 * None is always the first. */
int bench_sets_measure(struct bench_bed *bed, struct bench_sets *sets, uint32_t first, struct bench_result *result,
                       struct bench_progress *progress, struct wf_status *status);

/* The sets that have samples from number `before` on: of one that was cut short what there is counts, too. */
int bench_sets_add(const struct bench_plan *plan, const struct bench_sets *sets, size_t before,
                   struct bench_result *result, struct wf_status *status);

/* What `pairs` of a size are of all work: bytes, and with iters auto the time that they have, as if a byte took 1 ns.
 */
uint64_t bench_work_of(const struct bench_plan *plan, uint64_t size, uint32_t pairs);

/* Samples `first` to `last` as a text, at most BENCH_SAMPLES_PER_TEXT of them: `*first` is the next one then. */
json_t *bench_samples_text(const struct bench_plan *plan, const struct bench_result *result, size_t *first,
                           size_t last);

/* Adds the samples of such a text; never more than are planned. -EPROTO. */
int bench_samples_take(const struct bench_plan *plan, struct bench_result *result, const json_t *samples,
                       struct wf_status *status);

#endif
