/* Device-memory TCP for people: each rail that could, what it has of it, and what it is to each GPU. */
#include "affinity/show/device_show.h"

#include <string.h>

#include "affinity/show/fold.h"
#include "affinity/show/words.h"

const struct wf_nic *wf_show_nic_of(const struct wf_show *show, int rail)
{
    int at = wf_machine_nic(show->machine, show->plan->rails[rail].device);
    return at < 0 ? NULL : &show->machine->nics[at];
}

enum wf_step wf_show_step(const struct wf_show *show, int rail, int gpu)
{
    for (int i = 0; i < show->plan->endpoint_count; i++)
        if (show->plan->endpoints[i].gpu == gpu)
            return wf_show_step_to(show->plan, &show->plan->endpoints[i], rail);
    const struct wf_nic *nic = wf_show_nic_of(show, rail);
    const struct wf_gpu *to = &show->machine->gpus[gpu];
    return nic ? wf_step_between(&nic->path, nic->node, &to->path, to->node) : WF_STEP_UNKNOWN;
}

bool wf_show_has_device_way(const struct wf_show *show, int rail)
{
    const struct wf_nic *nic = wf_show_nic_of(show, rail);
    return !show->machine->foreign && show->machine->gpu_count > 0 && nic &&
           wf_rail_has_device_way(nic, &show->paths[rail]);
}

const struct wf_obstacle *wf_show_rail_obstacle(const struct wf_show *show, int rail)
{
    for (int i = 0; i < show->obstacle_counts[rail]; i++)
        if (strcmp(show->obstacles[rail][i].path, WF_DEVICE_MEMORY) == 0)
            return &show->obstacles[rail][i];
    return NULL;
}

/* What nobody can change comes first: a card that never can, then a GPU that never can. */
const struct wf_obstacle *wf_show_first_obstacle(const struct wf_show *show, int rail, int gpu,
                                                 struct wf_obstacle *room)
{
    if (!wf_show_has_device_way(show, rail) || show->gpu_ways[gpu].dmabuf != 0)
        return wf_show_rail_obstacle(show, rail);
    *room = (struct wf_obstacle){.path = WF_DEVICE_MEMORY};
    snprintf(room->why, sizeof room->why, "%s", show->gpu_ways[gpu].why);
    return room;
}

/* --- a rail --- */

static size_t put(char *line, size_t used, const char *format, int64_t number)
{
    if (number < 0 || used >= WF_SHOW_TEXT)
        return used;
    return used + (size_t)snprintf(line + used, WF_SHOW_TEXT - used, format, (long long)number);
}

static void put_facts(FILE *out, const struct wf_show *show, int rail)
{
    static const char *const splits[] = {"unknown", "off", "on"}, *const rules[] = {"off", "on"};
    const struct wf_device_way *way = &show->paths[rail].device;
    const struct wf_nic *nic = wf_show_nic_of(show, rail);
    char line[WF_SHOW_TEXT];
    size_t used = (size_t)snprintf(line, sizeof line, "%s: %s, header split %s", show->plan->rails[rail].name,
                                   nic->driver[0] ? nic->driver : "no driver", splits[way->header_split + 1]);
    used = put(line, used, ", hds-thresh %lld", way->hds_thresh);
    used = put(line, used, way->queues == 1 ? ", %lld queue" : ", %lld queues", way->queues);
    used = put(line, used, ", %lld set aside", way->queues_aside);
    if (way->rules >= 0 && used < sizeof line)
        used += (size_t)snprintf(line + used, sizeof line - used, ", rules for flows %s", rules[way->rules]);
    if (way->rules_most > 0) {
        used = put(line, used, " (%lld", way->rules_used);
        used = put(line, used, " of %lld)", way->rules_most);
    }
    if (way->by_port)
        used = put(line, used, ", by port, as it has shown: each GPU has one for its payload", 0);
    else if (wf_driver_has_device_way(nic->driver))
        used = put(line, used, ", by 5-tuple, as its driver's sources say", 0);
    struct wf_buffer_fit fit = wf_buffer_fit(nic->mtu, show->system.buffer_bytes);
    used = put(line, used, ", MTU %lld", nic->mtu);
    used = put(line, used, " (%lld %%", fit.unused_percent);
    if (fit.unused_percent >= 0)
        put(line, used, " of buffers of %lld bytes unused)", show->system.buffer_bytes);
    wf_show_wrapped(out, 2, 2, line);
}

static void put_first(FILE *out, const struct wf_show *show, int rail)
{
    const struct wf_device_way *way = &show->paths[rail].device;
    const struct wf_obstacle *first = wf_show_rail_obstacle(show, rail);
    if (!first)
        fprintf(out, "    ready, as far as the card is concerned\n");
    else
        wf_show_remedy(out, 4, first->why, first->change);
    if (first && way->prepared)
        fprintf(out, "    weft nic prepare %s changes this and what else it needs\n", wf_show_nic_of(show, rail)->name);
}

static void put_gpus(FILE *out, const struct wf_show *show, int rail)
{
    static const char *const exports[] = {"dma-buf not asked for", "no dma-buf", "dma-buf"};
    struct wf_show_folded folded = {.out = out, .column = 4};
    for (int gpu = 0; gpu < show->machine->gpu_count; gpu++) {
        const struct wf_gpu_way *way = &show->gpu_ways[gpu];
        char name[16], body[WF_SHOW_TEXT];
        snprintf(name, sizeof name, "gpu%d", gpu);
        snprintf(body, sizeof body, "%s, %s%s%s", wf_step_text(wf_show_step(show, rail, gpu)), exports[way->dmabuf + 1],
                 way->why[0] ? ": " : "", way->why);
        wf_show_fold(&folded, name, body);
    }
    wf_show_unfold(&folded);
}

void wf_show_device_text(FILE *out, const struct wf_show *show)
{
    bool any = false;
    for (int rail = 0; rail < show->plan->rail_count; rail++) {
        if (!wf_show_has_device_way(show, rail))
            continue;
        if (!any)
            fprintf(out, "\ndevice memory (TCP from the wire into GPUs; Linux %s)\n", show->system.release);
        any = true;
        put_facts(out, show, rail);
        put_first(out, show, rail);
        put_gpus(out, show, rail);
    }
}
