/* conform_flow.c: messages over comms, posted and tested as NCCL's progress thread does, and every byte verified. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "conform.h"

#define GUARD 64                              /* bytes behind every buffer that nobody writes */
#define POISON 0xDB                           /* what stands in memory that is not the plugin's */
#define SIZES_MAX 32                          /* numbers that NCCL gives to test() */
#define STALE ((void *)(uintptr_t)0xBAD0BAD0) /* a request of before: isend() overwrites it in any case */
#define LIVE_MAX (NCCL_NET_MAX_REQUESTS * CONFORM_SLOTS_MAX)

struct live {
    void *request; /* NULL: completed by the marker's leave, its bytes are awaited */
    int item;
    int place;
};

/* One side of a flow in this process. An item is a receive with all its slots, or one send. */
struct end {
    const struct flow *flow;
    bool active;
    bool sending;
    void *comm;
    unsigned char *arena;
    size_t arena_size, stride;
    void *mhandle;
    int items, window;
    int next; /* item that is posted next */
    struct live live[LIVE_MAX];
    int live_count;
    bool taken[LIVE_MAX]; /* places of the arena */
};

struct flow_ends {
    struct end send, recv;
};

/* ------------------------------------------------------------------------------------------- what a flow consists of
 */

static int slots_of(const struct flow *flow)
{
    return flow->slots ? flow->slots : 1;
}

static uint64_t key_of(const struct flow *flow, int group, int slot)
{
    return mix(mix(flow->seed, (uint64_t)flow->link->id), (uint64_t)(group * CONFORM_SLOTS_MAX + slot));
}

static size_t size_of(const struct flow *flow, int group, int slot)
{
    if (flow->sizes)
        return flow->sizes[(group * slots_of(flow) + slot) % flow->size_count];
    uint64_t chance = mix(key_of(flow, group, slot), 1);
    switch (chance % 8) {
    case 0:
        return 0;
    case 1:
    case 2:
        return (chance >> 8) % (flow->largest < 256 ? flow->largest + 1 : 256);
    default:
        return (chance >> 8) % (flow->largest + 1);
    }
}

static size_t room_of(const struct flow *flow, int group, int slot)
{
    size_t size = size_of(flow, group, slot);
    return flow->exact ? size : size + mix(key_of(flow, group, slot), 2) % (flow->largest - size + 1);
}

static int tag_of(const struct flow *flow, int slot)
{
    return 1000 + flow->link->id * CONFORM_SLOTS_MAX + (flow->twins ? slot / 2 : slot);
}

/* The slot that the send at `position` of a group goes into: sends come in any order, but of two with one tag the first
 * one gets the first slot. */
static int slot_at(const struct flow *flow, int group, int position)
{
    int slots = slots_of(flow), order[CONFORM_SLOTS_MAX] = {0};
    for (int i = 1; i < slots; i++)
        order[i] = i;
    for (int i = slots - 1; i > 0; i--) {
        int other = (int)(mix(key_of(flow, group, i), 3) % (unsigned)(i + 1)), keep = order[i];
        order[i] = order[other];
        order[other] = keep;
    }
    int tag = tag_of(flow, order[position]), earlier = 0;
    for (int i = 0; i < position; i++)
        earlier += tag_of(flow, order[i]) == tag;
    for (int slot = 0; slot < slots; slot++) {
        if (tag_of(flow, slot) == tag && !earlier--)
            return slot;
    }
    return -1;
}

/* ------------------------------------------------------------------------------------------- posting */

static unsigned char *buffer(const struct end *end, int place, int slot)
{
    int slots = end->sending ? 1 : slots_of(end->flow);
    return end->arena + (size_t)(place * slots + slot) * end->stride;
}

static int free_place(struct end *end)
{
    int place = 0;
    while (end->taken[place])
        place++;
    return place;
}

static void *post_send(struct end *end, int place)
{
    const struct flow *flow = end->flow;
    int group = end->next / slots_of(flow), slot = slot_at(flow, group, end->next % slots_of(flow));
    size_t size = size_of(flow, group, slot);
    unsigned char *data = buffer(end, place, 0);
    void *request = STALE;
    fill(data, size, key_of(flow, group, slot));
    MUST(net_isend(end->comm, data, size, tag_of(flow, slot), end->mhandle, &request));
    CHECK(request != STALE, "isend leaves what stood in the request");
    return request;
}

static void *post_receive(struct end *end, int place)
{
    const struct flow *flow = end->flow;
    int slots = slots_of(flow), tags[CONFORM_SLOTS_MAX];
    void *data[CONFORM_SLOTS_MAX], *mhandles[CONFORM_SLOTS_MAX];
    size_t sizes[CONFORM_SLOTS_MAX];
    for (int i = 0; i < slots; i++) {
        data[i] = buffer(end, place, i);
        sizes[i] = room_of(flow, end->next, i);
        tags[i] = tag_of(flow, i);
        mhandles[i] = end->mhandle;
        memset(data[i], POISON, end->stride);
    }
    void *request = flow->optional ? NCCL_NET_OPTIONAL_RECV : NULL;
    MUST(net_irecv(end->comm, slots, data, sizes, tags, mhandles, &request));
    CHECK(request != NCCL_NET_OPTIONAL_RECV, "irecv leaves the marker in the request: NCCL takes it for one");
    return request;
}

static bool post(struct end *end)
{
    if (end->next == end->items || end->live_count == end->window)
        return false;
    int place = free_place(end);
    void *request = end->sending ? post_send(end, place) : post_receive(end, place);
    if (!request)
        return false;
    for (int i = 0; i < end->live_count; i++)
        CHECK(end->live[i].request != request, "one request for two items");
    end->live[end->live_count++] = (struct live){.request = request, .item = end->next++, .place = place};
    end->taken[place] = true;
    return true;
}

/* ------------------------------------------------------------------------------------------- completion */

static void verify(const struct end *end, const struct live *live, const int *reported)
{
    const struct flow *flow = end->flow;
    for (int slot = 0; slot < slots_of(flow); slot++) {
        size_t size = size_of(flow, live->item, slot), room = room_of(flow, live->item, slot);
        const unsigned char *data = buffer(end, live->place, slot);
        CHECK(flow->optional || reported[slot] == (int)size,
              "link %d, receive %d, slot %d of %d: %d bytes are reported, %zu were sent", flow->link->id, live->item,
              slot, slots_of(flow), reported[slot], size);
        int64_t at = wrong(data, size, key_of(flow, live->item, slot));
        CHECK(at < 0, "link %d, receive %d, slot %d of %d: byte %lld of %zu is wrong", flow->link->id, live->item, slot,
              slots_of(flow), (long long)at, size);
        for (size_t i = room; i < end->stride; i++)
            CHECK(data[i] == POISON, "link %d, receive %d, slot %d: written %zu bytes behind a buffer of %zu",
                  flow->link->id, live->item, slot, i - room, room);
    }
}

/* The marker lets a receive complete before its bytes are there. */
static bool bytes_there(const struct end *end, const struct live *live)
{
    return wrong(buffer(end, live->place, 0), size_of(end->flow, live->item, 0), key_of(end->flow, live->item, 0)) < 0;
}

static void end_live(struct end *end, int index, const int *reported)
{
    struct live live = end->live[index];
    if (end->sending)
        memset(buffer(end, live.place, 0), POISON, end->stride);
    else
        verify(end, &live, reported);
    end->taken[live.place] = false;
    end->live_count--;
    memmove(&end->live[index], &end->live[index + 1], (size_t)(end->live_count - index) * sizeof live);
}

/* NCCL flushes what a network card has written to GPU memory, and tests what it gets back, if that is not NULL. */
static void flush(struct end *end, struct live *live)
{
    void *data = buffer(end, live->place, 0), *request = STALE;
    int size = (int)room_of(end->flow, live->item, 0);
    bool done = false;
    MUST(net_iflush(end->comm, 1, &data, &size, &end->mhandle, &request));
    CHECK(request != STALE, "iflush leaves what stood in the request");
    while (request && !done)
        MUST(net_test(request, &done, &size));
}

static bool test_one(struct end *end, int index)
{
    struct live *live = &end->live[index];
    int sizes[SIZES_MAX], slots = end->sending ? 1 : slots_of(end->flow);
    bool done = false;
    for (int i = 0; i < SIZES_MAX; i++)
        sizes[i] = -1;
    if (live->request) {
        MUST(net_test(live->request, &done, sizes));
        if (!done)
            return false;
        for (int i = slots; i < SIZES_MAX; i++)
            CHECK(sizes[i] == -1, "test writes size %d of a request with %d: NCCL adds all 32", i, slots);
        if (!end->sending)
            CHECK(net_irecv_consumed(end->comm, slots, live->request) == NCCL_SUCCESS,
                  "irecvConsumed fails: NCCL calls it after every receive, where there is one");
        if (!end->sending && net_table.iflush)
            flush(end, live);
        if (!end->sending && end->flow->optional)
            live->request = NULL;
    }
    if (!live->request && !bytes_there(end, live))
        return false;
    end_live(end, index, sizes);
    return true;
}

static bool test_some(struct end *end, uint64_t *chance)
{
    if (!end->live_count || (end->flow->all_posted && end->next < end->window && end->next < end->items))
        return false;
    switch (end->flow->order) {
    case OLDEST:
        return test_one(end, 0);
    case YOUNGEST: /* and no other one: it has to carry those before it along */
        return test_one(end, end->live_count - 1);
    default:
        *chance = mix(*chance, 4);
        return test_one(end, (int)(*chance % (unsigned)end->live_count));
    }
}

/* ------------------------------------------------------------------------------------------- the progress thread */

struct job {
    struct rank *rank;
    struct flow *flows;
    int count;
};

static struct job jobs[CONFORM_RANKS_MAX];

static bool end_moves(struct end *end, uint64_t *chance)
{
    if (!end->active)
        return false;
    bool moved = post(end);
    return test_some(end, chance) || moved;
}

static int items_left(const struct end *end)
{
    return end->active ? end->items - end->next + end->live_count : 0;
}

static void progress(void *arg)
{
    const struct job *job = arg;
    int64_t limit = now_ms() + CONFORM_LIMIT_MS;
    uint64_t chance = mix(conform.seed, (uint64_t)conform.me);
    int left = 1;
    while (left) {
        bool moved = false;
        left = 0;
        for (int i = 0; i < job->count; i++) {
            struct flow_ends *ends = job->flows[i].ends;
            if (&ranks[job->flows[i].link->rank] != job->rank)
                continue;
            moved |= end_moves(&ends->send, &chance);
            moved |= end_moves(&ends->recv, &chance);
            int of_this = items_left(&ends->send) + items_left(&ends->recv);
            left += of_this;
            CHECK(!of_this || now_ms() < limit,
                  "nothing moves: link %d has %d sends and %d receives left, %d and %d under way",
                  job->flows[i].link->id, items_left(&ends->send), items_left(&ends->recv), ends->send.live_count,
                  ends->recv.live_count);
        }
        if (moved)
            limit = now_ms() + CONFORM_LIMIT_MS;
        else
            sched_yield();
    }
}

/* ------------------------------------------------------------------------------------------- beginning and end */

static void end_init(struct end *end, const struct flow *flow, bool sending)
{
    int window = flow->window ? flow->window : 8;
    end->flow = flow;
    end->active = true;
    end->sending = sending;
    end->comm = sending ? flow->link->send : flow->link->recv;
    end->items = sending ? flow->messages * slots_of(flow) : flow->messages;
    end->window = sending ? window * slots_of(flow) : window;
    end->stride = flow->largest + GUARD;
    end->arena_size = (size_t)(window * slots_of(flow)) * end->stride;
    end->arena = mmap(NULL, end->arena_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(end->arena != MAP_FAILED, "no %zu bytes", end->arena_size);
    MUST(net_reg(end->comm, end->arena, end->arena_size, NCCL_PTR_HOST, &end->mhandle));
}

static void end_fini(struct end *end)
{
    if (!end->active)
        return;
    MUST(net_dereg(end->comm, end->mhandle));
    munmap(end->arena, end->arena_size);
}

static void register_all(void *arg)
{
    const struct job *job = arg;
    for (int i = 0; i < job->count; i++) {
        struct flow *flow = &job->flows[i];
        if (&ranks[flow->link->rank] != job->rank)
            continue;
        flow->ends = calloc(1, sizeof *flow->ends);
        CHECK(flow->ends, "no memory");
        if (flow->link->from == conform.me)
            end_init(&flow->ends->send, flow, true);
        if (flow->link->to == conform.me)
            end_init(&flow->ends->recv, flow, false);
    }
}

static void deregister_all(void *arg)
{
    const struct job *job = arg;
    for (int i = 0; i < job->count; i++) {
        struct flow *flow = &job->flows[i];
        if (&ranks[flow->link->rank] != job->rank)
            continue;
        end_fini(&flow->ends->send);
        end_fini(&flow->ends->recv);
        free(flow->ends);
        flow->ends = NULL;
    }
}

void flows_start(struct flow *flows, int count)
{
    for (int i = 0; i < rank_count; i++) {
        jobs[i] = (struct job){.rank = &ranks[i], .flows = flows, .count = count};
        worker_run(&ranks[i].service, register_all, &jobs[i]);
    }
    for (int i = 0; i < rank_count; i++)
        worker_start(&ranks[i].progress, progress, &jobs[i]);
}

void flows_wait(void)
{
    for (int i = 0; i < rank_count; i++)
        worker_wait(&ranks[i].progress);
    for (int i = 0; i < rank_count; i++)
        worker_run(&ranks[i].service, deregister_all, &jobs[i]);
}

void flows_run(struct flow *flows, int count)
{
    flows_start(flows, count);
    flows_wait();
}

void flows_everywhere(const struct flow *like)
{
    struct flow flows[CONFORM_LINKS_MAX];
    for (int i = 0; i < link_count; i++) {
        flows[i] = *like;
        flows[i].link = &links[i];
        flows[i].seed = mix(conform.seed, like->seed);
    }
    flows_run(flows, link_count);
}
