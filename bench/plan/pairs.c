/* The pairs of a plan: which there are by pattern and scope, and their order. */
#include "pairs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/random.h"
#include "names.h"

static int add_pair(struct bench_plan *plan, int src_node, uint32_t src, int dst_node, uint32_t dst,
                    struct wf_status *status)
{
    /* Grows by doubling: the count is a power of two whenever the room is used up. */
    if ((plan->pair_count & (plan->pair_count - 1)) == 0) {
        size_t room = plan->pair_count ? 2 * (size_t)plan->pair_count : 1;
        struct bench_pair *grown = realloc(plan->pairs, room * sizeof *grown);
        if (!grown)
            return wf_fail(status, -ENOMEM, "no memory for %zu pairs: lower --endpoints", room);
        plan->pairs = grown;
    }
    plan->pairs[plan->pair_count++] =
        (struct bench_pair){.src = src, .dst = dst, .src_node = (uint16_t)src_node, .dst_node = (uint16_t)dst_node};
    plan->intra |= src_node == dst_node;
    return 0;
}

static bool is_pattern(const struct bench_plan *plan, const char *name)
{
    return strcmp(plan->pattern, name) == 0;
}

/* Only endpoints of equal numbers talk. */
static bool has_equals(const struct bench_plan *plan)
{
    return is_pattern(plan, "pairs") || is_pattern(plan, "ring") || is_pattern(plan, "permutation") ||
           is_pattern(plan, "bisection");
}

/* The node to which `node` sends: as far on as the seed says, so that nobody sends to itself. */
static int permuted(const struct bench_plan *plan, int node)
{
    uint64_t state = plan->seed;
    int count = plan->node_count / plan->processes;
    int shift = 1 + (int)(bench_random_next(&state) % (uint64_t)(count - 1));

    return (node + shift) % count;
}

bool bench_plan_sends(const struct bench_plan *plan, int src_node, int dst_node)
{
    int count = plan->node_count / plan->processes, half = count / 2;
    bool first = dst_node == 0;

    if (plan->processes > 1 && has_equals(plan) && src_node % plan->processes != dst_node % plan->processes)
        return false;
    src_node /= plan->processes;
    dst_node /= plan->processes;
    if (is_pattern(plan, "ring"))
        return (src_node + 1) % count == dst_node;
    if (is_pattern(plan, "permutation"))
        return permuted(plan, src_node) == dst_node;
    if (is_pattern(plan, "bisection"))
        return src_node % half == dst_node % half && src_node < 2 * half && dst_node < 2 * half;
    return !is_pattern(plan, "incast") || first;
}

/* Whether the pattern has (src, dst) from one node to the other, or within one. */
static bool pattern_has(const struct bench_plan *plan, int src_node, uint32_t src, int dst_node, uint32_t dst)
{
    if (is_pattern(plan, "incast"))
        return dst_node == 0 && dst == 0;
    return !has_equals(plan) || (src == dst && bench_plan_sends(plan, src_node, dst_node));
}

int bench_plan_add_inter(struct bench_plan *plan, int low, int high, struct wf_status *status)
{
    int result = 0;

    /* Both directions of a pair stand side by side, so that bidir can run them together. */
    for (uint32_t a = 0; a < plan->endpoints; a++)
        for (uint32_t b = 0; result == 0 && b < plan->endpoints; b++) {
            if (pattern_has(plan, low, a, high, b))
                result = add_pair(plan, low, a, high, b, status);
            if (result == 0 && pattern_has(plan, high, b, low, a))
                result = add_pair(plan, high, b, low, a, status);
        }
    return result;
}

int bench_plan_add_intra(struct bench_plan *plan, int node, struct wf_status *status)
{
    int result = 0;

    for (uint32_t a = 0; a < plan->endpoints; a++)
        for (uint32_t b = a + 1; result == 0 && b < plan->endpoints; b++) {
            if (pattern_has(plan, node, a, node, b))
                result = add_pair(plan, node, a, node, b, status);
            if (result == 0 && pattern_has(plan, node, b, node, a))
                result = add_pair(plan, node, b, node, a, status);
        }
    return result;
}

static bool split_endpoint(const char *text, unsigned *node, char kind[5], unsigned *endpoint)
{
    char extra;

    return sscanf(text, "node%1u:%4[a-z]%5u%c", node, kind, endpoint, &extra) == 3 && *node <= 1 &&
           (strcmp(kind, "host") == 0 || strcmp(kind, "gpu") == 0);
}

bool bench_plan_names(const struct wf_config *config, int node, const char *kind)
{
    static const enum wf_setting_id ids[] = {WF_SET_SRC, WF_SET_DST};

    for (int i = 0; i < 2; i++) {
        unsigned at_node, endpoint;
        char named[5];
        if (!bench_is_default(config, ids[i]) &&
            split_endpoint(wf_config_text(config, ids[i]), &at_node, named, &endpoint) && (int)at_node == node &&
            strcmp(named, kind) == 0)
            return true;
    }
    return false;
}

/* "node1:host3" or "node1:gpu3": endpoint 3 either way. */
static int parse_endpoint(const struct wf_config *config, enum wf_setting_id id, int *node, uint32_t *endpoint,
                          struct wf_status *status)
{
    const char *text = wf_config_text(config, id), *name = wf_setting(id)->name;
    unsigned at_node, at_endpoint;
    char kind[5];

    if (!split_endpoint(text, &at_node, kind, &at_endpoint))
        return wf_fail(status, -EINVAL, "--%s %.60s: expected node0:host0 or node1:gpu3", name, text);
    *node = (int)at_node;
    *endpoint = at_endpoint;
    return 0;
}

/* What there is instead is told by the names that can be given. */
static int check_endpoint(const struct bench_plan *plan, const struct wf_config *config, enum wf_setting_id id,
                          uint32_t endpoint, struct wf_status *status)
{
    const char *text = wf_config_text(config, id), *of_gpus = plan->by_gpus ? ", one for each GPU here" : "";
    unsigned node = 0, ignored;
    char kind[5] = "", last[40] = "";

    if (endpoint < plan->endpoints)
        return 0;
    split_endpoint(text, &node, kind, &ignored);
    if (plan->endpoints == 1)
        return wf_fail(status, -EINVAL, "--%s %.30s: there is 1 endpoint%s: name node%u:%s0, or raise --endpoints",
                       wf_setting(id)->name, text, of_gpus, node, kind);
    snprintf(last, sizeof last, "node%u:%s%u", node, kind, plan->endpoints - 1);
    return wf_fail(status, -EINVAL, "--%s %.30s: there are %u endpoints%s: name node%u:%s0 to %s, or raise --endpoints",
                   wf_setting(id)->name, text, plan->endpoints, of_gpus, node, kind, last);
}

static int plan_one_pair(struct bench_plan *plan, const struct wf_config *config, struct wf_status *status)
{
    int src_node = 0, dst_node = 0;
    uint32_t src = 0, dst = 0;
    int result = parse_endpoint(config, WF_SET_SRC, &src_node, &src, status);
    if (result == 0)
        result = parse_endpoint(config, WF_SET_DST, &dst_node, &dst, status);
    if (result == 0)
        result = check_endpoint(plan, config, WF_SET_SRC, src, status);
    if (result == 0)
        result = check_endpoint(plan, config, WF_SET_DST, dst, status);
    if (result)
        return result;
    if (src_node == dst_node && src == dst)
        return wf_fail(status, -EINVAL, "--src and --dst are the same endpoint: choose two");
    if (plan->latency && src_node == dst_node)
        return wf_fail(status, -EINVAL,
                       "--lat is between the nodes, and --src and --dst are both on node%d: choose one "
                       "of each",
                       src_node);
    plan->pattern = "pair";
    return add_pair(plan, src_node, src, dst_node, dst, status);
}

void bench_plan_shuffle(struct bench_plan *plan, uint32_t first, uint32_t count, uint64_t *state)
{
    for (uint32_t left = count / plan->group; left > 1; left--) {
        uint32_t other = (uint32_t)(bench_random_next(state) % left);
        for (uint32_t i = 0; i < plan->group; i++) {
            struct bench_pair *a = &plan->pairs[first + (left - 1) * plan->group + i];
            struct bench_pair *b = &plan->pairs[first + other * plan->group + i];
            struct bench_pair kept = *a;
            *a = *b;
            *b = kept;
        }
    }
}

/* Of two nodes, or of all rounds of a tournament. */
static int add_all(struct bench_plan *plan, bool grouped, const char *scope, struct wf_status *status)
{
    uint64_t state = plan->seed;
    int result = 0;

    if (grouped)
        return bench_plan_bouts(plan, scope, status);
    if (strcmp(scope, "intra") != 0)
        result = bench_plan_add_inter(plan, 0, 1, status);
    for (int node = 0; result == 0 && node < 2 && strcmp(scope, "inter") != 0; node++)
        result = bench_plan_add_intra(plan, node, status);
    if (result == 0)
        bench_plan_shuffle(plan, 0, plan->pair_count, &state);
    return result;
}

int bench_plan_pairs(struct bench_plan *plan, const struct bench_options *options, struct wf_status *status)
{
    const struct wf_config *config = options->config;
    const char *scope = wf_config_text(config, WF_SET_SCOPE);

    if (plan->command == BENCH_PAIR)
        return plan_one_pair(plan, config, status);
    plan->pattern = plan->command == BENCH_PROFILE ? "mesh" : wf_config_text(config, WF_SET_PATTERN);
    plan->group = is_pattern(plan, "bidir") ? 2 : 1;
    /* Among the ranks of an all-to-all are those of the own node. */
    if (is_pattern(plan, "alltoall") && !bench_is_said(config, WF_SET_SCOPE))
        scope = "all";
    int result = add_all(plan, options->nodes > 0, scope, status);
    if (result == 0 && plan->pair_count == 0)
        return wf_fail(status, -EINVAL,
                       "--scope %s with --pattern %s and %u endpoint(s) leaves no pair: raise --endpoints", scope,
                       plan->pattern, plan->endpoints);
    return result;
}
