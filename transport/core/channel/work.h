/*
 * work.h: what other rooms change of a channel at work: whether it is offered something, what its receive half waits
 * for, and which frames become due. Every such change has a name here. All with the session's lock held.
 */
#ifndef WF_CORE_CHANNEL_WORK_H
#define WF_CORE_CHANNEL_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/channel/lines.h"

/* --- the send half --- */

/* Nothing is posted: new work needs a kick. */
static inline void wf_channel_set_idle(struct wf_channel *channel, bool idle)
{
    channel->tx.idle = idle;
    wf_channel_review(channel);
}

/* The peer has told its window, or what it has disposed of: the channel may have room again. If there is `work` for it,
 * it is asked first. */
static inline void wf_channel_reopened(struct wf_channel *channel, bool work)
{
    wf_channel_review(channel);
    if (work && wf_link_in_list(&channel->tx.idle_link))
        wf_channel_tx_due(channel);
}

/* The group has taken a frame of the class: the other classes that it carries go first next. */
static inline void wf_lines_took(struct wf_lines *lines, int group, unsigned traffic)
{
    lines->first[group] = (uint8_t)((traffic + 1) % WF_CLASSES);
}

/* A round of offers begins: every send half may be asked once. */
static inline void wf_lines_begin_round(struct wf_lines *lines)
{
    lines->round += 1;
}

/* Is it the first time in this round that the channel is asked? It counts as asked from now on. */
static inline bool wf_channel_ask_once(struct wf_channel *channel)
{
    bool first = channel->tx.round != channel->lines->round;
    channel->tx.round = channel->lines->round;
    return first;
}

/* --- the receive half --- */

/* Nothing more is received until another channel, or a copy, has let go. */
static inline void wf_channel_hold(struct wf_channel *channel, bool held)
{
    wf_link_remove(&channel->rx.held_link);
    channel->rx.held = held;
    if (held)
        wf_list_push_back(&wf_lines_roster(channel->lines, channel->rx.worker)->held, &channel->rx.held_link);
}

/* The message is not wanted any more: the half is to let go of its claim. */
static inline void wf_channel_redirects(struct wf_channel *channel, bool redirect)
{
    channel->rx.redirect = redirect;
    if (redirect)
        wf_channel_rx_due(channel);
}

/* --- frames that become due --- */

static inline void wf_channel_tell_state(struct wf_channel *channel)
{
    channel->tx.state_due = true;
    wf_channel_review(channel);
    wf_channel_tx_due(channel);
}

/* A sign of life is asked for, or given for the peer's PING. */
static inline void wf_channel_ask(struct wf_channel *channel, bool due)
{
    channel->tx.ping_due = due;
    wf_channel_tx_due(channel);
}

static inline void wf_channel_answer(struct wf_channel *channel, uint64_t number)
{
    channel->tx.pong_due = true;
    channel->tx.pong_number = number;
    wf_channel_tx_due(channel);
}

static inline void wf_channel_say_bye(struct wf_channel *channel)
{
    channel->tx.bye_due = channel->up;
    wf_channel_tx_due(channel);
}

#endif
