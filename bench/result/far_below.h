/*
 * far_below.h: a run that stays ten times below what its rails allow is not slow but set up wrongly: what is probably
 * wrong.
 */
#ifndef WF_BENCH_RESULT_FAR_BELOW_H
#define WF_BENCH_RESULT_FAR_BELOW_H

#include "result.h"
#include "spread.h"

/* Why a set that reached `rate` GB/s this way is so far from `line`, what the rails could carry; "": it is not, the
 * line rate is not known (negative), or its messages are too few and small to tell. Returns `text`. */
char *bench_far_below_text(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                           double rate, double line, char *text, size_t room);

#endif
