/* Decides which outgoing operation goes next, and on which channel. */
#include "core/session/next.h"

#include "base/whole_words.h"
#include "core/channel/carry.h"
#include "core/channel/work.h"
#include "core/message/connection.h"
#include "core/message/connection_close.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/message/ring.h"
#include "core/message/stage.h"
#include "core/session/resend.h"
#include "core/session/session.h"
#include "core/session/spread_plan.h"
#include "core/session/traffic.h"

/* A chunk of `length` bytes or a little less: behind it comes the end of the message, or a new line. Where it is
 * shorter than a line itself, a new word will do. */
static uint64_t whole_lines(const struct wf_outbound *outbound, uint64_t length)
{
    uint64_t end = outbound->next + length, ragged = end % WF_LINE_BYTES;
    if (ragged >= length)
        ragged = end % WF_WORD_BYTES;
    return end < outbound->total && ragged < length ? length - ragged : length;
}

/* Bytes of a message that is to be introduced which wf_session_waiting() does not know of. */
static uint64_t uncounted(const struct wf_outbound *outbound)
{
    return outbound->in_line && wf_ready_unasked(outbound) ? 0 : wf_ready_burst(outbound);
}

/* What is to be introduced now, though `first` (or NULL) is being sent; NULL: nothing. */
static struct wf_outbound *fresh_before(const struct weft_connection *connection, const struct wf_outbound *first)
{
    if (!first || (first->kind == WF_OUTBOUND_REPLY && connection->own_turn))
        return wf_ready_candidate(connection);
    struct wf_outbound *head = first->kind != WF_OUTBOUND_REPLY ? wf_ready_head(connection) : NULL;
    return head && wf_ready_goes_before(head, first) ? head : NULL;
}

/* The next chunk of one connection for a bulk channel. Makes every decision before it changes anything: if a later
 * check failed, an introduced message would be left in no queue. */
static struct wf_outbound *next_chunk(struct wf_channel *channel, struct weft_connection *connection,
                                      struct wf_frame *frame)
{
    struct wf_outbound *outbound = wf_outbound_first_of(&connection->sending),
                       *fresh = fresh_before(connection, outbound);
    if (fresh)
        outbound = fresh;
    if (!outbound)
        return NULL;
    uint64_t burst = fresh ? wf_ready_burst(outbound) : outbound->burst;
    /* No chunk crosses the end of the burst: its offset alone must tell whether it is unsolicited. */
    uint64_t limit = outbound->next < burst ? burst : outbound->sendable;
    if (outbound->device && limit > outbound->staged)
        limit = outbound->staged;
    uint64_t length = limit - outbound->next;
    uint64_t ahead = wf_session_waiting(channel) + (fresh ? uncounted(outbound) : 0);
    uint64_t share = wf_spread_plan(channel, connection, ahead);
    if (length > share)
        length = share;
    length = whole_lines(outbound, wf_ready_fitting(channel, outbound, outbound->next, length));
    if (length == 0 || !wf_channel_open(channel, length))
        return NULL;
    if (fresh) {
        wf_outbound_introduce(outbound);
        wf_ready_spend(outbound, burst);
    }
    connection->own_turn = outbound->kind == WF_OUTBOUND_REPLY;
    wf_ready_take(outbound, length, frame);
    wf_stage_out_more(outbound);
    wf_outbound_requeue(outbound);
    return outbound;
}

/* Subtracts the chunk from the connection's turn. When the turn is over, other connections go first. */
static void count_turn(struct weft_connection *connection, uint64_t length)
{
    connection->deficit -= (int64_t)length;
    if (connection->deficit <= 0 && wf_link_in_list(&connection->ready_link)) {
        wf_desk_turn_over(connection->desk, connection);
    }
}

/* The next chunk of the ring: of its first connection that has one. */
static struct wf_outbound *next_of_ring(struct wf_channel *channel, struct wf_ring *ring, struct wf_frame *frame)
{
    struct wf_desk *desk = &wf_session_of(channel)->desk;
    struct wf_link *link;
    while ((link = wf_list_first(&ring->connections))) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, ready_link);
        if (connection->deficit <= 0)
            connection->deficit += desk->terms->chunk;
        bool told = wf_link_in_list(&connection->express_link) && !connection->passed;
        connection->passed = false;
        struct wf_outbound *outbound = next_chunk(channel, connection, frame);
        if (!outbound) /* a message that could not be introduced here must be offered on an express channel */
            wf_connection_ready(connection);
        if (!told && wf_link_in_list(&connection->express_link))
            wf_lines_offer(desk->lines, wf_lines_carrier(desk->lines, connection->traffic, WF_CHANNEL_EXPRESS),
                           UINT64_MAX, channel->tx.worker);
        if (outbound) {
            count_turn(connection, frame->length);
            return outbound;
        }
        if (wf_link_in_list(link))
            return NULL; /* the window is closed, or it is another channel's turn: the same for the whole ring */
    }
    return NULL;
}

/* The next chunk of the class's connections. */
static struct wf_outbound *next_of_class(struct wf_channel *channel, unsigned traffic, struct wf_frame *frame)
{
    struct wf_desk *desk = &wf_session_of(channel)->desk;
    WF_LIST_EACH (link, following, &desk->bulk_ready[traffic]) {
        struct wf_ring *ring = WF_CONTAINER(link, struct wf_ring, ready_link);
        struct wf_outbound *outbound = wf_spread_serves(channel, ring) ? next_of_ring(channel, ring, frame) : NULL;
        if (outbound)
            return outbound;
    }
    return NULL;
}

struct wf_outbound *wf_next_bulk(struct wf_channel *channel, struct wf_frame *frame)
{
    struct wf_lines *lines = channel->lines;
    if (wf_lines_carries_one(lines, channel->group))
        return next_of_class(channel, channel->traffic, frame);
    for (struct wf_turns turns = wf_lines_turns(lines, channel->group); turns.left != 0;) {
        unsigned traffic = wf_turns_next(&turns);
        struct wf_outbound *outbound = next_of_class(channel, traffic, frame);
        if (outbound) {
            wf_lines_took(lines, channel->group, traffic);
            return outbound;
        }
    }
    return NULL;
}

/* Will a bulk channel of another worker introduce the first message in line right now? Then `express` need not offer
 * it. Those of this worker have chosen before. The other one will find the connection first in line, and is told. */
static bool bulk_takes(const struct wf_channel *express, const struct weft_connection *connection)
{
    struct wf_desk *desk = connection->desk;
    struct wf_session *session = wf_session_of(express);
    const struct wf_outbound *head = wf_ready_head(connection);
    if (!head || wf_ready_candidate(connection) != head || !wf_list_empty(&connection->sending) ||
        wf_list_first(&connection->ring->connections) != &connection->ready_link ||
        wf_list_first(&desk->bulk_ready[connection->traffic]) != &connection->ring->ready_link)
        return false;
    int group = wf_lines_carrier(desk->lines, connection->traffic, WF_CHANNEL_BULK);
    if (desk->lines->carried[group] != 1u << connection->traffic || !wf_resend_idle(session, group))
        return false;
    uint64_t pairs = wf_spread_pairs(session, connection->traffic, connection->ring) &
                     ~wf_lines_roster(desk->lines, express->tx.worker)->pairs[WF_CHANNEL_BULK];
    struct wf_channel *channel;
    for (int asked = 0; asked < WF_OFFERS_AT_ONCE; asked++) {
        if (!(channel = wf_lines_next_offer(desk->lines, group, pairs)))
            return false;
        if (wf_channel_open(channel, desk->terms->chunk) &&
            wf_spread_plan(channel, connection, wf_session_waiting(channel) + uncounted(head)) > 0) {
            wf_channel_tx_due(channel);
            return true;
        }
    }
    return false;
}

/* The next frame of the class's connections. */
static struct wf_outbound *express_of_class(struct wf_channel *channel, unsigned traffic, struct wf_frame *frame,
                                            bool *bare)
{
    struct wf_desk *desk = &wf_session_of(channel)->desk;
    *bare = false;
    WF_LIST_EACH (link, following, &desk->express_ready[traffic]) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, express_link);
        struct wf_outbound *outbound = wf_outbound_first_of(&connection->pending);
        connection->passed = wf_link_in_list(&connection->ready_link) && bulk_takes(channel, connection);
        if (connection->passed)
            continue; /* the message goes at once on a bulk channel: no OFFER is needed */
        *bare = wf_channel_open(channel, 0) && wf_ready_announce(connection, frame);
        if (*bare)
            return NULL;
        bool whole = wf_ready_whole(outbound);
        if (!wf_channel_open(channel, whole ? outbound->total : 0))
            return NULL;
        *bare = !whole;
        connection->pins += 1;
        if (whole)
            wf_ready_go_whole(outbound, frame);
        else
            wf_ready_bare(outbound, frame);
        wf_link_remove(&connection->express_link); /* wf_connection_ready puts it last in the ring if it has more */
        wf_connection_ready(connection);
        connection->pins -= 1;
        wf_connection_check(connection);
        return whole ? outbound : NULL;
    }
    return NULL;
}

struct wf_outbound *wf_next_express(struct wf_channel *channel, struct wf_frame *frame, bool *bare)
{
    struct wf_lines *lines = channel->lines;
    if (wf_lines_carries_one(lines, channel->group))
        return express_of_class(channel, channel->traffic, frame, bare);
    *bare = false;
    for (struct wf_turns turns = wf_lines_turns(lines, channel->group); turns.left != 0;) {
        unsigned traffic = wf_turns_next(&turns);
        struct wf_outbound *outbound = express_of_class(channel, traffic, frame, bare);
        if (outbound || *bare) {
            wf_lines_took(lines, channel->group, traffic);
            return outbound;
        }
    }
    return NULL;
}
