/* Entries that copy. What memory is pageable, and what that means, is decided here; the rest is the engine's. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

/* CUmemcpyAttributes: what is read of it. */
struct CUmemcpyAttributes_st {
    unsigned int source_access_order;
    struct {
        unsigned int type;
        int id;
    } source_hint, destination_hint;
    unsigned int flags;
};

/* What a copy is asked to be; ANY_COPY: whatever the addresses say. */
enum wanted { COPY_IN, COPY_OUT, COPY_DEVICES, ANY_COPY };

/* A copy on its way into a stream. */
struct request {
    struct CUstream_st *stream;
    struct emu_op *op;
    size_t kept_bytes; /* pageable sources, together */
    bool wait;         /* a pageable destination */
};

/* Finds both places, and says what the piece needs. */
static emu_result place_locked(struct request *request, struct emu_piece *piece, enum wanted wanted)
{
    int to, from;

    if (piece->to + piece->bytes < piece->to || piece->from + piece->bytes < piece->from ||
        !emu_memory_place_locked(piece->to, piece->bytes, &to) ||
        !emu_memory_place_locked(piece->from, piece->bytes, &from))
        return EMU_INVALID_VALUE;
    if ((wanted == COPY_IN && (from >= 0 || to < 0)) || (wanted == COPY_OUT && (from < 0 || to >= 0)) ||
        (wanted == COPY_DEVICES && (from < 0 || to < 0)))
        return EMU_INVALID_VALUE;
    if (from == EMU_NOWHERE && !emu.settings.coherent)
        request->kept_bytes += piece->bytes;
    if (to == EMU_NOWHERE && !emu.settings.coherent)
        request->wait = true;
    piece->to_device = to >= 0 ? to : EMU_HOST;
    piece->from_device = from >= 0 ? from : EMU_HOST;
    return EMU_OK;
}

static enum emu_way way_of(const struct emu_piece *piece)
{
    if (piece->from_device == EMU_HOST)
        return EMU_IN;
    return piece->to_device == EMU_HOST ? EMU_OUT : EMU_PEER;
}

/* The device whose copy it is. Between two places of the host: the stream's. */
static int device_of(const struct emu_piece *piece, const struct CUstream_st *stream)
{
    if (piece->from_device != EMU_HOST)
        return piece->from_device;
    return piece->to_device != EMU_HOST ? piece->to_device : stream->context->device;
}

/* Each piece counts as a copy; the first fault among them is that of all. */
static emu_result draw_fault_locked(struct request *request)
{
    struct emu_op *op = request->op;

    for (int i = 0; i < op->count; i++) {
        const struct emu_piece *piece = &op->pieces[i];
        emu_result code;
        enum emu_fault_kind kind = emu_fault_copy_locked(device_of(piece, request->stream), way_of(piece), &code);
        if (kind == EMU_FAULT_REFUSE)
            return code;
        if (kind != EMU_FAULT_NONE && op->fault_kind == EMU_FAULT_NONE) {
            op->fault_kind = (int)kind;
            op->fault_code = code;
            op->device = device_of(piece, request->stream);
        }
    }
    return EMU_OK;
}

/* A pageable source is taken before the call returns, up to a size; beyond it, the call waits. */
static emu_result keep_sources_locked(struct request *request)
{
    struct emu_op *op = request->op;
    size_t used = 0;
    int place;

    if (request->kept_bytes == 0)
        return EMU_OK;
    if (request->kept_bytes > EMU_PAGEABLE_KEPT) {
        request->wait = true;
        return EMU_OK;
    }
    op->kept = malloc(request->kept_bytes);
    if (!op->kept)
        return EMU_OUT_OF_MEMORY;
    for (int i = 0; i < op->count; i++) {
        struct emu_piece *piece = &op->pieces[i];
        emu_memory_place_locked(piece->from, piece->bytes, &place);
        if (place != EMU_NOWHERE)
            continue;
        memcpy(op->kept + used, (const void *)piece->from, piece->bytes);
        piece->from = (uintptr_t)op->kept + used;
        used += piece->bytes;
    }
    return EMU_OK;
}

static void give_up_locked(struct emu_op *op)
{
    if (op->pieces != &op->one)
        free(op->pieces);
    free(op->kept);
    op->next = emu.spare_ops;
    emu.spare_ops = op;
}

/* `pieces` is from the heap, or NULL for the one in the operation. Takes the operation in any case. */
static emu_result start_locked(struct request *request, enum wanted wanted)
{
    struct emu_op *op = request->op;
    emu_result result = EMU_OK;

    for (int i = 0; i < op->count && result == EMU_OK; i++)
        result = place_locked(request, &op->pieces[i], wanted);
    if (result == EMU_OK) {
        op->way = way_of(&op->pieces[0]);
        op->device = device_of(&op->pieces[0], request->stream);
        result = draw_fault_locked(request);
    }
    if (result == EMU_OK)
        result = keep_sources_locked(request);
    if (result != EMU_OK) {
        give_up_locked(op);
        return result;
    }
    struct CUstream_st *stream = request->stream;
    emu_op_queue_locked(stream, op);
    if (!request->wait)
        return EMU_OK;
    emu.synchronised++;
    return emu_stream_wait_locked(stream, stream->last);
}

/* One copy. A current context is needed also where the stream is another's. */
static emu_result copy(emu_pointer to, emu_pointer from, size_t bytes, struct CUstream_st *stream, enum wanted wanted,
                       bool wait)
{
    struct request request = {.wait = wait};
    struct CUctx_st *context;
    emu_result result;

    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        result = emu_stream_of_locked(stream, &request.stream);
    if (result == EMU_OK && bytes > 0) {
        request.op = emu_op_take_locked();
        if (request.op) {
            request.op->one = (struct emu_piece){.to = (uintptr_t)to, .from = (uintptr_t)from, .bytes = bytes};
            request.op->pieces = &request.op->one;
            request.op->count = 1;
            result = start_locked(&request, wanted);
        } else {
            result = EMU_OUT_OF_MEMORY;
        }
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuMemcpyHtoDAsync_v2(emu_pointer to, const void *from, size_t bytes, struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();
    return result != EMU_OK ? result : copy(to, (uintptr_t)from, bytes, stream, COPY_IN, false);
}

emu_result cuMemcpyDtoHAsync_v2(void *to, emu_pointer from, size_t bytes, struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();
    return result != EMU_OK ? result : copy((uintptr_t)to, from, bytes, stream, COPY_OUT, false);
}

emu_result cuMemcpyDtoDAsync_v2(emu_pointer to, emu_pointer from, size_t bytes, struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();
    return result != EMU_OK ? result : copy(to, from, bytes, stream, COPY_DEVICES, false);
}

emu_result cuMemcpyPeerAsync(emu_pointer to, struct CUctx_st *to_context, emu_pointer from,
                             struct CUctx_st *from_context, size_t bytes, struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();

    if (result != EMU_OK)
        return result;
    int to_device = emu_memory_device((uintptr_t)to), from_device = emu_memory_device((uintptr_t)from);
    if (to_device < 0 || from_device < 0)
        return EMU_INVALID_VALUE;
    if (to_context != &emu.devices[to_device].context || from_context != &emu.devices[from_device].context)
        return EMU_INVALID_CONTEXT;
    pthread_mutex_lock(&emu.lock);
    result = to_context->error ? to_context->error : from_context->error; /* a launch broke it: the call names both */
    pthread_mutex_unlock(&emu.lock);
    if (result != EMU_OK)
        return result;
    return copy(to, from, bytes, stream, COPY_DEVICES, false);
}

emu_result cuMemcpy(emu_pointer to, emu_pointer from, size_t bytes)
{
    emu_result result = EMU_ENTER();
    return result != EMU_OK ? result : copy(to, from, bytes, NULL, ANY_COPY, true);
}

/* Every copy belongs to the last set of attributes that begins at or before it. */
static bool good_attributes(const struct CUmemcpyAttributes_st *attributes, const size_t *indices, size_t count,
                            size_t copies)
{
    if (!attributes || !indices || count == 0 || count > copies || indices[0] != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (attributes[i].source_access_order < EMU_SOURCE_IN_STREAM_ORDER ||
            attributes[i].source_access_order > EMU_SOURCE_ANY || attributes[i].flags > 1)
            return false;
        if (indices[i] >= copies || (i > 0 && indices[i] <= indices[i - 1]))
            return false;
    }
    return true;
}

static bool fill(struct emu_op *op, const emu_pointer *to, const emu_pointer *from, const size_t *bytes, size_t count)
{
    op->pieces = malloc(count * sizeof(*op->pieces));
    if (!op->pieces)
        return false;
    op->count = 0;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] > 0)
            op->pieces[op->count++] =
                (struct emu_piece){.to = (uintptr_t)to[i], .from = (uintptr_t)from[i], .bytes = bytes[i]};
    return true;
}

static emu_result batch(const emu_pointer *to, const emu_pointer *from, const size_t *bytes, size_t count,
                        const struct CUmemcpyAttributes_st *attributes, const size_t *indices, size_t attribute_count,
                        struct CUstream_st *stream)
{
    struct request request = {0};
    struct CUctx_st *context;
    emu_result result;

    if (count == 0 || count > 1u << 20 || !to || !from || !bytes || (uintptr_t)stream <= 2 ||
        !good_attributes(attributes, indices, attribute_count, count))
        return EMU_INVALID_VALUE;
    pthread_mutex_lock(&emu.lock);
    result = emu_current_locked(&context);
    if (result == EMU_OK)
        result = emu_stream_of_locked(stream, &request.stream);
    request.op = result == EMU_OK ? emu_op_take_locked() : NULL;
    if (result == EMU_OK && !request.op)
        result = EMU_OUT_OF_MEMORY;
    if (request.op && !fill(request.op, to, from, bytes, count)) {
        request.op->pieces = &request.op->one;
        give_up_locked(request.op);
        result = EMU_OUT_OF_MEMORY;
    } else if (request.op && request.op->count == 0) {
        give_up_locked(request.op);
    } else if (request.op) {
        result = start_locked(&request, ANY_COPY);
    }
    pthread_mutex_unlock(&emu.lock);
    return result;
}

emu_result cuMemcpyBatchAsync(emu_pointer *to, emu_pointer *from, size_t *bytes, size_t count,
                              struct CUmemcpyAttributes_st *attributes, size_t *indices, size_t attribute_count,
                              size_t *failed, struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();

    if (result == EMU_OK)
        result = batch(to, from, bytes, count, attributes, indices, attribute_count, stream);
    if (result != EMU_OK && failed)
        *failed = SIZE_MAX; /* about all of them */
    return result;
}

emu_result cuMemcpyBatchAsync_v2(emu_pointer *to, emu_pointer *from, size_t *bytes, size_t count,
                                 struct CUmemcpyAttributes_st *attributes, size_t *indices, size_t attribute_count,
                                 struct CUstream_st *stream)
{
    emu_result result = EMU_ENTER();
    return result != EMU_OK ? result : batch(to, from, bytes, count, attributes, indices, attribute_count, stream);
}
