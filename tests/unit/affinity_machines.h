/*
 * affinity_machines.h: machines made by hand, for tests of what is decided about them. Processors are numbered as most
 * machines do it: first threads of all cores, node after node, then the second threads.
 */
#ifndef WF_TESTS_AFFINITY_MACHINES_H
#define WF_TESTS_AFFINITY_MACHINES_H

#include <stdio.h>
#include <string.h>

#include "affinity/plan.h"

static inline void shape(struct wf_machine *machine, int nodes, int cores, int threads)
{
    memset(machine, 0, sizeof(*machine));
    machine->node_count = nodes;
    for (int i = 0; i < nodes; i++)
        machine->nodes[i] = (struct wf_node){.id = i, .bytes = UINT64_C(1) << 30};
    for (int id = 0; id < nodes * cores * threads; id++) {
        int core = id % (nodes * cores), node = core / cores;
        machine->cpus[machine->cpu_count++] = (struct wf_cpu){.id = id, .core = core, .package = node, .node = node};
        wf_cpus_add(&machine->nodes[node].cpus, id);
        wf_cpus_add(&machine->online, id);
    }
    machine->present = machine->allowed = machine->online;
}

/* Another node behind a machine, with processors of its own. */
static inline void grow(struct wf_machine *machine, int cores, int threads)
{
    int first = machine->cpu_count, node = machine->node_count++;
    machine->nodes[node] = (struct wf_node){.id = node, .bytes = UINT64_C(1) << 30};
    for (int i = 0; i < cores * threads; i++) {
        machine->cpus[machine->cpu_count++] =
            (struct wf_cpu){.id = first + i, .core = first + i % cores, .package = node, .node = node};
        wf_cpus_add(&machine->nodes[node].cpus, first + i);
        wf_cpus_add(&machine->online, first + i);
    }
    machine->present = machine->allowed = machine->online;
}

/* Other ids for the nodes, ascending. Before there are devices. */
static inline void renumber(struct wf_machine *machine, const int *ids)
{
    for (int i = 0; i < machine->cpu_count; i++)
        machine->cpus[i].node = ids[wf_machine_node(machine, machine->cpus[i].node)];
    for (int i = 0; i < machine->node_count; i++)
        machine->nodes[i].id = ids[i];
}

static inline void cpus_remove(struct wf_cpus *set, int cpu)
{
    set->words[cpu / 64] &= ~(UINT64_C(1) << (cpu % 64));
}

static inline void offline(struct wf_machine *machine, int id)
{
    int left = 0;
    for (int i = 0; i < machine->cpu_count; i++)
        if (machine->cpus[i].id != id)
            machine->cpus[left++] = machine->cpus[i];
    machine->cpu_count = left;
    cpus_remove(&machine->online, id);
    cpus_remove(&machine->allowed, id);
    for (int i = 0; i < machine->node_count; i++)
        cpus_remove(&machine->nodes[i].cpus, id);
}

/* Below a host bridge of that name; "": nobody knows. */
static inline struct wf_path below(const char *bridge)
{
    struct wf_path path = {.depth = bridge[0] ? 2 : 0};
    static int ports;
    snprintf(path.step[0], sizeof(path.step[0]), "%s", bridge);
    snprintf(path.step[1], sizeof(path.step[1]), "port%d", ports++ % 1000000);
    return path;
}

static inline void gpu(struct wf_machine *machine, int node, const char *bridge)
{
    machine->gpus[machine->gpu_count++] = (struct wf_gpu){.name = "H100", .node = node, .path = below(bridge)};
}

/* Its name ends in its index. */
static inline void nic(struct wf_machine *machine, const char *name, int node, const char *bridge)
{
    struct wf_nic *one = &machine->nics[machine->nic_count];
    *one = (struct wf_nic){.node = node, .path = below(bridge), .up = true, .speed_mbit = 200000, .mtu = 8244};
    snprintf(one->pci, sizeof(one->pci), "0000:%02x:00.0", machine->nic_count);
    snprintf(one->name, sizeof(one->name), "%.20s%d", name, machine->nic_count++);
}

/* a3-highgpu-8g: two sockets of 52 cores with two threads, and four bridges with two GPUs and a NIC each. */
static inline void a3(struct wf_machine *machine)
{
    static const char *const bridges[] = {"pci0", "pci1", "pci2", "pci3"};
    shape(machine, 2, 52, 2);
    for (int i = 0; i < 8; i++)
        gpu(machine, i / 4, bridges[i / 2]);
    for (int i = 0; i < 4; i++) {
        nic(machine, "eth", i / 2, bridges[i]);
        snprintf(machine->nics[i].name, sizeof(machine->nics[i].name), "eth%d", i + 1);
    }
}

#endif
