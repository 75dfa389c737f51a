/*
 * plots.h: the figures for papers and tickets: of each the data, a gnuplot script, and PNG and SVG where gnuplot is
 * there; and all tables in Markdown.
 */
#ifndef WF_REPORT_PLOTS_H
#define WF_REPORT_PLOTS_H

#include "contents.h"

#define REPORT_PLOTS_RUNS 20 /* of more, only the figures over all of them are drawn */

struct report_drawn {
    bool gnuplot;  /* it is there */
    size_t failed; /* figures that it could not draw */
};

/* Writes into the folder, which it makes, and counts the figures on the contents' progress, which it needs. */
int report_plots_write(const struct report_contents *contents, const char *folder, struct report_drawn *drawn,
                       struct wf_status *status);

#endif
