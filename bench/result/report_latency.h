/*
 * report_latency.h: the part of the report that only a ping-pong has.
 */
#ifndef WF_BENCH_REPORT_LATENCY_H
#define WF_BENCH_REPORT_LATENCY_H

#include <stdio.h>

#include "result.h"

/* A line for each sample of the set, after a head where the set is the first; what went on beside it in a second line.
 */
void bench_report_latency_set(const struct bench_result *result, const struct bench_set *set,
                              const struct bench_set *before, FILE *out);

#endif
