/*
 * halves.h: the send half and the receive half of a channel. Part of channel.h.
 */
#ifndef WF_CORE_CHANNEL_HALVES_H
#define WF_CORE_CHANNEL_HALVES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/drive/worker.h"
#include "io/engine.h"
#include "wire/frame.h"
#include "wire/spread.h"
#include "wire/window.h"

struct wf_inbound;
struct wf_outbound;
struct wf_slot;

#define WF_BATCH_FRAMES 32     /* most frames in one send operation */
#define WF_TX_SEGMENTS 512     /* most pieces of memory in one send operation, headers among them */
#define WF_TX_SEGMENTS_LEFT 64 /* with fewer left, a message in pieces waits for the next operation */
#define WF_PACKED_BYTES 256    /* a payload of up to so many follows its header in one piece: gathering costs more */
#define WF_EXPRESS_WINDOW 1024 /* frames in flight on an express channel */
#define WF_EXPRESS_READ (32 * 1024)
#define WF_RX_SEGMENTS 64 /* pieces of a payload's destination in one receive operation */
#define WF_BOUNCE_BYTES (256 * 1024)

/* A sequenced frame that the peer has not acknowledged: enough to send it again on another channel. */
struct wf_retained {
    struct wf_frame frame;        /* without what the batch adds: `ack`, `data_off`, WF_FLAG_CRC */
    struct wf_outbound *outbound; /* DATA: holds it; else NULL */
};

/* A frame of a batch that goes with a checksum: it is summed, and its header written, once the lock is released. */
struct wf_unsealed {
    struct wf_frame frame;
    int at; /* index in the operation's iov of the header; the payload's pieces follow */
};

/* Owner: the token of `worker`, except where a field says "session lock". */
struct wf_tx {
    struct wf_worker *worker;
    struct wf_task task;
    struct wf_op op;
    uint8_t *headers; /* room for the headers of a batch, and for its payloads of up to WF_PACKED_BYTES each */
    uint32_t used;    /* of them */
    uint32_t pad;     /* bytes of a DATA frame before its payload */
    int iov_count, frame_count, batch_count, unsealed_count;
    int under_way; /* operations: on a device channel the batch may be two */
    bool started;  /* attached to the worker's engine */
    bool shut;     /* session lock: the end of the stream was sent */
    bool detached; /* this half has let go of the descriptor; session lock */
    bool watched;  /* session lock: users are told of chunks of the batch */
    /* When the first call was made for what is under way; 0: not yet, or nobody tells. The engine's to set; forgotten
     * under the session lock. */
    _Atomic int64_t began_ns;
    /* The batch is traced: when its operation was posted, and when it ended; 0: not traced, or not ended. */
    int64_t posted_ns, ended_ns;

    struct wf_link ended_link; /* in wf_roster.ended */
    struct wf_link round_link; /* among the halves that have something to do in this round of their worker; */
    unsigned char actions;     /* what (session/pump.c) */

    /* session lock */
    struct wf_link due_link;      /* in wf_roster.due */
    struct wf_link idle_link;     /* in wf_session_rail.idle */
    struct wf_link behind_link;   /* in wf_session_rail.behind */
    uint32_t round;               /* wf_lines.round when it was last offered work */
    bool idle;                    /* nothing posted: new work needs a kick */
    struct wf_window window;      /* what the peer has promised to take */
    struct wf_retained *retained; /* ring */
    uint32_t ring;                /* its size: also a limit of frames in flight */
    struct wf_rate rate;          /* of acknowledged payload */
    uint64_t acknowledged_bytes;  /* payload the peer has disposed of; sent is window.spent_bytes */
    uint64_t acknowledged;        /* sequenced frames the peer has disposed of; sent ones are window.spent_frames */
    uint64_t ack_sent;            /* the total of the last frame that told the peer of our disposals */
    bool moved;                   /* lost: its retained frames are strays of the session now */
    bool state_due;               /* send STATE */
    bool bye_due, bye_sent;
    bool ping_due, pong_due;
    uint64_t pong_number;

    /* The arrays stand last, here and in wf_rx: what each operation touches before them is a few cache lines, and a
     * session may have thousands of channels. */
    struct wf_outbound *batch[WF_BATCH_FRAMES]; /* messages whose memory the operation refers to */
    struct iovec iov[WF_TX_SEGMENTS];
    struct wf_unsealed unsealed[WF_BATCH_FRAMES];
    uint32_t watched_of;                /* a bit for each message in `batch` whose user is told of its chunk, */
    void *watched_own[WF_BATCH_FRAMES]; /* and what the user has given for that */
};

/* Owner: the token of `worker`, except where a field says "session lock". */
struct wf_rx {
    struct wf_worker *worker;
    struct wf_task task;
    struct wf_op op;
    struct wf_link untold_link; /* in wf_worker.untold */
    uint8_t *buffer;            /* read-ahead: [start, end) is unread */
    uint32_t room, start, end;
    /* Pieces of a list may overlap: such bytes are summed here, then go to their places. */
    uint8_t *bounce;
    bool bounced;    /* the posted operation's do */
    uint32_t direct; /* bytes of the posted operation that go to the payload's place */
    uint32_t skip;   /* padding before the payload still to come */
    uint32_t left;   /* payload bytes still to come */
    uint32_t sum;    /* CRC of the others, where the frame has one and is claimed */
    bool in_frame;   /* `frame` is a DATA frame whose payload is not complete */
    int64_t came_ns; /* of the last receive, */
    int64_t gap_ns;  /* and how long after the one before */
    int64_t head_ns; /* when the header of `frame` was parsed; 0: the frame is not traced */
    /* Receives that are posted before that are urgent: of an express channel, for a small message came not long ago. */
    int64_t urgent_until_ns;
    struct wf_frame frame;
    struct wf_inbound *claim;  /* where the payload goes; NULL: to the sink. Session lock to change */
    bool pooled;               /* the claim is on the unexpected pool, not on user memory */
    bool watched;              /* session lock: the user of the claimed message is told of this chunk */
    struct wf_slot *slot;      /* the claim is on device memory: where the payload goes first. Session lock to change */
    struct wf_link round_link; /* as in wf_tx */
    unsigned char actions;
    bool redirect;       /* session lock: let go of the claim, the rest goes to the sink */
    bool detached;       /* session lock */
    bool held;           /* session lock: another channel has a claim on the payload's place, or no slot is free */
    bool started, ended; /* session lock: first receive posted; the peer's end of stream has come */

    /* session lock */
    struct wf_link due_link;   /* in wf_roster.receivers */
    struct wf_link held_link;  /* in wf_roster.held */
    struct wf_link owing_link; /* in wf_lines.owing */
    uint64_t disposed, disposed_bytes;
    uint64_t granted_frames; /* as last told */
    void *watched_own;       /* while `watched`: what the user has given for the chunk */

    struct iovec iov[WF_RX_SEGMENTS + 1];
    /* A payload that is summed: where the posted operation's bytes belong; a posted `iov` is the engine's. */
    struct iovec places[WF_RX_SEGMENTS];
};

#endif
