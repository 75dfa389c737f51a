/* gpu.c: see gpu.h. */
#include "gpu.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/device/device.h"

void gpu_self_create(const char *settings)
{
    struct loop_node *left = &astray_pair.node[0], *right = &astray_pair.node[1];
    struct weft_error err = {0};

    astray_pair = (struct loop_pair){0};
    left->context = right->context = loop_context(settings, 2);
    LOOP_CALL(weft_endpoint_create(right->context, 0, &right->endpoint, &err), &err);
    LOOP_CALL(weft_endpoint_create(left->context, 1, &left->endpoint, &err), &err);
    loop_node_connect(left, loop_node_listen(right));
    loop_node_accept(right);
    loop_node_open(left);
    LOOP_CALL(weft_connection_accept(right->endpoint, right->peer, 1, LOOP_WAIT_MS, &right->connection, &err), &err);
}

void gpu_self_destroy(void)
{
    struct weft_context *context = astray_pair.node[0].context;

    for (int i = 0; i < 2; i++)
        if (astray_pair.node[i].connection)
            weft_connection_close(astray_pair.node[i].connection, 2000, NULL);
    for (int i = 0; i < 2; i++)
        if (astray_pair.node[i].peer)
            weft_peer_close(astray_pair.node[i].peer, 2000, NULL);
    loop_context_end(context);
    astray_pair = (struct loop_pair){0};
}

void gpu_message_post(struct loop_message *message, int from, int to, size_t size, uint64_t tag)
{
    *message = (struct loop_message){.seed = tag * 31 + size};
    loop_buffer_create_on(&message->source, from, size);
    loop_buffer_create_on(&message->sink, to, size);
    loop_fill(message->source.data, size, message->seed);
    loop_set(message->sink.data, size, LOOP_POISON);
    message->recv = loop_recv(RIGHT, message->sink.data, size, tag);
    message->send = loop_send(LEFT, message->source.data, size, tag);
}

void gpu_message_finish(struct loop_message *message)
{
    loop_done(message->recv, 0, message->sink.size);
    loop_done(message->send, 0, message->source.size);
    loop_message_verify(message);
    loop_message_destroy(message);
}

void gpu_exchange(int from, int to, size_t size, uint64_t tag)
{
    struct loop_message message;
    gpu_message_post(&message, from, to, size, tag);
    gpu_message_finish(&message);
}

void gpu_ends_badly(struct weft_request *request, int status, int device)
{
    struct weft_completion completion = loop_end(request);
    char name[16];
    snprintf(name, sizeof name, "GPU %d", device);
    LOOP_CHECK(completion.status == status, "status %d (%s), expected %d", completion.status, completion.text, status);
    LOOP_CHECK(strstr(completion.text, name), "'%s' does not name %s", completion.text, name);
    LOOP_CHECK(strstr(completion.text, "bytes"), "'%s' does not name the bytes", completion.text);
}

void gpu_ends_somehow(struct weft_request *request)
{
    struct weft_completion completion;
    if (weft_wait(request, 200, &completion) != 0) {
        weft_cancel(request);
        completion = loop_end(request);
    }
    LOOP_CHECK(completion.status < 0, "one side failed, and the other one ended well");
}

/* What a context keeps of its devices, in words; NULL: nothing. */
static const char *kept(const struct weft_context *context)
{
    static char text[128];
    const struct wf_devices *devices = &context->devices;
    for (int i = 0; i < atomic_load(&devices->used_count); i++) {
        const struct wf_device *device = atomic_load(&devices->used[i]);
        if (atomic_load(&device->under_way) > 0) {
            snprintf(text, sizeof text, "GPU %d: %u copies under way", device->index, atomic_load(&device->under_way));
            return text;
        }
        for (int way = 0; way < WF_SLOT_WAYS; way++) {
            for (int size = 0; size < WF_SLOT_SIZES; size++) {
                const struct wf_slot_pool *pool = &device->pools[way][size];
                if (pool->free_count == pool->count)
                    continue;
                snprintf(text, sizeof text, "GPU %d: %u of %u slots (way %d, size %d)", device->index,
                         pool->count - pool->free_count, pool->count, way, size);
                return text;
            }
        }
    }
    return NULL;
}

void gpu_check_clean(void)
{
    for (int side = 0; side < 2; side++) {
        const struct weft_context *context = astray_pair.node[side].context;
        ASTRAY_UNTIL(!kept(context), "side %d keeps of %s", side, kept(context));
    }
    astray_check_clean();
}

/* "dc" among the flags of its mapping: not to be copied when the process forks. */
static bool is_ours(const void *address)
{
    unsigned long first, end;
    char line[512];
    bool here = false, ours = false;
    FILE *file = fopen("/proc/self/smaps", "r");
    LOOP_CHECK(file, "no /proc/self/smaps");
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%lx-%lx", &first, &end) == 2)
            here = (uintptr_t)address >= first && (uintptr_t)address < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            ours = strstr(line, " dc");
    }
    fclose(file);
    return ours;
}

bool gpu_staging_is_ours(const struct weft_context *context)
{
    const struct wf_devices *devices = &context->devices;
    int count = atomic_load(&devices->used_count);
    for (int i = 0; i < count; i++)
        if (!is_ours(atomic_load(&devices->used[i])->memory))
            return false;
    return count > 0;
}
