/* json.h: a result as JSON, schema weft.result/1. */
#ifndef WF_BENCH_RESULT_JSON_H
#define WF_BENCH_RESULT_JSON_H

#include "result.h"

/* Writes it to the file `path`, or to standard output ("-"). */
int bench_result_json(const struct bench_result *result, const char *path, struct wf_status *status);

#endif
