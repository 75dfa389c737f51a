/*
 * report_odd.h: the lines of the report that name odd links (odd.h): each once, whether it is odd isolated, loaded or
 * both. Of more than two nodes they are those of report_nodes.h.
 */
#ifndef WF_BENCH_REPORT_ODD_H
#define WF_BENCH_REPORT_ODD_H

#include <stdio.h>

#include "result.h"

void bench_report_odd(const struct bench_result *result, FILE *out);

#endif
