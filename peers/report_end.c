/* What a comparison says after its last case. */
#include <stdio.h>
#include <string.h>

#include "page.h"
#include "report.h"

#define NAME 10   /* columns of a tool's name, */
#define COLUMN 18 /* and of a metric */

static const enum peer_metric metrics[] = {PEER_LATENCY, PEER_RATE, PEER_BANDWIDTH}; /* as they are measured */

#define METRICS ((int)(sizeof metrics / sizeof metrics[0]))

/* --- ratios --- */

/* What a tool came to in all cases of a metric. */
struct ratios {
    int cases, failed; /* planned cases of the metric that have begun; of these it failed in so many */
    int count;         /* that have a ratio */
    double min, max;
};

static void add_ratio(struct ratios *ratios, double ratio)
{
    ratios->min = ratios->count == 0 || ratio < ratios->min ? ratio : ratios->min;
    ratios->max = ratios->count == 0 || ratio > ratios->max ? ratio : ratios->max;
    ratios->count++;
}

static void find_ratios(const struct peers_result *result, int tool, enum peer_metric metric, struct ratios *ratios)
{
    *ratios = (struct ratios){0};
    for (int b = 0; b < result->block_count; b++) {
        const struct peers_block *block = &result->blocks[b];
        const struct peers_row *row = &block->rows[tool];
        struct peers_summary summary;
        if (block->asked.metric != metric || !row->tool)
            continue;
        peers_sum_up(result, block, row, &summary);
        ratios->cases++;
        ratios->failed += summary.variant < 0 && peers_failure(block, row);
        if (summary.variant >= 0 && summary.ratio >= 0)
            add_ratio(ratios, summary.ratio);
    }
}

static bool in_plan(const struct peers_plan *plan, enum peer_metric metric)
{
    for (int i = 0; i < plan->case_count; i++)
        if (plan->cases[i].metric == metric)
            return true;
    return false;
}

static char *ratios_text(const struct ratios *ratios, char *text, size_t room)
{
    if (ratios->count == 0)
        snprintf(text, room, "%s", ratios->failed ? "failed" : "-");
    else if (ratios->count == 1)
        snprintf(text, room, "%.2f", ratios->min);
    else
        snprintf(text, room, "%.2f to %.2f", ratios->min, ratios->max);
    return text;
}

static bool has_anything(const struct peers_result *result, int tool)
{
    for (int m = 0; m < METRICS; m++) {
        struct ratios ratios;
        find_ratios(result, tool, metrics[m], &ratios);
        if (ratios.count || ratios.failed)
            return true;
    }
    return false;
}

static void put_ratios(const struct peers_result *result, int tool, const struct peers_page *page)
{
    const struct peer_tool *one = result->plan->tools[tool];

    fprintf(page->out, "%-*s", NAME, strcmp(one->name, peer_raw.name) == 0 ? "raw: floor" : one->name);
    for (int m = 0; m < METRICS; m++) {
        struct ratios ratios;
        char text[48];
        if (!in_plan(result->plan, metrics[m]))
            continue;
        find_ratios(result, tool, metrics[m], &ratios);
        fprintf(page->out, "%*s", COLUMN, ratios_text(&ratios, text, sizeof text));
    }
    fputc('\n', page->out);
}

static void put_table(const struct peers_result *result, const struct peers_page *page)
{
    fprintf(page->out, "%-*s", NAME, "weft/tool");
    for (int m = 0; m < METRICS; m++)
        if (in_plan(result->plan, metrics[m]))
            fprintf(page->out, "%*s", COLUMN, peers_metric_title(metrics[m]));
    fputc('\n', page->out);
    for (int i = 0; i < result->plan->tool_count; i++)
        if (!peers_is_weft(result->plan->tools[i]) && has_anything(result, i))
            put_ratios(result, i, page);
}

/* --- whether there is a comparison --- */

/* Another tool has a ratio, or failed, in a case. */
static bool rivals_have(const struct peers_result *result, bool failures)
{
    for (int i = 0; i < result->plan->tool_count; i++)
        for (int m = 0; peers_is_rival(result->plan->tools[i]) && m < METRICS; m++) {
            struct ratios ratios;
            find_ratios(result, i, metrics[m], &ratios);
            if (failures ? ratios.failed : ratios.count)
                return true;
        }
    return false;
}

bool peers_compared(const struct peers_result *result)
{
    return result->block_count > 0 && rivals_have(result, false);
}

static const char *why_not_compared(const struct peers_result *result)
{
    if (rivals_have(result, true))
        return "every other tool failed";
    if (!result->complete)
        return "it ended before another tool was measured";
    return "no other tool was measured";
}

void peers_report_end(const struct peers_result *result, const struct peers_page *page)
{
    int cases = 0;
    char time[48];

    for (int b = 0; b < result->block_count; b++)
        cases += result->blocks[b].rounds_done == result->plan->rounds;
    fputc('\n', page->out);
    peers_put_line(page, 0, "%d of %d %s in %s%s", cases, result->plan->case_count,
                   result->plan->case_count == 1 ? "case" : "cases", peers_duration(result->seconds, time, sizeof time),
                   peers_on_loopback(&result->plan->place) ? ", over loopback: says nothing about a network" : "");
    put_table(result, page);
    if (!peers_compared(result))
        peers_put_no_rival(result->plan, why_not_compared(result), page);
    fflush(page->out);
}
