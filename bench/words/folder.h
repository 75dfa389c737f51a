/*
 * folder.h: folders that results are to lie in.
 */
#ifndef WF_BENCH_FOLDER_H
#define WF_BENCH_FOLDER_H

#include "base/status.h"

/* Creates the folder and those above it. */
int bench_make_folder(const char *path, struct wf_status *status);

#endif
