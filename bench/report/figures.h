/*
 * figures.h: which figures are made of what. Each function adds its figures to the list, or none where there is nothing
 * to show.
 */
#ifndef WF_REPORT_FIGURES_H
#define WF_REPORT_FIGURES_H

#include "figure.h"
#include "grid.h"
#include "oddities.h"

/* --- of the samples of a run --- */

/* Of more than two nodes: every link between two, of all rails together and of each. */
int report_nodes(struct report_figures *figures, const struct report_grid *grid, const struct report_oddities *odd,
                 struct wf_status *status);

/* Matrices: every pair, and loaded over isolated. */
int report_links(struct report_figures *figures, const struct report_grid *grid, const struct report_oddities *odd,
                 struct wf_status *status);

/* Rate, time and processor time over the size. */
int report_curves(struct report_figures *figures, const struct report_grid *grid, struct wf_status *status);

/* What each rail carried, and when. */
int report_rails(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* Doubtful samples, by reason and size. */
int report_stamps(struct report_figures *figures, const struct report_grid *grid, struct wf_status *status);

/* Nodes, GPUs, fallbacks, settings with their origin. */
int report_machine(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* --- of other files --- */

/* The case of a sample of weft peers: "bandwidth, 64M, 16 buffers"; one buffer is not named. Returns `text`. */
const char *report_case_name(const json_t *sample, char *text, size_t room);

/* Other tools beside Weft: weft peers. */
int report_peers(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* The value over the settings that were varied: of weft sweep, and of runs whose settings differ. */
int report_sweep(struct report_figures *figures, const struct report_run *run, struct wf_status *status);
int report_surface_of_runs(struct report_figures *figures, struct report_run *const *runs, size_t count,
                           struct wf_status *status);

/* Collectives by size, backend and number of ranks: weft collective. */
int report_collective(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* How much of the communication is hidden, and when: weft overlap. */
int report_overlap(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* What has no figure, and why: `not_available` and `skipped` of the commands that start ranks. */
int report_missing(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* Who came late to a barrier: weft straggler. */
int report_straggler(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* Set-up made anew, and where its time goes: weft setup-cost. */
int report_setup(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* Latency and bandwidth of each link: model.json. */
int report_model(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* Temperatures, clocks, load and network over time: temperatures.csv. */
int report_sense(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* A drawing of the machine: an SVG file. */
int report_plan(struct report_figures *figures, const struct report_run *run, struct wf_status *status);

/* All runs, a row each. */
int report_overview(struct report_figures *figures, struct report_run *const *runs, size_t count,
                    struct wf_status *status);

#endif
