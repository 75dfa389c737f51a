/*
 * forecast.h: what a simulator has predicted, over what was measured.
 *
 *     error = predicted / measured - 1, measured: the median of the pair in isolated
 *
 * A size is of the regime latency while a message takes less than twice as long as one of the least size, and of the
 * regime bandwidth from there on: where time = alpha + size * beta, that is the size alpha / beta.
 */
#ifndef WF_REPORT_FORECAST_H
#define WF_REPORT_FORECAST_H

#include "figure.h"
#include "grid.h"
#include "verdict.h"

/* A line of the file: src,dst,size_bytes,time_us. Endpoints are names (node0:host1) or ranks: the number of the
 * endpoint of node0, and those of node1 behind them. */
struct report_prediction {
    uint32_t src, dst; /* of the run's `ends` */
    uint64_t size;
    double time_us;
};

struct report_forecast {
    char *text;
    const char *path;
};

/* Reads the file. -EPROTO: it is none. */
int report_forecast_read(struct report_forecast *forecast, const char *path, struct wf_status *status);
void report_forecast_fini(struct report_forecast *forecast);

/* Adds figures and sentences; a run of which it predicts nothing gets a sentence that says so. -EPROTO: a line is none,
 * with its number. */
int report_forecast_add(struct report_figures *figures, struct report_verdict *verdict, const struct report_grid *grid,
                        const struct report_forecast *forecast, struct wf_status *status);

/* A prediction whose pair and size were measured. */
struct report_match {
    const struct report_sample *sample;
    double predicted, error; /* us; predicted / measured - 1 */
    bool bandwidth;          /* the regime */
};

/* Adds the figures and sentences for some of them, which it sorts. forecast_figures.c */
int report_forecast_draw(struct report_figures *figures, struct report_verdict *verdict, const struct report_run *run,
                         struct report_match *matches, size_t count, struct wf_status *status);

#endif
