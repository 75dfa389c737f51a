/*
 * report_rows.h: the lines of the report that come as sets are measured: one for each set and direction.
 */
#ifndef WF_BENCH_REPORT_ROWS_H
#define WF_BENCH_REPORT_ROWS_H

#include <stdio.h>

#include "result.h"

/* Lines for one set; before them the head of a table, where the set before (NULL: there is none) was of another mode.
 */
void bench_report_set(const struct bench_result *result, const struct bench_set *set, const struct bench_set *before,
                      FILE *out);

/* What the lines of this run need explained; nothing where they do not. */
void bench_report_notes(const struct bench_result *result, FILE *out);

/* "host3", "gpu3". Returns `text`. */
char *bench_endpoint_text(const struct bench_plan *plan, int node, uint32_t endpoint, char *text, size_t room);

#endif
