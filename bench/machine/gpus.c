#include "gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/cpus.h"
#include "affinity/pin.h"
#include "bench/plan/names.h"
#include "bench/words/words.h"
#include "mem/memory.h"

/* --- the list --- */

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
                       name_all(all, count, there, sizeof there));
    picked[kept] = all[at];
    return 0;
}

int bench_gpus_pick(const char *list, const struct weft_gpu_info *all, int count, struct weft_gpu_info *picked,
                    struct wf_status *status)
{
    char copy[WF_VALUE_MAX];
    char *rest = copy, *word;
    int kept = 0, result = 0;

    if (!list[0] || strcmp(list, "all") == 0) {
        memcpy(picked, all, (size_t)count * sizeof *all);
        return count;
    }
    bench_copy_text(copy, sizeof copy, list);
    while (result == 0 && (word = bench_next_word(&rest, ',')) != NULL) {
        const char *at = word;
        long first, last;
        if (!wf_cpus_range(&at, &first, &last))
            return wf_fail(status, -EINVAL, "--gpus %.60s: '%.40s' is no GPU by its number: use 0,2,5-7 or all", list,
                           word);
        for (long index = first; result == 0 && index <= last; index++) {
            result = pick_one(index, all, count, picked, kept, status);
            kept += result == 0;
        }
    }
    return result ? result : kept;
}

/* --- which there are --- */

int bench_gpus_find(struct weft_gpu_info *infos, int max, enum bench_memory *memory, struct wf_status *status)
{
    struct wf_device_info *devices = calloc(WF_DEVICES_MAX, sizeof *devices);
    struct wf_memory *driver = NULL;
    int result = devices ? wf_memory_cuda.open(NULL, &driver, status) : wf_fail(status, -ENOMEM, "no memory for GPUs");
    int count = result ? 0 : wf_memory_cuda.devices(driver, devices, WF_DEVICES_MAX);

    for (int i = 0; i < count && i < max && i < WF_DEVICES_MAX; i++) {
        infos[i] = (struct weft_gpu_info){
            .index = devices[i].index, .numa_node = wf_place_of_device(devices[i].pci), .bytes = devices[i].bytes};
        bench_copy_text(infos[i].name, sizeof infos[i].name, devices[i].name);
        bench_copy_text(infos[i].pci, sizeof infos[i].pci, devices[i].pci);
    }
    if (result == 0) {
        *memory = bench_memory_named(wf_memory_cuda.name(driver));
        wf_memory_cuda.close(driver);
    }
    free(devices);
    return result ? result : count < max ? count : max;
}

/* --- what is asked --- */

/* What asks for GPU memory, in words; NULL: nothing does. */
static const char *asks(const struct wf_config *config, int node, bool names_gpu)
{
    if (names_gpu)
        return "--src, --dst";
    if (strcmp(wf_config_text(config, WF_SET_MEMORY), "cuda") == 0)
        return "memory = cuda";
    if (strcmp(wf_config_text(config, WF_SET_CUDA), "require") == 0)
        return "cuda = require";
    /* weft topo, which is no node, shows what is in the way. */
    if (node != BENCH_NO_NODE && strcmp(wf_config_text(config, WF_SET_DEVMEM), "require") == 0)
        return "devmem = require";
    return wf_config_text(config, WF_SET_GPUS)[0] ? "gpus" : NULL;
}

static int check_words(const struct wf_config *config, int node, bool names_gpu, bool names_host,
                       struct wf_status *status)
{
    const char *memory = wf_config_text(config, WF_SET_MEMORY);

    if (names_gpu && (names_host || strcmp(memory, "host") == 0))
        return wf_fail(status, -EINVAL, "--src and --dst name a GPU of node%d, and %s: name one kind of memory", node,
                       names_host ? "host memory there, too" : "--memory is host");
    if (names_host && strcmp(memory, "cuda") == 0)
        return wf_fail(status, -EINVAL,
                       "--src and --dst name host memory of node%d, and --memory is cuda: name one kind", node);
    return 0;
}

static int take(struct bench_gpus *gpus, const struct wf_config *config, const struct weft_gpu_info *all, int count,
                enum bench_memory memory, struct wf_status *status)
{
    int result = bench_gpus_pick(wf_config_text(config, WF_SET_GPUS), all, count, gpus->infos, status);

    if (result < 0)
        return result;
    gpus->count = (uint32_t)result;
    gpus->memory = memory;
    gpus->staging_bytes = 2 * (uint64_t)wf_config_number(config, WF_SET_STAGING);
    return 0;
}

/* A machine without a driver has nothing to tell; one whose driver does not work has. */
static int refuse(struct bench_gpus *gpus, const char *asked, int node, const char *why, const char *remedy,
                  struct wf_status *status)
{
    char where[24] = "here";

    if (node != BENCH_NO_NODE)
        snprintf(where, sizeof where, "at node%d", node);
    if (asked)
        return wf_fail(status, -EOPNOTSUPP, "%s: no GPU memory %s: %s: %s", asked, where, why, remedy);
    if (wf_memory_cuda.present(NULL))
        snprintf(gpus->fallback, sizeof gpus->fallback, "cuda: no GPU memory: %s", why);
    return 0;
}

int bench_gpus_choose(struct bench_gpus *gpus, const struct bench_options *options, int node, struct wf_status *status)
{
    const struct wf_config *config = options->config;
    bool pair = options->command == BENCH_PAIR;
    bool names_gpu = pair && bench_plan_names(config, node, "gpu");
    bool names_host = pair && bench_plan_names(config, node, "host"), host;
    const char *asked = asks(config, node, names_gpu);
    enum bench_memory memory = BENCH_HOST;
    struct weft_gpu_info *all;
    struct wf_status why = {0};
    int result = check_words(config, node, names_gpu, names_host, status);

    memset(gpus, 0, sizeof *gpus);
    if (result)
        return result;
    host = names_host || strcmp(wf_config_text(config, WF_SET_MEMORY), "host") == 0;
    if (host && strcmp(wf_config_text(config, WF_SET_CUDA), "require") != 0)
        return 0;
    if (strcmp(wf_config_text(config, WF_SET_CUDA), "off") == 0)
        return asked ? refuse(gpus, asked, node, "cuda = off", "leave one of them out", status) : 0;
    all = calloc(BENCH_GPUS_MAX, sizeof *all);
    if (!all)
        return wf_fail(status, -ENOMEM, "no memory for a list of GPUs");
    int count = bench_gpus_find(all, BENCH_GPUS_MAX, &memory, &why);
    if (count > 0)
        result = host ? 0 : take(gpus, config, all, count, memory, status);
    else
        result =
            refuse(gpus, asked, node, why.text, "leave it out, or use a machine with GPUs and their driver", status);
    free(all);
    return result;
}

const struct weft_gpu_info *bench_gpu_of(const struct bench_gpus *gpus, uint32_t endpoint)
{
    return gpus->count ? &gpus->infos[endpoint % gpus->count] : NULL;
}

/* --- for people, results --- */

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
             used == 1 ? "" : "s", name_all(gpus->infos, (int)used, names, sizeof names), used > 1 ? ", in turn" : "");
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
