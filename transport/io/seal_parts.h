/*
 * seal_parts.h: shared by the sources of the engine that encrypts. No other file includes it.
 */
#ifndef WF_IO_SEAL_PARTS_H
#define WF_IO_SEAL_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "io/around.h"
#include "io/ended.h"
#include "io/engine_seal.h"

#define WF_SEAL_BUCKETS 256 /* for descriptors, by number */
/* Records of one call: few enough that the bytes are still in the cache when the kernel copies them, and received bytes
 * when they are decrypted (docs/decisions/0013-encryption.md). */
#define WF_SEAL_BATCH_RECORDS 4
#define WF_SEAL_BATCH_WIRE (WF_SEAL_BATCH_RECORDS * WF_RECORD_WIRE)
#define WF_SEAL_INPUT_RECORDS 4
#define WF_SEAL_INPUT (WF_SEAL_INPUT_RECORDS * WF_RECORD_WIRE)
#define WF_SEAL_BATCHES 2
/* After an urgent RECV has received bytes, this many calls take one record only: more urgent bytes are likely, and
 * encryption and decryption of a record cannot be interrupted. */
#define WF_SEAL_SHORT_CALLS 64

/* Records that are complete, and how much of them the kernel has taken. */
struct wf_seal_batch {
    uint8_t *bytes;
    uint32_t wire, gone; /* bytes of records; bytes of them that the kernel has taken */
    uint32_t plain;      /* bytes before encryption */
    bool told;           /* its SEND was cancelled, and has counted these bytes as moved */
};

/* The sending direction. Owner: the engine to which a SEND was posted last. */
struct wf_seal_tx {
    struct wf_records *records;
    struct wf_seal_batch batches[WF_SEAL_BATCHES];
    int first, count; /* batches[first] is being sent; `count` batches hold bytes */
    int failed;       /* error in which every later SEND ends; 0: none */
    atomic_uint ending; /* WF_SEAL_LEFT, WF_SEAL_SHUT; also set by the thread that shuts the descriptor down */
};

#define WF_SEAL_LEFT 1u /* bytes of a cancelled SEND are still to be sent */
#define WF_SEAL_SHUT 2u /* shut the direction down after these bytes */

/* The receiving direction. Owner: the engine to which a RECV was posted last.
 * Invariant: open_start <= open_end <= start <= end; open_start == open_end if no decrypted bytes are kept. */
struct wf_seal_rx {
    struct wf_records *records;
    uint8_t *bytes;
    uint32_t open_start, open_end; /* bytes decrypted in place and not taken by a RECV yet */
    uint32_t start, end;           /* records; the last record may be incomplete */
    int failed;                    /* error in which every later RECV ends; 0: none */
};

/* A protected descriptor; one struct for all engines that it is attached to. */
struct wf_seal_socket {
    struct wf_link link; /* in seal.sockets; guarded by seal.lock */
    int fd;
    struct wf_seal_tx tx;
    struct wf_seal_rx rx;
};

struct wf_seal {
    struct wf_around around; /* first: it is the host */

    pthread_mutex_t lock; /* guards `sockets` */
    struct wf_list sockets[WF_SEAL_BUCKETS];
};

/* One direction of a protected descriptor at one engine. Owner: as struct wf_seal_engine. */
struct wf_seal_lane {
    struct wf_link link; /* in the engine's `ahead` */
    struct wf_seal_socket *socket;
    struct wf_op *user; /* NULL: none */
    bool cancelling;    /* RECV: the poster has cancelled it */
    struct wf_op op;    /* the operation posted to the inner engine */
    struct iovec iov;
};

struct wf_seal_slot {
    struct wf_link link; /* in the engine's `slots` */
    struct wf_seal_lane reader, writer;
};

/* Owner: the thread that drives the engine. */
struct wf_seal_engine {
    struct wf_engine base;
    struct wf_seal *seal;
    struct wf_engine *inner;
    uint32_t call_bytes; /* most bytes that a SEND encrypts at a time, and that a RECV receives at a time */
    int short_calls;     /* calls left that take one record only */
    struct wf_list slots[WF_SEAL_BUCKETS];
    struct wf_list finished; /* the posters' operations that have ended */
    struct wf_list ahead;    /* lanes that may encrypt the next batch while the first batch is being sent */
};

/* The poster's operation has ended. */
static inline void wf_seal_finish(struct wf_seal_engine *engine, struct wf_op *user, int64_t result)
{
    user->result = result;
    wf_ended_add(&engine->finished, user);
}

/* The number of records that the next call may take. */
static inline uint32_t wf_seal_call_records(struct wf_seal_engine *engine, uint32_t usual)
{
    if (engine->short_calls == 0)
        return usual;
    engine->short_calls -= 1;
    return 1;
}

/* --- seal_host.c --- */

/* NULL: not protected. */
struct wf_seal_socket *wf_seal_socket_of(struct wf_seal *seal, int fd);

/* The ops that this engine changes. */
void wf_seal_op_shutdown(void *host, int fd);
void wf_seal_op_close_fd(void *host, int fd);

/* --- seal_tx.c --- */

void wf_seal_tx_start(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
/* The inner engine has returned `lane->op`. */
void wf_seal_tx_returned(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
/* Encrypts the next batch if there is room for it. */
void wf_seal_tx_ahead(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
void wf_seal_tx_cancel(struct wf_seal_engine *engine, struct wf_seal_lane *lane);

/* --- seal_rx.c --- */

void wf_seal_rx_start(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
void wf_seal_rx_returned(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
void wf_seal_rx_cancel(struct wf_seal_engine *engine, struct wf_seal_lane *lane);

#endif
