#include "figure.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "bench/words/columns.h"
#include "bench/words/words.h"

struct report_figure *report_figure_create(enum report_kind kind, const char *id, const char *title, const char *note)
{
    struct report_figure *figure = calloc(1, sizeof *figure);

    if (!figure)
        return NULL;
    figure->kind = kind;
    bench_copy_text(figure->id, sizeof figure->id, id);
    figure->title = strdup(title);
    figure->note = note ? strdup(note) : NULL;
    figure->failed = !figure->title || (note && !figure->note);
    return figure;
}

static void fini_column(struct report_column *column)
{
    for (size_t i = 0; i < column->text_count; i++)
        free(column->texts[i]);
    free(column->texts);
    free(column->numbers);
    free(column->labels);
    free(column->name);
}

void report_figure_destroy(struct report_figure *figure)
{
    if (!figure)
        return;
    for (size_t i = 0; i < figure->column_count; i++)
        fini_column(&figure->columns[i]);
    free(figure->title);
    free(figure->note);
    free(figure->svg);
    free(figure);
}

size_t report_column_add(struct report_figure *figure, const char *name, const char *unit, enum report_role role,
                         bool is_number)
{
    if (figure->column_count == REPORT_COLUMNS_MAX) {
        figure->failed = true;
        return 0;
    }
    struct report_column *column = &figure->columns[figure->column_count];
    column->name = strdup(name);
    bench_copy_text(column->unit, sizeof column->unit, unit);
    column->role = role;
    column->is_number = is_number;
    figure->failed |= !column->name;
    return figure->column_count++;
}

static bool grow(struct report_figure *figure)
{
    size_t room = figure->room ? 2 * figure->room : 64;

    for (size_t i = 0; i < figure->column_count; i++) {
        struct report_column *column = &figure->columns[i];
        void **values = column->is_number ? (void **)&column->numbers : (void **)&column->labels;
        void *wider = realloc(*values, room * (column->is_number ? sizeof(double) : sizeof(uint32_t)));
        if (!wider)
            return false;
        *values = wider;
    }
    figure->room = room;
    return true;
}

size_t report_row_add(struct report_figure *figure)
{
    if (figure->failed || (figure->rows == figure->room && !grow(figure))) {
        figure->failed = true;
        return 0;
    }
    for (size_t i = 0; i < figure->column_count; i++)
        if (figure->columns[i].is_number)
            figure->columns[i].numbers[figure->rows] = NAN;
        else
            figure->columns[i].labels[figure->rows] = 0;
    return figure->rows++;
}

void report_set_number(struct report_figure *figure, size_t column, double value)
{
    if (!figure->failed && figure->rows)
        figure->columns[column].numbers[figure->rows - 1] = value;
}

/* Neighbours often have the same text, so the search begins with the label that was set last. */
static bool find_text(const struct report_column *column, const char *text, uint32_t last, uint32_t *label)
{
    for (size_t i = 0; i < column->text_count; i++) {
        size_t at = (last + i) % column->text_count;
        if (strcmp(column->texts[at], text) == 0) {
            *label = (uint32_t)at;
            return true;
        }
    }
    return false;
}

static bool add_text(struct report_column *column, const char *text, uint32_t *label)
{
    if (column->text_count == column->text_room) {
        size_t room = column->text_room ? 2 * column->text_room : 8;
        char **wider = realloc(column->texts, room * sizeof *wider);
        if (!wider)
            return false;
        column->texts = wider;
        column->text_room = room;
    }
    column->texts[column->text_count] = strdup(text);
    if (!column->texts[column->text_count])
        return false;
    *label = (uint32_t)column->text_count++;
    return true;
}

void report_set_text(struct report_figure *figure, size_t at, const char *text)
{
    struct report_column *column = &figure->columns[at];

    if (figure->failed || !figure->rows)
        return;
    uint32_t last = figure->rows > 1 ? column->labels[figure->rows - 2] : 0;
    uint32_t *label = &column->labels[figure->rows - 1];
    /* What is odd is not the rule: its first label says that nothing is. */
    if (column->role == REPORT_MARK && !column->text_count && !add_text(column, "", label))
        figure->failed = true;
    else if (!find_text(column, text, last, label) && !add_text(column, text, label))
        figure->failed = true;
}

void report_label_add(struct report_figure *figure, size_t at, const char *text)
{
    struct report_column *column = &figure->columns[at];
    uint32_t label;

    if (!figure->failed && !find_text(column, text, 0, &label) && !add_text(column, text, &label))
        figure->failed = true;
}

/* --- texts --- */

static bool is_whole(double value)
{
    return value == floor(value) && fabs(value) < 1e15;
}

const char *report_cell_text(const struct report_figure *figure, size_t at, size_t row, char *text, size_t room)
{
    const struct report_column *column = &figure->columns[at];

    if (!column->is_number)
        return column->text_count ? column->texts[column->labels[row]] : "";
    double value = column->numbers[row];
    if (isnan(value))
        text[0] = '\0';
    else if (strcmp(column->unit, "bytes") == 0 && is_whole(value) && value >= 0)
        return wf_format_size((uint64_t)value, text, room);
    else if (is_whole(value) && fabs(value) >= 1000)
        snprintf(text, room, "%.0f", value);
    else
        snprintf(text, room, "%.4g", value);
    return text;
}

/* --- lists --- */

/* A column in which nothing was set has one text, the empty one. */
static void complete(struct report_figure *figure)
{
    uint32_t label;

    for (size_t i = 0; i < figure->column_count; i++)
        if (!figure->columns[i].is_number && !figure->columns[i].text_count)
            figure->failed |= !add_text(&figure->columns[i], "", &label);
}

static bool has_id(const struct report_figures *figures, const char *id)
{
    for (size_t i = 0; i < figures->count; i++)
        if (strcmp(figures->list[i]->id, id) == 0)
            return true;
    return false;
}

static void make_unique(const struct report_figures *figures, char *id, size_t room)
{
    char first[48];

    bench_copy_text(first, sizeof first, id);
    for (size_t number = 2; has_id(figures, id); number++)
        snprintf(id, room, "%s-%zu", first, number);
}

int report_figures_add(struct report_figures *figures, struct report_figure *figure, struct wf_status *status)
{
    if (figure)
        complete(figure);
    if (!figure || figure->failed) {
        report_figure_destroy(figure);
        return wf_fail(status, -ENOMEM, "no memory for a figure of the report");
    }
    if (!figure->rows && !figure->svg) {
        report_figure_destroy(figure);
        return 0;
    }
    if (figures->count == figures->room) {
        size_t room = figures->room ? 2 * figures->room : 16;
        struct report_figure **wider = realloc(figures->list, room * sizeof(struct report_figure *));
        if (!wider) {
            report_figure_destroy(figure);
            return wf_fail(status, -ENOMEM, "no memory for a figure of the report");
        }
        figures->list = wider;
        figures->room = room;
    }
    make_unique(figures, figure->id, sizeof figure->id);
    figures->list[figures->count++] = figure;
    return 0;
}

void report_figures_fini(struct report_figures *figures)
{
    for (size_t i = 0; i < figures->count; i++)
        report_figure_destroy(figures->list[i]);
    free(figures->list);
    *figures = (struct report_figures){0};
}
