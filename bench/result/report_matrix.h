/*
 * report_matrix.h: the part of the report that has every pair: a matrix of the largest size of each mode.
 */
#ifndef WF_BENCH_REPORT_MATRIX_H
#define WF_BENCH_REPORT_MATRIX_H

#include <stdio.h>

#include "result.h"

void bench_report_matrices(const struct bench_result *result, FILE *out);

/* Whether it is the last set of its mode and backend, which has the largest size. */
bool bench_is_last_set(const struct bench_result *result, int index);

#endif
