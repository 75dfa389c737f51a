/* report_memory.h: what --watch-memory has found, at both nodes, for people. */
#ifndef WF_BENCH_RESULT_REPORT_MEMORY_H
#define WF_BENCH_RESULT_REPORT_MEMORY_H

#include <stdio.h>

#include "result.h"

/* A line for each node that was watched, and a warning for everything that grows. */
void bench_report_memory(const struct bench_result *result, int columns, FILE *out);

#endif
