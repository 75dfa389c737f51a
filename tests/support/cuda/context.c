/* Primary contexts, and which one is current to a thread. */
#include "internal.h"

#include <stdlib.h>

#define DEPTH 32

/* A context's entry holds the life in which it was pushed: a later one is another context. */
static _Thread_local struct {
    struct CUctx_st *context; /* NULL: none is current */
    uint64_t life;
} stack[DEPTH];
static _Thread_local int depth;

emu_result emu_context_error_locked(const struct CUctx_st *context)
{
    const struct emu_device *device = &emu.devices[context->device];

    if (context->retained == 0)
        return EMU_CONTEXT_IS_DESTROYED;
    return device->lost ? device->lost_code : context->error;
}

emu_result emu_current_locked(struct CUctx_st **out)
{
    *out = NULL;
    if (depth == 0 || !stack[depth - 1].context)
        return EMU_INVALID_CONTEXT;
    if (stack[depth - 1].life != stack[depth - 1].context->life)
        return EMU_CONTEXT_IS_DESTROYED;
    *out = stack[depth - 1].context;
    return emu_context_error_locked(*out);
}

/* Handles are addresses of our own: any other is a stranger. */
static bool is_context(const struct CUctx_st *context)
{
    for (int i = 0; i < emu.device_count; i++)
        if (context == &emu.devices[i].context)
            return true;
    return false;
}

static emu_result retain_locked(struct emu_device *device)
{
    struct CUctx_st *context = &device->context;
    emu_result result;

    if (device->lost)
        return EMU_DEVICE_UNAVAILABLE;
    if (context->retained == 0) {
        result = emu_memory_reserve_locked(device);
        if (result == EMU_OK)
            result = emu_engine_start_locked(device);
        if (result != EMU_OK)
            return result;
        context->life++;
        context->peers = 0;
        context->legacy = (struct CUstream_st){.context = context, .tail = &context->legacy.head};
    }
    context->retained++;
    return EMU_OK;
}

emu_result cuDevicePrimaryCtxRetain(struct CUctx_st **context, int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (device < 0 || device >= emu.device_count)
        return EMU_INVALID_DEVICE;
    if (!context)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = retain_locked(&emu.devices[device]);
    if (result == EMU_OK)
        *context = &emu.devices[device].context;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuDevicePrimaryCtxRelease_v2(int device)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (device < 0 || device >= emu.device_count)
        return EMU_INVALID_DEVICE;
    pthread_mutex_lock(&emu.lock);
    struct CUctx_st *context = &emu.devices[device].context;
    if (context->retained == 0) {
        result = EMU_INVALID_CONTEXT;
    } else if (--context->retained == 0) {
        emu_context_drop_locked(context, EMU_CONTEXT_IS_DESTROYED);
        emu_context_empty_locked(context);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuCtxPushCurrent_v2(struct CUctx_st *context)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!is_context(context))
        return EMU_INVALID_CONTEXT;
    if (depth == DEPTH)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    if (context->retained > 0) {
        stack[depth].context = context;
        stack[depth++].life = context->life;
    } else {
        result = EMU_INVALID_CONTEXT;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuCtxPopCurrent_v2(struct CUctx_st **context)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (depth == 0)
        return EMU_INVALID_CONTEXT;
    depth--;
    if (context)
        *context = stack[depth].context;
    return EMU_OK;
}

emu_result cuCtxGetCurrent(struct CUctx_st **context)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!context)
        return EMU_INVALID_VALUE;
    *context = depth > 0 ? stack[depth - 1].context : NULL;
    return EMU_OK;
}

/* Replaces the top of the stack; NULL takes it away. */
emu_result cuCtxSetCurrent(struct CUctx_st *context)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (context && !is_context(context))
        return EMU_INVALID_CONTEXT;
    depth -= depth > 0;
    return context ? cuCtxPushCurrent_v2(context) : EMU_OK;
}

emu_result cuCtxGetDevice(int *device)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (!device)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        *device = context->device;
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuCtxSynchronize(void)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        result = emu_capture_unsafe_locked();
    if (result == EMU_OK) {
        emu.synchronised++;
        result = emu_device_wait_locked(&emu.devices[context->device]);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuCtxEnablePeerAccess(struct CUctx_st *peer, unsigned int flags)
{
    struct CUctx_st *context;
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    if (flags != 0)
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK && (!is_context(peer) || peer == context || peer->retained == 0))
        result = EMU_INVALID_CONTEXT;
    if (result == EMU_OK) {
        uint64_t bit = UINT64_C(1) << peer->device;
        if (context->peers & bit)
            result = EMU_PEER_ACCESS_ALREADY_ENABLED;
        context->peers |= bit;
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

int weft_emulated_contexts(int device)
{
    int retained;

    if (device < 0 || device >= emu.device_count)
        return -1;
    pthread_mutex_lock(&emu.lock);
    retained = emu.devices[device].context.retained;
    pthread_mutex_unlock(&emu.lock);
    return retained;
}
