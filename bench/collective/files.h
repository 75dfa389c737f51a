/* files.h: what a run of `weft collective` leaves: JSON (schema weft.collective/1), CSV, and profiles. */
#ifndef WF_BENCH_COLLECTIVE_FILES_H
#define WF_BENCH_COLLECTIVE_FILES_H

#include "end.h"
#include "found.h"

/* All that the options ask for; the first error is returned, and what can be written is. */
int coll_write_files(const struct coll_plan *plan, const struct coll_found *found, const struct coll_end *end,
                     struct wf_status *status);

/* profile_{backend}_world{N}_{stamp}.txt in `folder`, for each backend and number of ranks, in the layout of the
 * collective communication profiler. */
int coll_write_profiles(const char *folder, const struct coll_plan *plan, const struct coll_found *found,
                        const struct coll_end *end, struct wf_status *status);

#endif
