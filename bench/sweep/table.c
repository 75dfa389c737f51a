/* What people read of a sweep. */
#include <stdlib.h>
#include <string.h>

#include "bench/words/columns.h"
#include "bench/words/words.h"
#include "found.h"

#define ROWS_MOST 40     /* of more points the best are shown */
#define SETTING_MOST 24  /* columns of a setting */
#define SETTINGS_MOST 24 /* columns of all settings beside the figures */

/* The value as it fits into its column. */
static const char *shown(const char *value, char *text, int width)
{
    if (strlen(value) <= (size_t)width)
        return value[0] ? value : "-";
    snprintf(text, (size_t)width + 1, "%s", value);
    memcpy(text + width - 2, "..", 2);
    return text;
}

static int width_of(const struct bench_found *found, int axis)
{
    size_t width = strlen(wf_setting(found->space->axes[axis].id)->name);

    for (int value = 0; value < found->space->axes[axis].count; value++) {
        size_t length = strlen(found->space->axes[axis].values[value]);
        width = length > width ? length : width;
    }
    return width > SETTING_MOST ? SETTING_MOST : (int)width;
}

/* Whether the settings have a line of their own: beside the figures there is no room for all of them. */
static bool is_wide(const struct bench_found *found)
{
    int width = 0;

    for (int i = 0; i < found->space->axis_count; i++)
        width += width_of(found, i) + 2;
    return width > SETTINGS_MOST;
}

static void put_head(const struct bench_found *found, FILE *out)
{
    for (int i = 0; !is_wide(found) && i < found->space->axis_count; i++)
        fprintf(out, "%*s  ", width_of(found, i), wf_setting(found->space->axes[i].id)->name);
    fprintf(out, "%8s  spread  of default            CPU s/GB  runs\n", bench_found_unit(found));
}

static void put_row(const struct bench_found *found, uint32_t point, FILE *out)
{
    const struct bench_space *space = found->space;
    struct bench_point_figures figures;
    char settings[600], text[SETTING_MOST + 1], value[32] = "-", spread[16] = "-", ratio[48] = "-", cpu[16] = "-";

    bench_found_figures(found, point, &figures);
    if (figures.value > 0)
        bench_rate_text(figures.value, value, sizeof value);
    if (figures.spread >= 0)
        snprintf(spread, sizeof spread, "%.0f %%", figures.spread * 100);
    if (point == space->baseline)
        snprintf(ratio, sizeof ratio, "default");
    else if (figures.beside.pairs >= BENCH_PAIRS_LEAST)
        snprintf(ratio, sizeof ratio, "%.2f [%.2f, %.2f]", figures.beside.ratio, figures.beside.low,
                 figures.beside.high);
    else if (figures.beside.pairs > 0)
        snprintf(ratio, sizeof ratio, "%.2f", figures.beside.ratio);
    if (figures.cpu_s_per_gb >= 0)
        snprintf(cpu, sizeof cpu, "%.3f", figures.cpu_s_per_gb);
    if (is_wide(found))
        bench_wrapped(out, BENCH_COLUMNS, 2, "%s", bench_space_text(space, point, settings, sizeof settings));
    for (int i = 0; !is_wide(found) && i < space->axis_count; i++)
        fprintf(out, "%*s  ", width_of(found, i), shown(bench_space_value(space, point, i), text, width_of(found, i)));
    fprintf(out, "%8s  %6s  %-20s %8s  %4u", value, spread, ratio, cpu, figures.runs);
    if (figures.failures)
        fprintf(out, ", %u failed", figures.failures);
    else if (found->search->tallies[point].hopeless)
        fprintf(out, ", given up");
    fputc('\n', out);
}

struct ranked {
    uint32_t point;
    double score;
};

static int best_first(const void *one, const void *other)
{
    const struct ranked *a = one, *b = other;

    return a->score != b->score ? (a->score < b->score) - (a->score > b->score)
                                : (a->point > b->point) - (a->point < b->point);
}

static int in_order(const void *one, const void *other)
{
    const struct ranked *a = one, *b = other;

    return (a->point > b->point) - (a->point < b->point);
}

/* The points that were run: in the order of the grid, or the best of them. */
static void put_rows(const struct bench_found *found, FILE *out)
{
    const struct bench_search *search = found->search;
    struct ranked *rows = calloc(found->space->points, sizeof *rows);
    uint32_t count = 0, run = 0;

    for (uint32_t point = 0; rows && point < found->space->points; point++)
        if (search->tallies[point].runs)
            rows[run++] = (struct ranked){point, bench_search_score(search, point)};
    count = run;
    if (rows && run > ROWS_MOST) {
        qsort(rows, run, sizeof *rows, best_first);
        count = ROWS_MOST;
    }
    if (rows)
        qsort(rows, count, sizeof *rows, in_order);
    for (uint32_t i = 0; i < count; i++)
        put_row(found, rows[i].point, out);
    free(rows);
    if (count < run)
        fprintf(out, "and %u slower points: --csv has them\n", run - count);
    if (run < found->space->points)
        fprintf(out, "%u of %u points were run\n", run, found->space->points);
}

static void put_values(const struct bench_found *found, const char *name, uint32_t point, FILE *out)
{
    double *values = calloc(found->search->trial_count + 1, sizeof *values);
    size_t count = values ? bench_found_values(found, point, true, values) : 0;
    char text[32];
    int column = fprintf(out, "  %-8s", name);

    for (size_t i = 0; i < count; i++) {
        char word[34];
        snprintf(word, sizeof word, " %s", bench_rate_text(values[i], text, sizeof text));
        if (column + (int)strlen(word) >= BENCH_COLUMNS)
            column = fprintf(out, "\n          ") - 1;
        column += fprintf(out, "%s", word);
    }
    fprintf(out, "  %s\n", bench_found_unit(found));
    free(values);
}

static void put_failures(const struct bench_found *found, int columns, FILE *out)
{
    char settings[600];

    for (uint32_t point = 0; point < found->space->points; point++) {
        struct bench_point_figures figures;
        if (found->search->tallies[point].failures == 0)
            continue;
        bench_found_figures(found, point, &figures);
        bench_wrapped(out, columns, 2, "failed: %s: %s",
                      bench_space_text(found->space, point, settings, sizeof settings),
                      figures.error ? figures.error : "?");
    }
}

void bench_found_print(const struct bench_found *found, FILE *out)
{
    int columns = bench_columns(out);
    uint32_t best = bench_search_best(found->search);
    char text[1200];

    if (found->search->trial_count == 0)
        return;
    fputc('\n', out);
    put_head(found, out);
    put_rows(found, out);
    fputc('\n', out);
    put_failures(found, columns, out);
    bench_wrapped(out, columns, 0, "%s", bench_found_verdict(found, text, sizeof text));
    if (best == found->space->baseline || bench_found_values(found, best, true, NULL) == 0)
        return;
    fprintf(out, "runs of both in turns, after the others:\n");
    put_values(found, "default", found->space->baseline, out);
    put_values(found, "best", best, out);
}
