/*
 * csv.h: the samples as CSV, one row each; names as in the JSON, with '_' where that has an object within an
 * object. The last line of a run that was cut short is a comment that says so.
 */
#ifndef WF_BENCH_RESULT_CSV_H
#define WF_BENCH_RESULT_CSV_H

#include "result.h"

/* Writes them to the file `path`, or to standard output ("-"). */
int bench_result_csv(const struct bench_result *result, const char *path, struct wf_status *status);

#endif
