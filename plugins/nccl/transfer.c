/* Bytes: what isend() and irecv() post, and what test() finds. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "plugins/nccl/comm.h"

#define STOP_MS                                                                                                        \
    10000 /* a cancelled operation ends at once; if one did not, NCCL is told and must not free its memory */

/* --- requests --- */

static struct plugin_request *take_request(struct plugin_comm *comm, int count)
{
    if (comm->free_count == 0)
        return NULL;
    struct plugin_request *request = &comm->requests[comm->free[--comm->free_count]];
    request->count = count;
    return request;
}

static void give_back(struct plugin_request *request)
{
    struct plugin_comm *comm = request->comm;
    request->count = 0;
    comm->free[comm->free_count++] = (uint16_t)(request - comm->requests);
}

/* The part takes its memory, or gives it back: the last touch of `memory`, which deregMr() may free then. */
static void use(struct plugin_part *part, struct plugin_memory *memory)
{
    if (memory)
        atomic_fetch_add_explicit(&memory->uses, 1, memory_order_relaxed);
    part->memory = memory;
}

static void use_no_more(struct plugin_part *part)
{
    if (part->memory)
        atomic_fetch_sub_explicit(&part->memory->uses, 1, memory_order_release);
    part->memory = NULL;
}

static void end_part(struct plugin_part *part, enum nccl_result result)
{
    part->request = NULL;
    part->result = result;
    if (part->profile)
        plugin_profile_end(part->profile);
    part->profile = NULL;
    use_no_more(part);
}

static bool is_gone(const struct plugin_comm *comm)
{
    if (!comm->device)
        plugin_warn("a comm is used after the plugin was finalised");
    return !comm->device;
}

/* Tags are for one comm, in 32 bits. */
static uint64_t tag_of(int tag)
{
    return (uint32_t)tag;
}

/* Begins one operation. `comm` is locked. */
static int post(struct plugin_comm *comm, struct plugin_part *part, void *data, size_t size, int tag,
                struct plugin_memory *memory, void *phandle)
{
    struct weft_options options = {.registration = memory ? memory->registration : NULL};
    *part = (struct plugin_part){.capacity = size};
    if (comm->profiles && phandle) {
        part->profile = &comm->profiles[part - comm->parts];
        plugin_profile_begin(part->profile, comm->profiler, phandle, comm->listener, size, &options);
    }
    use(part, memory && memory->comm == comm ? memory : NULL); /* deregMr() looks for its uses on its own comm alone */
    int result = comm->listener ? weft_recv(comm->connection, data, size, tag_of(tag), &options, &part->request)
                                : weft_send(comm->connection, data, size, tag_of(tag), &options, &part->request);
    if (result < 0)
        end_part(part, plugin_result(result));
    return result;
}

static enum nccl_result send_locked(struct plugin_comm *comm, void *data, size_t size, int tag,
                                    struct plugin_memory *memory, void *phandle, void **out)
{
    struct plugin_request *request = take_request(comm, 1);
    if (!request)
        return NCCL_SUCCESS;
    int result = post(comm, request->parts, data, size, tag, memory, phandle);
    if (result == 0) {
        *out = request;
        return NCCL_SUCCESS;
    }
    give_back(request);
    if (result == -EAGAIN)
        return NCCL_SUCCESS;
    plugin_warn("send of %zu bytes: %s", size, weft_last_error());
    return plugin_result(result);
}

enum nccl_result plugin_isend(void *handle, void *data, size_t size, int tag, void *mhandle, void *phandle, void **out)
{
    struct plugin_comm *comm = handle;
    *out = NULL;
    if (is_gone(comm))
        return NCCL_INVALID_USAGE;
    pthread_mutex_lock(&comm->lock);
    enum nccl_result result = send_locked(comm, data, size, tag, mhandle, phandle, out);
    pthread_mutex_unlock(&comm->lock);
    return result;
}

static enum nccl_result receive_locked(struct plugin_comm *comm, int n, void **data, const size_t *sizes,
                                       const int *tags, void **mhandles, void **phandles, void **out)
{
    struct plugin_request *request = take_request(comm, n);
    if (!request)
        return NCCL_SUCCESS;
    for (int i = 0; i < n; i++) {
        int result = post(comm, &request->parts[i], data[i], sizes[i], tags[i], mhandles ? mhandles[i] : NULL,
                          phandles ? phandles[i] : NULL);
        if (result == 0)
            continue;
        if (i == 0)
            give_back(request);
        if (i == 0 && result == -EAGAIN)
            return NCCL_SUCCESS;
        plugin_warn("receive of up to %zu bytes: %s", sizes[i], weft_last_error());
        return plugin_result(result);
    }
    *out = request;
    return NCCL_SUCCESS;
}

enum nccl_result plugin_irecv(void *handle, int n, void **data, const size_t *sizes, const int *tags, void **mhandles,
                              void **phandles, void **out)
{
    struct plugin_comm *comm = handle;
    *out = NULL; /* it may have held NCCL_NET_OPTIONAL_RECV */
    if (is_gone(comm))
        return NCCL_INVALID_USAGE;
    if (n < 1 || n > PLUGIN_RECVS_MAX) {
        plugin_warn("a receive has %d slots: 1 to %d are allowed", n, PLUGIN_RECVS_MAX);
        return NCCL_INVALID_USAGE;
    }
    pthread_mutex_lock(&comm->lock);
    enum nccl_result result = receive_locked(comm, n, data, sizes, tags, mhandles, phandles, out);
    pthread_mutex_unlock(&comm->lock);
    return result;
}

static void refuse(const struct plugin_part *part, const struct weft_completion *completion)
{
    if (completion->status == -EMSGSIZE)
        plugin_warn("a message of %llu bytes came for a receive of %zu bytes: the ranks do not agree on the size",
                    (unsigned long long)completion->bytes, part->capacity);
    else
        plugin_warn("%s", completion->text);
}

/* 1: it has ended, with its `result`; 0: it is under way; or a negative errno. */
static int test_part(struct plugin_part *part)
{
    struct weft_completion completion;
    int result = part->request ? weft_test(part->request, &completion) : 1;
    if (part->profile)
        plugin_profile_look(part->profile);
    if (result < 1 || !part->request)
        return result;
    part->size = completion.bytes > INT_MAX ? INT_MAX : (int)completion.bytes;
    end_part(part, plugin_result(completion.status));
    if (completion.status < 0)
        refuse(part, &completion);
    return 1;
}

static enum nccl_result test_locked(struct plugin_request *request, int *done, int *sizes)
{
    int ended = 0;
    for (int i = 0; i < request->count; i++) {
        struct plugin_part *part = &request->parts[i];
        int result = test_part(part);
        if (result < 0)
            return plugin_result(result);
        if (result == 1 && part->result != NCCL_SUCCESS)
            return part->result;
        ended += result;
    }
    if (ended < request->count)
        return NCCL_SUCCESS;
    for (int i = 0; i < request->count && sizes; i++)
        sizes[i] = request->parts[i].size;
    give_back(request);
    *done = 1;
    return NCCL_SUCCESS;
}

enum nccl_result plugin_test(void *handle, int *done, int *sizes)
{
    struct plugin_request *request = handle;
    struct plugin_comm *comm = request->comm;
    *done = 0;
    if (is_gone(comm))
        return NCCL_INVALID_USAGE;
    pthread_mutex_lock(&comm->lock);
    enum nccl_result result = test_locked(request, done, sizes);
    pthread_mutex_unlock(&comm->lock);
    return result;
}

enum nccl_result plugin_iflush(void **request)
{
    *request = NULL;
    return NCCL_SUCCESS;
}

/* Waits for the end of a cancelled part, which may also have come before the cancel. */
static enum nccl_result await_part(struct plugin_part *part, int64_t until_ns)
{
    struct weft_completion completion;
    int64_t left_ms = (until_ns - plugin_now_ns()) / 1000000;
    int result = weft_wait(part->request, left_ms > 0 ? (int)left_ms : 0, &completion);
    if (result == -ETIMEDOUT) {
        plugin_warn("an operation of %zu bytes did not end in %d s: its memory is still in use", part->capacity,
                    STOP_MS / 1000);
        return NCCL_INTERNAL_ERROR;
    }
    bool whole = result == 0 && completion.status == 0;
    part->size = !whole ? 0 : completion.bytes > INT_MAX ? INT_MAX : (int)completion.bytes;
    end_part(part, whole ? NCCL_SUCCESS : NCCL_INVALID_USAGE);
    return NCCL_SUCCESS;
}

/* Ends what is under way in `memory`; NULL: on the whole comm. The lock is held all the time: a test() would free
 * what this waits for. */
static enum nccl_result stop_parts(struct plugin_comm *comm, const struct plugin_memory *memory)
{
    enum nccl_result result = NCCL_SUCCESS;
    int64_t until_ns = plugin_now_ns() + STOP_MS * 1000000LL; /* for all of them: NCCL waits */
    pthread_mutex_lock(&comm->lock);
    for (int i = 0; i < PLUGIN_PARTS_MAX; i++)
        if (comm->parts[i].request && (!memory || comm->parts[i].memory == memory))
            weft_cancel(comm->parts[i].request);
    for (int i = 0; i < PLUGIN_PARTS_MAX; i++) {
        struct plugin_part *part = &comm->parts[i];
        if (part->request && (!memory || part->memory == memory) && await_part(part, until_ns) != NCCL_SUCCESS)
            result = NCCL_INTERNAL_ERROR;
    }
    pthread_mutex_unlock(&comm->lock);
    return result;
}

enum nccl_result plugin_stop(struct plugin_comm *comm)
{
    enum nccl_result result = stop_parts(comm, NULL);
    pthread_mutex_lock(&comm->lock);
    for (int i = 0; i < PLUGIN_PARTS_MAX; i++) /* also those that did not end */
        end_part(&comm->parts[i], NCCL_INTERNAL_ERROR);
    pthread_mutex_unlock(&comm->lock);
    return result;
}

/* --- memory --- */

enum nccl_result plugin_reg_mr(void *handle, void *data, size_t size, int type, void **mhandle)
{
    struct plugin_comm *comm = handle;
    *mhandle = NULL;
    if (is_gone(comm))
        return NCCL_INVALID_USAGE;
    if (type != NCCL_PTR_HOST && !(type & comm->device->ptr_support)) {
        plugin_warn("memory of kind %d cannot be registered: WEFT_NCCL_PTR=cuda takes GPU memory", type);
        return NCCL_INVALID_ARGUMENT;
    }
    struct plugin_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NCCL_SYSTEM_ERROR;
    memory->comm = comm;
    struct weft_error err;
    int result = type == NCCL_PTR_HOST
                     ? 0
                     : weft_register_for(comm->device->context, data, size, 0, &memory->registration, &err);
    if (result < 0) {
        free(memory);
        plugin_warn("%s", err.text);
        return plugin_result(result);
    }
    *mhandle = memory;
    return NCCL_SUCCESS;
}

/* When NCCL aborts, it deregisters and frees memory of requests under way, and closes their comm only then. And the
 * library's deregistration waits for them, whose other side may be gone: so they are cancelled first. */
enum nccl_result plugin_dereg_mr(void *mhandle)
{
    struct plugin_memory *memory = mhandle;
    if (!memory)
        return NCCL_SUCCESS;
    bool busy = atomic_load_explicit(&memory->uses, memory_order_acquire) > 0;
    if (busy && memory->comm->device && stop_parts(memory->comm, memory) != NCCL_SUCCESS)
        return NCCL_INTERNAL_ERROR; /* some part still points to it */
    weft_deregister(memory->registration);
    free(memory);
    return NCCL_SUCCESS;
}
