/*
 * against.h: one run beside another, or one backend beside another of the same run, pair by pair.
 *
 *     ratio(pair)    = rate / rate of the baseline; of half round trips, time of the baseline / time
 *     ratio          = geometric mean over the pairs, with the 95 % interval that they give
 *     beyond chance  = the interval lies on one side of 1, and the ratio is off it by more than 3 %
 *
 * Above 1 is faster. The interval is over pairs within these runs. What differs from one run to the next is not in it.
 */
#ifndef WF_REPORT_AGAINST_H
#define WF_REPORT_AGAINST_H

#include "figure.h"
#include "grid.h"
#include "verdict.h"

#define REPORT_ABOUT_EQUAL 0.03

/* Compares `backend` of `grid` with `other_backend` of `other`, which may be the same grid. `name` is what the other is
 * called in sentences. Adds a figure, and what it says. */
int report_against(struct report_figures *figures, struct report_verdict *verdict, const struct report_grid *grid,
                   uint32_t backend, const struct report_grid *other, uint32_t other_backend, const char *name,
                   struct wf_status *status);

#endif
