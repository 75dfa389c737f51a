#include "core/outbound.h"

#include <errno.h>
#include <string.h>

#include "core/channel.h"
#include "core/connection.h"
#include "core/landing.h"
#include "core/onesided.h"
#include "core/pieces.h"
#include "core/request.h"
#include "core/session.h"
#include "core/spread_plan.h"

/* Its bytes are in many places. */
static bool is_scattered(const struct wf_outbound *outbound)
{
    return outbound->pieces && outbound->kind != WF_OUTBOUND_LIST; /* whose bytes tell of pieces */
}

/* Small enough for one frame on the express channel. */
static bool is_small(const struct wf_outbound *outbound)
{
    return outbound->total <= outbound->connection->session->eager && !is_scattered(outbound);
}

/* Goes by the express channels, or not at all: without payload, or with little. */
static bool is_express(const struct wf_outbound *outbound)
{
    return outbound->refused || outbound->kind == WF_OUTBOUND_READ || is_small(outbound);
}

/* Bytes that may go before the peer has matched the message. A write needs no match. */
static uint64_t burst_of(const struct wf_outbound *outbound)
{
    uint64_t burst = outbound->connection->session->first_burst;
    if (outbound->kind == WF_OUTBOUND_WRITE || is_small(outbound))
        return outbound->total;
    return outbound->total < burst ? outbound->total : burst;
}

/* What the burst costs of the peer's pool: a write goes past it. */
static uint64_t charge_of(const struct wf_outbound *outbound)
{
    return outbound->kind == WF_OUTBOUND_WRITE ? 0 : wf_unsolicited_charge(burst_of(outbound));
}

static bool has_credit(const struct wf_outbound *outbound)
{
    const struct wf_session *session = outbound->connection->session;
    return charge_of(outbound) <= session->unsolicited_limit - session->unsolicited_spent;
}

static struct wf_outbound *first_of(const struct wf_list *list)
{
    struct wf_link *link = wf_list_first(list);
    return link ? WF_CONTAINER(link, struct wf_outbound, queue_link) : NULL;
}

/* Is there a number for it, and one for its notification? */
static bool may_number(const struct wf_outbound *outbound)
{
    const struct weft_connection *connection = outbound->connection;
    bool open = connection->state == WF_CONNECTION_OPEN || connection->state == WF_CONNECTION_CLOSING;
    uint64_t last = connection->next_number + (outbound->note ? 1 : 0);
    return open && (outbound->number != 0 || last <= connection->introduced_limit);
}

static bool may_introduce(const struct weft_connection *connection)
{
    return !wf_list_empty(&connection->pending) && may_number(first_of(&connection->pending));
}

/* A large message at the head of the line whose first bytes may go unsolicited. */
static struct wf_outbound *bulk_head(const struct weft_connection *connection)
{
    struct wf_outbound *head = first_of(&connection->pending);
    bool may = head && !is_express(head) && burst_of(head) > 0 && has_credit(head) && may_number(head);
    return may ? head : NULL;
}

/* What a bulk channel may introduce: the head of the line, or a write, which needs no line; of both the one that was
 * posted first. */
static struct wf_outbound *bulk_candidate(const struct weft_connection *connection)
{
    struct wf_outbound *write = first_of(&connection->writes), *head = bulk_head(connection);
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
    set_member(&session->bulk_ready, &connection->ready_link, bulk);
    set_member(&session->express_ready, &connection->express_link, express);
}

/* --- life --- */

struct wf_outbound *wf_outbound_create(struct weft_connection *connection, enum wf_outbound_kind kind, uint64_t total)
{
    struct wf_outbound *outbound = wf_pool_take(&connection->session->outbound_pool);
    if (!outbound)
        return NULL;
    memset(outbound, 0, sizeof *outbound);
    wf_link_init(&outbound->queue_link);
    wf_link_init(&outbound->hash_link);
    wf_link_init(&outbound->todo_link);
    outbound->connection = connection;
    outbound->kind = kind;
    outbound->total = total;
    connection->outbounds += 1;
    return outbound;
}

static void leave_line(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    if (outbound->in_line && is_express(outbound))
        connection->small_pending -= 1;
    outbound->in_line = false;
    wf_link_remove(&outbound->queue_link);
}

static void join_line(struct wf_outbound *outbound, bool first)
{
    struct weft_connection *connection = outbound->connection;
    outbound->in_line = true;
    if (is_express(outbound))
        connection->small_pending += 1;
    if (first)
        wf_list_push_front(&connection->pending, &outbound->queue_link);
    else
        wf_list_push_back(&connection->pending, &outbound->queue_link);
}

void wf_outbound_queue(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    outbound->order = connection->next_order++;
    /* A large write is not matched: it need not keep its place among what is, and holds up none of it. */
    if (outbound->kind == WF_OUTBOUND_WRITE && !is_express(outbound))
        wf_list_push_back(&connection->writes, &outbound->queue_link);
    else
        join_line(outbound, false);
    wf_connection_ready(connection);
}

void wf_outbound_drop(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_session *session = connection->session;
    leave_line(outbound);
    wf_link_remove(&outbound->hash_link);
    wf_link_remove(&outbound->todo_link);
    if (outbound->slot)
        wf_pool_give(&session->slot_pool, outbound->slot);
    wf_pieces_release(outbound->pieces);
    wf_pool_give(&session->outbound_pool, outbound);
    connection->outbounds -= 1;
}

static void destroy(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_outbound last = *outbound;
    wf_outbound_drop(outbound);
    connection->pins += 1;
    if (last.counted)
        wf_connection_list_ended(connection);
    connection->session->stirred |= last.waiter || last.subject || last.counted || last.kind == WF_OUTBOUND_REPLY;
    if (last.note) /* all of it is over but for the notification */
        last.note->subject = NULL;
    if (last.subject) {
        last.subject->note = NULL;
        if (last.subject->deferred)
            wf_outbound_refuse(last.subject, last.subject->deferred);
    }
    if (last.waiter) {
        last.waiter->list = NULL;
        last.waiter->listed = !last.refused;
        last.waiter->key = last.number;
        if (last.refused)
            wf_outbound_refuse(last.waiter, last.status);
        else
            wf_outbound_queue(last.waiter);
    }
    if (last.kind == WF_OUTBOUND_REPLY)
        wf_inbound_served(last.counterpart);
    connection->pins -= 1;
    wf_connection_ready(connection);
    wf_connection_check(connection);
}

static void complete(struct wf_outbound *outbound, int status)
{
    struct weft_request *request = outbound->request;
    if (!request)
        return;
    outbound->request = NULL;
    if (request->outbound == outbound)
        request->outbound = NULL;
    if (request->note == outbound)
        request->note = NULL;
    wf_request_part_done(request, status, request->length);
}

/* Ends what has nothing to wait for any more. */
static void check(struct wf_outbound *outbound)
{
    if (outbound->in_engine > 0)
        return;
    if (outbound->refused)
        complete(outbound, outbound->status);
    if (outbound->refused && outbound->kind == WF_OUTBOUND_REPLY)
        wf_region_release(outbound->counterpart);
    if (outbound->unacknowledged > 0 || !outbound->introduced)
        return;
    if (outbound->kind == WF_OUTBOUND_READ && outbound->counterpart)
        return; /* it ends with its landing */
    if (outbound->kind == WF_OUTBOUND_LIST && outbound->refuse_due)
        return; /* the peer may hold the whole of it, for an operation that will not come */
    bool all = outbound->next == outbound->total && outbound->retired == outbound->total;
    if (outbound->kind == WF_OUTBOUND_WRITE && !outbound->confirmed && !outbound->refused)
        all = false; /* acknowledged may also mean drained */
    if (all && !outbound->refused)
        complete(outbound, 0);
    if (all || (outbound->refuse_sent && outbound->refuse_seen))
        destroy(outbound);
}

int wf_outbound_post(struct weft_connection *connection, struct weft_request *request)
{
    struct wf_session *session = connection->session;
    struct wf_outbound *outbound = wf_outbound_create(connection, WF_OUTBOUND_MESSAGE, request->length);
    if (!outbound)
        return -ENOMEM;
    outbound->request = request;
    outbound->data = request->buffer;
    outbound->tag = request->tag;
    request->outbound = outbound;
    if (is_small(outbound)) {
        if (outbound->total > 0)
            outbound->slot = wf_pool_take(&session->slot_pool);
        if (outbound->slot)
            memcpy(outbound->slot, outbound->data, outbound->total);
        if (outbound->slot || outbound->total == 0) {
            outbound->data = outbound->slot;
            complete(outbound, 0);
        }
    }
    wf_outbound_queue(outbound);
    return 0;
}

struct wf_outbound *wf_outbound_find(struct weft_connection *connection, uint64_t number, bool reply)
{
    struct wf_list *bucket = &connection->session->outbound_hash[wf_hash(connection->number, number)];
    WF_LIST_EACH (link, following, bucket) {
        struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, hash_link);
        if (outbound->number == number && outbound->connection == connection &&
            (outbound->kind == WF_OUTBOUND_REPLY) == reply)
            return outbound;
    }
    return NULL;
}

static void make_known(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    outbound->introduced = true;
    wf_list_push_back(&connection->session->outbound_hash[wf_hash(connection->number, outbound->number)],
                      &outbound->hash_link);
}

/* Takes it out of its line and gives it its number, and its notification the next; from now on the peer will hear. */
static void introduce(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    leave_line(outbound);
    if (outbound->number == 0)
        outbound->number = connection->next_number++;
    make_known(outbound);
    struct wf_outbound *note = outbound->note;
    if (!note)
        return;
    outbound->noted = true;
    note->number = connection->next_number++;
    note->base = outbound->number;
    note->order = outbound->order;
    join_line(note, true);
}

/* The flags that tell what kind of message it is. */
static uint8_t flags_of(const struct wf_outbound *outbound)
{
    unsigned more = (outbound->noted ? WF_FLAG_NOTIFY : 0u) | (outbound->listed ? WF_FLAG_LIST : 0u);
    switch (outbound->kind) {
    case WF_OUTBOUND_WRITE:
        return (uint8_t)(WF_FLAG_WRITE | more);
    case WF_OUTBOUND_READ:
        return (uint8_t)more;
    case WF_OUTBOUND_REPLY:
        return WF_FLAG_READ_REPLY | WF_FLAG_PEER;
    case WF_OUTBOUND_NOTE:
        return WF_FLAG_NOTIFY;
    case WF_OUTBOUND_LIST:
        return WF_FLAG_LIST;
    case WF_OUTBOUND_MESSAGE:
        break;
    }
    return WF_FLAG_TAGGED;
}

static void frame_of(const struct wf_outbound *outbound, enum wf_frame_type type, struct wf_frame *frame)
{
    bool remote = outbound->kind == WF_OUTBOUND_WRITE || outbound->kind == WF_OUTBOUND_READ;
    *frame = (struct wf_frame){.type = (uint8_t)type,
                               .flags = flags_of(outbound),
                               .data_off = WF_FRAME_BYTES,
                               .conn = outbound->connection->number,
                               .msg = outbound->number,
                               .total = outbound->total,
                               .key = remote ? outbound->key : outbound->tag,
                               .base = outbound->base};
}

/* Bytes up to `sendable` may go: they wait for a channel. */
static void allow(struct wf_outbound *outbound, uint64_t sendable)
{
    if (!outbound->stopped)
        outbound->connection->session->waiting += sendable - outbound->sendable;
    outbound->sendable = sendable;
}

/* Hands [next, next + length) to a channel. */
static struct wf_outbound *take_chunk(struct wf_outbound *outbound, uint64_t length, struct wf_frame *frame)
{
    frame_of(outbound, WF_DATA, frame);
    frame->offset = outbound->next;
    frame->length = (uint32_t)length;
    outbound->next += length;
    outbound->connection->session->waiting -= length;
    outbound->unacknowledged += 1;
    outbound->in_engine += 1;
    return outbound;
}

static void spend(struct wf_outbound *outbound, uint64_t burst)
{
    outbound->charge = charge_of(outbound);
    outbound->connection->session->unsolicited_spent += outbound->charge;
    outbound->burst = burst;
    allow(outbound, burst);
}

static bool can_send(const struct wf_outbound *outbound)
{
    return outbound->next < outbound->sendable && outbound->unacknowledged < WF_CHUNKS_UNACKNOWLEDGED &&
           !outbound->stopped;
}

/* In connection.sending exactly while it can send. */
static void requeue(struct wf_outbound *outbound)
{
    bool queued = wf_link_in_list(&outbound->queue_link);
    if (!outbound->introduced)
        return;
    bool small = outbound->total <= outbound->connection->session->chunk; /* it does not wait behind a large one */
    if (can_send(outbound) && !queued && small)
        wf_list_push_front(&outbound->connection->sending, &outbound->queue_link);
    else if (can_send(outbound) && !queued)
        wf_list_push_back(&outbound->connection->sending, &outbound->queue_link);
    else if (!can_send(outbound) && queued)
        wf_link_remove(&outbound->queue_link);
    wf_connection_ready(outbound->connection);
}

void wf_outbound_reply(struct wf_outbound *outbound, uint64_t number)
{
    outbound->number = number;
    make_known(outbound);
    allow(outbound, outbound->total);
    requeue(outbound);
}

int wf_outbound_places(const struct wf_outbound *outbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                       uint64_t *covered)
{
    if (is_scattered(outbound))
        return wf_pieces_places(outbound->pieces, offset, length, iov, max, covered);
    iov[0] = (struct iovec){(void *)(uintptr_t)(outbound->data + offset), length};
    *covered = length;
    return 1;
}

/* As much of `length` bytes as the entries left in the channel's operation can refer to. */
static uint64_t fitting(const struct wf_channel *channel, const struct wf_outbound *outbound, uint64_t length)
{
    if (!is_scattered(outbound))
        return length;
    return wf_pieces_fit(outbound->pieces, outbound->next, length, WF_TX_SEGMENTS - channel->tx.iov_count - 1);
}

/* The next chunk of one connection for a bulk channel. Decides first and changes after: a message once introduced must
 * not be left without a place in a queue because the answer has changed with the clock. */
static struct wf_outbound *next_chunk(struct wf_channel *channel, struct weft_connection *connection,
                                      struct wf_frame *frame)
{
    struct wf_session *session = connection->session;
    struct wf_outbound *outbound = first_of(&connection->sending), *candidate = bulk_candidate(connection);
    bool fresh = candidate && (!outbound || (outbound->kind == WF_OUTBOUND_REPLY && connection->own_turn));
    if (fresh)
        outbound = candidate;
    if (!outbound)
        return NULL;
    uint64_t burst = fresh ? burst_of(outbound) : outbound->burst;
    /* No chunk crosses the end of the burst: what is unsolicited must be plain from the offset alone. */
    uint64_t limit = outbound->next < burst ? burst : outbound->sendable;
    uint64_t length = limit - outbound->next;
    uint64_t share = wf_spread_plan(channel, session->waiting + (fresh ? burst : 0));
    if (length > share)
        length = share;
    length = fitting(channel, outbound, length);
    if (length == 0 || !wf_channel_open(channel, length))
        return NULL;
    if (fresh) {
        introduce(outbound);
        spend(outbound, burst);
    }
    connection->own_turn = outbound->kind == WF_OUTBOUND_REPLY;
    take_chunk(outbound, length, frame);
    requeue(outbound);
    return outbound;
}

/* What a bulk channel could not introduce after all is the express channels' to offer: their workers must hear of it.
 */
static void pass_to_express(struct wf_channel *channel, struct weft_connection *connection)
{
    struct wf_session *session = channel->session;
    bool before = wf_link_in_list(&connection->express_link);
    wf_connection_ready(connection);
    if (before || !wf_link_in_list(&connection->express_link))
        return;
    for (int i = 0; i < session->channel_count; i++) {
        struct wf_channel *other = session->channels[i];
        if (other && other->kind == WF_CHANNEL_EXPRESS)
            wf_worker_kick(&session->kicks[other->tx.worker->index], channel->tx.worker);
    }
}

struct wf_outbound *wf_outbound_pull_bulk(struct wf_channel *channel, struct wf_frame *frame)
{
    struct wf_session *session = channel->session;
    while (!wf_list_empty(&session->bulk_ready)) {
        struct wf_link *link = wf_list_first(&session->bulk_ready);
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, ready_link);
        if (connection->deficit <= 0)
            connection->deficit += session->chunk;
        struct wf_outbound *outbound = next_chunk(channel, connection, frame);
        if (!outbound) {
            pass_to_express(channel, connection);
            if (wf_list_first(&session->bulk_ready) == link)
                return NULL; /* it is the channel's window that is closed */
            continue;
        }
        connection->deficit -= frame->length;
        if (connection->deficit <= 0 && wf_link_in_list(link)) { /* its turn is over */
            wf_link_remove(link);
            wf_list_push_back(&session->bulk_ready, link);
        }
        return outbound;
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
    for (int i = 0; i < session->channel_count; i++) {
        const struct wf_channel *channel = session->channels[i];
        if (channel && channel->kind == WF_CHANNEL_BULK && channel->up && channel->tx.idle &&
            wf_channel_open(channel, session->chunk) && wf_spread_plan(channel, session->waiting + burst_of(head)) > 0)
            return true;
    }
    return false;
}

/* With all its bytes in one frame of an express channel. */
static bool goes_whole(const struct wf_outbound *outbound)
{
    return !outbound->refused && outbound->kind != WF_OUTBOUND_READ && is_small(outbound) && has_credit(outbound);
}

/* The frame without payload that introduces the head of a line, if that is what it needs. */
static bool bare_frame(struct wf_outbound *outbound, struct wf_frame *frame)
{
    if (goes_whole(outbound))
        return false;
    if (outbound->refused) { /* it has left traces with the peer: a number that was announced, or a list */
        introduce(outbound);
        wf_outbound_refuse_frame(outbound, frame);
    } else if (outbound->kind == WF_OUTBOUND_READ) {
        introduce(outbound);
        frame_of(outbound, WF_READ, frame);
        wf_inbound_expect(outbound->counterpart, outbound->number);
    } else {
        introduce(outbound);
        frame_of(outbound, WF_OFFER, frame);
    }
    return true;
}

struct wf_outbound *wf_outbound_pull_express(struct wf_channel *channel, struct wf_frame *frame, bool *bare)
{
    struct wf_session *session = channel->session;
    *bare = false;
    WF_LIST_EACH (link, following, &session->express_ready) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, express_link);
        struct wf_outbound *outbound = first_of(&connection->pending);
        if (bulk_would_take(connection))
            continue; /* no need to offer what goes at once */
        if (!wf_channel_open(channel, goes_whole(outbound) ? outbound->total : 0))
            return NULL;
        connection->pins += 1;
        *bare = bare_frame(outbound, frame);
        if (!*bare) {
            introduce(outbound);
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

void wf_outbound_credit_came(struct wf_session *session)
{
    WF_LIST_EACH (link, following, &session->express_ready) {
        wf_connection_ready(WF_CONTAINER(link, struct weft_connection, express_link));
    }
}

int wf_outbound_grant(struct wf_outbound *outbound, uint64_t sendable)
{
    if (sendable > outbound->total || outbound->kind == WF_OUTBOUND_READ)
        return -EPROTO;
    if (outbound->kind == WF_OUTBOUND_WRITE) {
        if (sendable != outbound->total || outbound->next != outbound->total)
            return -EPROTO;
        outbound->confirmed = true;
        check(outbound);
        return 0;
    }
    if (sendable > outbound->sendable)
        allow(outbound, sendable);
    requeue(outbound);
    return 0;
}

void wf_outbound_retire(struct wf_outbound *outbound, uint32_t length)
{
    outbound->unacknowledged -= 1;
    outbound->retired += length;
    requeue(outbound);
    check(outbound);
}

void wf_outbound_released(struct wf_outbound *outbound)
{
    outbound->in_engine -= 1;
    check(outbound);
}

void wf_outbound_answered(struct wf_outbound *outbound)
{
    complete(outbound, 0); /* done before: the landing completes the request */
    outbound->counterpart = NULL;
    destroy(outbound);
}

/* --- refusing --- */

void wf_outbound_stop(struct wf_outbound *outbound)
{
    if (outbound->stopped)
        return;
    outbound->connection->session->waiting -= outbound->sendable - outbound->next;
    outbound->stopped = true;
    requeue(outbound);
}

/* Too late to end otherwise: it is acknowledged, and only waits for the kernel to let go of its memory. */
static bool has_landed(const struct wf_outbound *outbound)
{
    if (outbound->kind == WF_OUTBOUND_READ)
        return false;
    if (outbound->kind == WF_OUTBOUND_WRITE)
        return outbound->confirmed;
    if (outbound->kind == WF_OUTBOUND_REPLY) /* all of it is under way: the asker will have it, whatever we say */
        return outbound->next == outbound->total;
    return outbound->introduced && outbound->next == outbound->total && outbound->unacknowledged == 0;
}

/* Ends one that the peer has not heard of. What was announced for it must be taken back, in its turn. */
static void refuse_unheard(struct wf_outbound *outbound, int status)
{
    struct wf_outbound *note = outbound->note, *list = outbound->list;
    leave_line(outbound);
    outbound->note = outbound->list = NULL;
    complete(outbound, status);
    if (outbound->counterpart)
        wf_inbound_forget(outbound->counterpart);
    outbound->counterpart = NULL;
    if (note) {
        complete(note, status);
        wf_outbound_drop(note);
    }
    if (list) {
        outbound->listed = has_landed(list);
        outbound->key = list->number;
        list->waiter = NULL;
        wf_outbound_refuse(list, status);
    }
    outbound->refused = outbound->stopped = true;
    outbound->status = status;
    if (outbound->listed || outbound->number != 0) {
        join_line(outbound, outbound->number != 0); /* what has its number waits behind none that has not */
        wf_connection_ready(outbound->connection);
    } else {
        destroy(outbound);
    }
}

void wf_outbound_refuse(struct wf_outbound *outbound, int status)
{
    struct wf_session *session = outbound->connection->session;
    if (outbound->refused || has_landed(outbound))
        return;
    if (!outbound->introduced) {
        refuse_unheard(outbound, status);
        return;
    }
    wf_outbound_stop(outbound);
    if (outbound->note) { /* it goes first, and comes back here */
        outbound->deferred = status;
        wf_outbound_refuse(outbound->note, status);
        return;
    }
    outbound->refused = true;
    outbound->status = status;
    if (outbound->kind == WF_OUTBOUND_READ) {
        wf_inbound_refuse(outbound->counterpart, status);
        wf_inbound_check(outbound->counterpart);
        return;
    }
    outbound->refuse_due = true;
    wf_list_push_back(&session->todo_outbounds, &outbound->todo_link);
    check(outbound);
}

void wf_outbound_refused_by_peer(struct wf_outbound *outbound, int status)
{
    outbound->refuse_seen = true;
    if (outbound->kind == WF_OUTBOUND_READ && outbound->counterpart)
        outbound->counterpart->refuse_seen = true;
    if (!outbound->refused)
        wf_outbound_refuse(outbound, status);
    else if (outbound->kind == WF_OUTBOUND_READ && outbound->counterpart)
        wf_inbound_check(outbound->counterpart);
    else
        check(outbound);
}

void wf_outbound_refuse_frame(struct wf_outbound *outbound, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = WF_REFUSE,
                               .flags = outbound->kind == WF_OUTBOUND_REPLY ? WF_FLAG_PEER : 0,
                               .data_off = WF_FRAME_BYTES,
                               .conn = outbound->connection->number,
                               .msg = outbound->number,
                               .offset = outbound->charge,
                               .key = (uint64_t)(int64_t)outbound->status,
                               .base = outbound->listed ? outbound->key : 0};
    outbound->refuse_due = false;
    outbound->refuse_sent = true;
    check(outbound);
}
