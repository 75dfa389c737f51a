/*
 * intake.h: what comes over one payload stream by device-memory TCP, and where it goes: from the control messages of
 * recvmsg() to the list for a gather kernel, and from there to the tokens that the kernel gets back.
 *
 *     each byte of the stream is placed once, in its order, at its place in its chunk
 *     a token goes back once, after the batch that the last byte of its fragment was placed in is done
 *
 * The payloads of chunks stand in the stream back to back. The header stream tells of each chunk its position, length
 * and destination (expect); recvmsg() tells where the next bytes of the payload stream are (take). Either may be ahead
 * of the other, and a fragment may end one chunk and begin the next. place() writes what both are known of into lists
 * of the caller: a batch. The caller starts the gather of batches in the order of their numbers, says which are done,
 * and gives back the tokens that give_back() hands out.
 *
 * No descriptor, no device, no clock. Nothing is allocated after create, and a message of the kernel or of a peer that
 * makes no sense changes nothing. One thread at a time uses an intake. Owner: the channel of the stream.
 */
#ifndef WF_DEVMEM_INTAKE_H
#define WF_DEVMEM_INTAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

/* Headers of many systems are older than these. */
#ifndef MSG_SOCK_DEVMEM
#define MSG_SOCK_DEVMEM 0x2000000
#endif
#ifndef SO_DEVMEM_LINEAR
#define SO_DEVMEM_LINEAR 78
#define SO_DEVMEM_DMABUF 79
#define SO_DEVMEM_DONTNEED 80
#endif
#define WF_DEVMEM_SCM_LINEAR SO_DEVMEM_LINEAR
#define WF_DEVMEM_SCM_DMABUF SO_DEVMEM_DMABUF

/* The data of a control message: struct dmabuf_cmsg of linux/uio.h, which cannot be included beside sys/socket.h. */
struct wf_devmem_cmsg {
    uint64_t offset; /* in the dma-buf; like token and dmabuf, of a fragment in device memory only */
    uint32_t bytes;
    uint32_t token;
    uint32_t dmabuf; /* its id, as the binding has it */
    uint32_t flags;
};

/* Room for the control messages of so many fragments. */
#define WF_DEVMEM_CONTROL_BYTES(fragments) ((fragments)*CMSG_SPACE(sizeof(struct wf_devmem_cmsg)))

struct wf_devmem_intake;

struct wf_devmem_intake_setup {
    uint32_t dmabuf;       /* the id of the binding that the stream is steered to */
    uint64_t dmabuf_bytes; /* of the memory that was bound */
    /* At most so many: fragments that have come and not gone back, host parts that are not placed yet, and chunks that
     * are not placed whole. 1 and up; memory is taken for all of them. */
    uint32_t fragments_max;
    uint32_t chunks_max;
};

/* -EINVAL: a maximum of 0, or one beyond 2^24; -ENOMEM. */
int wf_devmem_intake_create(const struct wf_devmem_intake_setup *setup, struct wf_devmem_intake **intake,
                            struct wf_status *status);
/* Tokens that are still out go back with the socket. NULL is allowed. */
void wf_devmem_intake_destroy(struct wf_devmem_intake *intake);

/* --- the header stream --- */

struct wf_devmem_chunk {
    uint64_t position; /* of its first byte in the payload stream; that of the first chunk is 0 */
    uint64_t bytes;    /* 1 and up */
    uint64_t to;       /* address in device memory; 0: nobody wants the bytes, they are dropped */
};

/* The next chunk. -EBADMSG: it does not stand where the one before ends, is empty, or its numbers overflow: the stream
 * cannot go on. -ENOBUFS: chunks_max are not placed yet. */
int wf_devmem_intake_expect(struct wf_devmem_intake *intake, const struct wf_devmem_chunk *chunk,
                            struct wf_status *status);

/* --- the payload stream --- */

/* How many fragments the next recvmsg() may bring: control memory for no more of them goes into it, and at 0 it is not
 * called. */
uint32_t wf_devmem_intake_room(const struct wf_devmem_intake *intake);

/* What a recvmsg(MSG_SOCK_DEVMEM) has brought: `received` is what it returned, 1 and up, `message` has one iovec. Bytes
 * that came in host memory stay where they are until the batch that they are placed in is done. -EBADMSG: the control
 * messages are cut off, of another dma-buf or outside of it, empty, or do not add up to `received`; more than room:
 * -ENOBUFS. Then the stream cannot go on. */
int wf_devmem_intake_take(struct wf_devmem_intake *intake, const struct msghdr *message, size_t received,
                          struct wf_status *status);

/* --- batches --- */

/* Bytes of device memory to gather. */
struct wf_devmem_gather {
    uint64_t from; /* offset in the dma-buf */
    uint64_t to;   /* address in device memory */
    uint64_t bytes;
};

/* Bytes of host memory to copy. */
struct wf_devmem_copy {
    const void *from;
    uint64_t to;
    uint64_t bytes;
};

/* Owner: the caller, who sets the lists and their lengths; they may lie in memory that a device reads. */
struct wf_devmem_batch {
    struct wf_devmem_gather *gathers;
    struct wf_devmem_copy *copies;
    uint32_t gathers_max, copies_max; /* 1 and up */
    /* place() writes the rest. */
    uint32_t gather_count, copy_count; /* both 0: nothing is to be started, but what is before it may not be done */
    uint64_t number;                   /* 1, 2, 3, … */
    uint64_t position;                 /* the bytes of the stream before it are placed, in this batch or earlier */
};

/* Places what can be, as far as the lists reach. True: that is the batch, which the caller now owes a done(). False:
 * there is nothing to place, and no batch. */
bool wf_devmem_intake_place(struct wf_devmem_intake *intake, struct wf_devmem_batch *batch);

/* This batch and all before it are done: nothing reads their fragments any more. -EINVAL: there is no such batch. */
int wf_devmem_intake_done(struct wf_devmem_intake *intake, uint64_t number);

/* --- tokens --- */

/* struct dmabuf_token of linux/uio.h. */
struct wf_devmem_tokens {
    uint32_t start, count;
};

/* What one setsockopt(SO_DEVMEM_DONTNEED) takes; fragments beyond that the kernel would keep, and not say so. */
#define WF_DEVMEM_RANGES_MAX 128
#define WF_DEVMEM_GIVEN_MAX 1024

/* Takes out tokens of batches that are done, for one call of setsockopt(): returns how many ranges, 0: there are none.
 * `fragments` is what the call has to return. They count as given back from now on. */
uint32_t wf_devmem_intake_give_back(struct wf_devmem_intake *intake,
                                    struct wf_devmem_tokens ranges[WF_DEVMEM_RANGES_MAX], uint32_t *fragments);

/* Fragments of device memory that have come and not gone back: buffers that the card does not have. At a quarter of the
 * pool it is time to place, and to wait for what was placed. */
uint32_t wf_devmem_intake_held(const struct wf_devmem_intake *intake);

/* Bytes since the start, as they came: a path whose bytes come in host memory is not worth it. */
struct wf_devmem_intake_counts {
    uint64_t device_bytes, host_bytes;
};

struct wf_devmem_intake_counts wf_devmem_intake_counts(const struct wf_devmem_intake *intake);

#endif
