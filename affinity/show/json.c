/* A machine and its plan for programs: schema weft.topo/1. */
#include "affinity/show/show.h"

#include <string.h>

#include "affinity/show/device_show.h"
#include "affinity/show/json_words.h"
#include "affinity/show/words.h"

#define CPUS_TEXT 4096

static json_t *cpus_to_json(const struct wf_cpus *cpus)
{
    char text[CPUS_TEXT];
    return json_string(wf_cpus_count(cpus) ? wf_cpus_text(cpus, text, sizeof text) : "");
}

static json_t *path_to_json(const struct wf_path *path)
{
    json_t *steps = json_array();
    for (int i = 0; i < path->depth; i++)
        json_array_append_new(steps, wf_show_json_text(path->step[i]));
    return steps;
}

/* --- the machine --- */

static json_t *nodes_to_json(const struct wf_machine *machine)
{
    json_t *nodes = json_array();
    for (int i = 0; i < machine->node_count; i++) {
        const struct wf_node *node = &machine->nodes[i];
        json_array_append_new(nodes, json_pack("{s:i, s:I, s:i, s:o}", "numa_node", node->id, "memory_bytes",
                                               (json_int_t)node->bytes, "cores", wf_show_cores(machine, node->id),
                                               "processors", cpus_to_json(&node->cpus)));
    }
    return nodes;
}

static json_t *gpus_to_json(const struct wf_machine *machine)
{
    json_t *gpus = json_array();
    for (int i = 0; i < machine->gpu_count; i++) {
        const struct wf_gpu *gpu = &machine->gpus[i];
        json_array_append_new(gpus,
                              json_pack("{s:i, s:o, s:o, s:o, s:o}", "gpu", i, "model", wf_show_json_text(gpu->name),
                                        "pci", wf_show_json_text(gpu->pci), "numa_node", wf_show_json_known(gpu->node),
                                        "pcie_path", path_to_json(&gpu->path)));
    }
    return gpus;
}

static json_t *nics_to_json(const struct wf_machine *machine)
{
    json_t *nics = json_array();
    for (int i = 0; i < machine->nic_count; i++) {
        const struct wf_nic *nic = &machine->nics[i];
        json_array_append_new(
            nics, json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o}", "nic", wf_show_json_text(nic->name),
                            "pci", wf_show_json_text(nic->pci), "driver", wf_show_json_text(nic->driver), "numa_node",
                            wf_show_json_known(nic->node), "up", nic->up, "speed_mbit_per_s",
                            wf_show_json_known(nic->speed_mbit), "mtu_bytes", wf_show_json_known(nic->mtu), "rx_queues",
                            wf_show_json_known(nic->queues), "irq_cores", cpus_to_json(&nic->irq), "pcie_path",
                            path_to_json(&nic->path)));
    }
    return nics;
}

static json_t *machine_to_json(const struct wf_machine *machine)
{
    return json_pack("{s:o, s:b, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o}", "name", wf_show_json_text(machine->name),
                     "foreign", machine->foreign, "packages", wf_show_packages(machine), "cores",
                     wf_show_cores(machine, WF_NO_NODE), "online", cpus_to_json(&machine->online), "present",
                     cpus_to_json(&machine->present), "allowed", cpus_to_json(&machine->allowed), "nodes",
                     nodes_to_json(machine), "gpus", gpus_to_json(machine), "nics", nics_to_json(machine));
}

/* --- the plan --- */

static json_t *endpoints_to_json(const struct wf_plan *plan)
{
    json_t *endpoints = json_array();
    for (int i = 0; i < plan->endpoint_count; i++) {
        const struct wf_plan_endpoint *endpoint = &plan->endpoints[i];
        json_t *rails = json_array(), *others = json_array(), *distances = json_object();
        for (int k = 0; k < plan->rail_count; k++) {
            const char *name = plan->rails[endpoint->rails[k]].name;
            json_array_append_new(k < endpoint->rail_count ? rails : others, wf_show_json_text(name));
            json_object_set_new(distances, name, json_string(wf_step_text(endpoint->steps[k])));
        }
        json_array_append_new(endpoints, json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "endpoint", endpoint->name, "gpu",
                                                   wf_show_json_known(endpoint->gpu), "numa_node",
                                                   wf_show_json_known(endpoint->node), "rails", rails, "other_rails",
                                                   others, "distances", distances));
    }
    return endpoints;
}

static json_t *rails_to_json(const struct wf_plan *plan)
{
    json_t *rails = json_array();
    for (int i = 0; i < plan->rail_count; i++) {
        const struct wf_plan_rail *rail = &plan->rails[i];
        json_array_append_new(rails, json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:b}", "rail",
                                               wf_show_json_text(rail->name), "device", wf_show_json_text(rail->device),
                                               "tx_cores", cpus_to_json(&rail->tx), "rx_cores", cpus_to_json(&rail->rx),
                                               "numa_node", wf_show_json_known(rail->node), "tx_given", rail->tx_given,
                                               "rx_given", rail->rx_given, "tx_and_rx_share", rail->shares,
                                               "rails_share", rail->others));
    }
    return rails;
}

static json_t *notes_to_json(const char *notes)
{
    json_t *lines = json_array();
    while (*notes) {
        size_t length = strcspn(notes, "\n");
        json_array_append_new(lines, json_stringn(notes, length));
        notes += length + (notes[length] == '\n');
    }
    return lines;
}

static json_t *plan_to_json(const struct wf_plan *plan)
{
    static const char *const pins[] = {"off", "auto", "require"}, *const policies[] = {"auto", "near", "node", "all"};
    return json_pack("{s:s, s:s, s:o, s:o, s:o}", "pin", pins[plan->pin], "rail_policy", policies[plan->rail_policy],
                     "endpoints", endpoints_to_json(plan), "rails", rails_to_json(plan), "notes",
                     notes_to_json(plan->notes));
}

/* --- what is in the way --- */

static json_t *paths_to_json(const struct wf_show *show)
{
    json_t *paths = json_array();
    for (int i = 0; i < show->plan->rail_count && !show->machine->foreign; i++) {
        const struct wf_rail_path *path = &show->paths[i];
        json_array_append_new(paths, json_pack("{s:o, s:b, s:o, s:o, s:o, s:o}", "rail",
                                               wf_show_json_text(show->plan->rails[i].name), "loopback", path->loopback,
                                               "scatter_gather", wf_show_json_on(path->sg), "tso",
                                               wf_show_json_on(path->tso), "gro", wf_show_json_on(path->gro),
                                               "header_split", wf_show_json_on(path->header_split)));
    }
    return paths;
}

static json_t *obstacles_to_json(const struct wf_show *show)
{
    json_t *obstacles = json_array();
    for (int i = 0; i < show->plan->rail_count; i++)
        for (int k = 0; k < show->obstacle_counts[i]; k++) {
            const struct wf_obstacle *obstacle = &show->obstacles[i][k];
            json_array_append_new(
                obstacles, json_pack("{s:o, s:s, s:s, s:s}", "rail", wf_show_json_text(show->plan->rails[i].name),
                                     "path", obstacle->path, "why", obstacle->why, "change", obstacle->change));
        }
    return obstacles;
}

static json_t *left_out_to_json(const struct wf_show *show)
{
    json_t *list = json_array();
    for (int i = 0; i < show->left_count; i++) {
        const struct wf_left_out *one = &show->left_out[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:s, s:o}", "interface", wf_show_json_text(one->interface),
                                              "address", wf_show_json_text(one->address), "why", one->why, "remedy",
                                              wf_show_json_text(one->remedy)));
    }
    return list;
}

json_t *wf_show_json(const struct wf_show *show)
{
    return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "schema", "weft.topo/1", "machine",
                     machine_to_json(show->machine), "plan", plan_to_json(show->plan), "gpu_path", show->gpu_path,
                     "paths", paths_to_json(show), "obstacles", obstacles_to_json(show), "device_memory",
                     wf_show_device_json(show), "left_out", left_out_to_json(show));
}
