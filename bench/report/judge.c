/* What is said of a run of weft mesh, pair or profile. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "bench/words/columns.h"
#include "bench/words/words.h"
#include "stats.h"
#include "verdict.h"

#define GB_PER_MBIT 125e-6 /* a second */

/* --- how it ended --- */

static void judge_end(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *summary = json_object_get(run->root, "summary"), *cut = json_object_get(run->root, "cut_short");
    const char *error = report_text(run->root, "error");
    double wrong = report_number(summary, "wrong_bytes");
    char verified[32], measured[32];

    bench_decimal_bytes(report_count(summary, "verified_bytes"), verified, sizeof verified);
    bench_decimal_bytes(report_count(summary, "measured_bytes"), measured, sizeof measured);
    if (wrong > 0)
        report_say(verdict, REPORT_BAD, "%.0f wrong bytes of %s verified.", wrong, verified);
    if (json_is_object(cut))
        report_say(verdict, REPORT_BAD, "Cut short at %s: %.0f of %.0f samples. %s", report_text(cut, "node"),
                   report_number(cut, "samples"), report_number(cut, "samples_planned"), report_text(cut, "reason"));
    else if (error[0])
        report_say(verdict, REPORT_BAD, "It failed: %s", error);
    else if (json_is_true(json_object_get(summary, "passed")) && !isnan(wrong))
        report_say(verdict, REPORT_GOOD, "All %zu samples ran: 0 wrong bytes of %s verified; %s measured.",
                   run->sample_count, verified, measured);
    else if (json_is_true(json_object_get(summary, "passed")))
        report_say(verdict, REPORT_GOOD, "All %zu samples ran; nothing was verified.", run->sample_count);
}

static void judge_place(struct report_verdict *verdict, const struct report_run *run)
{
    if (json_is_true(json_object_get(run->root, "emulated")))
        report_say(verdict, REPORT_DOUBT, "The GPUs were EMULATED: no figure here is of a GPU.");
    if (json_is_true(json_object_get(run->root, "loopback")))
        report_say(verdict, REPORT_PLAIN,
                   "Both nodes were on one machine, over loopback: this says nothing about a network.");
    else if (json_is_true(json_object_get(run->root, "one_machine")))
        report_say(verdict, REPORT_PLAIN, "Both nodes were on one machine.");
}

/* Those of both nodes together. So that nobody takes what the rest shows for the network's doing. */
static void judge_faults(struct report_verdict *verdict, const struct report_run *run)
{
    static const char *const kinds[] = {"resets", "flips", "shortened", "stalls", "drops", "cut", "refused"};
    const json_t *faults;
    size_t index, used = 0;
    char text[300] = "";

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && used < sizeof text; i++) {
        double count = 0;
        json_array_foreach(json_object_get(run->root, "faults"), index, faults)
        {
            double of_node = report_number(faults, kinds[i]);
            count += of_node > 0 ? of_node : 0;
        }
        if (count > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %.0f", used ? ", " : "", kinds[i], count);
    }
    if (text[0])
        report_say(verdict, REPORT_DOUBT, "Faults were injected on purpose (--fault): %s.", text);
}

/* --- what was reached --- */

/* GB/s that the rails of a node can carry; NaN where one is not known. */
static double line_rate(const struct report_run *run, int node)
{
    const json_t *rail;
    double sum = 0;
    size_t index;

    json_array_foreach(json_object_get(run->root, "rails"), index, rail)
    {
        double speed = report_number(rail, "speed_mbit");
        if (report_node_of(report_text(rail, "node")) == node)
            sum += speed > 0 ? speed * GB_PER_MBIT : NAN;
    }
    return sum;
}

/* " (91 % of the line rate)", or "". */
static const char *of_line(const struct report_grid *grid, int way, double rate, char *text, size_t room)
{
    double from = line_rate(grid->run, grid->ways[way][0]), to = line_rate(grid->run, grid->ways[way][1]);
    double line = from > 0 && to > 0 ? fmin(from, to) : NAN;

    text[0] = '\0';
    if (line > 0 && grid->ways[way][0] != grid->ways[way][1] &&
        !json_is_true(json_object_get(grid->run->root, "loopback")))
        snprintf(text, room, ", %.0f %% of the line rate of %.3g GB/s", 100 * rate / line, line);
    return text;
}

/* The set of a backend and mode in which pairs are fastest; SIZE_MAX: there is none. */
static size_t best_set(const struct report_grid *grid, uint32_t backend, enum report_mode mode, double *values)
{
    size_t best = SIZE_MAX;
    double most = 0;

    for (size_t set = 0; set < grid->set_count; set++) {
        if (grid->sets[set].backend != backend || grid->sets[set].mode != mode)
            continue;
        size_t count = report_rates(grid, set, -1, values);
        double median = report_median(values, count);
        if (median > most) {
            most = median;
            best = set;
        }
    }
    return best;
}

static void judge_isolated(struct report_verdict *verdict, const struct report_grid *grid, uint32_t backend,
                           double *values)
{
    size_t set = best_set(grid, backend, REPORT_ISOLATED, values);
    char size[32], rate[32], line[96], ways[64];

    for (int way = 0; set != SIZE_MAX && way < grid->way_count; way++) {
        size_t count = report_rates(grid, set, way, values);
        double median = report_median(values, count);
        if (!count)
            continue;
        if (!grid->many)
            snprintf(ways, sizeof ways, "from node%d to node%d", grid->ways[way][0], grid->ways[way][1]);
        else
            report_way_name(grid, way, ways, sizeof ways);
        report_say(verdict, REPORT_PLAIN, "%s, alone: %s GB/s %s with messages of %s%s%s.", report_backend(grid, set),
                   bench_rate_text(median, rate, sizeof rate), ways,
                   wf_format_size(grid->sets[set].size, size, sizeof size), count > 1 ? " (median of the pairs)" : "",
                   of_line(grid, way, median, line, sizeof line));
    }
}

static void judge_loaded(struct report_verdict *verdict, const struct report_run *run, const char *backend)
{
    const json_t *set, *best = NULL;
    double most = 0;
    size_t index;
    char size[32], rate[32];

    json_array_foreach(json_object_get(json_object_get(run->root, "summary"), "sets"), index, set)
    {
        double together = report_number(set, "aggregate_bw_gb_per_s");
        if (strcmp(report_text(set, "backend"), backend) != 0 || !(together > most))
            continue;
        most = together;
        best = set;
    }
    if (best)
        report_say(verdict, REPORT_PLAIN, "%s, all pairs at once: up to %s GB/s together, with messages of %s.",
                   backend, bench_rate_text(most, rate, sizeof rate),
                   wf_format_size(report_count(best, "size_bytes"), size, sizeof size));
}

static void judge_latency(struct report_verdict *verdict, const struct report_grid *grid, uint32_t backend)
{
    const struct report_sample *least = NULL;
    char size[32], time[32];

    for (size_t i = 0; i < grid->run->sample_count; i++) {
        const struct report_sample *sample = &grid->run->samples[i];
        if (sample->latency && sample->backend == backend && (!least || sample->p50 < least->p50))
            least = sample;
    }
    if (least)
        report_say(verdict, REPORT_PLAIN,
                   "%s, half round trip: %s with messages of %s (median of a pair, the least of all).",
                   grid->run->backends.list[backend], bench_time_text(least->p50, time, sizeof time),
                   wf_format_size(least->size, size, sizeof size));
}

/* What the run itself has found in the way. Of a run that was too short to know there is nothing to say. */
static void judge_limits(struct report_verdict *verdict, const struct report_run *run)
{
    const json_t *set;
    size_t index;
    char size[32];

    json_array_foreach(json_object_get(json_object_get(run->root, "summary"), "sets"), index, set)
    {
        const char *text = report_text(set, "limited_by"), *backend = report_text(set, "backend");
        bool several = run->backends.count > 1;
        if (text[0] && strncmp(text, "not known", 9) != 0)
            report_say(verdict, REPORT_PLAIN, "Limited by (%s%s%s, %s): %s.", several ? backend : "",
                       several ? ", " : "", report_text(set, "mode"),
                       wf_format_size(report_count(set, "size_bytes"), size, sizeof size), text);
    }
}

void report_judge_run(struct report_verdict *verdict, const struct report_grid *grid, const struct report_oddities *odd)
{
    const struct report_run *run = grid->run;
    double *values = calloc(grid->pair_count + 1, sizeof *values);

    judge_end(verdict, run);
    judge_place(verdict, run);
    judge_faults(verdict, run);
    report_judge_odd(verdict, grid, odd);
    /* What moves no data says nothing of a network. */
    for (uint32_t backend = 0; values && backend < run->backends.count; backend++) {
        if (strcmp(run->backends.list[backend], "null") == 0)
            continue;
        judge_isolated(verdict, grid, backend, values);
        judge_loaded(verdict, run, run->backends.list[backend]);
        judge_latency(verdict, grid, backend);
    }
    judge_limits(verdict, run);
    verdict->failed |= !values;
    free(values);
}
