#include "core/message/ready.h"

#include "core/channel/channel.h"
#include "core/message/inbound.h"
#include "core/message/inbound_parts.h"
#include "core/message/outbound_parts.h"
#include "core/message/ring.h"
#include "core/request/pieces.h"
#include "core/message/stage.h"
#include "wire/hello.h"

#define WRITES_LOOKED_AT 16
#define CONNECTIONS_LOOKED_AT 64
#define BURST_BESIDE (64u * 1024) /* the most that goes unsolicited while bulk channels have something to do */

/* Bytes that may go before the peer has matched the message. A write needs no match. */
static inline uint64_t burst_of(const struct wf_outbound *outbound)
{
    const struct wf_terms *terms = outbound->connection->desk->terms;
    if (outbound->kind == WF_OUTBOUND_WRITE || wf_outbound_is_small(outbound))
        return outbound->total;
    if (outbound->device) /* slots are only for bytes that were granted */
        return 0;
    return wf_burst_bytes(outbound->total, terms->eager, terms->first_burst);
}

uint64_t wf_ready_burst(const struct wf_outbound *outbound)
{
    return burst_of(outbound);
}

/* The credit for the peer's pool that the burst costs: 0 for a write, which does not use the pool. */
static inline uint64_t charge_of(const struct wf_outbound *outbound)
{
    return outbound->kind == WF_OUTBOUND_WRITE ? 0 : wf_burst_charge(burst_of(outbound));
}

static uint64_t credit_left(const struct wf_desk *desk)
{
    return desk->unsolicited_limit - desk->unsolicited_spent;
}

static inline bool has_credit(const struct wf_outbound *outbound)
{
    return charge_of(outbound) <= credit_left(outbound->connection->desk);
}

/* Have the bulk channels of the class nothing to send, and has the peer acknowledged all their frames? */
static bool bulk_is_quiet(const struct wf_desk *desk, unsigned traffic)
{
    return desk->waiting[traffic] == 0 && desk->bulk_frames[traffic] == 0;
}

/* May it be introduced behind bytes that wait on bulk channels? A large one may if the peer takes an announcement,
 * which goes before whatever is matched after it. All of it goes then: what comes in two parts is spread twice. */
static bool may_stand_behind(const struct wf_outbound *outbound)
{
    uint64_t burst = burst_of(outbound);
    return burst <= BURST_BESIDE ||
           (burst == outbound->total && (outbound->connection->desk->terms->features & WF_FEATURE_ANNOUNCE));
}

uint64_t wf_ready_unasked(const struct wf_outbound *outbound)
{
    return burst_of(outbound) == outbound->total && may_stand_behind(outbound) ? outbound->total : 0;
}

/* May the burst spend its credit? A large one must leave as much as it takes. */
static bool leaves_credit(const struct wf_outbound *outbound)
{
    if (burst_of(outbound) <= BURST_BESIDE)
        return has_credit(outbound);
    return charge_of(outbound) <= credit_left(outbound->connection->desk) / 2;
}

bool wf_ready_goes_before(const struct wf_outbound *head, const struct wf_outbound *first)
{
    uint64_t chunk = first->connection->desk->terms->chunk;
    return head->total <= chunk && first->total > chunk && wf_ready_unasked(head);
}

/* Is something very large being sent on its connection, which it would have to wait for? */
static bool waits_long(const struct wf_outbound *outbound)
{
    const struct wf_outbound *first = wf_outbound_first_of(&outbound->connection->sending);
    return first && first->total > outbound->connection->desk->terms->first_burst &&
           !wf_ready_goes_before(outbound, first);
}

/* A burst introduces its message on a bulk channel, behind the bytes that wait there, and later messages are not
 * matched before it. */
static bool may_burst(const struct wf_outbound *outbound)
{
    const struct weft_connection *connection = outbound->connection;
    uint64_t burst = burst_of(outbound);
    return burst > 0 && leaves_credit(outbound) &&
           (burst <= BURST_BESIDE || (may_stand_behind(outbound) && !waits_long(outbound)) ||
            bulk_is_quiet(connection->desk, connection->traffic));
}

/* Does the peer's limit allow a number for it, and one for its notification? */
static inline bool may_number(const struct wf_outbound *outbound)
{
    const struct weft_connection *connection = outbound->connection;
    bool open = connection->state == WF_CONNECTION_OPEN || connection->state == WF_CONNECTION_CLOSING;
    uint64_t last = connection->next_number + (outbound->note && !outbound->note->late ? 1 : 0);
    return open && (outbound->number != 0 || last <= connection->introduced_limit);
}

/* A large message at the head of the line whose first bytes may go unsolicited. */
struct wf_outbound *wf_ready_head(const struct weft_connection *connection)
{
    struct wf_outbound *head = wf_outbound_first_of(&connection->pending);
    bool may = head && !wf_outbound_is_express(head) && may_burst(head) && may_number(head);
    return may ? head : NULL;
}

/* The first large write that has something to send: a write that waits for a slow device does not delay the others. */
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

/* The message that a bulk channel may introduce: the head of the line, or a large write, which is in no line; of both
 * the one that was posted first. */
struct wf_outbound *wf_ready_candidate(const struct weft_connection *connection)
{
    struct wf_outbound *write = ready_write(connection), *head = wf_ready_head(connection);
    if (write && !may_number(write))
        write = NULL;
    if (write && head)
        return write->order < head->order ? write : head;
    return write ? write : head;
}

static bool has_ready_write(const struct weft_connection *connection)
{
    const struct wf_outbound *write = wf_list_empty(&connection->writes) ? NULL : ready_write(connection);
    return write && may_number(write);
}

void wf_connection_ready(struct weft_connection *connection)
{
    struct wf_desk *desk = connection->desk;
    const struct wf_outbound *head = wf_outbound_first_of(&connection->pending);
    bool numbered = head && may_number(head);
    bool large = numbered && !wf_outbound_is_express(head) && may_burst(head); /* as wf_ready_head() */
    bool bulk = large || !wf_list_empty(&connection->sending) || has_ready_write(connection);
    bool express = numbered && (!large || connection->small_pending > 0) && !(head->device && wf_stage_out_soon(head));
    if (bulk != wf_link_in_list(&connection->ready_link))
        wf_desk_set_ready(desk, connection, bulk);
    if (express == wf_link_in_list(&connection->express_link))
        return;
    if (express)
        wf_list_push_back(&desk->express_ready[connection->traffic], &connection->express_link);
    else
        wf_link_remove(&connection->express_link);
}

/* Stands it in line behind a message that express channels are asked to take? Then nothing is new to any channel. */
static bool is_behind_another(const struct wf_outbound *outbound)
{
    const struct weft_connection *connection = outbound->connection;
    const struct wf_outbound *head = wf_outbound_first_of(&connection->pending);
    return outbound->in_line && head != outbound && wf_link_in_list(&connection->express_link) &&
           wf_outbound_is_express(head);
}

void wf_ready_queued(struct wf_outbound *outbound)
{
    if (!is_behind_another(outbound))
        wf_connection_ready(outbound->connection);
}

/* Hands [next, next + length) to a channel. */
struct wf_outbound *wf_ready_take(struct wf_outbound *outbound, uint64_t length, struct wf_frame *frame)
{
    wf_outbound_frame(outbound, WF_DATA, frame);
    frame->offset = outbound->next;
    frame->length = (uint32_t)length;
    outbound->next += length;
    wf_outbound_wait(outbound, -(int64_t)length);
    wf_outbound_count(outbound, 1);
    outbound->in_engine += 1;
    return outbound;
}

void wf_ready_spend(struct wf_outbound *outbound, uint64_t burst)
{
    struct weft_connection *connection = outbound->connection;
    bool matched = outbound->kind != WF_OUTBOUND_WRITE;
    if (matched && burst > BURST_BESIDE && !bulk_is_quiet(connection->desk, connection->traffic))
        wf_list_push_back(&connection->behind, &outbound->behind_link);
    outbound->charge = charge_of(outbound);
    outbound->connection->desk->unsolicited_spent += outbound->charge;
    outbound->burst = burst;
    wf_outbound_allow(outbound, burst);
}

uint64_t wf_ready_fitting(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t offset,
                          uint64_t length)
{
    /* Leave room for a few frames: if the chunk is sent again, it must fit behind them in one operation. */
    int room = WF_TX_SEGMENTS - channel->tx.iov_count - 1, most = WF_TX_SEGMENTS - WF_TX_SEGMENTS_LEFT;
    int max = room < most ? room : most;
    if (outbound->device) /* a peer that grants little at a time has slots filled with little */
        return wf_stage_out_fit(outbound, offset, length, max);
    return wf_outbound_is_scattered(outbound) ? wf_pieces_fit(outbound->pieces, offset, length, max) : length;
}

bool wf_ready_is_brief(const struct wf_outbound *outbound)
{
    return outbound->total <= outbound->connection->desk->terms->brief && !wf_outbound_is_small(outbound) &&
           outbound->kind == WF_OUTBOUND_MESSAGE && !outbound->device && !outbound->waits && !outbound->confirms &&
           !wf_outbound_is_scattered(outbound) && burst_of(outbound) == outbound->total;
}

/* May the whole message go now, in one frame of an express channel? */
bool wf_ready_whole(const struct wf_outbound *outbound)
{
    return !outbound->refused && outbound->kind != WF_OUTBOUND_READ && wf_outbound_is_small(outbound) &&
           (!outbound->device || outbound->staged == outbound->total) && has_credit(outbound);
}

void wf_ready_go_whole(struct wf_outbound *outbound, struct wf_frame *frame)
{
    wf_outbound_introduce(outbound);
    outbound->charge = charge_of(outbound);
    outbound->connection->desk->unsolicited_spent += outbound->charge;
    outbound->burst = outbound->sendable = outbound->next = outbound->total;
    wf_outbound_frame(outbound, WF_DATA, frame);
    frame->length = (uint32_t)outbound->total;
    wf_outbound_count(outbound, 1);
    outbound->in_engine += 1;
}

void wf_ready_bare(struct wf_outbound *outbound, struct wf_frame *frame)
{
    if (outbound->refused) { /* the peer knows a number or a list of it: REFUSE takes that back */
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
}

bool wf_ready_announce(struct weft_connection *connection, struct wf_frame *frame)
{
    struct wf_link *link = wf_list_pop_front(&connection->behind);
    if (!link)
        return false;
    const struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, behind_link);
    wf_outbound_frame(outbound, WF_OFFER, frame);
    frame->offset = outbound->burst;
    return true;
}

bool wf_ready_pull_fresh(struct wf_outbound *outbound, struct wf_frame *frame)
{
    const struct weft_connection *connection = outbound->connection;
    if (!wf_list_empty(&connection->pending) || !wf_list_empty(&connection->behind) || !may_number(outbound) ||
        !leaves_credit(outbound))
        return false;
    wf_ready_go_whole(outbound, frame);
    return true;
}

void wf_ready_credit_came(struct wf_desk *desk)
{
    for (int traffic = 0; traffic < WF_CLASSES; traffic++) {
        int looked = 0;
        WF_LIST_EACH (link, following, &desk->express_ready[traffic]) {
            wf_connection_ready(WF_CONTAINER(link, struct weft_connection, express_link));
            if (++looked ==
                CONNECTIONS_LOOKED_AT) /* the others offer their messages, or find the credit in their turn */
                break;
        }
    }
}
