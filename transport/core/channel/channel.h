/*
 * channel.h: one TCP stream of a session on one rail; a send half and a receive half, each driven by one worker.
 *
 * Send half: frames that change state are counted, kept in `retained` until the peer has disposed of them, and sent
 * only within the window the peer granted. One engine operation carries a batch of frames. Receive half: one call takes
 * the rest of this payload and the next header(s). Every frame received may be taken, so the half never waits for a
 * peer or a user: only for the kernel, and (`rx.held`) for another channel to let go of a range of memory, for a free
 * slot, or for the pattern of its payload stream to be read back.
 *
 * A device channel has a second stream, for payload of one direction alone (payload.h): an operation of its send half
 * may go out on both, and its receive half takes from one or the other.
 */
#ifndef WF_CORE_CHANNEL_CHANNEL_H
#define WF_CORE_CHANNEL_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"
#include "core/channel/halves.h"
#include "core/drive/worker.h"
#include "io/engine.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/spread.h"
#include "wire/window.h"

struct wf_channel_ops;
struct wf_lines;
struct wf_payload;

struct wf_channel {
    struct wf_lines *lines;
    const struct wf_channel_ops *ops;
    uint32_t id, incarnation;
    enum wf_channel_kind kind;
    uint8_t traffic;            /* its traffic class */
    int group;                  /* of this kind and class: wf_group() */
    int strand;                 /* DEVICE: that its payloads belong to (wire/hello.h); else -1 */
    struct wf_payload *payload; /* DEVICE: the stream of its payloads, held while the channel is joined; else NULL */
    int rail;                   /* index of wf_lines.rails */
    int fd;
    bool up;                /* session lock: both halves attached */
    bool bye_seen;          /* session lock */
    bool kill;              /* session lock: both halves must let go */
    bool gone;              /* session lock: both have, and the descriptor is closed */
    uint64_t retransmits;   /* as last read from the kernel; session lock */
    _Atomic uint64_t heard; /* bytes from the peer, of any kind; relaxed */
    _Atomic uint64_t kept;  /* bytes that came and showed nothing yet: of a record that is not whole; relaxed */
    struct wf_rx rx;        /* the smaller half first, so that both are on few pages */
    struct wf_tx tx;
};

/* Allocates what the halves need. The object is zeroed by its owner before; fini accepts it after a failed init. */
int wf_channel_init(struct wf_channel *channel, struct wf_lines *lines, const struct wf_channel_ops *ops,
                    const struct wf_join *join);
void wf_channel_fini(struct wf_channel *channel);

/* A channel that is gone starts afresh as another incarnation: same memory, counters at 0. Session lock. */
void wf_channel_restart(struct wf_channel *channel, uint32_t incarnation);

/* The window that this side grants the peer, as totals. Session lock. */
void wf_channel_credit(const struct wf_channel *channel, uint64_t *frames, uint64_t *bytes);

/* May a sequenced frame with this payload go now? Session lock. */
bool wf_channel_open(const struct wf_channel *channel, uint64_t bytes);

/* Adds the kernel's count of segments sent again to the rail's. Before the descriptor closes. */
void wf_channel_note_retransmits(struct wf_channel *channel);

/* A sequenced frame with a payload of `bytes` needs nothing more. Session lock. */
void wf_channel_dispose(struct wf_channel *channel, uint32_t bytes);

/* --- receive half (rx.c), token held --- */

/* Attaches the half and posts the first receive. No lock. */
void wf_channel_start_rx(struct wf_channel *channel);
/* Another channel has let go of a place: goes on if this half waits for it. No lock. */
void wf_channel_resume(struct wf_channel *channel);
/* Ends the claim on a refused inbound message, by cancelling the receive under way. No lock. */
void wf_channel_redirect(struct wf_channel *channel);
/* The worker is about to rest: channels whose disposals no frame has carried yet are kicked. No lock. */
void wf_channels_tell(struct wf_worker *worker, struct wf_list *untold);

#endif
