#include "affinity/discover_device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "affinity/discover_nic.h"

#define NVIDIA 0x10de
#define CLASS_DISPLAY 0x03
#define CLASS_3D 0x0302
#define BRIDGES_MOST 64 /* on the way to one device; a description may be a loop of nonsense */

static void pci_address(hwloc_obj_t device, char *text, size_t room)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
    snprintf(text, room, "%04x:%02x:%02x.%x", pci->domain, pci->bus, pci->dev, pci->func);
}

/* --- where a device hangs --- */

static void step_name(hwloc_obj_t bridge, char *text, size_t room)
{
    const struct hwloc_bridge_attr_s *attr = &bridge->attr->bridge;
    if (attr->upstream_type == HWLOC_OBJ_BRIDGE_PCI)
        pci_address(bridge, text, room);
    else /* as the kernel names a root bus */
        snprintf(text, room, "pci%04x:%02x", attr->downstream.pci.domain, attr->downstream.pci.secondary_bus);
}

static void read_path(hwloc_obj_t device, struct wf_path *path)
{
    hwloc_obj_t above[BRIDGES_MOST];
    int count = 0;
    *path = (struct wf_path){0};
    for (hwloc_obj_t at = device->parent; at && count < BRIDGES_MOST; at = at->parent)
        if (at->type == HWLOC_OBJ_BRIDGE)
            above[count++] = at;
    /* Where there are too many steps, the ones nearest to the processors stay: paths of devices share these. */
    for (int i = count - 1; i >= 0 && path->depth < WF_PATH_MAX; i--)
        step_name(above[i], path->step[path->depth++], sizeof path->step[0]);
}

/* The one node that all processors near the device are of. */
static int node_of_device(hwloc_topology_t topology, const struct wf_machine *machine, hwloc_obj_t device)
{
    hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
    int node = WF_NO_NODE;
    for (int i = 0; near && near->cpuset && i < machine->cpu_count; i++) {
        const struct wf_cpu *cpu = &machine->cpus[i];
        if (!hwloc_bitmap_isset(near->cpuset, (unsigned)cpu->id))
            continue;
        if (node != WF_NO_NODE && node != cpu->node)
            return WF_NO_NODE;
        node = cpu->node;
    }
    return node;
}

/* --- GPUs --- */

static bool is_gpu(hwloc_obj_t device)
{
    const struct hwloc_pcidev_attr_s *pci = &device->attr->pcidev;
    return pci->class_id == CLASS_3D || (pci->class_id >> 8 == CLASS_DISPLAY && pci->vendor_id == NVIDIA);
}

/* "Model: NVIDIA H100 80GB HBM3": what the driver says, without starting anything on the device. */
static bool driver_model(const char *pci, char *name, size_t room)
{
    char path[128], line[256];
    bool found = false;
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", pci);
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        char *value = line + strlen("Model:");
        if (strncmp(line, "Model:", strlen("Model:")) != 0)
            continue;
        while (isspace((unsigned char)*value))
            value++;
        value[strcspn(value, "\n")] = '\0';
        snprintf(name, room, "%s", value);
        found = value[0] != '\0';
    }
    if (file)
        fclose(file);
    return found;
}

static void read_model(hwloc_obj_t device, bool foreign, struct wf_gpu *gpu)
{
    const char *model = NULL;
    if (!foreign && driver_model(gpu->pci, gpu->name, sizeof gpu->name))
        return;
    for (hwloc_obj_t child = device->io_first_child; child && !model; child = child->next_sibling)
        model = hwloc_obj_get_info_by_name(child, "GPUModel");
    if (!model)
        model = hwloc_obj_get_info_by_name(device, "PCIDevice");
    if (model)
        snprintf(gpu->name, sizeof gpu->name, "%s", model);
    else
        snprintf(gpu->name, sizeof gpu->name, "%04x:%04x", device->attr->pcidev.vendor_id,
                 device->attr->pcidev.device_id);
}

static int by_pci(const void *a, const void *b)
{
    const struct wf_gpu *one = a, *other = b;
    size_t length_one = strlen(one->pci), length_other = strlen(other->pci);
    if (length_one != length_other) /* a longer domain is a larger one */
        return length_one < length_other ? -1 : 1;
    return strcmp(one->pci, other->pci);
}

static void read_gpus(hwloc_topology_t topology, struct wf_machine *machine)
{
    hwloc_obj_t device = NULL;
    while ((device = hwloc_get_next_pcidev(topology, device)) && machine->gpu_count < WF_GPUS_MAX) {
        struct wf_gpu *gpu = &machine->gpus[machine->gpu_count];
        if (!is_gpu(device))
            continue;
        pci_address(device, gpu->pci, sizeof gpu->pci);
        gpu->node = node_of_device(topology, machine, device);
        read_path(device, &gpu->path);
        read_model(device, machine->foreign, gpu);
        machine->gpu_count += 1;
    }
    qsort(machine->gpus, (size_t)machine->gpu_count, sizeof machine->gpus[0], by_pci);
}

/* --- NICs --- */

static int32_t speed_of(hwloc_obj_t device)
{
    const char *text = hwloc_obj_get_info_by_name(device, "Speed");
    long speed = text ? strtol(text, NULL, 10) : 0;
    return speed > 0 && speed <= INT32_MAX ? (int32_t)speed : -1;
}

static int by_name(const void *a, const void *b)
{
    return wf_nic_order(((const struct wf_nic *)a)->name, ((const struct wf_nic *)b)->name);
}

static void add_foreign_nic(hwloc_topology_t topology, struct wf_machine *machine, hwloc_obj_t device)
{
    struct wf_nic *nic = &machine->nics[machine->nic_count];
    const char *driver = hwloc_obj_get_info_by_name(device, "Driver");
    if (!device->name || !device->name[0] || strlen(device->name) >= sizeof nic->name ||
        wf_machine_nic(machine, device->name) >= 0)
        return;
    *nic = (struct wf_nic){.up = true, .speed_mbit = speed_of(device), .mtu = -1, .queues = -1};
    snprintf(nic->name, sizeof nic->name, "%s", device->name);
    snprintf(nic->driver, sizeof nic->driver, "%s", driver ? driver : "");
    if (device->parent && device->parent->type == HWLOC_OBJ_PCI_DEVICE)
        pci_address(device->parent, nic->pci, sizeof nic->pci);
    nic->node = nic->pci[0] ? node_of_device(topology, machine, device) : WF_NO_NODE;
    read_path(device, &nic->path);
    machine->nic_count += 1;
}

static void read_foreign_nics(hwloc_topology_t topology, struct wf_machine *machine)
{
    hwloc_obj_t device = NULL;
    while ((device = hwloc_get_next_osdev(topology, device)) && machine->nic_count < WF_NICS_MAX)
        if (device->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK)
            add_foreign_nic(topology, machine, device);
    qsort(machine->nics, (size_t)machine->nic_count, sizeof machine->nics[0], by_name);
}

static void place_nics(hwloc_topology_t topology, struct wf_machine *machine)
{
    for (int i = 0; i < machine->nic_count; i++) {
        struct wf_nic *nic = &machine->nics[i];
        hwloc_obj_t device = nic->pci[0] ? hwloc_get_pcidev_by_busidstring(topology, nic->pci) : NULL;
        if (!device)
            continue;
        nic->node = node_of_device(topology, machine, device);
        read_path(device, &nic->path);
    }
}

void wf_discover_devices(hwloc_topology_t topology, struct wf_machine *machine)
{
    read_gpus(topology, machine);
    if (machine->foreign)
        read_foreign_nics(topology, machine);
    else
        place_nics(topology, machine);
}
