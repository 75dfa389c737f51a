/* intake_parts.h: shared by the files intake*.c. No other file includes it. */
#ifndef WF_DEVMEM_INTAKE_PARTS_H
#define WF_DEVMEM_INTAKE_PARTS_H

#include "intake.h"

/* The next bytes of the stream that are not placed yet. */
struct wf_devmem_piece {
    uint64_t from; /* in device memory: offset in the dma-buf; in host memory: address */
    uint32_t bytes;
    uint32_t token; /* of a piece in device memory */
    bool device;
};

/* Tokens in a row whose last byte was placed in one batch. */
struct wf_devmem_run {
    struct wf_devmem_tokens tokens;
    uint64_t batch;
};

/* A ring of which the first member in use is at `first`; indices grow, and are cut by `mask`. */
struct wf_devmem_ring {
    uint32_t first, end; /* end - first are in use */
    uint32_t mask;
};

struct wf_devmem_intake {
    struct wf_devmem_intake_setup setup;
    struct wf_devmem_ring pieces, chunks, runs;
    struct wf_devmem_piece *piece;
    struct wf_devmem_chunk *chunk; /* `bytes` and `to` are of what is not placed yet */
    struct wf_devmem_run *run;
    uint32_t used; /* of fragments_max; a run has no more members than tokens, so no ring is ever full before that */
    uint32_t held; /* tokens that the kernel does not have back */
    uint64_t expected, placed; /* positions: where the next chunk begins, and up to where bytes are placed */
    uint64_t batches, done;    /* numbers of the last ones */
    struct wf_devmem_intake_counts counts;
};

static inline uint32_t wf_devmem_in_use(const struct wf_devmem_ring *ring)
{
    return ring->end - ring->first;
}

/* intake_tokens.c: the last byte of a fragment was placed in the batch that is being made. */
void wf_devmem_hold(struct wf_devmem_intake *intake, uint32_t token, uint64_t batch);

#endif
