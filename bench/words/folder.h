/*
 * folder.h: folders that results are to lie in.
 */
#ifndef WF_BENCH_FOLDER_H
#define WF_BENCH_FOLDER_H

#include "base/status.h"

/* Creates the folder and those above it. */
int bench_make_folder(const char *path, struct wf_status *status);

/* Can a file be made in the folder? Makes one that has no name, so that nothing stays whatever ends the process.
 * Returns its descriptor, which the caller closes, or a negative errno. */
int bench_probe_folder(const char *folder);

#endif
