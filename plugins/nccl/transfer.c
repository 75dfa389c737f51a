/* Bytes: what isend() and irecv() post, and what test() finds. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "plugins/nccl/comm.h"

#define STOP_MS                                                                                                        \
    10000 /* a cancelled operation ends at once; if one did not, NCCL is told and must not free its memory */

/* --- the profiler --- */

static void begin_event(const struct plugin_comm *comm, struct plugin_part *part, void *phandle, size_t length)
{
    struct nccl_profile_socket event = {
        .type = NCCL_PROFILE_SOCKET,
        .sock = {.fd = -1, .op = comm->listener ? NCCL_PROFILE_OP_RECV : NCCL_PROFILE_OP_SEND, .length = length},
    };
    part->event = NULL;
    if (comm->profiler && phandle)
        comm->profiler(&part->event, NCCL_PROFILE_START, phandle,
                       NCCL_PROFILE_PLUGIN_SOCKET | NCCL_PROFILE_SOCKET_VERSION, &event);
}

static void end_event(const struct plugin_comm *comm, struct plugin_part *part)
{
    if (part->event)
        comm->profiler(&part->event, NCCL_PROFILE_STOP, NULL, 0, NULL);
    part->event = NULL;
}

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

enum nccl_result plugin_isend(void *handle, void *data, size_t size, int tag, void *mhandle, void *phandle, void **out)
{
    struct plugin_comm *comm = handle;
    *out = NULL;
    if (is_gone(comm))
        return NCCL_INVALID_USAGE;
    struct plugin_request *request = take_request(comm, 1);
    if (!request)
        return NCCL_SUCCESS;
    struct plugin_part *part = request->parts;
    struct weft_options options = {.registration = mhandle};
    part->capacity = size;
    begin_event(comm, part, phandle, size);
    int result = weft_send(comm->connection, data, size, tag_of(tag), &options, &part->request);
    if (result == 0) {
        *out = request;
        return NCCL_SUCCESS;
    }
    end_event(comm, part);
    part->request = NULL;
    give_back(request);
    if (result == -EAGAIN)
        return NCCL_SUCCESS;
    plugin_warn("send of %zu bytes: %s", size, weft_last_error());
    return plugin_result(result);
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
    struct plugin_request *request = take_request(comm, n);
    if (!request)
        return NCCL_SUCCESS;
    for (int i = 0; i < n; i++)
        request->parts[i] = (struct plugin_part){.capacity = sizes[i]};
    for (int i = 0; i < n; i++) {
        struct plugin_part *part = &request->parts[i];
        struct weft_options options = {.registration = mhandles ? mhandles[i] : NULL};
        begin_event(comm, part, phandles ? phandles[i] : NULL, sizes[i]);
        int result = weft_recv(comm->connection, data[i], sizes[i], tag_of(tags[i]), &options, &part->request);
        if (result == 0)
            continue;
        end_event(comm, part);
        part->request = NULL;
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

static enum nccl_result refuse(const struct plugin_part *part, const struct weft_completion *completion)
{
    if (completion->status == -EMSGSIZE)
        plugin_warn("a message of %llu bytes came for a receive of %zu bytes: the ranks do not agree on the size",
                    (unsigned long long)completion->bytes, part->capacity);
    else
        plugin_warn("%s", completion->text);
    return plugin_result(completion->status);
}

enum nccl_result plugin_test(void *handle, int *done, int *sizes)
{
    struct plugin_request *request = handle;
    int ended = 0;
    *done = 0;
    if (is_gone(request->comm))
        return NCCL_INVALID_USAGE;
    for (int i = 0; i < request->count; i++) {
        struct plugin_part *part = &request->parts[i];
        struct weft_completion completion;
        int result = part->request ? weft_test(part->request, &completion) : 0;
        if (result < 0)
            return plugin_result(result);
        if (result == 1) {
            part->request = NULL;
            end_event(request->comm, part);
            if (completion.status < 0)
                return refuse(part, &completion);
            part->size = completion.bytes > INT_MAX ? INT_MAX : (int)completion.bytes;
        }
        ended += !part->request;
    }
    if (ended < request->count)
        return NCCL_SUCCESS;
    for (int i = 0; i < request->count && sizes; i++)
        sizes[i] = request->parts[i].size;
    give_back(request);
    *done = 1;
    return NCCL_SUCCESS;
}

enum nccl_result plugin_iflush(void **request)
{
    *request = NULL;
    return NCCL_SUCCESS;
}

enum nccl_result plugin_stop(struct plugin_comm *comm)
{
    enum nccl_result result = NCCL_SUCCESS;
    for (int i = 0; i < PLUGIN_PARTS_MAX; i++)
        if (comm->parts[i].request)
            weft_cancel(comm->parts[i].request);
    for (int i = 0; i < PLUGIN_PARTS_MAX; i++) {
        struct plugin_part *part = &comm->parts[i];
        if (part->request && weft_wait(part->request, STOP_MS, NULL) == -ETIMEDOUT) {
            plugin_warn("an operation of %zu bytes did not end in %d s: its memory is still in use", part->capacity,
                        STOP_MS / 1000);
            result = NCCL_INTERNAL_ERROR;
        }
        part->request = NULL;
        end_event(comm, part);
    }
    return result;
}

/* --- memory --- */

enum nccl_result plugin_reg_mr(void *handle, void *data, size_t size, int type, void **mhandle)
{
    struct plugin_comm *comm = handle;
    *mhandle = NULL;
    if (is_gone(comm))
        return NCCL_INVALID_USAGE;
    if (type == NCCL_PTR_HOST)
        return NCCL_SUCCESS;
    if (!(type & comm->device->ptr_support)) {
        plugin_warn("memory of kind %d cannot be registered: WEFT_NCCL_PTR=cuda takes GPU memory", type);
        return NCCL_INVALID_ARGUMENT;
    }
    struct weft_registration *registration;
    struct weft_error err;
    int result = weft_register_for(comm->device->context, data, size, 0, &registration, &err);
    if (result < 0) {
        plugin_warn("%s", err.text);
        return plugin_result(result);
    }
    *mhandle = registration;
    return NCCL_SUCCESS;
}

enum nccl_result plugin_dereg_mr(void *mhandle)
{
    weft_deregister(mhandle);
    return NCCL_SUCCESS;
}
