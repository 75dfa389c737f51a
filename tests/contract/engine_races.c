/* The clauses of io/engine.h about several operations at once: cancel, turns, sharing, and traffic of every shape. */
#include "engine_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- cancel --- */

static int64_t cancel_and_await(struct world *world, int engine, struct task *task)
{
    world->ops->cancel(world->engines[engine], &task->op);
    world->ops->cancel(world->engines[engine], &task->op); /* impatience changes nothing */
    int64_t result = world_await(world, task);
    world->ops->cancel(world->engines[engine], &task->op); /* nor does being late */
    return result;
}

void cancels_what_waits(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct sockaddr_storage where;
    int listener = listener_open(&world, "127.0.0.1", 4, &where);
    struct pair pair = pair_open(&world, 0);
    struct task accept = {0}, receive = {0}, send = {0};
    char got[8];
    for (int armed = 0; armed < 2; armed++) { /* at once, and after a poll has seen it */
        task_post(&world, 0, &accept, WF_OP_ACCEPT, listener);
        task_buffer(&receive, got, sizeof(got));
        task_post(&world, 0, &receive, WF_OP_RECV, pair.client);
        if (armed)
            world_idle(&world);
        assert_int_equal(cancel_and_await(&world, 0, &accept), -ECANCELED);
        assert_int_equal(cancel_and_await(&world, 0, &receive), -ECANCELED);
    }
    world_idle(&world); /* and never again: a second return fails in the world */
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.server, "y", 1), 1);
    assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.client, got, sizeof(got)), 1);
    pair_close(&world, &pair);
    descriptor_close(&world, listener);
    world_close(&world);
}

void cancels_connects(const struct implementation *of)
{
    enum { DIALERS = 6 };
    struct world world;
    world_open(&world, of, 1, 0);
    struct sockaddr_storage where;
    int listener = listener_open(&world, "127.0.0.1", 1, &where);
    struct task connect[DIALERS] = {0};
    int fds[DIALERS];
    for (int i = 0; i < DIALERS; i++) { /* more than the queue holds: the last ones hang, whatever the timing */
        fds[i] = dialer_open(&world, AF_INET, 0);
        task_connect(&world, 0, &connect[i], fds[i], &where);
    }
    bool some = false;
    while (!some) {
        world_progress(&world);
        for (int i = 0; i < DIALERS; i++)
            some |= connect[i].returned;
    }
    int cancelled = 0;
    for (int i = 0; i < DIALERS; i++) {
        int64_t result = cancel_and_await(&world, 0, &connect[i]);
        assert_true(result == 0 || result == -ECANCELED);
        cancelled += result != 0;
        descriptor_close(&world, fds[i]);
    }
    assert_true(cancelled > 0);
    descriptor_close(&world, listener);
    world_close(&world);
}

void cancels_a_send_half_way(const struct implementation *of)
{
    if (of->zero_copy) {
        print_message("skipped: what is lent comes back later, as another case shows\n");
        skip();
    }
    enum { BULK = 4 << 20 };
    struct world world;
    world_open(&world, of, 1, 16 * 1024);
    struct pair pair = pair_open(&world, 8192);
    uint8_t *bytes = malloc(BULK);
    pattern_fill(bytes, BULK, 3, 0);
    struct task send = {0}, receive = {0};
    task_buffer(&send, bytes, BULK);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    world_idle(&world); /* stuck half way: nobody reads */
    assert_int_equal(cancel_and_await(&world, 0, &send), -ECANCELED);
    uint64_t moved = send.op.moved;
    assert_in_range(moved, 1, BULK - 1);
    world.ops->shutdown(world.host, pair.client);
    uint64_t total = 0;
    static uint8_t got[4096];
    int64_t n;
    while ((n = task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got))) > 0) {
        pattern_check(got, (size_t)n, 3, total);
        total += (uint64_t)n;
    }
    assert_int_equal(n, 0);
    assert_int_equal(total, moved); /* what was handed over arrives, and not a byte more */
    free(bytes);
    pair_close(&world, &pair);
    world_close(&world);
}

void loses_no_byte_to_cancel(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    uint64_t total = 0;
    for (uint64_t i = 0; i < 200; i++) {
        struct task send = {0}, receive = {0};
        uint8_t byte = pattern(4, i), got[8];
        bool early = world_random(&world) & 1;
        task_buffer(&send, &byte, 1);
        task_buffer(&receive, got, sizeof(got));
        if (early) /* waiting when the byte comes; else finished, or ready, at once */
            task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
        task_post(&world, 0, &send, WF_OP_SEND, pair.client);
        if (world_random(&world) & 1)
            world_progress(&world);
        if (!early)
            task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
        int64_t n = cancel_and_await(&world, 0, &receive);
        assert_int_equal(world_await(&world, &send), 1);
        if (n == -ECANCELED)
            n = task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got));
        assert_int_equal(n, 1);
        pattern_check(got, (size_t)n, 4, total);
        total += (uint64_t)n;
    }
    pair_close(&world, &pair);
    world_close(&world);
}

/* --- turns --- */

void serves_small_beside_bulk(const struct implementation *of)
{
    enum { BULK = 1 << 20, CALL = 1000, PINGS = 20 };
    struct world world;
    world_open(&world, of, 1, CALL);
    struct pair wide = pair_open(&world, 0), narrow = pair_open(&world, 0);
    uint8_t *bytes = calloc(1, 2 * BULK);
    struct task bulk = {0}, sink = {0}, ping = {0}, pong = {0};
    char byte = 'p', got;
    task_buffer(&bulk, bytes, BULK);
    task_post(&world, 0, &bulk, WF_OP_SEND, wide.client);
    assert_true(bulk.op.moved <= CALL); /* if post tries it, then once */
    task_buffer(&sink, bytes + BULK, BULK);
    task_post(&world, 0, &sink, WF_OP_RECV, wide.server);
    int pings = 0;
    while (pings < PINGS) {
        if (!ping.op.posted && !pong.op.posted) {
            task_buffer(&ping, &byte, 1);
            task_post(&world, 0, &ping, WF_OP_SEND, narrow.client);
            task_buffer(&pong, &got, 1);
            task_post(&world, 0, &pong, WF_OP_RECV, narrow.server);
        }
        uint64_t before = bulk.op.moved;
        world_progress(&world);
        assert_true(bulk.op.moved - before <= CALL);
        if (sink.returned) {
            assert_in_range(sink.op.result, 1, CALL);
            task_post(&world, 0, &sink, WF_OP_RECV, wide.server);
        }
        pings += !ping.op.posted && !pong.op.posted;
    }
    /* A megabyte in calls of a thousand bytes: the pings did not wait for it. (Simulated ones may be a thousand times
     * as long under way.) */
    assert_true(bulk.op.posted || of->simulated);
    if (bulk.op.posted)
        assert_int_equal(cancel_and_await(&world, 0, &bulk), -ECANCELED);
    if (!sink.returned)
        cancel_and_await(&world, 0, &sink);
    free(bytes);
    pair_close(&world, &wide);
    pair_close(&world, &narrow);
    world_close(&world);
}

void returns_no_more_than_asked(const struct implementation *of)
{
    enum { PAIRS = 3 };
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pairs[PAIRS];
    struct task sends[PAIRS] = {0};
    for (int i = 0; i < PAIRS; i++)
        pairs[i] = pair_open(&world, 0);
    for (int i = 0; i < PAIRS; i++) {
        task_buffer(&sends[i], "z", 1);
        task_post(&world, 0, &sends[i], WF_OP_SEND, pairs[i].client);
    }
    for (int returned = 0; returned < PAIRS;) {
        struct wf_op *finished[PAIRS + 1] = {0};
        int count = world.ops->poll(world.engines[0], finished, 1, 0);
        assert_in_range(count, 0, 1);
        assert_null(finished[1]);
        returned += count;
    }
    for (int i = 0; i < PAIRS; i++) {
        assert_int_equal(sends[i].op.result, 1);
        pair_close(&world, &pairs[i]);
    }
    world_close(&world);
}

/* Operations that finish as they are posted keep every poll supplied; the others must get their news all the same. */
void hears_news_while_busy(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task receive = {0}, send = {0}, empty = {0};
    char got;
    task_buffer(&receive, &got, 1);
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(&world);
    task_buffer(&send, "n", 1);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    while (!receive.returned || !send.returned) {
        if (!empty.op.posted) {
            task_buffer(&empty, NULL, 0);
            task_post(&world, 0, &empty, WF_OP_SEND, pair.server);
        }
        world_progress(&world);
        if (world.sim) /* which would wait for a poll that finds nothing */
            wf_sim_advance(world.sim, wf_sim_now(world.sim) + WF_NS_PER_US);
    }
    assert_int_equal(world_await(&world, &empty), 0);
    pair_close(&world, &pair);
    world_close(&world);
}

/* --- traffic --- */

#define PIECE 3000 /* most bytes in one operation's vector */

struct flow {
    unsigned number;
    int from, to;
    uint64_t length, sent, received;
    struct task send, receive;
    bool sending, receiving;
    uint8_t out[PIECE], in[PIECE];
};

/* Up to `room` bytes in a random number of entries of random sizes, some of them empty. */
static size_t random_vector(struct world *world, struct task *task, uint8_t *memory, size_t room)
{
    size_t used = 0;
    int count = 1 + (int)(world_random(world) % (world_random(world) & 1 ? 4 : WORLD_ENTRIES));
    for (int i = 0; i < count; i++) {
        size_t left = room - used;
        size_t length = world_random(world) % 4 ? world_random(world) % (left + 1) : 0;
        if (i == count - 1 && !used)
            length = 1 + world_random(world) % left;
        task->iov[i] = (struct iovec){.iov_base = memory + used, .iov_len = length};
        used += length;
    }
    task->op.iov_count = count;
    return used;
}

static void flow_start(struct world *world, struct flow *flow, int send_engine)
{
    if (!flow->sending && flow->sent < flow->length) {
        uint64_t left = flow->length - flow->sent;
        size_t bytes = random_vector(world, &flow->send, flow->out, left < PIECE ? (size_t)left : PIECE);
        pattern_fill(flow->out, bytes, flow->number, flow->sent);
        flow->sending = true;
        task_post(world, send_engine, &flow->send, WF_OP_SEND, flow->from);
    }
    if (!flow->receiving && flow->received < flow->length) {
        random_vector(world, &flow->receive, flow->in, PIECE);
        flow->receiving = true;
        task_post(world, 0, &flow->receive, WF_OP_RECV, flow->to);
    }
}

static void flow_collect(struct flow *flow)
{
    if (flow->sending && flow->send.returned) {
        flow->sending = false;
        if (flow->send.op.result != -ECANCELED)
            assert_int_equal(flow->send.op.result, flow->send.op.moved);
        flow->sent += flow->send.op.moved;
        /* The memory is the sender's again: what it does now must not show at the other end. */
        memset(flow->out, 0xEE, sizeof(flow->out));
    }
    if (flow->receiving && flow->receive.returned) {
        flow->receiving = false;
        int64_t n = flow->receive.op.result;
        if (n == -ECANCELED)
            return;
        assert_in_range(n, 1, flow->length - flow->received);
        pattern_check(flow->in, (size_t)n, flow->number, flow->received);
        flow->received += (uint64_t)n;
    }
}

static void flow_disturb(struct world *world, struct flow *flow, int send_engine)
{
    uint64_t choice = world_random(world) % 32;
    if (choice == 0 && flow->sending)
        world->ops->cancel(world->engines[send_engine], &flow->send.op);
    if (choice == 1 && flow->receiving)
        world->ops->cancel(world->engines[0], &flow->receive.op);
}

static bool run_flows(struct world *world, struct flow *flows, int count, int send_engine)
{
    bool busy = false;
    for (int i = 0; i < count; i++) {
        flow_collect(&flows[i]);
        flow_start(world, &flows[i], send_engine);
        flow_disturb(world, &flows[i], send_engine);
        busy |= flows[i].sending || flows[i].receiving;
    }
    return busy;
}

void run_traffic(struct world *world, int send_engine)
{
    enum { PAIRS = 3, FLOWS = 2 * PAIRS };
    struct pair pairs[PAIRS];
    struct flow *flows = calloc(FLOWS, sizeof(*flows));
    uint64_t most = world->sim ? 20000 : 300000;
    for (int i = 0; i < FLOWS; i++) {
        struct pair *pair = &pairs[i / 2];
        if (i % 2 == 0)
            *pair = pair_open(world, world->sim ? 0 : 4096);
        flows[i].number = (unsigned)i;
        flows[i].from = i % 2 ? pair->server : pair->client;
        flows[i].to = i % 2 ? pair->client : pair->server;
        flows[i].length = 1 + world_random(world) % most;
        if (send_engine)
            assert_int_equal(world->ops->attach(world->engines[send_engine], flows[i].from), 0);
    }
    while (run_flows(world, flows, FLOWS, send_engine))
        world_progress(world);
    for (int i = 0; i < FLOWS; i++) {
        assert_int_equal(flows[i].sent, flows[i].length);
        assert_int_equal(flows[i].received, flows[i].length);
        if (send_engine)
            world->ops->detach(world->engines[send_engine], flows[i].from);
    }
    for (int i = 0; i < PAIRS; i++)
        pair_close(world, &pairs[i]);
    free(flows);
}

void carries_random_traffic(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 1 + (uint32_t)(of->seed * 7919 % 5000));
    run_traffic(&world, 0);
    world_close(&world);
}

void shares_a_descriptor_between_engines(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 2, 0);
    run_traffic(&world, 1);
    world_close(&world);
}
