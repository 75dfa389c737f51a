/* Many small pieces: one launch and one copy. */
#include "mem/memory_cuda.h"

/* Pieces that kernels put together: below that, the launch costs more than the copies it saves. */
#define GATHER_PIECES 8
#define GATHER_BYTES (UINT64_C(32) << 10) /* of a piece, on average, at most */

bool wf_cuda_gathers(const struct wf_cuda_lane *lane, enum wf_copy_way way, const struct wf_copy_piece *pieces,
                     int count, uint64_t *total, uint64_t *longest)
{
    uint64_t next = 0;

    if (!lane->scratch || count < GATHER_PIECES)
        return false;
    *total = *longest = 0;
    for (int i = 0; i < count; i++) {
        uint64_t host = way == WF_COPY_OUT ? (uintptr_t)pieces[i].to : (uintptr_t)pieces[i].from;
        if (i && host != next)
            return false;
        next = host + pieces[i].bytes;
        *total += pieces[i].bytes;
        *longest = pieces[i].bytes > *longest ? pieces[i].bytes : *longest;
    }
    return *total <= WF_CUDA_SCRATCH && *total <= GATHER_BYTES * (uint64_t)count;
}

/* Whether the next table can be filled: what it held has been copied. */
static bool has_table(const struct wf_cuda_api *api, const struct wf_cuda_lane *lane)
{
    return api->cuEventQuery(lane->read[lane->turn % WF_CUDA_TABLES]) == WF_CU_SUCCESS;
}

/* The table goes to the device. It is read later: so it is in memory that stays, and an event tells when. */
static wf_cu_result queue_table(const struct wf_cuda_api *api, struct wf_cuda_lane *lane, enum wf_copy_way way,
                                const struct wf_copy_piece *pieces, int count)
{
    unsigned int turn = lane->turn++ % WF_CUDA_TABLES;
    struct wf_gather_piece *table = lane->tables + turn * WF_CUDA_GATHERED;
    uint64_t at = 0;
    wf_cu_result result;

    for (int i = 0; i < count; i++) {
        table[i].address = way == WF_COPY_OUT ? (uintptr_t)pieces[i].from : (uintptr_t)pieces[i].to;
        table[i].offset = at;
        table[i].bytes = pieces[i].bytes;
        at += pieces[i].bytes;
    }
    result = api->cuMemcpyHtoDAsync(lane->pieces, table, (size_t)count * sizeof(*table), lane->stream);
    return result ? result : api->cuEventRecord(lane->read[turn], lane->stream);
}

wf_cu_result wf_cuda_queue_gathered(struct wf_memory *memory, struct wf_cuda_device *device, struct wf_cuda_lane *lane,
                                    enum wf_copy_way way, const struct wf_copy_piece *pieces, int count, uint64_t total,
                                    uint64_t longest)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    wf_cu_result result = WF_CU_NOT_READY;

    pthread_mutex_lock(&lane->gathering);
    if (has_table(api, lane))
        result = queue_table(api, lane, way, pieces, count);
    if (way == WF_COPY_IN && !result)
        result = api->cuMemcpyHtoDAsync(lane->scratch, pieces[0].from, total, lane->stream);
    if (!result)
        result = (way == WF_COPY_OUT ? wf_cuda_gather : wf_cuda_scatter)(
            api, &device->kernels, lane->stream, lane->scratch, lane->pieces, (unsigned int)count, longest);
    if (way == WF_COPY_OUT && !result)
        result = api->cuMemcpyDtoHAsync(pieces[0].to, lane->scratch, total, lane->stream);
    pthread_mutex_unlock(&lane->gathering);
    return result;
}
