#include "core/session/resend.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/channel/batch.h"
#include "core/channel/carry.h"
#include "core/channel/half_state.h"
#include "core/channel/work.h"
#include "core/ground/counter.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/detach.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/session/fill.h"
#include "core/session/session.h"
#include "core/session/spread_plan.h"
#include "core/session/traffic.h"

static struct wf_stray *stray_at(const struct wf_strays *strays, uint32_t index)
{
    return &strays->ring[(strays->first + index) % strays->room];
}

void wf_strays_fini(struct wf_strays *strays)
{
    free(strays->ring);
    *strays = (struct wf_strays){0};
}

static int make_room(struct wf_strays *strays, uint32_t more)
{
    uint32_t needed = strays->count + more;
    if (needed <= strays->room)
        return 0;
    struct wf_stray *ring = malloc(2 * (size_t)needed * sizeof *ring);
    if (!ring)
        return -ENOMEM;
    for (uint32_t i = 0; i < strays->count; i++)
        ring[i] = *stray_at(strays, i);
    free(strays->ring);
    *strays = (struct wf_strays){.ring = ring, .room = 2 * needed, .count = strays->count};
    return 0;
}

/* The group whose channels carry the strays of the channel: those of a device channel go on bulk channels. */
static int strays_group(const struct wf_channel *channel)
{
    return channel->strand >= 0 ? wf_group(0, WF_CHANNEL_BULK) : channel->group;
}

int wf_resend_take_over(struct wf_channel *channel)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_strays *strays = &session->loss.strays[strays_group(channel)];
    struct wf_tx *tx = &channel->tx;
    if (make_room(strays, (uint32_t)(tx->window.spent_frames - tx->acknowledged)) < 0)
        return -ENOMEM;
    for (uint64_t at = tx->acknowledged; at < tx->window.spent_frames; at++) {
        struct wf_stray *stray = stray_at(strays, strays->count++);
        session->loss.stray_count += 1;
        *stray = (struct wf_stray){.retained = tx->retained[at % tx->ring],
                                   .channel = channel->id,
                                   .incarnation = channel->incarnation,
                                   .sequence = at};
        wf_desk_wait(&session->desk, channel->traffic, stray->retained.frame.length);
    }
    wf_tx_moved(tx);
    return 0;
}

/* The peer has disposed of the frame: counts it, and its message needs it no more. */
static void retire(struct wf_session *session, const struct wf_retained *retained)
{
    session->life.retired += 1;
    wf_counter_add(&session->lines.moved, retained->frame.length);
    if (retained->outbound) {
        wf_outbound_retire(retained->outbound, retained->frame.offset, retained->frame.length);
    } else if (retained->frame.type == WF_OPEN) {
        struct weft_connection *connection = wf_connection_find(&session->desk, retained->frame.conn);
        if (connection)
            wf_connection_acknowledged(connection);
    }
}

void wf_resend_acknowledge(struct wf_session *session, uint32_t channel, uint32_t incarnation, uint64_t disposed)
{
    const struct wf_channel *lost = session->lines.channels[channel];
    if (!lost)
        return;
    struct wf_strays *strays = &session->loss.strays[strays_group(lost)];
    /* The count cannot grow meanwhile: the end of a message loses no channel. */
    for (uint32_t i = 0; i < strays->count; i++) {
        struct wf_stray *stray = stray_at(strays, i);
        bool told = stray->channel == channel && stray->incarnation == incarnation && stray->sequence < disposed;
        if (!told || stray->over)
            continue;
        struct wf_retained retained = stray->retained;
        WF_REACHED("channel DYING: DOWN(n) or STATE(n) from the peer");
        stray->over = true;
        wf_desk_wait(&session->desk, lost->traffic, -(int64_t)retained.frame.length);
        retire(session, &retained);
    }
}

bool wf_resend_idle(const struct wf_session *session, int group)
{
    return session->loss.strays[group].count == 0;
}

bool wf_resend_all_idle(const struct wf_session *session)
{
    return session->loss.stray_count == 0;
}

static void pop(struct wf_session *session, struct wf_strays *strays)
{
    strays->first = (strays->first + 1) % strays->room;
    strays->count -= 1;
    strays->staging = false;
    session->loss.stray_count -= 1;
}

/* The first stray of the class that is still to be sent. Drops strays of refused messages: their memory may be the
 * user's again. */
static struct wf_stray *head(struct wf_session *session, unsigned traffic, struct wf_strays *strays)
{
    while (strays->count > 0) {
        struct wf_stray *stray = stray_at(strays, 0);
        struct wf_outbound *outbound = stray->retained.outbound;
        bool refused = !stray->over && outbound && outbound->refused;
        if (!stray->over && !refused)
            return stray;
        pop(session, strays);
        if (refused) {
            wf_desk_wait(&session->desk, traffic, -(int64_t)stray->retained.frame.length);
            wf_outbound_abandon(outbound);
        }
    }
    return NULL;
}

bool wf_resend_is_staging(const struct wf_session *session, int group)
{
    return session->loss.strays[group].staging;
}

/* Is the payload where any channel can take it? One that was sent from device memory is staged now. */
static bool is_staged(const struct wf_retained *retained)
{
    return !retained->outbound || retained->frame.length == 0 ||
           wf_detached_is_staged(retained->outbound, retained->frame.offset, retained->frame.length);
}

void wf_resend_stage(struct wf_session *session)
{
    struct wf_strays *strays =
        &session->loss.strays[wf_group(0, WF_CHANNEL_BULK)]; /* no others are from device memory */
    bool over = session->guard.state == WF_SESSION_FAILED || session->guard.state == WF_SESSION_DEAD;
    const struct wf_stray *stray = strays->staging && !over ? head(session, 0, strays) : NULL;
    if (stray)
        strays->staging = !is_staged(&stray->retained);
}

/* May the stray go on this channel now? It cannot be cut: a channel that should take less leaves it to another. */
static bool fits(struct wf_channel *channel, const struct wf_retained *retained)
{
    uint64_t length = retained->frame.length;
    if (!wf_channel_open(channel, length))
        return false;
    if (!retained->outbound)
        return true;
    if (wf_ready_fitting(channel, retained->outbound, retained->frame.offset, length) < length)
        return false;
    return channel->kind != WF_CHANNEL_BULK || wf_spread_suits(channel, wf_session_waiting(channel), length);
}

/* The next stray of the class, as wf_resend_pull(). */
static bool pull(struct wf_channel *channel, unsigned traffic, struct wf_frame *frame, struct wf_outbound **outbound)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_strays *strays = &session->loss.strays[wf_group(traffic, channel->kind)];
    const struct wf_stray *stray = head(session, traffic, strays);
    strays->staging = stray && !is_staged(&stray->retained);
    if (!stray || strays->staging || !fits(channel, &stray->retained))
        return false;
    *frame = stray->retained.frame;
    frame->flags |= WF_FLAG_RESENT;
    *outbound = stray->retained.outbound;
    int lost_on = session->lines.channels[stray->channel]->rail;
    wf_desk_wait(&session->desk, traffic, -(int64_t)frame->length);
    pop(session, strays);
    if (*outbound)
        (*outbound)->in_engine += 1;
    wf_counter_add(&session->lines.rails[lost_on].resent_bytes, frame->length);
    return true;
}

bool wf_resend_pull(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound **outbound)
{
    WF_CLASSES_EACH (traffic, channel->lines->carried[channel->group]) {
        if (pull(channel, traffic, frame, outbound))
            return true;
    }
    return false;
}

int wf_channel_acknowledge(struct wf_channel *channel, uint64_t disposed)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_tx *tx = &channel->tx;
    struct wf_retained retained;
    if (disposed > tx->window.spent_frames)
        return -EPROTO;
    if (tx->moved) {
        wf_resend_acknowledge(session, channel->id, channel->incarnation, disposed);
        return 0;
    }
    uint64_t before = tx->acknowledged_bytes;
    while (wf_tx_next_retired(channel, disposed, &retained))
        retire(session, &retained);
    wf_tx_note_rate(channel, before);
    wf_channel_reopened(channel, wf_channel_has_offers(channel));
    wf_spread_note(channel);
    return 0;
}
