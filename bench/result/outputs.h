/*
 * outputs.h: whether everything that a run is to leave behind can be written, found out before anything is measured:
 *
 *     each path that is set may be written, and the file systems have room for all of it at once
 *
 * The room is tried with files that have no name: nothing of them stays, whatever ends the process.
 */
#ifndef WF_BENCH_OUTPUTS_H
#define WF_BENCH_OUTPUTS_H

#include "bench/plan/schedule.h"

/* The folder of --out is there by now. `plan` NULL: results of a usual size. -EISDIR and -EEXIST:
 * something else stands at a path; -ENOSPC, -EDQUOT, -EFBIG: no room; -EACCES, -EROFS and the like. */
int bench_outputs_check(const struct bench_options *options, const struct bench_plan *plan, struct wf_status *status);

/* The same of one small file at `path`, which the user gave with --OPTION. */
int bench_output_check(const char *option, const char *path, struct wf_status *status);

#endif
