/* What is in the way of a faster path: a pure function of what the kernel says. */
#include "affinity/show/rail_path.h"

#include <stdio.h>
#include <string.h>

#define KERNEL_SEND_ZC 600 /* io_uring's sends without a copy */
#define KERNEL_DEVMEM 612  /* TCP that receives into device memory */
#define MTU_ETHERNET 1500
#define MTU_LARGE 9000

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

static void check_offloads(const struct wf_nic *nic, const struct wf_rail_path *path, struct list *list)
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
    if (nic->pci[0] && nic->mtu > 0 && nic->mtu <= MTU_ETHERNET) {
        snprintf(change, sizeof change, "ip link set %%s mtu %d", MTU_LARGE);
        add(list, "packets", "the MTU is small; larger packets cost less, if the network carries them", change,
            nic->name);
    }
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

static bool driver_has_devmem(const char *driver)
{
    static const char *const drivers[] = {"gve", "bnxt_en", "mlx5_core", "fbnic"};
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (strcmp(driver, drivers[i]) == 0)
            return true;
    return false;
}

/* As far as the name of a driver tells. False: it cannot. */
static bool guess_device_memory(const struct wf_path_system *system, const struct wf_nic *nic,
                                const struct wf_rail_path *path, const char *name, struct list *list)
{
    if (path->loopback || hands_on(nic) || !driver_has_devmem(nic->driver)) {
        add(list, name, "not with this driver: gve, bnxt_en, mlx5_core and fbnic can, in recent kernels", "",
            nic->name);
        return false;
    }
    if (system->kernel && system->kernel < KERNEL_DEVMEM)
        add(list, name, "this kernel's TCP cannot receive into device memory: 6.12 can", "", nic->name);
    if (path->header_split == 0)
        add(list, name, "header split is off", "ethtool -G %s tcp-data-split on", nic->name);
    else if (path->header_split < 0)
        add(list, name, "the driver does not tell of header split", "", nic->name);
    return true;
}

static void check_device_memory(const struct wf_path_system *system, const struct wf_nic *nic,
                                const struct wf_rail_path *path, struct list *list)
{
    static const char name[] = "device memory";
    if (system->gpus == 0) /* said once for the machine */
        return;
    const struct wf_device_way *device = &path->device;
    bool possible = device->asked ? !device->never : guess_device_memory(system, nic, path, name, list);
    if (device->asked && device->why[0])
        add(list, name, device->why, device->change, nic->name);
    if (possible && !system->net_admin)
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
    check_offloads(nic, path, &list);
    return list.count;
}
