/*
 * show.h: a machine and its plan for people and for programs. Asks nothing: what is shown is gathered before.
 */
#ifndef WF_AFFINITY_SHOW_H
#define WF_AFFINITY_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "affinity/machine.h"
#include "affinity/plan.h"
#include "affinity/show/rail_path.h"

#define WF_LEFT_OUT_MAX 128

/* An interface that becomes no rail. */
struct wf_left_out {
    char interface[32], address[64]; /* address "": it has none */
    char why[96];                    /* "has no carrier" */
    char remedy[256];                /* the option or command that brings it in; "": there is none */
};

struct wf_show {
    const struct wf_machine *machine;
    const struct wf_plan *plan;
    const char *gpu_path;                    /* a sentence: which way device memory goes, and why not a shorter one */
    struct wf_path_system system;            /* of a foreign machine: all zero */
    struct wf_gpu_way gpu_ways[WF_GPUS_MAX]; /* one for each GPU of the machine */
    /* One for each rail of the plan; a foreign machine's are not looked at. */
    struct wf_rail_path paths[WF_PLAN_RAILS];
    struct wf_obstacle obstacles[WF_PLAN_RAILS][WF_OBSTACLES_MAX];
    int obstacle_counts[WF_PLAN_RAILS];
    const struct wf_left_out *left_out;
    int left_count;
};

/* Asks what TCP into device memory lacks at the interface of that name; leaves `way` as it is where it does not know.
 */
typedef void wf_show_ask_device(void *data, const char *name, struct wf_device_way *way);

/* Whether a rail of the plan could receive into the memory of GPUs, as far as is known. */
bool wf_show_has_device_way(const struct wf_show *show, int rail);

/* Asks the kernel how the rails of the plan send and receive. `show` has machine and plan; afterwards no GPU was asked
 * for its way yet. `ask` (NULL: nobody) is called for each rail. */
void wf_show_gather(struct wf_show *show, int64_t zero_copy_bytes, wf_show_ask_device *ask, void *data);

/* At most 100 columns. */
void wf_show_text(FILE *out, const struct wf_show *show);

/* The schema weft.topo/1; a new reference, NULL: no memory. */
json_t *wf_show_json(const struct wf_show *show);

/* A drawing of the tree, without what has no known node. */
void wf_show_svg(FILE *out, const struct wf_show *show);

#endif
