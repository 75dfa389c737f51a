/*
 * gnuplot.h: a figure as data and script for gnuplot 5. The script draws NAME.png and NAME.svg from NAME.dat, and may
 * be changed by hand.
 */
#ifndef WF_REPORT_GNUPLOT_H
#define WF_REPORT_GNUPLOT_H

#include <stdio.h>

#include "figure.h"

/* A block of lines for each series or selection, with two empty lines between them; the columns are the figure's. */
void report_gnuplot_data(FILE *out, const struct report_figure *figure);

/* `name`: that of the files, without a folder. Of a heat map the first block is drawn, as the page shows it first. */
void report_gnuplot_script(FILE *out, const struct report_figure *figure, const char *name);

#endif
