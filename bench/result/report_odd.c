#include "report_odd.h"

#include <math.h>
#include <stdlib.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/columns.h"
#include "odd.h"
#include "report_nodes.h"
#include "spread.h"

#define NAMED_MOST 6 /* lines; of more, their number is said */
#define ODD_MOST 64  /* of a direction and mode */

/* What is odd in one direction. */
struct finding {
    const struct bench_backend_ops *backend;
    const struct bench_way *way;
    struct bench_odd odd[BENCH_MODES];
    double back[BENCH_MODES]; /* GB/s of a pair the other way at the same size; NaN: none */
    bool in[BENCH_MODES];     /* the modes in which it is */
};

/* Owner: bench_report_odd(). */
struct findings {
    struct finding *list; /* owned */
    size_t count, room;
};

/* --- rates --- */

static int size_index(const struct bench_plan *plan, uint64_t size)
{
    for (int i = 0; i < plan->size_count; i++)
        if (plan->sizes[i] == size)
            return i;
    return -1;
}

/* Rates of one direction, as odd.h has them; NULL: no memory. Those that are told by the second are no rates of a link,
 * but a matter of turns at a processor. */
static double *rates_of(const struct bench_result *result, const struct bench_backend_ops *backend,
                        enum bench_mode mode, const struct bench_way *way)
{
    const struct bench_plan *plan = result->plan;
    size_t endpoints = plan->endpoints, pairs = endpoints * endpoints, all = pairs * (size_t)plan->size_count;
    double *rates = malloc((all + 1) * sizeof *rates);

    for (size_t i = 0; rates && i < all; i++)
        rates[i] = NAN;
    for (size_t i = 0; rates && i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        int size = size_index(plan, sample->size);
        if (sample->backend == backend && sample->mode == mode && bench_pair_goes(&sample->pair, way) && size >= 0 &&
            sample->pair.src < endpoints && sample->pair.dst < endpoints && !bench_sample_counted(sample) &&
            bench_sample_rate(sample) > 0)
            rates[(size_t)size * pairs + sample->pair.src * endpoints + sample->pair.dst] = bench_sample_rate(sample);
    }
    return rates;
}

/* --- what is found --- */

static bool is_same(const struct finding *finding, const struct bench_backend_ops *backend, const struct bench_way *way,
                    const struct bench_odd *odd)
{
    const struct bench_odd *other = &finding->odd[finding->in[BENCH_ISOLATED] ? BENCH_ISOLATED : BENCH_LOADED];

    return finding->backend == backend && finding->way == way && other->kind == odd->kind && other->src == odd->src &&
           other->dst == odd->dst;
}

/* A pair that the other mode has found as one of an odd endpoint's. */
static bool is_part(const struct finding *finding, const struct bench_backend_ops *backend, const struct bench_way *way,
                    const struct bench_odd *odd)
{
    const struct bench_odd *other = &finding->odd[finding->in[BENCH_ISOLATED] ? BENCH_ISOLATED : BENCH_LOADED];

    return finding->backend == backend && finding->way == way && odd->kind == BENCH_ODD_PAIR &&
           ((other->kind == BENCH_ODD_SENDER && other->src == odd->src) ||
            (other->kind == BENCH_ODD_RECEIVER && other->dst == odd->dst));
}

static void keep(struct findings *findings, const struct finding *next, enum bench_mode mode)
{
    for (size_t i = 0; i < findings->count; i++) {
        struct finding *before = &findings->list[i];
        if (is_same(before, next->backend, next->way, &next->odd[mode])) {
            before->odd[mode] = next->odd[mode];
            before->back[mode] = next->back[mode];
            before->in[mode] = true;
            return;
        }
        if (!before->in[mode] && is_part(before, next->backend, next->way, &next->odd[mode]))
            return;
    }
    if (findings->count == findings->room) {
        size_t room = 2 * findings->room + 8;
        struct finding *list = realloc(findings->list, room * sizeof *list);
        if (!list)
            return;
        findings->list = list;
        findings->room = room;
    }
    findings->list[findings->count++] = *next;
}

/* The way back of a pair at the largest size that it was measured with. */
static double rate_back(const struct bench_plan *plan, const double *back, const struct bench_odd *odd)
{
    size_t endpoints = plan->endpoints;

    for (size_t size = (size_t)plan->size_count; size-- > 0;) {
        double rate = back[(size * endpoints + odd->dst) * endpoints + odd->src];
        if (!isnan(rate))
            return rate;
    }
    return NAN;
}

static void look(const struct bench_result *result, const struct bench_backend_ops *backend, enum bench_mode mode,
                 const struct bench_way *way, struct findings *findings)
{
    const struct bench_plan *plan = result->plan;
    struct bench_way opposite = {way->dst_node, way->src_node};
    double *rates = rates_of(result, backend, mode, way), *back = rates_of(result, backend, mode, &opposite);
    double bytes[BENCH_SIZES_MAX];
    struct bench_odd odd[ODD_MOST];
    struct bench_links links = {plan->endpoints, plan->endpoints, (size_t)plan->size_count, rates, back, bytes, false};

    for (int i = 0; i < plan->size_count; i++)
        bytes[i] = (double)plan->sizes[i];
    int count = rates && back ? bench_odd_find(&links, odd, ODD_MOST) : 0;
    for (int i = 0; i < count && i < ODD_MOST; i++) {
        struct finding next = {.backend = backend, .way = way};
        next.odd[mode] = odd[i];
        next.back[mode] = odd[i].kind == BENCH_ODD_PAIR ? rate_back(plan, back, &odd[i]) : NAN;
        next.in[mode] = true;
        keep(findings, &next, mode);
    }
    free(rates);
    free(back);
}

/* Over loopback, pairs between host memory have no link of their own: all take turns at the same processors. */
static bool has_links(const struct bench_result *result, const struct bench_way *way)
{
    const struct bench_plan *plan = result->plan;

    return result->nearness != BENCH_LOOPBACK || plan->nodes[way->src_node].memory != BENCH_HOST ||
           plan->nodes[way->dst_node].memory != BENCH_HOST;
}

/* --- words --- */

/* The mode whose figures lead. */
static enum bench_mode leading(const struct finding *finding)
{
    return finding->in[BENCH_ISOLATED] ? BENCH_ISOLATED : BENCH_LOADED;
}

static int by_share(const void *one, const void *other)
{
    const struct finding *a = one, *b = other;
    double left = a->odd[leading(a)].of_peers, right = b->odd[leading(b)].of_peers;

    return left < right ? -1 : left > right;
}

/* Any pair that has the endpoint, for its name. */
static const struct bench_pair *pair_with(const struct bench_plan *plan, const struct bench_way *way,
                                          const struct bench_odd *odd)
{
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        const struct bench_pair *pair = &plan->pairs[i];
        if (bench_pair_goes(pair, way) && (odd->kind == BENCH_ODD_RECEIVER || pair->src == odd->src) &&
            (odd->kind == BENCH_ODD_SENDER || pair->dst == odd->dst))
            return pair;
    }
    return NULL;
}

static void put_what(const struct bench_plan *plan, const struct finding *finding, char *text, size_t room)
{
    enum bench_mode mode = leading(finding);
    const struct bench_odd *odd = &finding->odd[mode];
    const struct bench_pair *pair = pair_with(plan, finding->way, odd);
    const char *word = odd->one_way ? "asymmetric" : "slow";
    char src[32] = "", dst[32] = "", rate[32], back[32];
    double share = 100 * odd->of_peers;

    if (pair) {
        bench_src_name(pair, src, sizeof src);
        bench_dst_name(pair, dst, sizeof dst);
    }
    bench_rate_text(odd->rate, rate, sizeof rate);
    if (odd->kind == BENCH_ODD_SENDER)
        snprintf(text, room, "%s: what %s sends has %s GB/s a pair, %.0f %% of its peers%s", word, src, rate, share,
                 odd->one_way ? "; it receives as they do" : "");
    else if (odd->kind == BENCH_ODD_RECEIVER)
        snprintf(text, room, "%s: what %s receives has %s GB/s a pair, %.0f %% of its peers%s", word, dst, rate, share,
                 odd->one_way ? "; it sends as they do" : "");
    else if (isnan(finding->back[mode]))
        snprintf(text, room, "%s: %s -> %s has %s GB/s, %.0f %% of its peers", word, src, dst, rate, share);
    else
        snprintf(text, room, "%s: %s -> %s has %s GB/s, %.0f %% of its peers, and %s back", word, src, dst, rate, share,
                 bench_rate_text(finding->back[mode], back, sizeof back));
}

static void print_finding(const struct bench_result *result, const struct finding *finding, FILE *out)
{
    bool several = result->plan->backend_count > 1;
    enum bench_mode mode = leading(finding);
    char what[200], loaded[64] = "";

    put_what(result->plan, finding, what, sizeof what);
    if (mode == BENCH_ISOLATED && finding->in[BENCH_LOADED])
        snprintf(loaded, sizeof loaded, "; %s: %.0f %%", bench_mode_name(BENCH_LOADED),
                 100 * finding->odd[BENCH_LOADED].of_peers);
    bench_wrapped(out, bench_columns(out), 2, "%s (%s%s%s%s)", what, several ? finding->backend->name : "",
                  several ? ", " : "", bench_mode_name(mode), loaded);
}

void bench_report_odd(const struct bench_result *result, FILE *out)
{
    struct findings findings = {0};

    if (result->node_count > 2) {
        bench_report_nodes(result, out);
        return;
    }
    for (int i = 0; i < result->plan->backend_count; i++)
        for (int mode = 0; mode < BENCH_MODES; mode++)
            for (int way = 0; way < BENCH_WAYS; way++)
                if (result->plan->backends[i]->moves_data && result->plan->modes[mode] &&
                    bench_plan_has_way(result->plan, &bench_ways[way]) && has_links(result, &bench_ways[way]))
                    look(result, result->plan->backends[i], mode, &bench_ways[way], &findings);
    if (findings.count) {
        qsort(findings.list, findings.count, sizeof *findings.list, by_share);
        fputc('\n', out);
    }
    for (size_t i = 0; i < findings.count && i < NAMED_MOST; i++)
        print_finding(result, &findings.list[i], out);
    if (findings.count > NAMED_MOST)
        fprintf(out, "and %zu more links that are slower than their peers\n", findings.count - NAMED_MOST);
    free(findings.list);
}
