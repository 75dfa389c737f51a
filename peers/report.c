/* A case as a table: a line for each tool. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "page.h"
#include "report.h"

#define NAME 10  /* columns of the tool's name, */
#define VALUE 17 /* and of its value */

const char *peers_metric_name(enum peer_metric metric)
{
    return metric == PEER_LATENCY ? "latency" : metric == PEER_RATE ? "rate" : "bandwidth";
}

/* --- a line --- */

/* A number right-aligned, or a dash. */
static void put_number(FILE *out, int width, int digits, double value)
{
    if (value < 0)
        fprintf(out, "%*s", width, "-");
    else
        fprintf(out, "%*.*f", width, digits, value);
}

static void put_value(FILE *out, int width, double value, const struct peers_unit *unit)
{
    char text[48];

    fprintf(out, "%*s", width, peers_value_text(value, unit, text, sizeof text));
}

static void put_figures(FILE *out, const struct peers_block *block, const struct peers_summary *summary,
                        const struct peers_unit *unit, bool is_weft)
{
    put_value(out, VALUE, summary->median, unit);
    if (block->rounds_done > 1)
        fprintf(out, "%7.0f%%", summary->spread * 100);
    else
        fprintf(out, "%8s", "-"); /* one round has none */
    if (is_weft)
        fprintf(out, "%11s", "1");
    else
        put_number(out, 11, 2, summary->ratio);
    if (block->asked.metric == PEER_LATENCY) {
        put_value(out, 12, summary->p99_us, unit);
        put_value(out, 12, summary->mean_us, unit);
    } else {
        put_number(out, 12, 3, summary->cpu_s_per_gb);
    }
    fputc('\n', out);
}

/* Tools that are not here were named at the start, and are told together. */
static void put_row(const struct peers_result *result, const struct peers_block *block, const struct peers_row *row,
                    const struct peers_unit *unit, const struct peers_page *page)
{
    struct peers_summary summary;

    peers_sum_up(result, block, row, &summary);
    fprintf(page->out, "%-*s", NAME, row->tool->name);
    if (summary.variant >= 0) {
        put_figures(page->out, block, &summary, unit, peers_is_weft(row->tool));
        return;
    }
    fprintf(page->out, "%*s  ", VALUE, "-");
    const char *error = peers_failure(block, row);
    peers_put_line(page, NAME + VALUE + 2, "%s%s", !row->why[0] && error ? "failed: " : "",
                   row->why[0] ? row->why
                   : error     ? error
                               : "not measured");
}

/* --- below the table --- */

static void put_absent(const struct peers_block *block, int count, const struct peers_page *page)
{
    char list[256] = "";

    for (int i = 0; i < count; i++)
        if (block->rows[i].absent)
            snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list[0] ? ", " : "",
                     block->rows[i].tool->name);
    if (list[0])
        peers_put_line(page, 0, "not here: %s", list);
}

static void put_note(const struct peers_result *result, const struct peers_block *block, const struct peers_row *row,
                     const struct peers_page *page)
{
    struct peers_summary summary;
    char note[640];

    peers_sum_up(result, block, row, &summary);
    if (summary.variant < 0)
        return;
    snprintf(note, sizeof note, "%s", row->variants[summary.variant].commands.note);
    if (row->variant_count > 1)
        snprintf(note + strlen(note), sizeof note - strlen(note), "%sbest of %d ways", note[0] ? "; " : "",
                 row->variant_count);
    if (summary.failures)
        snprintf(note + strlen(note), sizeof note - strlen(note), "%sfailed %d of %d times: %s", note[0] ? "; " : "",
                 summary.failures, summary.runs, row->error);
    if (!note[0])
        return;
    fputs("  ", page->out);
    peers_put_line(page, 2, "%s: %s", row->tool->name, note);
}

/* A table is read by itself, too. */
static void put_alone(const struct peers_result *result, const struct peers_block *block, int count,
                      const struct peers_page *page)
{
    for (int i = 0; i < count; i++) {
        struct peers_summary summary;
        peers_sum_up(result, block, &block->rows[i], &summary);
        if (peers_is_rival(block->rows[i].tool) && summary.variant >= 0)
            return;
    }
    peers_put_text(page, 0, "no other tool was measured in this case: nothing to compare with");
}

/* Of a block that was cut short. */
static void put_end(const struct peers_block *block, int rounds, const struct peers_page *page)
{
    peers_put_line(
        page, 0, "only %d of %d rounds%s: %s", block->rounds_done, rounds,
        block->trials_done > 0 && block->rounds_done == 0 ? ", of which nothing counts before the trials are over" : "",
        block->error);
}

/* --- a block --- */

static void put_head(const struct peers_result *result, int index, const struct peers_page *page)
{
    const struct peer_case *asked = &result->blocks[index].asked;
    bool latency = asked->metric == PEER_LATENCY;
    char size[48];

    fputc('\n', page->out);
    peers_put_line(page, 0, "%s, messages of %s (case %d of %d)", peers_metric_title(asked->metric),
                   peers_size_text(asked->size, size, sizeof size), index + 1, result->plan->case_count);
    peers_put_line(page, 0, "%u in flight, %u %s each side; %" PRIu64 " messages, after %" PRIu64 " of warm-up",
                   asked->inflight, asked->buffers, asked->buffers == 1 ? "buffer" : "buffers", asked->messages,
                   asked->warmup);
    fprintf(page->out, "%-*s%*s%8s%11s%12s", NAME, "tool", VALUE,
            asked->metric == PEER_RATE ? "messages/s" : peers_metric_title(asked->metric), "spread", "weft/tool",
            latency ? "p99" : "CPU s/GB");
    fprintf(page->out, latency ? "%12s\n" : "\n", "mean");
}

static struct peers_unit choose_unit(const struct peers_result *result, const struct peers_block *block)
{
    double smallest = -1;

    for (int i = 0; i < result->plan->tool_count && block->rows[i].tool; i++) {
        struct peers_summary summary;
        peers_sum_up(result, block, &block->rows[i], &summary);
        if (summary.variant >= 0 && (smallest < 0 || summary.median < smallest))
            smallest = summary.median;
    }
    return peers_choose_unit(block->asked.metric, smallest);
}

void peers_report_case(const struct peers_result *result, int index, const struct peers_page *page)
{
    const struct peers_block *block = &result->blocks[index];
    struct peers_unit unit = choose_unit(result, block);
    int count = 0;

    put_head(result, index, page);
    while (count < result->plan->tool_count && block->rows[count].tool)
        count++;
    for (int i = 0; i < count; i++)
        if (!block->rows[i].absent)
            put_row(result, block, &block->rows[i], &unit, page);
    put_absent(block, count, page);
    for (int i = 0; i < count; i++)
        put_note(result, block, &block->rows[i], page);
    if (block->rounds_done < result->plan->rounds)
        put_end(block, result->plan->rounds, page);
    else
        put_alone(result, block, count, page);
    fflush(page->out);
}
