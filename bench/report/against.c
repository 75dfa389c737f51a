#include "against.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "bench/words/student.h"
#include "stats.h"

/* The two sides of a comparison. */
struct sides {
    const struct report_grid *one, *other;
    uint32_t one_backend, other_backend;
};

/* How many sets of a kind were faster and slower beyond chance. Kinds: by mode, and half round trips apart. */
struct tally {
    size_t sets, faster, slower, pairs_seen;
    double least, most, *ratios;
};

static uint32_t end_named(const struct report_run *run, const char *name)
{
    for (uint32_t i = 0; i < run->ends.count; i++)
        if (strcmp(run->ends.list[i], name) == 0)
            return i;
    return UINT32_MAX;
}

/* Of each pair the one of the other grid with the same names; SIZE_MAX: there is none. */
static size_t *match_pairs(const struct sides *sides)
{
    size_t *match = calloc(sides->one->pair_count + 1, sizeof *match);
    uint32_t *ends = calloc(sides->one->run->ends.count + 1, sizeof *ends);

    for (size_t i = 0; match && ends && i < sides->one->run->ends.count; i++)
        ends[i] = end_named(sides->other->run, sides->one->run->ends.list[i]);
    for (size_t pair = 0; match && ends && pair < sides->one->pair_count; pair++) {
        uint32_t src = ends[sides->one->pairs[pair].src], dst = ends[sides->one->pairs[pair].dst];
        match[pair] = src == UINT32_MAX || dst == UINT32_MAX ? SIZE_MAX : report_pair_find(sides->other, src, dst);
    }
    if (!ends) {
        free(match);
        match = NULL;
    }
    free(ends);
    return match;
}

static double ratio_of(const struct report_sample *one, const struct report_sample *other)
{
    double ratio = NAN;

    if (one && other && one->latency)
        ratio = one->p50 > 0 && other->p50 > 0 ? other->p50 / one->p50 : NAN;
    else if (one && other)
        ratio = one->rate > 0 && other->rate > 0 ? one->rate / other->rate : NAN;
    return isfinite(ratio) && ratio > 0 ? ratio : NAN;
}

/* Fills `logs`; returns how many pairs both have. */
static size_t collect(const struct sides *sides, size_t set, size_t other_set, const size_t *match, double *logs)
{
    size_t count = 0;

    for (size_t pair = 0; pair < sides->one->pair_count; pair++) {
        double ratio = match[pair] == SIZE_MAX ? NAN
                                               : ratio_of(report_cell(sides->one, set, pair),
                                                          report_cell(sides->other, other_set, match[pair]));
        if (!isnan(ratio))
            logs[count++] = log(ratio);
    }
    return count;
}

struct interval {
    double ratio, low, high; /* NaN: one pair alone has none */
};

static struct interval interval_of(const double *logs, size_t count)
{
    double mean, deviation = report_deviation(logs, count, &mean);

    if (count < 2)
        return (struct interval){exp(mean), NAN, NAN};
    double half = bench_student(count - 1) * deviation / sqrt((double)count);
    return (struct interval){exp(mean), exp(mean - half), exp(mean + half)};
}

static const char *verdict_of(const struct interval *is)
{
    if (is->low > 1 && is->ratio > 1 + REPORT_ABOUT_EQUAL)
        return "faster";
    if (is->high < 1 && is->ratio < 1 - REPORT_ABOUT_EQUAL)
        return "slower";
    return isnan(is->low) ? "one pair: no interval" : "";
}

static void count_in(struct tally *tally, const struct interval *is, size_t pairs)
{
    tally->least = tally->sets && tally->least < is->ratio ? tally->least : is->ratio;
    tally->most = tally->sets && tally->most > is->ratio ? tally->most : is->ratio;
    tally->ratios[tally->sets++] = is->ratio;
    tally->faster += verdict_of(is)[0] == 'f';
    tally->slower += verdict_of(is)[0] == 's';
    tally->pairs_seen = pairs > tally->pairs_seen ? pairs : tally->pairs_seen;
}

static void add_row(struct report_figure *figure, const struct report_set *set, const struct interval *is, size_t pairs)
{
    report_row_add(figure);
    report_set_text(figure, 0, set->latency ? "half round trip" : report_mode_name(set->mode));
    report_set_number(figure, 1, (double)set->size);
    report_set_number(figure, 2, is->ratio);
    report_set_number(figure, 3, is->low);
    report_set_number(figure, 4, is->high);
    report_set_number(figure, 5, (double)pairs);
    report_set_text(figure, 6, verdict_of(is));
}

static struct report_figure *create(const struct sides *sides, const char *name)
{
    char id[64], title[300];
    size_t length = (size_t)snprintf(id, sizeof id, "against-%.50s", name);

    for (size_t i = 0; i < length && id[i]; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-", id[i]))
            id[i] = '-';
    snprintf(title, sizeof title, "%.40s over %.200s", sides->one->run->backends.list[sides->one_backend], name);
    struct report_figure *figure = report_figure_create(
        REPORT_LINES, id, title,
        "Above 1 is faster. The geometric mean over the pairs that both have, with its 95 % interval; "
        "what differs from one run to the next is not in it.");
    if (!figure)
        return NULL;
    figure->x = REPORT_LOG;
    report_column_add(figure, "mode", "", REPORT_SERIES, false);
    report_column_add(figure, "size", "bytes", REPORT_X, true);
    report_column_add(figure, "ratio", "", REPORT_Y, true);
    report_column_add(figure, "low", "", REPORT_LOW, true);
    report_column_add(figure, "high", "", REPORT_HIGH, true);
    report_column_add(figure, "pairs", "", REPORT_SHOWN, true);
    report_column_add(figure, "beyond chance", "", REPORT_MARK, false);
    return figure;
}

static void tell(struct report_verdict *verdict, struct tally *tally, const char *of, const char *name)
{
    char rest[160];

    report_sort(tally->ratios, tally->sets);
    if (tally->pairs_seen < 2)
        snprintf(rest, sizeof rest, "; of one pair nothing says how much of that is chance");
    else
        snprintf(rest, sizeof rest, "; by more than the pairs differ, %zu %s faster and %zu slower, of one run each",
                 tally->faster, tally->faster == 1 ? "is" : "are", tally->slower);
    /* Never a doubt: two runs of a busy machine differ by more than their pairs do. */
    report_say(verdict, REPORT_PLAIN, "Against %s, %s: %.2f times as fast (median of %zu %s, %.2f to %.2f)%s.", name,
               of, report_median(tally->ratios, tally->sets), tally->sets, tally->sets == 1 ? "size" : "sizes",
               tally->least, tally->most, rest);
}

int report_against(struct report_figures *figures, struct report_verdict *verdict, const struct report_grid *grid,
                   uint32_t backend, const struct report_grid *other, uint32_t other_backend, const char *name,
                   struct wf_status *status)
{
    static const char *const kinds[] = {"isolated", "loaded", "half round trips"};
    struct sides sides = {grid, other, backend, other_backend};
    double *room = calloc(grid->pair_count + 4 * (grid->set_count + 1), sizeof *room);
    size_t *match = match_pairs(&sides);
    struct report_figure *figure = create(&sides, name);
    struct tally tallies[3] = {{0}};

    for (int i = 0; room && i < 3; i++)
        tallies[i].ratios = room + grid->pair_count + (size_t)i * (grid->set_count + 1);
    for (size_t set = 0; room && match && figure && set < grid->set_count; set++) {
        struct report_set like = grid->sets[set];
        like.backend = other_backend;
        size_t there = report_set_find(other, &like);
        size_t pairs =
            grid->sets[set].backend != backend || there == SIZE_MAX ? 0 : collect(&sides, set, there, match, room);
        if (!pairs)
            continue;
        struct interval is = interval_of(room, pairs);
        add_row(figure, &grid->sets[set], &is, pairs);
        count_in(&tallies[like.latency ? 2 : like.mode], &is, pairs);
    }
    for (int i = 0; i < 3; i++)
        if (tallies[i].sets)
            tell(verdict, &tallies[i], kinds[i], name);
    free(room);
    free(match);
    return report_figures_add(figures, figure, status);
}
