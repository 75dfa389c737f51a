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
#include "core/drive/worker.h"
#include "io/engine.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/spread.h"
#include "wire/window.h"

struct wf_lines;
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
    struct wf_task task;
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
    struct wf_task task;
    struct wf_op op;
    struct wf_link untold_link; /* in wf_worker.untold */
    uint8_t *buffer;            /* read-ahead: [start, end) is unread */
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
    struct wf_lines *lines;
    const struct wf_channel_ops *ops;
    uint32_t id, incarnation;
    enum wf_channel_kind kind;
    int rail; /* index of wf_lines.rails */
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

/*
 * What a channel asks of the rooms above it. One table, given when it is made. With the session's lock held; which may
 * be dropped and taken again where that is said.
 */
struct wf_channel_ops {
    /* Where the payload [offset, offset + length) of a message on its way out is; as wf_pieces_places(). */
    int (*out_places)(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                      uint64_t *covered);
    /* The same of one on its way in, or in the unexpected pool. */
    int (*in_places)(const struct wf_inbound *inbound, bool pooled, uint64_t offset, uint64_t length, struct iovec *iov,
                     int max, uint64_t *covered);
    /* Does it land in the pieces of a list? They may overlap. */
    bool (*is_scattered)(const struct wf_inbound *inbound);
    /* A small message that has come with its header, all of it in `payload`. False: it goes the general way. */
    bool (*land_small)(struct wf_channel *channel, const struct wf_frame *frame, const uint8_t *payload);
    /* A header has arrived. 0; negative: the peer broke the protocol. */
    int (*take_frame)(struct wf_channel *channel, const struct wf_frame *frame);
    /* Finds the place of the DATA frame whose header has arrived. As take_frame(); may set rx.held. */
    int (*place_payload)(struct wf_channel *channel);
    /* The payload of the frame in progress is complete. May drop the lock. */
    void (*finish_payload)(struct wf_channel *channel);
    /* The half lets go of its claim and of its slot: the rest of the payload goes to the sink. */
    void (*drop_claim)(struct wf_channel *channel);
    /* A receive has been worked through. May drop the lock. */
    void (*worked_through)(struct wf_channel *channel);
    /* The kernel refers to the message's memory no longer. */
    void (*released)(struct wf_outbound *outbound);
    /* The channel is lost: `doing` says how it showed. */
    void (*lost)(struct wf_channel *channel, int code, const char *doing);
};

/* Allocates what the halves need. The object is zeroed by its owner before; fini accepts it after a failed init. */
int wf_channel_init(struct wf_channel *channel, struct wf_lines *lines, const struct wf_channel_ops *ops,
                    const struct wf_join *join);
void wf_channel_fini(struct wf_channel *channel);

/* A channel that is gone starts afresh as another incarnation: same memory, counters at 0. Session lock. */
void wf_channel_restart(struct wf_channel *channel, uint32_t incarnation);

/* What we promise at the start and at any later moment. Session lock. */
void wf_channel_credit(const struct wf_channel *channel, uint64_t *frames, uint64_t *bytes);

/* May a sequenced frame with this payload go now? Session lock. */
bool wf_channel_open(const struct wf_channel *channel, uint64_t bytes);

/* Adds the kernel's count of segments sent again to the rail's. Before the descriptor closes. */
void wf_channel_note_retransmits(struct wf_channel *channel);

/* --- acknowledgements (tx.c), session lock held --- */

/* The next sequenced frame that a total of `disposed` covers, which is kept no longer. False: there is none. */
bool wf_tx_next_retired(struct wf_channel *channel, uint64_t disposed, struct wf_retained *retained);
/* Payload was acknowledged since the total was `before`: the rate hears of it. */
void wf_tx_note_rate(struct wf_channel *channel, uint64_t before);

/* --- the batch (tx.c), token held --- */

/* Frames are gathered into the next operation between begin and end; all with the session's lock held. */
void wf_batch_begin(struct wf_channel *channel);
/* Is there room for one more, whatever its payload? */
static inline bool wf_batch_has_room(const struct wf_channel *channel)
{
    return channel->tx.frame_count < WF_BATCH_FRAMES && channel->tx.iov_count + WF_TX_SEGMENTS_LEFT <= WF_TX_SEGMENTS;
}
/* Adds a header, and the payload of `outbound` if there is one. */
void wf_batch_add(struct wf_channel *channel, struct wf_frame *frame, const struct wf_outbound *outbound);
/* The same of a frame that is counted, and kept until the peer has disposed of it; the window is open. */
void wf_batch_add_sequenced(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound *outbound);
/* The frame that tells of our disposals and of what we take. */
void wf_batch_state_frame(struct wf_channel *channel, struct wf_frame *frame);
/* The messages of the last batch are no longer referred to by the kernel. Session lock held. */
void wf_channel_release_batch(struct wf_channel *channel);
/* Posts what was gathered, after summing its payloads (setting crc): that would take too long under a lock. No lock. */
void wf_channel_post_send(struct wf_channel *channel);

/* --- receive half (rx.c), token held --- */

/* Attaches the half and posts the first receive. No lock. */
void wf_channel_start_rx(struct wf_channel *channel);
/* Another channel has let go of a place: goes on if this half waits for it. No lock. */
void wf_channel_resume(struct wf_channel *channel);
/* Ends the claim on a landing that no longer wants the bytes, by cancelling the operation under way. No lock. */
void wf_channel_redirect(struct wf_channel *channel);
/* The worker is about to rest: channels whose disposals no frame has carried yet are kicked. No lock. */
void wf_channels_tell(struct wf_worker *worker);

#endif
