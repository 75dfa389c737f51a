#include "expect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/backends/backend.h"
#include "limit.h"

int bench_expect_read(const struct bench_options *options, double *share, struct wf_status *status)
{
    const char *text = wf_config_text(options->config, WF_SET_EXPECT);
    char *end;

    *share = 0;
    if (!text[0])
        return 0;
    double value = strtod(text, &end);
    if (end == text || *end || !(value > 0 && value <= 1))
        return wf_fail(status, -EINVAL, "--expect %.40s: must be a share of the line rate above 0 and up to 1, as 0.9",
                       text);
    if (options->latency)
        return wf_fail(status, -EINVAL, "--expect %.40s is a share of bandwidth: it has no meaning with --lat", text);
    *share = value;
    return 0;
}

/* Whether bytes are moved from one node to the other. */
static bool has_rates(const struct bench_plan *plan)
{
    bool moves = false;

    for (int i = 0; i < plan->backend_count; i++)
        moves |= plan->backends[i]->moves_data;
    return moves && (bench_plan_has_way(plan, &bench_ways[0]) || bench_plan_has_way(plan, &bench_ways[1]));
}

int bench_expect_ready(const struct bench_result *result, struct wf_status *status)
{
    char why[160];
    double share;
    int code = bench_expect_read(result->options, &share, status);

    if (code || share == 0)
        return code;
    if (result->options->nodes / (int)wf_config_number(result->options->config, WF_SET_PROCESSES) > 2)
        return wf_fail(status, -EINVAL, "--expect %.40s is about the line rate between two nodes: leave it out",
                       wf_config_text(result->options->config, WF_SET_EXPECT));
    if (result->plan && !has_rates(result->plan))
        return wf_fail(
            status, -EINVAL,
            "--expect %.40s is about bytes from node to node, and this run moves none: leave it out, or choose "
            "another backend or other pairs",
            wf_config_text(result->options->config, WF_SET_EXPECT));
    if (bench_line_unknown(result, why, sizeof why)[0])
        return wf_fail(status, -EINVAL, "--expect %.40s: %s: leave it out",
                       wf_config_text(result->options->config, WF_SET_EXPECT), why);
    return 0;
}

/* The last set of Weft's, or else of whatever moves data. */
static const struct bench_set *judged(const struct bench_result *result)
{
    const struct bench_set *found = NULL;

    for (int i = 0; i < result->set_count; i++)
        if (result->sets[i].backend->moves_data && (!found || result->sets[i].backend == found->backend))
            found = &result->sets[i];
    return found;
}

bool bench_expect_met(const struct bench_result *result, char *text, size_t room)
{
    double *samples = calloc(result->sample_count + 1, sizeof *samples);
    const struct bench_set *set = judged(result);
    struct wf_status ignored;
    size_t used = 0;
    bool met = true, judges, some = false;
    double share;

    text[0] = '\0';
    judges = bench_expect_read(result->options, &share, &ignored) == 0 && share > 0;
    if (judges)
        used = (size_t)snprintf(text, room, "expected %.3g of the line rate:", share);
    for (int i = 0; i < 2 && judges && set && samples && result->node_count == 2 && used < room; i++) {
        double line = bench_line_rate(result, &bench_ways[i]);
        double rate = bench_way_rate(result, set, &bench_ways[i], samples);
        if (!bench_plan_has_way(result->plan, &bench_ways[i]))
            continue;
        bool known = line > 0 && rate >= 0; /* node1 may have told no time */
        met &= known && rate >= share * line;
        used += (size_t)snprintf(text + used, room - used, "%s node%d -> node%d ", some ? "," : "",
                                 bench_ways[i].src_node, bench_ways[i].dst_node);
        if (used < room)
            used += known ? (size_t)snprintf(text + used, room - used, "reached %.3g", rate / line)
                          : (size_t)snprintf(text + used, room - used, "has no figure");
        some = true;
    }
    if (judges && used < room)
        snprintf(text + used, room - used, "%s: %s", some ? "" : " nothing was measured between the nodes",
                 met && some ? "met" : "not met");
    free(samples);
    return met && (some || !judges);
}
