/* What the engine that encrypts does beyond the contract: what becomes of records that are not the next one, and of
 * those that a cancelled SEND has begun. Around epoll, io_uring and the simulator. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/seal_parts.h" /* how much it takes at once */
#include "world.h"

#define SEEDS SIMULATED_SEEDS(24)

static struct world world;
static struct pair pair;

/* A pair with the given ends encrypted: what the others send and get are the bytes on the wire. */
static void open_pair(const struct implementation *of, bool client, bool server)
{
    static const struct wf_record_key keys[2] = {{.key = {1}}, {.key = {2}}};
    world_open(&world, of, 1, 0);
    struct wf_seal *seal = world.seal;
    world.seal = NULL; /* without keys of its own */
    pair = pair_open(&world, 0);
    world.seal = seal;
    int fds[] = {pair.client, pair.server};
    for (int i = 0; i < 2; i++) {
        if (!(i ? server : client))
            continue;
        world.ops->detach(world.engines[0], fds[i]);
        assert_int_equal(wf_seal_protect(seal, fds[i], &keys[i], &keys[!i]), 0);
        assert_int_equal(world.ops->attach(world.engines[0], fds[i]), 0);
    }
}

static void close_pair(void)
{
    pair_close(&world, &pair);
    world_close(&world);
}

enum { SIZE = 1000, WIRE = SIZE + WF_RECORD_OVERHEAD };

/* `count` records as they are on the wire. */
static void record(const struct implementation *of, uint8_t (*records)[WIRE], int count)
{
    uint8_t bytes[SIZE];
    struct task send = {0}, receive = {0};
    open_pair(of, true, false);
    for (int i = 0; i < count; i++) {
        pattern_fill(bytes, SIZE, 1, (uint64_t)i * SIZE);
        task_buffer(&send, bytes, SIZE);
        task_post(&world, 0, &send, WF_OP_SEND, pair.client);
        for (int got = 0; got < WIRE;)
            got += (int)task_run(&world, &receive, WF_OP_RECV, pair.server, records[i] + got, (size_t)(WIRE - got));
        assert_int_equal(world_await(&world, &send), SIZE);
    }
    close_pair();
}

/* Sends `count` bytes as they are; the other end expects records. Returns what its reads end in, and checks that what
 * came before are the first bytes that were sent. */
static int64_t replay(const struct implementation *of, const uint8_t *bytes, size_t count, size_t *good)
{
    uint8_t got[SIZE];
    struct task send = {0}, receive = {0};
    int64_t n;
    open_pair(of, false, true);
    task_buffer(&send, (void *)(uintptr_t)bytes, count);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    for (*good = 0;; *good += (size_t)n) {
        task_buffer(&receive, got, sizeof(got));
        task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
        while (!receive.returned) {
            world_progress(&world);
            if (send.returned == 1) {
                world.ops->shutdown(world.host, pair.client);
                send.returned = 2; /* only once */
            }
        }
        n = receive.op.result;
        if (n <= 0)
            break;
        pattern_check(got, (size_t)n, 1, *good);
    }
    if (n == -EBADMSG) /* and so it goes on */
        assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), -EBADMSG);
    if (!send.returned) {
        world.ops->kill(world.host, pair.client);
        (void)world_await(&world, &send);
    }
    close_pair();
    return n;
}

static void opens_what_was_sealed(const struct implementation *of)
{
    static uint8_t records[3][WIRE];
    size_t good;
    record(of, records, 3);
    assert_int_equal(replay(of, records[0], sizeof(records), &good), 0);
    assert_int_equal(good, 3 * SIZE);
}

static void rejects_what_was_changed(const struct implementation *of)
{
    static uint8_t records[3][WIRE];
    size_t good;
    record(of, records, 3);
    for (size_t at = 0; at < WIRE; at += of->simulated ? 97 : 13) {
        records[1][at] ^= 0x10;
        assert_int_equal(replay(of, records[0], sizeof(records), &good), -EBADMSG);
        assert_int_equal(good, SIZE);
        records[1][at] ^= 0x10;
    }
}

static void rejects_another_order(const struct implementation *of)
{
    static uint8_t records[3][WIRE], sent[3][WIRE];
    static const int orders[][3] = {{0, 2, 1}, {0, 0, 1}, {1, 0, 2}};
    size_t good;
    record(of, records, 3);
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        for (int k = 0; k < 3; k++)
            memcpy(sent[k], records[orders[i][k]], WIRE);
        assert_int_equal(replay(of, sent[0], sizeof(sent), &good), -EBADMSG);
        assert_int_equal(good, orders[i][0] == 0 ? SIZE : 0);
    }
}

static void tells_of_an_end_within_a_record(const struct implementation *of)
{
    static uint8_t records[2][WIRE];
    size_t good;
    record(of, records, 2);
    for (size_t cut = 1; cut < WIRE; cut += 101) {
        assert_int_equal(replay(of, records[0], 2 * WIRE - cut, &good), -ECONNRESET);
        assert_int_equal(good, SIZE);
    }
}

/* The peer is heard, although there is nothing to take yet. */
static void counts_what_has_come_of_a_record(const struct implementation *of)
{
    enum { SOME = 700 };
    static uint8_t records[1][WIRE];
    uint8_t got[SIZE];
    _Atomic uint64_t kept = 0;
    struct task send = {0}, receive = {.op.kept = &kept};
    record(of, records, 1);
    open_pair(of, false, true);
    task_buffer(&receive, got, sizeof(got));
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, records[0], SOME), SOME);
    while (!of->simulated && atomic_load(&kept) < SOME)
        world_progress(&world);
    world_idle(&world);
    assert_int_equal(receive.returned, 0);
    assert_int_equal(atomic_load(&kept), SOME);
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, records[0] + SOME, WIRE - SOME), WIRE - SOME);
    assert_int_equal(world_await(&world, &receive), SIZE);
    pattern_check(got, SIZE, 1, 0);
    close_pair();
}

/* What a cancelled SEND has begun arrives all the same, and the next one behind it. */
static void goes_on_behind_what_was_cancelled(const struct implementation *of)
{
    enum { BULK = 2 << 20, BEHIND = 5000 };
    size_t bulk = of->simulated ? BULK / 8 * 5 : BULK; /* more than two batches */
    struct task send = {0}, next = {0}, receive = {0};
    uint8_t *bytes = malloc(BULK), got[4096];
    world_open(&world, of, 1, 0);
    pair = pair_open(&world, 8192);
    pattern_fill(bytes, bulk, 2, 0);
    task_buffer(&send, bytes, bulk);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    world_idle(&world);
    world.ops->cancel(world.engines[0], &send.op);
    assert_int_equal(world_await(&world, &send), -ECANCELED);
    uint64_t moved = send.op.moved, total = 0;
    assert_in_range(moved, 1, bulk - 1);
    memset(bytes, 0, bulk); /* it is ours again */
    pattern_fill(bytes, BEHIND, 2, moved);
    task_buffer(&next, bytes, BEHIND);
    task_post(&world, 0, &next, WF_OP_SEND, pair.client);
    while (total < moved + BEHIND) {
        int64_t n = task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got));
        assert_true(n > 0);
        pattern_check(got, (size_t)n, 2, total);
        total += (uint64_t)n;
    }
    assert_int_equal(total, moved + BEHIND);
    assert_int_equal(world_await(&world, &next), BEHIND);
    free(bytes);
    close_pair();
}

/* What a SEND has encrypted by the time that the peer's buffer is full. */
static uint64_t encrypted_ahead(uint8_t *bytes, size_t bulk)
{
    struct task send = {0};
    task_buffer(&send, bytes, bulk);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    world_idle(&world);
    world.ops->cancel(world.engines[0], &send.op);
    assert_int_equal(world_await(&world, &send), -ECANCELED);
    return send.op.moved;
}

/* Whatever is urgent next would have to wait for all that is encrypted at once. */
static void takes_less_at_once_after_what_is_urgent(const struct implementation *of)
{
    enum { BULK = 2 << 20, CALL = 256 << 10 }; /* the engines' own */
    uint64_t moved[2];
    uint8_t *bytes = calloc(1, BULK), news = 1, got;
    for (int urgent = 0; urgent < 2; urgent++) {
        struct task send = {0}, receive = {0};
        world_open(&world, of, 1, 0);
        pair = pair_open(&world, 8192);
        task_buffer(&receive, &got, 1);
        receive.op.kind = WF_OP_RECV; /* task_post() would draw lots for what is urgent */
        receive.op.fd = pair.client;
        receive.op.iov = receive.iov;
        receive.op.context = &receive;
        receive.op.urgent = urgent;
        world.ops->post(world.engines[0], &receive.op);
        assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.server, &news, 1), 1);
        assert_int_equal(world_await(&world, &receive), 1);
        moved[urgent] = encrypted_ahead(bytes, BULK);
        close_pair();
    }
    assert_int_equal(moved[0], 2 * CALL);
    assert_int_equal(moved[1], 2 * WF_RECORD_MAX);
    free(bytes);
}

/* --- a stream that wanders --- */

enum { MOST = 200000, HANDED_BACK = 0x5c };

/* One direction of the pair, with its buffer: between operations that is ours, and nobody writes to it. */
struct end {
    struct task task;
    uint8_t bytes[MOST];
    uint64_t moved;
    int engine;
    bool busy;
};

static void begin_send(struct end *end)
{
    size_t length = 1 + world_random(&world) % MOST;
    pattern_fill(end->bytes, length, 3, end->moved);
    task_buffer(&end->task, end->bytes, length);
    task_post(&world, end->engine, &end->task, WF_OP_SEND, pair.client);
    end->busy = true;
}

static void begin_receive(struct end *end)
{
    for (size_t i = 0; i < MOST; i++)
        if (end->bytes[i] != HANDED_BACK)
            fail_msg("byte %zu was written after the operation had ended", i);
    task_buffer(&end->task, end->bytes, 1 + world_random(&world) % MOST);
    task_post(&world, end->engine, &end->task, WF_OP_RECV, pair.server);
    end->busy = true;
}

/* True: an operation of it has ended, in one of the two ways that there are. */
static bool ended(struct end *end)
{
    if (!end->busy || !end->task.returned)
        return false;
    end->busy = false;
    assert_true(end->task.op.result > 0 || end->task.op.result == -ECANCELED);
    return true;
}

static void end_send(struct end *end)
{
    if (!ended(end))
        return;
    end->moved += end->task.op.moved;
    memset(end->bytes, 0, MOST);
}

static void end_receive(struct end *end)
{
    if (!ended(end))
        return;
    int64_t got = end->task.op.result > 0 ? end->task.op.result : 0;
    pattern_check(end->bytes, (size_t)got, 3, end->moved);
    end->moved += (uint64_t)got;
    memset(end->bytes, HANDED_BACK, MOST);
}

/* To the other engine, with whatever a cancelled operation has left. */
static void wander(struct end *end, int fd)
{
    world.ops->detach(world.engines[end->engine], fd);
    end->engine = !end->engine;
    assert_int_equal(world.ops->attach(world.engines[end->engine], fd), 0);
}

static void step(struct end *out, struct end *in)
{
    if (!out->busy)
        begin_send(out);
    if (!in->busy && world_random(&world) % 2)
        begin_receive(in);
    uint64_t choice = world_random(&world) % 16;
    if (choice == 0)
        world.ops->cancel(world.engines[out->engine], &out->task.op);
    else if (choice == 1 && in->busy)
        world.ops->cancel(world.engines[in->engine], &in->task.op);
    if (in->busy) /* or nothing may be left that could happen */
        world_progress(&world);
    end_send(out);
    end_receive(in);
    if (!out->busy && world_random(&world) % 4 == 0)
        wander(out, pair.client);
    if (!in->busy && world_random(&world) % 4 == 0)
        wander(in, pair.server);
}

/* Operations of any size, cancelled at any time, on one engine and then on another: what has moved is what arrives, the
 * end of the stream behind it. */
static void loses_nothing_on_its_way(const struct implementation *of)
{
    static struct end out, in;
    uint64_t total = of->simulated ? 200000 : 8000000;
    world_open(&world, of, 2, 0);
    pair = pair_open(&world, 8192);
    memset(&out, 0, sizeof(out));
    memset(&in, 0, sizeof(in));
    memset(in.bytes, HANDED_BACK, MOST);
    while (out.moved < total)
        step(&out, &in);
    if (!out.busy) /* what is left goes on leaving where the last one was posted */
        begin_send(&out);
    if (!in.busy)
        begin_receive(&in);
    world.ops->cancel(world.engines[out.engine], &out.task.op);
    while (out.busy) {
        world_progress(&world);
        end_send(&out);
    }
    world.ops->shutdown(world.host, pair.client);
    while (world_await(&world, &in.task) > 0) {
        end_receive(&in);
        begin_receive(&in);
    }
    assert_int_equal(in.task.op.result, 0);
    assert_int_equal(in.moved, out.moved);
    world.ops->detach(world.engines[out.engine], pair.client);
    world.ops->detach(world.engines[in.engine], pair.server);
    world.ops->close_fd(world.host, pair.client);
    world.ops->close_fd(world.host, pair.server);
    world_close(&world);
}

/* --- all of it on each engine --- */

static const struct seal_case {
    const char *name;
    void (*run)(const struct implementation *of);
} cases[] = {
    {"opens what was sealed", opens_what_was_sealed},
    {"rejects what was changed", rejects_what_was_changed},
    {"rejects another order", rejects_another_order},
    {"tells of an end within a record", tells_of_an_end_within_a_record},
    {"counts what has come of a record", counts_what_has_come_of_a_record},
    {"goes on behind what was cancelled", goes_on_behind_what_was_cancelled},
    {"takes less at once after what is urgent", takes_less_at_once_after_what_is_urgent},
    {"loses nothing on its way", loses_nothing_on_its_way},
};

static const struct implementation implementations[] = {
    {.name = "epoll", .ops = &wf_engine_epoll, .seed = 1, .keyed = true},
    {.name = "uring", .ops = &wf_engine_uring, .seed = 1, .keyed = true},
    {.name = "sim", .ops = &wf_engine_sim, .simulated = true, .seed = 1, .keyed = true},
};

enum { CASES = sizeof(cases) / sizeof(*cases), IMPLEMENTATIONS = sizeof(implementations) / sizeof(*implementations) };

struct run {
    const struct seal_case *what;
    struct implementation of;
    char name[96];
};

static void run_case(void **state)
{
    const struct run *run = *state;
    struct wf_status status = {0};
    if (!run->of.simulated && run->of.ops->probe(NULL, &status) == -EOPNOTSUPP) {
        print_message("skipped: %s\n", status.text);
        skip();
    }
    for (uint64_t seed = 1; seed <= (run->of.simulated ? SEEDS : 1); seed++) {
        struct implementation of = run->of;
        of.seed = seed;
        run->what->run(&of);
    }
}

int main(void)
{
    static struct run runs[IMPLEMENTATIONS * CASES];
    static struct CMUnitTest tests[IMPLEMENTATIONS * CASES];
    int count = 0;
    for (int i = 0; i < IMPLEMENTATIONS; i++) {
        for (int k = 0; k < CASES; k++, count++) {
            struct run *run = &runs[count];
            *run = (struct run){.what = &cases[k], .of = implementations[i]};
            snprintf(run->name, sizeof(run->name), "%s %s", implementations[i].name, cases[k].name);
            tests[count] = (struct CMUnitTest){.name = run->name, .test_func = run_case, .initial_state = run};
        }
    }
    return cmocka_run_group_tests_name("the engine that encrypts", tests, NULL, NULL);
}
