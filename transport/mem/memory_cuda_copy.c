/*
 * Copies. Pieces go to a stream of the wf_cuda_device, an event behind them, and copy_done() asks the event. No call
 * waits, with one exception: where not even an event can be recorded any more, an error may be returned only once the
 * stream is empty.
 *
 * A copy's token: 0 before its first piece and after its end.
 */
#include "mem/memory_cuda.h"

#include <errno.h>
#include <string.h>

#define BATCH 64 /* copies that one call of the driver takes */

enum {
    LANE = 0xFF,        /* of its way */
    BEGUN = 1 << 8,     /* lane is chosen */
    QUEUED = 1 << 9,    /* something may be under way */
    FAILED = 1 << 10,   /* a piece was refused; so is the copy, once what was queued before has ended */
    RECORDED = 1 << 11, /* the event has its place in a stream: only time is missing */
};

static bool is_memory(enum wf_copy_way way)
{
    return way == WF_COPY_OUT || way == WF_COPY_IN || way == WF_COPY_PEER;
}

static void forget_copy(struct wf_cuda_device *device, struct wf_copy *copy)
{
    if (copy->event)
        wf_cuda_event_give(device, copy->event);
    copy->event = NULL;
    copy->token = 0;
}

/* --- pieces --- */

/* Direct access between two devices is faster than a way through the host, and where there is none, the driver takes
 * that way by itself. Asked for once for each pair, at its first copy: the driver takes a moment for it. */
static void open_to_peer(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer)
{
    uint64_t bit = UINT64_C(1) << peer->info.index;
    int able = 0;

    if (device == peer || atomic_fetch_or(&device->peers, bit) & bit)
        return;
    if (!memory->driver.api.cuDeviceCanAccessPeer(&able, device->handle, peer->handle) && able)
        (void)memory->driver.api.cuCtxEnablePeerAccess(peer->context, 0);
}

static wf_cu_result queue_piece(const struct wf_cuda_api *api, const struct wf_cuda_device *device,
                                const struct wf_cuda_device *peer, enum wf_copy_way way,
                                const struct wf_copy_piece *piece, wf_cu_stream stream)
{
    wf_cu_memory to = (uintptr_t)piece->to, from = (uintptr_t)piece->from;

    if (way == WF_COPY_OUT)
        return api->cuMemcpyDtoHAsync(piece->to, from, piece->bytes, stream);
    if (way == WF_COPY_IN)
        return api->cuMemcpyHtoDAsync(to, piece->from, piece->bytes, stream);
    if (peer == device)
        return api->cuMemcpyDtoDAsync(to, from, piece->bytes, stream);
    return api->cuMemcpyPeerAsync(to, peer->context, from, device->context, piece->bytes, stream);
}

/* Up to BATCH pieces. A driver may refuse a batch that it would take piece by piece; to copy some twice does no harm.
 */
static wf_cu_result queue_batch(struct wf_memory *memory, const struct wf_copy_piece *pieces, int count,
                                wf_cu_stream stream)
{
    wf_cu_memory to[BATCH], from[BATCH];
    size_t bytes[BATCH], first = 0, failed = 0;
    struct wf_cu_copy_attributes attributes = {.source_order = WF_CU_ACCESS_ORDER_STREAM};

    for (int i = 0; i < count; i++) {
        to[i] = (uintptr_t)pieces[i].to;
        from[i] = (uintptr_t)pieces[i].from;
        bytes[i] = pieces[i].bytes;
    }
    return memory->driver.api.cuMemcpyBatchAsync(
        to, from, bytes, (size_t)count, (struct CUmemcpyAttributes_st *)&attributes, &first, 1, &failed, stream);
}

static wf_cu_result queue_plainly(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer,
                                  struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                                  wf_cu_stream stream)
{
    const struct wf_cuda_api *api = &memory->driver.api;

    for (int i = 0, some; i < count; i += some) {
        wf_cu_result result = WF_CU_NOT_SUPPORTED;
        some = count - i < BATCH ? count - i : BATCH;
        if (some > 1 && api->cuMemcpyBatchAsync && !atomic_load(&memory->unbatched)) {
            copy->token |= QUEUED;
            result = queue_batch(memory, pieces + i, some, stream);
            if (result == WF_CU_NOT_SUPPORTED)
                atomic_store(&memory->unbatched, true);
            else if (result && result != WF_CU_INVALID_VALUE)
                return result;
        }
        for (int k = i; result && k < i + some; k++) {
            wf_cu_result one = queue_piece(api, device, peer, copy->way, &pieces[k], stream);
            if (one)
                return one;
            copy->token |= QUEUED;
        }
    }
    return WF_CU_SUCCESS;
}

/* --- start --- */

static wf_cu_result queue_pieces(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer,
                                 struct wf_copy *copy, const struct wf_copy_piece *pieces, int count)
{
    struct wf_cuda_lane *lane = &device->lanes[copy->way][copy->token & LANE];
    wf_cu_result result = WF_CU_SUCCESS;
    uint64_t total, longest;

    if (copy->way == WF_COPY_PEER)
        open_to_peer(memory, device, peer);
    for (int i = 0, some; i < count && !result; i += some) {
        some = count - i < WF_CUDA_GATHERED ? count - i : WF_CUDA_GATHERED;
        if (wf_cuda_gathers(lane, copy->way, pieces + i, some, &total, &longest)) {
            uint64_t before = copy->token;
            copy->token |= QUEUED;
            result = wf_cuda_queue_gathered(memory, device, lane, copy->way, pieces + i, some, total, longest);
            if (result != WF_CU_NOT_READY)
                continue;
            copy->token = before;
        }
        result = queue_plainly(memory, device, peer, copy, pieces + i, some, lane->stream);
    }
    return result;
}

/* Within enter and leave. */
static int fault(struct wf_memory *memory, struct wf_cuda_device *device, const struct wf_copy *copy,
                 wf_cu_result result)
{
    bool two = copy->way == WF_COPY_PEER;

    return wf_cuda_fault_between(memory, device, two ? wf_cuda_in_use(memory, copy->to_device) : device, result);
}

/* Ends the copy with an error now: nothing of it is under way. */
static int fail_now(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_copy *copy, wf_cu_result result)
{
    int code = fault(memory, device, copy, result);

    forget_copy(device, copy);
    return code;
}

/* Puts the event behind what the copy has queued. */
static int record(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_copy *copy, wf_cu_stream stream)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    wf_cu_result result;

    copy->event = wf_cuda_event_take(memory, device, &result);
    if (!result)
        result = api->cuEventRecord(copy->event, stream);
    if (!result) {
        copy->token |= RECORDED;
        return 0;
    }
    /* Without an event copy_done() cannot tell when the pieces have been copied: so the stream is awaited here. */
    if (copy->token & QUEUED)
        (void)api->cuStreamSynchronize(stream);
    return fail_now(memory, device, copy, result);
}

/* Within enter and leave. */
static int start_pieces(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_device *peer,
                        struct wf_copy *copy, const struct wf_copy_piece *pieces, int count, bool more)
{
    if (!(copy->token & BEGUN))
        copy->token = BEGUN | atomic_fetch_add(&device->turns[copy->way], 1) % WF_CUDA_LANES;
    if (!(copy->token & FAILED)) {
        wf_cu_result result = queue_pieces(memory, device, peer, copy, pieces, count);
        if (result && !(copy->token & QUEUED))
            return fail_now(memory, device, copy, result);
        if (result)
            (void)fault(memory, device, copy, result);
        if (result && atomic_load(&device->lost)) {
            forget_copy(device, copy);
            return -ENODEV;
        }
        /* The pieces before it are under way. The caller hears of the error when they no longer are. */
        if (result)
            copy->token |= FAILED;
    }
    if (more)
        return 0;
    return record(memory, device, copy, device->lanes[copy->way][copy->token & LANE].stream);
}

/* What is put into such a stream is not done now, but whenever its graph is launched. */
static bool is_captured(const struct wf_cuda_api *api, wf_cu_stream stream)
{
    unsigned int state = WF_CU_CAPTURE_STATUS_NONE;
    wf_cu_result result = api->cuStreamIsCapturing(stream, &state);

    return result == WF_CU_CAPTURE_IMPLICIT || state != WF_CU_CAPTURE_STATUS_NONE;
}

int wf_cuda_copy_start(struct wf_memory *memory, struct wf_copy *copy, const struct wf_copy_piece *pieces, int count,
                       bool more)
{
    struct wf_cuda_device *device = wf_cuda_in_use(memory, copy->device);
    struct wf_cuda_device *peer = device;
    struct wf_cuda_visit visit;
    int code;

    if (copy->way == WF_COPY_PEER)
        peer = wf_cuda_in_use(memory, copy->to_device);
    if (!device || !peer || (!is_memory(copy->way) && copy->way != WF_COPY_MARK))
        return -EINVAL;
    if (atomic_load(&device->lost) || atomic_load(&peer->lost) || wf_cuda_enter(memory, device, &visit)) {
        forget_copy(device, copy);
        return -ENODEV;
    }
    if (copy->way != WF_COPY_MARK)
        code = start_pieces(memory, device, peer, copy, pieces, count, more);
    else if (is_captured(&memory->driver.api, copy->stream))
        code = -ENOTSUP;
    else
        code = record(memory, device, copy, copy->stream);
    wf_cuda_leave(memory, &visit);
    return code;
}

/* --- end --- */

int wf_cuda_copy_done(struct wf_memory *memory, struct wf_copy *copy)
{
    struct wf_cuda_device *device = wf_cuda_in_use(memory, copy->device);
    struct wf_cuda_visit visit;
    wf_cu_result result;
    int code;

    if (!device || !(copy->token & RECORDED))
        return -EINVAL;
    /* A lost device writes nowhere any more, and its events will never say so. */
    if (atomic_load(&device->lost) || wf_cuda_enter(memory, device, &visit)) {
        forget_copy(device, copy);
        return -ENODEV;
    }
    result = memory->driver.api.cuEventQuery(copy->event);
    code = result == WF_CU_SUCCESS ? 1 : result == WF_CU_NOT_READY ? 0 : fault(memory, device, copy, result);
    wf_cuda_leave(memory, &visit);
    if (code == 1 && copy->token & FAILED)
        code = -EIO;
    if (code)
        forget_copy(device, copy);
    return code;
}

int wf_cuda_hold(struct wf_memory *memory, int index, void *stream, const uint32_t *flag, uint32_t value)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    struct wf_cuda_device *device = wf_cuda_in_use(memory, index);
    struct wf_cuda_visit visit;
    wf_cu_memory address = 0;
    wf_cu_result result;
    int code = 0;

    if (!device)
        return -EINVAL;
    if (!api->cuStreamWaitValue32)
        return -ENOTSUP;
    if (atomic_load(&device->lost) || wf_cuda_enter(memory, device, &visit))
        return -ENODEV;
    /* Pinned memory may have another address for devices than for the processor, or none: an invalid value. */
    result = api->cuMemHostGetDevicePointer(&address, (void *)(uintptr_t)flag, 0);
    if (result == WF_CU_INVALID_VALUE)
        result = WF_CU_NOT_SUPPORTED;
    if (!result)
        result = api->cuStreamWaitValue32(stream, address, value, WF_CU_WAIT_VALUE_GEQ);
    if (result == WF_CU_NOT_SUPPORTED)
        code = -ENOTSUP;
    else if (result)
        code = wf_cuda_fault(memory, device, result);
    wf_cuda_leave(memory, &visit);
    return code;
}

/* --- copies that are waited for --- */

static wf_cu_result copy_and_wait(const struct wf_cuda_api *api, struct wf_cuda_device *device,
                                  struct wf_cuda_device *peer, enum wf_copy_way way, const struct wf_copy_piece *piece)
{
    wf_cu_result result = queue_piece(api, device, peer, way, piece, device->now);
    wf_cu_result waited = api->cuStreamSynchronize(device->now);

    return result ? result : waited;
}

int wf_cuda_copy_now(struct wf_memory *memory, void *to, const void *from, uint64_t bytes, struct wf_status *status)
{
    struct wf_copy_piece piece = {.to = to, .from = from, .bytes = bytes};
    struct wf_memory_place target, source;
    struct wf_cuda_device *device, *peer;
    struct wf_cuda_visit visit;
    wf_cu_result result;
    enum wf_copy_way way;
    int code = wf_cuda_locate(memory, to, bytes, &target, status);

    if (!code)
        code = wf_cuda_locate(memory, from, bytes, &source, status);
    if (code || bytes == 0)
        return code;
    if (target.device == WF_NO_DEVICE && source.device == WF_NO_DEVICE) {
        memmove(to, from, bytes);
        return 0;
    }
    way = source.device == WF_NO_DEVICE ? WF_COPY_IN : target.device == WF_NO_DEVICE ? WF_COPY_OUT : WF_COPY_PEER;
    device = wf_cuda_in_use(memory, way == WF_COPY_IN ? target.device : source.device);
    peer = way == WF_COPY_PEER ? wf_cuda_in_use(memory, target.device) : device;
    if (!device || !peer)
        return wf_fail(status, -EINVAL, "GPU %d is not in use", device ? target.device : source.device);
    if (atomic_load(&device->lost) || wf_cuda_enter(memory, device, &visit))
        return wf_fail(status, -ENODEV, "GPU %d cannot be used any more: %s", device->info.index,
                       atomic_load(&device->why));
    result = copy_and_wait(&memory->driver.api, device, peer, way, &piece);
    if (result) {
        code = wf_cuda_fault_between(memory, device, peer, result);
        wf_fail(status, code, "GPU %d: copying %llu bytes: %s", device->info.index, (unsigned long long)bytes,
                atomic_load(&device->why));
    }
    wf_cuda_leave(memory, &visit);
    return code;
}
