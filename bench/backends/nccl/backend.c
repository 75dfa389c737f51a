/*
 * The backend to compare with: NCCL's sends and receives between the same endpoints, from and to the same GPU memory.
 * See lanes.h for the order of things, world.h for the conditions.
 */
#include "backend.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/plan/names.h"
#include "lanes.h"

/* --- launches --- */

static void append(struct nccl_list *list, struct nccl_operation *operation)
{
    operation->next = NULL;
    if (list->last)
        list->last->next = operation;
    else
        list->first = operation;
    list->last = operation;
}

static struct nccl_operation *take_first(struct nccl_list *list)
{
    struct nccl_operation *operation = list->first;

    list->first = operation->next;
    if (!list->first)
        list->last = NULL;
    return operation;
}

/* Everything of `from` has ended now. */
static void move_ended(struct bench_backend *backend, struct nccl_list *from, bool failed)
{
    int64_t now = wf_clock_now(&wf_clock_monotonic);

    while (from->first) {
        struct nccl_operation *operation = take_first(from);
        operation->failed = failed;
        operation->completed_ns = now;
        append(&backend->ended, operation);
    }
}

static bool can_launch(const struct nccl_lane *lane)
{
    return lane->posted.first && lane->under_way < NCCL_LAUNCHES;
}

static uint32_t *count_of(const struct bench_backend *backend, const struct nccl_operation *operation)
{
    return &backend->counts[2 * operation->pair + operation->sends];
}

/* Moves what the lane launches next from its list of what is posted: all of it, or of an idle lane the first half of
 * each flow. Counted twice, so that one pass over the list is enough for any number of messages. */
static void take_next(struct bench_backend *backend, struct nccl_lane *lane)
{
    struct nccl_list posted = lane->posted;

    lane->posted = (struct nccl_list){NULL, NULL};
    for (struct nccl_operation *at = posted.first; at; at = at->next)
        ++*count_of(backend, at);
    for (struct nccl_operation *at = posted.first; at; at = at->next)
        at->share = (*count_of(backend, at) + 1) / 2;
    for (struct nccl_operation *at = posted.first; at; at = at->next)
        *count_of(backend, at) = 0;
    while (posted.first) {
        struct nccl_operation *operation = take_first(&posted);
        bool now = lane->under_way || ++*count_of(backend, operation) <= operation->share;
        append(now ? &lane->next : &lane->posted, operation);
    }
    for (struct nccl_operation *at = lane->next.first; at; at = at->next)
        *count_of(backend, at) = 0;
}

static int break_down(struct bench_backend *backend, const char *what, const char *why)
{
    if (!backend->broken)
        snprintf(backend->why, sizeof backend->why, "%s: %.150s", what, why);
    backend->broken = true;
    return -EIO;
}

static int nccl_failed(struct bench_backend *backend, const char *what, nccl_result result)
{
    char why[160];

    return break_down(backend, what, nccl_library_error(&backend->library, result, why, sizeof why));
}

static int cuda_lane_failed(struct bench_backend *backend, const struct nccl_lane *lane, wf_cu_result result)
{
    char what[48], why[WF_CUDA_ERROR_TEXT];

    snprintf(what, sizeof what, "GPU %d", lane->gpu);
    return break_down(backend, what, wf_cuda_error(&backend->cuda.api, result, why));
}

static nccl_result put_operations(const struct bench_backend *backend, const struct nccl_lane *lane)
{
    const struct nccl_library *nccl = &backend->library;
    nccl_result result = NCCL_SUCCESS;

    for (const struct nccl_operation *at = lane->next.first; at && result == NCCL_SUCCESS; at = at->next)
        result = at->sends ? nccl->Send(at->buffer, at->length, NCCL_UINT8, (int)at->peer, lane->comm, lane->stream)
                           : nccl->Recv(at->buffer, at->length, NCCL_UINT8, (int)at->peer, lane->comm, lane->stream);
    return result;
}

/* The event behind a launch. */
static wf_cu_result mark(const struct bench_backend *backend, struct nccl_lane *lane)
{
    const struct wf_cuda_api *cuda = &backend->cuda.api;
    struct nccl_launched *launched = &lane->launches[(lane->oldest + lane->under_way++) % NCCL_LAUNCHES];
    wf_cu_context ours;
    wf_cu_result result = cuda->cuCtxPushCurrent(lane->context);

    launched->operations = lane->next;
    lane->next = (struct nccl_list){NULL, NULL};
    if (result != WF_CU_SUCCESS)
        return result;
    result = cuda->cuEventRecord(launched->event, lane->stream);
    cuda->cuCtxPopCurrent(&ours);
    return result;
}

int nccl_launch(struct bench_backend *backend)
{
    const struct nccl_library *nccl = &backend->library;
    int code = 0;

    for (uint32_t i = 0; i < backend->lane_count; i++)
        if (can_launch(&backend->lanes[i]))
            take_next(backend, &backend->lanes[i]);
    nccl_result result = nccl->GroupStart();
    for (uint32_t i = 0; i < backend->lane_count && result == NCCL_SUCCESS; i++)
        result = put_operations(backend, &backend->lanes[i]);
    /* Also after an error: a group that was begun has to be ended. */
    nccl_result ended = nccl->GroupEnd();
    if (result != NCCL_SUCCESS || ended != NCCL_SUCCESS)
        return nccl_failed(backend, "a launch of NCCL's", result != NCCL_SUCCESS ? result : ended);
    for (uint32_t i = 0; i < backend->lane_count && code == 0; i++) {
        struct nccl_lane *lane = &backend->lanes[i];
        wf_cu_result marked = lane->next.first ? mark(backend, lane) : WF_CU_SUCCESS;
        if (marked != WF_CU_SUCCESS)
            code = cuda_lane_failed(backend, lane, marked);
    }
    return code;
}

/* Gives back the launches of a lane that have ended; they do in their order. */
static void poll_lane(struct bench_backend *backend, struct nccl_lane *lane)
{
    while (lane->under_way) {
        struct nccl_launched *oldest = &lane->launches[lane->oldest];
        wf_cu_result result = backend->cuda.api.cuEventQuery(oldest->event);
        if (result == WF_CU_NOT_READY)
            return;
        if (result != WF_CU_SUCCESS)
            cuda_lane_failed(backend, lane, result);
        move_ended(backend, &oldest->operations, result != WF_CU_SUCCESS);
        lane->oldest = (lane->oldest + 1) % NCCL_LAUNCHES;
        lane->under_way--;
    }
}

/* Whether something is still under way. */
static bool poll_lanes(struct bench_backend *backend)
{
    bool any = false;

    for (uint32_t i = 0; i < backend->lane_count; i++) {
        poll_lane(backend, &backend->lanes[i]);
        any |= backend->lanes[i].under_way > 0;
    }
    return any;
}

/* Whether something went wrong that no event tells. */
static int ask(struct bench_backend *backend)
{
    for (uint32_t i = 0; i < backend->lane_count; i++) {
        nccl_result state = NCCL_SUCCESS;
        nccl_result result = backend->library.CommGetAsyncError(backend->lanes[i].comm, &state);
        if (result != NCCL_SUCCESS || (state != NCCL_SUCCESS && state != NCCL_IN_PROGRESS))
            return nccl_failed(backend, "NCCL", result != NCCL_SUCCESS ? result : state);
    }
    return 0;
}

/* --- messages --- */

/* A pair is used both ways by a ping-pong: the end that is here is this node's, also of one within this node. */
int nccl_post(struct bench_backend *backend, uint32_t index, bool sends, const struct nccl_operation *what,
              bench_request *out)
{
    const struct bench_pair *pair = &backend->plan->pairs[index];
    bool forth = sends ? pair->src_node == backend->link->node : pair->dst_node == backend->link->node;
    bool here_is_src = sends == forth;
    struct nccl_operation *operation = backend->free;

    if (!operation)
        return -EAGAIN;
    backend->free = operation->next;
    *operation = *what;
    operation->pair = index;
    operation->sends = sends;
    operation->place = out;
    uint32_t src = nccl_rank_of(&backend->ranks, backend->plan, pair->src_node, pair->src);
    uint32_t dst = nccl_rank_of(&backend->ranks, backend->plan, pair->dst_node, pair->dst);
    operation->rank = here_is_src ? src : dst;
    operation->peer = here_is_src ? dst : src;
    append(&nccl_lane_of(backend, operation)->posted, operation);
    *out = operation;
    return 0;
}

static int nccl_send(struct bench_backend *backend, uint32_t pair, const void *data, uint64_t length, uint64_t tag,
                     bench_request *out)
{
    return nccl_post(backend, pair, true,
                     &(struct nccl_operation){.buffer = (void *)(uintptr_t)data, .length = length, .tag = tag}, out);
}

static int nccl_recv(struct bench_backend *backend, uint32_t pair, void *landing, uint64_t length, uint64_t tag,
                     bench_request *out)
{
    return nccl_post(backend, pair, false, &(struct nccl_operation){.buffer = landing, .length = length, .tag = tag},
                     out);
}

int nccl_expect(struct bench_backend *backend, uint64_t count, struct wf_status *status)
{
    struct nccl_operation *grown;

    if (count <= backend->operation_count)
        return 0;
    grown = calloc(count, sizeof *grown); /* none of the old ones is in use */
    if (!grown)
        return wf_fail(status, -ENOMEM, "no memory for %llu requests of NCCL", (unsigned long long)count);
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
    struct nccl_operation *operation = take_first(&backend->ended);

    memset(completion, 0, sizeof *completion);
    completion->tag = operation->tag;
    completion->completed_ns = operation->completed_ns;
    completion->bytes = operation->failed ? 0 : operation->length;
    if (operation->failed) {
        completion->status = -EIO;
        snprintf(completion->text, sizeof completion->text, "%s", backend->why);
    }
    *index = (int)(operation->place - requests);
    operation->next = backend->free;
    backend->free = operation;
}

/* Nothing that is posted or under way will end any more. */
static void end_all(struct bench_backend *backend)
{
    for (uint32_t i = 0; i < backend->lane_count; i++) {
        struct nccl_lane *lane = &backend->lanes[i];
        for (; lane->under_way; lane->under_way--) {
            move_ended(backend, &lane->launches[lane->oldest].operations, true);
            lane->oldest = (lane->oldest + 1) % NCCL_LAUNCHES;
        }
        move_ended(backend, &lane->next, true);
        move_ended(backend, &lane->posted, true);
    }
}

static bool any_to_launch(const struct bench_backend *backend)
{
    for (uint32_t i = 0; i < backend->lane_count; i++)
        if (can_launch(&backend->lanes[i]))
            return true;
    return false;
}

int nccl_wait(struct bench_backend *backend, bench_request *requests, int count, int timeout_ms, int *index,
              struct weft_completion *completion)
{
    int64_t deadline = 0;

    (void)count;
    while (!backend->ended.first) {
        while (any_to_launch(backend))
            if (nccl_launch(backend) != 0)
                end_all(backend);
        bool under_way = poll_lanes(backend);
        if (backend->ended.first)
            break;
        if (!under_way)
            return -ENOENT;
        if (deadline == 0)
            deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
        else if (wf_clock_now(&wf_clock_monotonic) >= deadline) {
            if (ask(backend) == 0)
                return -ETIMEDOUT;
            end_all(backend);
        }
        sched_yield();
    }
    give_back(backend, requests, index, completion);
    return 0;
}

/* NCCL does not tell what its sockets carry. */
static int nccl_rails(struct bench_backend *backend, bool intra, struct weft_rail_stats *stats, int max)
{
    (void)backend;
    (void)intra;
    (void)stats;
    (void)max;
    return 0;
}

static json_t *nccl_facts(const struct bench_backend *backend)
{
    return nccl_world_to_json(&backend->world, &backend->library, backend->link->node);
}

/* --- whether it can be used --- */

static int check_plan(const struct bench_plan *plan, struct wf_status *status)
{
    if (plan->size_count && plan->sizes[0] == 0)
        return wf_fail(status, -EINVAL,
                       "--backend nccl: NCCL sends nothing for a message of 0 bytes, so its time is not a message's: "
                       "begin with --size 1");
    if (plan->background)
        return wf_fail(status, -EINVAL,
                       "--backend nccl: NCCL has no tags, so nothing can be exchanged beside the ping-pong: use "
                       "--background 0");
    return 0;
}

/* What would make the two unlike. */
static int check_settings(const struct bench_plan *plan, const struct wf_config *config, struct wf_status *status)
{
    if (plan->backend_count > 1 && wf_config_text(config, WF_SET_FAULT)[0])
        return wf_fail(
            status, -EINVAL,
            "--fault %.60s acts on Weft alone: unlike cannot be compared: leave it out, or use --backend weft",
            wf_config_text(config, WF_SET_FAULT));
    return 0;
}

static int check_memory(const struct bench_plan *plan, int node, bool emulated, const char *path,
                        struct wf_status *status)
{
    enum bench_memory memory = plan->nodes[node].memory;

    if (memory == BENCH_HOST)
        return wf_fail(status, -EOPNOTSUPP,
                       "--backend nccl: NCCL moves GPU memory only, and node%d's messages lie in host memory: use "
                       "--memory cuda, where there is a GPU",
                       node);
    if ((memory == BENCH_EMULATED) != emulated)
        return wf_fail(status, -EOPNOTSUPP, "--backend nccl: the memory of node%d is %s, and %.90s is %s", node,
                       bench_memory_name(memory), path, emulated ? "a stand-in" : "NCCL itself");
    return 0;
}

static int nccl_check(const struct bench_backend_ops **ops, const struct bench_plan *plan,
                      const struct wf_config *config, int node, struct wf_status *status)
{
    struct nccl_library library = {.handle = NULL};
    int result = check_plan(plan, status);

    if (result == 0)
        result = check_settings(plan, config, status);
    for (int i = 0; i < 2 && result == 0; i++)
        if ((node < 0 || node == i) && plan->nodes[i].memory == BENCH_HOST)
            result = check_memory(plan, i, false, "", status);
    if (result == 0)
        result = nccl_library_open(&library, plan->nccl_library, status);
    for (int i = 0; i < 2 && result == 0; i++)
        if (node < 0 || node == i)
            result = check_memory(plan, i, library.emulated, library.path, status);
    if (result == 0)
        *ops = library.emulated ? &bench_backend_nccl_emulated : &bench_backend_nccl;
    nccl_library_close(&library);
    return result;
}

#define NCCL_OPS(called)                                                                                               \
    {                                                                                                                  \
        .name = called, .moves_data = true, .check = nccl_check, .open = nccl_backend_open, .send = nccl_send,         \
        .recv = nccl_recv, .expect = nccl_expect, .wait = nccl_wait, .rails = nccl_rails, .facts = nccl_facts,         \
        .close = nccl_backend_close                                                                                    \
    }

const struct bench_backend_ops bench_backend_nccl = NCCL_OPS("nccl");
const struct bench_backend_ops bench_backend_nccl_emulated = NCCL_OPS("nccl (emulated)");
