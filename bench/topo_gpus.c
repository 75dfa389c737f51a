/* What weft topo says of GPU memory: which way it goes, or why there is none; and which GPU of the driver is which of
 * the machine's. */
#include <stdio.h>
#include <string.h>

#include "gpus.h"
#include "topo.h"

static int place_of(const struct wf_machine *machine, const char *pci)
{
    for (int i = 0; i < machine->gpu_count; i++)
        if (pci[0] && strcmp(machine->gpus[i].pci, pci) == 0)
            return i;
    return -1;
}

/* "; GPU 1 of the driver is gpu3 (0000:19:00.0, NVIDIA H100)". Returns the length. */
static size_t add_gpu(const struct wf_machine *machine, const struct weft_gpu_info *info, char *text, size_t room)
{
    int place = place_of(machine, info->pci);
    const char *pci = info->pci[0] ? info->pci : "no PCI address";
    int length;

    if (place >= 0)
        length = snprintf(text, room, "; GPU %d of the driver is gpu%d (%s, %s)", info->index, place, pci, info->name);
    else
        length = snprintf(text, room, "; GPU %d of the driver (%s, %s) is not among the PCI devices here", info->index,
                          pci, info->name);
    return (size_t)length < room ? (size_t)length : room;
}

static void say_all(const struct wf_machine *machine, const struct weft_gpu_info *infos, int count,
                    enum bench_memory memory, char *text, size_t room)
{
    size_t used = (size_t)snprintf(text, room, "GPUs: %d, memory %s, staged through pinned host memory", count,
                                   bench_memory_name(memory));

    for (int i = 0; i < count && used < room; i++)
        used += add_gpu(machine, &infos[i], text + used, room - used);
    if (used + 2 < room)
        memcpy(text + used, ".", 2);
}

void bench_topo_gpus(const struct wf_machine *machine, const struct wf_config *config, char *text, size_t room)
{
    static struct weft_gpu_info infos[BENCH_GPUS_MAX]; /* large; a command of one thread */
    struct wf_status status = {0};
    enum bench_memory memory = BENCH_HOST;
    int count;

    if (machine->foreign) {
        snprintf(text, room,
                 machine->gpu_count ? "GPU memory: staged through pinned host memory near each GPU."
                                    : "GPU memory: none, as the description has no GPU.");
        return;
    }
    if (strcmp(wf_config_text(config, WF_SET_CUDA), "off") == 0) {
        snprintf(text, room, "GPUs: none used: cuda = off.");
        return;
    }
    count = bench_gpus_find(infos, BENCH_GPUS_MAX, &memory, &status);
    if (count <= 0)
        snprintf(text, room, "GPUs: none usable: %s.", status.text);
    else
        say_all(machine, infos, count, memory, text, room);
}
