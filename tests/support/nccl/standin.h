/*
 * standin.h: a libnccl.so.2 without NCCL, for tests of those who call NCCL: build/emulated/libnccl.so.2, beside the
 * CUDA driver without a GPU that it works on, never installed. It has the symbol weft_emulated_driver, so that no
 * result of it can pass for NCCL's. What it does as NCCL does:
 *
 *     the operations of a communicator run one launch after the other, in the order of their stream;
 *     within a launch all of them run at once, and the messages of two ranks are matched by order alone;
 *     ranks on one GPU of one host (NCCL_HOSTID) are refused.
 *
 * NCCL_STANDIN makes it fail: "flip" has one bit of every message wrong, "fail" ends a communicator with an error in
 * its tenth launch, "alone" never lets the ranks meet.
 *
 * So a caller whose launches wait for each other in a circle hangs here, too. Bytes go over TCP sockets of the loopback
 * interface. A send and a receive that differ in length end in an error of the communicator. There are no collectives.
 */
#ifndef WEFT_TESTS_NCCL_STANDIN_H
#define WEFT_TESTS_NCCL_STANDIN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tests/support/cuda/driver.h"
#include "bench/backends/nccl/library.h"

#define STANDIN_API __attribute__((visibility("default")))
#define STANDIN_RANKS_MAX 128

enum { STANDIN_SYSTEM = 2, STANDIN_INTERNAL = 3, STANDIN_ARGUMENT = 4, STANDIN_USAGE = 5 };

/* One send or receive. Owner: the group it is called in, then the communicator's mover. */
struct standin_operation {
    struct standin_operation *next;
    bool sends;
    int peer;
    emu_pointer memory;
    uint64_t length;
    uint8_t *copy;   /* in host memory */
    uint64_t header; /* the sender's length, on its way */
    uint64_t moved;  /* bytes, those of the header included */
    bool done;
};

/* What one stream runs at one time. */
struct standin_launch {
    struct standin_launch *next;
    struct standin_operation *operations;
    struct CUevent_st *start; /* behind what the stream had before */
    uint32_t ticket;          /* the stream goes on once the flag has it */
};

/* A rank. */
struct nccl_comm {
    int ranks, rank;
    nccl_id id;
    char host[64]; /* NCCL_HOSTID */
    struct CUctx_st *context;
    int device;
    int root;     /* while the ranks meet; else -1 */
    int listener; /* for those who send here */
    uint16_t ports[STANDIN_RANKS_MAX];
    int out[STANDIN_RANKS_MAX], in[STANDIN_RANKS_MAX]; /* by peer; -1: not connected. Owner: the mover */
    struct CUstream_st *stream;                        /* the mover's own copies */
    _Atomic uint32_t *flag;                            /* a page that the GPU reads */
    uint32_t ticket;                                   /* of the launch that was queued last */
    pthread_t mover;
    bool moving;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t news;
    struct standin_launch *first, **end;
    bool leaving; /* the mover ends when nothing is left */
    atomic_bool aborted;
    atomic_int error; /* a result; what CommGetAsyncError tells */
};

/* --- the ranks meet: in standin_meet.c --- */

int standin_make_id(nccl_id *id);
/* Both halves of it, since ranks of one process wait for each other, too. */
int standin_meet_begin(struct nccl_comm *comm);
int standin_meet_end(struct nccl_comm *comm);

/* --- bytes move: in standin_mover.c --- */

int standin_mover_start(struct nccl_comm *comm);
/* Queues a launch behind what `stream` has now. */
int standin_mover_launch(struct nccl_comm *comm, struct CUstream_st *stream, struct standin_operation *operations);
void standin_mover_stop(struct nccl_comm *comm);

/* The reason that ncclGetLastError() tells in this process. Returns `result`. */
int standin_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
