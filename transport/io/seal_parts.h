/*
 * seal_parts.h: what the sources of the engine that encrypts share. No other file includes it.
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
/* What leaves in one call: it is still in the cache when the kernel copies it, and so is what has come in one when it
 * is decrypted (docs/decisions/0013-encryption.md). */
#define WF_SEAL_BATCH_RECORDS 4
#define WF_SEAL_BATCH_WIRE (WF_SEAL_BATCH_RECORDS * WF_RECORD_WIRE)
#define WF_SEAL_INPUT_RECORDS 4
#define WF_SEAL_INPUT (WF_SEAL_INPUT_RECORDS * WF_RECORD_WIRE)
#define WF_SEAL_BATCHES 2
/* So many calls are kept to one record after something urgent has come: encrypting and decrypting cannot be
 * interrupted, and more that is urgent is likely. */
#define WF_SEAL_SHORT_CALLS 64

/* Records that are complete, and how much of them the kernel has taken. */
struct wf_seal_batch {
    uint8_t *bytes;
    uint32_t wire, gone; /* bytes of records; of these, taken */
    uint32_t plain;      /* bytes before encryption */
    bool told;           /* of a SEND that was cancelled: they count as moved already */
};

/* The sending direction. Owner: the engine to which a SEND was posted last. */
struct wf_seal_tx {
    struct wf_records *records;
    struct wf_seal_batch batches[WF_SEAL_BATCHES];
    int first, count; /* in their order: the first one is on its way */
    int failed;       /* what every SEND from here on ends in; 0 */
    atomic_uint ending; /* WF_SEAL_LEFT, WF_SEAL_SHUT; also set by the thread that shuts the descriptor down */
};

#define WF_SEAL_LEFT 1u /* bytes of a cancelled SEND are on their way */
#define WF_SEAL_SHUT 2u /* the direction is to end behind them */

/* The receiving direction. Owner: the engine to which a RECV was posted last.
 * Invariant: open_start <= open_end <= start <= end, and the first two are equal where nothing is kept. */
struct wf_seal_rx {
    struct wf_records *records;
    uint8_t *bytes;
    uint32_t open_start, open_end; /* decrypted in place, and not taken yet */
    uint32_t start, end;           /* records, the last one perhaps in part */
    int failed;                    /* what every RECV from here on ends in; 0 */
};

/* A protected descriptor, whatever engines it is attached to. */
struct wf_seal_socket {
    struct wf_link link; /* in seal.sockets; guarded by seal.lock */
    int fd;
    struct wf_seal_tx tx;
    struct wf_seal_rx rx;
};

struct wf_seal {
    struct wf_around around; /* first: it is the host */

    pthread_mutex_t lock; /* what follows */
    struct wf_list sockets[WF_SEAL_BUCKETS];
};

/* One direction of a protected descriptor at one engine. Owner: the engine's. */
struct wf_seal_lane {
    struct wf_link link; /* in the engine's `ahead` */
    struct wf_seal_socket *socket;
    struct wf_op *user; /* NULL: none */
    bool cancelling;    /* RECV: the poster asked for it */
    struct wf_op op;    /* what the inner engine has */
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
    uint32_t call_bytes; /* most that one SEND's turn encrypts, and one RECV brings */
    int short_calls;     /* that are left */
    struct wf_list slots[WF_SEAL_BUCKETS];
    struct wf_list finished; /* of the posters' operations */
    struct wf_list ahead;    /* of lanes that may encrypt the next bytes while the former are on their way */
};

/* The poster's operation has ended. */
static inline void wf_seal_finish(struct wf_seal_engine *engine, struct wf_op *user, int64_t result)
{
    user->result = result;
    wf_ended_add(&engine->finished, user);
}

/* The records of the next call. */
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

/* The ops that it changes. */
void wf_seal_op_shutdown(void *host, int fd);
void wf_seal_op_close_fd(void *host, int fd);

/* --- seal_tx.c --- */

void wf_seal_tx_start(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
/* The inner engine has given it back. */
void wf_seal_tx_returned(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
/* Encrypts what comes next, where there is room for it. */
void wf_seal_tx_ahead(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
void wf_seal_tx_cancel(struct wf_seal_engine *engine, struct wf_seal_lane *lane);

/* --- seal_rx.c --- */

void wf_seal_rx_start(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
void wf_seal_rx_returned(struct wf_seal_engine *engine, struct wf_seal_lane *lane);
void wf_seal_rx_cancel(struct wf_seal_engine *engine, struct wf_seal_lane *lane);

#endif
