/*
 * report.h: the command `weft report`: result files as a page, pictures and tables.
 */
#ifndef WF_REPORT_REPORT_H
#define WF_REPORT_REPORT_H

#include <stdio.h>

#include "bench/plan/options.h"

/* Makes what the options ask for; returns an exit status. */
int bench_make_report(struct bench_options *options);

/* Makes report.html of the result and the drawing in a folder, which it tells `people`, and shows it if asked to. */
int bench_report_folder(const char *folder, bool open, FILE *people, struct wf_status *status);

#endif
