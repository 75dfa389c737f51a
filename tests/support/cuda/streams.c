/* Streams and events: what waits in them, and who waits for that. */
#include "internal.h"

#include <stdlib.h>

#define STREAM_MAGIC 0x57465354u
#define EVENT_MAGIC 0x57464556u
#define BURIED 256 /* handles that are kept before one is used again, so that a stale one is recognised */

static struct CUstream_st *buried_streams, **buried_streams_tail = &buried_streams;
static struct CUevent_st *buried_events, **buried_events_tail = &buried_events;
static int buried_stream_count, buried_event_count;

bool emu_stream_valid_locked(const struct CUstream_st *stream)
{
    return (uintptr_t)stream > 2 && stream->magic == STREAM_MAGIC;
}

bool emu_event_valid_locked(const struct CUevent_st *event)
{
    return event && event->magic == EVENT_MAGIC;
}

static void bury_stream_locked(struct CUstream_st *stream)
{
    struct CUstream_st **link = &stream->context->others;

    while (*link != stream)
        link = &(*link)->next;
    if (stream->capture == EMU_CAPTURE_ACTIVE)
        emu.captures--;
    stream->capture = EMU_CAPTURE_NONE;
    *link = stream->next;
    stream->magic = 0;
    stream->next = NULL;
    *buried_streams_tail = stream;
    buried_streams_tail = &stream->next;
    buried_stream_count++;
    emu.streams--;
}

static void bury_event_locked(struct CUevent_st *event)
{
    event->next = NULL;
    *buried_events_tail = event;
    buried_events_tail = &event->next;
    buried_event_count++;
}

emu_result emu_stream_of_locked(struct CUstream_st *argument, struct CUstream_st **out)
{
    struct CUctx_st *context;
    emu_result result;

    if ((uintptr_t)argument <= 1) { /* NULL, CU_STREAM_LEGACY */
        result = emu_current_locked(&context);
        *out = context ? &context->legacy : NULL;
        return result;
    }
    if (!emu_stream_valid_locked(argument))
        return EMU_INVALID_HANDLE;
    *out = argument;
    return emu_context_error_locked(argument->context);
}

/* --- operations --- */

struct emu_op *emu_op_take_locked(void)
{
    struct emu_op *op = emu.spare_ops;

    if (op)
        emu.spare_ops = op->next;
    else
        op = malloc(sizeof(*op));
    if (op)
        *op = (struct emu_op){0};
    return op;
}

void emu_op_queue_locked(struct CUstream_st *stream, struct emu_op *op)
{
    op->next = NULL;
    op->stage = EMU_QUEUED;
    op->sequence = ++stream->context->sequence;
    op->queued_ns = emu_now_ns();
    stream->last = op->sequence;
    *stream->tail = op;
    stream->tail = &op->next;
    emu.pending++;
    if (stream->head == op) /* else the thread comes to it by itself */
        pthread_cond_signal(&emu.devices[stream->context->device].wake);
}

/* What a record says: its own context's end, or a copy before it that failed alone. */
static void end_record_locked(struct CUstream_st *stream, const struct emu_op *op, emu_result result)
{
    struct CUevent_st *event = op->event;

    if (result == EMU_OK) {
        result = stream->deferred;
        stream->deferred = EMU_OK;
    }
    if (op->generation > event->done) {
        event->done = op->generation;
        event->result = result;
        event->reached_ns = op->end_ns;
    }
}

void emu_op_end_locked(struct CUstream_st *stream, emu_result result)
{
    struct emu_op *op = stream->head;

    stream->head = op->next;
    if (!stream->head)
        stream->tail = &stream->head;
    stream->done = op->sequence;
    stream->last_end_ns = op->end_ns;
    if (op->kind == EMU_RECORD)
        end_record_locked(stream, op, result);
    if (op->event && --op->event->references == 0 && op->event->destroyed)
        bury_event_locked(op->event);
    if (op->kind == EMU_COPY && result != EMU_OK)
        emu.failed += (uint64_t)op->count;
    if (op->pieces != &op->one)
        free(op->pieces);
    free(op->kept);
    op->next = emu.spare_ops;
    emu.spare_ops = op;
    emu.pending--;
    emu.operations++;
    if (stream->destroyed && !stream->head)
        bury_stream_locked(stream);
    pthread_cond_broadcast(&emu.changed);
}

void emu_context_drop_locked(struct CUctx_st *context, emu_result result)
{
    while (emu.devices[context->device].moving != 0)
        pthread_cond_wait(&emu.changed, &emu.lock);
    while (context->legacy.head)
        emu_op_end_locked(&context->legacy, result);
    for (struct CUstream_st *stream = context->others, *next; stream; stream = next) {
        next = stream->next;
        while (stream->head) /* the last one may bury it, but leaves its head NULL */
            emu_op_end_locked(stream, result);
    }
}

void emu_context_empty_locked(struct CUctx_st *context)
{
    struct emu_device *device = &emu.devices[context->device];

    while (context->others)
        bury_stream_locked(context->others);
    for (int i = device->blocks.count - 1; i >= 0; i--)
        if (device->blocks.at[i].reserved == 0)
            emu_memory_free_locked(device, &device->blocks.at[i]);
    for (int i = emu.registered.count - 1; i >= 0; i--)
        if (emu.registered.at[i].device == context->device) {
            emu.registered_bytes -= emu.registered.at[i].bytes;
            emu_ranges_remove(&emu.registered, &emu.registered.at[i]);
        }
}

/* --- waiting --- */

emu_result emu_stream_wait_locked(struct CUstream_st *stream, uint64_t sequence)
{
    struct CUctx_st *context = stream->context;
    emu_result result;

    while (stream->done < sequence)
        pthread_cond_wait(&emu.changed, &emu.lock);
    result = emu_context_error_locked(context);
    if (result == EMU_OK) {
        result = stream->deferred;
        stream->deferred = EMU_OK;
    }
    return result;
}

static bool device_busy_locked(const struct emu_device *device)
{
    if (device->context.legacy.head)
        return true;
    for (const struct CUstream_st *stream = device->context.others; stream; stream = stream->next)
        if (stream->head)
            return true;
    return false;
}

emu_result emu_device_wait_locked(struct emu_device *device)
{
    while (device_busy_locked(device))
        pthread_cond_wait(&emu.changed, &emu.lock);
    return emu_context_error_locked(&device->context);
}

static bool refers(const struct CUstream_st *stream, uintptr_t start, size_t bytes)
{
    for (const struct emu_op *op = stream->head; op; op = op->next) {
        if (op->kind == EMU_WAIT_VALUE && op->word - start < bytes)
            return true;
        for (int i = 0; i < op->count; i++) {
            const struct emu_piece *piece = &op->pieces[i];
            if (piece->to < start + bytes && start < piece->to + piece->bytes)
                return true;
            if (piece->from < start + bytes && start < piece->from + piece->bytes)
                return true;
        }
    }
    return false;
}

static bool referred_locked(uintptr_t start, size_t bytes)
{
    for (int i = 0; i < emu.device_count; i++) {
        const struct CUctx_st *context = &emu.devices[i].context;
        if (refers(&context->legacy, start, bytes))
            return true;
        for (const struct CUstream_st *stream = context->others; stream; stream = stream->next)
            if (refers(stream, start, bytes))
                return true;
    }
    return false;
}

void emu_host_wait_locked(uintptr_t start, size_t bytes)
{
    while (referred_locked(start, bytes))
        pthread_cond_wait(&emu.changed, &emu.lock);
}

/* --- entries about streams and events as objects --- */

emu_result cuStreamCreate(struct CUstream_st **stream, unsigned int flags)
{
    struct CUctx_st *context;
    struct CUstream_st *made = NULL;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!stream || flags > EMU_STREAM_NON_BLOCKING)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK && buried_stream_count > BURIED) {
        made = buried_streams;
        buried_streams = made->next;
        buried_stream_count--;
    } else if (result == EMU_OK) {
        made = malloc(sizeof(*made));
        result = made ? EMU_OK : EMU_OUT_OF_MEMORY;
    }
    if (made) {
        *made = (struct CUstream_st){.magic = STREAM_MAGIC, .flags = flags, .context = context, .tail = &made->head};
        made->next = context->others;
        context->others = made;
        emu.streams++;
        *stream = made;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* Also with an error in force: what is to be let go is let go. */
emu_result cuStreamDestroy_v2(struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    if (!emu_stream_valid_locked(stream)) {
        result = EMU_INVALID_HANDLE;
    } else {
        result = emu_context_error_locked(stream->context);
        stream->magic = 0;
        stream->destroyed = true;
        if (!stream->head)
            bury_stream_locked(stream);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuEventCreate(struct CUevent_st **event, unsigned int flags)
{
    struct CUctx_st *context;
    struct CUevent_st *made = NULL;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!event || flags > 3) /* blocking waits, no timing; not between processes */
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK && buried_event_count > BURIED) {
        made = buried_events;
        buried_events = made->next;
        buried_event_count--;
    } else if (result == EMU_OK) {
        made = malloc(sizeof(*made));
        result = made ? EMU_OK : EMU_OUT_OF_MEMORY;
    }
    if (made) {
        *made = (struct CUevent_st){
            .magic = EVENT_MAGIC, .context = context, .life = context->life, .timed = !(flags & EMU_NO_TIMING)};
        emu.events++;
        *event = made;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuEventDestroy_v2(struct CUevent_st *event)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    if (!emu_event_valid_locked(event)) {
        result = EMU_INVALID_HANDLE;
    } else {
        result = emu_context_error_locked(event->context);
        event->magic = 0;
        event->destroyed = true;
        emu.events--;
        if (event->references == 0)
            bury_event_locked(event);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}
