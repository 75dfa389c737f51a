#include "found.h"

#include <stdlib.h>
#include <string.h>

const char *bench_found_unit(const struct bench_found *found)
{
    return found->options->latency ? "us" : "GB/s";
}

/* A score is a rate, or one over a time. */
static double value_of(const struct bench_found *found, double score)
{
    return found->options->latency && score > 0 ? 1 / score : score;
}

size_t bench_found_values(const struct bench_found *found, uint32_t point, bool confirmation, double *values)
{
    const struct bench_search *search = found->search;
    size_t count = 0;

    for (size_t i = 0; i < search->trial_count; i++) {
        const struct bench_trial *trial = &search->trials[i];
        if (trial->point != point || (trial->stage == BENCH_STAGE_CONFIRM) != confirmation || trial->doubtful ||
            trial->score <= 0)
            continue;
        if (values)
            values[count] = value_of(found, trial->score);
        count++;
    }
    return count;
}

/* The median processor time of the runs of a point, and the reason of the last that failed. */
static void look_at_runs(const struct bench_found *found, uint32_t point, double *room,
                         struct bench_point_figures *figures)
{
    size_t index, told = 0;
    json_t *run;

    json_array_foreach(found->runs, index, run)
    {
        const json_t *cpu = json_object_get(run, "cpu_s_per_gb"), *error = json_object_get(run, "error");
        if ((uint32_t)json_integer_value(json_object_get(run, "point")) != point)
            continue;
        if (json_is_number(cpu))
            room[told++] = json_number_value(cpu);
        if (json_is_string(error))
            figures->error = json_string_value(error);
    }
    figures->cpu_s_per_gb = told ? bench_figures_median(room, told) : -1;
}

void bench_found_figures(const struct bench_found *found, uint32_t point, struct bench_point_figures *figures)
{
    const struct bench_search *search = found->search;
    double *room = calloc(search->trial_count + 1, sizeof *room);

    *figures = (struct bench_point_figures){.spread = -1,
                                            .cpu_s_per_gb = -1,
                                            .runs = search->tallies[point].runs,
                                            .failures = search->tallies[point].failures};
    if (!room)
        return;
    size_t count = bench_found_values(found, point, false, room);
    figures->value = value_of(found, bench_search_score(search, point));
    figures->spread = bench_figures_cv(room, count);
    look_at_runs(found, point, room, figures);
    free(room);
    bench_search_compare(search, point, &figures->beside);
}

bool bench_found_others(const struct bench_found *found)
{
    bool others = false;

    for (size_t i = 0; i < found->search->trial_count; i++)
        others |= found->search->trials[i].score > 0 && found->search->trials[i].point != found->space->baseline;
    return others;
}

char *bench_found_verdict(const struct bench_found *found, char *text, size_t room)
{
    const struct bench_search *search = found->search;
    uint32_t best = bench_search_best(search), baseline = found->space->baseline;
    char settings[600];
    struct bench_comparison confirmed;

    bench_space_text(found->space, best, settings, sizeof settings);
    bench_search_confirmed(search, &confirmed);
    if (bench_search_score(search, best) <= 0)
        snprintf(text, room, "no point could be measured");
    else if (bench_search_score(search, baseline) <= 0)
        snprintf(text, room, "the default could not be measured; the best of the others is %s", settings);
    else if (!bench_found_others(found))
        snprintf(text, room, "no point but the default could be measured");
    else if (best == baseline)
        snprintf(text, room, "no point was faster than the default");
    else if (confirmed.pairs < BENCH_PAIRS_LEAST)
        snprintf(text, room, "%s was the fastest, but too few runs were made to say by how much", settings);
    else if (bench_search_wins(search))
        snprintf(text, room, "%s is %.3g times as fast as the default [%.3g, %.3g]", settings, confirmed.ratio,
                 confirmed.low, confirmed.high);
    else
        snprintf(text, room,
                 "no point differs from the default by more than its noise; the best one, %s, is %.3g times as fast "
                 "[%.3g, %.3g]",
                 settings, confirmed.ratio, confirmed.low, confirmed.high);
    return text;
}
