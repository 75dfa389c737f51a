#include "report_rows.h"

#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/words/columns.h"
#include "bench/words/words.h"
#include "spread.h"

#define WIDE 110  /* columns from which the further figures fit */
#define FEW 8     /* messages of a pair: a median of fewer moves with each of them */
#define NAMES 4   /* pairs that are named */
#define INDENT 15 /* of what belongs to a line above */

char *bench_endpoint_text(const struct bench_plan *plan, int node, uint32_t endpoint, char *text, size_t room)
{
    snprintf(text, room, "%s%u", plan->nodes[node].memory == BENCH_HOST ? "host" : "gpu", endpoint);
    return text;
}

/* --- the head of a table --- */

static void print_title(const struct bench_result *result, enum bench_mode mode, FILE *out)
{
    const struct bench_plan *plan = result->plan;
    int columns = bench_columns(out);

    fputc('\n', out);
    if (plan->pair_count == 1)
        bench_wrapped(out, columns, 2, "one pair: GB/s over its messages");
    else if (result->node_count > 2 && mode == BENCH_ISOLATED)
        bench_wrapped(out, columns, 2, "isolated: %s, a pair at a time%s: GB/s of the pairs from their median times",
                      result->at_once == 1 ? "two nodes at a time" : "each node with one other at a time",
                      plan->group > 1 ? ", both ways at once" : "");
    else if (mode == BENCH_LOADED)
        bench_wrapped(
            out, columns, 2,
            "loaded: all %u pairs at once: GB/s of the pairs from their median times, and of all of a way together",
            plan->pair_count);
    else
        bench_wrapped(out, columns, 2, "isolated: %s: GB/s of the pairs from their median times",
                      plan->group > 1 ? "a pair at a time, both ways at once" : "a pair at a time");
}

/* Between several backends there is no room for the tenth of the pairs. */
static bool is_several(const struct bench_result *result)
{
    return result->plan->backend_count > 1;
}

static void print_head(const struct bench_result *result, enum bench_mode mode, FILE *out)
{
    struct bench_row row;

    print_title(result, mode, out);
    bench_row_begin(&row, out);
    bench_row_put(&row, 7, "size");
    bench_row_put(&row, 8, "n ");
    bench_row_put(&row, 4, "way");
    if (is_several(result))
        bench_row_put(&row, -8, " backend");
    bench_row_put(&row, 7, "min");
    if (!is_several(result))
        bench_row_put(&row, 7, "p10");
    bench_row_put(&row, 7, "median");
    bench_row_put(&row, 7, "p90");
    bench_row_put(&row, 6, "cv");
    bench_row_put(&row, 11, "a message");
    if (mode == BENCH_LOADED)
        bench_row_put(&row, 7, "all");
    bench_row_put(&row, 7, "wrong");
    if (bench_columns(out) >= WIDE) {
        bench_row_put(&row, 7, "Gbit/s");
        bench_row_put(&row, 13, "messages/s");
        bench_row_put(&row, 9, "s/GB");
    }
    bench_row_end(&row);
}

/* --- a line --- */

static void put_rate(double rate, int columns, struct bench_row *row)
{
    char text[32];

    bench_row_put(row, columns, "%s", rate < 0 ? "-" : bench_rate_text(rate, text, sizeof text));
}

static void put_share(double share, struct bench_row *row)
{
    if (share < 0)
        bench_row_put(row, 6, "-");
    else
        bench_row_put(row, 6, "%.0f %%", 100 * share);
}

/* Many small messages are under way at once: their number by the second is a rate, and no time. */
static void put_message(const struct bench_spread *spread, struct bench_row *row)
{
    char text[40], count[32];

    if (spread->counted && spread->messages_per_s >= 0)
        snprintf(text, sizeof text, "%s/s", bench_count_text(spread->messages_per_s, count, sizeof count));
    else
        bench_time_text(spread->time_us, text, sizeof text);
    bench_row_put(row, 11, "%s", text);
}

static void put_wrong(const struct bench_set *set, const struct bench_spread *spread, struct bench_row *row)
{
    char count[32];

    bench_row_put(row, 7, "%s",
                  spread->checked && set->backend->moves_data
                      ? bench_count_text((double)spread->wrong, count, sizeof count)
                      : "-");
}

/* Of the whole set, in processor seconds of both nodes. */
static void put_wide(const struct bench_set *set, const struct bench_spread *spread, struct bench_row *row)
{
    char text[32];

    put_rate(spread->median < 0 ? -1 : spread->median * 8, 7, row);
    bench_row_put(row, 13, "%s",
                  spread->messages_per_s < 0 ? "-" : bench_count_text(spread->messages_per_s, text, sizeof text));
    put_rate(set->cpu_s_per_gb, 9, row);
}

static void print_row(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                      const struct bench_spread *spread, FILE *out)
{
    bool one_time = spread->by_message && spread->grouped; /* which all messages share */
    struct bench_row row;
    char text[32];

    bench_row_begin(&row, out);
    bench_row_put(&row, 7, "%s", wf_format_size(set->size, text, sizeof text));
    bench_row_put(&row, 8, "%u%s", spread->iters, spread->iters < FEW ? "*" : " ");
    bench_row_put(&row, 4, "%s", bench_way_text(way, text, sizeof text));
    if (is_several(result))
        bench_row_put(&row, -8, " %-7.*s", (int)strcspn(set->backend->name, " "), set->backend->name);
    put_rate(one_time ? -1 : spread->min, 7, &row);
    if (!is_several(result))
        put_rate(one_time ? -1 : spread->p10, 7, &row);
    put_rate(spread->median, 7, &row);
    put_rate(one_time ? -1 : spread->p90, 7, &row);
    put_share(one_time ? -1 : spread->cv, &row);
    put_message(spread, &row);
    if (set->mode == BENCH_LOADED)
        put_rate(spread->together, 7, &row);
    put_wrong(set, spread, &row);
    if (bench_columns(out) >= WIDE)
        put_wide(set, spread, &row);
    bench_row_end(&row);
}

/* --- two groups of pairs --- */

/* The pairs of one way that are in the lower group, and whose they are. */
struct low {
    const struct bench_sample **slow; /* owned */
    size_t count;
    uint32_t *sent, *received, *sent_low, *received_low; /* pairs of each endpoint: all of them, and the slow ones */
};

static bool low_init(struct low *low, const struct bench_result *result)
{
    uint32_t *counts = calloc(4 * (size_t)result->plan->endpoints, sizeof *counts);

    *low = (struct low){.slow = calloc(result->sample_count, sizeof(struct bench_sample *)), .sent = counts};
    if (!low->slow || !counts)
        return false;
    low->received = counts + result->plan->endpoints;
    low->sent_low = low->received + result->plan->endpoints;
    low->received_low = low->sent_low + result->plan->endpoints;
    return true;
}

static void low_fill(struct low *low, const struct bench_result *result, const struct bench_set *set,
                     const struct bench_way *way, double bound)
{
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (!bench_sample_in_set(sample, set) || !bench_pair_goes(&sample->pair, way))
            continue;
        low->sent[sample->pair.src]++;
        low->received[sample->pair.dst]++;
        if (bench_sample_rate(sample) < 0 || bench_sample_rate(sample) > bound)
            continue;
        low->slow[low->count++] = sample;
        low->sent_low[sample->pair.src]++;
        low->received_low[sample->pair.dst]++;
    }
}

/* Whether the slow pairs are all those of some endpoints: then these are named. `text` keeps what it has. */
static bool name_endpoints(const struct bench_result *result, int node, const uint32_t *all, const uint32_t *slow,
                           const char *verb, char *text, size_t room)
{
    size_t used = strlen(text), named = 0;

    for (uint32_t i = 0; i < result->plan->endpoints; i++)
        if (slow[i] && slow[i] < all[i])
            return false;
    used += (size_t)snprintf(text + used, room - used, "all that");
    for (uint32_t i = 0; i < result->plan->endpoints && used < room; i++) {
        char name[32];
        if (!slow[i])
            continue;
        used += (size_t)snprintf(text + used, room - used, "%s %s", named++ ? "," : "",
                                 bench_endpoint_text(result->plan, node, i, name, sizeof name));
    }
    if (used < room)
        snprintf(text + used, room - used, " of node%d %s%s", node, verb, named > 1 ? "" : "s");
    return true;
}

static void name_pairs(const struct bench_result *result, const struct bench_way *way, const struct low *low,
                       char *text, size_t room)
{
    size_t used = strlen(text), shown = low->count <= NAMES ? low->count : NAMES;

    for (size_t i = 0; i < shown && used < room; i++) {
        const struct bench_pair *pair = &low->slow[i]->pair;
        char src[32], dst[32];
        used += (size_t)snprintf(text + used, room - used, "%s%s to %s", i ? ", " : "",
                                 bench_endpoint_text(result->plan, way->src_node, pair->src, src, sizeof src),
                                 bench_endpoint_text(result->plan, way->dst_node, pair->dst, dst, sizeof dst));
    }
    if (shown < low->count && used < room)
        snprintf(text + used, room - used, " and %zu more", low->count - shown);
}

static void print_groups(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                         const struct bench_groups *groups, FILE *out)
{
    char high[32], slow[32], whose[400] = "", text[600];
    int column = INDENT;
    struct low low;

    if (low_init(&low, result)) {
        low_fill(&low, result, set, way, groups->bound);
        if (!name_endpoints(result, way->src_node, low.sent, low.sent_low, "send", whose, sizeof whose) &&
            !name_endpoints(result, way->dst_node, low.received, low.received_low, "receive", whose, sizeof whose))
            name_pairs(result, way, &low, whose, sizeof whose);
    }
    free(low.slow);
    free(low.sent);
    snprintf(text, sizeof text, "%d>%d has two groups: %zu pairs near %s GB/s, %zu near %s: %s", way->src_node,
             way->dst_node, groups->high_count, bench_rate_text(groups->high, high, sizeof high), groups->low_count,
             bench_rate_text(groups->low, slow, sizeof slow), whose);
    fprintf(out, "%*s", INDENT, "");
    bench_put_wrapped(out, text, &column, INDENT, bench_columns(out));
    fputc('\n', out);
}

/* --- a set --- */

void bench_report_set(const struct bench_result *result, const struct bench_set *set, const struct bench_set *before,
                      FILE *out)
{
    double *room = calloc(result->sample_count + 1, sizeof *room);
    int count;
    const struct bench_way *ways = bench_ways_of(result, &count);

    if (!before || before->mode != set->mode)
        print_head(result, set->mode, out);
    for (int i = 0; room && i < count; i++) {
        struct bench_spread spread;
        struct bench_groups groups;
        bench_spread_of(result, set, &ways[i], room, &spread);
        if (spread.pairs == 0)
            continue;
        print_row(result, set, &ways[i], &spread, out);
        /* Rates of small messages are a matter of turns at the processor. */
        if (result->node_count == 2 && !spread.by_message && !spread.counted && spread.median >= 0 &&
            bench_groups_find(room, bench_way_rates(result, set, &ways[i], room), &groups))
            print_groups(result, set, &ways[i], &groups, out);
    }
    free(room);
}

void bench_report_notes(const struct bench_result *result, FILE *out)
{
    int columns = bench_columns(out);
    bool few = false, counted = false;

    for (size_t i = 0; i < result->sample_count; i++) {
        few |= result->samples[i].iters < FEW;
        counted |= bench_sample_counted(&result->samples[i]);
    }
    if (few)
        bench_wrapped(out, columns, 2,
                      "* rests on fewer than %d messages a pair: any one of them can move it (see --iters, --duration)",
                      FEW);
    if (counted)
        bench_wrapped(
            out, columns, 2,
            "/s: messages a second of a pair. Many are under way at once, so neither that nor their GB/s compares "
            "with larger messages, and it says nothing about latency: for that there is weft pair --lat");
}
