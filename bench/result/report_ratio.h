/*
 * report_ratio.h: the part of the report that lays Weft beside another backend, and what was in force of that.
 */
#ifndef WF_BENCH_REPORT_RATIO_H
#define WF_BENCH_REPORT_RATIO_H

#include <stdio.h>

#include "result.h"

/* Nothing where one backend was measured alone. */
void bench_report_ratios(const struct bench_result *result, FILE *out);

#endif
