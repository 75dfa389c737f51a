#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/columns.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "expect.h"
#include "limit.h"
#include "logs.h"
#include "report_latency.h"
#include "report_matrix.h"
#include "report_memory.h"
#include "report_odd.h"
#include "report_ratio.h"
#include "report_rows.h"
#include "far_below.h"

#define NODES_SHOWN 8 /* of more, what is told of each one stands in the result files */

static int64_t count_of(const json_t *rail, const char *name)
{
    return (int64_t)json_integer_value(json_object_get(rail, name));
}

/* --- the head --- */

/* A figure without a GPU behind it is not to be taken for one with. */
static const char *emulation(const struct bench_result *result)
{
    return bench_plan_emulated(result->plan) ? ", EMULATED: no GPU was measured" : "";
}

static const char *caveat(const struct bench_result *result)
{
    return result->nearness == BENCH_LOOPBACK ? ", loopback: says nothing about a network"
           : result->nearness == BENCH_ONE_MACHINE
               ? result->node_count > 2 ? ", all nodes on one machine" : ", both nodes on one machine"
               : "";
}

static void print_nodes(const struct bench_result *result, int columns, FILE *out)
{
    int last = result->node_count - 1, shown = result->node_count > NODES_SHOWN ? NODES_SHOWN : result->node_count;

    for (int node = 0; node < shown; node++) {
        const json_t *host = result->host[node];
        if (!host)
            continue;
        if (node == 1 && result->nearness == BENCH_LOOPBACK && last == 1)
            bench_wrapped(out, columns, 2, "node1: the same machine");
        else if (node == 1 && result->nearness == BENCH_LOOPBACK)
            bench_wrapped(out, columns, 2, "node1 to node%d: the same machine", last);
        else if (result->nearness != BENCH_LOOPBACK || node == 0)
            bench_wrapped(out, columns, 2, "node%d: %s, %s, %" PRId64 " CPUs, engine %s", node,
                          bench_heard_text(host, "name"), bench_heard_text(host, "kernel"),
                          (int64_t)json_integer_value(json_object_get(host, "cpus")), bench_heard_text(host, "engine"));
    }
    if (shown <= last && result->nearness != BENCH_LOOPBACK)
        bench_wrapped(out, columns, 2, "node%d to node%d: see the result files", shown, last);
}

static void print_plan(const struct bench_result *result, int columns, FILE *out)
{
    const struct bench_rail_names *rails = &result->rails[result->node];
    const struct bench_plan *plan = result->plan;
    int processes = (int)wf_config_number(result->options->config, WF_SET_PROCESSES);
    char memory[48], nodes[64] = "", names[2048] = "";
    size_t used = 0;

    if (result->node_count > 2)
        snprintf(nodes, sizeof nodes, ", nodes: %d", result->node_count);
    if (processes > 1)
        snprintf(nodes + strlen(nodes), sizeof nodes - strlen(nodes), ", processes: %d per node", processes);

    for (int i = 0; i < rails->count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s %s", i ? "," : "", rails->names[i]);
    /* Of node0 and node1 where they differ, as in a sample of source and destination. */
    bench_wrapped(out, columns, 2, "memory: %s%s, endpoints: %u per node, pairs: %u, seed: %" PRIu64 ", rails:%s",
                  bench_both_memories(plan->nodes[0].memory, plan->nodes[1].memory, memory, sizeof memory), nodes,
                  plan->endpoints, plan->pair_count, plan->seed, names);
}

/* Which GPU is whose, where the names of endpoints do not say it. */
static void print_gpus(const struct bench_result *result, int node, int columns, FILE *out)
{
    const char *sharing = json_string_value(json_object_get(result->host[node], "gpu_sharing"));

    if (sharing && sharing[0])
        bench_wrapped(out, columns, 2, "node%d: %s", node, sharing);
}

/* Those that are new: a GPU that is made ready later may add some. */
static void print_fallbacks(struct bench_result *result, int columns, FILE *out)
{
    const json_t *lines = result->fallbacks[result->node];

    for (; result->shown_fallbacks < json_array_size(lines); result->shown_fallbacks++)
        if (json_is_string(json_array_get(lines, result->shown_fallbacks)))
            bench_wrapped(out, columns, 2, "fallback: %s",
                          json_string_value(json_array_get(lines, result->shown_fallbacks)));
}

static void print_head(struct bench_result *result, FILE *out)
{
    int columns = bench_columns(out);

    bench_wrapped(out, columns, 2, "weft %s %s, %s%s%s", weft_version(), bench_command_name(result->options->command),
                  result->started, emulation(result), caveat(result));
    print_nodes(result, columns, out);
    print_plan(result, columns, out);
    for (int node = 0; node < result->node_count; node++)
        print_gpus(result, node, columns, out);
    if (result->plan->check == BENCH_CHECK_ALL && result->options->command != BENCH_PROFILE)
        bench_wrapped(out, columns, 2, "the times contain the verification of what is timed (--check all)");
    print_fallbacks(result, columns, out);
}

/* --- what comes as it is measured --- */

static void print_so_far(struct bench_result *result, FILE *out)
{
    if (!result->shown_head)
        print_head(result, out);
    result->shown_head = true;
    for (; result->shown_sets < result->set_count; result->shown_sets++) {
        const struct bench_set *set = &result->sets[result->shown_sets];
        const struct bench_set *before = result->shown_sets ? set - 1 : NULL;
        if (result->plan->latency)
            bench_report_latency_set(result, set, before, out);
        else
            bench_report_set(result, set, before, out);
    }
    fflush(out);
}

int bench_report_so_far(struct bench_result *result, struct wf_status *status)
{
    FILE *out = bench_people(result->options->config);
    bool silent = bench_quiet(result->options->config) || result->options->child;
    int code = 0;

    pthread_mutex_lock(&result->lock);
    errno = 0;
    if (!silent)
        print_so_far(result, out);
    if (!silent && ferror(out))
        code = bench_cannot_write("-", errno ? -errno : -EIO, status);
    else if (result->stream_error)
        code = bench_cannot_write(wf_config_text(result->options->config, WF_SET_JSON_STREAM), result->stream_error,
                                  status);
    pthread_mutex_unlock(&result->lock);
    return code;
}

/* --- what was in the way, and the rails --- */

static void print_limits(const struct bench_result *result, int columns, FILE *out)
{
    double *samples = calloc(result->sample_count + 1, sizeof *samples);

    fputc('\n', out);
    for (int i = 0; samples && i < result->set_count; i++) {
        const struct bench_set *set = &result->sets[i];
        char size[32], text[256];
        if (!set->backend->moves_data || !bench_is_last_set(result, i))
            continue;
        bench_wrapped(
            out, columns, 2, "limited by (%s%s%s, %s): %s", result->plan->backend_count > 1 ? set->backend->name : "",
            result->plan->backend_count > 1 ? ", " : "", bench_mode_name(set->mode),
            wf_format_size(set->size, size, sizeof size), bench_limit_text(result, set, samples, text, sizeof text));
        if (set->cpu_s_per_gb >= 0)
            bench_wrapped(out, columns, 2, "processor time (%s, %s): %.2f s a GB, %s nodes together",
                          bench_mode_name(set->mode), size, set->cpu_s_per_gb, result->node_count > 2 ? "all" : "both");
    }
    free(samples);
}

static int64_t sum_of(const json_t *rails, const char *name)
{
    const json_t *rail;
    int64_t sum = 0;
    size_t index;

    json_array_foreach(rails, index, rail) sum += (int64_t)json_integer_value(json_object_get(rail, name));
    return sum;
}

static void print_rail_bytes(const json_t *rail, int64_t all, FILE *out)
{
    const json_t *speed = json_object_get(rail, "speed_mbit"), *mtu = json_object_get(rail, "mtu");
    char rate[32] = "unknown", unit[16] = "-", sent[32], received[32];
    struct bench_row row;

    if (json_is_integer(speed))
        snprintf(rate, sizeof rate, "%.4g Gbit/s", (double)json_integer_value(speed) / 1e3);
    if (json_is_integer(mtu))
        snprintf(unit, sizeof unit, "%" PRId64, (int64_t)json_integer_value(mtu));
    bench_row_begin(&row, out);
    bench_row_put(&row, -6, "%s", bench_heard_text(rail, "node"));
    bench_row_put(&row, -22, "%s", bench_heard_text(rail, "name"));
    bench_row_put(&row, 12, "%s", rate);
    bench_row_put(&row, 7, "%s", unit);
    bench_row_put(&row, 10, "%s", bench_decimal_bytes((uint64_t)count_of(rail, "sent_bytes"), sent, sizeof sent));
    bench_row_put(&row, 10, "%s",
                  bench_decimal_bytes((uint64_t)count_of(rail, "received_bytes"), received, sizeof received));
    bench_row_put(&row, 10, "%.1f %%", all ? 100.0 * (double)count_of(rail, "bytes") / (double)all : 0);
    bench_row_end(&row);
}

static void print_rails(const struct bench_result *result, FILE *out)
{
    static const struct {
        int columns;
        const char *name;
    } head[] = {{-6, "node"}, {-22, "rail"},    {12, "line rate"}, {7, "MTU"},
                {10, "sent"}, {10, "received"}, {10, "share"}};
    struct bench_row row;
    const json_t *rail;
    size_t index;

    if (result->node_count > NODES_SHOWN)
        return;
    fputc('\n', out);
    bench_wrapped(out, bench_columns(out), 2, "what the rails carried, warm-up and verification included");
    bench_row_begin(&row, out);
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++)
        bench_row_put(&row, head[i].columns, "%s", head[i].name);
    bench_row_end(&row);
    for (int node = 0; node < result->node_count; node++)
        json_array_foreach(result->rail_totals[node], index, rail)
            print_rail_bytes(rail, sum_of(result->rail_totals[node], "bytes"), out);
}

/* Of what each direction could have carried. */
static void print_line_share(const struct bench_result *result, int columns, FILE *out)
{
    double *samples = calloc(result->sample_count + 1, sizeof *samples);

    for (int i = 0; samples && i < result->set_count; i++)
        for (int way = 0; way < 2 && result->node_count == 2; way++) {
            const struct bench_set *set = &result->sets[i];
            double line = bench_line_rate(result, &bench_ways[way]);
            double rate = bench_way_rate(result, set, &bench_ways[way], samples);
            char size[32], why[512];
            if (line <= 0 || rate < 0 || !set->backend->moves_data || !bench_is_last_set(result, i))
                continue;
            bench_wrapped(out, columns, 2, "%.1f %% of the line rate (%s, %s, node%d -> node%d)", 100 * rate / line,
                          bench_mode_name(set->mode), wf_format_size(set->size, size, sizeof size),
                          bench_ways[way].src_node, bench_ways[way].dst_node);
            if (!result->plan->latency &&
                bench_far_below_text(result, set, &bench_ways[way], rate, line, why, sizeof why)[0])
                bench_wrapped(out, columns, 2, "far below what the rails allow: %s. 'weft doctor' examines the path",
                              why);
        }
    free(samples);
}

/* --- what failed --- */

static bool has_suffered(const json_t *rail)
{
    return count_of(rail, "failures") || count_of(rail, "resent_bytes") || count_of(rail, "damaged") ||
           json_is_true(json_object_get(rail, "retired"));
}

static void print_rail(const json_t *rail, FILE *out)
{
    int64_t channels = count_of(rail, "channels"), up = count_of(rail, "channels_up");
    char resent[32], state[48];
    struct bench_row row;

    if (json_is_true(json_object_get(rail, "retired")))
        snprintf(state, sizeof state, "retired: it damaged too much");
    else if (channels == 0)
        bench_copy_text(state, sizeof state, "-");
    else if (up < channels)
        snprintf(state, sizeof state, "%" PRId64 " of %" PRId64 " channels", up, channels);
    else
        snprintf(state, sizeof state, "up");
    bench_row_begin(&row, out);
    bench_row_put(&row, -6, "%s", bench_heard_text(rail, "node"));
    bench_row_put(&row, -22, "%s", bench_heard_text(rail, "name"));
    bench_row_put(&row, 9, "%" PRId64, count_of(rail, "failures"));
    bench_row_put(&row, 11, "%s", bench_human_bytes((uint64_t)count_of(rail, "resent_bytes"), resent, sizeof resent));
    bench_row_put(&row, 10, "%" PRId64 "  ", count_of(rail, "damaged"));
    bench_row_put(&row, 0, "%s", state);
    bench_row_end(&row);
}

static void print_failures_head(FILE *out)
{
    struct bench_row row;

    fputc('\n', out);
    bench_row_begin(&row, out);
    bench_row_put(&row, -6, "node");
    bench_row_put(&row, -22, "rail");
    bench_row_put(&row, 9, "failures");
    bench_row_put(&row, 11, "sent again");
    bench_row_put(&row, 10, "damaged  ");
    bench_row_put(&row, 0, "state");
    bench_row_end(&row);
}

/* Which rail failed how often: all rails, as soon as there is something to tell of one. */
static void print_failures(const struct bench_result *result, FILE *out)
{
    bool any = false;
    json_t *rail;
    size_t index;

    for (int node = 0; node < result->node_count; node++)
        json_array_foreach(result->rail_totals[node], index, rail) any |= has_suffered(rail);
    if (!any)
        return;
    print_failures_head(out);
    for (int node = 0; node < result->node_count; node++)
        json_array_foreach(result->rail_totals[node], index,
                           rail) if (result->node_count <= NODES_SHOWN || has_suffered(rail)) print_rail(rail, out);
}

/* Adds to `text`; returns how long it is then. */
static size_t add(char *text, size_t used, size_t room, const char *format, ...) __attribute__((format(printf, 4, 5)));

static size_t add(char *text, size_t used, size_t room, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    int length = vsnprintf(text + used, room - used, format, arguments);
    va_end(arguments);
    return length > 0 && (size_t)length < room - used ? used + (size_t)length : room - 1;
}

static size_t add_fault_counts(const json_t *faults, char *text, size_t used, size_t room)
{
    static const char *const kinds[] = {"resets", "flips", "shortened", "stalls", "drops", "cut", "refused"};
    bool any = false;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (count_of(faults, kinds[i]) == 0)
            continue;
        used = add(text, used, room, "%s %s %" PRId64, any ? "," : "", kinds[i], count_of(faults, kinds[i]));
        any = true;
    }
    return any ? used : add(text, used, room, " none");
}

/* So that nobody takes what the rest shows for the network's doing. */
static void print_faults(const struct bench_result *result, int columns, FILE *out)
{
    const char *before = "faults injected: ";
    char text[600];
    size_t used = 0;

    for (int node = 0; node < result->node_count; node++) {
        if (!json_is_object(result->faults[node]))
            continue;
        used = add(text, used, sizeof text, "%snode%d:", before, node);
        used = add_fault_counts(result->faults[node], text, used, sizeof text);
        before = "; ";
    }
    if (used == 0)
        return;
    fputc('\n', out);
    bench_wrapped(out, columns, 2, "%s", text);
}

/* Never more than was looked at: what was measured stands beside it. */
static size_t add_verified(const struct bench_result *result, char *text, size_t used, size_t room)
{
    char verified[32], measured[32];

    if (!result->plan->check)
        return add(text, used, room, ", not verified (--check 0)");
    if (!bench_result_checked(result))
        return add(text, used, room, ", nothing to verify: no data was moved");
    return add(text, used, room, ", %" PRIu64 " wrong of %s verified; %s measured", bench_result_wrong_bytes(result),
               bench_decimal_bytes(bench_result_verified_bytes(result), verified, sizeof verified),
               bench_decimal_bytes(bench_result_measured_bytes(result), measured, sizeof measured));
}

static void print_verdict(const struct bench_result *result, int columns, FILE *out)
{
    char cut[320], took[32], text[1024];

    fputc('\n', out);
    if (result->took_ns)
        fprintf(out, "duration: %s\n", bench_time_text((double)result->took_ns / 1e3, took, sizeof took));
    size_t used = add(text, 0, sizeof text, "%s%zu of %" PRIu64 " samples",
                      bench_plan_emulated(result->plan) ? "EMULATED GPU memory: " : "", result->sample_count,
                      bench_plan_samples(result->plan));
    used = add_verified(result, text, used, sizeof text);
    if (bench_cut_text(result, cut, sizeof cut)[0])
        add(text, used, sizeof text, ": FAILED, %s", cut);
    else
        add(text, used, sizeof text, ": %s%s%s", bench_result_passed(result) ? "passed" : "FAILED",
            result->error[0] ? ", " : "", result->error);
    /* Scripts look for it in one line, unless somebody wants less than a page. */
    bench_wrapped(out, columns < BENCH_COLUMNS ? columns : (int)sizeof text, 2, "%s", text);
}

/* Where the rest is, in one line. */
static void print_places(const struct bench_result *result, FILE *out)
{
    static const enum wf_setting_id files[] = {WF_SET_OUT, WF_SET_JSON, WF_SET_CSV, WF_SET_JSON_STREAM};
    const struct wf_config *config = result->options->config;
    const char *logs = wf_config_text(config, WF_SET_LOG_DIR), *before = "results: ";
    char role[24];

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const char *path = wf_config_text(config, files[i]);
        if (!path[0] || strcmp(path, "-") == 0)
            continue;
        fprintf(out, "%s%s", before, path);
        before = ", ";
    }
    if (logs[0] && result->options->command == BENCH_MESH && result->sample_count) {
        fprintf(out, "%slogs: %s/fullmesh_%s_gpu*_%s.log", before[0] == ',' ? "\n" : "", logs,
                bench_log_role(result, role, sizeof role), result->stamp);
        before = ", ";
    }
    if (before[0] == ',')
        fputc('\n', out);
}

void bench_report(struct bench_result *result, FILE *out)
{
    int columns = bench_columns(out);
    char expected[160];

    print_so_far(result, out);
    if (!result->plan->latency) {
        if (result->options->command == BENCH_MESH) {
            bench_report_odd(result, out);
            bench_report_matrices(result, out);
        }
        print_limits(result, columns, out);
    }
    print_line_share(result, columns, out);
    print_rails(result, out);
    bench_report_ratios(result, out);
    print_failures(result, out);
    print_faults(result, columns, out);
    bench_report_notes(result, out);
    print_fallbacks(result, columns, out);
    bench_report_memory(result, columns, out);
    bench_expect_met(result, expected, sizeof expected);
    if (expected[0])
        bench_wrapped(out, columns, 2, "%s", expected);
    print_verdict(result, columns, out);
    if (result->filed)
        print_places(result, out);
    fflush(out);
}
