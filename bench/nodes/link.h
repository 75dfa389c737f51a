/*
 * link.h: this node and the other: one context, one session, and the control connection between endpoints
 * BENCH_CONTROL_ENDPOINT of both.
 */
#ifndef WF_BENCH_LINK_H
#define WF_BENCH_LINK_H

#include <jansson.h>

#include "base/status.h"
#include "bench/machine/footprint.h"
#include "bench/machine/gpus.h"
#include "bench/machine/placement.h"
#include "bench/plan/options.h"
#include "weft.h"

#define BENCH_CONTROL_ENDPOINT 0xfffffff0u
#define BENCH_RAILS_MAX 64
#define BENCH_OF_MANY (-1) /* a node of a team, before it has its number */

struct bench_control;
struct bench_team;

/* All zero is a link that was never opened. Owner: the measuring thread. */
struct bench_link {
    int node;      /* 0 listens, 1 connects; of a team, the rank */
    int other;     /* the node of `peer` */
    int processes; /* of a node: `node` and `other` are numbers of such; 0: one */
    struct weft_config *settings;
    struct weft_context *context;
    struct weft_peer *peer;
    struct weft_endpoint *endpoint;
    struct weft_connection *connection;      /* control */
    struct bench_control *control;           /* over it; NULL until there is one. The caller's */
    json_t *backends;                        /* what was in force of those that have something to tell; NULL: none */
    int connect_timeout_ms, idle_timeout_ms; /* idle: -1: none */
    struct bench_footprint footprint;
    struct bench_placement placement;
    const char *gave_way;             /* lines for the fallbacks, of the options; NULL: none */
    struct bench_gpus gpus;           /* in use; the other node may decide otherwise */
    json_t *_Atomic gpu_states;       /* of the GPUs in use after the run; NULL: not yet. Owned */
    json_t *_Atomic memory_watch;     /* what --watch-memory has found; NULL: nothing. Owned */
    struct weft_endpoint **endpoints; /* of the context, by number; NULL: there is none */
    uint32_t endpoint_count;
    struct bench_link *house;              /* whose settings, context and endpoints these are; NULL: its own */
    bool over;                             /* the session has ended: no memory of a request is touched any more */
    struct weft_fault_stats faults_before; /* of the context, in the runs before */
    struct weft_gpu_stats gpus_before[BENCH_GPUS_MAX];
    int gpus_before_count;
    struct bench_team *team; /* of more than two nodes, whose context this is; NULL: there are two. The caller's */
    const struct bench_arena *arena; /* NULL until there are buffers; the backends see to what they need for them */
};

/* The number of this node in what is written, also where it is one of several processes. */
static inline int bench_link_number(const struct bench_link *link)
{
    return link->processes > 1 ? link->node / link->processes : link->node;
}

/* Asked while waiting for the other node; non-zero ends the wait with that error. */
typedef int bench_waiting(void *context, struct wf_status *status);

/* The NUMA node of an endpoint of this node: of its GPU, or where it was placed. */
int bench_link_numa_node(const struct bench_link *link, uint32_t endpoint);

/* The library's settings out of `config`, in a form a context can be created from; the caller destroys it. -EINVAL also
 * where the key file cannot be used. */
int bench_library_settings(const struct wf_config *config, struct weft_config **out, struct wf_status *status);

/* A context with settings that bench_library_settings() has made of `config`. -EINVAL: they name a rail that is not
 * here. */
int bench_context_create(const struct wf_config *config, const struct weft_config *settings, struct weft_context **out,
                         struct wf_status *status);

/* Opens the link's context, for node 0, 1 or BENCH_OF_MANY, for endpoints on `gpus` (NULL: in host memory). */
int bench_link_open(struct bench_link *link, int node, const struct wf_config *config, const struct bench_gpus *gpus,
                    struct wf_status *status);

/* The counters of the rails to the other node, in the order of the session; of a team, of all sessions since its start,
 * in the order of the context. Up to BENCH_RAILS_MAX; returns how many. */
int bench_link_rails(const struct bench_link *link, struct weft_rail_stats *stats);

/* node0: listens; `port` is written before anybody is waited for. */
int bench_link_listen(struct bench_link *link, const char *address, int *port, struct wf_status *status);
/* node0: waits for the other node as long as `connect_timeout` says, or when `patient` as `idle_timeout` does. Once it
 * has come, the control connection has to follow within `connect_timeout` either way. */
int bench_link_accept(struct bench_link *link, bool patient, bench_waiting *waiting, void *context,
                      struct wf_status *status);
/* node1. */
int bench_link_connect(struct bench_link *link, const char *address, struct wf_status *status);

/* Takes the connection that the peer opens from its endpoint `remote` to `endpoint`. -EINTR once a signal has come. */
int bench_link_take(const struct bench_link *link, struct weft_endpoint *endpoint, uint32_t remote, int timeout_ms,
                    const char *what, struct weft_connection **out, struct wf_status *status);

/* The endpoint of this context with this number, made where it is not there; its memory is on a NUMA node. */
int bench_link_endpoint(struct bench_link *link, uint32_t id, int numa_node, struct weft_endpoint **out,
                        struct wf_status *status);

/* A session of its own, with a guest of `house`: a link that listens, and outlives this one. */
void bench_link_visit(struct bench_link *link, struct bench_link *house, struct weft_peer *peer,
                      struct weft_connection *connection);

/* Ends the session of a link that visits: what was under way has ended, and can be asked for. Of others nothing. */
void bench_link_end(struct bench_link *link);

/* Ends the session and frees everything; at most about a second. */
void bench_link_close(struct bench_link *link);

/* Turns the library's error into ours; returns its code. */
int bench_weft_failed(struct wf_status *status, const struct weft_error *err, const char *what);

#endif
