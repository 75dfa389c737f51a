/*
 * log.h: the messages of a profile as tables: execution_log.csv has all of them in the order of their execution, and
 * stamps.csv those that are to be doubted, with the reasons.
 */
#ifndef WF_BENCH_PROFILE_LOG_H
#define WF_BENCH_PROFILE_LOG_H

#include "base/status.h"

#include "row.h"

/* `rows` are in the order of their execution. */
int bench_profile_write_log(const char *path, const struct bench_profile_row *rows, size_t count,
                            struct wf_status *status);

/* A row only for those that have a stamp. */
int bench_profile_write_stamps(const char *path, const struct bench_profile_row *rows, size_t count,
                               struct wf_status *status);

#endif
