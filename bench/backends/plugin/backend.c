/*
 * NCCL's net plugin, driven as NCCL's proxy drives it: one thread asks about the oldest message of every comm in turn,
 * tells the plugin of those that it has not taken yet, and gives up the processor where nothing has moved. See comms.h
 * for what is opened.
 */
#include "backend.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "comms.h"

/* --- messages under way --- */

static void append(struct bench_backend *backend, struct net_comm *comm, struct net_operation *operation)
{
    if (comm->first) {
        comm->last->next = operation;
    } else {
        comm->first = operation;
        comm->busy_at = backend->busy_count;
        backend->busy[backend->busy_count++] = comm;
    }
    comm->last = operation;
    if (!comm->untold)
        comm->untold = operation;
}

/* The oldest message of the comm has ended. */
static void end_first(struct bench_backend *backend, struct net_comm *comm)
{
    struct net_operation *operation = comm->first;

    operation->completed_ns = wf_clock_now(&wf_clock_monotonic);
    comm->first = operation->next;
    if (!comm->first) {
        struct net_comm *moved = backend->busy[--backend->busy_count];
        backend->busy[moved->busy_at = comm->busy_at] = moved;
    }
    operation->next = NULL;
    if (backend->ended)
        backend->ended_last->next = operation;
    else
        backend->ended = operation;
    backend->ended_last = operation;
}

/* The proxy gives up, too, after the first error. */
static int break_down(struct bench_backend *backend, enum nccl_result result, const char *what)
{
    struct wf_status status;

    if (result == NCCL_SUCCESS || backend->error)
        return backend->error;
    backend->error = net_failed(result, what, &status);
    bench_copy_text(backend->why, sizeof backend->why, status.text);
    return backend->error;
}

static enum nccl_result tell_one(const struct bench_backend *backend, struct net_operation *operation)
{
    const struct nccl_net_v11 *net = backend->library.net;
    struct net_comm *comm = operation->comm;
    size_t length = operation->length;
    int tag = (int)(uint32_t)operation->tag;

    if (comm->sends)
        return net->isend(comm->handle, operation->buffer, length, tag, comm->memory, NULL, &operation->request);
    return net->irecv(comm->handle, 1, &operation->buffer, &length, &tag, &comm->memory, NULL, &operation->request);
}

/* The plugin is told of messages in their order. It takes a few at a time: NCCL has no more than 32 under way, and
 * this caller may. True: it has taken one. */
static bool tell(struct bench_backend *backend, struct net_comm *comm)
{
    bool any = false;

    while (comm->untold && break_down(backend, tell_one(backend, comm->untold), comm->sends ? "isend" : "irecv") == 0) {
        if (!comm->untold->request)
            break;
        comm->untold = comm->untold->next;
        any = true;
    }
    return any;
}

/* What has come into GPU memory is flushed before it is used; a plugin that need not do so begins nothing. */
static void flush(struct bench_backend *backend, struct net_operation *operation)
{
    int size = (int)operation->bytes;

    operation->flushing = true;
    operation->request = NULL;
    break_down(backend,
               backend->library.net->iflush(operation->comm->handle, 1, &operation->buffer, &size,
                                            &operation->comm->memory, &operation->request),
               "iflush");
}

/* True: something has moved. */
static bool ask(struct bench_backend *backend, struct net_comm *comm)
{
    struct net_operation *operation = comm->first;
    int done = 0, size = 0;

    if (!operation->request ||
        break_down(backend, backend->library.net->test(operation->request, &done, &size), "test") || !done)
        return false;
    if (!operation->flushing)
        operation->bytes = comm->sends ? operation->length : (uint64_t)size;
    operation->request = NULL;
    if (comm->gpu && !comm->sends && !operation->flushing && operation->bytes)
        flush(backend, operation);
    if (!operation->request && !backend->error)
        end_first(backend, comm);
    return true;
}

static bool go_round(struct bench_backend *backend)
{
    bool any = false;

    for (uint32_t i = 0; i < backend->busy_count && !backend->error;) {
        struct net_comm *comm = backend->busy[i];
        any |= tell(backend, comm);
        any |= ask(backend, comm);
        i += i < backend->busy_count && backend->busy[i] == comm; /* or another one has its place */
    }
    return any;
}

/* --- for the measuring code --- */

static int plugin_post(struct bench_backend *backend, uint32_t pair, bool sends, const struct net_operation *what,
                       bench_request *out)
{
    struct net_operation *operation = backend->free;

    if (!operation)
        return -EAGAIN;
    backend->free = operation->next;
    *operation = *what;
    operation->comm = net_comm_of(backend, pair, sends);
    operation->place = out;
    *out = operation;
    append(backend, operation->comm, operation);
    if (!backend->error)
        tell(backend, operation->comm); /* wait() says what went wrong */
    return 0;
}

static int plugin_send(struct bench_backend *backend, uint32_t pair, const void *data, uint64_t length, uint64_t tag,
                       bench_request *out)
{
    return plugin_post(backend, pair, true,
                       &(struct net_operation){.buffer = (void *)(uintptr_t)data, .length = length, .tag = tag}, out);
}

static int plugin_recv(struct bench_backend *backend, uint32_t pair, void *landing, uint64_t length, uint64_t tag,
                       bench_request *out)
{
    return plugin_post(backend, pair, false, &(struct net_operation){.buffer = landing, .length = length, .tag = tag},
                       out);
}

int net_backend_expect(struct bench_backend *backend, uint64_t count, struct wf_status *status)
{
    struct net_operation *grown;

    if (count <= backend->operation_count)
        return 0;
    grown = calloc(count, sizeof *grown); /* none of the old ones is in use */
    if (!grown)
        return wf_fail(status, -ENOMEM, "no memory for %llu messages of the plugin", (unsigned long long)count);
    free(backend->operations);
    backend->operations = grown;
    backend->operation_count = count;
    backend->free = NULL;
    for (uint64_t i = 0; i < count; i++) {
        grown[i].next = backend->free;
        backend->free = &grown[i];
    }
    return 0;
}

static void give_back(struct bench_backend *backend, const bench_request *requests, int *index,
                      struct weft_completion *completion)
{
    struct net_operation *operation = backend->ended;

    backend->ended = operation->next;
    memset(completion, 0, sizeof *completion);
    completion->tag = operation->tag;
    completion->completed_ns = operation->completed_ns;
    completion->bytes = operation->bytes;
    *index = (int)(operation->place - requests);
    operation->next = backend->free;
    backend->free = operation;
}

/* Each message is told to have failed, and the plugin is asked about none any more. */
static void give_back_failed(struct bench_backend *backend, const bench_request *requests, int *index,
                             struct weft_completion *completion)
{
    struct net_comm *comm = backend->busy[0];

    comm->first->bytes = 0;
    end_first(backend, comm);
    give_back(backend, requests, index, completion);
    completion->status = backend->error;
    bench_copy_text(completion->text, sizeof completion->text, backend->why);
}

static int plugin_wait(struct bench_backend *backend, bench_request *requests, int count, int timeout_ms, int *index,
                       struct weft_completion *completion)
{
    int64_t deadline = 0;

    (void)count;
    while (!backend->ended) {
        if (backend->busy_count == 0)
            return -ENOENT;
        if (backend->error) {
            give_back_failed(backend, requests, index, completion);
            return 0;
        }
        if (go_round(backend))
            continue;
        int64_t now = wf_clock_now(&wf_clock_monotonic);
        if (deadline == 0)
            deadline = wf_deadline_after_ms(now, timeout_ms);
        else if (now >= deadline)
            return -ETIMEDOUT;
        sched_yield();
    }
    give_back(backend, requests, index, completion);
    return 0;
}

/* The table does not tell what each rail has carried. */
static int plugin_rails(struct bench_backend *backend, bool intra, struct weft_rail_stats *stats, int max)
{
    (void)backend;
    (void)intra;
    (void)stats;
    (void)max;
    return 0;
}

static json_t *plugin_facts(const struct bench_backend *backend)
{
    const struct nccl_net_v11 *net = backend->library.net;
    json_t *devices = json_array();
    char version[64];

    for (int i = 0; i < backend->device_count; i++) {
        struct nccl_net_properties_v11 properties = {0};
        if (net->properties(i, &properties) == NCCL_SUCCESS)
            json_array_append_new(devices,
                                  json_pack("{s:o, s:i, s:i}", "name", bench_heard_string(properties.name),
                                            "speed_mbit", properties.speed, "ptr_support", properties.ptr_support));
    }
    snprintf(version, sizeof version, "%.40s " NET_VERSION, net->name);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "backend", "plugin", "version", version, "library",
                     bench_heard_string(backend->library.path), "devices", devices, "said", net_log_lines(),
                     "variables", net_settings_to_json(&backend->settings));
}

static int plugin_check(const struct bench_backend_ops **ops, const struct bench_plan *plan,
                        const struct wf_config *config, int node, struct wf_status *status)
{
    struct net_library library;

    (void)ops;
    (void)config;
    (void)node;
    if (plan->background)
        return wf_fail(status, -EINVAL,
                       "--backend plugin: messages of a comm are matched in their order, so nothing can be exchanged "
                       "beside the ping-pong: use --background 0");
    int result = net_library_open(&library, plan->plugin_library, status);
    net_library_close(&library);
    return result;
}

const struct bench_backend_ops bench_backend_plugin = {
    .name = "plugin",
    .moves_data = true,
    .check = plugin_check,
    .open = net_backend_open,
    .send = plugin_send,
    .recv = plugin_recv,
    .expect = net_backend_expect,
    .wait = plugin_wait,
    .rails = plugin_rails,
    .facts = plugin_facts,
    .close = net_backend_close,
};
