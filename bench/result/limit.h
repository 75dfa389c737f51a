/*
 * limit.h: what the rails could carry, and what kept a set of messages from being faster, as far as it can be seen.
 */
#ifndef WF_BENCH_RESULT_LIMIT_H
#define WF_BENCH_RESULT_LIMIT_H

#include "result.h"
#include "spread.h"

/* GB/s that the rails of both nodes can carry this way: the lesser sum of their line rates. Negative: not known. */
double bench_line_rate(const struct bench_result *result, const struct bench_way *way);

/* Why not: in words, for a rail or for all. Returns `text`; "": it is known. */
char *bench_line_unknown(const struct bench_result *result, char *text, size_t room);

/* GB/s that a set reached this way: loaded, all pairs together; else the median pair. Negative: none. `room` has room
 * for all samples. */
double bench_way_rate(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                      double *room);

/* The first of these that was so: the rails carried what they can, a node waited for memory, its processors or one of
 * them were busy, a message waited for the one before it, or nothing that is seen here. Returns `text`. */
char *bench_limit_text(const struct bench_result *result, const struct bench_set *set, double *room_for_samples,
                       char *text, size_t room);

#endif
