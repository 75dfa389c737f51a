#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "report_latency.h"
#include "report_ratio.h"

#define SIDE_BY_SIDE 8 /* endpoints up to which both directions fit into 120 columns */
#define SMALL 4096     /* bytes: messages below are counted by the second, too */
#define MATRIX_MOST 16 /* and one direction */

static void print_rails(const struct bench_result *result, FILE *out)
{
    const struct bench_plan *plan = result->plan;
    char memory[48];

    /* Of node0 and node1 where they differ, as in a sample of source and destination. */
    fprintf(out, "memory: %s   endpoints: %u per node   rails:",
            bench_both_memories(plan->nodes[0].memory, plan->nodes[1].memory, memory, sizeof memory), plan->endpoints);
    for (int i = 0; i < result->rails[result->node].count; i++)
        fprintf(out, "%s %s", i ? "," : "", result->rails[result->node].names[i]);
    fprintf(out, "   engine: %s   seed: %" PRIu64 "\n", bench_heard_text(result->host[result->node], "engine"),
            result->plan->seed);
}

/* Which GPU is whose, where the names of endpoints do not say it. */
static void print_gpus(const struct bench_result *result, int node, FILE *out)
{
    const char *sharing = json_string_value(json_object_get(result->host[node], "gpu_sharing"));

    if (sharing && sharing[0])
        fprintf(out, "node%d: %s\n", node, sharing);
}

/* A figure without a GPU behind it is not to be taken for one with. */
static const char *emulation(const struct bench_result *result)
{
    return bench_plan_emulated(result->plan) ? ", EMULATED: no GPU was measured" : "";
}

static void print_report_head(const struct bench_result *result, FILE *out)
{
    size_t index;
    json_t *line;

    fprintf(out, "weft %s %s, %s%s\n", weft_version(), bench_command_name(result->options->command), result->started,
            emulation(result));
    for (int node = 0; node < 2; node++)
        if (result->host[node])
            fprintf(out, "node%d: %s, %s, %" PRId64 " CPUs\n", node, bench_heard_text(result->host[node], "name"),
                    bench_heard_text(result->host[node], "kernel"),
                    (int64_t)json_integer_value(json_object_get(result->host[node], "cpus")));
    print_rails(result, out);
    for (int node = 0; node < 2; node++)
        print_gpus(result, node, out);
    if (result->plan->check == BENCH_CHECK_ALL)
        fprintf(out, "the times contain the verification of what is timed (--check all)\n");
    json_array_foreach(result->fallbacks[result->node], index, line) if (json_is_string(line))
        fprintf(out, "fallback: %s\n", json_string_value(line));
}

/* --- matrix --- */

static const struct bench_sample *find_sample(const struct bench_result *result, const struct bench_set *set,
                                              const struct bench_pair *pair)
{
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (bench_sample_in_set(sample, set) && bench_pair_equal(&sample->pair, pair))
            return sample;
    }
    return NULL;
}

static void print_cell(const struct bench_sample *sample, FILE *out)
{
    double rate = sample ? bench_sample_rate(sample) : -1;
    char mark = !sample ? ' ' : sample->wrong.bytes ? '!' : sample->failures ? '*' : ' ';

    if (rate < 0)
        fprintf(out, "     %c", sample ? mark : '-');
    else
        fprintf(out, rate < 0.1 ? "%5.3f%c" : rate < 100 ? "%5.2f%c" : "%5.0f%c", rate, mark);
}

/* "host3", "gpu3", in 6 characters. */
static void print_endpoint(const struct bench_plan *plan, int node, uint32_t endpoint, FILE *out)
{
    const char *kind = plan->nodes[node].memory == BENCH_HOST ? "host" : "gpu";
    char name[24];

    snprintf(name, sizeof name, endpoint < 10 ? "%s%u" : "%.1s%u", kind, endpoint);
    fprintf(out, "%-6s", name);
}

static void print_columns(const struct bench_plan *plan, int src_node, int dst_node, FILE *out)
{
    char corner[24];

    snprintf(corner, sizeof corner, "%d -> %d", src_node, dst_node);
    fprintf(out, "%-7s", corner);
    for (uint32_t i = 0; i < plan->endpoints; i++)
        print_endpoint(plan, dst_node, i, out);
}

static void print_row(const struct bench_result *result, const struct bench_set *set, int src_node, int dst_node,
                      uint32_t src, FILE *out)
{
    print_endpoint(result->plan, src_node, src, out);
    fputc(' ', out);
    for (uint32_t dst = 0; dst < result->plan->endpoints; dst++) {
        struct bench_pair pair = {.src = src, .dst = dst, .src_node = (uint8_t)src_node, .dst_node = (uint8_t)dst_node};
        print_cell(find_sample(result, set, &pair), out);
    }
}

static void print_block(const struct bench_result *result, const struct bench_set *set, const int nodes[2][2],
                        int blocks, FILE *out)
{
    uint32_t endpoints = result->plan->endpoints;

    for (int block = 0; block < blocks; block++) {
        print_columns(result->plan, nodes[block][0], nodes[block][1], out);
        fputs(block + 1 < blocks ? "   " : "\n", out);
    }
    for (uint32_t src = 0; src < endpoints; src++)
        for (int block = 0; block < blocks; block++) {
            print_row(result, set, nodes[block][0], nodes[block][1], src, out);
            fputs(block + 1 < blocks ? "   " : "\n", out);
        }
}

static bool has_scope(const struct bench_result *result, bool intra)
{
    for (uint32_t i = 0; i < result->plan->pair_count; i++)
        if ((result->plan->pairs[i].src_node == result->plan->pairs[i].dst_node) == intra)
            return true;
    return false;
}

static bool any_failures(const struct bench_result *result)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (result->samples[i].failures)
            return true;
    return false;
}

static void print_matrix(const struct bench_result *result, const struct bench_set *set, FILE *out)
{
    static const int all[2][2][2] = {{{0, 1}, {1, 0}}, {{0, 0}, {1, 1}}};
    char size[32];

    fprintf(out, "\n%s%s%s, %s: GB/s from the median time, row sends to column, node -> node",
            result->plan->backend_count > 1 ? set->backend->name : "", result->plan->backend_count > 1 ? ", " : "",
            bench_mode_name(set->mode), wf_format_size(set->size, size, sizeof size));
    fprintf(out, "%s%s\n", bench_result_wrong_bytes(result) ? " (! wrong bytes)" : "",
            any_failures(result) ? " (* a rail failed meanwhile)" : "");
    if (result->plan->endpoints > MATRIX_MOST) {
        fprintf(out, "(more than %d endpoints: see the result files)\n", MATRIX_MOST);
        return;
    }
    for (int intra = 0; intra < 2; intra++) {
        if (!has_scope(result, intra))
            continue;
        if (result->plan->endpoints <= SIDE_BY_SIDE) {
            print_block(result, set, all[intra], 2, out);
        } else {
            print_block(result, set, &all[intra][0], 1, out);
            print_block(result, set, &all[intra][1], 1, out);
        }
    }
}

/* The last set of a mode and backend has its largest size. */
static bool is_last(const struct bench_result *result, int index)
{
    const struct bench_set *set = &result->sets[index];

    for (int i = index + 1; i < result->set_count; i++)
        if (result->sets[i].mode == set->mode && result->sets[i].backend == set->backend)
            return false;
    return true;
}

static void print_matrices(const struct bench_result *result, FILE *out)
{
    for (int i = 0; i < result->set_count; i++)
        if (result->sets[i].backend->moves_data && is_last(result, i))
            print_matrix(result, &result->sets[i], out);
}

/* --- tables --- */

static void print_rate(double rate, FILE *out)
{
    if (rate < 0)
        fprintf(out, "%10s%9s", "-", "-");
    else
        fprintf(out, "%10.3f%9.2f", rate, rate * 8);
}

static bool counts_messages(const struct bench_result *result)
{
    return result->plan->size_count && result->plan->sizes[0] < SMALL;
}

/* The median over the pairs; `room` for all samples. Nothing where the table has no such column. */
static void print_messages(const struct bench_result *result, const struct bench_set *set, double *room, FILE *out)
{
    size_t count = 0;

    for (size_t i = 0; set->size < SMALL && i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (bench_sample_in_set(sample, set) && bench_sample_messages_per_s(sample) >= 0)
            room[count++] = bench_sample_messages_per_s(sample);
    }
    if (count)
        fprintf(out, "%11.0f", wf_median(room, count));
    else if (counts_messages(result))
        fprintf(out, "%11s", "-");
}

/* Fills what a row tells beside rates. */
static uint64_t row_numbers(const struct bench_result *result, const struct bench_set *set, double *times,
                            size_t *time_count, uint32_t *iters)
{
    uint64_t wrong = 0;

    *time_count = 0;
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (!bench_sample_in_set(sample, set))
            continue;
        times[(*time_count)++] = sample->time.p50;
        *iters = sample->iters;
        wrong += sample->wrong.bytes;
    }
    return wrong;
}

/* Of the column with the backends. */
static int name_width(const struct bench_result *result)
{
    size_t most = 7;

    for (int i = 0; i < result->plan->backend_count; i++)
        if (strlen(result->plan->backends[i]->name) > most)
            most = strlen(result->plan->backends[i]->name);
    return (int)most;
}

static void print_row_of_set(const struct bench_result *result, const struct bench_set *set, double *room, FILE *out)
{
    char size[32];
    size_t count;
    uint32_t iters = 0;
    uint64_t wrong = row_numbers(result, set, room, &count, &iters);
    bool checked = result->plan->check && set->backend->moves_data;

    fprintf(out, "%-*s %-8s %9s %6u %11.1f", name_width(result), set->backend->name, bench_mode_name(set->mode),
            wf_format_size(set->size, size, sizeof size), iters, wf_median(room, count));
    count = bench_set_rates(result, set, room);
    print_rate(count ? wf_median(room, count) : -1, out);
    if (count)
        fprintf(out, "%10.3f", room[count - 1]);
    else
        fprintf(out, "%10s", "-");
    print_rate(bench_set_aggregate(set), out);
    print_messages(result, set, room, out);
    if (checked)
        fprintf(out, "%9" PRIu64 "\n", wrong);
    else
        fprintf(out, "%9s\n", "-");
}

static void print_table(const struct bench_result *result, FILE *out)
{
    double *room = calloc(result->sample_count + 1, sizeof *room);

    fprintf(out, "\n%-*s %-8s %9s %6s %11s%10s%9s%10s%10s%9s%s%9s\n", name_width(result), "", "", "", "", "p50",
            "median", "", "peak", "all pairs", "", counts_messages(result) ? "     median" : "", "wrong");
    fprintf(out, "%-*s %-8s %9s %6s %11s%10s%9s%10s%10s%9s%s%9s\n", name_width(result), "backend", "mode", "size",
            "iters", "us", "GB/s", "Gbit/s", "GB/s", "GB/s", "Gbit/s", counts_messages(result) ? " messages/s" : "",
            "bytes");
    for (int i = 0; room && i < result->set_count; i++)
        print_row_of_set(result, &result->sets[i], room, out);
    free(room);
}

static int64_t count_of(const json_t *rail, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(rail, name));
}

static bool has_suffered(const json_t *rail)
{
    return count_of(rail, "failures") || count_of(rail, "resent_bytes") || count_of(rail, "damaged") ||
           json_is_true(json_object_get(rail, "retired"));
}

static void print_rail(const json_t *rail, FILE *out)
{
    int64_t channels = count_of(rail, "channels"), up = count_of(rail, "channels_up");
    char resent[32], state[48];

    if (json_is_true(json_object_get(rail, "retired")))
        snprintf(state, sizeof state, "retired: it damaged too much");
    else if (channels == 0)
        bench_copy_text(state, sizeof state, "-");
    else if (up < channels)
        snprintf(state, sizeof state, "%" PRId64 " of %" PRId64 " channels", up, channels);
    else
        snprintf(state, sizeof state, "up");
    fprintf(out, "%-6s %-24s %9" PRId64 " %12s %9" PRId64 "  %s\n", bench_heard_text(rail, "node"),
            bench_heard_text(rail, "name"), count_of(rail, "failures"),
            bench_human_bytes((uint64_t)count_of(rail, "resent_bytes"), resent, sizeof resent),
            count_of(rail, "damaged"), state);
}

/* Which rail failed how often: all rails, as soon as there is something to tell of one. */
static void print_failures(const struct bench_result *result, FILE *out)
{
    bool any = false;
    json_t *rail;
    size_t index;

    for (int node = 0; node < 2; node++)
        json_array_foreach(result->rail_totals[node], index, rail) any |= has_suffered(rail);
    if (!any)
        return;
    fprintf(out, "\n%-6s %-24s %9s %12s %9s  %s\n", "node", "rail", "failures", "sent again", "damaged", "state");
    for (int node = 0; node < 2; node++)
        json_array_foreach(result->rail_totals[node], index, rail) print_rail(rail, out);
}

static void print_fault_counts(const json_t *faults, FILE *out)
{
    static const char *const kinds[] = {"resets", "flips", "shortened", "stalls", "drops", "cut", "refused"};
    bool any = false;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (count_of(faults, kinds[i]) == 0)
            continue;
        fprintf(out, "%s %s %" PRId64, any ? "," : "", kinds[i], count_of(faults, kinds[i]));
        any = true;
    }
    fputs(any ? "" : " none", out);
}

/* In one line, so that nobody takes what the rest shows for the network's doing. */
static void print_faults(const struct bench_result *result, FILE *out)
{
    const char *before = "\nfaults injected: ";

    for (int node = 0; node < 2; node++) {
        if (!json_is_object(result->faults[node]))
            continue;
        fprintf(out, "%snode%d:", before, node);
        print_fault_counts(result->faults[node], out);
        before = "; ";
    }
    fputs(before[0] == ';' ? "\n" : "", out);
}

/* Never more than was looked at: what was measured stands beside it. */
static void print_verified(const struct bench_result *result, FILE *out)
{
    char verified[32], measured[32];

    fprintf(out, ", %" PRIu64 " wrong of %s verified; %s measured", bench_result_wrong_bytes(result),
            bench_decimal_bytes(bench_result_verified_bytes(result), verified, sizeof verified),
            bench_decimal_bytes(bench_result_measured_bytes(result), measured, sizeof measured));
}

static void print_verdict(const struct bench_result *result, FILE *out)
{
    uint64_t planned = bench_plan_samples(result->plan);
    char cut[320];

    fprintf(out, "\n%s%zu of %" PRIu64 " samples", bench_plan_emulated(result->plan) ? "EMULATED GPU memory: " : "",
            result->sample_count, planned);
    if (!result->plan->check)
        fprintf(out, ", not verified (--check 0)");
    else if (!bench_result_checked(result))
        fprintf(out, ", nothing to verify: no data was moved");
    else
        print_verified(result, out);
    if (bench_cut_text(result, cut, sizeof cut)[0])
        fprintf(out, ": FAILED, %s\n", cut);
    else
        fprintf(out, ": %s\n", bench_result_passed(result) ? "passed" : "FAILED");
}

/* Where the rest is, in one line. */
static void print_places(const struct bench_result *result, FILE *out)
{
    static const enum wf_setting_id files[] = {WF_SET_OUT, WF_SET_JSON, WF_SET_CSV};
    const struct wf_config *config = result->options->config;
    const char *logs = wf_config_text(config, WF_SET_LOG_DIR), *before = "results: ";

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = wf_config_text(config, files[i]);
        if (!path[0] || strcmp(path, "-") == 0)
            continue;
        fprintf(out, "%s%s", before, path);
        before = ", ";
    }
    if (logs[0] && result->options->command == BENCH_MESH && result->sample_count) {
        fprintf(out, "%slogs: %s/fullmesh_%s_gpu*_%s.log", before[0] == ',' ? "   " : "", logs,
                result->node == 0 ? "server" : "client", result->stamp);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', out);
}

void bench_report(const struct bench_result *result, FILE *out)
{
    print_report_head(result, out);
    if (result->plan->latency) {
        bench_report_latency(result, out);
    } else {
        if (result->options->command == BENCH_MESH)
            print_matrices(result, out);
        print_table(result, out);
    }
    bench_report_ratios(result, out);
    print_failures(result, out);
    print_faults(result, out);
    print_verdict(result, out);
    if (result->filed)
        print_places(result, out);
    fflush(out);
}
