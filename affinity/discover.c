#include "affinity/discover.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "affinity/discover_apart.h"
#include "affinity/discover_device.h"
#include "affinity/discover_nic.h"

#define SYNTHETIC "synthetic:"
#define FILE_MOST ((off_t)64 << 20) /* a description is some 100 KB: what is larger is another file */
#define NODE_ID_MOST 65535u

__attribute__((format(printf, 4, 5))) static int fail(int result, char *why, size_t why_room, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(why, why_room, format, list);
    va_end(list);
    return result;
}

/* --- to a topology --- */

/* hwloc would read a pipe or a device for ever, and says only that something was wrong. */
static int check_file(const char *path, char *why, size_t why_room)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return fail(errno == ENOMEM ? -ENOMEM : -ENOENT, why, why_room, "cannot open the topology '%s': %s", path,
                    strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size == 0 || info.st_size > FILE_MOST)
        return fail(-EINVAL, why, why_room, "the topology '%s' is %s: give a file as 'lstopo FILE.xml' writes it", path,
                    S_ISDIR(info.st_mode)    ? "a directory"
                    : !S_ISREG(info.st_mode) ? "not a plain file"
                    : info.st_size == 0      ? "empty"
                                             : "larger than 64 MiB");
    if (access(path, R_OK) != 0)
        return fail(-EIO, why, why_room, "cannot read the topology '%s': %s", path, strerror(errno));
    return 0;
}

static int name_source(hwloc_topology_t topology, const char *source, char *why, size_t why_room)
{
    if (strncmp(source, SYNTHETIC, strlen(SYNTHETIC)) == 0) {
        if (hwloc_topology_set_synthetic(topology, source + strlen(SYNTHETIC)) != 0)
            return fail(-EINVAL, why, why_room,
                        "'%s' is not a synthetic description: expected as in 'synthetic:numa:2 core:4 pu:2'", source);
        return 0;
    }
    int result = check_file(source, why, why_room);
    if (result == 0 && hwloc_topology_set_xml(topology, source) != 0)
        result =
            fail(-EINVAL, why, why_room, "'%s' is not a topology: give a file as 'lstopo FILE.xml' writes it", source);
    return result;
}

/* What hwloc is to look at. Its parts for accelerators would start their drivers and make contexts on devices
 * that the user did not name; PCI tells enough, and is read from /sys (libpciaccess would add names, but leaks).
 * Offline and forbidden processors are wanted, to tell them apart. */
static void configure(hwloc_topology_t topology)
{
    static const char *const parts[] = {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "pci"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, parts[i]);
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
}

static int load(const char *source, hwloc_topology_t *out, char *why, size_t why_room)
{
    hwloc_topology_t topology = NULL;
    if (hwloc_topology_init(&topology) != 0)
        return fail(-ENOMEM, why, why_room, "no memory for the topology");
    configure(topology);
    int result = source ? name_source(topology, source, why, why_room) : 0;
    if (result == 0 && hwloc_topology_load(topology) != 0)
        result = source ? fail(-EINVAL, why, why_room, "'%s' does not describe a machine, or is cut short", source)
                        : fail(-EIO, why, why_room, "cannot discover this machine: %s", strerror(errno));
    if (result == 0 && !source && !hwloc_topology_is_thissystem(topology))
        result = fail(-EINVAL, why, why_room,
                      "HWLOC_XMLFILE, HWLOC_SYNTHETIC or HWLOC_FSROOT describes another machine to hwloc: unset it");
    if (result)
        hwloc_topology_destroy(topology);
    else
        *out = topology;
    return result;
}

/* --- nodes and processors --- */

/* A bitmap may go on for ever. */
static void to_set(hwloc_const_bitmap_t bitmap, struct wf_cpus *set)
{
    *set = (struct wf_cpus){0};
    for (int cpu = 0; bitmap && cpu < WF_CPUS_MAX; cpu++)
        if (hwloc_bitmap_isset(bitmap, (unsigned)cpu))
            wf_cpus_add(set, cpu);
}

static int by_node_id(const void *a, const void *b)
{
    return ((const struct wf_node *)a)->id - ((const struct wf_node *)b)->id;
}

static int read_nodes(hwloc_topology_t topology, struct wf_machine *machine, char *why, size_t why_room)
{
    hwloc_obj_t object = NULL;
    while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object))) {
        struct wf_node *node = &machine->nodes[machine->node_count];
        if (machine->node_count == WF_NODES_MAX || object->os_index > NODE_ID_MOST)
            return fail(-EINVAL, why, why_room, "NUMA node %u: more than %d nodes, or numbers above %u, are too many",
                        object->os_index, WF_NODES_MAX, NODE_ID_MOST);
        node->id = (int)object->os_index;
        node->bytes = object->attr->numanode.local_memory;
        to_set(object->cpuset, &node->cpus);
        machine->node_count += 1;
    }
    qsort(machine->nodes, (size_t)machine->node_count, sizeof machine->nodes[0], by_node_id);
    return 0;
}

/* The nearest node: memory that several nodes' processors share lists them all. */
static int nearest_node(const struct wf_machine *machine, const int *weights, int cpu)
{
    int best = -1;
    for (int i = 0; i < machine->node_count; i++)
        if (wf_cpus_has(&machine->nodes[i].cpus, cpu) && (best < 0 || weights[i] < weights[best]))
            best = i;
    return best;
}

static int logical_index(hwloc_topology_t topology, hwloc_obj_type_t type, hwloc_obj_t of, int otherwise)
{
    hwloc_obj_t object = hwloc_get_ancestor_obj_by_type(topology, type, of);
    return object ? (int)object->logical_index : otherwise;
}

static int by_cpu_id(const void *a, const void *b)
{
    return ((const struct wf_cpu *)a)->id - ((const struct wf_cpu *)b)->id;
}

static int read_cpus(hwloc_topology_t topology, struct wf_machine *machine, char *why, size_t why_room)
{
    int weights[WF_NODES_MAX];
    hwloc_obj_t pu = NULL;
    for (int i = 0; i < machine->node_count; i++)
        weights[i] = wf_cpus_count(&machine->nodes[i].cpus);
    while ((pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu))) {
        int id = pu->os_index < WF_CPUS_MAX ? (int)pu->os_index : -1;
        int node = id < 0 || wf_cpus_has(&machine->online, id) ? -1 : nearest_node(machine, weights, id);
        if (node < 0)
            continue;
        machine->cpus[machine->cpu_count++] = (struct wf_cpu){
            .id = id,
            .core = logical_index(topology, HWLOC_OBJ_CORE, pu, (int)pu->logical_index),
            .package = logical_index(topology, HWLOC_OBJ_PACKAGE, pu, 0),
            .node = machine->nodes[node].id,
        };
        wf_cpus_add(&machine->online, id);
    }
    if (machine->cpu_count == 0)
        return fail(-EINVAL, why, why_room, "the topology has no processors with numbers below %d", WF_CPUS_MAX);
    qsort(machine->cpus, (size_t)machine->cpu_count, sizeof machine->cpus[0], by_cpu_id);
    /* From here on a processor is of one node only. */
    for (int i = 0; i < machine->node_count; i++)
        machine->nodes[i].cpus = (struct wf_cpus){0};
    for (int i = 0; i < machine->cpu_count; i++)
        wf_cpus_add(&machine->nodes[wf_machine_node(machine, machine->cpus[i].node)].cpus, machine->cpus[i].id);
    to_set(hwloc_topology_get_complete_cpuset(topology), &machine->present);
    wf_cpus_unite(&machine->present, &machine->online);
    return 0;
}

/* What the kernel lets this process use: hwloc knows the cpuset, but not the affinity. Asked before hwloc is: where a
 * container's filter refuses the question, hwloc repeats it for ever. */
static int read_allowed_here(struct wf_machine *machine, char *why, size_t why_room)
{
    int room = WF_CPUS_MAX;
    for (;; room *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)room);
        size_t bytes = CPU_ALLOC_SIZE((size_t)room);
        if (!set)
            return fail(-ENOMEM, why, why_room, "no memory for a set of %d processors", room);
        int result = sched_getaffinity(0, bytes, set) == 0 ? 0 : -errno;
        for (int cpu = 0; result == 0 && cpu < WF_CPUS_MAX; cpu++)
            if (CPU_ISSET_S((size_t)cpu, bytes, set))
                wf_cpus_add(&machine->allowed, cpu);
        CPU_FREE(set);
        if (result == 0)
            break;
        if (result != -EINVAL || room > 1 << 20) /* -EINVAL: the kernel has more processors than that */
            return fail(-EIO, why, why_room, "cannot read which processors this process may use: %s",
                        strerror(-result));
    }
    return 0;
}

/* --- the whole --- */

static int fill(hwloc_topology_t topology, const char *source, struct wf_machine *machine, char *why, size_t why_room)
{
    int result = read_nodes(topology, machine, why, why_room);
    if (result == 0)
        result = read_cpus(topology, machine, why, why_room);
    if (result)
        return result;
    if (source) {
        const char *slash = strncmp(source, SYNTHETIC, strlen(SYNTHETIC)) == 0 ? NULL : strrchr(source, '/');
        snprintf(machine->name, sizeof machine->name, "%s", slash ? slash + 1 : source);
        machine->foreign = true;
        machine->allowed = machine->online;
    } else {
        if (gethostname(machine->name, sizeof machine->name - 1) != 0)
            snprintf(machine->name, sizeof machine->name, "this machine");
        wf_cpus_intersect(&machine->allowed, &machine->online);
        wf_nics_read(machine, "/sys", "/proc");
        wf_nics_ask_drivers(machine);
    }
    wf_discover_devices(topology, machine);
    if (!source)
        wf_nics_inherit(machine, "/sys");
    return result;
}

static int discover(const char *source, struct wf_machine *out, char *why, size_t why_room)
{
    hwloc_topology_t topology = NULL;
    struct wf_machine *machine = calloc(1, sizeof *machine);

    if (!machine)
        return fail(-ENOMEM, why, why_room, "no memory for the machine");
    int result = source ? 0 : read_allowed_here(machine, why, why_room);
    if (result == 0)
        result = load(source, &topology, why, why_room);
    if (result == 0) {
        result = fill(topology, source, machine, why, why_room);
        hwloc_topology_destroy(topology);
    }
    if (result == 0)
        *out = *machine;
    free(machine);
    return result;
}

int wf_machine_discover(const char *source, struct wf_machine *out, char *why, size_t why_room)
{
    if (!source || !source[0])
        return discover(NULL, out, why, why_room);
    return wf_discover_apart(discover, source, out, why, why_room);
}
