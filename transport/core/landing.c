#include "core/landing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/connection.h"
#include "core/match.h"
#include "core/request.h"
#include "core/session.h"

int wf_blocks_init(struct wf_blocks *blocks, uint64_t bytes)
{
    memset(blocks, 0, sizeof *blocks);
    blocks->first_free = WF_NO_BLOCK;
    uint64_t count = bytes / WF_BLOCK_BYTES;
    if (count == 0)
        return 0;
    /* Mapped, not allocated: pages that no unexpected message ever needs cost nothing. */
    void *memory = mmap(NULL, count * WF_BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return -ENOMEM;
    blocks->memory = memory;
    blocks->count = (uint32_t)count;
    blocks->next = malloc(count * sizeof *blocks->next);
    if (!blocks->next)
        return -ENOMEM;
    for (uint32_t i = 0; i < blocks->count; i++)
        blocks->next[i] = i + 1 < blocks->count ? i + 1 : WF_NO_BLOCK;
    blocks->first_free = 0;
    blocks->free = blocks->count;
    return 0;
}

void wf_blocks_fini(struct wf_blocks *blocks)
{
    if (blocks->memory)
        munmap(blocks->memory, (size_t)blocks->count * WF_BLOCK_BYTES);
    free(blocks->next);
    memset(blocks, 0, sizeof *blocks);
}

/* A chain of blocks for `bytes`, or WF_NO_BLOCK: the peer has sent more than its credit. */
static uint32_t take_blocks(struct wf_blocks *blocks, uint64_t bytes)
{
    uint32_t wanted = (uint32_t)(wf_unsolicited_charge(bytes) / WF_BLOCK_BYTES);
    if (wanted > blocks->free)
        return WF_NO_BLOCK;
    uint32_t first = blocks->first_free, last = first;
    for (uint32_t i = 1; i < wanted; i++)
        last = blocks->next[last];
    blocks->first_free = blocks->next[last];
    blocks->next[last] = WF_NO_BLOCK;
    blocks->free -= wanted;
    return first;
}

static void give_blocks(struct wf_blocks *blocks, uint32_t first)
{
    while (first != WF_NO_BLOCK) {
        uint32_t next = blocks->next[first];
        blocks->next[first] = blocks->first_free;
        blocks->first_free = first;
        blocks->free += 1;
        first = next;
    }
}

static uint64_t burst_of(const struct wf_session *session, uint64_t total, bool offered)
{
    if (offered)
        return 0;
    if (total <= session->limits.eager)
        return total;
    return total < session->limits.first_burst ? total : session->limits.first_burst;
}

struct wf_inbound *wf_inbound_create(struct weft_connection *connection, uint64_t number, uint64_t tag, uint64_t total,
                                     bool offered)
{
    struct wf_session *session = connection->session;
    struct wf_inbound *inbound = wf_pool_take(&session->inbound_pool);
    if (!inbound)
        return NULL;
    memset(inbound, 0, offsetof(struct wf_inbound, arrived));
    wf_range_init(&inbound->arrived);
    wf_link_init(&inbound->tag_link);
    wf_link_init(&inbound->order_link);
    wf_link_init(&inbound->todo_link);
    inbound->connection = connection;
    inbound->number = number;
    inbound->tag = tag;
    inbound->total = total;
    inbound->offered = offered;
    inbound->burst = burst_of(session, total, offered);
    inbound->settled = inbound->burst == 0;
    inbound->block = WF_NO_BLOCK;
    if (inbound->burst) {
        inbound->block = take_blocks(&session->blocks, inbound->burst);
        if (inbound->block == WF_NO_BLOCK) {
            wf_pool_give(&session->inbound_pool, inbound);
            return NULL;
        }
    }
    wf_list_push_back(&session->inbound_hash[wf_hash(connection->number, number)], &inbound->hash_link);
    connection->inbounds += 1;
    return inbound;
}

struct wf_inbound *wf_inbound_find(struct weft_connection *connection, uint64_t number)
{
    struct wf_list *bucket = &connection->session->inbound_hash[wf_hash(connection->number, number)];
    WF_LIST_EACH (link, following, bucket) {
        struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, hash_link);
        if (inbound->number == number && inbound->connection == connection)
            return inbound;
    }
    return NULL;
}

int wf_inbound_mark(struct wf_inbound *inbound, uint64_t start, uint64_t end)
{
    int result = wf_range_add(&inbound->arrived, start, end);
    if (result != -ENOSPC || wf_range_borrowed(&inbound->arrived))
        return result;
    struct wf_range *array = wf_pool_take(&inbound->connection->session->range_pool);
    if (!array)
        return -ENOMEM;
    wf_range_lend(&inbound->arrived, array, WF_RANGE_MAX);
    return wf_range_add(&inbound->arrived, start, end);
}

int wf_inbound_pool_places(const struct wf_inbound *inbound, uint64_t offset, uint64_t length, struct iovec *iov,
                           int max, uint64_t *covered)
{
    const struct wf_blocks *blocks = &inbound->connection->session->blocks;
    uint32_t block = inbound->block;
    for (uint64_t skip = offset / WF_BLOCK_BYTES; skip > 0; skip--)
        block = blocks->next[block];
    uint64_t within = offset % WF_BLOCK_BYTES;
    int count = 0;
    *covered = 0;
    while (*covered < length && count < max) {
        uint64_t piece = WF_BLOCK_BYTES - within;
        if (piece > length - *covered)
            piece = length - *covered;
        uint8_t *place = blocks->memory + (size_t)block * WF_BLOCK_BYTES + within;
        /* Neighbouring blocks are one piece: a fresh pool hands them out in order. */
        if (count > 0 && (uint8_t *)iov[count - 1].iov_base + iov[count - 1].iov_len == place)
            iov[count - 1].iov_len += piece;
        else
            iov[count++] = (struct iovec){place, piece};
        *covered += piece;
        within = 0;
        block = blocks->next[block];
    }
    return count;
}

int wf_inbound_places(const struct wf_inbound *inbound, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                      uint64_t *covered)
{
    if (inbound->state != WF_INBOUND_MATCHED)
        return wf_inbound_pool_places(inbound, offset, length, iov, max, covered);
    iov[0] = (struct iovec){(uint8_t *)inbound->request->buffer + offset, length};
    *covered = length;
    return 1;
}

void wf_inbound_settle(struct wf_inbound *inbound)
{
    struct wf_session *session = inbound->connection->session;
    if (inbound->settled)
        return;
    inbound->settled = true;
    /* The blocks first: credit that is given back may be used at once. */
    give_blocks(&session->blocks, inbound->block);
    inbound->block = WF_NO_BLOCK;
    wf_session_settle(session, wf_unsolicited_charge(inbound->burst));
}

void wf_inbound_copy_out(struct wf_inbound *inbound, uint64_t start, uint64_t end)
{
    struct wf_session *session = inbound->connection->session;
    uint8_t *target = inbound->request->buffer;
    while (start < end) {
        struct iovec pieces[WF_RX_SEGMENTS];
        uint64_t covered;
        int count = wf_inbound_pool_places(inbound, start, end - start, pieces, WF_RX_SEGMENTS, &covered);
        wf_session_unlock(session);
        uint64_t at = start;
        for (int i = 0; i < count; i++) {
            memcpy(target + at, pieces[i].iov_base, pieces[i].iov_len);
            at += pieces[i].iov_len;
        }
        wf_session_lock(session);
        start += covered;
    }
}

void wf_inbound_land(struct wf_inbound *inbound)
{
    if (inbound->arrived.covered == 0)
        return;
    /* What is present now lies in the pool; what arrives from now on goes to the receive's memory, except for
     * payloads already on their way to the pool, which copy themselves when they are complete. */
    struct wf_range present[WF_RANGE_MAX];
    uint32_t count = inbound->arrived.count;
    memcpy(present, inbound->arrived.ranges, count * sizeof present[0]);
    inbound->claims += 1;
    for (uint32_t i = 0; i < count; i++)
        wf_inbound_copy_out(inbound, present[i].start, present[i].end);
    inbound->claims -= 1;
}

static void todo(struct wf_inbound *inbound)
{
    struct wf_session *session = inbound->connection->session;
    if (!wf_link_in_list(&inbound->todo_link))
        wf_list_push_back(&session->todo_inbounds, &inbound->todo_link);
}

/* Channels that are writing to a landing nobody wants any more must let go of it. */
static void redirect_claims(struct wf_inbound *inbound)
{
    struct wf_session *session = inbound->connection->session;
    if (inbound->claims == 0)
        return;
    for (int i = 0; i < session->channel_count; i++) {
        struct wf_channel *channel = session->channels[i];
        if (!channel || channel->rx.claim != inbound)
            continue;
        channel->rx.redirect = true;
        wf_worker_kick(&session->kicks[channel->rx.worker->index], NULL);
    }
}

void wf_inbound_refuse(struct wf_inbound *inbound, int status)
{
    if (inbound->state == WF_INBOUND_DRAINING)
        return;
    wf_match_remove(inbound);
    inbound->state = WF_INBOUND_DRAINING;
    inbound->refuse_status = status;
    inbound->grant_due = false;
    redirect_claims(inbound);
    /* A message that is here entirely needs no refusal: its sender is done with it. */
    if (inbound->arrived.covered < inbound->total && !inbound->refuse_sent) {
        inbound->refuse_due = true;
        todo(inbound);
    }
}

static void destroy(struct wf_inbound *inbound)
{
    struct weft_connection *connection = inbound->connection;
    struct wf_session *session = connection->session;
    wf_inbound_settle(inbound);
    if (wf_range_borrowed(&inbound->arrived))
        wf_pool_give(&session->range_pool, inbound->arrived.ranges);
    wf_link_remove(&inbound->hash_link);
    wf_link_remove(&inbound->todo_link);
    wf_match_remove(inbound);
    connection->inbounds -= 1;
    uint64_t number = inbound->number;
    wf_pool_give(&session->inbound_pool, inbound);
    wf_connection_finish_number(connection, number);
    wf_connection_check(connection);
}

static void finish_receive(struct wf_inbound *inbound, int status, uint64_t bytes)
{
    struct weft_request *request = inbound->request;
    if (!request)
        return;
    inbound->request = NULL;
    request->inbound = NULL;
    request->tag = inbound->tag;
    wf_request_complete(request, status, bytes);
}

void wf_inbound_check(struct wf_inbound *inbound)
{
    if (inbound->claims > 0)
        return;
    bool full = inbound->arrived.covered == inbound->total;
    if (inbound->state == WF_INBOUND_MATCHED) {
        if (wf_range_prefix(&inbound->arrived, inbound->burst))
            wf_inbound_settle(inbound);
        if (!full)
            return;
        finish_receive(inbound, 0, inbound->total);
        destroy(inbound);
    } else if (inbound->state == WF_INBOUND_DRAINING) {
        finish_receive(inbound, inbound->refuse_status, 0);
        /* Until the sender has said that it stops, its bytes must find the number alive. */
        if (!full && !(inbound->refuse_seen && inbound->refuse_sent))
            return;
        destroy(inbound);
    }
}
