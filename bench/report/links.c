/* Matrices: what each pair reached, and what is left of it when all send. */
#include <math.h>

#include "base/config.h"
#include "figures.h"

#define ENDS "Row sends to column. "

struct columns {
    size_t backend, mode, size, way, src, dst, rate, time, low, high, mark;
};

static void add_columns(struct report_figure *figure, const struct report_grid *grid, bool latency,
                        struct columns *columns)
{
    if (grid->run->backends.count > 1)
        columns->backend = report_column_add(figure, "backend", "", REPORT_SELECT, false);
    columns->way = report_column_add(figure, "direction", "", REPORT_SELECT, false);
    columns->mode = report_column_add(figure, "mode", "", REPORT_SELECT, false);
    columns->size = report_column_add(figure, "size", "", REPORT_SELECT, false);
    columns->src = report_column_add(figure, "source", "", REPORT_Y, false);
    columns->dst = report_column_add(figure, "destination", "", REPORT_X, false);
    if (!latency)
        columns->rate = report_column_add(figure, "rate", "GB/s", REPORT_VALUE, true);
    columns->time =
        report_column_add(figure, latency ? "half round trip" : "time of a message", "us", REPORT_VALUE, true);
    columns->low = report_column_add(figure, "time, 10 %", "us", REPORT_SHOWN, true);
    columns->high = report_column_add(figure, "time, 90 %", "us", REPORT_SHOWN, true);
    columns->mark = report_column_add(figure, "remark", "", REPORT_MARK, false);
}

static const char *mark_of(const struct report_sample *sample, const char *odd)
{
    if (sample && sample->wrong > 0)
        return "wrong bytes";
    if (sample && sample->failures > 0)
        return "a rail failed meanwhile";
    return odd ? odd : "";
}

static void add_cell(struct report_figure *figure, const struct report_grid *grid, size_t set, size_t pair,
                     const struct report_oddities *odd, const struct columns *columns)
{
    const struct report_sample *sample = report_cell(grid, set, pair);
    const struct report_pair *of = &grid->pairs[pair];
    const struct report_set *at = &grid->sets[set];
    char text[64];

    report_row_add(figure);
    if (grid->run->backends.count > 1)
        report_set_text(figure, columns->backend, report_backend(grid, set));
    report_set_text(figure, columns->mode, report_mode_name(at->mode));
    report_set_text(figure, columns->size, wf_format_size(at->size, text, sizeof text));
    report_set_text(figure, columns->way, report_way_name(grid, of->way, text, sizeof text));
    report_set_text(figure, columns->src, grid->run->ends.list[of->src]);
    report_set_text(figure, columns->dst, grid->run->ends.list[of->dst]);
    report_set_text(figure, columns->mark, mark_of(sample, report_oddity_of(odd, grid, set, pair)));
    if (!sample)
        return;
    if (!at->latency)
        report_set_number(figure, columns->rate, sample->rate);
    report_set_number(figure, columns->time, sample->p50);
    report_set_number(figure, columns->low, sample->p10);
    report_set_number(figure, columns->high, sample->p90);
}

/* Of many nodes the first row lacks the endpoints of its own. */
static void name_ends(struct report_figure *figure, const struct report_grid *grid, const struct columns *columns)
{
    char *const *ends = grid->run->ends.list;

    for (size_t pair = 0; grid->many && pair < grid->pair_count; pair++)
        if (pair == 0 || grid->pairs[pair].src != grid->pairs[pair - 1].src) {
            report_label_add(figure, columns->src, ends[grid->pairs[pair].src]);
            report_label_add(figure, columns->dst, ends[grid->pairs[pair].src]);
        }
}

static bool in_matrix(const struct report_set *set, bool latency, int mode)
{
    return set->latency == latency && (int)set->mode == mode;
}

static int add_matrix(struct report_figures *figures, const struct report_grid *grid, bool latency,
                      const struct report_oddities *odd, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_HEAT, latency ? "mesh-latency" : "mesh", latency ? "Half round trip of every pair" : "Every pair",
        ENDS "In isolated one pair sends at a time; in loaded all send at once. What is marked is odd beside the other "
             "pairs of its direction: the verdict says how.");
    struct columns columns = {0};

    if (!figure)
        return report_figures_add(figures, NULL, status);
    add_columns(figure, grid, latency, &columns);
    name_ends(figure, grid, &columns);
    /* The first ones are shown first: isolated, and of it the largest size. */
    for (int mode = 0; mode < REPORT_MODES; mode++)
        for (size_t set = grid->set_count; set-- > 0;)
            for (size_t pair = 0; in_matrix(&grid->sets[set], latency, mode) && pair < grid->pair_count; pair++)
                add_cell(figure, grid, set, pair, odd, &columns);
    return report_figures_add(figures, figure, status);
}

/* --- loaded over isolated --- */

static void add_share(struct report_figure *figure, const struct report_grid *grid, size_t loaded, size_t isolated)
{
    char text[64];

    for (size_t pair = 0; pair < grid->pair_count; pair++) {
        const struct report_sample *with = report_cell(grid, loaded, pair), *alone = report_cell(grid, isolated, pair);
        bool both = with && alone && alone->rate > 0;
        report_row_add(figure);
        report_set_text(figure, 0, report_backend(grid, loaded));
        report_set_text(figure, 1, report_way_name(grid, grid->pairs[pair].way, text, sizeof text));
        report_set_text(figure, 2, wf_format_size(grid->sets[loaded].size, text, sizeof text));
        report_set_text(figure, 3, grid->run->ends.list[grid->pairs[pair].src]);
        report_set_text(figure, 4, grid->run->ends.list[grid->pairs[pair].dst]);
        report_set_number(figure, 5, both ? 100 * with->rate / alone->rate : NAN);
    }
}

static int add_shares(struct report_figures *figures, const struct report_grid *grid, struct wf_status *status)
{
    struct report_figure *figure = report_figure_create(
        REPORT_HEAT, "mesh-ratio", "What is left of each pair when all send",
        ENDS "The rate in loaded over the rate in isolated: low where pairs share what limits them.");

    if (!figure)
        return report_figures_add(figures, NULL, status);
    report_column_add(figure, "backend", "", REPORT_SELECT, false);
    report_column_add(figure, "direction", "", REPORT_SELECT, false);
    report_column_add(figure, "size", "", REPORT_SELECT, false);
    report_column_add(figure, "source", "", REPORT_Y, false);
    report_column_add(figure, "destination", "", REPORT_X, false);
    report_column_add(figure, "loaded / isolated", "%", REPORT_VALUE, true);
    for (size_t set = grid->set_count; set-- > 0;) {
        struct report_set other = grid->sets[set];
        if (other.mode != REPORT_LOADED || other.latency)
            continue;
        other.mode = REPORT_ISOLATED;
        size_t isolated = report_set_find(grid, &other);
        if (isolated != SIZE_MAX)
            add_share(figure, grid, set, isolated);
    }
    return report_figures_add(figures, figure, status);
}

int report_links(struct report_figures *figures, const struct report_grid *grid, const struct report_oddities *odd,
                 struct wf_status *status)
{
    if (grid->pair_count < 2)
        return 0;
    int result = add_matrix(figures, grid, false, odd, status);
    if (result == 0)
        result = add_shares(figures, grid, status);
    if (result == 0)
        result = add_matrix(figures, grid, true, odd, status);
    return result;
}
