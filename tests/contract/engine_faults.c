/*
 * What each injected fault does, around every engine. The clock of the faults is the test's, so that a stall begins and
 * ends where it says so.
 */
#include "world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS SIMULATED_SEEDS(8)
#define BULK (256u * 1024)
#define LONG_NS (10 * WF_NS_PER_S) /* a wait that must not happen */

/* --- time --- */

static int64_t now_ms;

static int64_t test_now(const struct wf_clock *clock)
{
    (void)clock;
    return now_ms * WF_NS_PER_MS;
}

static const struct wf_clock test_clock = {.now_ns = test_now};

/* `spec` gets the seed in front. */
static void open_world(struct world *world, struct implementation *of, const char *spec, int engines)
{
    static char text[128];
    snprintf(text, sizeof(text), "seed=%llu,%s", (unsigned long long)of->seed, spec);
    of->fault = text;
    of->clock = &test_clock;
    now_ms = 0;
    world_open(world, of, engines, 0);
}

static struct wf_fault_counts counts_of(const struct world *world)
{
    struct wf_fault_counts counts;
    wf_fault_count(world->fault, &counts);
    return counts;
}

/* --- a stranger: an engine that no fault touches, on the same network --- */

struct stranger {
    const struct wf_engine_ops *ops;
    struct wf_engine *engine;
    struct world *world;
};

static void stranger_open(struct stranger *stranger, struct world *world)
{
    struct wf_status status = {0};
    *stranger = (struct stranger){.ops = world->of->ops, .world = world};
    assert_int_equal(stranger->ops->open(world->sim, NULL, &stranger->engine, &status), 0);
}

static void stranger_post(struct stranger *stranger, struct task *task, enum wf_op_kind kind, int fd)
{
    task->op.kind = kind;
    task->op.fd = fd;
    task->op.iov = task->iov;
    task->op.context = task;
    task->returned = 0;
    stranger->ops->post(stranger->engine, &task->op);
}

static int64_t stranger_await(struct stranger *stranger, struct task *task)
{
    struct wf_op *finished[1];
    while (!task->returned)
        if (stranger->ops->poll(stranger->engine, finished, 1, 0))
            ((struct task *)finished[0]->context)->returned = 1;
        else
            world_progress(stranger->world);
    return task->op.result;
}

/* --- bytes --- */

/* Sends and receives until both are through or broken; how many bytes came and what ended it. */
static uint64_t pour(struct world *world, struct task *send, struct task *receive, struct pair pair, uint8_t *got,
                     int64_t *end)
{
    static uint8_t bytes[BULK];
    uint64_t total = 0;
    pattern_fill(bytes, BULK, 1, 0);
    task_buffer(send, bytes, BULK);
    task_post(world, world->engine_count - 1, send, WF_OP_SEND, pair.client);
    do {
        *end = task_run(world, receive, WF_OP_RECV, pair.server, got + total, BULK - total);
        total += *end > 0 ? (uint64_t)*end : 0;
    } while (*end > 0 && total < BULK);
    return total;
}

static bool broken(int64_t result)
{
    return result == -ECONNRESET || result == -EPIPE || result == 0;
}

/* Half way through a transfer; whoever waits at either end is told. */
static void resets_both_ends(struct world *world)
{
    struct pair pair = pair_open(world, 0);
    struct task send = {0}, receive = {0}, back = {0};
    uint8_t *got = malloc(BULK), byte;
    int64_t end;
    if (world->engine_count > 1)
        assert_int_equal(world->ops->attach(world->engines[1], pair.client), 0);
    task_buffer(&back, &byte, 1);
    task_post(world, 0, &back, WF_OP_RECV, pair.client);
    uint64_t total = pour(world, &send, &receive, pair, got, &end);
    world_await(world, &send);
    world_await(world, &back);
    assert_in_range(send.op.moved, 25 * 1024, 150 * 1024);
    assert_true(total <= send.op.moved);
    pattern_check(got, total, 1, 0);
    assert_true(broken(end) && broken(send.op.result) && broken(back.op.result));
    assert_int_equal(end, -ECONNRESET);
    assert_true(send.op.result == -ECONNRESET || back.op.result == -ECONNRESET);
    assert_true(counts_of(world).resets >= 1); /* what had arrived is read all the same, and counted */
    assert_true(broken(task_run(world, &receive, WF_OP_RECV, pair.client, &byte, 1))); /* and so it stays */
    assert_true(broken(task_run(world, &receive, WF_OP_RECV, pair.server, &byte, 1)));
    if (world->engine_count > 1)
        world->ops->detach(world->engines[1], pair.client);
    free(got);
    pair_close(world, &pair);
}

static void starts_anew_after_a_reset(struct world *world)
{
    for (uint64_t i = 1; i <= 4; i++) { /* the numbers of the descriptors come back: the reset must not */
        struct pair pair = pair_open(world, 0);
        struct task send = {0}, receive = {0};
        uint8_t *got = malloc(BULK);
        int64_t end;
        pour(world, &send, &receive, pair, got, &end);
        assert_true(world_await(world, &send) < 0);
        assert_true(counts_of(world).resets >= i);
        free(got);
        pair_close(world, &pair);
    }
}

static void flips_single_bits(struct world *world)
{
    struct pair pair = pair_open(world, 0);
    struct task send = {0}, receive = {0};
    uint8_t *got = malloc(BULK);
    uint64_t flips = 0;
    int64_t end;
    assert_int_equal(pour(world, &send, &receive, pair, got, &end), BULK);
    assert_int_equal(world_await(world, &send), BULK);
    for (uint64_t i = 0; i < BULK; i++) {
        int bits = __builtin_popcount(got[i] ^ pattern(1, i));
        assert_in_range(bits, 0, 1); /* two hits are 500 bytes apart, at least */
        flips += (uint64_t)bits;
    }
    assert_int_equal(flips, counts_of(world).flips);
    assert_in_range(flips, BULK / 1500, BULK / 500);
    free(got);
    pair_close(world, &pair);
}

static void moves_less_at_a_time(struct world *world)
{
    struct pair pair = pair_open(world, 0);
    struct task send = {0}, receive = {0};
    uint8_t *got = malloc(BULK);
    int64_t end;
    assert_int_equal(pour(world, &send, &receive, pair, got, &end), BULK);
    assert_int_equal(world_await(world, &send), BULK);
    pattern_check(got, BULK, 1, 0);
    assert_true(counts_of(world).shortened >= 10);
    free(got);
    pair_close(world, &pair);
}

static void spares_conversations_that_set_up(struct world *world)
{
    struct pair pair = pair_open(world, 0);
    struct task send = {0}, receive = {0};
    uint8_t *got = malloc(BULK);
    int64_t end;
    assert_int_equal(pour(world, &send, &receive, pair, got, &end), BULK);
    assert_int_equal(world_await(world, &send), BULK);
    pattern_check(got, BULK, 1, 0);
    struct wf_fault_counts counts = counts_of(world);
    assert_true(counts.resets == 0 && counts.flips == 0 && counts.shortened == 0);
    free(got);
    pair_close(world, &pair);
}

/* --- stalls --- */

static struct wf_progress progress_of(struct world *world, int fd)
{
    struct wf_progress progress = {0};
    assert_int_equal(world->ops->progress(world->host, fd, &progress), 0);
    return progress;
}

static void holds_what_is_posted(struct world *world)
{
    struct pair pair = pair_open(world, 0);
    struct task send = {0}, receive = {0}, cancelled = {0};
    char got[4] = "";
    while (progress_of(world, pair.client).pending)
        world_progress(world);
    uint64_t before = progress_of(world, pair.client).acknowledged;
    now_ms = 10;
    task_buffer(&send, "abc", 3);
    task_post(world, 0, &send, WF_OP_SEND, pair.client);
    task_buffer(&receive, got, 3);
    task_post(world, 0, &receive, WF_OP_RECV, pair.server);
    task_buffer(&cancelled, "no", 2);
    task_post(world, 0, &cancelled, WF_OP_SEND, pair.server);
    world_idle(world);
    world->ops->cancel(world->engines[0], &cancelled.op);
    assert_int_equal(world_await(world, &cancelled), -ECANCELED);
    now_ms = 29;
    world_idle(world);
    assert_true(!send.returned && !receive.returned);
    assert_int_equal(send.op.moved + cancelled.op.moved, 0);
    assert_int_equal(progress_of(world, pair.client).acknowledged, before);
    assert_int_equal(progress_of(world, pair.client).pending, 3); /* as if a kernel had taken them */
    now_ms = 30;
    for (size_t total = (size_t)world_await(world, &receive); total < 3;)
        total += (size_t)task_run(world, &receive, WF_OP_RECV, pair.server, got + total, 3 - total);
    assert_int_equal(world_await(world, &send), 3);
    assert_string_equal(got, "abc");
    while (progress_of(world, pair.client).pending)
        world_progress(world);
    assert_int_equal(progress_of(world, pair.client).acknowledged - before, 3);
    assert_int_equal(counts_of(world).stalls, 1);
    pair_close(world, &pair);
}

/* A receive that waits does not take what comes during a stall. */
static void holds_what_waits(struct world *world)
{
    struct stranger stranger;
    stranger_open(&stranger, world);
    struct pair pair = pair_open(world, 0);
    struct task send = {0}, receive = {0};
    char got = 0;
    task_buffer(&receive, &got, 1);
    task_post(world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(world);
    now_ms = 10;
    world_idle(world);
    assert_int_equal(stranger.ops->attach(stranger.engine, pair.client), 0);
    task_buffer(&send, "s", 1);
    stranger_post(&stranger, &send, WF_OP_SEND, pair.client);
    assert_int_equal(stranger_await(&stranger, &send), 1);
    world_idle(world);
    assert_int_equal(receive.returned, 0);
    assert_int_equal(got, 0);
    now_ms = 30;
    assert_int_equal(world_await(world, &receive), 1);
    assert_int_equal(got, 's');
    stranger.ops->detach(stranger.engine, pair.client);
    stranger.ops->close(stranger.engine);
    pair_close(world, &pair);
}

/* Half a transfer before the stall, the other half behind it, and no byte twice. */
static void holds_a_transfer_half_way(struct world *world)
{
    struct pair pair = pair_open(world, 32768);
    struct task send = {0}, receive = {0};
    uint8_t *bytes = malloc(2 * BULK), *got = bytes + BULK;
    size_t bulk = world->of->simulated ? BULK / 8 : BULK, total = 0;
    pattern_fill(bytes, bulk, 1, 0);
    task_buffer(&send, bytes, bulk);
    task_post(world, 0, &send, WF_OP_SEND, pair.client);
    while (total < bulk / 3)
        total += (size_t)task_run(world, &receive, WF_OP_RECV, pair.server, got + total, bulk / 3);
    now_ms = 10;
    world_idle(world);
    assert_false(send.returned);
    struct wf_progress still = progress_of(world, pair.client);
    if (!world->of->zero_copy) /* what is lent cannot be taken back */
        assert_true(still.pending >= bulk - send.op.moved);
    task_buffer(&receive, got + total, bulk - total);
    task_post(world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(world);
    assert_false(receive.returned);
    assert_int_equal(progress_of(world, pair.client).acknowledged, still.acknowledged);
    now_ms = 30;
    for (total += (size_t)world_await(world, &receive); total < bulk;)
        total += (size_t)task_run(world, &receive, WF_OP_RECV, pair.server, got + total, bulk - total);
    assert_int_equal(world_await(world, &send), bulk);
    pattern_check(got, bulk, 1, 0);
    assert_int_equal(counts_of(world).stalls, 1);
    free(bytes);
    pair_close(world, &pair);
}

static void holds_connects(struct world *world)
{
    struct sockaddr_storage where;
    int listener = listener_open(world, "127.0.0.1", 4, &where);
    struct wf_socket_options options = {.local = address_of("127.0.0.1", 0)};
    int fds[2] = {dialer_open(world, AF_INET, 0), world->ops->socket(world->host, AF_INET, &options, NULL)};
    struct task connects[2] = {0};
    assert_true(fds[1] >= 0);
    assert_int_equal(world->ops->attach(world->engines[0], fds[1]), 0);
    now_ms = 10;
    for (int i = 0; i < 2; i++) /* from anywhere, and from the address of the rail */
        task_connect(world, 0, &connects[i], fds[i], &where);
    world_idle(world);
    assert_true(!connects[0].returned && !connects[1].returned);
    now_ms = 30;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(world_await(world, &connects[i]), 0);
        descriptor_close(world, fds[i]);
    }
    descriptor_close(world, listener);
}

static void wakes_when_a_stall_ends(struct world *world)
{
    struct wf_op *finished[1];
    now_ms = 10;
    for (int i = 0; i < 2; i++) {
        int64_t start = wf_clock_now(&wf_clock_monotonic);
        assert_int_equal(world->ops->poll(world->engines[0], finished, 1, i ? LONG_NS : -1), 0);
        assert_true(wf_clock_now(&wf_clock_monotonic) - start < LONG_NS / 2);
    }
}

/* --- drops --- */

static void cuts_what_is_on_a_dropped_rail(struct world *world)
{
    struct pair pair = pair_open(world, 0);
    struct task receives[2] = {0}, send = {0};
    char got[2];
    task_buffer(&receives[0], &got[0], 1);
    task_post(world, 0, &receives[0], WF_OP_RECV, pair.client);
    task_buffer(&receives[1], &got[1], 1);
    task_post(world, 0, &receives[1], WF_OP_RECV, pair.server);
    world_idle(world);
    now_ms = 10;
    assert_int_equal(world_await(world, &receives[0]), -ECONNRESET);
    assert_int_equal(world_await(world, &receives[1]), -ECONNRESET);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), -ECONNRESET);
    now_ms = 30;
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), -ECONNRESET); /* for good */
    assert_in_range(counts_of(world).cut, 1, 2); /* the first one may be noticed before the second is looked at */
    assert_int_equal(counts_of(world).drops, 1);
    pair_close(world, &pair);
    pair = pair_open(world, 0); /* but a new one goes */
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), 1);
    pair_close(world, &pair);
}

static void refuses_connects_of_a_dropped_rail(struct world *world)
{
    struct sockaddr_storage where;
    int listener = listener_open(world, "127.0.0.1", 4, &where);
    struct wf_socket_options options = {.local = address_of("127.0.0.1", 0)};
    int fds[2] = {dialer_open(world, AF_INET, 0), world->ops->socket(world->host, AF_INET, &options, NULL)};
    struct task connect = {0};
    assert_true(fds[1] >= 0);
    assert_int_equal(world->ops->attach(world->engines[0], fds[1]), 0);
    now_ms = 10;
    for (int i = 0; i < 2; i++) {
        task_connect(world, 0, &connect, fds[i], &where);
        assert_int_equal(world_await(world, &connect), -ENETUNREACH);
    }
    assert_int_equal(counts_of(world).refused, 2);
    for (int i = 0; i < 2; i++)
        descriptor_close(world, fds[i]);
    descriptor_close(world, listener);
}

static void ends_connects_that_are_under_way(struct world *world)
{
    enum { DIALERS = 6 };
    struct sockaddr_storage where;
    struct task connects[DIALERS] = {0};
    int fds[DIALERS], late = 0;
    bool early[DIALERS];
    int listener = listener_open(world, "127.0.0.1", 1, &where);
    struct wf_socket_options options = {.local = address_of("127.0.0.1", 0)};
    for (int i = 0; i < DIALERS; i++) { /* more than the queue holds: the last ones hang */
        fds[i] = world->ops->socket(world->host, AF_INET, &options, NULL);
        assert_int_equal(world->ops->attach(world->engines[0], fds[i]), 0);
        task_connect(world, 0, &connects[i], fds[i], &where);
    }
    for (bool some = false; !some;) {
        world_progress(world);
        for (int i = 0; i < DIALERS; i++)
            some |= connects[i].returned;
    }
    for (int i = 0; i < DIALERS; i++)
        early[i] = connects[i].returned;
    now_ms = 10;
    for (int i = 0; i < DIALERS; i++) {
        assert_int_equal(world_await(world, &connects[i]) == -ENETUNREACH, !early[i]);
        late += !early[i];
        descriptor_close(world, fds[i]);
    }
    assert_true(late > 0);
    descriptor_close(world, listener);
}

static void turns_away_who_comes_to_a_dropped_rail(struct world *world)
{
    struct stranger stranger;
    struct sockaddr_storage where;
    stranger_open(&stranger, world);
    int listener = listener_open(world, "127.0.0.1", 4, &where);
    struct task accept = {0}, call = {.op.address = &where}, listen = {0};
    char got;
    task_post(world, 0, &accept, WF_OP_ACCEPT, listener);
    world_idle(world);
    now_ms = 10;
    for (int dropped = 1; dropped >= 0; dropped--) {
        struct wf_socket_options none = {0};
        int fd = stranger.ops->socket(world->sim, AF_INET, &none, NULL);
        assert_int_equal(stranger.ops->attach(stranger.engine, fd), 0);
        stranger_post(&stranger, &call, WF_OP_CONNECT, fd);
        assert_int_equal(stranger_await(&stranger, &call), 0);
        task_buffer(&listen, &got, 1);
        if (dropped) {
            stranger_post(&stranger, &listen, WF_OP_RECV, fd);
            assert_true(broken(stranger_await(&stranger, &listen)));
            assert_int_equal(accept.returned, 0);
            assert_int_equal(counts_of(world).refused, 1);
        } else {
            int64_t accepted = world_await(world, &accept);
            assert_true(accepted >= 0);
            world->ops->close_fd(world->host, (int)accepted);
        }
        stranger.ops->detach(stranger.engine, fd);
        stranger.ops->close_fd(world->sim, fd);
        now_ms = 30;
    }
    stranger.ops->close(stranger.engine);
    descriptor_close(world, listener);
}

static void leaves_other_rails_alone(struct world *world)
{
    struct sockaddr_storage where;
    struct wf_socket_options options = {.local = address_of("127.0.0.2", 0)};
    int listener = listener_open(world, "127.0.0.2", 4, &where);
    int client = world->ops->socket(world->host, AF_INET, &options, NULL);
    struct task accept = {0}, connect = {0}, send = {0};
    char got;
    assert_true(client >= 0);
    assert_int_equal(world->ops->attach(world->engines[0], client), 0);
    task_post(world, 0, &accept, WF_OP_ACCEPT, listener);
    task_connect(world, 0, &connect, client, &where);
    assert_int_equal(world_await(world, &connect), 0);
    int server = (int)world_await(world, &accept);
    assert_int_equal(world->ops->attach(world->engines[0], server), 0);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, client, "x", 1), 1);
    assert_int_equal(task_run(world, &send, WF_OP_RECV, server, &got, 1), 1);
    struct wf_fault_counts counts = counts_of(world);
    assert_true(counts.cut == 0 && counts.refused == 0 && counts.drops == 1 && counts.stalls == 1);
    descriptor_close(world, server);
    descriptor_close(world, client);
    descriptor_close(world, listener);
}

/* --- all of it on each engine --- */

static const struct fault_case {
    const char *name, *faults;
    void (*run)(struct world *world); /* in a world with these faults */
    int engines;                      /* of it; 0: one */
    bool sets_up;                     /* its engines are for conversations that set up */
    bool polls_wait;                  /* the simulator's never do */
} cases[] = {
    {"resets in the middle", "reset_every=100K", .run = resets_both_ends},
    {"resets what two engines share", "reset_every=100K", .run = resets_both_ends, .engines = 2},
    {"starts anew after a reset", "reset_every=100K", .run = starts_anew_after_a_reset},
    {"flips single bits", "flip_every=1000", .run = flips_single_bits},
    {"moves less at a time", "short=1", .run = moves_less_at_a_time},
    {"spares conversations that set up", "short=1,reset_every=1K,flip_every=1K", spares_conversations_that_set_up,
     .sets_up = true},
    {"holds what is posted", "stall=lo@10+20", .run = holds_what_is_posted},
    {"holds what waits", "stall=0@10+20", .run = holds_what_waits},
    {"holds a transfer half way", "stall=127.0.0.1@10+20,stall=lo@40+1", .run = holds_a_transfer_half_way},
    {"holds connects", "stall=lo@10+20", .run = holds_connects},
    {"wakes when a stall ends", "stall=lo@10+20", .run = wakes_when_a_stall_ends, .polls_wait = true},
    {"cuts what is on a dropped rail", "drop=lo@10+20", .run = cuts_what_is_on_a_dropped_rail},
    {"refuses connects of a dropped rail", "drop=lo@10+20", .run = refuses_connects_of_a_dropped_rail},
    {"ends connects that are under way", "drop=lo@10+20", .run = ends_connects_that_are_under_way},
    {"turns away who comes to a dropped rail", "drop=lo@10+20", .run = turns_away_who_comes_to_a_dropped_rail},
    {"leaves other rails alone", "drop=lo@0+100,stall=lo@0+100", .run = leaves_other_rails_alone},
};

static const struct implementation implementations[] = {
    {.name = "epoll", .ops = &wf_engine_epoll, .seed = 1},
    {.name = "uring", .ops = &wf_engine_uring, .seed = 1},
    {.name = "uring zero-copy", .ops = &wf_engine_uring, .zero_copy = 4096, .seed = 1},
    {.name = "sim", .ops = &wf_engine_sim, .simulated = true, .seed = 1},
};

enum { CASES = sizeof(cases) / sizeof(*cases), IMPLEMENTATIONS = sizeof(implementations) / sizeof(*implementations) };

struct run {
    const struct fault_case *what;
    struct implementation of;
    char name[96];
};

static void run_case(void **state)
{
    const struct run *run = *state;
    struct wf_status status = {0};
    int able = run->of.simulated ? 0 : run->of.ops->probe(NULL, &status);
    if (!able && run->of.zero_copy)
        able = run->of.ops->zero_copy(NULL, &status);
    if (able == -EOPNOTSUPP || (able == -ENOMEM && run->of.zero_copy)) {
        print_message("skipped: %s\n", status.text);
        skip();
    }
    if (run->of.simulated && run->what->polls_wait) {
        print_message("skipped for the simulator: its poll never waits\n");
        skip();
    }
    for (uint64_t seed = 1; seed <= (run->of.simulated ? SEEDS : 1); seed++) {
        struct implementation of = run->of;
        struct world world;
        of.seed = seed;
        of.set_up = run->what->sets_up;
        open_world(&world, &of, run->what->faults, run->what->engines ? run->what->engines : 1);
        run->what->run(&world);
        world_close(&world);
    }
}

static void refuses_what_it_does_not_know(void **state)
{
    (void)state;
    struct wf_fault_rail rail = {.name = "lo", .device = "lo", .address = address_of("127.0.0.1", 0)};
    struct wf_fault_options options = {.spec = "drop=eth7@0+1", .rails = &rail, .rail_count = 1, .clock = &test_clock};
    struct wf_fault *fault;
    struct wf_status status = {0};
    assert_int_equal(wf_fault_create(&options, &fault, &status), -EINVAL);
    assert_non_null(strstr(status.text, "eth7"));
    options.spec = "drop=lo";
    assert_int_equal(wf_fault_create(&options, &fault, &status), -EINVAL);
    assert_non_null(strstr(status.text, "'drop=lo'"));
    wf_fault_destroy(NULL);
}

int main(void)
{
    static struct run runs[IMPLEMENTATIONS * CASES];
    static struct CMUnitTest tests[IMPLEMENTATIONS * CASES + 1];
    int count = 0;
    for (int i = 0; i < IMPLEMENTATIONS; i++) {
        for (int k = 0; k < CASES; k++, count++) {
            struct run *run = &runs[count];
            *run = (struct run){.what = &cases[k], .of = implementations[i]};
            snprintf(run->name, sizeof(run->name), "%s %s", implementations[i].name, cases[k].name);
            tests[count] = (struct CMUnitTest){.name = run->name, .test_func = run_case, .initial_state = run};
        }
    }
    tests[count] = (struct CMUnitTest)cmocka_unit_test(refuses_what_it_does_not_know);
    return cmocka_run_group_tests_name("injected faults", tests, NULL, NULL);
}
