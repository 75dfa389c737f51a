/*
 * Streams that are captured into a graph, as far as others notice: what is put into one is not done, and while one is
 * captured by another thread's order (CU_STREAM_CAPTURE_MODE_GLOBAL), calls that may be unsafe are refused to every
 * thread that has not said that it knows better, and spoil the capture. Which calls those are, cuda.h tells by example
 * only: here they are those that ask about work or wait for it, and those about memory.
 */
#include "internal.h"

static _Thread_local unsigned int mode = EMU_CAPTURE_GLOBAL;

static void invalidate_locked(void)
{
    for (int i = 0; i < emu.device_count; i++)
        for (struct CUstream_st *stream = emu.devices[i].context.others; stream; stream = stream->next)
            if (stream->capture == EMU_CAPTURE_ACTIVE)
                stream->capture = EMU_CAPTURE_INVALIDATED;
    emu.captures = 0;
}

emu_result emu_capture_unsafe_locked(void)
{
    if (emu.captures == 0 || mode != EMU_CAPTURE_GLOBAL)
        return EMU_OK;
    invalidate_locked();
    return EMU_STREAM_CAPTURE_UNSUPPORTED;
}

/* The default stream waits for those that heed it: it cannot be used while one of them is captured. */
static bool implies_capture_locked(const struct CUstream_st *stream)
{
    const struct CUctx_st *context = stream->context;

    if (stream != &context->legacy)
        return false;
    for (const struct CUstream_st *other = context->others; other; other = other->next)
        if (other->capture != EMU_CAPTURE_NONE && !(other->flags & EMU_STREAM_NON_BLOCKING))
            return true;
    return false;
}

emu_result emu_capture_takes_locked(const struct CUstream_st *stream, bool *taken)
{
    *taken = stream->capture != EMU_CAPTURE_NONE;
    if (stream->capture == EMU_CAPTURE_INVALIDATED)
        return EMU_STREAM_CAPTURE_INVALIDATED;
    if (!implies_capture_locked(stream))
        return EMU_OK;
    invalidate_locked();
    return EMU_STREAM_CAPTURE_IMPLICIT;
}

emu_result cuThreadExchangeStreamCaptureMode(unsigned int *wanted)
{
    unsigned int former = mode;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!wanted || *wanted > EMU_CAPTURE_RELAXED)
        return EMU_INVALID_VALUE;
    mode = *wanted;
    *wanted = former;
    return EMU_OK;
}

emu_result cuStreamIsCapturing(struct CUstream_st *stream, unsigned int *state)
{
    struct CUstream_st *of;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!state)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_stream_of_locked(stream, &of);
    if (result == EMU_OK && implies_capture_locked(of))
        result = EMU_STREAM_CAPTURE_IMPLICIT;
    if (result == EMU_OK)
        *state = of->capture;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* Captures that only their own thread heeds are not emulated. */
emu_result cuStreamBeginCapture_v2(struct CUstream_st *stream, unsigned int wanted)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (wanted != EMU_CAPTURE_GLOBAL)
        return EMU_NOT_SUPPORTED;
    pthread_mutex_lock(&emu.lock);
    if (!emu_stream_valid_locked(stream))
        result = EMU_INVALID_HANDLE;
    else if (stream->capture != EMU_CAPTURE_NONE)
        result = EMU_INVALID_VALUE;
    if (result == EMU_OK) {
        stream->capture = EMU_CAPTURE_ACTIVE;
        emu.captures++;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

/* There is no graph to be had: NULL, as where a capture was spoilt. */
emu_result cuStreamEndCapture(struct CUstream_st *stream, struct CUgraph_st **graph)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!graph)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    *graph = NULL;
    if (!emu_stream_valid_locked(stream) || stream->capture == EMU_CAPTURE_NONE) {
        result = EMU_INVALID_VALUE;
    } else {
        if (stream->capture == EMU_CAPTURE_ACTIVE)
            emu.captures--;
        else
            result = EMU_STREAM_CAPTURE_INVALIDATED;
        stream->capture = EMU_CAPTURE_NONE;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}
