/*
 * crew.h: the workers of a context, their CPUs, and their chores: what they do besides operations and notices.
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

/* Two workers for each rail and one that callers drive, or that one alone. */
#define WF_WORKERS_MAX (2 * WF_RAILS_MAX + 1)

/* The part of a plan that the core keeps. Without a plan no thread is pinned, and no rail has a node. All zero: not
 * planned yet. */
struct wf_placement {
    enum wf_pin pin;
    enum wf_rail_policy rail_policy;
    struct wf_cpus *cpus;              /* by worker; NULL: no thread is pinned */
    int16_t rail_nodes[WF_PLAN_RAILS]; /* NUMA node of each rail, or WF_NO_NODE */
};

/*
 * What workers do besides tasks and kicks. Other rooms set these functions, by the calls below.
 */
struct wf_chores {
    /* Starts queued copies of devices and ends finished ones; returns how many. Token held. */
    int (*drive)(void *devices, struct wf_worker *worker);
    /* Is a copy under way? Its end cannot wake the engine. Token held. */
    bool (*busy)(void *devices, const struct wf_worker *worker);
    void *devices;
    /* The worker is about to rest, or has been busy for long: tells the disposals of `untold`, which is one of its
     * lists, and empties it. Token held. */
    void (*tell)(struct wf_worker *worker, struct wf_list *untold);
    /* The drive token is free: a waiting caller may want it. */
    bool (*token_free)(void *waiting);
    /* The thread of a lent worker is about to rest: callers may not have looked again since its last rest. */
    void (*resting)(void *waiting);
    void *waiting;
};

/* The workers of a context. Owner: the context. */
struct wf_crew {
    struct wf_world *world;
    struct wf_chores chores;
    _Atomic uint64_t large_out; /* operations of more than `eager` bytes under way; a receive counts by its capacity */
    int count;
    int express; /* the worker of the express channels, behind those of the rails; 0: none of its own */
    const struct wf_engine_ops *express_engine; /* of that one; NULL: as the others' */
    struct wf_worker *workers[WF_WORKERS_MAX];
    struct wf_placement placement;
};

/* The worker that callers drive, too; NULL: threads alone drive. */
static inline struct wf_worker *wf_crew_callers_own(const struct wf_crew *crew)
{
    if (crew->world->shared)
        return crew->workers[0];
    return crew->express > 0 ? crew->workers[crew->express] : NULL;
}

/* These calls set the chores. Before any worker runs. */
static inline void wf_crew_copies(struct wf_crew *crew, void *devices, int (*drive)(void *, struct wf_worker *),
                                  bool (*busy)(void *, const struct wf_worker *))
{
    crew->chores.devices = devices;
    crew->chores.drive = drive;
    crew->chores.busy = busy;
}

static inline void wf_crew_callers(struct wf_crew *crew, void *waiting, bool (*token_free)(void *),
                                   void (*resting)(void *))
{
    crew->chores.waiting = waiting;
    crew->chores.token_free = token_free;
    crew->chores.resting = resting;
}

static inline void wf_crew_disposals(struct wf_crew *crew, void (*tell)(struct wf_worker *, struct wf_list *))
{
    crew->chores.tell = tell;
}

/* A large operation begins (`more`) or ends. */
static inline void wf_crew_count_large(struct wf_crew *crew, bool more)
{
    if (more)
        atomic_fetch_add(&crew->large_out, 1);
    else
        atomic_fetch_sub_explicit(&crew->large_out, 1, memory_order_relaxed);
}

#endif
