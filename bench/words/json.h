/*
 * json.h: what all JSON of the program has in common: how settings, errors and numbers stand in it, and how it becomes
 * a file.
 */
#ifndef WF_BENCH_JSON_H
#define WF_BENCH_JSON_H

#include <jansson.h>

#include "base/config.h"
#include "base/status.h"

/* Settings with value and origin, as in a result. */
json_t *bench_config_to_json(const struct wf_config *config);

/* "ETIMEDOUT" of a negative errno; null: of 0, or one without a name. A new reference. */
json_t *bench_error_code_to_json(int code);

/* null: a negative one, which says that there is none. A new reference. */
json_t *bench_number_or_null(double value);

/* Writes `root` to a file, which nobody ever sees half, or to standard output ("-"). */
int bench_write_json(const json_t *root, const char *path, struct wf_status *status);

#endif
