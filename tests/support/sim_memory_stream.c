/* Streams of the user's on simulated devices: work, marks and holds, one after the other. */
#include "sim_memory_internal.h"

#include <errno.h>
#include <stdlib.h>

/* --- the test's side --- */

struct wf_sim_stream *wf_sim_stream_create(struct wf_sim_memory *memory, int device)
{
    struct wf_sim_stream *stream = calloc(1, sizeof(*stream));
    if (!stream)
        return NULL;
    stream->memory = memory;
    stream->device = device;
    wf_list_init(&stream->items);
    wf_list_push_back(&memory->streams, &stream->link);
    return stream;
}

void wf_sim_stream_destroy(struct wf_sim_stream *stream)
{
    if (!stream)
        return;
    if (!wf_list_empty(&stream->items))
        sim_violation("a stream of device %d is destroyed with something in it", stream->device);
    wf_link_remove(&stream->link);
    free(stream);
}

struct wf_sim_stream *wf_sim_stream_default(struct wf_sim_memory *memory, int device)
{
    return &memory->devices[device].stream;
}

static void push(struct wf_sim_stream *stream, const struct sim_item *item)
{
    if (stream->memory->devices[stream->device].lost)
        return;
    struct sim_item *own = malloc(sizeof(*own));
    if (!own)
        abort();
    *own = *item;
    wf_list_push_back(&stream->items, &own->link);
}

void wf_sim_stream_work(struct wf_sim_stream *stream, int64_t duration_ns)
{
    push(stream, &(struct sim_item){.kind = SIM_WORK, .duration_ns = duration_ns});
}

void wf_sim_stream_call(struct wf_sim_stream *stream, void (*function)(void *argument), void *argument)
{
    push(stream, &(struct sim_item){.kind = SIM_CALL, .function = function, .argument = argument});
}

void wf_sim_stream_release(struct wf_sim_stream *stream)
{
    WF_LIST_EACH (link, following, &stream->items) {
        struct sim_item *item = WF_CONTAINER(link, struct sim_item, link);
        if (item->kind == SIM_WORK && item->duration_ns == WF_NEVER && !item->released) {
            item->released = true;
            return;
        }
    }
    sim_violation("nothing in the stream waits to be released");
}

bool wf_sim_stream_idle(struct wf_sim_stream *stream)
{
    sim_streams_settle(stream->memory);
    return wf_list_empty(&stream->items);
}

/* --- the seam's side --- */

void sim_stream_add(struct wf_sim_memory *memory, int device, void *name, const struct sim_item *item)
{
    struct wf_sim_stream *stream = name ? NULL : &memory->devices[device].stream;
    WF_LIST_EACH (link, following, &memory->streams) {
        struct wf_sim_stream *known = WF_CONTAINER(link, struct wf_sim_stream, link);
        if (name == known)
            stream = known;
    }
    if (!stream)
        sim_violation("%p is no stream", name);
    if (stream->device != device)
        sim_violation("a stream of device %d was given as one of device %d", stream->device, device);
    push(stream, item);
}

/* --- time --- */

/* The word may wrap around, as the real one does. */
static bool reached(const struct sim_item *item)
{
    uint32_t at = __atomic_load_n(item->flag, __ATOMIC_ACQUIRE);
    return (int32_t)(at - item->value) >= 0;
}

/* When the first item of a stream ends by itself. */
static int64_t item_next(const struct wf_sim_memory *memory, const struct sim_item *item)
{
    switch (item->kind) {
    case SIM_WORK:
        if (item->released || !item->end_ns)
            return sim_memory_now(memory);
        return item->end_ns;
    case SIM_HOLD:
        return reached(item) ? sim_memory_now(memory) : WF_NEVER;
    default:
        return sim_memory_now(memory);
    }
}

static struct sim_item *first_of(const struct wf_sim_stream *stream)
{
    struct wf_link *link = wf_list_first(&stream->items);
    return link ? WF_CONTAINER(link, struct sim_item, link) : NULL;
}

int64_t sim_streams_next(struct wf_sim_memory *memory)
{
    int64_t next = WF_NEVER;
    WF_LIST_EACH (link, following, &memory->streams) {
        const struct sim_item *item = first_of(WF_CONTAINER(link, struct wf_sim_stream, link));
        int64_t own = item ? item_next(memory, item) : WF_NEVER;
        next = own < next ? own : next;
    }
    return next;
}

/* Lets the first item go on; has it ended? */
static bool item_turn(struct wf_sim_memory *memory, struct sim_item *item)
{
    int64_t now = sim_memory_now(memory);
    switch (item->kind) {
    case SIM_WORK:
        if (!item->end_ns)
            item->end_ns = item->duration_ns == WF_NEVER ? WF_NEVER : now + item->duration_ns;
        return item->released || item->end_ns <= now;
    case SIM_CALL:
        item->function(item->argument);
        return true;
    case SIM_MARK:
        sim_copy_end(memory, item->mark, item->mark->fate);
        return true;
    default:
        return reached(item);
    }
}

void sim_streams_settle(struct wf_sim_memory *memory)
{
    WF_LIST_EACH (link, following, &memory->streams) {
        struct wf_sim_stream *stream = WF_CONTAINER(link, struct wf_sim_stream, link);
        struct sim_item *item;
        while ((item = first_of(stream)) && item_turn(memory, item)) {
            wf_link_remove(&item->link);
            free(item);
        }
    }
}

void sim_streams_lose(struct wf_sim_memory *memory, int device)
{
    WF_LIST_EACH (link, following, &memory->streams) {
        struct wf_sim_stream *stream = WF_CONTAINER(link, struct wf_sim_stream, link);
        struct sim_item *item;
        while (stream->device == device && (item = first_of(stream))) {
            wf_link_remove(&item->link);
            free(item); /* a mark has ended with the copies */
        }
    }
}

bool sim_streams_use(struct wf_sim_memory *memory, const void *base, uint64_t bytes, const struct wf_memory *owner)
{
    sim_streams_settle(memory);
    WF_LIST_EACH (link, following, &memory->streams) {
        struct wf_sim_stream *stream = WF_CONTAINER(link, struct wf_sim_stream, link);
        WF_LIST_EACH (place, next, &stream->items) {
            const struct sim_item *item = WF_CONTAINER(place, struct sim_item, link);
            if (item->kind == SIM_HOLD &&
                (item->owner == owner || sim_ranges_meet(item->flag, sizeof(*item->flag), base, bytes)))
                return true;
        }
    }
    return false;
}
