/*
 * placement.h: where this node's threads and landings are: what was planned, and what is in force.
 *
 * On a machine whose rails lie on several NUMA nodes the endpoints take these nodes in turn, unless pin = off: their
 * landings are put there, and rail_policy decides what that means for their rails.
 */
#ifndef WF_BENCH_PLACEMENT_H
#define WF_BENCH_PLACEMENT_H

#include <jansson.h>
#include <stdint.h>

#include "base/config.h"
#include "weft.h"

#define BENCH_NODES_MAX 16
#define BENCH_ANY_NODE (-1)

/* Landings of an endpoint, at the last look; atomic, for the signal thread may ask at any time. */
struct bench_placed {
    _Atomic int looked;  /* pages, of which */
    _Atomic int there;   /* lie on its node; negative errno: the system does not say */
    _Atomic int refusal; /* negative errno: they could not be put there */
};

/* All zero: endpoints have no node. The signal thread may ask at any time: once `pin` is there, only what `endpoints`
 * points to changes. */
struct bench_placement {
    const char *_Atomic pin; /* the setting; NULL: the rest is not known yet */
    const char *rail_policy;
    int node_count;
    int nodes[BENCH_NODES_MAX];
    uint32_t endpoint_count;
    struct bench_placed *endpoints; /* NULL: none was placed */
};

int bench_placement_init(struct bench_placement *placement, const struct wf_config *config,
                         const struct weft_context *context, uint32_t endpoints);
void bench_placement_fini(struct bench_placement *placement);

/* The NUMA node of an endpoint of this node; BENCH_ANY_NODE: none in particular. */
int bench_placement_node(const struct bench_placement *placement, uint32_t endpoint);

/* Puts page-aligned landings of an endpoint on its node, and looks where they are. What stood in them is lost. */
void bench_placement_put(struct bench_placement *placement, uint32_t endpoint, void *memory, uint64_t bytes);

/* For the node's entry in `host` of a result; a new reference. `context` NULL: null. */
json_t *bench_placement_to_json(const struct bench_placement *placement, const struct weft_context *context);

#endif
