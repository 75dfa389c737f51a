#include "core/message/desk.h"

#include <stdlib.h>

#include "core/message/connection.h"
#include "core/message/outbound.h"
#include "core/message/ring.h"
#include "core/request/pieces.h"
#include "core/message/ready.h"
#include "core/request/request.h"
#include "wire/frame.h"
#include "wire/range.h"

static void init_lists(struct wf_desk *desk)
{
    struct wf_list *const lists[] = {&desk->rings,        &desk->todo_connections, &desk->backlog,
                                     &desk->orphans,      &desk->acceptors,        &desk->notes_due,
                                     &desk->regions_used, &desk->stage_waiting,    &desk->pieces};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        wf_list_init(lists[i]);
    for (int traffic = 0; traffic < WF_CLASSES; traffic++) {
        wf_list_init(&desk->bulk_ready[traffic]);
        wf_list_init(&desk->express_ready[traffic]);
        wf_list_init(&desk->todo_inbounds[traffic]);
        wf_list_init(&desk->todo_outbounds[traffic]);
    }
    for (int domain = 0; domain < WF_DOMAINS_MAX; domain++)
        wf_list_init(&desk->detached[domain]);
}

static uint64_t hash_connection(const struct wf_link *link)
{
    return wf_hash(0, WF_CONTAINER(link, struct weft_connection, hash_link)->number);
}

static uint64_t hash_inbound(const struct wf_link *link)
{
    const struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, hash_link);
    return wf_hash(inbound->connection->number, inbound->number);
}

static uint64_t hash_outbound(const struct wf_link *link)
{
    const struct wf_outbound *outbound = WF_CONTAINER(link, struct wf_outbound, hash_link);
    return wf_hash(outbound->connection->number, outbound->number);
}

static uint64_t hash_posted(const struct wf_link *link)
{
    const struct weft_request *request = WF_CONTAINER(link, struct weft_request, match_link);
    return wf_hash(request->connection->number, request->tag);
}

static uint64_t hash_unexpected(const struct wf_link *link)
{
    const struct wf_inbound *inbound = WF_CONTAINER(link, struct wf_inbound, tag_link);
    return wf_hash(inbound->connection->number, inbound->tag);
}

static void init_tables(struct wf_desk *desk)
{
    wf_table_init(&desk->connections, hash_connection);
    wf_table_init(&desk->inbounds, hash_inbound);
    wf_table_init(&desk->outbounds, hash_outbound);
    wf_table_init(&desk->posted, hash_posted);
    wf_table_init(&desk->unexpected, hash_unexpected);
}

static void fini_tables(struct wf_desk *desk)
{
    wf_table_fini(&desk->connections);
    wf_table_fini(&desk->inbounds);
    wf_table_fini(&desk->outbounds);
    wf_table_fini(&desk->posted);
    wf_table_fini(&desk->unexpected);
}

static void init_ring(struct wf_ring *ring, uint64_t rails, unsigned traffic)
{
    wf_link_init(&ring->all_link);
    wf_link_init(&ring->ready_link);
    wf_list_init(&ring->connections);
    ring->rails = rails;
    ring->traffic = traffic;
}

int wf_desk_init(struct wf_desk *desk, const struct wf_desk_neighbours *neighbours)
{
    desk->guard = neighbours->guard;
    desk->terms = neighbours->terms;
    desk->book = neighbours->book;
    desk->shares = neighbours->shares;
    desk->lines = neighbours->lines;
    desk->kicks = neighbours->kicks;
    desk->registry = neighbours->registry;
    desk->endpoints = neighbours->endpoints;
    desk->hold_twin = neighbours->hold_twin;
    const struct wf_tuning *tuning = &desk->guard->world->tuning;
    size_t slot = desk->terms->eager ? desk->terms->eager : 1;
    init_lists(desk);
    init_tables(desk);
    for (unsigned traffic = 0; traffic < WF_CLASSES; traffic++)
        init_ring(&desk->any_ring[traffic], WF_RAILS_ANY, traffic);
    wf_finished_init(&desk->closed_numbers[0]);
    wf_finished_init(&desk->closed_numbers[1]);
    wf_pool_init(&desk->inbound_pool, sizeof(struct wf_inbound), 64, 0);
    wf_pool_init(&desk->outbound_pool, sizeof(struct wf_outbound), 64, 0);
    wf_pool_init(&desk->slot_pool, slot, 16, tuning->small_pool / slot ? tuning->small_pool / slot : 1);
    wf_pool_init(&desk->range_pool, WF_RANGE_MAX * sizeof(struct wf_range), 8, 0);
    desk->unsolicited_limit = desk->terms->limits.unsolicited;
    int result = wf_blocks_init(&desk->blocks, tuning->unexpected);
    desk->unsolicited_told = (uint64_t)desk->blocks.count * WF_BLOCK_BYTES;
    return result;
}

void wf_desk_fini(struct wf_desk *desk)
{
    WF_DESK_EACH_CONNECTION (connection, desk) {
        wf_connection_free(connection);
    }
    struct wf_link *link;
    while ((link = wf_list_pop_front(&desk->rings)))
        free(WF_CONTAINER(link, struct wf_ring, all_link));
    while ((link = wf_list_pop_front(&desk->pieces))) /* of operations that had not ended before the session */
        free(WF_CONTAINER(link, struct wf_pieces, link));
    fini_tables(desk);
    wf_finished_fini(&desk->closed_numbers[0]);
    wf_finished_fini(&desk->closed_numbers[1]);
    wf_pool_fini(&desk->inbound_pool);
    wf_pool_fini(&desk->outbound_pool);
    wf_pool_fini(&desk->slot_pool);
    wf_pool_fini(&desk->range_pool);
    wf_blocks_fini(&desk->blocks);
}

/* --- credit for unsolicited bytes --- */

void wf_desk_settle(struct wf_desk *desk, uint64_t charge)
{
    desk->unsolicited_settled += charge;
    uint64_t pool = (uint64_t)desk->blocks.count * WF_BLOCK_BYTES;
    uint64_t step = pool / 4;
    if (desk->unsolicited_settled + pool - desk->unsolicited_told >= (step ? step : 1))
        desk->credit_due = true;
}

void wf_desk_credit(struct wf_desk *desk, uint64_t limit)
{
    if (limit <= desk->unsolicited_limit)
        return;
    desk->unsolicited_limit = limit;
    wf_ready_credit_came(desk);
}

void wf_desk_credit_frame(struct wf_desk *desk, struct wf_frame *frame)
{
    *frame = (struct wf_frame){.type = WF_CREDIT};
    frame->offset = desk->unsolicited_settled + (uint64_t)desk->blocks.count * WF_BLOCK_BYTES;
    desk->unsolicited_told = frame->offset;
    desk->credit_due = false;
}

void wf_desk_expect_frames(struct wf_desk *desk, uint32_t frames)
{
    desk->range_pool.limit += frames;
}

uint64_t wf_desk_waiting(const struct wf_desk *desk, unsigned traffic)
{
    uint64_t credit = desk->unsolicited_limit - desk->unsolicited_spent, in_line = desk->in_line[traffic];
    return desk->waiting[traffic] + (in_line < credit ? in_line : credit);
}

void wf_desk_wait(struct wf_desk *desk, unsigned traffic, int64_t bytes)
{
    desk->waiting[traffic] += (uint64_t)bytes;
}

void wf_desk_repeat_credit(struct wf_desk *desk)
{
    desk->credit_due = true;
}

/* --- lists that other rooms take from, or add to --- */

struct wf_inbound *wf_desk_next_inbound(struct wf_desk *desk, unsigned traffic)
{
    struct wf_link *link = wf_list_pop_front(&desk->todo_inbounds[traffic]);
    return link ? WF_CONTAINER(link, struct wf_inbound, todo_link) : NULL;
}

struct wf_outbound *wf_desk_next_outbound(struct wf_desk *desk, unsigned traffic)
{
    struct wf_link *link = wf_list_pop_front(&desk->todo_outbounds[traffic]);
    return link ? WF_CONTAINER(link, struct wf_outbound, todo_link) : NULL;
}

uint32_t wf_desk_next_number(const struct wf_desk *desk)
{
    return 2 * desk->next_connection + (desk->terms->dialer ? 1 : 2);
}

void wf_desk_take_number(struct wf_desk *desk)
{
    desk->next_connection += 1;
}

void wf_desk_accept(struct wf_desk *desk, struct weft_request *request)
{
    wf_list_push_back(&desk->acceptors, &request->match_link);
}

void wf_desk_keep(struct wf_desk *desk, struct wf_pieces *pieces)
{
    wf_list_push_back(&desk->pieces, &pieces->link);
}

/* --- rings --- */

struct wf_ring *wf_desk_ring(struct wf_desk *desk, uint64_t rails, unsigned traffic)
{
    if (rails == WF_RAILS_ANY)
        return &desk->any_ring[traffic];
    WF_LIST_EACH (link, following, &desk->rings) {
        struct wf_ring *ring = WF_CONTAINER(link, struct wf_ring, all_link);
        if (ring->rails == rails && ring->traffic == traffic)
            return ring;
    }
    struct wf_ring *ring = malloc(sizeof *ring);
    if (!ring)
        return NULL;
    init_ring(ring, rails, traffic);
    wf_list_push_back(&desk->rings, &ring->all_link);
    return ring;
}

void wf_desk_set_ready(struct wf_desk *desk, struct weft_connection *connection, bool ready)
{
    struct wf_ring *ring = connection->ring;
    if (ready == wf_link_in_list(&connection->ready_link))
        return;
    if (ready)
        wf_list_push_back(&ring->connections, &connection->ready_link);
    else
        wf_link_remove(&connection->ready_link);
    if (wf_list_empty(&ring->connections))
        wf_link_remove(&ring->ready_link);
    else if (!wf_link_in_list(&ring->ready_link))
        wf_list_push_back(&desk->bulk_ready[ring->traffic], &ring->ready_link);
}

void wf_desk_turn_over(struct wf_desk *desk, struct weft_connection *connection)
{
    struct wf_ring *ring = connection->ring;
    wf_link_remove(&connection->ready_link);
    wf_list_push_back(&ring->connections, &connection->ready_link);
    wf_link_remove(&ring->ready_link);
    wf_list_push_back(&desk->bulk_ready[ring->traffic], &ring->ready_link);
}
