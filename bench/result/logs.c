#include "logs.h"

#include <errno.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/folder.h"
#include "bench/words/words.h"

struct line {
    double time_us; /* sum of the means; loaded: the largest of them */
    uint32_t count, iters;
};

static void add_up(const struct bench_result *result, const struct bench_set *set, uint32_t endpoint, struct line *line)
{
    memset(line, 0, sizeof *line);
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (!bench_sample_in_set(sample, set) || sample->pair.dst_node != result->node || sample->pair.dst != endpoint)
            continue;
        line->count++;
        line->iters = sample->iters;
        if (set->mode == BENCH_ISOLATED)
            line->time_us += sample->time.mean;
        else if (sample->time.mean > line->time_us)
            line->time_us = sample->time.mean;
    }
}

static void write_lines(const struct bench_result *result, uint32_t endpoint, FILE *file)
{
    for (int i = 0; i < result->set_count; i++) {
        const struct bench_set *set = &result->sets[i];
        char size[32];
        struct line line;
        if (!set->backend->moves_data)
            continue;
        add_up(result, set, endpoint, &line);
        if (line.count == 0)
            continue;
        fprintf(file, "[PERF] Avg (%u iter): %.3f ms, BW: %.3f GB/s (%s, %s)\n", line.iters, line.time_us / 1e3,
                line.time_us > 0 ? (double)set->size * line.count / (line.time_us * 1e3) : 0,
                wf_format_size(set->size, size, sizeof size), bench_mode_name(set->mode));
    }
}

const char *bench_log_role(const struct bench_result *result, char *role, size_t room)
{
    if (result->node_count > 2)
        snprintf(role, room, "node%d", result->node);
    else
        snprintf(role, room, "%s", result->node == 0 ? "server" : "client");
    return role;
}

int bench_result_logs(const struct bench_result *result, const char *folder, struct wf_status *status)
{
    char role[24];
    enum bench_memory memory = result->plan->nodes[result->node].memory;
    int code = bench_make_folder(folder, status);

    bench_log_role(result, role, sizeof role);

    uint32_t first = result->first_endpoint;
    uint32_t end = result->endpoint_count ? first + result->endpoint_count : result->plan->endpoints;

    for (uint32_t endpoint = first; code == 0 && endpoint < end; endpoint++) {
        char path[WF_VALUE_MAX + 96], name[32], cut[320];
        FILE *file;
        snprintf(path, sizeof path, "%s/fullmesh_%s_gpu%u_%s.log", folder, role, endpoint, result->stamp);
        file = fopen(path, "we");
        if (!file)
            return bench_cannot_write(path, -errno, status);
        errno = 0;
        fprintf(file, "# weft %s, %s, %s, received by %s, memory: %s\n", weft_version(), result->started, role,
                bench_endpoint_name(result->node, endpoint, memory, name, sizeof name), bench_memory_name(memory));
        if (result->plan->check == BENCH_CHECK_ALL)
            fprintf(file, "# the times contain the verification of what is timed (--check all)\n");
        if (bench_cut_text(result, cut, sizeof cut)[0])
            fprintf(file, "# %s\n", cut);
        write_lines(result, endpoint, file);
        bool lost = ferror(file);
        if (fclose(file) != 0 || lost)
            code = bench_cannot_write(path, -errno, status);
    }
    return code;
}
