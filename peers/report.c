/* The comparison as a table: a block for each case, a line for each tool. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "peers.h"

#define WIDTH 110
#define NOTE_COLUMN 68 /* where notes begin */

const char *peers_metric_name(enum peer_metric metric)
{
    return metric == PEER_LATENCY ? "latency" : metric == PEER_RATE ? "rate" : "bandwidth";
}

static const char *unit_shown(enum peer_metric metric)
{
    return metric == PEER_LATENCY ? "us" : metric == PEER_RATE ? "million/s" : "GB/s";
}

static double shown(double value, enum peer_metric metric)
{
    return metric == PEER_RATE ? value / 1e6 : value;
}

/* --- notes --- */

/* Breaks `note` between words, so that no line is wider than WIDTH; the first begins at `column`. */
static void put_note(FILE *out, int column, const char *note)
{
    size_t room = WIDTH - (size_t)column, length = strlen(note);

    while (length > room) {
        size_t cut = room;
        while (cut > 0 && note[cut] != ' ')
            cut--;
        if (cut == 0)
            cut = room;
        fprintf(out, "%.*s\n%*s", (int)cut, note, column, "");
        note += cut + (note[cut] == ' ');
        length = strlen(note);
    }
    fprintf(out, "%s\n", note);
}

static void make_note(const struct peers_row *row, const struct peers_summary *summary, char *note, size_t room)
{
    const char *own = summary->variant >= 0 ? row->variants[summary->variant].commands.note : "";
    size_t used;

    snprintf(note, room, "%s", own);
    if (row->variant_count > 1 && summary->variant >= 0) {
        used = strlen(note);
        snprintf(note + used, room - used, "%sbest of %d ways", used ? "; " : "", row->variant_count);
    }
    if (summary->failures) {
        used = strlen(note);
        snprintf(note + used, room - used, "%sfailed %d of %d times: %s", used ? "; " : "", summary->failures,
                 summary->runs, row->error);
    }
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

static void put_line_figures(FILE *out, const struct peers_block *block, const struct peers_summary *summary,
                             bool is_weft)
{
    enum peer_metric metric = block->asked.metric;

    put_number(out, 9, metric == PEER_BANDWIDTH ? 2 : 3, shown(summary->median, metric));
    fprintf(out, "%7.0f%%", summary->spread * 100);
    if (is_weft)
        fprintf(out, "%10s", "1");
    else
        put_number(out, 10, 2, summary->ratio);
    if (metric == PEER_LATENCY) {
        put_number(out, 9, 2, summary->p99_us);
        put_number(out, 9, 2, summary->mean_us);
    } else {
        put_number(out, 9, 3, summary->cpu_s_per_gb);
        fprintf(out, "%9s", "");
    }
}

static void put_row(FILE *out, const struct peers_result *result, const struct peers_block *block,
                    const struct peers_row *row)
{
    struct peers_summary summary;
    char note[640];

    peers_sum_up(result, block, row, &summary);
    fprintf(out, "%-10s", row->tool->name);
    if (summary.variant >= 0) {
        put_line_figures(out, block, &summary, peers_is_weft(row->tool));
        fprintf(out, "%6u%5u  ", block->asked.inflight, block->asked.buffers);
        make_note(row, &summary, note, sizeof note);
    } else {
        fprintf(out, "%9s%*s", "-", NOTE_COLUMN - 19, "");
        const char *error = peers_failure(block, row);
        snprintf(note, sizeof note, "%s%s", error ? "failed: " : "",
                 row->why[0] ? row->why
                 : error     ? error
                             : "not measured");
    }
    put_note(out, NOTE_COLUMN, note);
}

/* --- a block --- */

static void put_head(FILE *out, const struct peer_case *asked)
{
    static const char *const titles[] = {
        [PEER_BANDWIDTH] = "bandwidth", [PEER_LATENCY] = "half round trip", [PEER_RATE] = "message rate"};
    char size[32];
    bool latency = asked->metric == PEER_LATENCY;

    fprintf(
        out, "\n%s, messages of %s%s, %u in flight, %u %s each side (%" PRIu64 " messages, %" PRIu64 " of warm-up)\n",
        titles[asked->metric], wf_format_size(asked->size, size, sizeof size), asked->size % 1024 ? " bytes" : "",
        asked->inflight, asked->buffers, asked->buffers == 1 ? "buffer" : "buffers", asked->messages, asked->warmup);
    fprintf(out, "%-10s%9s%8s%10s%9s%9s%6s%5s  note\n", "tool", unit_shown(asked->metric), "spread", "weft/tool",
            latency ? "p99" : "CPU s/GB", latency ? "mean" : "", "infl", "bufs");
}

static void put_place(FILE *out, const struct peer_place *place, int rounds)
{
    fprintf(out, "%d %s%s, rails:", rounds, rounds == 1 ? "round" : "rounds",
            place->one_machine ? " on one machine" : " between two machines");
    for (int i = 0; i < place->rail_count; i++)
        fprintf(out, "%s %s", i ? "," : "", place->rails[i]);
    if (place->memory)
        fprintf(out, "; memory: %s%s", place->memory, strstr(place->memory, "emulated") ? ": no GPU was measured" : "");
    fprintf(
        out,
        "; nothing is verified\n"
        "Of a tool with many ways the two that were best in trials are run in the rounds, and the better one counts.\n"
        "Medians of the rounds. spread: (max - min) / median. weft/tool: median of the rounds' ratios; Weft is\n"
        "ahead above 1 in bandwidth and rate, below 1 in half round trips. CPU: both sides, per 10^9 bytes.\n");
}

/* Of a block that was cut short. */
static void put_end(FILE *out, const struct peers_block *block, int rounds)
{
    char text[320];

    snprintf(text, sizeof text, "only %d of %d rounds%s: %s", block->rounds_done, rounds,
             block->trials_done > 0 && block->rounds_done == 0 ? ", of which nothing counts before the trials are over"
                                                               : "",
             block->error);
    put_note(out, 0, text);
}

void peers_report(const struct peers_result *result, FILE *out)
{
    const struct peers_plan *plan = result->plan;

    put_place(out, &plan->place, plan->rounds);
    for (int b = 0; b < result->block_count; b++) {
        const struct peers_block *block = &result->blocks[b];
        put_head(out, &block->asked);
        for (int i = 0; i < plan->tool_count && block->rows[i].tool; i++)
            put_row(out, result, block, &block->rows[i]);
        if (block->rounds_done < plan->rounds)
            put_end(out, block, plan->rounds);
    }
}
