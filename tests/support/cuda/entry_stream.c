/* Entries that put something other than a copy into a stream, or ask how it stands. */
#include "internal.h"

#define CLOCK_STEP_NS 500

emu_result cuEventRecord(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct CUstream_st *into;
    bool captured = false;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_stream_of_locked(stream, &into);
    if (result == EMU_OK && (!emu_event_valid_locked(event) || event->context != into->context))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK)
        result = emu_capture_takes_locked(into, &captured);
    if (result == EMU_OK)
        event->captured = captured;
    struct emu_op *op = result == EMU_OK && !captured ? emu_op_take_locked() : NULL;
    if (result == EMU_OK && !captured && !op)
        result = EMU_OUT_OF_MEMORY;
    if (op) {
        op->kind = EMU_RECORD;
        op->event = event;
        op->generation = ++event->generation;
        event->references++;
        emu_op_queue_locked(into, op);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* The context's end comes before the event's own. */
static emu_result state_locked(const struct CUevent_st *event)
{
    emu_result result;

    if (!emu_event_valid_locked(event))
        return EMU_INVALID_HANDLE;
    if (event->captured)
        return EMU_CAPTURED_EVENT;
    if (event->life != event->context->life)
        return EMU_CONTEXT_IS_DESTROYED;
    result = emu_context_error_locked(event->context);
    if (result != EMU_OK || event->generation == 0)
        return result;
    return event->done == event->generation ? event->result : EMU_NOT_READY;
}

emu_result cuEventQuery(struct CUevent_st *event)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_capture_unsafe_locked();
    if (result == EMU_OK)
        result = state_locked(event);
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuEventSynchronize(struct CUevent_st *event)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    emu.synchronised++;
    result = emu_capture_unsafe_locked();
    while (result == EMU_OK || result == EMU_NOT_READY) {
        result = state_locked(event);
        if (result != EMU_NOT_READY)
            break;
        pthread_cond_wait(&emu.changed, &emu.lock);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* The GPU's clock at a moment of the processor's. It goes in steps. */
static int64_t clock_at(int64_t ns)
{
    int64_t skewed = ns + ns / 1000 * (int64_t)emu.settings.clock_ppm / 1000;

    return skewed - skewed % CLOCK_STEP_NS;
}

/* Whether it was made for times, and recorded. */
static bool tells_time_locked(const struct CUevent_st *event)
{
    return emu_event_valid_locked(event) && event->timed && event->generation > 0;
}

emu_result cuEventElapsedTime(float *milliseconds, struct CUevent_st *from, struct CUevent_st *to)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!milliseconds)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    if (!tells_time_locked(from) || !tells_time_locked(to) || from->context != to->context)
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK)
        result = state_locked(from);
    if (result == EMU_OK)
        result = state_locked(to);
    if (result == EMU_OK)
        *milliseconds = (float)((double)(clock_at(to->reached_ns) - clock_at(from->reached_ns)) / 1e6);
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuStreamQuery(struct CUstream_st *stream)
{
    struct CUstream_st *of;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_stream_of_locked(stream, &of);
    if (result == EMU_OK)
        result = emu_capture_unsafe_locked();
    if (result == EMU_OK && of->head)
        result = EMU_NOT_READY;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuStreamSynchronize(struct CUstream_st *stream)
{
    struct CUstream_st *of;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_stream_of_locked(stream, &of);
    if (result == EMU_OK)
        result = emu_capture_unsafe_locked();
    if (result == EMU_OK) {
        emu.synchronised++;
        result = emu_stream_wait_locked(of, of->last);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuStreamWaitEvent(struct CUstream_st *stream, struct CUevent_st *event, unsigned int flags)
{
    struct CUstream_st *into;
    struct emu_op *op = NULL;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (flags > 1)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_stream_of_locked(stream, &into);
    if (result == EMU_OK && !emu_event_valid_locked(event))
        result = EMU_INVALID_HANDLE;
    if (result == EMU_OK && event->done < event->generation) {
        op = emu_op_take_locked();
        result = op ? EMU_OK : EMU_OUT_OF_MEMORY;
    }
    if (op) {
        op->kind = EMU_WAIT_EVENT;
        op->event = event;
        op->generation = event->generation;
        event->references++;
        emu_op_queue_locked(into, op);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* Whether a device can read the word there: its own memory, or registered memory that was mapped for devices. */
static bool is_readable_locked(emu_pointer address)
{
    const struct emu_range *range = emu_ranges_find(&emu.registered, (uintptr_t)address);
    int place;

    if (!emu_memory_place_locked((uintptr_t)address, sizeof(uint32_t), &place) || place == EMU_NOWHERE)
        return false;
    return place != EMU_HOST || (range && (range->flags & EMU_REGISTER_MAPPED));
}

emu_result cuStreamWaitValue32_v2(struct CUstream_st *stream, emu_pointer address, uint32_t value, unsigned int flags)
{
    struct CUstream_st *into;
    struct emu_op *op = NULL;
    bool captured = false;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (flags > EMU_WAIT_NOR || address % sizeof(value) != 0)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_stream_of_locked(stream, &into);
    if (result == EMU_OK && !is_readable_locked(address))
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK)
        result = emu_capture_takes_locked(into, &captured);
    if (result == EMU_OK && !captured) {
        op = emu_op_take_locked();
        result = op ? EMU_OK : EMU_OUT_OF_MEMORY;
    }
    if (op) {
        op->kind = EMU_WAIT_VALUE;
        op->word = (uintptr_t)address;
        op->value = value;
        op->wait_flags = flags;
        emu_op_queue_locked(into, op);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}
