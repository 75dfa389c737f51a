/*
 * report.h: the result for people. The head comes first, then a line for each set and direction as soon as it is
 * measured, and at the end what compares them: a matrix of the largest size, what was in the way, the rails, and the
 * verdict. No line but a path, and the verdict of a run that failed, is wider than what it is printed on, or 80
 * columns.
 */
#ifndef WF_BENCH_REPORT_H
#define WF_BENCH_REPORT_H

#include <stdio.h>

#include "result.h"

/* Prints what was not printed yet of the head and the sets, where people want to read it. A negative errno: that, or a
 * line of the stream, could not be written, and what is measured would be lost. */
int bench_report_so_far(struct bench_result *result, struct wf_status *status);

/* The same, and the end. The caller holds the result's lock. */
void bench_report(struct bench_result *result, FILE *out);

#endif
