/*
 * files.h: the files that a run leaves behind: which ones the options ask for, whether they can be written, and writing
 * them once.
 */
#ifndef WF_BENCH_FILES_H
#define WF_BENCH_FILES_H

#include "result.h"

/* Before anything is measured: makes the folder of --out (`made` becomes true where it was not there), and finds out
 * whether everything can be written where it is wanted; see outputs.h. Again where the plan has become another. */
int bench_files_prepare(const struct bench_options *options, const struct bench_plan *plan, bool *made,
                        struct wf_status *status);

/* All files that the options ask for, once; takes the lock. Of a run that has not begun these are the ones of --json
 * and --csv alone, unless a signal ended it. What can be written is, also after an error: the first is returned. */
int bench_result_write(struct bench_result *result, struct wf_status *status);

/* The same of a run that was refused, `why` being all that there is to tell of it. */
void bench_result_refused(const struct bench_options *options, const struct wf_status *why, int exit_status);

#endif
