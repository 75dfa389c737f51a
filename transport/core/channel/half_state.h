/*
 * half_state.h: what other rooms change of a channel's halves: every such change has a name here. Session lock held,
 * where nothing else is said.
 */
#ifndef WF_CORE_CHANNEL_HALF_STATE_H
#define WF_CORE_CHANNEL_HALF_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/channel/halves.h"

/* --- the send half --- */

/* Is there a frame that is the channel's own to send? */
static inline bool wf_tx_has_own(const struct wf_tx *tx)
{
    return tx->state_due || tx->pong_due || tx->ping_due || tx->bye_due;
}

/* Takes the PING or PONG that is due. False: none is due. */
static inline bool wf_tx_next_probe(struct wf_tx *tx, uint64_t ping_number, struct wf_frame *frame)
{
    if (!tx->ping_due && !tx->pong_due)
        return false;
    *frame = tx->ping_due ? (struct wf_frame){.type = WF_PING, .msg = ping_number}
                          : (struct wf_frame){.type = WF_PONG, .msg = tx->pong_number};
    *(tx->ping_due ? &tx->ping_due : &tx->pong_due) = false;
    return true;
}

/* BYE is in the batch. */
static inline void wf_tx_said_bye(struct wf_tx *tx)
{
    tx->bye_due = false;
    tx->bye_sent = true;
}

/* The descriptor is known to the worker's engine. Token held, no lock needed. */
static inline void wf_tx_started(struct wf_tx *tx, bool started)
{
    tx->started = started;
}

/* The channel is lost, and its retained frames are strays of the session now. */
static inline void wf_tx_moved(struct wf_tx *tx)
{
    tx->acknowledged = tx->window.spent_frames;
    tx->acknowledged_bytes = tx->window.spent_bytes;
    tx->moved = true;
}

/* What the half's worker has decided to do with it, once it has released the lock; and that it does so now. Token
 * held, no lock needed. */
static inline void wf_tx_decide(struct wf_tx *tx, unsigned actions)
{
    tx->actions |= (unsigned char)actions;
}

static inline unsigned wf_tx_take_actions(struct wf_tx *tx)
{
    unsigned actions = tx->actions;
    tx->actions = 0;
    return actions;
}

static inline void wf_rx_decide(struct wf_rx *rx, unsigned actions)
{
    rx->actions |= (unsigned char)actions;
}

static inline unsigned wf_rx_take_actions(struct wf_rx *rx)
{
    unsigned actions = rx->actions;
    rx->actions = 0;
    return actions;
}

/* The user of the last message in the batch is told of its chunk, and has given `own` for that. */
static inline void wf_tx_watch(struct wf_tx *tx, void *own)
{
    tx->watched = true;
    tx->watched_of |= UINT32_C(1) << (tx->batch_count - 1);
    tx->watched_own[tx->batch_count - 1] = own;
}

static inline uint32_t wf_tx_take_watched(struct wf_tx *tx)
{
    uint32_t watched = tx->watched_of;
    tx->watched = false;
    tx->watched_of = 0;
    return watched;
}

/* Is an operation of its batch under way? Token held. */
static inline bool wf_tx_is_busy(const struct wf_tx *tx)
{
    return tx->under_way > 0;
}

/* --- the receive half: where the payload goes --- */

static inline void wf_rx_claim(struct wf_rx *rx, struct wf_inbound *inbound)
{
    rx->claim = inbound;
}

/* Ends the claim and returns it; NULL: there was none. */
static inline struct wf_inbound *wf_rx_unclaim(struct wf_rx *rx)
{
    struct wf_inbound *claim = rx->claim;
    rx->claim = NULL;
    return claim;
}

/* The claim is on the unexpected pool, not on the place of a matched message. */
static inline void wf_rx_pool(struct wf_rx *rx, bool pooled)
{
    rx->pooled = pooled;
}

/* The user of the claimed message is told of this chunk, and has given `own` for that; or is not. */
static inline void wf_rx_watch(struct wf_rx *rx, bool watched, void *own)
{
    rx->watched = watched;
    rx->watched_own = own;
}

/* The slot that the payload goes to first, or NULL; returns the one before. */
static inline struct wf_slot *wf_rx_set_slot(struct wf_rx *rx, struct wf_slot *slot)
{
    struct wf_slot *before = rx->slot;
    rx->slot = slot;
    return before;
}

#endif
