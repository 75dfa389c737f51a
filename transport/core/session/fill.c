/* Gathers the frames that a session has to send into the next batch of a send half. */
#include "core/session/fill.h"

#include "core/channel/batch.h"
#include "core/channel/carry.h"
#include "core/channel/half_state.h"
#include "core/channel/payload.h"
#include "core/channel/work.h"
#include "core/ground/counter.h"
#include "core/ground/reached.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/detach.h"
#include "core/message/inbound.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/message/stage.h"
#include "core/session/next.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/session/spread_plan.h"
#include "core/session/traffic.h"
#include "core/session/watched.h"

#define TOTALS_BEFORE 4 /* a message that goes at once leaves them room for so many, and goes behind them */

/* --- frames that are not counted: absolute totals and probes --- */

/* A bulk channel whose acknowledgements go on the express channel, as its own operation is under way. NULL: none. */
static struct wf_channel *find_behind(const struct wf_channel *express)
{
    const struct wf_link *link = wf_list_first(&express->lines->rails[express->rail].behind[express->traffic]);
    return link ? WF_CONTAINER(link, struct wf_channel, tx.behind_link) : NULL;
}

/* Do the channels of the group carry the frames that belong to no message? They are of class 0. */
static bool has_control(const struct wf_session *session, int group)
{
    return group == wf_lines_carrier(&session->lines, 0, WF_CHANNEL_EXPRESS);
}

/* The next uncounted frame, if any is due. */
static bool next_total(struct wf_channel *channel, struct wf_frame *frame)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_tx *tx = &channel->tx;
    struct wf_channel *behind;
    if (tx->state_due) {
        wf_batch_state_frame(channel, frame);
    } else if (channel->kind == WF_CHANNEL_EXPRESS && (behind = find_behind(channel))) {
        wf_batch_state_frame(behind, frame);
    } else if (session->desk.credit_due && has_control(session, channel->group)) {
        wf_desk_credit_frame(&session->desk, frame);
    } else {
        return wf_tx_next_probe(tx, session->life.ping_number, frame);
    }
    return true;
}

/* --- control frames, in the order of the session's lists; all but CREDIT are sequenced --- */

static bool connection_frame(struct weft_connection *connection, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.conn = connection->number};
    if (connection->open_due) {
        connection->open_due = false;
        frame->type = WF_OPEN;
        frame->key = (uint64_t)connection->local_endpoint << 32 | connection->remote_endpoint;
        frame->offset = connection->limit_sent;
        frame->base = connection->traffic;
    } else if (connection->opened_due) {
        connection->opened_due = false;
        frame->type = WF_OPENED;
        frame->offset = connection->limit_sent;
    } else if (connection->close_due) {
        connection->close_due = false;
        connection->close_sent = true;
        frame->type = WF_CLOSE;
        frame->msg = connection->next_number;
    } else if (connection->closed_due) {
        connection->closed_due = false;
        connection->closed_sent = true;
        frame->type = WF_CLOSED;
    } else if (connection->credit_due) {
        connection->credit_due = false;
        frame->type = WF_CREDIT;
        frame->offset = connection->limit_sent = wf_connection_limit(connection);
    } else {
        return false;
    }
    return true;
}

/* What GRANT says of device channels: the domain + 1 on whose channels all of the message may come; 0: on none. */
static uint64_t domain_of(struct wf_inbound *inbound)
{
    struct wf_session *session = wf_session_at(inbound->connection->desk);
    bool may = inbound->device && inbound->kind == WF_INBOUND_MESSAGE && inbound->state == WF_INBOUND_MATCHED &&
               inbound->connection->traffic == 0 && !inbound->parked;
    if (!may || !wf_session_reach(session, inbound->device->index))
        return 0;
    inbound->detached = true;
    return (uint64_t)inbound->device->index + 1;
}

static bool inbound_frame(struct wf_inbound *inbound, struct wf_frame *frame)
{
    uint8_t flags = inbound->kind == WF_INBOUND_READING ? 0 : WF_FLAG_PEER;
    *frame = (struct wf_frame){.conn = inbound->connection->number, .msg = inbound->number, .flags = flags};
    if (inbound->refuse_due) {
        inbound->refuse_due = false;
        inbound->refuse_sent = true;
        frame->type = WF_REFUSE;
        frame->key = (uint64_t)(int64_t)inbound->refuse_status;
        if (inbound->kind == WF_INBOUND_READING && inbound->partner->listed) /* REFUSE may overtake the READ */
            frame->base = inbound->partner->key;
    } else if (inbound->grant_due) {
        inbound->grant_due = false;
        frame->type = WF_GRANT;
        frame->offset = inbound->granted = wf_stage_in_limit(inbound);
        frame->key = domain_of(inbound);
        if (inbound->state == WF_INBOUND_CONFIRMING && inbound->kind == WF_INBOUND_MESSAGE)
            frame->base = WF_BASE_LANDED;
    } else {
        return false;
    }
    return true;
}

/* The DOWN frame of a lost channel, if one is due. */
static bool down_frame(struct wf_session *session, struct wf_frame *frame)
{
    if (session->loss.downs_due == 0)
        return false;
    WF_LINES_EACH (channel, &session->lines) {
        struct wf_down *down = &wf_route_of(channel)->down;
        if (!down->due)
            continue;
        down->due = false;
        session->loss.downs_due -= 1;
        *frame = (struct wf_frame){.type = WF_DOWN,
                                   .key = wf_channel_key(channel->id, down->incarnation),
                                   .offset = down->disposed,
                                   .base = (uint64_t)(int64_t)down->reason};
        return true;
    }
    return false;
}

/* The next frame that belongs to no message. Its connection may be gone afterwards. */
static bool next_of_session(struct wf_session *session, struct wf_frame *frame)
{
    struct wf_link *link;
    if (down_frame(session, frame))
        return true;
    while ((link = wf_list_first(&session->desk.todo_connections))) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, todo_link);
        if (connection_frame(connection, frame)) {
            wf_connection_check(connection);
            return true;
        }
        wf_link_remove(link);
    }
    return false;
}

/* The next GRANT or REFUSE of the class. The message that it is about may be gone afterwards. */
static bool next_of_messages(struct wf_session *session, unsigned traffic, struct wf_frame *frame)
{
    struct wf_inbound *inbound;
    while ((inbound = wf_desk_next_inbound(&session->desk, traffic))) {
        if (inbound_frame(inbound, frame)) {
            wf_inbound_check(inbound);
            return true;
        }
    }
    struct wf_outbound *outbound = wf_desk_next_outbound(&session->desk, traffic);
    if (outbound) {
        wf_outbound_refuse_frame(outbound, frame);
        return true;
    }
    return false;
}

/* The next control frame for a channel of the group. */
static bool next_control(struct wf_session *session, int group, struct wf_frame *frame)
{
    if (has_control(session, group) && next_of_session(session, frame))
        return true;
    WF_CLASSES_EACH (traffic, session->lines.carried[group]) {
        if (next_of_messages(session, traffic, frame))
            return true;
    }
    return false;
}

/* --- filling --- */

/* A frame that is not a chunk has no message. */
static void add_chunk(struct wf_channel *channel, struct wf_frame *frame, struct wf_outbound *outbound)
{
    wf_batch_add_sequenced(channel, frame, outbound);
    if (outbound && outbound->watched && frame->length > 0)
        wf_watched_send(channel, frame, outbound);
}

static void fill_totals(struct wf_channel *channel, int most)
{
    struct wf_frame frame;
    for (int i = 0; i < most && wf_batch_has_room(channel) && next_total(channel, &frame); i++)
        wf_batch_add(channel, &frame, NULL);
}

/* Adds strays, which go before any new frame. False: strays are left that cannot go now, so nothing new may go. */
static bool fill_resent(struct wf_channel *channel, uint64_t *bytes)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_frame frame;
    struct wf_outbound *outbound;
    if (wf_resend_all_idle(session))
        return true;
    while (wf_batch_has_room(channel) && *bytes < session->guard.world->tuning.call &&
           wf_resend_pull(channel, &frame, &outbound)) {
        *bytes += frame.length;
        add_chunk(channel, &frame, outbound);
    }
    WF_CLASSES_EACH (traffic, session->lines.carried[channel->group]) {
        int group = wf_group(traffic, channel->kind);
        if (!wf_resend_idle(session, group) && !wf_resend_is_staging(session, group))
            return false;
    }
    return true;
}

static void fill_express(struct wf_channel *channel)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_frame frame;
    uint64_t bytes = 0;
    if (!fill_resent(channel, &bytes))
        return;
    while (wf_batch_has_room(channel) && wf_channel_open(channel, 0) && next_control(session, channel->group, &frame)) {
        if (wf_frame_sequenced(frame.type))
            wf_batch_add_sequenced(channel, &frame, NULL);
        else
            wf_batch_add(channel, &frame, NULL);
    }
    while (wf_batch_has_room(channel) && bytes < session->guard.world->tuning.call) {
        bool bare;
        struct wf_outbound *outbound = wf_next_express(channel, &frame, &bare);
        if (!outbound && !bare)
            break;
        bytes += frame.length;
        add_chunk(channel, &frame, outbound);
    }
}

/* Has a class that the group carries anything for a bulk channel? */
static bool has_bulk(const struct wf_session *session, int group)
{
    WF_CLASSES_EACH (traffic, session->lines.carried[group]) {
        if (!wf_list_empty(&session->desk.bulk_ready[traffic]))
            return true;
    }
    return false;
}

static void fill_bulk(struct wf_channel *channel)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_frame frame;
    uint64_t bytes = 0;
    if (!fill_resent(channel, &bytes))
        return;
    while (wf_batch_has_room(channel) && bytes < session->guard.world->tuning.call) {
        struct wf_outbound *outbound = wf_next_bulk(channel, &frame);
        if (!outbound) {
            if (has_bulk(session, channel->group) && !wf_channel_open(channel, 1))
                wf_counter_add(&session->lines.rails[channel->rail].stalls, 1);
            break;
        }
        bytes += frame.length;
        add_chunk(channel, &frame, outbound);
    }
}

/* Does this side send payload on the channel? Else it sends acknowledgements only. */
static bool sends_payload(const struct wf_channel *channel)
{
    return channel->strand >= 0 && channel->payload && !channel->payload->incoming;
}

static bool owes_pattern(const struct wf_channel *channel)
{
    return sends_payload(channel) && wf_payload_is_on_trial(channel->payload);
}

/* The peer has set its rule before it joins the channel. It may join after PROOF, so only its frames tell that. */
static bool is_led(const struct wf_channel *channel)
{
    return atomic_load_explicit(&channel->heard, memory_order_relaxed) > 0;
}

static void fill_device(struct wf_channel *channel)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_frame frame;
    uint64_t bytes = 0;
    if (!sends_payload(channel) || owes_pattern(channel) ||
        channel->payload->iov_count > 0) /* the pattern goes alone */
        return;
    wf_channel_set_idle(channel, false); /* what it leaves is offered to others */
    while (wf_batch_has_room(channel) && bytes < session->guard.world->tuning.call) {
        struct wf_outbound *outbound = wf_detached_next(&session->desk, channel, &frame);
        if (!outbound)
            break;
        bytes += frame.length;
        add_chunk(channel, &frame, outbound);
    }
    if (bytes > 0)
        wf_detached_pass_on(&session->desk, channel);
}

/* Is a stray to be sent on a channel of the group, or does the session close? Then any pair of rails will do. */
static inline bool any_pair_will_do(const struct wf_session *session, int group)
{
    if (session->life.closing || session->guard.peer_closing)
        return true;
    if (session->loss.stray_count == 0)
        return false;
    WF_CLASSES_EACH (traffic, session->lines.carried[group]) {
        if (!wf_resend_idle(session, wf_group(traffic, wf_group_kind(group))))
            return true;
    }
    return false;
}

static inline bool wants(const struct wf_session *session, int group)
{
    const struct wf_desk *desk = &session->desk;
    if (any_pair_will_do(session, group))
        return true;
    if (wf_group_kind(group) == WF_CHANNEL_BULK)
        return has_bulk(session, group);
    WF_CLASSES_EACH (traffic, session->lines.carried[group]) {
        if (!wf_list_empty(&desk->express_ready[traffic]) || !wf_list_empty(&desk->todo_inbounds[traffic]) ||
            !wf_list_empty(&desk->todo_outbounds[traffic]))
            return true;
    }
    bool control = !wf_list_empty(&desk->todo_connections) || desk->credit_due || session->loss.downs_due > 0;
    return control && has_control(session, group);
}

bool wf_session_wants(const struct wf_session *session, int group)
{
    return wants(session, group);
}

bool wf_session_has_work(const struct wf_session *session)
{
    const struct wf_lines *lines = &session->lines;
    WF_CLASSES_EACH (traffic, lines->classes) {
        int express = wf_group(traffic, WF_CHANNEL_EXPRESS), bulk = wf_group(traffic, WF_CHANNEL_BULK);
        if ((lines->offers[bulk] != 0 && wants(session, bulk)) ||
            (lines->offers[express] != 0 && wants(session, express)))
            return true;
    }
    return wf_bells_any(&session->shares.bells);
}

uint64_t wf_session_pairs(const struct wf_session *session, int group)
{
    if (!wf_session_wants(session, group))
        return 0;
    if (wf_group_kind(group) != WF_CHANNEL_BULK || any_pair_will_do(session, group))
        return UINT64_MAX;
    unsigned own = wf_group_class(group);
    uint64_t pairs = 0, all = session->loss.spreads[own]->pairs_up;
    WF_CLASSES_EACH (traffic, session->lines.carried[group]) {
        WF_LIST_EACH (link, following, &session->desk.bulk_ready[traffic]) {
            pairs |= wf_spread_pairs(session, own, WF_CONTAINER(link, struct wf_ring, ready_link));
            if (pairs == all)
                break;
        }
    }
    return pairs;
}

static bool has_work(const struct wf_channel *channel)
{
    if (owes_pattern(channel))
        return is_led(channel);
    if (channel->strand >= 0)
        return sends_payload(channel) && wf_detached_any(&wf_session_of(channel)->desk, channel);
    return wf_session_pairs(wf_session_of(channel), channel->group) >> channel->rail & 1;
}

bool wf_channel_has_offers(const struct wf_channel *channel)
{
    return channel->strand >= 0 ? has_work(channel) : wf_session_wants(wf_session_of(channel), channel->group);
}

bool wf_channel_wants(const struct wf_channel *channel)
{
    const struct wf_tx *tx = &channel->tx;
    return wf_tx_has_own(tx) || has_work(channel) || (channel->kind == WF_CHANNEL_EXPRESS && find_behind(channel));
}

bool wf_channel_take_fresh(struct wf_channel *channel, struct wf_outbound *outbound)
{
    const struct wf_session *session = wf_session_of(channel);
    struct wf_tx *tx = &channel->tx;
    struct wf_frame frame;
    if (session->guard.state != WF_SESSION_UP || wf_session_wants(session, channel->group) ||
        !wf_channel_open(channel, outbound->total) || !wf_ready_pull_fresh(outbound, &frame))
        return false;
    wf_batch_begin(channel);
    if (wf_tx_has_own(tx))
        fill_totals(channel, TOTALS_BEFORE);
    add_chunk(channel, &frame, outbound);
    wf_channel_set_idle(channel, false);
    return true;
}

bool wf_channel_fill(struct wf_channel *channel)
{
    struct wf_session *session = wf_session_of(channel);
    struct wf_tx *tx = &channel->tx;
    wf_batch_begin(channel);
    fill_totals(channel, WF_BATCH_FRAMES);
    struct wf_frame frame;
    bool up = session->guard.state == WF_SESSION_UP;
    if (owes_pattern(channel) && is_led(channel))
        wf_batch_add_pattern(channel);
    if (up && channel->kind == WF_CHANNEL_EXPRESS)
        fill_express(channel);
    else if (up && channel->kind == WF_CHANNEL_DEVICE)
        fill_device(channel);
    else if (up)
        fill_bulk(channel);
    if (tx->bye_due && tx->frame_count < WF_BATCH_FRAMES) {
        WF_REACHED("channel UP: session is closing and nothing is retained");
        frame = (struct wf_frame){.type = WF_BYE};
        wf_batch_add(channel, &frame, NULL);
        wf_tx_said_bye(tx);
    }
    wf_channel_set_idle(channel, tx->frame_count == 0);
    wf_spread_note(channel);
    return !tx->idle;
}

bool wf_channel_rest(struct wf_channel *channel)
{
    wf_channel_set_idle(channel, true);
    wf_spread_note(channel);
    return false;
}
