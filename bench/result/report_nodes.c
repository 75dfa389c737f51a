#include "report_nodes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/columns.h"
#include "cause.h"
#include "findings.h"

#define NAMED_MOST 6 /* nodes, links and rails; and as many endpoints and pairs */
#define FOUND_MOST 64
#define NAMES_MOST 256 /* of rails, over all nodes: of more, none are compared */

/* Of one backend and mode. Owner: look(). */
struct gathered {
    struct bench_readings readings;
    struct bench_carried *carried;
    const char *names[NAMES_MOST]; /* of rails */
    double bytes[BENCH_SIZES_MAX], *lines;
    json_t *hosts, *rails; /* lists of all nodes */
};

struct endpoint {
    struct bench_odd odd;
    enum bench_mode mode;
};

/* Of one backend. Owner: print_backend(). */
struct found {
    struct bench_findings findings;
    struct endpoint ends[FOUND_MOST];
    size_t end_count;
};

/* --- readings --- */

static uint32_t rail_number(struct gathered *gathered, const char *name)
{
    struct bench_readings *readings = &gathered->readings;

    for (uint32_t i = 0; i < readings->rails; i++)
        if (strcmp(gathered->names[i], name) == 0)
            return i;
    if (readings->rails == NAMES_MOST) {
        readings->rails_compare = false;
        return BENCH_EVERY_RAIL;
    }
    gathered->names[readings->rails] = name;
    return readings->rails++;
}

static uint32_t size_number(const struct bench_plan *plan, uint64_t size)
{
    uint32_t i = 0;

    while (i < (uint32_t)plan->size_count && plan->sizes[i] != size)
        i++;
    return i;
}

/* `next`: where its rails go; returns behind them. */
static struct bench_carried *add_sample(struct gathered *gathered, const struct bench_result *result,
                                        const struct bench_sample *sample, struct bench_carried *next)
{
    const struct bench_rail_names *rails = &result->rails[sample->pair.dst_node];
    struct bench_reading *reading = &gathered->readings.list[gathered->readings.count++];

    *reading = (struct bench_reading){
        .src_node = sample->pair.src_node,
        .dst_node = sample->pair.dst_node,
        .src = sample->pair.src_node * result->plan->endpoints + sample->pair.src,
        .dst = sample->pair.dst_node * result->plan->endpoints + sample->pair.dst,
        .size = size_number(result->plan, sample->size),
        .rate = bench_sample_rate(sample),
        .retransmits = (double)sample->retransmits,
        .failures = (double)sample->failures,
        .carried = next,
    };
    for (int i = 0; i < sample->rail_count && i < rails->count; i++) {
        *next++ = (struct bench_carried){rail_number(gathered, rails->names[i]), (double)sample->rail_bytes[i]};
        reading->carried_count++;
    }
    return next;
}

static json_t *all_of(json_t *const *lists, int nodes, bool joined)
{
    json_t *all = json_array();

    for (int node = 0; node < nodes; node++)
        if (lists[node] && joined)
            json_array_extend(all, lists[node]);
        else if (lists[node])
            json_array_append(all, lists[node]);
    return all;
}

static bool counts(const struct bench_result *result, const struct bench_sample *sample,
                   const struct bench_backend_ops *backend, enum bench_mode mode)
{
    return sample->backend == backend && sample->mode == mode && !bench_sample_counted(sample) &&
           sample->pair.src_node < result->node_count && sample->pair.dst_node < result->node_count &&
           bench_sample_rate(sample) > 0;
}

static bool gather(struct gathered *gathered, const struct bench_result *result,
                   const struct bench_backend_ops *backend, enum bench_mode mode)
{
    const struct bench_plan *plan = result->plan;
    size_t rails = 0, count = 0;
    bool on_gpus = false;

    for (size_t i = 0; i < result->sample_count; i++)
        if (counts(result, &result->samples[i], backend, mode)) {
            rails += (size_t)result->samples[i].rail_count;
            count++;
        }
    for (int node = 0; node < result->node_count; node++)
        on_gpus |= plan->nodes[node].memory != BENCH_HOST;
    gathered->hosts = all_of(result->host, result->node_count, false);
    gathered->rails = all_of(result->rail_totals, result->node_count, true);
    gathered->carried = calloc(rails + 1, sizeof *gathered->carried);
    gathered->readings = (struct bench_readings){
        .list = calloc(count + 1, sizeof *gathered->readings.list),
        .nodes = (uint32_t)result->node_count,
        .endpoints = (uint32_t)result->node_count * plan->endpoints,
        .sizes = (uint32_t)plan->size_count,
        .bytes = gathered->bytes,
        .rails_compare = bench_rails_compare(gathered->hosts, on_gpus),
    };
    if (!gathered->carried || !gathered->readings.list)
        return false;
    struct bench_carried *next = gathered->carried;
    for (size_t i = 0; i < result->sample_count; i++)
        if (counts(result, &result->samples[i], backend, mode))
            next = add_sample(gathered, result, &result->samples[i], next);
    for (int i = 0; i < plan->size_count; i++)
        gathered->bytes[i] = (double)plan->sizes[i];
    gathered->readings.lines = gathered->lines =
        bench_rail_lines(gathered->rails, gathered->names, gathered->readings.rails, gathered->readings.nodes);
    return true;
}

static void forget(struct gathered *gathered)
{
    free(gathered->readings.list);
    free(gathered->carried);
    free(gathered->lines);
    json_decref(gathered->hosts);
    json_decref(gathered->rails);
}

/* --- what is found --- */

static void keep_endpoint(struct found *found, const struct bench_odd *odd, enum bench_mode mode)
{
    for (size_t i = 0; i < found->end_count; i++) {
        const struct endpoint *before = &found->ends[i];
        bool sender = before->odd.kind == BENCH_ODD_RECEIVER || before->odd.src == odd->src;
        bool receiver = before->odd.kind == BENCH_ODD_SENDER || before->odd.dst == odd->dst;
        if (before->mode != mode && sender && receiver)
            return;
    }
    if (found->end_count < FOUND_MOST)
        found->ends[found->end_count++] = (struct endpoint){*odd, mode};
}

static void look(const struct bench_result *result, const struct bench_backend_ops *backend, enum bench_mode mode,
                 struct found *found)
{
    struct gathered gathered = {0};
    struct bench_odd ends[FOUND_MOST];

    if (gather(&gathered, result, backend, mode)) {
        struct bench_known_nodes nodes = {gathered.hosts, gathered.rails, gathered.names};
        (void)bench_findings_look(&found->findings, &gathered.readings, &nodes, 0, mode == BENCH_LOADED);
        int count = bench_slow_endpoints(&gathered.readings, ends, FOUND_MOST);
        for (int i = 0; i < count && i < FOUND_MOST; i++)
            keep_endpoint(found, &ends[i], mode);
    }
    forget(&gathered);
}

/* --- words --- */

static void print_finding(const struct bench_finding *finding, const char *backend, FILE *out)
{
    const char *word = bench_finding_word(finding);
    char what[320];

    bench_wrapped(out, bench_columns(out), 2, "%c%s: %s%s%s", tolower(word[0]), word + 1,
                  bench_finding_text(finding, backend, what, sizeof what), finding->cause[0] ? ": " : "",
                  finding->cause);
}

static const char *end_name(const struct bench_plan *plan, size_t end, char *text, size_t room)
{
    int node = (int)(end / plan->endpoints);

    return bench_endpoint_name(node, (uint32_t)(end % plan->endpoints), plan->nodes[node].memory, text, room);
}

static void print_endpoint(const struct bench_plan *plan, const struct endpoint *endpoint, const char *backend,
                           FILE *out)
{
    const struct bench_odd *odd = &endpoint->odd;
    char src[32], dst[32], what[128];

    if (odd->kind == BENCH_ODD_SENDER)
        snprintf(what, sizeof what, "what %s sends", end_name(plan, odd->src, src, sizeof src));
    else if (odd->kind == BENCH_ODD_RECEIVER)
        snprintf(what, sizeof what, "what %s receives", end_name(plan, odd->dst, dst, sizeof dst));
    else
        snprintf(what, sizeof what, "%s -> %s", end_name(plan, odd->src, src, sizeof src),
                 end_name(plan, odd->dst, dst, sizeof dst));
    bench_wrapped(out, bench_columns(out), 2, "%s: %s has %.0f %% of its peers (%s%s%s)",
                  odd->one_way ? "asymmetric" : "slow", what, 100 * odd->of_peers, backend, backend[0] ? ", " : "",
                  bench_mode_name(endpoint->mode));
}

static void print_more(size_t more, const char *what, FILE *out)
{
    if (more)
        fprintf(out, "and %zu more %s that are slower than their peers\n", more, what);
}

static void print_found(const struct bench_plan *plan, const struct found *found, const char *backend, FILE *out)
{
    size_t count = found->findings.count, named = count < NAMED_MOST ? count : NAMED_MOST;
    size_t ends = found->end_count < NAMED_MOST ? found->end_count : NAMED_MOST;

    if (count + ends)
        fputc('\n', out);
    for (size_t i = 0; i < named; i++)
        print_finding(&found->findings.list[i], backend, out);
    print_more(count - named + found->findings.more, "nodes, links or rails", out);
    for (size_t i = 0; i < ends; i++)
        print_endpoint(plan, &found->ends[i], backend, out);
    print_more(found->end_count - ends, "endpoints or pairs", out);
}

static void print_backend(const struct bench_result *result, const struct bench_backend_ops *backend, FILE *out)
{
    struct found *found = calloc(1, sizeof *found);

    if (!found)
        return;
    for (int mode = 0; mode < BENCH_MODES; mode++)
        if (result->plan->modes[mode])
            look(result, backend, (enum bench_mode)mode, found);
    print_found(result->plan, found, result->plan->backend_count > 1 ? backend->name : "", out);
    free(found);
}

void bench_report_nodes(const struct bench_result *result, FILE *out)
{
    if (result->nearness == BENCH_LOOPBACK)
        return;
    for (int i = 0; i < result->plan->backend_count; i++)
        if (result->plan->backends[i]->moves_data)
            print_backend(result, result->plan->backends[i], out);
}
