/*
 * machine.h: what a machine is made of, as far as placement is concerned. Plain data, made by discovery (discover.h)
 * or by hand in a test; everything that decides is a pure function of it.
 *
 * Invariant: every processor of `cpus` belongs to exactly one node of `nodes`, by its number; a device whose node is
 * not known has node -1.
 */
#ifndef WF_AFFINITY_MACHINE_H
#define WF_AFFINITY_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "affinity/cpus.h"

#define WF_NODES_MAX 64
#define WF_GPUS_MAX 32
#define WF_NICS_MAX 128
#define WF_PATH_MAX 12
#define WF_NO_NODE (-1)

struct wf_node {
    int id;              /* the kernel's number: they need not be dense */
    uint64_t bytes;      /* of memory; 0: unknown, or none */
    struct wf_cpus cpus; /* online ones that are nearest to it; empty for memory without processors */
};

/* A hardware thread. */
struct wf_cpu {
    int id;      /* the kernel's number */
    int core;    /* number of its physical core in the machine: siblings share it */
    int package; /* number of its socket */
    int node;    /* id of its node */
};

/* Where a device hangs: the bridges from the host bridge down to it, each by a name that is unique in the machine. */
struct wf_path {
    int depth;                  /* 0: unknown */
    char step[WF_PATH_MAX][16]; /* [0] the host bridge, [1] the root port, then the ports of switches: "0000:17:01.0" */
};

struct wf_gpu {
    char name[64]; /* its model, or "" */
    char pci[16];  /* "0000:05:00.0"; "": unknown */
    int node;
    struct wf_path path;
};

struct wf_nic {
    char name[32];   /* interface */
    char pci[16];    /* "": none, a virtual one */
    char driver[32]; /* "": unknown */
    int node;
    struct wf_path path;
    bool up;            /* administratively, and with a carrier */
    int32_t speed_mbit; /* -1: unknown */
    int32_t mtu;        /* -1: unknown */
    int32_t queues;     /* of the receiving side; -1: unknown */
    struct wf_cpus irq; /* where the interrupts of its packets go now; empty: unknown */
};

struct wf_machine {
    char name[64]; /* host name, or the file it was read from */
    bool foreign;  /* read from a file: nothing of it can be applied or asked here */
    int node_count, cpu_count, gpu_count, nic_count;
    struct wf_node nodes[WF_NODES_MAX]; /* ascending ids */
    struct wf_cpu cpus[WF_CPUS_MAX];    /* the online ones, ascending ids */
    struct wf_cpus online, present;     /* present: with the offline ones */
    struct wf_cpus allowed;             /* for this process: online, and within its cpuset and affinity */
    struct wf_gpu gpus[WF_GPUS_MAX];    /* by PCI address */
    struct wf_nic nics[WF_NICS_MAX];    /* by name, digits by value: eth2 before eth10 */
};

/* Index of a NIC by its name, of a node by its id; -1: not there. */
int wf_machine_nic(const struct wf_machine *machine, const char *name);
int wf_machine_node(const struct wf_machine *machine, int id);

/* How far two devices are apart, nearest first. The names of users: "same switch", … */
enum wf_step {
    WF_STEP_SWITCH,    /* below one PCIe switch */
    WF_STEP_ROOT_PORT, /* below one root port, without a switch known between */
    WF_STEP_BRIDGE,    /* below one host bridge */
    WF_STEP_NODE,      /* same NUMA node */
    WF_STEP_OTHER,     /* another NUMA node */
    WF_STEP_UNKNOWN,   /* one of them has no known place */
};

/* By their paths where both are known, else by their nodes. */
enum wf_step wf_step_between(const struct wf_path *a, int node_a, const struct wf_path *b, int node_b);
const char *wf_step_text(enum wf_step step);

#endif
