/* Chunks and pieces of the stream meet, both in its order. */
#include "intake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "intake_parts.h"

#define MEMBERS_MAX (UINT32_C(1) << 24)

/* --- life --- */

/* Room for so many. NULL: no memory. */
static void *make_ring(struct wf_devmem_ring *ring, uint32_t members, size_t bytes)
{
    uint32_t room = 1;

    while (room < members)
        room *= 2;
    ring->mask = room - 1;
    return calloc(room, bytes);
}

int wf_devmem_intake_create(const struct wf_devmem_intake_setup *setup, struct wf_devmem_intake **intake,
                            struct wf_status *status)
{
    uint32_t fragments = setup->fragments_max, chunks = setup->chunks_max;

    if (fragments == 0 || fragments > MEMBERS_MAX || chunks == 0 || chunks > MEMBERS_MAX)
        return wf_fail(status, -EINVAL, "a payload stream of %u fragments and %u chunks: 1 to %u are possible",
                       fragments, chunks, MEMBERS_MAX);
    struct wf_devmem_intake *made = calloc(1, sizeof *made);
    if (made) {
        made->setup = *setup;
        made->piece = make_ring(&made->pieces, fragments, sizeof *made->piece);
        made->chunk = make_ring(&made->chunks, chunks, sizeof *made->chunk);
        made->run = make_ring(&made->runs, fragments, sizeof *made->run);
    }
    if (!made || !made->piece || !made->chunk || !made->run) {
        wf_devmem_intake_destroy(made);
        return wf_fail(status, -ENOMEM, "no memory for a payload stream of %u fragments", fragments);
    }
    *intake = made;
    return 0;
}

void wf_devmem_intake_destroy(struct wf_devmem_intake *intake)
{
    if (!intake)
        return;
    free(intake->piece);
    free(intake->chunk);
    free(intake->run);
    free(intake);
}

/* --- chunks --- */

int wf_devmem_intake_expect(struct wf_devmem_intake *intake, const struct wf_devmem_chunk *chunk,
                            struct wf_status *status)
{
    if (chunk->position != intake->expected)
        return wf_fail(status, -EBADMSG, "a chunk at position %" PRIu64 " of its payload stream, expected at %" PRIu64,
                       chunk->position, intake->expected);
    if (chunk->bytes == 0 || chunk->position + chunk->bytes < chunk->position || chunk->to + chunk->bytes < chunk->to)
        return wf_fail(status, -EBADMSG, "a chunk of %" PRIu64 " bytes at position %" PRIu64 ", to address %#" PRIx64,
                       chunk->bytes, chunk->position, chunk->to);
    if (wf_devmem_in_use(&intake->chunks) == intake->setup.chunks_max)
        return wf_fail(status, -ENOBUFS, "%u chunks wait for their payload", intake->setup.chunks_max);
    intake->chunk[intake->chunks.end++ & intake->chunks.mask] = *chunk;
    intake->expected += chunk->bytes;
    return 0;
}

/* --- placing --- */

/* False: the list is full. */
static bool put(struct wf_devmem_batch *batch, const struct wf_devmem_piece *piece, uint64_t to, uint64_t bytes)
{
    if (piece->device) {
        if (batch->gather_count == batch->gathers_max)
            return false;
        batch->gathers[batch->gather_count++] =
            (struct wf_devmem_gather){.from = piece->from, .to = to, .bytes = bytes};
    } else {
        if (batch->copy_count == batch->copies_max)
            return false;
        batch->copies[batch->copy_count++] =
            (struct wf_devmem_copy){.from = (const void *)(uintptr_t)piece->from, .to = to, .bytes = bytes};
    }
    return true;
}

/* Nothing of the piece is left. */
static void let_go(struct wf_devmem_intake *intake, const struct wf_devmem_piece *piece)
{
    intake->pieces.first++;
    if (piece->device)
        wf_devmem_hold(intake, piece->token, intake->batches + 1);
    else
        intake->used--;
}

/* What the first chunk and the first piece have in common. False: it does not fit into the lists. */
static bool place_one(struct wf_devmem_intake *intake, struct wf_devmem_batch *batch)
{
    struct wf_devmem_piece *piece = &intake->piece[intake->pieces.first & intake->pieces.mask];
    struct wf_devmem_chunk *chunk = &intake->chunk[intake->chunks.first & intake->chunks.mask];
    uint32_t bytes = piece->bytes < chunk->bytes ? piece->bytes : (uint32_t)chunk->bytes;

    if (chunk->to) {
        if (!put(batch, piece, chunk->to, bytes))
            return false;
        chunk->to += bytes;
    }
    chunk->bytes -= bytes;
    piece->from += bytes;
    piece->bytes -= bytes;
    intake->placed += bytes;
    if (chunk->bytes == 0)
        intake->chunks.first++;
    if (piece->bytes == 0)
        let_go(intake, piece);
    return true;
}

bool wf_devmem_intake_place(struct wf_devmem_intake *intake, struct wf_devmem_batch *batch)
{
    uint64_t before = intake->placed;

    batch->gather_count = batch->copy_count = 0;
    while (wf_devmem_in_use(&intake->pieces) && wf_devmem_in_use(&intake->chunks) && place_one(intake, batch))
        continue;
    if (intake->placed == before)
        return false;
    batch->number = ++intake->batches;
    batch->position = intake->placed;
    return true;
}

struct wf_devmem_intake_counts wf_devmem_intake_counts(const struct wf_devmem_intake *intake)
{
    return intake->counts;
}
