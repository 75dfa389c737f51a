/*
 * leave.h: what a run leaves behind beside its results.
 */
#ifndef WF_BENCH_LEAVE_H
#define WF_BENCH_LEAVE_H

#include "bench/result/result.h"

/* The folder of --out, where it was made for this run and nothing was written into it, goes. */
void bench_leave_no_folder(const struct bench_options *options, bool made);

/* What stands in the folder of --out as a page, where the options want one; the drawing of this machine belongs to it
 * where there can be one. A page that cannot be written makes no run fail that went well: its results are there. */
void bench_leave_page(const struct bench_result *result);

#endif
