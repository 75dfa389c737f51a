/*
 * state.h: what other rooms change of the channels that a session has: joining, leaving, rails. Every such change has a
 * name here; those of a channel at work: work.h. All with the session's lock held.
 */
#ifndef WF_CORE_CHANNEL_STATE_H
#define WF_CORE_CHANNEL_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/channel/lines.h"

/* --- joining and leaving --- */

/* Sets the workers that drive the halves. */
static inline void wf_channel_assign(struct wf_channel *channel, struct wf_worker *tx, struct wf_worker *rx)
{
    channel->tx.worker = tx;
    channel->rx.worker = rx;
    if (channel->strand < 0)
        wf_lines_roster(channel->lines, tx)->pairs[channel->kind] |= UINT64_C(1) << channel->rail;
}

/* Puts the channel into `lines`. `missed`: wf_lines.missed has counted it. */
static inline void wf_lines_enter(struct wf_lines *lines, struct wf_channel *channel, bool missed)
{
    lines->channels[channel->id] = channel;
    bool counts = channel->traffic == 0 && channel->strand < 0;
    lines->joined += counts;
    lines->missed -= missed && counts;
    lines->bulk_count[channel->traffic] += channel->kind == WF_CHANNEL_BULK;
    if (channel->kind == WF_CHANNEL_EXPRESS)
        lines->rails[channel->rail].express[channel->traffic] = channel;
}

/* Its payloads go on `payload`, whose hold it takes over; NULL: none any more. */
static inline void wf_channel_set_payload(struct wf_channel *channel, struct wf_payload *payload)
{
    channel->payload = payload;
}

/* It is at work on `fd` from now on. */
static inline void wf_channel_rise(struct wf_channel *channel, int fd)
{
    channel->fd = fd;
    channel->tx.detached = channel->rx.detached = false;
    channel->up = true;
    wf_lines_count_up(channel->lines, channel, 1);
    wf_channel_tx_due(channel);
    wf_channel_rx_due(channel);
}

/* The channel takes nothing new any more. May be called twice. */
static inline void wf_channel_sink(struct wf_channel *channel)
{
    if (channel->up)
        wf_lines_count_up(channel->lines, channel, -1);
    channel->up = false;
    wf_channel_review(channel);
}

/* Both halves must let go. */
static inline void wf_channel_doom(struct wf_channel *channel)
{
    channel->kill = true;
    wf_channel_tx_due(channel);
    wf_channel_rx_due(channel);
}

/* It was never joined, or is only planned: there is nothing to let go of, nor to be sent again. */
static inline void wf_channel_never_joined(struct wf_channel *channel)
{
    channel->kill = channel->gone = channel->tx.moved = true;
}

/* A half, or both, have let go of the descriptor. Returns whether that was the last of the two. */
static inline bool wf_channel_detach(struct wf_channel *channel, bool tx, bool rx)
{
    wf_channel_strike(channel, tx, rx);
    if (tx) /* each half's worker reads its own without the lock */
        channel->tx.detached = true;
    if (rx)
        channel->rx.detached = true;
    return channel->tx.detached && channel->rx.detached;
}

/* The descriptor is closed: from here on the channel may be joined again. */
static inline void wf_channel_gone(struct wf_channel *channel)
{
    channel->gone = true;
}

/* The end of the stream was sent, or the peer's end has come: after both the halves let go. */
static inline void wf_channel_shut(struct wf_channel *channel)
{
    channel->tx.shut = true;
    wf_channel_tx_due(channel);
    wf_channel_rx_due(channel);
}

static inline void wf_channel_ended(struct wf_channel *channel)
{
    channel->rx.ended = true;
    wf_channel_tx_due(channel);
    wf_channel_rx_due(channel);
}

/* The peer has said BYE on the channel. */
static inline void wf_channel_bye_came(struct wf_channel *channel)
{
    channel->bye_seen = true;
}

/* The peer has lost the incarnation. `missed`: of a channel that was never joined here, for the first time. */
static inline void wf_lines_lost_by_peer(struct wf_lines *lines, uint32_t id, uint32_t incarnation, bool missed)
{
    lines->missed += missed && id < (uint32_t)lines->per_class;
    if (lines->lost_by_peer[id] < incarnation)
        lines->lost_by_peer[id] = incarnation;
}

/* Something of the peer has come, or counts as if it had. */
static inline void wf_lines_heard(struct wf_lines *lines, int64_t now_ns)
{
    atomic_store(&lines->heard_ns, now_ns);
}

/* --- rails --- */

/* What the channels of a class may send together, in bytes a second; 0: any. */
static inline void wf_lines_limit(struct wf_lines *lines, unsigned traffic, uint64_t rate)
{
    lines->rate[traffic] = rate;
}

/* Rails that channels name, up to `index`, have a place. */
static inline struct wf_session_rail *wf_lines_rail(struct wf_lines *lines, int index)
{
    if (lines->rail_count <= index)
        lines->rail_count = index + 1;
    return &lines->rails[index];
}

#endif
