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

#define WF_OBSTACLES_MAX 12

/* The same for all rails. */
struct wf_path_system {
    int kernel;              /* 6.12 is 612; 0: unknown */
    int io_uring_disabled;   /* as /proc/sys/kernel/io_uring_disabled: 0 no, 1 for most, 2 for all */
    bool net_admin;          /* this process has CAP_NET_ADMIN */
    int gpus;                /* how many this machine has */
    int64_t zero_copy_bytes; /* the setting zero_copy: sends of so many bytes leave without a copy; 0: none */
};

/* What TCP into device memory lacks at a rail, as somebody says who has asked kernel and driver for it. */
struct wf_device_way {
    bool asked;       /* false: all that is known is the name of the driver */
    bool never;       /* no setting would help: a right that is missing does not matter either */
    char why[128];    /* what is first in the way; "": nothing is */
    char change[128]; /* as in struct wf_obstacle */
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

/* What is in the way. Returns how many. Pure. */
int wf_rail_obstacles(const struct wf_path_system *system, const struct wf_nic *nic, const struct wf_rail_path *path,
                      struct wf_obstacle obstacles[WF_OBSTACLES_MAX]);

#endif
