/*
 * The backend that is measured: one connection for each two endpoints, used in both directions. Pairs within a node
 * talk over a session of their own, of a further context that has connected to itself over the same rails.
 */
#include "backend.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/buffers/arena.h"
#include "bench/plan/names.h"
#include "bench/words/interrupt.h"
#include "bout.h"
#include "known.h"

#define OPEN_TIMEOUT_MS 30000
#define SELF_SIDES 2
#define MANY_REQUESTS 1024 /* so many are not looked through for each that has ended */
#define BATCH 16
#define SHORT_POLL_NS 5000
#define NAP_NS 50000

/* A context that has connected to itself: what lies in GPU memory is copied from GPU to GPU. [0] listens and receives,
 * [1] connects and sends; the endpoints of the latter have numbers of their own, behind those of the former. */
struct self {
    struct weft_context *context;
    struct weft_peer *peers[SELF_SIDES];
    struct weft_endpoint **endpoints[SELF_SIDES];
    struct bench_known *known; /* by place; NULL: host memory */
};

struct bench_backend {
    const struct bench_plan *plan;
    struct bench_link *link;
    struct weft_endpoint **endpoints;      /* of this node, by number; NULL where no pair uses it */
    struct weft_connection **send, **recv; /* by pair; NULL where this node has no such part */
    struct bench_known *known;             /* to the link's context, by place; NULL: host memory */
    struct bench_known *used;              /* by pair: what is sent and received with; NULL: host memory */
    struct self self;
    struct weft_queue *queue; /* NULL until many requests were expected */
    bool queued;              /* requests end there */
    struct weft_completion ended[BATCH];
    int ended_count, ended_next; /* those that wait() has not returned yet */
    uint64_t live;               /* requests under way */
    struct weft_request **left;  /* those that were given up, to be collected once the session has ended */
    size_t left_count;
    bool mixed; /* requests of several contexts may wait at the same time */
    int next;   /* where asking in turn goes on, so that no request starves */
};

/* --- open --- */

static int create_endpoint(struct weft_context *context, uint32_t id, int node, struct weft_endpoint **slot,
                           struct wf_status *status)
{
    struct weft_error err = {0};

    if (*slot)
        return 0;
    if (weft_endpoint_create(context, id, slot, &err) != 0)
        return bench_weft_failed(status, &err, "endpoint");
    (void)weft_endpoint_set_node(*slot, node);
    return 0;
}

/* What is being done, for messages. Returns `text`. */
static char *connecting(const struct bench_pair *pair, char *text, size_t room)
{
    char src[32], dst[32];

    snprintf(text, room, "connecting %s and %s", bench_src_name(pair, src, sizeof src),
             bench_dst_name(pair, dst, sizeof dst));
    return text;
}

/* The connection between endpoint `mine` of this node and `theirs` of the other: node1 opens, node0 accepts. */
static int join_inter(struct bench_backend *backend, const struct bench_pair *pair, uint32_t mine, uint32_t theirs,
                      struct weft_connection **out, struct wf_status *status)
{
    struct weft_error err = {0};
    char what[80];
    int result = backend->endpoints[mine]
                     ? 0
                     : bench_link_endpoint(backend->link, mine, bench_link_numa_node(backend->link, mine),
                                           &backend->endpoints[mine], status);

    if (result)
        return result;
    connecting(pair, what, sizeof what);
    if (backend->link->node == 0)
        return bench_link_take(backend->link, backend->endpoints[mine], theirs, OPEN_TIMEOUT_MS, what, out, status);
    result = weft_connection_open(backend->endpoints[mine], backend->link->peer, theirs, OPEN_TIMEOUT_MS, out, &err);
    return result ? bench_weft_failed(status, &err, what) : 0;
}

static int join_intra(struct bench_backend *backend, const struct bench_pair *pair, struct weft_connection **send,
                      struct weft_connection **recv, struct wf_status *status)
{
    struct self *self = &backend->self;
    struct weft_error err = {0};
    uint32_t sender = backend->plan->endpoints + pair->src;
    char what[80];
    int result = create_endpoint(self->context, pair->dst, bench_link_numa_node(backend->link, pair->dst),
                                 &self->endpoints[0][pair->dst], status);
    if (result == 0)
        result = create_endpoint(self->context, sender, bench_link_numa_node(backend->link, pair->src),
                                 &self->endpoints[1][pair->src], status);
    if (result)
        return result;
    result =
        weft_connection_open(self->endpoints[1][pair->src], self->peers[1], pair->dst, OPEN_TIMEOUT_MS, send, &err);
    if (result == 0)
        result =
            weft_connection_accept(self->endpoints[0][pair->dst], self->peers[0], sender, OPEN_TIMEOUT_MS, recv, &err);
    return result ? bench_weft_failed(status, &err, connecting(pair, what, sizeof what)) : 0;
}

static int join_self(struct bench_backend *backend, struct wf_status *status)
{
    struct self *self = &backend->self;
    struct weft_error err = {0};
    char address[32];
    int result = 0;

    for (int side = 0; side < SELF_SIDES; side++) {
        self->endpoints[side] = calloc(backend->plan->endpoints, sizeof *self->endpoints[side]);
        if (!self->endpoints[side])
            return wf_fail(status, -ENOMEM, "no memory for %u endpoints", backend->plan->endpoints);
    }
    if (weft_context_create(backend->link->settings, &self->context, &err) != 0)
        return bench_weft_failed(status, &err, "within this node");
    result = weft_listen(self->context, "127.0.0.1:0", &err);
    if (result == 0) {
        snprintf(address, sizeof address, "127.0.0.1:%d", weft_listen_port(self->context));
        result = weft_connect(self->context, address, backend->link->connect_timeout_ms, &self->peers[1], &err);
    }
    if (result == 0)
        result = weft_accept(self->context, backend->link->connect_timeout_ms, &self->peers[0], &err);
    return result ? bench_weft_failed(status, &err, "within this node") : 0;
}

/* Connections between the nodes are opened in the order of the plan, which is the same on both. */
static int join_pairs(struct bench_backend *backend, struct wf_status *status)
{
    const struct bench_plan *plan = backend->plan;
    uint64_t cells = (uint64_t)plan->endpoints * plan->endpoints;
    struct weft_connection **joined =
        calloc(cells, sizeof(struct weft_connection *)); /* by node0's, node1's endpoint */
    int node = backend->link->node, result = joined ? 0 : wf_fail(status, -ENOMEM, "no memory for connections");

    for (uint32_t i = 0; result == 0 && i < plan->pair_count; i++) {
        const struct bench_pair *pair = &plan->pairs[i];
        bool sends = pair->src_node == node, receives = pair->dst_node == node;
        uint32_t mine = sends ? pair->src : pair->dst, theirs = sends ? pair->dst : pair->src;
        result = bench_interrupted(status);
        if (result || !(sends || receives) || (backend->link->team && sends != receives))
            continue;
        if (sends && receives) {
            result = join_intra(backend, pair, &backend->send[i], &backend->recv[i], status);
            continue;
        }
        struct weft_connection **cell = &joined[(uint64_t)mine * plan->endpoints + theirs];
        if (!*cell)
            result = join_inter(backend, pair, mine, theirs, cell, status);
        /* Both ways: a ping-pong answers on the pair it was asked on. */
        backend->send[i] = backend->recv[i] = *cell;
    }
    free(joined);
    return result;
}

static int weft_backend_meet(struct bench_backend *backend, uint32_t first, uint32_t count, struct wf_status *status)
{
    int result = bench_bout_join(backend->link, backend->plan, first, count, backend->send, status);

    for (uint32_t i = first; i < first + count; i++)
        backend->recv[i] = backend->send[i];
    return result;
}

static void weft_backend_part(struct bench_backend *backend, uint32_t first, uint32_t count)
{
    bench_bout_part(backend->plan, first, count, backend->send);
}

/* --- GPU memory --- */

static int register_all(struct bench_backend *backend, struct wf_status *status)
{
    int result = bench_known_make(backend->link, backend->link->context, &backend->known, status);

    if (result == 0 && backend->plan->intra)
        result = bench_known_make(backend->link, backend->self.context, &backend->self.known, status);
    return result;
}

/* Which of them the messages of each pair are in: looked up here, not for each message. */
static int assign_known(struct bench_backend *backend, struct wf_status *status)
{
    const struct bench_plan *plan = backend->plan;
    const struct bench_arena *arena = backend->link->arena;

    if (!backend->known)
        return 0;
    backend->used = calloc(plan->pair_count, sizeof *backend->used);
    if (!backend->used)
        return wf_fail(status, -ENOMEM, "no memory for %u pairs", plan->pair_count);
    for (uint32_t i = 0; i < plan->pair_count; i++) {
        const struct bench_pair *pair = &plan->pairs[i];
        uint32_t src = bench_arena_place(arena, pair->src), dst = bench_arena_place(arena, pair->dst);
        uint32_t mine = pair->src_node == backend->link->node ? src : dst;
        if (pair->src_node == pair->dst_node && pair->src_node == backend->link->node) {
            backend->used[i].stream = backend->self.known[src].stream;
            backend->used[i].landings = backend->self.known[dst].landings;
        } else {
            backend->used[i] = backend->known[mine];
        }
    }
    return 0;
}

/* --- what was given up --- */

/* Only a context that goes on has to get them back. */
static void weft_backend_abandon(struct bench_backend *backend, const bench_request *requests, size_t count)
{
    if (!backend->link->house || backend->queued)
        return;
    struct weft_request **grown = realloc(backend->left, (backend->left_count + count) * sizeof(struct weft_request *));
    if (!grown)
        return;
    backend->left = grown;
    for (size_t i = 0; i < count; i++)
        if (requests[i])
            grown[backend->left_count++] = requests[i];
}

/* The session is over: all its requests have ended. Those of the context within this node end with that. */
static void collect_left(struct bench_backend *backend)
{
    struct weft_completion completion;

    for (size_t i = 0; i < backend->left_count && backend->link->over; i++)
        weft_test(backend->left[i], &completion);
    free(backend->left);
    while (backend->queue && backend->link->over && weft_queue_poll(backend->queue, backend->ended, BATCH) > 0) {
    }
    if (backend->queue && (backend->live == 0 || backend->link->over))
        weft_queue_destroy(backend->queue);
}

/* --- all of it --- */

static void weft_backend_close(struct bench_backend *backend)
{
    if (!backend)
        return;
    collect_left(backend);
    /* With a context go its connections and endpoints. Those of the link's context end with the link. */
    if (backend->self.context)
        weft_context_destroy(backend->self.context);
    for (int side = 0; side < SELF_SIDES; side++)
        free(backend->self.endpoints[side]);
    free(backend->self.known); /* the registrations went with the context */
    if (backend->live == 0 || backend->link->over)
        bench_known_forget(backend->known, backend->link->arena);
    free(backend->known);
    free(backend->used);
    free(backend->endpoints);
    free(backend->send);
    free(backend->recv);
    free(backend);
}

static int weft_backend_open(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                             struct wf_status *status)
{
    struct bench_backend *backend = calloc(1, sizeof *backend);
    int result = 0;

    if (!backend)
        return wf_fail(status, -ENOMEM, "no memory for the weft backend");
    backend->link = link;
    backend->plan = plan;
    backend->mixed = plan->intra;
    backend->endpoints = calloc(plan->endpoints, sizeof(struct weft_endpoint *));
    backend->send = calloc(plan->pair_count, sizeof(struct weft_connection *));
    backend->recv = calloc(plan->pair_count, sizeof(struct weft_connection *));
    if (!backend->endpoints || !backend->send || !backend->recv)
        result = wf_fail(status, -ENOMEM, "no memory for %u pairs", plan->pair_count);
    if (result == 0 && plan->intra)
        result = join_self(backend, status);
    if (result == 0)
        result = register_all(backend, status);
    if (result == 0)
        result = assign_known(backend, status);
    if (result == 0)
        result = join_pairs(backend, status);
    if (result) {
        weft_backend_close(backend);
        return result;
    }
    *out = backend;
    return 0;
}

/* --- messages --- */

/* Where a request ends when there are many: wait() finds it by its place in the array. And what its memory is known as.
 */
static const struct weft_options *options_for(const struct bench_backend *backend, bench_request *place,
                                              struct weft_registration *registration, struct weft_options *options)
{
    if (!backend->queued && !registration)
        return NULL;
    memset(options, 0, sizeof *options);
    options->registration = registration;
    options->queue = backend->queued ? backend->queue : NULL;
    options->user_data = place;
    return options;
}

static int weft_backend_expect(struct bench_backend *backend, uint64_t count, struct wf_status *status)
{
    struct weft_error err = {0};

    backend->queued = count >= MANY_REQUESTS && !backend->mixed;
    if (!backend->queued || backend->queue || weft_queue_create(backend->link->context, &backend->queue, &err) == 0)
        return 0;
    return bench_weft_failed(status, &err, "completion queue");
}

static int weft_backend_send(struct bench_backend *backend, uint32_t pair, const void *data, uint64_t length,
                             uint64_t tag, bench_request *out)
{
    struct weft_registration *registration = backend->used ? backend->used[pair].stream : NULL;
    struct weft_options options;
    struct weft_request *request;
    int result =
        weft_send(backend->send[pair], data, length, tag, options_for(backend, out, registration, &options), &request);

    if (result)
        return result;
    *out = request;
    backend->live++;
    return 0;
}

static int weft_backend_recv(struct bench_backend *backend, uint32_t pair, void *landing, uint64_t length, uint64_t tag,
                             bench_request *out)
{
    struct weft_registration *registration = backend->used ? backend->used[pair].landings : NULL;
    struct weft_options options;
    struct weft_request *request;
    int result = weft_recv(backend->recv[pair], landing, length, tag, options_for(backend, out, registration, &options),
                           &request);

    if (result)
        return result;
    *out = request;
    backend->live++;
    return 0;
}

/* Requests of several contexts cannot wait in one call: asked in turn instead. */
static int poll_mixed(struct weft_request *const *requests, int count, int timeout_ms, int *next, int *index,
                      struct weft_completion *completion)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);

    for (;;) {
        bool any = false;
        for (int i = 0; i < count; i++) {
            int at = (*next + i) % count;
            if (!requests[at])
                continue;
            any = true;
            if (weft_test(requests[at], completion)) {
                *index = at;
                *next = at + 1;
                return 0;
            }
        }
        if (!any)
            return -ENOENT;
        if (wf_clock_now(&wf_clock_monotonic) >= deadline)
            return -ETIMEDOUT;
        sched_yield();
    }
}

/*
 * A queue whose progress the caller makes has no call that sleeps. So this one polls, and naps after a short poll: one
 * that moves data takes longer, also when no message ends with it.
 */
static int poll_queue(struct bench_backend *backend, const bench_request *requests, int timeout_ms, int *index,
                      struct weft_completion *completion)
{
    const struct timespec nap = {0, NAP_NS};
    int64_t now = 0, deadline = 0;

    while (backend->ended_next == backend->ended_count) {
        int64_t before = now;
        backend->ended_next = 0;
        backend->ended_count = weft_queue_poll(backend->queue, backend->ended, BATCH);
        if (backend->ended_count > 0)
            break;
        now = wf_clock_now(&wf_clock_monotonic);
        if (deadline == 0)
            deadline = wf_deadline_after_ms(now, timeout_ms);
        if (now >= deadline)
            return -ETIMEDOUT;
        if (now - before < SHORT_POLL_NS) {
            nanosleep(&nap, NULL);
            now = wf_clock_now(&wf_clock_monotonic);
        }
    }
    *completion = backend->ended[backend->ended_next++];
    *index = (int)((const bench_request *)completion->user_data - requests);
    return 0;
}

static int weft_backend_wait(struct bench_backend *backend, bench_request *requests, int count, int timeout_ms,
                             int *index, struct weft_completion *completion)
{
    struct weft_request *const *posted = (struct weft_request *const *)requests;
    int result;

    if (backend->queued)
        result = poll_queue(backend, requests, timeout_ms, index, completion);
    else if (backend->mixed)
        result = poll_mixed(posted, count, timeout_ms, &backend->next, index, completion);
    else
        result = weft_wait_any(posted, count, timeout_ms, index, completion);
    backend->live -= result == 0;
    return result;
}

static int weft_backend_rails(struct bench_backend *backend, bool intra, struct weft_rail_stats *stats, int max)
{
    if (!intra)
        return max < BENCH_RAILS_MAX ? 0 : bench_link_rails(backend->link, stats);
    return backend->self.peers[0] ? weft_peer_rails(backend->self.peers[0], stats, max) : 0;
}

static struct weft_context *weft_backend_context(const struct bench_backend *backend, bool intra)
{
    return intra ? backend->self.context : backend->link->context;
}

const struct bench_backend_ops bench_backend_weft = {
    .name = "weft",
    .moves_data = true,
    .open = weft_backend_open,
    .meet = weft_backend_meet,
    .part = weft_backend_part,
    .send = weft_backend_send,
    .recv = weft_backend_recv,
    .expect = weft_backend_expect,
    .wait = weft_backend_wait,
    .abandon = weft_backend_abandon,
    .rails = weft_backend_rails,
    .context = weft_backend_context,
    .close = weft_backend_close,
};
