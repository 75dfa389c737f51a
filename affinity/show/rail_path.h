/*
 * rail_path.h: how a NIC of this machine sends and receives, and what is in the way of a faster path. One half asks
 * the kernel, the other is a pure function of what it said.
 *
 * What the kernel does not tell is unknown (-1), and no obstacle is made of it.
 */
#ifndef WF_AFFINITY_RAIL_PATH_H
#define WF_AFFINITY_RAIL_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "affinity/machine.h"
#include "affinity/show/device_way.h"

#define WF_OBSTACLES_MAX 12

/* The same for all rails. */
struct wf_path_system {
    int kernel;              /* 6.12 is 612; 0: unknown */
    char release[64];        /* the same in full; "": unknown */
    int buffer_bytes;        /* that cards write packets to: a page */
    int io_uring_disabled;   /* as /proc/sys/kernel/io_uring_disabled: 0 no, 1 for most, 2 for all */
    bool net_admin;          /* this process has CAP_NET_ADMIN */
    int gpus;                /* how many this machine has */
    int64_t zero_copy_bytes; /* the setting zero_copy: sends of so many bytes leave without a copy; 0: none */
};

struct wf_rail_path {
    bool loopback;               /* never leaves this machine */
    int sg, tso, gro;            /* offloads: 1 on, 0 off, -1 unknown */
    int queues_most;             /* receive queues that the device could have; -1: unknown */
    int header_split;            /* 1 on, 0 off, -1 unknown, or the driver has none */
    struct wf_device_way device; /* wf_rail_path_read() leaves it unasked */
};

struct wf_obstacle {
    char path[16];    /* which faster path: "zero copy", "device memory", "offload", … */
    char why[128];    /* a sentence without its full stop */
    char change[128]; /* the command that would change it; "": none would */
};

void wf_path_system_read(const struct wf_machine *machine, int64_t zero_copy_bytes, struct wf_path_system *out);

/* Asks the kernel with ethtool's calls; of an interface that is gone all is unknown. */
void wf_rail_path_read(const struct wf_nic *nic, struct wf_rail_path *out);

/* The drivers that are known for receiving into device memory. By their sources all of them take rules by 5-tuple, for
 * a single stream, which no kernel tells before one is set. Pure. */
bool wf_driver_has_device_way(const char *driver);
/* Whether a card could receive into device memory, as far as is known. Pure. */
bool wf_rail_has_device_way(const struct wf_nic *nic, const struct wf_rail_path *path);

#define WF_DEVICE_MEMORY "device memory" /* the path of its obstacles */

/* What is in the way. Returns how many. Pure. */
int wf_rail_obstacles(const struct wf_path_system *system, const struct wf_nic *nic, const struct wf_rail_path *path,
                      struct wf_obstacle obstacles[WF_OBSTACLES_MAX]);

#endif
