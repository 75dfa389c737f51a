/*
 * channel.h: one TCP stream of a session on one rail; a send half and a receive half, each driven by one worker.
 *
 * Send half: frames that change state are counted, kept in `retained` until the peer has disposed of them, and sent
 * only within the window the peer granted. One engine operation carries a batch of frames. Receive half: one call takes
 * the rest of this payload and the next header(s). Every frame received can be taken unconditionally, so the half never
 * waits for anything but the kernel.
 */
#ifndef WF_CORE_CHANNEL_CHANNEL_H
#define WF_CORE_CHANNEL_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "io/engine.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/spread.h"
#include "wire/window.h"

struct wf_session;
struct wf_worker;
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
    struct wf_frame frame;        /* as sent, but for ack */
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
    struct wf_op op;
    uint8_t *headers; /* room for the headers of a batch, and for its payloads of up to WF_PACKED_BYTES each */
    uint32_t used;    /* of them */
    uint32_t pad;     /* bytes of a DATA frame before its payload */
    struct iovec iov[WF_TX_SEGMENTS];
    int iov_count, frame_count;
    struct wf_outbound *batch[WF_BATCH_FRAMES]; /* messages whose memory the operation refers to */
    int batch_count;
    struct wf_unsealed unsealed[WF_BATCH_FRAMES];
    int unsealed_count;
    bool started;  /* attached to the worker's engine */
    bool shut;     /* session lock: the end of the stream was sent */
    bool detached; /* this half has let go of the descriptor; session lock */
    /* When the first call was made for what is under way; 0: not yet, or nobody tells. The engine's to set; forgotten
     * under the session lock. */
    _Atomic int64_t began_ns;

    /* session lock */
    bool idle;                    /* nothing posted: new work needs a kick */
    struct wf_window window;      /* what the peer has promised to take */
    struct wf_retained *retained; /* ring */
    uint32_t ring;                /* its size: also a limit of frames in flight */
    struct wf_rate rate;          /* of acknowledged payload */
    uint64_t acknowledged_bytes;  /* payload the peer has disposed of; sent is window.spent_bytes */
    uint64_t acknowledged;        /* sequenced frames the peer has disposed of; sent ones are window.spent_frames */
    uint64_t ack_sent;            /* the total of the last frame that told the peer of our disposals */
    uint64_t progress;            /* `acknowledged` when it was last seen to move, */
    int64_t progress_ns;          /* and when */
    bool waited;                  /* something was unacknowledged at the last look */
    bool moved;                   /* lost: what was retained has gone to resend.h */
    bool state_due;               /* send STATE */
    bool bye_due, bye_sent;
    bool ping_due, pong_due;
    uint64_t pong_number;
};

/* Owner: the token of `worker`, except where a field says "session lock". */
struct wf_rx {
    struct wf_worker *worker;
    struct wf_op op;
    struct wf_link unacknowledged_link; /* in worker->unacknowledged */
    uint8_t *buffer;                    /* read-ahead: [start, end) is unread */
    uint32_t room, start, end;
    struct iovec iov[WF_RX_SEGMENTS + 1];
    /* A payload that is summed: where the posted operation's bytes belong; a posted `iov` is the engine's. */
    struct iovec places[WF_RX_SEGMENTS];
    /* Pieces of a list may overlap: such bytes are summed here, then go to their places. */
    uint8_t *bounce;
    bool bounced;    /* the posted operation's do */
    uint32_t direct; /* bytes of the posted operation that go to the payload's place */
    uint32_t skip;   /* padding before the payload still to come */
    uint32_t left;   /* payload bytes still to come */
    uint32_t sum;    /* CRC of the others, where the frame has one and is claimed */
    bool in_frame;   /* `frame` is a DATA frame whose payload is not complete */
    int64_t came_ns; /* of the last receive */
    /* Receives that are posted before that are urgent: of an express channel, for a small message came not long ago. */
    int64_t urgent_until_ns;
    struct wf_frame frame;
    struct wf_inbound *claim; /* where the payload goes; NULL: to the sink. Session lock to change */
    bool pooled;              /* the claim is on the unexpected pool, not on user memory */
    struct wf_slot *slot;     /* the claim is on device memory: where the payload goes first. Session lock to change */
    bool redirect;            /* session lock: let go of the claim, the rest goes to the sink */
    bool detached;            /* session lock */
    bool held;                /* session lock: another channel has a claim on the payload's place, or no slot is free */
    bool started, ended;      /* session lock: first receive posted; the peer's end of stream has come */

    /* session lock */
    uint64_t disposed, disposed_bytes;
    uint64_t granted_frames; /* as last told */
};

/* Is it alive? As last looked at. Owner: session lock. */
struct wf_pulse {
    uint64_t heard, acknowledged; /* bytes of the peer, and of ours that have reached its kernel */
    uint32_t still;               /* looks since one of these moved although bytes of ours, or a PING, wait */
    uint32_t silent;              /* the same, with bytes on their way to its kernel all the while */
    bool asked;                   /* a PING is out, and nothing has come since: on an express channel's rail, or here */
    uint32_t quiet;               /* looks since anything has come on this channel */
};

/* What the peer is to be told of the incarnation that was lost last. Owner: session lock. */
struct wf_down {
    bool due;
    uint32_t incarnation;
    uint64_t disposed;
    int reason;
    int64_t lost_ns; /* when */
};

/* Dialling a lost channel again. Owner: session lock. */
struct wf_redial {
    int64_t joined_ns;    /* when the channel was joined last */
    int64_t at_ns;        /* not before */
    int64_t pause_ns;     /* between attempts; grows while they fail */
    uint32_t incarnation; /* of the last attempt */
    bool talking;         /* one is under way */
    bool refused;         /* the last one found nobody listening */
};

struct wf_channel {
    struct wf_session *session;
    uint32_t id, incarnation;
    enum wf_channel_kind kind;
    int rail; /* index of session.rails */
    int fd;
    bool up;                /* session lock: both halves attached */
    bool bye_seen;          /* session lock */
    bool kill;              /* session lock: both halves must let go */
    bool gone;              /* session lock: both have, and the descriptor is closed */
    uint64_t retransmits;   /* as last read from the kernel; session lock */
    _Atomic uint64_t heard; /* bytes from the peer, of any kind; relaxed */
    _Atomic uint64_t kept;  /* bytes that came and showed nothing yet: of a record that is not whole; relaxed */
    struct wf_pulse pulse;
    struct wf_down down;
    struct wf_redial redial;
    struct wf_tx tx;
    struct wf_rx rx;
};

/* Allocates what the halves need. The object is zeroed by its owner before; fini accepts it after a failed init. */
int wf_channel_init(struct wf_channel *channel, struct wf_session *session, const struct wf_join *join);
void wf_channel_fini(struct wf_channel *channel);

/* A channel that is gone starts afresh as another incarnation: same memory, counters at 0. Session lock. */
void wf_channel_restart(struct wf_channel *channel, uint32_t incarnation);

/* What we promise at the start and at any later moment. Session lock. */
void wf_channel_credit(const struct wf_channel *channel, uint64_t *frames, uint64_t *bytes);

/* The peer has disposed of the frame: it needs not be kept any more. Session lock. */
void wf_channel_retire(struct wf_session *session, const struct wf_retained *retained);

/* Takes the peer's total of disposed frames: retires what it covers. -EPROTO if it never was sent. Session lock. */
int wf_channel_acknowledge(struct wf_channel *channel, uint64_t disposed);

/* A retained copy and a counted place for a sequenced frame. Session lock; the window is open. */
void wf_channel_retain(struct wf_channel *channel, const struct wf_frame *frame, struct wf_outbound *outbound);

/* May a sequenced frame with this payload go now? Session lock. */
bool wf_channel_open(const struct wf_channel *channel, uint64_t bytes);

/* Lets go of the descriptor as far as `worker` is concerned: cancels its operations, and once none is under way
 * detaches its halves. Comes back until nothing is left. Token of `worker` held; no lock. */
void wf_channel_let_go(struct wf_channel *channel, struct wf_worker *worker);

/* --- send half (tx.c), token held --- */

/* Has the session anything for idle channels of a kind; has this send half, for itself or the session? Whether or not
 * it may go now. Session lock held. */
bool wf_session_wants(const struct wf_session *session, enum wf_channel_kind kind);
bool wf_channel_wants(const struct wf_channel *channel);
/* It has not: new work needs a kick. Returns false. Session lock held. */
bool wf_channel_rest(struct wf_channel *channel);
/* Gathers the next batch into the operation; true when there is something to post. Session lock held. */
bool wf_channel_fill(struct wf_channel *channel);
/* The whole operation is this message, which is a copy, small and in no queue; the send half is idle. False: others
 * come first, or it has to wait; nothing has changed. Session lock held. */
bool wf_channel_take_copied(struct wf_channel *channel, struct wf_outbound *outbound);
/* A bulk channel of this express one's rail that has acknowledgements to send while its operation waits for room: they
 * go on the express one, or the peer would take the queue for a slow rail. NULL: none. Session lock held. */
const struct wf_channel *wf_channel_behind(const struct wf_channel *express);
/* The messages of the last batch are no longer referred to by the kernel. Session lock held. */
void wf_channel_release_batch(struct wf_channel *channel);
/* Posts what fill gathered, after summing its payloads (setting crc): that would take too long under a lock. */
void wf_channel_post_send(struct wf_channel *channel);
/* The operation has ended. No lock. */
void wf_channel_sent(struct wf_channel *channel);

/* --- receive half (rx.c), token held --- */

/* Attaches the half and posts the first receive. No lock. */
void wf_channel_start_rx(struct wf_channel *channel);
/* The operation has ended. No lock. */
void wf_channel_received(struct wf_channel *channel);
/* Another channel has let go of a place: goes on if this half waits for it. No lock. */
void wf_channel_resume(struct wf_channel *channel);
/* Ends the claim on a landing that no longer wants the bytes, by cancelling the operation under way. No lock. */
void wf_channel_redirect(struct wf_channel *channel);

/* Gives up the claim. Session lock held. */
void wf_channel_drop_claim(struct wf_channel *channel);

/* Adds the kernel's count of segments sent again to the rail's. Before the descriptor closes. */
void wf_channel_note_retransmits(struct wf_channel *channel);

/* The acknowledgement that every frame carries. As wf_channel_take_frame(); saying it twice is harmless. */
int wf_channel_take_acknowledgement(struct wf_channel *channel, const struct wf_frame *frame);

/* A header has arrived on the half. 0; negative: the peer broke the protocol. Session lock held (arrive.c). */
int wf_channel_take_frame(struct wf_channel *channel, const struct wf_frame *frame);

/* Finds the place of the DATA frame whose header has arrived. As wf_channel_take_frame(); may set rx.held. */
int wf_channel_place_payload(struct wf_channel *channel);

/* The payload of the frame in progress is complete. Session lock held; may be dropped and taken again. */
void wf_channel_finish_payload(struct wf_channel *channel);

#endif
