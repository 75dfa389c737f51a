#include "core/session/totals_in.h"

#include <errno.h>

#include "core/channel/channel.h"
#include "core/channel/payload.h"
#include "core/channel/state.h"
#include "core/channel/work.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/session/entry.h"
#include "core/session/fill.h"
#include "core/session/loss.h"
#include "core/session/news.h"
#include "core/session/resend.h"
#include "core/session/session.h"

int wf_totals_take_down(struct wf_session *session, const struct wf_frame *frame)
{
    uint32_t id = (uint32_t)(frame->key >> 32), incarnation = (uint32_t)frame->key;
    if (id >= (uint32_t)session->lines.room)
        return -EPROTO;
    /* DOWN may name a channel that has not joined here yet: no side knows when the other has finished joining. */
    struct wf_channel *channel = session->lines.channels[id];
    bool missed = !session->terms.dialer && !channel && session->lines.lost_by_peer[id] == 0 && incarnation > 0;
    wf_lines_lost_by_peer(&session->lines, id, incarnation, missed);
    WF_REACHED_IF(channel && channel->incarnation <= incarnation && channel->up, "channel UP: DOWN from the peer");
    if (channel && channel->incarnation <= incarnation)
        wf_channel_lost(channel, -ECONNRESET, "the peer has lost it");
    wf_resend_acknowledge(session, id, incarnation, frame->offset);
    wf_session_check_joined(session);
    return 0;
}

static int take_state(struct wf_session *session, const struct wf_frame *frame)
{
    uint32_t id = (uint32_t)(frame->key >> 32);
    if (id >= (uint32_t)session->lines.room)
        return -EPROTO;
    struct wf_channel *channel = session->lines.channels[id];
    if (!channel || channel->incarnation != (uint32_t)frame->key) {
        wf_resend_acknowledge(session, id, (uint32_t)frame->key, frame->offset);
        return 0;
    }
    wf_window_grant(&channel->tx.window, frame->total, frame->base);
    wf_channel_reopened(channel, wf_channel_has_offers(channel));
    bool news = channel->tx.moved || frame->offset > channel->tx.acknowledged;
    return news ? wf_channel_acknowledge(channel, frame->offset) : 0;
}

static int take_credit(struct wf_session *session, const struct wf_frame *frame)
{
    if (frame->conn == 0) {
        wf_desk_credit(&session->desk, frame->offset);
        return 0;
    }
    struct weft_connection *connection = wf_connection_find(&session->desk, frame->conn);
    if (connection && frame->offset > connection->introduced_limit) {
        connection->introduced_limit = frame->offset;
        wf_connection_ready(connection);
    }
    return 0;
}

/* BYE has come on one channel: the BYEs on the other channels must follow within rail_timeout_ms. */
static void note_goodbye(struct wf_session *session)
{
    session->life.goodbye_ns = wf_world_now(session->guard.world);
    wf_guard_visit(&session->guard, 0);
}

int wf_totals_take(struct wf_channel *channel, const struct wf_frame *frame)
{
    struct wf_session *session = wf_session_of(channel);
    switch (frame->type) {
    case WF_STATE:
        return take_state(session, frame);
    case WF_CREDIT:
        return take_credit(session, frame);
    case WF_PING:
        wf_channel_answer(channel, frame->msg);
        return 0;
    case WF_PONG:
        if (frame->msg == session->life.ping_number)
            session->life.ping_ns = 0;
        return 0;
    case WF_BYE:
        wf_channel_bye_came(channel);
        wf_guard_peer_closes(&session->guard);
        wf_session_tell(session);
        note_goodbye(session);
        wf_session_check_close(session);
        return 0;
    case WF_TRIAL:
        return wf_payload_await_pattern(channel);
    default:
        return -EPROTO;
    }
}
