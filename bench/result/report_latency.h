/*
 * report_latency.h: the result of a ping-pong on a terminal: its times, and what went on beside it.
 */
#ifndef WF_BENCH_REPORT_LATENCY_H
#define WF_BENCH_REPORT_LATENCY_H

#include <stdio.h>

#include "result.h"

void bench_report_latency(const struct bench_result *result, FILE *out);

#endif
