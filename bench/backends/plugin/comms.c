#include "comms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/buffers/arena.h"
#include "bench/nodes/control.h"
#include "bench/words/heard.h"
#include "bench/words/interrupt.h"

#define NAP_NS 20000 /* between two calls of connect or accept */
#define PING_PONG 16 /* messages; a ping-pong has fewer, and does not say how many */

/* --- one comm --- */

/* Both ends of a direction that are here. */
struct ends {
    struct net_comm *sender, *receiver; /* NULL: it is the other node's */
    unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
    void *listener;
    int device;
};

/* The handle in hexadecimal digits, from the node that receives to the one that sends. */
static int carry_handle(const struct bench_backend *backend, struct ends *ends, struct wf_status *status)
{
    struct bench_control *control = backend->link->control;
    char text[2 * NCCL_NET_HANDLE_MAXSIZE + 1];
    json_t *message = NULL;
    int result;

    if (ends->receiver) {
        for (int i = 0; i < NCCL_NET_HANDLE_MAXSIZE; i++)
            snprintf(text + 2 * i, 3, "%02x", ends->handle[i]);
        message = json_pack("{s:s}", "handle", text);
        result = bench_control_say(control, message, status);
    } else {
        result = bench_control_hear(control, &message, status);
        if (result == 0 && bench_heard_bytes(json_object_get(message, "handle"), ends->handle,
                                             NCCL_NET_HANDLE_MAXSIZE) != NCCL_NET_HANDLE_MAXSIZE)
            result =
                wf_fail(status, -EPROTO, "the other node sent no handle of its plugin: use the same build on both");
    }
    json_decref(message);
    return result;
}

/* One round of calls; none of them waits. */
static int call_once(const struct bench_backend *backend, struct ends *ends, struct wf_status *status)
{
    const struct nccl_net_v11 *net = backend->library.net;
    struct nccl_net_device_handle *offload = NULL;
    int result = 0;

    if (ends->sender && !ends->sender->handle)
        result = net_failed(net->connect(backend->context, ends->device, ends->handle, &ends->sender->handle, &offload),
                            "connect", status);
    if (result == 0 && ends->receiver && !ends->receiver->handle)
        result = net_failed(net->accept(ends->listener, &ends->receiver->handle, &offload), "accept", status);
    if (result == 0 && offload)
        result = wf_fail(status, -EOPNOTSUPP, "--backend plugin: the plugin wants device offload");
    return result;
}

static bool is_joined(const struct ends *ends)
{
    return (!ends->sender || ends->sender->handle) && (!ends->receiver || ends->receiver->handle);
}

static int join(const struct bench_backend *backend, struct ends *ends, struct wf_status *status)
{
    const struct timespec nap = {0, NAP_NS};
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), backend->link->connect_timeout_ms);
    int result = call_once(backend, ends, status);

    while (result == 0 && !is_joined(ends)) {
        nanosleep(&nap, NULL);
        result = bench_interrupted(status);
        if (result == 0)
            result = bench_control_check(backend->link->control, status);
        if (result == 0 && wf_clock_now(&wf_clock_monotonic) >= deadline)
            result = wf_fail(status, -ETIMEDOUT, "--backend plugin: no comm after %d s",
                             backend->link->connect_timeout_ms / 1000);
        if (result == 0)
            result = call_once(backend, ends, status);
    }
    return result;
}

static int take_memory(const struct bench_backend *backend, struct net_comm *comm, uint32_t endpoint,
                       struct wf_status *status)
{
    const struct bench_arena *arena = backend->link->arena;
    const struct bench_buffers *place = &arena->places[bench_arena_place(arena, endpoint)];
    void *base = comm->sends ? place->stream : place->landings;
    uint64_t bytes = comm->sends ? arena->stream_bytes : place->landing_bytes;

    comm->gpu = place->gpu >= 0;
    enum nccl_result result = backend->library.net->reg_mr(comm->handle, base, bytes,
                                                           comm->gpu ? NCCL_PTR_CUDA : NCCL_PTR_HOST, &comm->memory);
    comm->registered = result == NCCL_SUCCESS;
    return net_failed(result, "registering memory", status);
}

/* --- all of them --- */

/* Messages of a pair from one node to another; of the nodes at most one is not this one. */
static int open_direction(struct bench_backend *backend, uint32_t index, bool forth, struct wf_status *status)
{
    const struct nccl_net_v11 *net = backend->library.net;
    const struct bench_pair *pair = &backend->plan->pairs[index];
    int node = backend->link->node;
    int from = forth ? pair->src_node : pair->dst_node, to = forth ? pair->dst_node : pair->src_node;
    uint32_t source = forth ? pair->src : pair->dst, target = forth ? pair->dst : pair->src;
    struct ends ends = {
        .sender = from == node ? net_comm_of(backend, index, true) : NULL,
        .receiver = to == node ? net_comm_of(backend, index, false) : NULL,
        .device = (int)(index % (uint32_t)backend->device_count),
    };
    int result = 0;

    if (!ends.sender && !ends.receiver)
        return 0;
    if (ends.sender)
        ends.sender->sends = true;
    if (ends.receiver)
        result = net_failed(net->listen(backend->context, ends.device, ends.handle, &ends.listener), "listen", status);
    if (result == 0 && from != to)
        result = carry_handle(backend, &ends, status);
    if (result == 0)
        result = join(backend, &ends, status);
    if (ends.listener)
        net->close_listen(ends.listener);
    if (result == 0 && ends.sender)
        result = take_memory(backend, ends.sender, source, status);
    if (result == 0 && ends.receiver)
        result = take_memory(backend, ends.receiver, target, status);
    return result;
}

/* In the order of the plan, which is the same on both nodes. */
static int open_comms(struct bench_backend *backend, struct wf_status *status)
{
    const struct bench_plan *plan = backend->plan;
    int result = 0;

    for (uint32_t i = 0; i < plan->pair_count && result == 0; i++) {
        result = open_direction(backend, i, true, status);
        /* A ping-pong answers on the pair it was asked on; one within a node sends and receives there anyway. */
        if (result == 0 && plan->latency && plan->pairs[i].src_node != plan->pairs[i].dst_node)
            result = open_direction(backend, i, false, status);
    }
    return result;
}

/* --- the plugin --- */

/* Every device has to take the memory that this node's messages lie in. */
static int look_at_devices(struct bench_backend *backend, struct wf_status *status)
{
    const struct nccl_net_v11 *net = backend->library.net;
    bool gpu = backend->plan->nodes[backend->link->node].memory != BENCH_HOST;
    int result = net_failed(net->devices(&backend->device_count), "devices", status);

    if (result == 0 && backend->device_count < 1)
        result = wf_fail(status, -EOPNOTSUPP, "--backend plugin: the plugin has no device");
    for (int i = 0; result == 0 && i < backend->device_count; i++) {
        struct nccl_net_properties_v11 properties = {0};
        result = net_failed(net->properties(i, &properties), "properties", status);
        if (result == 0 && !(properties.ptr_support & (gpu ? NCCL_PTR_CUDA : NCCL_PTR_HOST)))
            result = wf_fail(status, -EOPNOTSUPP,
                             "--backend plugin: its device %.60s takes no %s memory, where node%d's messages lie%s",
                             properties.name, gpu ? "GPU" : "host", backend->link->node,
                             gpu ? ": use --memory host, or --nccl-ptr cuda" : "");
    }
    return result;
}

static int begin(struct bench_backend *backend, struct wf_status *status)
{
    struct nccl_net_config config = {.traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF};
    const struct weft_config *settings = backend->link->settings;
    int result = net_library_open(&backend->library, backend->plan->plugin_library, status);

    if (result == 0)
        result = net_settings_pass(&backend->settings, settings, status);
    if (result)
        return result;
    backend->begun = true;
    return net_failed(
        backend->library.net->init(&backend->context, 1, &config, net_log_open(weft_config_get(settings, "log")), NULL),
        "init", status);
}

int net_backend_open(struct bench_link *link, const struct bench_plan *plan, struct bench_backend **out,
                     struct wf_status *status)
{
    struct bench_backend *backend = calloc(1, sizeof *backend);

    if (!backend)
        return wf_fail(status, -ENOMEM, "no memory for the backend plugin");
    backend->link = link;
    backend->plan = plan;
    backend->comms = calloc(2 * (size_t)plan->pair_count, sizeof *backend->comms);
    backend->busy = calloc(2 * (size_t)plan->pair_count, sizeof(struct net_comm *));
    int result = backend->comms && backend->busy ? begin(backend, status)
                                                 : wf_fail(status, -ENOMEM, "no memory for %u pairs", plan->pair_count);
    if (result == 0)
        result = net_backend_expect(backend, PING_PONG, status);
    if (result == 0)
        result = look_at_devices(backend, status);
    if (result == 0)
        result = open_comms(backend, status);
    if (result) {
        net_backend_close(backend);
        return result;
    }
    *out = backend;
    return 0;
}

/* Messages under way end with their comm. */
static void close_comm(const struct nccl_net_v11 *net, struct net_comm *comm)
{
    if (comm->registered)
        net->dereg_mr(comm->handle, comm->memory);
    if (comm->handle && comm->sends)
        net->close_send(comm->handle);
    else if (comm->handle)
        net->close_recv(comm->handle);
}

void net_backend_close(struct bench_backend *backend)
{
    if (!backend)
        return;
    for (uint64_t i = 0; backend->comms && i < 2 * (uint64_t)backend->plan->pair_count; i++)
        close_comm(backend->library.net, &backend->comms[i]);
    if (backend->begun)
        backend->library.net->finalize(backend->context);
    net_library_close(&backend->library);
    free(backend->operations);
    free(backend->comms);
    free(backend->busy);
    free(backend);
}
