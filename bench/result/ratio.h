/*
 * ratio.h: Weft beside another backend that was measured in the same run, in turns with it. Above 1 Weft is the faster:
 *
 *     rate, aggregate: Weft / other      time: other / Weft
 *
 * Only like is compared with like: the same pairs, from and to the same kind of memory, with as many messages in
 * flight, in as many buffers, verified or not. Where that is not so there is a reason instead of a ratio.
 */
#ifndef WF_BENCH_RATIO_H
#define WF_BENCH_RATIO_H

#include "result.h"

#define BENCH_UNLIKE 160

/* One mode and size. */
struct bench_ratio {
    const struct bench_set *weft, *other;
    double rate[2], aggregate[2]; /* GB/s: Weft's, the other's; negative: none */
    double time_us[2];            /* median of the pairs' medians */
    char unlike[BENCH_UNLIKE];    /* why they cannot be compared; "": they can */
};

/* The sets that `index` counts, from 0 on; false when there are no more. -ENOMEM leaves them unlike. */
bool bench_ratio_next(const struct bench_result *result, int *index, struct bench_ratio *ratio);

/* Ratios of the above; negative where there is none. */
double bench_ratio_rate(const struct bench_ratio *ratio);
double bench_ratio_aggregate(const struct bench_ratio *ratio);
double bench_ratio_time(const struct bench_ratio *ratio);

/* In what two samples of a pair differ that must not; "": in nothing. Returns `why`. */
char *bench_samples_unlike(const struct bench_sample *one, const struct bench_sample *other, char why[BENCH_UNLIKE]);

/* Why no figure of the run can be compared, although all were measured; NULL: they can. */
const char *bench_ratio_caveat(const struct bench_result *result);

/* All of them, as they stand in a result; a new reference. */
json_t *bench_ratios_to_json(const struct bench_result *result);

#endif
