/* Device-memory TCP for programs: the member device_memory of weft.topo/1. */
#include "affinity/show/device_show.h"
#include "affinity/show/json_words.h"

static void add_obstacle(json_t *to, const struct wf_obstacle *obstacle)
{
    json_object_set_new(to, "why", wf_show_json_text(obstacle ? obstacle->why : ""));
    json_object_set_new(to, "change", wf_show_json_text(obstacle ? obstacle->change : ""));
}

static json_t *rail_to_json(const struct wf_show *show, int rail, const struct wf_nic *nic)
{
    const struct wf_device_way *way = &show->paths[rail].device;
    struct wf_buffer_fit fit = wf_buffer_fit(nic->mtu, show->system.buffer_bytes);
    json_t *one = json_pack(
        "{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "rail",
        wf_show_json_text(show->plan->rails[rail].name), "possible", wf_rail_has_device_way(nic, &show->paths[rail]),
        "driver", wf_show_json_text(nic->driver), "header_split", wf_show_json_on(way->header_split),
        "hds_thresh_bytes", wf_show_json_known(way->hds_thresh), "rx_queues", wf_show_json_known(way->queues),
        "rx_queues_aside", wf_show_json_known(way->queues_aside), "rules", wf_show_json_on(way->rules), "rules_most",
        wf_show_json_known(way->rules_most), "rules_used", wf_show_json_known(way->rules_used), "rules_5_tuple",
        way->by_port                            ? json_false()
        : wf_driver_has_device_way(nic->driver) ? json_true()
                                                : json_null(),
        "mtu_bytes", wf_show_json_known(nic->mtu), "buffer_bytes", show->system.buffer_bytes, "buffers_unused_percent",
        wf_show_json_known(fit.unused_percent), "full_mtu_bytes", wf_show_json_known(fit.full_mtu));
    add_obstacle(one, wf_show_rail_obstacle(show, rail));
    return one;
}

static json_t *gpus_to_json(const struct wf_show *show)
{
    json_t *gpus = json_array();
    for (int gpu = 0; gpu < show->machine->gpu_count; gpu++)
        json_array_append_new(gpus, json_pack("{s:i, s:o, s:o}", "gpu", gpu, "dmabuf",
                                              wf_show_json_on(show->gpu_ways[gpu].dmabuf), "why",
                                              wf_show_json_text(show->gpu_ways[gpu].why)));
    return gpus;
}

static void add_pairs(const struct wf_show *show, int rail, json_t *pairs)
{
    for (int gpu = 0; gpu < show->machine->gpu_count; gpu++) {
        struct wf_obstacle room;
        json_t *pair = json_pack("{s:o, s:i, s:s}", "rail", wf_show_json_text(show->plan->rails[rail].name), "gpu", gpu,
                                 "distance", wf_step_text(wf_show_step(show, rail, gpu)));
        add_obstacle(pair, wf_show_first_obstacle(show, rail, gpu, &room));
        json_array_append_new(pairs, pair);
    }
}

json_t *wf_show_device_json(const struct wf_show *show)
{
    if (show->machine->foreign)
        return json_null();
    json_t *rails = json_array(), *pairs = json_array();
    for (int rail = 0; rail < show->plan->rail_count; rail++) {
        const struct wf_nic *nic = wf_show_nic_of(show, rail);
        if (!nic)
            continue;
        json_array_append_new(rails, rail_to_json(show, rail, nic));
        add_pairs(show, rail, pairs);
    }
    return json_pack("{s:o, s:b, s:o, s:o, s:o}", "kernel", wf_show_json_text(show->system.release), "net_admin",
                     show->system.net_admin, "rails", rails, "gpus", gpus_to_json(show), "pairs", pairs);
}
