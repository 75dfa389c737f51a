/* What is in the way of a faster path: a pure function of what the kernel says. */
#include "affinity/show/rail_path.h"

#include <stdio.h>
#include <string.h>

#define KERNEL_SEND_ZC 600 /* io_uring's sends without a copy */
#define KERNEL_DEVMEM 612  /* TCP that receives into device memory */
#define MTU_ETHERNET 1500
#define MTU_LARGE 9000
#define UNUSED_PERCENT 5 /* of buffers: less is no matter */

struct list {
    struct wf_obstacle *at;
    int count;
};

/* `change` may have one %s in it, for the interface. */
static void add(struct list *list, const char *path, const char *why, const char *change, const char *name)
{
    if (list->count == WF_OBSTACLES_MAX)
        return;
    struct wf_obstacle *obstacle = &list->at[list->count++];
    const char *mark = strstr(change, "%s");
    snprintf(obstacle->path, sizeof obstacle->path, "%s", path);
    snprintf(obstacle->why, sizeof obstacle->why, "%s", why);
    if (mark)
        snprintf(obstacle->change, sizeof obstacle->change, "%.*s%s%s", (int)(mark - change), change, name, mark + 2);
    else
        snprintf(obstacle->change, sizeof obstacle->change, "%s", change);
}

/* To an interface of this machine, and large packets whole. */
static bool hands_on(const struct wf_nic *nic)
{
    return strcmp(nic->driver, "veth") == 0;
}

bool wf_driver_has_device_way(const char *driver)
{
    static const char *const drivers[] = {"gve", "bnxt_en", "mlx5_core", "fbnic"};
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strcmp(driver, drivers[i]) == 0)
            return true;
    return false;
}

bool wf_rail_has_device_way(const struct wf_nic *nic, const struct wf_rail_path *path)
{
    if (path->device.asked)
        return !path->device.never;
    return !path->loopback && !hands_on(nic) && wf_driver_has_device_way(nic->driver);
}

/* Where packets may go to device memory it counts how they fill buffers, and not only that they are large. */
static void check_mtu(const struct wf_path_system *system, const struct wf_nic *nic, const struct wf_rail_path *path,
                      struct list *list)
{
    static const char name[] = "packets";
    bool to_device = system->gpus > 0 && wf_rail_has_device_way(nic, path);
    struct wf_buffer_fit fit = wf_buffer_fit(nic->mtu, system->buffer_bytes);
    char why[128], change[64];
    if (to_device && fit.unused_percent >= UNUSED_PERCENT) {
        snprintf(why, sizeof why, "MTU %d leaves %d %% of device memory's buffers unused; %d fills them%s", nic->mtu,
                 fit.unused_percent, fit.full_mtu, fit.full_mtu > nic->mtu ? ", if the network carries it" : "");
        snprintf(change, sizeof change, "ip link set %%s mtu %d", fit.full_mtu);
        add(list, name, why, change, nic->name);
    } else if (!to_device && nic->pci[0] && nic->mtu > 0 && nic->mtu <= MTU_ETHERNET) {
        snprintf(change, sizeof change, "ip link set %%s mtu %d", MTU_LARGE);
        add(list, name, "the MTU is small; larger packets cost less, if the network carries them", change, nic->name);
    }
}

static void check_offloads(const struct wf_path_system *system, const struct wf_nic *nic,
                           const struct wf_rail_path *path, struct list *list)
{
    char change[64];
    if (path->tso == 0)
        add(list, "offload", "TSO is off: a processor cuts large sends into packets", "ethtool -K %s tso on",
            nic->name);
    if (path->gro == 0 && !hands_on(nic))
        add(list, "offload", "GRO is off: every packet climbs through the kernel by itself", "ethtool -K %s gro on",
            nic->name);
    if (path->queues_most > nic->queues && nic->queues > 0) {
        snprintf(change, sizeof change, "ethtool -L %%s combined %d", path->queues_most);
        add(list, "queues", "the device could have more queues: each is one processor's to empty", change, nic->name);
    }
    check_mtu(system, nic, path, list);
}

static void check_zero_copy(const struct wf_path_system *system, const struct wf_nic *nic,
                            const struct wf_rail_path *path, struct list *list)
{
    static const char name[] = "zero copy";
    /* Where the receiver is this same kernel the data is copied then, and nothing helps. */
    if (path->loopback || hands_on(nic)) {
        add(list, name,
            path->loopback ? "loopback copies what is sent without a copy"
                           : "veth copies what is sent "
                             "without a copy",
            "", nic->name);
        return;
    }
    if (system->kernel && system->kernel < KERNEL_SEND_ZC)
        add(list, name, "this kernel's io_uring cannot send without a copy: 6.0 can", "", nic->name);
    else if (system->io_uring_disabled)
        add(list, name, "io_uring is disabled", "sysctl kernel.io_uring_disabled=0", nic->name);
    if (path->sg == 0)
        add(list, name, "scatter-gather is off: the kernel copies every send into one piece", "ethtool -K %s sg on",
            nic->name);
    if (system->zero_copy_bytes == 0)
        add(list, name, "the setting zero_copy is 0: every send is copied", "--set zero_copy=512K", nic->name);
}

/* As far as the name of a driver tells, which is one that can. */
static void guess_device_memory(const struct wf_path_system *system, const struct wf_nic *nic,
                                const struct wf_rail_path *path, struct list *list)
{
    static const char name[] = WF_DEVICE_MEMORY;
    if (system->kernel && system->kernel < KERNEL_DEVMEM)
        add(list, name, "this kernel's TCP cannot receive into device memory: 6.12 can", "", nic->name);
    if (path->header_split == 0)
        add(list, name, "header split is off", "ethtool -G %s tcp-data-split on", nic->name);
    else if (path->header_split < 0)
        add(list, name, "the driver does not tell of header split", "", nic->name);
}

/* The first is the one to look at: what nobody can change, then a GPU, then what can be set, then a right. */
static void check_device_memory(const struct wf_path_system *system, const struct wf_nic *nic,
                                const struct wf_rail_path *path, struct list *list)
{
    static const char name[] = WF_DEVICE_MEMORY;
    const struct wf_device_way *device = &path->device;
    if (!wf_rail_has_device_way(nic, path)) {
        if (device->asked)
            add(list, name, device->why, device->change, nic->name);
        else
            add(list, name, "not with this driver: gve, bnxt_en, mlx5_core and fbnic can, in recent kernels", "",
                nic->name);
        return;
    }
    if (system->gpus == 0) {
        add(list, name, "this machine has no GPU", "", nic->name);
        return;
    }
    if (!device->asked)
        guess_device_memory(system, nic, path, list);
    else if (device->why[0])
        add(list, name, device->why, device->change, nic->name);
    if (!system->net_admin)
        add(list, name, "this process has no CAP_NET_ADMIN, which binding a queue to a device needs",
            "setcap cap_net_admin+ep $(command -v weft)", nic->name);
}

int wf_rail_obstacles(const struct wf_path_system *system, const struct wf_nic *nic, const struct wf_rail_path *path,
                      struct wf_obstacle obstacles[WF_OBSTACLES_MAX])
{
    struct list list = {.at = obstacles};
    if (!nic->up)
        add(&list, "link", "the interface is down, or has no carrier", "ip link set %s up", nic->name);
    check_zero_copy(system, nic, path, &list);
    check_device_memory(system, nic, path, &list);
    check_offloads(system, nic, path, &list);
    return list.count;
}
