/* What is said of pairs, rails and samples that are odd, and why they may be. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "bench/result/stamp.h"
#include "bench/words/columns.h"
#include "rails.h"
#include "stats.h"
#include "verdict.h"

#define NAMED_MOST 6    /* oddities that get a sentence each */
#define MORE_THAN_ALL 2 /* times as often as in all samples: only then is it a cause */

/* --- causes --- */

static int number_of(const json_t *object, const char *name)
{
    double number = report_number(object, name);

    return number >= 0 && number < 1e6 ? (int)number : -1;
}

/* The node of an endpoint in host memory is in the placement, that of a GPU's beside the GPU. */
static int numa_of(const json_t *host, const char *endpoint)
{
    const json_t *entry, *name;
    size_t index, number;

    json_array_foreach(json_object_get(json_object_get(host, "affinity"), "endpoints"), index, entry)
    {
        if (strcmp(report_text(entry, "endpoint"), endpoint) == 0)
            return number_of(entry, "numa_node");
    }
    json_array_foreach(json_object_get(host, "gpus"), index, entry)
    {
        json_array_foreach(json_object_get(entry, "endpoints"), number, name)
        {
            if (json_is_string(name) && strcmp(json_string_value(name), endpoint) == 0)
                return number_of(entry, "numa_node");
        }
    }
    return -1;
}

/* That of all rails of a node; -1: not known, or they are on several. */
static int numa_of_rails(const json_t *host)
{
    const json_t *rail;
    size_t index;
    int found = -1;

    json_array_foreach(json_object_get(json_object_get(host, "affinity"), "rails"), index, rail)
    {
        int numa = number_of(rail, "numa_node");
        if (numa < 0 || (index > 0 && numa != found))
            return -1;
        found = numa;
    }
    return found;
}

/* An endpoint that is far from the rails, where others of its node are near. */
static bool is_far(const struct report_run *run, uint32_t end, char *text, size_t room)
{
    const char *name = run->ends.list[end], *colon = strchr(name, ':');
    const json_t *host;
    size_t index;

    json_array_foreach(json_object_get(run->root, "host"), index, host)
    {
        size_t length = strlen(report_text(host, "node"));
        if (!colon || length != (size_t)(colon - name) || strncmp(report_text(host, "node"), name, length) != 0)
            continue;
        int own = numa_of(host, colon + 1), rails = numa_of_rails(host);
        for (size_t i = 0; own >= 0 && rails >= 0 && own != rails && i < run->ends.count; i++)
            if (strncmp(run->ends.list[i], name, length + 1) == 0 &&
                numa_of(host, run->ends.list[i] + length + 1) == rails) {
                snprintf(text, room, "%s is on NUMA node %d, the rails are on %d", name, own, rails);
                return true;
            }
    }
    return false;
}

/* How often something happened in the samples of an oddity, and in all of its mode and backend, each by the sample. */
static bool happened_more(const struct report_run *run, const struct report_oddity *oddity,
                          double (*count)(const struct report_sample *sample), double *times)
{
    double own = 0, all = 0;
    size_t own_samples = 0, samples = 0;

    for (size_t i = 0; i < run->sample_count; i++) {
        const struct report_sample *sample = &run->samples[i];
        if (sample->backend != oddity->backend || sample->mode != oddity->mode)
            continue;
        bool is_own = (oddity->odd.src == UINT32_MAX || sample->src == oddity->odd.src) &&
                      (oddity->odd.dst == UINT32_MAX || sample->dst == oddity->odd.dst);
        own += is_own ? count(sample) : 0;
        own_samples += is_own;
        all += count(sample);
        samples++;
    }
    *times = own;
    return own > 0 && own * (double)samples > MORE_THAN_ALL * all * (double)own_samples;
}

static double failures_of(const struct report_sample *sample)
{
    return sample->failures;
}

static double retransmits_of(const struct report_sample *sample)
{
    return sample->retransmits;
}

/* Why a pair may be slow, as far as the file knows. */
static void find_cause(const struct report_run *run, const struct report_oddity *oddity, char *text, size_t room)
{
    const struct bench_odd *odd = &oddity->odd;
    double times;

    if ((odd->src != UINT32_MAX && is_far(run, odd->src, text, room)) ||
        (odd->dst != UINT32_MAX && is_far(run, odd->dst, text, room)))
        return;
    if (happened_more(run, oddity, failures_of, &times))
        snprintf(text, room, "%.0f connections were lost meanwhile", times);
    else if (happened_more(run, oddity, retransmits_of, &times))
        snprintf(text, room, "TCP sent %.0f segments again meanwhile", times);
    else
        snprintf(text, room, "the file does not say why");
}

/* --- nodes and rails of more than two --- */

static void judge_nodes(struct report_verdict *verdict, const struct report_run *run,
                        const struct bench_findings *nodes)
{
    size_t named = nodes->count < NAMED_MOST ? nodes->count : NAMED_MOST;
    char what[320];

    for (size_t i = 0; i < named; i++) {
        const struct bench_finding *finding = &nodes->list[i];
        const char *backend = run->backends.count > 1 ? run->backends.list[finding->backend] : "";
        report_say(verdict, REPORT_DOUBT, "%s: %s; %s.", bench_finding_word(finding),
                   bench_finding_text(finding, backend, what, sizeof what),
                   finding->cause[0] ? finding->cause : "the file does not say why");
    }
    if (nodes->count + nodes->more > named)
        report_say(verdict, REPORT_DOUBT, "%zu more nodes, links or rails are slow: see the map of the nodes.",
                   nodes->count + nodes->more - named);
}

/* --- pairs --- */

static void judge_oddity(struct report_verdict *verdict, const struct report_run *run,
                         const struct report_oddity *oddity)
{
    const struct bench_odd *odd = &oddity->odd;
    const char *backend = run->backends.count > 1 ? run->backends.list[oddity->backend] : "";
    char what[256], cause[200], rate[32], peers[32], size[32];

    if (odd->kind == BENCH_ODD_PAIR)
        snprintf(what, sizeof what, "%.100s to %.100s", run->ends.list[odd->src], run->ends.list[odd->dst]);
    else if (odd->kind == BENCH_ODD_SENDER)
        snprintf(what, sizeof what, "what %.100s sends", run->ends.list[odd->src]);
    else
        snprintf(what, sizeof what, "what %.100s receives", run->ends.list[odd->dst]);
    find_cause(run, oddity, cause, sizeof cause);
    report_say(verdict, REPORT_DOUBT, "Slow: %s has %.0f %% of what its peers have (%s%s%s, %s: %s of %s GB/s)%s; %s.",
               what, 100 * odd->of_peers, backend, backend[0] ? ", " : "", report_mode_name(oddity->mode),
               wf_format_size(oddity->size, size, sizeof size), bench_rate_text(odd->rate, rate, sizeof rate),
               bench_rate_text(odd->peers_rate, peers, sizeof peers),
               odd->one_way ? ", and the way back is as fast as the others: asymmetric" : "", cause);
}

/* The largest size of the first mode of a backend. */
static size_t largest_set(const struct report_grid *grid, uint32_t backend)
{
    size_t largest = SIZE_MAX;

    for (size_t set = 0; set < grid->set_count; set++)
        if (grid->sets[set].backend == backend && !grid->sets[set].latency &&
            (largest == SIZE_MAX || grid->sets[set].mode == grid->sets[largest].mode))
            largest = set;
    return largest;
}

static double median_of_way(const struct report_grid *grid, size_t set, int way, double *values)
{
    size_t count = report_rates(grid, set, way, values);

    return count > 1 ? report_median(values, count) : NAN;
}

/* The pair that is slowest beside its direction: a fact, whether it is odd or not. */
static void judge_weakest(struct report_verdict *verdict, const struct report_grid *grid, uint32_t backend,
                          double *values)
{
    size_t set = largest_set(grid, backend), weakest = SIZE_MAX;
    double least = INFINITY, median = 0;
    char rate[32], text[32], size[32];

    for (int way = 0; set != SIZE_MAX && way < grid->way_count; way++) {
        double of_way = median_of_way(grid, set, way, values);
        for (size_t pair = 0; of_way > 0 && pair < grid->pair_count; pair++) {
            const struct report_sample *sample = report_cell(grid, set, pair);
            if (grid->pairs[pair].way != way || !sample || !(sample->rate > 0) || sample->rate / of_way >= least)
                continue;
            least = sample->rate / of_way;
            median = of_way;
            weakest = pair;
        }
    }
    if (weakest == SIZE_MAX)
        return;
    report_say(verdict, REPORT_PLAIN,
               "%s, the weakest pair (%s, %s): %s to %s with %s GB/s, %.0f %% of the median of its direction, %s.",
               report_backend(grid, set), report_mode_name(grid->sets[set].mode),
               wf_format_size(grid->sets[set].size, size, sizeof size), grid->run->ends.list[grid->pairs[weakest].src],
               grid->run->ends.list[grid->pairs[weakest].dst], bench_rate_text(least * median, rate, sizeof rate),
               100 * least, bench_rate_text(median, text, sizeof text));
}

static void judge_pairs(struct report_verdict *verdict, const struct report_grid *grid,
                        const struct report_oddities *odd)
{
    size_t named = odd->count < NAMED_MOST ? odd->count : NAMED_MOST;
    double *values = calloc(grid->pair_count + 1, sizeof *values);

    for (uint32_t backend = 0; values && backend < grid->run->backends.count; backend++)
        if (strcmp(grid->run->backends.list[backend], "null") != 0)
            judge_weakest(verdict, grid, backend, values);
    for (size_t i = 0; i < named; i++)
        judge_oddity(verdict, grid->run, &odd->list[i]);
    if (odd->count + odd->more > named)
        report_say(verdict, REPORT_DOUBT, "%zu more are slow beside their peers: see the matrix.",
                   odd->count + odd->more - named);
    verdict->failed |= !values;
    free(values);
}

/* --- rails, samples --- */

static void judge_rails(struct report_verdict *verdict, const struct report_run *run, bool many)
{
    const json_t *rails = json_object_get(run->root, "rails"), *rail;
    bool comparable = report_all_rails_serve(run);
    size_t index;

    json_array_foreach(rails, index, rail)
    {
        double share = report_rail_share(run, rail), fair = report_rail_fair(rails, rail);
        const char *node = report_text(rail, "node"), *name = report_text(rail, "name");
        if (json_is_true(json_object_get(rail, "retired")))
            report_say(verdict, REPORT_BAD, "Rail %s of %s was taken out of use: it damaged too much.", name, node);
        else if (report_number(rail, "failures") > 0)
            report_say(verdict, REPORT_DOUBT, "Rail %s of %s lost %.0f connections.", name, node,
                       report_number(rail, "failures"));
        else if (comparable && fair < 1 && share == 0)
            report_say(verdict, REPORT_PLAIN, "Rail %s of %s brought nothing of the largest size.", name, node);
        else if (comparable && !many && fair < 1 && share < REPORT_SLOW_RAIL * fair)
            report_say(verdict, REPORT_DOUBT,
                       "Rail %s of %s is slow: it brought %.0f %% of the bytes, and should bring %.0f %% (%s).", name,
                       node, 100 * share, 100 * fair,
                       report_rail_known(rails, rail) ? "by the line rates" : "if all are alike");
    }
}

static void judge_stamps(struct report_verdict *verdict, const struct report_run *run)
{
    size_t stamped = 0, used = 0, of[BENCH_STAMPS] = {0};
    char reasons[256] = "";

    for (size_t i = 0; i < run->sample_count; i++) {
        stamped += run->samples[i].stamps != 0;
        for (int stamp = 0; stamp < BENCH_STAMPS; stamp++)
            of[stamp] += run->samples[i].stamps >> stamp & 1;
    }
    for (int stamp = 0; stamp < BENCH_STAMPS && used < sizeof reasons; stamp++)
        if (of[stamp])
            used += (size_t)snprintf(reasons + used, sizeof reasons - used, "%s%s %zu", used ? ", " : "",
                                     bench_stamp_name(stamp), of[stamp]);
    if (stamped)
        report_say(verdict, REPORT_DOUBT, "%zu of %zu samples are stamped as doubtful: %s.", stamped, run->sample_count,
                   reasons);
}

void report_judge_odd(struct report_verdict *verdict, const struct report_grid *grid, const struct report_oddities *odd)
{
    judge_nodes(verdict, grid->run, &odd->nodes);
    judge_pairs(verdict, grid, odd);
    judge_rails(verdict, grid->run, grid->many);
    judge_stamps(verdict, grid->run);
}
