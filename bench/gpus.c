#include "gpus.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "words.h"

/* ------------------------------------------------------------------------------------------- the list */

/* "GPUs 0, 1 and 3". Returns `buffer`. */
static char *name_all(const struct weft_gpu_info *all, int count, char *buffer, size_t room)
{
    size_t used = (size_t)snprintf(buffer, room, count == 1 ? "GPU" : "GPUs");

    for (int i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(buffer + used, room - used, "%s %d",
                                 i == 0           ? ""
                                 : i + 1 == count ? " and"
                                                  : ",",
                                 all[i].index);
    return buffer;
}

static int pick_one(long index, const struct weft_gpu_info *all, int count, struct weft_gpu_info *picked, int kept,
                    struct wf_status *status)
{
    char there[400];
    int at = 0;

    for (int i = 0; i < kept; i++)
        if (picked[i].index == index)
            return wf_fail(status, -EINVAL, "--gpus names GPU %ld twice: name each once", index);
    while (at < count && all[at].index != index)
        at++;
    if (at == count)
        return wf_fail(status, -EINVAL, "--gpus %ld: there is no such GPU: this machine has %s", index,
                       name_all(all, count, there, sizeof(there)));
    picked[kept] = all[at];
    return 0;
}

/* "5" or "5-7". */
static bool read_range(const char *word, long *first, long *last)
{
    char *end;

    if (!isdigit((unsigned char)word[0]))
        return false;
    errno = 0;
    *first = *last = strtol(word, &end, 10);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        *last = strtol(end + 1, &end, 10);
    return *end == '\0' && errno == 0 && *last >= *first && *last - *first < BENCH_GPUS_MAX;
}

int bench_gpus_pick(const char *list, const struct weft_gpu_info *all, int count, struct weft_gpu_info *picked,
                    struct wf_status *status)
{
    char copy[WF_VALUE_MAX];
    char *rest = copy, *word;
    int kept = 0, rc = 0;

    if (!list[0] || strcmp(list, "all") == 0) {
        memcpy(picked, all, (size_t)count * sizeof(*all));
        return count;
    }
    bench_copy_text(copy, sizeof(copy), list);
    while (rc == 0 && (word = bench_next_word(&rest, ',')) != NULL) {
        long first, last;
        if (!read_range(word, &first, &last))
            return wf_fail(status, -EINVAL, "--gpus %.60s: '%.40s' is no GPU by its number: use 0,2,5-7 or all", list,
                           word);
        for (long index = first; rc == 0 && index <= last; index++) {
            rc = pick_one(index, all, count, picked, kept, status);
            kept += rc == 0;
        }
    }
    return rc ? rc : kept;
}

/* ------------------------------------------------------------------------------------------- what is asked */

/* The first of the context's fallbacks that is about GPUs, in one line. Returns `buffer`. */
static char *why_none(const struct weft_context *context, const struct wf_config *config, char *buffer, size_t room)
{
    char copy[4096];
    char *rest = copy, *line;

    snprintf(buffer, room, "no usable GPU here");
    if (strcmp(wf_config_text(config, WF_SET_CUDA), "off") == 0)
        snprintf(buffer, room, "the setting cuda is off");
    bench_copy_text(copy, sizeof(copy), weft_context_fallbacks(context));
    while ((line = bench_next_word(&rest, '\n')) != NULL)
        if (strstr(line, "GPU") || strstr(line, "cuda") || strstr(line, "CUDA")) {
            snprintf(buffer, room, "%s", line);
            break;
        }
    return buffer;
}

static int fill(struct bench_gpus *gpus, const struct wf_config *config, const struct weft_context *context,
                struct wf_status *status)
{
    struct weft_gpu_info *all = calloc(BENCH_GPUS_MAX, sizeof(*all));
    int count = all ? weft_context_gpus(context, all, BENCH_GPUS_MAX) : 0, rc;

    if (!all)
        return wf_fail(status, -ENOMEM, "no memory for a list of GPUs");
    if (count > BENCH_GPUS_MAX)
        count = BENCH_GPUS_MAX;
    rc = bench_gpus_pick(wf_config_text(config, WF_SET_GPUS), all, count, gpus->infos, status);
    free(all);
    if (rc < 0)
        return rc;
    gpus->count = (uint32_t)rc;
    gpus->memory = bench_memory_named(weft_context_memory(context));
    gpus->staging_bytes = 2 * (uint64_t)wf_config_number(config, WF_SET_STAGING);
    return 0;
}

int bench_gpus_choose(struct bench_gpus *gpus, const struct bench_options *options, int node,
                      const struct weft_context *context, struct wf_status *status)
{
    const struct wf_config *config = options->config;
    const char *memory = wf_config_text(config, WF_SET_MEMORY), *list = wf_config_text(config, WF_SET_GPUS);
    bool pair = options->command == BENCH_PAIR;
    bool names_gpu = pair && bench_plan_names(config, node, "gpu");
    bool names_host = pair && bench_plan_names(config, node, "host");
    bool wanted = names_gpu || list[0] || strcmp(memory, "cuda") == 0;
    char why[300];

    memset(gpus, 0, sizeof(*gpus));
    if (names_gpu && (names_host || strcmp(memory, "host") == 0))
        return wf_fail(status, -EINVAL, "--src and --dst name a GPU of node%d, and %s: name one kind of memory", node,
                       names_host ? "host memory there, too" : "--memory is host");
    if (names_host && strcmp(memory, "cuda") == 0)
        return wf_fail(status, -EINVAL,
                       "--src and --dst name host memory of node%d, and --memory is cuda: name one kind of memory",
                       node);
    if (names_host || strcmp(memory, "host") == 0)
        return 0;
    if (strcmp(weft_context_memory(context), "host") != 0)
        return fill(gpus, config, context, status);
    if (!wanted)
        return 0;
    return wf_fail(status, -EOPNOTSUPP, "%s: no GPU memory at node%d: %s",
                   names_gpu ? "--src, --dst"
                   : list[0] ? "--gpus"
                             : "--memory cuda",
                   node, why_none(context, config, why, sizeof(why)));
}

const struct weft_gpu_info *bench_gpu_of(const struct bench_gpus *gpus, uint32_t endpoint)
{
    return gpus->count ? &gpus->infos[endpoint % gpus->count] : NULL;
}

/* ------------------------------------------------------------------------------------------- for people, results */

char *bench_gpus_sharing(const struct bench_gpus *gpus, uint32_t endpoints, char *buffer, size_t room)
{
    uint32_t used = gpus->count < endpoints ? gpus->count : endpoints;
    bool plain = endpoints <= gpus->count;
    char names[400];

    buffer[0] = '\0';
    for (uint32_t i = 0; i < used; i++)
        plain &= gpus->infos[i].index == (int32_t)i;
    if (used == 0 || plain)
        return buffer;
    snprintf(buffer, room, "%u endpoint%s on %u GPU%s (%s%s)", endpoints, endpoints == 1 ? "" : "s", used,
             used == 1 ? "" : "s", name_all(gpus->infos, (int)used, names, sizeof(names)), used > 1 ? ", in turn" : "");
    return buffer;
}

static json_t *endpoints_on(const struct bench_gpus *gpus, uint32_t at, uint32_t endpoints)
{
    json_t *all = json_array();

    for (uint32_t i = at; i < endpoints; i += gpus->count)
        json_array_append_new(all, json_sprintf("gpu%u", i));
    return all;
}

json_t *bench_gpus_to_json(const struct bench_gpus *gpus, uint32_t endpoints)
{
    json_t *all = json_array();

    for (uint32_t i = 0; i < gpus->count && i < endpoints; i++) {
        const struct weft_gpu_info *info = &gpus->infos[i];
        json_array_append_new(all, json_pack("{s:i, s:s, s:o, s:o, s:I, s:o}", "gpu", info->index, "name", info->name,
                                             "pci", info->pci[0] ? json_string(info->pci) : json_null(), "numa_node",
                                             info->numa_node >= 0 ? json_integer(info->numa_node) : json_null(),
                                             "memory_bytes", (json_int_t)info->bytes, "endpoints",
                                             endpoints_on(gpus, i, endpoints)));
    }
    return all;
}
