/*
 * crew.h: the workers of a context, where they run, and what they do besides operations and notices.
 *
 * Fields that other rooms may read: all. `large_out` is written by wf_crew_count_large().
 */
#ifndef WF_CORE_DRIVE_CREW_H
#define WF_CORE_DRIVE_CREW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "affinity/cpus.h"
#include "affinity/plan.h"
#include "core/ground/world.h"

struct wf_worker;

/* Two for each rail, or one for all. */
#define WF_WORKERS_MAX (2 * WF_RAILS_MAX)

/* What the core keeps of a plan. Without one nothing is pinned, and no rail has a node. All zero: not planned yet. */
struct wf_placement {
    enum wf_pin pin;
    enum wf_rail_policy rail_policy;
    struct wf_cpus *cpus;              /* by worker; NULL: none is pinned */
    int16_t rail_nodes[WF_PLAN_RAILS]; /* NUMA node of each rail, or WF_NO_NODE */
};

/*
 * What workers do besides tasks and kicks; each function says when. Brought by the rooms that want it (below).
 */
struct wf_chores {
    /* Copies of devices: starts what is queued, ends what is done; returns how many. Token held. */
    int (*drive)(void *devices, struct wf_worker *worker);
    /* Is one under way that rings no bell? Token held. */
    bool (*busy)(void *devices, const struct wf_worker *worker);
    void *devices;
    /* The worker is about to rest, or has been busy for long: wf_worker.untold is told, and emptied. Token held. */
    void (*tell)(struct wf_worker *worker);
    /* The drive token is free: a caller who waits may want it. */
    bool (*token_free)(void *waiting);
    void *waiting;
};

/* The workers of a context. Owner: the context. */
struct wf_crew {
    struct wf_world *world;
    struct wf_chores chores;
    _Atomic uint64_t large_out; /* operations of more than `eager` under way; receives by what they may bring */
    int count;
    struct wf_worker *workers[WF_WORKERS_MAX];
    struct wf_placement placement;
};

/* A room brings what workers do for it. Before any worker runs. */
static inline void wf_crew_copies(struct wf_crew *crew, void *devices, int (*drive)(void *, struct wf_worker *),
                                  bool (*busy)(void *, const struct wf_worker *))
{
    crew->chores.devices = devices;
    crew->chores.drive = drive;
    crew->chores.busy = busy;
}

static inline void wf_crew_callers(struct wf_crew *crew, void *waiting, bool (*token_free)(void *))
{
    crew->chores.waiting = waiting;
    crew->chores.token_free = token_free;
}

static inline void wf_crew_disposals(struct wf_crew *crew, void (*tell)(struct wf_worker *))
{
    crew->chores.tell = tell;
}

/* One large operation more, or less. */
static inline void wf_crew_count_large(struct wf_crew *crew, bool more)
{
    if (more)
        atomic_fetch_add(&crew->large_out, 1);
    else
        atomic_fetch_sub_explicit(&crew->large_out, 1, memory_order_relaxed);
}

#endif
