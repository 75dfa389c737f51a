/*
 * report.h: the result on a terminal: what was in force, a matrix of the largest size per mode, a table of all sizes;
 * and of rails that failed, if there are any.
 */
#ifndef WF_BENCH_REPORT_H
#define WF_BENCH_REPORT_H

#include <stdio.h>

#include "result.h"

void bench_report(const struct bench_result *result, FILE *out);

#endif
