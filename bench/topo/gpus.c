/* The GPUs of weft topo: those that a run here would take, by the numbers that it knows them by; and what is said of
 * their memory: which way it goes, or why there is none. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bench/machine/gpus.h"
#include "bench/plan/names.h"
#include "bench/words/words.h"
#include "topo.h"

/* --- where they are --- */

static int place_of(const struct wf_machine *machine, const char *pci)
{
    for (int i = 0; i < machine->gpu_count; i++)
        if (pci[0] && strcmp(machine->gpus[i].pci, pci) == 0)
            return i;
    return -1;
}

/* Moves a GPU of the machine, or one that is not among its PCI devices, to the place of its number. Those that are of
 * no driver keep their order behind. False: it was not there. */
static bool settle(struct wf_machine *machine, const struct weft_gpu_info *info, int number)
{
    int from = place_of(machine, info->pci);
    bool known = from >= number;
    struct wf_gpu gpu = {.node = info->numa_node >= 0 ? info->numa_node : WF_NO_NODE};

    if (known) {
        gpu = machine->gpus[from];
    } else {
        from = machine->gpu_count < WF_GPUS_MAX ? machine->gpu_count++ : WF_GPUS_MAX - 1;
        bench_copy_text(gpu.pci, sizeof gpu.pci, info->pci);
    }
    bench_copy_text(gpu.name, sizeof gpu.name, info->name);
    memmove(&machine->gpus[number + 1], &machine->gpus[number], (size_t)(from - number) * sizeof gpu);
    machine->gpus[number] = gpu;
    return known;
}

/* All that the driver has get their numbers in the machine; and what is said of them. */
static void take_all(struct wf_machine *machine, const struct weft_gpu_info *infos, int count, enum bench_memory memory,
                     char *text, size_t room)
{
    char apart[64] = "", others[64] = "";
    int unknown = 0;

    for (int i = 0; i < count && i < WF_GPUS_MAX; i++)
        unknown += !settle(machine, &infos[i], i);
    if (unknown)
        snprintf(apart, sizeof apart, "; %d of them %s not among the PCI devices here", unknown,
                 unknown == 1 ? "is" : "are");
    if (machine->gpu_count > count)
        snprintf(others, sizeof others, "; gpu%d and up are not the driver's", count);
    snprintf(text, room, "GPUs: %d, memory %s, staged through pinned host memory%s%s.", count,
             bench_memory_name(memory), apart, others);
}

/* --- whether cards reach them --- */

static bool any_card_could(const struct wf_show *show)
{
    for (int i = 0; i < show->plan->rail_count; i++)
        if (wf_show_has_device_way(show, i))
            return true;
    return false;
}

void bench_topo_ask_gpus(struct wf_show *show, int count)
{
    static struct bench_gpu_export exports[BENCH_GPUS_MAX]; /* large; a command of one thread */
    struct wf_status why = {.text = "Weft does not use this GPU, as said above"};

    if (!any_card_could(show))
        return;
    int asked = count > 0 ? bench_gpus_exports(exports, count, &why) : 0;
    for (int i = 0; i < show->machine->gpu_count; i++) {
        struct wf_gpu_way *way = &show->gpu_ways[i];
        way->dmabuf = i < asked && exports[i].able;
        bench_copy_text(way->why, sizeof way->why, i < asked ? exports[i].why : why.text);
    }
}

/* --- the whole --- */

/* Of another machine nothing is known but what its description has. What is asked for is refused as a run would. */
static int of_description(const struct wf_machine *machine, const struct wf_config *config, char *text, size_t room,
                          struct wf_status *status)
{
    const char *cuda = wf_config_text(config, WF_SET_CUDA), *memory = wf_config_text(config, WF_SET_MEMORY);
    bool off = strcmp(cuda, "off") == 0, host = strcmp(memory, "host") == 0;
    const char *asked = strcmp(memory, "cuda") == 0 ? "memory = cuda" : NULL;

    if (!asked && strcmp(cuda, "require") == 0)
        asked = "cuda = require";
    if (asked && !off && machine->gpu_count == 0)
        return wf_fail(status, -EOPNOTSUPP, "%s: no GPU memory there: the description has no GPU", asked);
    if (!asked && !host && wf_config_text(config, WF_SET_GPUS)[0])
        asked = "gpus";
    if (asked && off)
        return wf_fail(status, -EOPNOTSUPP, "%s: no GPU memory there: cuda = off", asked);
    if (off || host)
        snprintf(text, room, "GPUs: none used: %s.", off ? "cuda = off" : "memory = host");
    else
        snprintf(text, room,
                 machine->gpu_count ? "GPU memory: staged through pinned host memory near each GPU."
                                    : "GPU memory: none, as the description has no GPU.");
    return off || host ? 0 : machine->gpu_count;
}

int bench_topo_gpus(struct wf_machine *machine, const struct bench_options *options, char *text, size_t room,
                    struct wf_status *status)
{
    static struct weft_gpu_info infos[BENCH_GPUS_MAX]; /* large; a command of one thread */
    static struct bench_gpus chosen;
    const struct wf_config *config = options->config;
    enum bench_memory memory = BENCH_HOST;
    struct wf_status why = {0};

    if (machine->foreign)
        return of_description(machine, config, text, room, status);
    int result = bench_gpus_choose(&chosen, options, BENCH_NO_NODE, status);
    if (result)
        return result;
    if (strcmp(wf_config_text(config, WF_SET_CUDA), "off") == 0) {
        snprintf(text, room, "GPUs: none used: cuda = off.");
        return 0;
    }
    if (strcmp(wf_config_text(config, WF_SET_MEMORY), "host") == 0) {
        snprintf(text, room, "GPUs: none used: memory = host.");
        return 0;
    }
    int count = bench_gpus_find(infos, BENCH_GPUS_MAX, &memory, &why);
    if (count <= 0)
        snprintf(text, room, "GPUs: none usable: %s.", why.text);
    else
        take_all(machine, infos, count, memory, text, room);
    return count < 0 ? 0 : count < WF_GPUS_MAX ? count : WF_GPUS_MAX;
}
