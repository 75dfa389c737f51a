/*
 * intake_fixture.h: a payload stream whose byte at position p is intake_pattern(p), the kernel's messages about it, and
 * the devices: a pool that packets land in, memory that chunks go to, and a GPU that is as late as the test likes.
 */
#ifndef INTAKE_FIXTURE_H
#define INTAKE_FIXTURE_H

#include "devmem/intake.h"

#define WORLD_DMABUF 7
#define WORLD_SLOT 4096 /* a buffer of the pool */
#define WORLD_SLOTS 4096
#define WORLD_POOL (WORLD_SLOT * WORLD_SLOTS)
#define WORLD_MEMORY (1 << 22)
#define WORLD_HOST (1 << 20)
#define WORLD_MESSAGE 64 /* parts of a message */
#define WORLD_CHUNKS 8192
#define WORLD_LIST 4096

/* Where a token's fragment is. */
enum world_token { WORLD_KERNEL, WORLD_OUT };

/* Owner: the test. */
struct world {
    struct wf_devmem_intake *intake;
    struct wf_status status;
    uint8_t *pool, *memory, *host;

    /* The message that is being put together. */
    uint8_t control[WF_DEVMEM_CONTROL_BYTES(WORLD_MESSAGE) + 64];
    size_t control_bytes, received;
    size_t host_at; /* of the next message in `host` */
    size_t host_used;
    int flags;

    uint64_t position;   /* bytes of the stream that have come */
    uint32_t next_token; /* the kernel takes the next that it has */
    uint8_t token_is[WORLD_SLOTS];

    struct wf_devmem_chunk chunk[WORLD_CHUNKS]; /* as they were told */
    uint32_t chunk_count;
    uint64_t told; /* position behind the last chunk */

    struct wf_devmem_gather gathers[WORLD_LIST];
    struct wf_devmem_copy copies[WORLD_LIST];
    struct wf_devmem_batch batch;
};

uint8_t intake_pattern(uint64_t position);

/* An intake for so many fragments and chunks. */
struct world *world_create(uint32_t fragments, uint32_t chunks);
/* All chunks that were placed whole have their bytes, and no byte between them was touched. */
void world_destroy(struct world *world);

/* A chunk of so many bytes for the offset `to` in memory; -1: for nobody. The result of expect. */
int world_tell(struct world *world, uint64_t bytes, int64_t to);

/* Parts of the next message: a fragment in the pool, with the kernel's next token, or bytes beside it. */
void world_fragment(struct world *world, uint32_t bytes);
void world_linear(struct world *world, uint32_t bytes);
/* Any control message, `data_bytes` of `data` with these numbers in its header. */
void world_control(struct world *world, int level, int type, const void *data, size_t data_bytes);
/* Gives the message to the intake. With `plain` bytes it has them in host memory, and no control message. */
int world_take(struct world *world, size_t plain);

/* A message of so many fragments of a whole buffer, which the intake has to take. */
void world_take_full(struct world *world, int count);

/* Places, and copies at once what the batch says. */
bool world_place(struct world *world);
/* One call of give_back, whose ranges are checked. How many fragments came back. */
uint32_t world_give_back(struct world *world, uint32_t *ranges);
/* Until nothing is left; all tokens are back then. */
void world_drain(struct world *world);

#endif
