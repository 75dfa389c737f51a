#include "core/outbound.h"

#include <errno.h>
#include <string.h>

#include "core/channel.h"
#include "core/connection.h"
#include "core/landing.h"
#include "core/request.h"
#include "core/session.h"

/* Small enough for one frame on the express channel. */
static bool is_small(const struct wf_session *session, uint64_t total)
{
    return total <= session->eager;
}

static uint64_t burst_of(const struct wf_session *session, uint64_t total)
{
    if (is_small(session, total))
        return total;
    return total < session->first_burst ? total : session->first_burst;
}

static bool has_credit(const struct wf_session *session, uint64_t burst)
{
    return wf_unsolicited_charge(burst) <= session->unsolicited_limit - session->unsolicited_spent;
}

static struct wf_outbound *first_of(const struct wf_list *list)
{
    struct wf_link *link = wf_list_first(list);
    return link ? WF_CONTAINER(link, struct wf_outbound, queue_link) : NULL;
}

static bool may_introduce(const struct weft_connection *connection)
{
    bool open = connection->state == WF_CONNECTION_OPEN || connection->state == WF_CONNECTION_CLOSING;
    return open && !wf_list_empty(&connection->pending) && connection->next_number <= connection->introduced_limit;
}

/* A large message at the head whose first bytes may go unsolicited: bulk channels introduce it. */
static bool bulk_may_introduce(const struct weft_connection *connection)
{
    if (!may_introduce(connection))
        return false;
    const struct wf_session *session = connection->session;
    uint64_t total = first_of(&connection->pending)->total, burst = burst_of(session, total);
    return !is_small(session, total) && burst > 0 && has_credit(session, burst);
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
    bool bulk = !wf_list_empty(&connection->sending) || bulk_may_introduce(connection);
    bool express = may_introduce(connection) && (!bulk_may_introduce(connection) || connection->small_pending > 0);
    set_member(&session->bulk_ready, &connection->ready_link, bulk);
    set_member(&session->express_ready, &connection->express_link, express);
}

static void destroy(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_session *session = connection->session;
    wf_link_remove(&outbound->queue_link);
    wf_link_remove(&outbound->hash_link);
    wf_link_remove(&outbound->todo_link);
    if (outbound->slot)
        wf_pool_give(&session->slot_pool, outbound->slot);
    wf_pool_give(&session->outbound_pool, outbound);
    connection->outbounds -= 1;
    wf_connection_ready(connection);
    wf_connection_check(connection);
}

static void complete(struct wf_outbound *outbound, int status)
{
    struct weft_request *request = outbound->request;
    if (!request)
        return;
    outbound->request = NULL;
    request->outbound = NULL;
    wf_request_complete(request, status, status ? 0 : outbound->total);
}

/* Ends what has nothing to wait for any more. */
static void check(struct wf_outbound *outbound)
{
    if (outbound->in_engine > 0)
        return;
    if (outbound->refused)
        complete(outbound, outbound->status);
    if (outbound->unacknowledged > 0)
        return;
    bool all = outbound->number != 0 && outbound->next == outbound->total && outbound->retired == outbound->total;
    if (all && !outbound->refused)
        complete(outbound, 0);
    if (all || (outbound->refuse_sent && outbound->refuse_seen))
        destroy(outbound);
}

int wf_outbound_post(struct weft_connection *connection, struct weft_request *request)
{
    struct wf_session *session = connection->session;
    struct wf_outbound *outbound = wf_pool_take(&session->outbound_pool);
    if (!outbound)
        return -ENOMEM;
    memset(outbound, 0, sizeof *outbound);
    wf_link_init(&outbound->hash_link);
    wf_link_init(&outbound->todo_link);
    outbound->connection = connection;
    outbound->request = request;
    outbound->data = request->buffer;
    outbound->tag = request->tag;
    outbound->total = request->length;
    request->outbound = outbound;
    connection->outbounds += 1;
    if (is_small(session, outbound->total)) {
        connection->small_pending += 1;
        if (outbound->total > 0)
            outbound->slot = wf_pool_take(&session->slot_pool);
        if (outbound->slot)
            memcpy(outbound->slot, outbound->data, outbound->total);
        if (outbound->slot || outbound->total == 0) {
            outbound->data = outbound->slot;
            complete(outbound, 0);
        }
    }
    wf_list_push_back(&connection->pending, &outbound->queue_link);
    wf_connection_ready(connection);
    return 0;
}

struct wf_outbound *wf_outbound_find(struct weft_connection *connection, uint64_t number)
{
    struct wf_list *bucket = &connection->session->outbound_hash[wf_hash(connection->number, number)];
    WF_LIST_EACH (link, following, bucket) {
        struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, hash_link);
        if (outbound->number == number && outbound->connection == connection)
            return outbound;
    }
    return NULL;
}

/* Gives the head of the queue its number; from now on the peer will hear of it. */
static void introduce(struct wf_outbound *outbound)
{
    struct weft_connection *connection = outbound->connection;
    struct wf_session *session = connection->session;
    if (is_small(session, outbound->total))
        connection->small_pending -= 1;
    outbound->number = connection->next_number++;
    wf_link_remove(&outbound->queue_link);
    wf_list_push_back(&session->outbound_hash[wf_hash(connection->number, outbound->number)], &outbound->hash_link);
}

static void frame_of(const struct wf_outbound *outbound, enum wf_frame_type type, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = (uint8_t)type,
                               .flags = WF_FLAG_TAGGED,
                               .data_off = WF_FRAME_BYTES,
                               .conn = outbound->connection->number,
                               .msg = outbound->number,
                               .total = outbound->total,
                               .key = outbound->tag};
}

/* Bytes up to `sendable` may go: they wait for a channel. */
static void allow(struct wf_outbound *outbound, uint64_t sendable)
{
    if (!outbound->refused)
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
    outbound->charge = wf_unsolicited_charge(burst);
    outbound->connection->session->unsolicited_spent += outbound->charge;
    outbound->burst = burst;
    allow(outbound, burst);
}

static bool can_send(const struct wf_outbound *outbound)
{
    return outbound->next < outbound->sendable && outbound->unacknowledged < WF_CHUNKS_UNACKNOWLEDGED &&
           !outbound->refused;
}

/* In connection.sending exactly while it can send. */
static void requeue(struct wf_outbound *outbound)
{
    bool queued = wf_link_in_list(&outbound->queue_link);
    if (outbound->number == 0)
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

static uint64_t outstanding(const struct wf_channel *channel)
{
    return channel->tx.window.spent_bytes - channel->tx.acknowledged_bytes;
}

/* The rate of the fastest channel measured, or 1 where none is: then all count the same. */
static double highest_rate(const struct wf_session *session, int64_t now)
{
    double highest = 0;
    for (int i = 0; i < session->channel_count; i++) {
        const struct wf_channel *channel = session->channels[i];
        if (!channel || channel->kind != WF_CHANNEL_BULK || channel->tx.rate.bytes_per_ns <= 0)
            continue;
        double rate = wf_rate_estimate(&channel->tx.rate, now, outstanding(channel), 0);
        highest = rate > highest ? rate : highest;
    }
    return highest > 0 ? highest : 1;
}

/* The most that this channel may take of the next message, so that all rails finish together. */
static uint64_t share_of(const struct wf_channel *channel, uint64_t waiting)
{
    const struct wf_session *session = channel->session;
    if (session->bulk_count < 2)
        return session->chunk;
    struct wf_lane lanes[WF_CHANNELS_MAX];
    int count = 0, mine = 0;
    int64_t now = wf_context_now(session->context);
    double highest = highest_rate(session, now);
    for (int i = 0; i < session->channel_count; i++) {
        const struct wf_channel *other = session->channels[i];
        if (!other || other->kind != WF_CHANNEL_BULK)
            continue;
        if (other == channel)
            mine = count;
        double rate = wf_rate_estimate(&other->tx.rate, now, outstanding(other), highest);
        lanes[count++] = (struct wf_lane){rate, outstanding(other)};
    }
    uint64_t under_way = 0;
    for (int i = 0; i < count; i++)
        under_way += lanes[i].outstanding;
    if (under_way == 0) /* no acknowledgement will come to look again: whoever asks may take */
        return session->chunk;
    uint64_t chunk = session->chunk;
    if (channel->tx.rate.bytes_per_ns <= 0 && chunk > WF_SPREAD_PROBE_BYTES)
        chunk = WF_SPREAD_PROBE_BYTES;
    return wf_spread_share(lanes, count, mine, waiting, chunk);
}

/* The next chunk of one connection for a bulk channel. Decides first and changes after: a message once introduced must
 * not be left without a place in a queue because the answer has changed with the clock. */
static struct wf_outbound *next_chunk(struct wf_channel *channel, struct weft_connection *connection,
                                      struct wf_frame *frame)
{
    struct wf_session *session = connection->session;
    struct wf_outbound *outbound = first_of(&connection->sending);
    bool fresh = !outbound;
    if (fresh && !bulk_may_introduce(connection))
        return NULL;
    if (fresh)
        outbound = first_of(&connection->pending);
    uint64_t burst = fresh ? burst_of(session, outbound->total) : outbound->burst;
    /* No chunk crosses the end of the burst: what is unsolicited must be plain from the offset alone. */
    uint64_t limit = outbound->next < burst ? burst : outbound->sendable;
    uint64_t length = limit - outbound->next;
    uint64_t share = share_of(channel, session->waiting + (fresh ? burst : 0));
    if (length > share)
        length = share;
    if (length == 0 || !wf_channel_open(channel, length))
        return NULL;
    if (fresh) {
        introduce(outbound);
        spend(outbound, burst);
    }
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

/* Is there a bulk channel that would introduce a large message right now? */
static bool bulk_is_idle(const struct wf_session *session)
{
    for (int i = 0; i < session->channel_count; i++) {
        const struct wf_channel *channel = session->channels[i];
        if (channel && channel->kind == WF_CHANNEL_BULK && channel->up && channel->tx.idle &&
            wf_channel_open(channel, session->chunk))
            return true;
    }
    return false;
}

struct wf_outbound *wf_outbound_pull_express(struct wf_channel *channel, struct wf_frame *frame, bool *offer)
{
    struct wf_session *session = channel->session;
    *offer = false;
    WF_LIST_EACH (link, following, &session->express_ready) {
        struct weft_connection *connection = WF_CONTAINER(link, struct weft_connection, express_link);
        struct wf_outbound *outbound = first_of(&connection->pending);
        bool credit = has_credit(session, burst_of(session, outbound->total));
        bool small = is_small(session, outbound->total);
        if (!small && bulk_may_introduce(connection) && bulk_is_idle(session))
            continue; /* no need to offer what goes at once */
        if (!wf_channel_open(channel, small && credit ? outbound->total : 0))
            return NULL;
        introduce(outbound);
        if (small && credit) {
            spend(outbound, outbound->total);
            take_chunk(outbound, outbound->total, frame);
        } else {
            frame_of(outbound, WF_OFFER, frame);
            *offer = true;
        }
        wf_link_remove(&connection->express_link); /* to the end of the ring, if it has more */
        wf_connection_ready(connection);
        return *offer ? NULL : outbound;
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
    if (sendable > outbound->total)
        return -EPROTO;
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

void wf_outbound_refuse(struct wf_outbound *outbound, int status)
{
    struct wf_session *session = outbound->connection->session;
    /* Acknowledged entirely, it only waits for the kernel to let go of its memory: too late to end otherwise. */
    bool landed = outbound->number != 0 && outbound->next == outbound->total && outbound->unacknowledged == 0;
    if (outbound->refused || landed)
        return;
    session->waiting -= outbound->sendable - outbound->next;
    outbound->refused = true;
    outbound->status = status;
    if (outbound->number == 0) { /* the peer never heard of it */
        if (is_small(session, outbound->total))
            outbound->connection->small_pending -= 1;
        wf_link_remove(&outbound->queue_link);
        complete(outbound, status);
        destroy(outbound);
        return;
    }
    outbound->refuse_due = true;
    wf_list_push_back(&session->todo_outbounds, &outbound->todo_link);
    requeue(outbound);
    check(outbound);
}

void wf_outbound_refused_by_peer(struct wf_outbound *outbound, int status)
{
    outbound->refuse_seen = true;
    if (!outbound->refused)
        wf_outbound_refuse(outbound, status);
    else
        check(outbound);
}

void wf_outbound_refuse_sent(struct wf_outbound *outbound)
{
    outbound->refuse_due = false;
    outbound->refuse_sent = true;
    check(outbound);
}
