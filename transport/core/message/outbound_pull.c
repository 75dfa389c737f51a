/* Which outgoing operation goes next, on which kind of channel. */
#include "core/channel/channel.h"
#include "core/message/inbound.h"
#include "core/message/outbound_parts.h"
#include "core/message/pieces.h"
#include "core/message/stage.h"
#include "core/session/spread_plan.h"
#include "core/calls/context.h"

#define WRITES_LOOKED_AT 16
#define BURST_BESIDE (64u * 1024) /* the most that goes unsolicited while bulk channels have something to do */

/* Bytes that may go before the peer has matched the message. A write needs no match. */
static uint64_t burst_of(const struct wf_outbound *outbound)
{
    uint64_t burst = outbound->connection->session->terms.first_burst;
    if (outbound->kind == WF_OUTBOUND_WRITE || wf_outbound_is_small(outbound))
        return outbound->total;
    if (outbound->device) /* a slot is for bytes that are wanted */
        return 0;
    return outbound->total < burst ? outbound->total : burst;
}

/* What the burst costs of the peer's pool: a write goes past it. */
static uint64_t charge_of(const struct wf_outbound *outbound)
{
    return outbound->kind == WF_OUTBOUND_WRITE ? 0 : wf_unsolicited_charge(burst_of(outbound));
}

static uint64_t credit_left(const struct wf_session *session)
{
    return session->desk.unsolicited_limit - session->desk.unsolicited_spent;
}

static bool has_credit(const struct wf_outbound *outbound)
{
    return charge_of(outbound) <= credit_left(outbound->connection->session);
}

/* Bulk channels have nothing to send, and the peer has taken all that they have sent. */
static bool bulk_is_quiet(const struct wf_session *session)
{
    return session->desk.waiting == 0 && session->desk.bulk_frames == 0;
}

/* A burst introduces its message where it stands in a bulk stream, and what is posted later is not matched before. So
 * a large one goes only where nothing stands before it, and leaves others as much credit as it takes. */
static bool may_burst(const struct wf_outbound *outbound)
{
    const struct wf_session *session = outbound->connection->session;
    uint64_t burst = burst_of(outbound);
    if (burst <= BURST_BESIDE)
        return burst > 0 && has_credit(outbound);
    return charge_of(outbound) <= credit_left(session) / 2 && bulk_is_quiet(session);
}

/* Is there a number for it, and one for its notification? */
static bool may_number(const struct wf_outbound *outbound)
{
    const struct weft_connection *connection = outbound->connection;
    bool open = connection->state == WF_CONNECTION_OPEN || connection->state == WF_CONNECTION_CLOSING;
    uint64_t last = connection->next_number + (outbound->note && !outbound->note->late ? 1 : 0);
    return open && (outbound->number != 0 || last <= connection->introduced_limit);
}

static bool may_introduce(const struct weft_connection *connection)
{
    const struct wf_outbound *head = wf_outbound_first_of(&connection->pending);
    return head && may_number(head) && !wf_stage_out_soon(head);
}

/* A large message at the head of the line whose first bytes may go unsolicited. */
static struct wf_outbound *bulk_head(const struct weft_connection *connection)
{
    struct wf_outbound *head = wf_outbound_first_of(&connection->pending);
    bool may = head && !wf_outbound_is_express(head) && may_burst(head) && may_number(head);
    return may ? head : NULL;
}

/* The first large write that has something to send: one whose device is slow holds up none of the others. */
static struct wf_outbound *ready_write(const struct weft_connection *connection)
{
    int looked = 0;
    WF_LIST_EACH (link, following, &connection->writes) {
        struct wf_outbound *write = WF_CONTAINER(link, struct wf_outbound, queue_link);
        if (!write->device || write->staged > 0)
            return write;
        if (++looked == WRITES_LOOKED_AT)
            break;
    }
    return NULL;
}

/* What a bulk channel may introduce: the head of the line, or a write, which needs no line; of both the one that was
 * posted first. */
static struct wf_outbound *bulk_candidate(const struct weft_connection *connection)
{
    struct wf_outbound *write = ready_write(connection), *head = bulk_head(connection);
    if (write && !may_number(write))
        write = NULL;
    if (write && head)
        return write->order < head->order ? write : head;
    return write ? write : head;
}

static void set_member(struct wf_list *ring, struct wf_link *link, bool member)
{
    if (member && !wf_link_in_list(link))
        wf_list_push_back(ring, link);
    else if (!member)
        wf_link_remove(link);
}

void wf_connection_ready(struct weft_connection *connection)
{
    struct wf_session *session = connection->session;
    bool bulk = !wf_list_empty(&connection->sending) || bulk_candidate(connection);
    bool express = may_introduce(connection) && (!bulk_head(connection) || connection->small_pending > 0);
    set_member(&session->desk.bulk_ready, &connection->ready_link, bulk);
    set_member(&session->desk.express_ready, &connection->express_link, express);
}

/* Hands [next, next + length) to a channel. */
static struct wf_outbound *take_chunk(struct wf_outbound *outbound, uint64_t length, struct wf_frame *frame)
{
    wf_outbound_frame(outbound, WF_DATA, frame);
    frame->offset = outbound->next;
    frame->length = (uint32_t)length;
    outbound->next += length;
    outbound->connection->session->desk.waiting -= length;
    wf_outbound_count(outbound, 1);
    outbound->in_engine += 1;
    return outbound;
}

static void spend(struct wf_outbound *outbound, uint64_t burst)
{
    outbound->charge = charge_of(outbound);
    outbound->connection->session->desk.unsolicited_spent += outbound->charge;
    outbound->burst = burst;
    wf_outbound_allow(outbound, burst);
}

uint64_t wf_outbound_fitting(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t offset,
                             uint64_t length)
{
    if (!wf_outbound_is_scattered(outbound) || outbound->device)
        return length;
    /* Never so many that the chunk would not fit behind a few frames more, should it have to be sent again. */
    int room = WF_TX_SEGMENTS - channel->tx.iov_count - 1, most = WF_TX_SEGMENTS - WF_TX_SEGMENTS_LEFT;
    return wf_pieces_fit(outbound->pieces, offset, length, room < most ? room : most);
}

/* The next chunk of one connection for a bulk channel. Decides first and changes after: a message once introduced must
 * not be left without a place in a queue because the answer has changed with the clock. */
static struct wf_outbound *next_chunk(struct wf_channel *channel, struct weft_connection *connection,
                                      struct wf_frame *frame)
{
    struct wf_session *session = connection->session;
    struct wf_outbound *outbound = wf_outbound_first_of(&connection->sending), *candidate = bulk_candidate(connection);
    bool fresh = candidate && (!outbound || (outbound->kind == WF_OUTBOUND_REPLY && connection->own_turn));
    if (fresh)
        outbound = candidate;
    if (!outbound)
        return NULL;
    uint64_t burst = fresh ? burst_of(outbound) : outbound->burst;
    /* No chunk crosses the end of the burst: what is unsolicited must be plain from the offset alone. */
    uint64_t limit = outbound->next < burst ? burst : outbound->sendable;
    if (outbound->device && limit > outbound->staged)
        limit = outbound->staged;
    uint64_t length = limit - outbound->next;
    uint64_t share = wf_spread_plan(channel, connection, session->desk.waiting + (fresh ? burst : 0));
    if (length > share)
        length = share;
    length = wf_outbound_fitting(channel, outbound, outbound->next, length);
    if (length == 0 || !wf_channel_open(channel, length))
        return NULL;
    if (fresh) {
        wf_outbound_introduce(outbound);
        spend(outbound, burst);
    }
    connection->own_turn = outbound->kind == WF_OUTBOUND_REPLY;
    take_chunk(outbound, length, frame);
    wf_stage_out_more(outbound);
    wf_outbound_requeue(outbound);
    return outbound;
}

/* The express channels have got something to introduce: their workers must hear of it. */
static void tell_express(const struct wf_channel *channel)
{
    struct wf_session *session = channel->session;
    for (int i = 0; i < session->lines.channel_count; i++) {
        struct wf_channel *other = session->lines.channels[i];
        if (other && other->kind == WF_CHANNEL_EXPRESS)
            wf_worker_kick(&session->kicks.each[other->tx.worker->index], channel->tx.worker);
    }
}

/* The connection has had this chunk: on with the next one, once its turn is over. */
static void count_turn(struct weft_connection *connection, uint64_t length)
{
    connection->deficit -= (int64_t)length;
    if (connection->deficit <= 0 && wf_link_in_list(&connection->ready_link)) {
        wf_link_remove(&connection->ready_link);
        wf_list_push_back(&connection->session->desk.bulk_ready, &connection->ready_link);
    }
}

struct wf_outbound *wf_outbound_pull_bulk(struct wf_channel *channel, struct wf_frame *frame)
{
    struct wf_session *session = channel->session;
    WF_LIST_EACH (link, following, &session->desk.bulk_ready) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, ready_link);
        if (!wf_spread_serves(channel, connection))
            continue;
        if (connection->deficit <= 0)
            connection->deficit += session->terms.chunk;
        bool told = wf_link_in_list(&connection->express_link);
        struct wf_outbound *outbound = next_chunk(channel, connection, frame);
        if (!outbound) /* what it could not introduce after all is to be offered */
            wf_connection_ready(connection);
        if (!told && wf_link_in_list(&connection->express_link))
            tell_express(channel);
        if (outbound) {
            count_turn(connection, frame->length);
            return outbound;
        }
        if (wf_link_in_list(link) && session->desk.choosy == 0)
            return NULL; /* it is the channel's window that is closed, or another channel's turn: for all of them */
    }
    return NULL;
}

/* Would a bulk channel introduce the head of the line right now? Then small messages behind it need not wait. */
static bool bulk_would_take(const struct weft_connection *connection)
{
    const struct wf_session *session = connection->session;
    const struct wf_outbound *head = bulk_head(connection);
    if (!head || bulk_candidate(connection) != head || !wf_list_empty(&connection->sending))
        return false;
    for (int i = 0; i < session->lines.channel_count; i++) {
        const struct wf_channel *channel = session->lines.channels[i];
        if (channel && channel->kind == WF_CHANNEL_BULK && channel->up && channel->tx.idle &&
            wf_channel_open(channel, session->terms.chunk) && wf_spread_serves(channel, connection) &&
            wf_spread_plan(channel, connection, session->desk.waiting + burst_of(head)) > 0)
            return true;
    }
    return false;
}

/* With all its bytes in one frame of an express channel. */
static bool goes_whole(const struct wf_outbound *outbound)
{
    return !outbound->refused && outbound->kind != WF_OUTBOUND_READ && wf_outbound_is_small(outbound) &&
           (!outbound->device || outbound->staged == outbound->total) && has_credit(outbound);
}

/* The frame without payload that introduces the head of a line, if that is what it needs. */
static bool bare_frame(struct wf_outbound *outbound, struct wf_frame *frame)
{
    if (goes_whole(outbound))
        return false;
    if (outbound->refused) { /* it has left traces with the peer: a number that was announced, or a list */
        wf_outbound_introduce(outbound);
        wf_outbound_refuse_frame(outbound, frame);
    } else if (outbound->kind == WF_OUTBOUND_READ) {
        wf_outbound_introduce(outbound);
        wf_outbound_frame(outbound, WF_READ, frame);
        wf_inbound_expect(outbound->counterpart, outbound->number);
    } else {
        wf_outbound_introduce(outbound);
        wf_outbound_frame(outbound, WF_OFFER, frame);
    }
    return true;
}

struct wf_outbound *wf_outbound_pull_express(struct wf_channel *channel, struct wf_frame *frame, bool *bare)
{
    struct wf_session *session = channel->session;
    *bare = false;
    WF_LIST_EACH (link, following, &session->desk.express_ready) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, express_link);
        struct wf_outbound *outbound = wf_outbound_first_of(&connection->pending);
        if (wf_link_in_list(&connection->ready_link) && bulk_would_take(connection))
            continue; /* no need to offer what goes at once */
        if (!wf_channel_open(channel, goes_whole(outbound) ? outbound->total : 0))
            return NULL;
        connection->pins += 1;
        *bare = bare_frame(outbound, frame);
        if (!*bare) {
            wf_outbound_introduce(outbound);
            spend(outbound, outbound->total);
            take_chunk(outbound, outbound->total, frame);
        }
        wf_link_remove(&connection->express_link); /* to the end of the ring, if it has more */
        wf_connection_ready(connection);
        connection->pins -= 1;
        wf_connection_check(connection);
        return *bare ? NULL : outbound;
    }
    return NULL;
}

bool wf_outbound_pull_copied(struct wf_outbound *outbound, struct wf_frame *frame)
{
    if (!wf_list_empty(&outbound->connection->pending) || !may_number(outbound) || !has_credit(outbound))
        return false;
    wf_outbound_introduce(outbound);
    spend(outbound, outbound->total);
    take_chunk(outbound, outbound->total, frame);
    return true;
}

void wf_outbound_credit_came(struct wf_session *session)
{
    WF_LIST_EACH (link, following, &session->desk.express_ready) {
        wf_connection_ready(WF_CONTAINER(link, struct weft_connection, express_link));
    }
}
