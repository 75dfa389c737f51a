/*
 * plan.h: which rails serve which endpoint, which processors the threads of each rail get, where memory lies. Plain
 * data, so that the library takes a plan without knowing how it was made.
 *
 * Invariants of a plan that was made with pin != off:
 *   every set is within the processors this process may use; no set is empty;
 *   a set that the user gave is used as it is, and TX and RX of one rail are disjoint unless `shares` says otherwise.
 */
#ifndef WF_AFFINITY_PLAN_H
#define WF_AFFINITY_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#include "affinity/cpus.h"
#include "affinity/machine.h"

#define WF_PLAN_RAILS 64
#define WF_PLAN_ENDPOINTS 64
#define WF_PLAN_NOTES 1024

enum wf_pin {
    WF_PIN_OFF,     /* threads and memory are left where the system puts them */
    WF_PIN_AUTO,    /* placed; what fails is noted */
    WF_PIN_REQUIRE, /* what fails is an error */
};

enum wf_rail_policy {
    WF_POLICY_AUTO, /* near for GPUs, all for host memory */
    WF_POLICY_NEAR, /* the rails at the smallest distance */
    WF_POLICY_NODE, /* all rails of the endpoint's NUMA node */
    WF_POLICY_ALL,  /* every rail, nearest first */
};

enum wf_irq_policy {
    WF_IRQ_AVOID, /* no thread where a NIC's interrupts go, as long as enough other cores of the node are left */
    WF_IRQ_USE,   /* RX threads where the interrupts of their NIC go, if these are of its node */
    WF_IRQ_ANY,   /* interrupts play no part */
};

/* What is asked. Strings belong to the caller and are read only while the plan is made. */
struct wf_plan_request {
    enum wf_pin pin;
    enum wf_rail_policy rail_policy;
    enum wf_irq_policy irq_policy;
    const char *tx_bindings, *rx_bindings; /* "eth1:8-21,112-125;eth2:…"; NULL or "": none */
    bool tx_lenient, rx_lenient;           /* a rail of these bindings that is not here gets a note, and is no error */
    bool (*is_here)(const char *address);  /* whether this machine has it; NULL: its addresses are not known */
    const char *gpus;                      /* the endpoints are these GPUs, by index: "0,2,5-7"; NULL: all there are */
    int gpu_endpoints;                     /* > 0: so many endpoints take these GPUs in turn; 0: one for each */
    int host_endpoints;                    /* > 0: so many endpoints in host memory instead, in turn over the nodes */
    int rail_count;
    struct wf_plan_rail_request {
        char name[64];      /* as in results */
        char device[32];    /* interface */
        char address[64];   /* "": not known */
    } rails[WF_PLAN_RAILS]; /* rail_count 0: every NIC that is up, is not loopback and, if any has a PCI device, has one
                             */
};

struct wf_plan_rail {
    char name[64];
    char device[32];
    char address[64];        /* "": not known */
    int node;                /* id; WF_NO_NODE: unknown, or the machine has one node and it does not matter */
    struct wf_cpus tx, rx;   /* empty: not pinned */
    bool tx_given, rx_given; /* by the user */
    bool shares;             /* TX and RX have processors in common: there were too few to split, or the user says so */
    bool others;             /* other rails have some of these processors too */
};

struct wf_plan_endpoint {
    char name[16];  /* "gpu3", "host3" */
    int gpu;        /* index in the machine; -1: host memory */
    int node;       /* id of the node that its staging memory, or its memory, goes to; WF_NO_NODE: no matter */
    int rail_count; /* that carry its traffic */
    int rails[WF_PLAN_RAILS];          /* indexes into the plan's rails, nearest first; beyond rail_count: the rest */
    enum wf_step steps[WF_PLAN_RAILS]; /* how far each of them is; all rails, in the same order */
};

struct wf_plan {
    enum wf_pin pin;
    enum wf_rail_policy rail_policy; /* as asked */
    int rail_count, endpoint_count;
    struct wf_plan_rail rails[WF_PLAN_RAILS];
    struct wf_plan_endpoint endpoints[WF_PLAN_ENDPOINTS];
    char notes[WF_PLAN_NOTES]; /* one sentence a line: what could not be done as one would wish, and why; "" */
};

/*
 * The plan for a machine: a pure function of its arguments. 0, or -EINVAL with `why`: a binding of a rail that is not
 * among the rails (names the rails), a core that does not exist, is offline or outside of what this process may
 * use (names it and says which of these it is), a GPU that is not there.
 */
int wf_plan_make(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *out,
                 char *why, size_t why_room);

/* Discovers this machine and makes its plan: what the library calls. Errors of both. */
int wf_plan_here(const struct wf_plan_request *request, struct wf_plan *out, char *why, size_t why_room);

#endif
