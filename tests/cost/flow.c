#include "flow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HANDLED_AT_ONCE 16 /* for each channel, before it is the other side's turn; fewer if nothing is left to do */
#define POLLED_AT_ONCE 64
#define IDLE_MAX 100000

struct flow {
    struct cost_world *world;
    const struct flow_plan *plan;
    void *source, *sink;
    uint32_t *tickets; /* connections that may send: a ring with a place for each message under way */
    uint64_t room, first, end;
    uint64_t target;       /* messages */
    uint64_t sent, posted; /* sends that have ended, and that were posted */
    uint64_t received;
    uint64_t posted_receives;
};

/* --- posting and collecting --- */

static void post_receive(struct flow *flow, uint32_t connection)
{
    struct weft_options options = {.queue = flow->world->queues[METER_RECEIVER],
                                   .user_data = (void *)(uintptr_t)connection};
    struct weft_request *request;
    if (flow->posted_receives == flow->target)
        return;
    flow->posted_receives += 1;
    COST_CHECK(weft_recv(flow->world->connections[METER_RECEIVER][connection], flow->sink, flow->plan->bytes, 0,
                         &options, &request) == 0);
    flow->tickets[flow->end++ % flow->room] = connection;
}

static void post_sends(struct flow *flow)
{
    struct weft_options options = {.queue = flow->world->queues[METER_SENDER]};
    struct weft_request *request;
    for (; flow->first < flow->end; flow->first++) {
        uint32_t connection = flow->tickets[flow->first % flow->room];
        COST_CHECK(weft_send(flow->world->connections[METER_SENDER][connection], flow->source, flow->plan->bytes, 0,
                             &options, &request) == 0);
        flow->posted += 1;
    }
}

static int collect(struct flow *flow, enum meter_side side)
{
    struct weft_completion completions[POLLED_AT_ONCE];
    int count = weft_queue_poll(flow->world->queues[side], completions, POLLED_AT_ONCE);
    for (int i = 0; i < count; i++) {
        COST_CHECK(completions[i].status == 0 && completions[i].bytes == flow->plan->bytes);
        if (side == METER_RECEIVER)
            post_receive(flow, (uint32_t)(uintptr_t)completions[i].user_data);
    }
    *(side == METER_RECEIVER ? &flow->received : &flow->sent) += (uint64_t)count;
    return count;
}

/* --- turns --- */

/* What a side does in its turn; returns how much it found to do. */
static int take_turn(struct flow *flow, enum meter_side side)
{
    const struct cost_size *size = &flow->world->size;
    int handled = 0, now, count, most = HANDLED_AT_ONCE * size->rails * size->channels * size->sessions;
    meter_turn(side);
    if (side == METER_SENDER)
        post_sends(flow);
    while (handled < most && (now = cost_world_drive(flow->world, side)) > 0)
        handled += now;
    while ((count = collect(flow, side)) > 0)
        handled += count;
    return handled;
}

static void begin(struct flow *flow)
{
    meter_turn(METER_RECEIVER);
    for (int i = 0; i < flow->plan->depth; i++)
        for (int connection = 0; connection < flow->world->size.connections; connection++)
            post_receive(flow, (uint32_t)connection);
}

static void go_on(struct flow *flow)
{
    for (int idle = 0; flow->received < flow->target || flow->sent < flow->target;) {
        int handled = take_turn(flow, METER_SENDER) + take_turn(flow, METER_RECEIVER);
        idle = handled > 0 ? 0 : idle + 1;
        COST_CHECK(idle < IDLE_MAX);
    }
}

/* --- memory --- */

/* Large payload is only counted, so its memory is never touched. */
static void *map(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    COST_CHECK(memory != MAP_FAILED);
    return memory;
}

static void check_content(const struct flow *flow)
{
    if (flow->plan->bytes <= PIPE_COPIED)
        COST_CHECK(memcmp(flow->source, flow->sink, flow->plan->bytes) == 0);
}

uint64_t flow_run(struct cost_world *world, const struct flow_plan *plan, bool accounting,
                  struct meter_reading readings[METER_SIDES])
{
    struct flow flow = {.world = world, .plan = plan, .source = map(plan->bytes), .sink = map(plan->bytes)};
    flow.room = (uint64_t)plan->depth * (uint64_t)world->size.connections;
    flow.target = plan->messages > flow.room ? plan->messages : flow.room;
    flow.tickets = calloc(flow.room, sizeof *flow.tickets);
    COST_CHECK(flow.tickets);
    if (plan->bytes <= PIPE_COPIED)
        memset(flow.source, 0x5A, plan->bytes);
    cost_world_watch(world);
    meter_begin(accounting);
    begin(&flow);
    go_on(&flow);
    meter_end(readings);
    COST_CHECK(flow.posted == flow.target && flow.received == flow.target);
    check_content(&flow);
    munmap(flow.source, plan->bytes);
    munmap(flow.sink, plan->bytes);
    free(flow.tickets);
    return flow.target;
}
