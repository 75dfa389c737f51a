/*
 * figure.h: a table of values, and how it is to be drawn. Every form of a report is made of these and of nothing else:
 * the charts and tables of the page, the gnuplot scripts, the Markdown.
 *
 *     a figure = columns of equal length, each with a role in the drawing
 *
 * A column holds numbers, or labels: indexes into a list of texts. Texts come from files, so they may hold anything;
 * whoever writes them out escapes them.
 */
#ifndef WF_REPORT_FIGURE_H
#define WF_REPORT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum report_kind {
    REPORT_LINES,  /* Y over X, a line for each series; LOW and HIGH are a band around it */
    REPORT_POINTS, /* the same as dots */
    REPORT_BARS,   /* Y for each label of X, side by side for each series */
    REPORT_HEAT,   /* a matrix: a cell for each label of X and of Y, coloured by VALUE */
    REPORT_TABLE,  /* nothing to draw */
    REPORT_IMAGE   /* a drawing in SVG that is there already */
};

/* What a column is in the drawing. */
enum report_role {
    REPORT_SHOWN,  /* stands in the table, and where a value is pointed at */
    REPORT_X,      /* horizontal; of a heat map labels */
    REPORT_Y,      /* vertical; of a heat map labels, and else numbers */
    REPORT_LOW,    /* the lower end of the spread around Y */
    REPORT_HIGH,   /* the upper end */
    REPORT_SERIES, /* labels: rows with the same are one line; several such columns together */
    REPORT_SELECT, /* labels: one of them is drawn at a time, which the reader chooses; the first is shown first */
    REPORT_VALUE,  /* of a heat map: numbers; of several columns the reader chooses one, the first is shown first */
    REPORT_MARK    /* labels: what is odd about this row; the first label is the empty one, and says nothing is */
};

enum report_scale { REPORT_LINEAR, REPORT_LOG, REPORT_BY_LABEL };

/* Owner: its figure. Numbers that are not known are NaN. */
struct report_column {
    char *name;
    char unit[16]; /* "GB/s"; "bytes" are shown in powers of 1024; empty: none */
    enum report_role role;
    bool is_number;
    double *numbers;  /* of a column of numbers */
    uint32_t *labels; /* of a column of labels: indexes into `texts` */
    char **texts;
    size_t text_count, text_room;
};

#define REPORT_COLUMNS_MAX 24

/* Owner: the list that it was added to. */
struct report_figure {
    enum report_kind kind;
    char id[64];        /* of letters, digits and '-': unique within a list; names the files of --plots */
    char *title, *note; /* what it shows; how to read it, and what to beware of. NULL: no note */
    enum report_scale x, y;
    char *svg; /* of an image */
    struct report_column columns[REPORT_COLUMNS_MAX];
    size_t column_count, rows, room;
    bool failed; /* memory ran out: report_figures_add() refuses it */
};

struct report_figures {
    struct report_figure **list;
    size_t count, room;
};

/* A figure without columns; NULL: no memory. report_figure_destroy() accepts NULL. */
struct report_figure *report_figure_create(enum report_kind kind, const char *id, const char *title, const char *note);
void report_figure_destroy(struct report_figure *figure);

/* Adds a column, before the first row; returns its index. */
size_t report_column_add(struct report_figure *figure, const char *name, const char *unit, enum report_role role,
                         bool is_number);

/* Adds a row, whose numbers are NaN and whose labels are the first text; returns its index. */
size_t report_row_add(struct report_figure *figure);

/* Sets a value of the last row. A text is copied, once for each different one. */
void report_set_number(struct report_figure *figure, size_t column, double value);
void report_set_text(struct report_figure *figure, size_t column, const char *text);

/* A label that rows may have later: labels stand in the order in which they came. */
void report_label_add(struct report_figure *figure, size_t column, const char *text);

/* A value as a person reads it, with the unit of its size where that is bytes: "64K", "12.3"; "" of none. Returns
 * `text`, or for a label the label itself. */
const char *report_cell_text(const struct report_figure *figure, size_t column, size_t row, char *text, size_t room);

/* Hands the figure over, with a number behind its `id` where another of the list has that: a folder may hold two files
 * of a kind. One without rows, and without an image, is dropped. 0 or -ENOMEM; it is the list's either way. NULL: there
 * was no memory for it. */
int report_figures_add(struct report_figures *figures, struct report_figure *figure, struct wf_status *status);
void report_figures_fini(struct report_figures *figures);

#endif
