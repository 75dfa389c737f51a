/* The clauses of io/engine.h about descriptors and single operations. */
#include "engine_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- descriptors --- */

static void connects_and_tells_addresses(const struct implementation *of, const char *host)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct sockaddr_storage where, seen, other;
    int listener = listener_open(&world, host, 4, &where);
    if (listener == -EADDRNOTAVAIL || listener == -EAFNOSUPPORT) {
        world_close(&world);
        print_message("no address %s on this machine\n", host);
        skip();
    }
    assert_true(listener >= 0);
    assert_int_not_equal(port_of(&where), 0);
    struct task accept = {0}, connect = {0};
    int client = dialer_open(&world, where.ss_family, 0);
    task_post(&world, 0, &accept, WF_OP_ACCEPT, listener);
    task_connect(&world, 0, &connect, client, &where);
    assert_int_equal(world_await(&world, &connect), 0);
    int server = (int)world_await(&world, &accept);
    assert_true(server >= 0);
    assert_int_equal(world.ops->address(world.host, client, true, &seen), 0);
    assert_int_equal(port_of(&seen), port_of(&where));
    assert_int_equal(world.ops->address(world.host, client, false, &other), 0);
    assert_int_equal(world.ops->address(world.host, server, true, &seen), 0);
    assert_int_equal(seen.ss_family, other.ss_family);
    assert_int_equal(port_of(&seen), port_of(&other));
    assert_int_equal(world.ops->retransmits(world.host, client), 0);
    world.ops->close_fd(world.host, server); /* never attached: nothing to detach */
    descriptor_close(&world, client);
    descriptor_close(&world, listener);
    world_close(&world);
}

void connects_over_ipv4(const struct implementation *of)
{
    connects_and_tells_addresses(of, "127.0.0.1");
}

void connects_over_ipv6(const struct implementation *of)
{
    connects_and_tells_addresses(of, "::1");
}

void listens_on_everything(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct wf_socket_options options = {0};
    int listener = world.ops->listen(world.host, &options, 4);
    assert_true(listener >= 0);
    assert_int_equal(world.ops->attach(world.engines[0], listener), 0);
    struct sockaddr_storage where;
    assert_int_equal(world.ops->address(world.host, listener, false, &where), 0);
    struct sockaddr_storage target = address_of("127.0.0.1", port_of(&where));
    struct task accept = {0}, connect = {0};
    int client = dialer_open(&world, AF_INET, 0);
    task_connect(&world, 0, &connect, client, &target);
    assert_int_equal(world_await(&world, &connect), 0);
    task_post(&world, 0, &accept, WF_OP_ACCEPT, listener); /* after the fact is as good */
    int server = (int)world_await(&world, &accept);
    assert_true(server >= 0);
    world.ops->close_fd(world.host, server);
    descriptor_close(&world, client);
    descriptor_close(&world, listener);
    world_close(&world);
}

void dials_from_a_bound_address(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct sockaddr_storage where, seen;
    int listener = listener_open(&world, "127.0.0.1", 4, &where);
    struct wf_socket_options options = {.local = address_of("127.0.0.1", 0)};
    bool bound = true;
    int client = world.ops->socket(world.host, AF_INET, &options, &bound);
    assert_true(client >= 0);
    assert_false(bound); /* no interface was asked for */
    assert_int_equal(world.ops->attach(world.engines[0], client), 0);
    struct task connect = {0};
    task_connect(&world, 0, &connect, client, &where);
    assert_int_equal(world_await(&world, &connect), 0);
    assert_int_equal(world.ops->address(world.host, client, false, &seen), 0);
    assert_int_equal(((struct sockaddr_in *)&seen)->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    assert_int_not_equal(port_of(&seen), 0);
    descriptor_close(&world, client);
    descriptor_close(&world, listener);
    world_close(&world);
}

void refuses_a_missing_interface(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct wf_socket_options options = {.local = address_of("127.0.0.1", 0), .device = "nosuchif0"};
    bool bound = false;
    assert_int_equal(world.ops->socket(world.host, AF_INET, &options, &bound), -ENODEV);
    assert_int_equal(world.ops->listen(world.host, &options, 4), -ENODEV);
    struct pair pair = pair_open(&world, 0);
    assert_int_equal(world.ops->bind_device(world.host, pair.server, "nosuchif0"), -ENODEV);
    strcpy(options.device, "lo");
    int fd = world.ops->socket(world.host, AF_INET, &options, &bound);
    assert_true(fd >= 0); /* with the right to or without */
    world.ops->close_fd(world.host, fd);
    pair_close(&world, &pair);
    world_close(&world);
}

void refuses_an_address_in_use(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct wf_socket_options options = {0};
    int listener = listener_open(&world, "127.0.0.1", 4, &options.local);
    assert_int_equal(world.ops->listen(world.host, &options, 4), -EADDRINUSE);
    descriptor_close(&world, listener);
    int again = world.ops->listen(world.host, &options, 4); /* a restarted server gets its port back */
    assert_true(again >= 0);
    world.ops->close_fd(world.host, again);
    world_close(&world);
}

void reports_a_refused_connect(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct sockaddr_storage where;
    descriptor_close(&world, listener_open(&world, "127.0.0.1", 4, &where));
    int client = dialer_open(&world, AF_INET, 0);
    struct task connect = {0};
    task_connect(&world, 0, &connect, client, &where);
    assert_int_equal(world_await(&world, &connect), -ECONNREFUSED);
    descriptor_close(&world, client);
    world_close(&world);
}

/* --- receiving --- */

void receives_what_is_there(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    char got[64] = {0};
    struct task receive = {0}, send = {0};
    task_buffer(&receive, got, sizeof(got));
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(&world);
    assert_int_equal(receive.returned, 0);
    assert_true(receive.op.posted);
    task_buffer(&send, "abc", 3);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    size_t total = 0;
    while (total < 3) { /* at least one byte each time, not all of the buffer */
        int64_t n = world_await(&world, &receive);
        assert_in_range(n, 1, 3 - total);
        total += (size_t)n;
        if (total < 3)
            task_buffer(&receive, got + total, sizeof(got) - total);
        if (total < 3)
            task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    }
    assert_int_equal(world_await(&world, &send), 3);
    assert_memory_equal(got, "abc", 4);
    pair_close(&world, &pair);
    world_close(&world);
}

/* Waits for a receive, and ends the other direction as soon as the send is through: the end comes right behind the
 * last byte, perhaps in the same notice. */
static int64_t receive_and_shut(struct world *world, struct task *receive, struct task *send)
{
    while (!receive->returned) {
        world_progress(world);
        if (send->returned == 1) {
            world->ops->shutdown(world->host, send->op.fd);
            send->returned = 2; /* only once */
        }
    }
    return receive->op.result;
}

void ends_a_stream_with_zero(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task receive = {0}, send = {0};
    uint8_t bytes[32], got[32];
    pattern_fill(bytes, sizeof(bytes), 1, 0);
    task_buffer(&send, bytes, sizeof(bytes));
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    size_t total = 0;
    int64_t n;
    do {
        task_buffer(&receive, got, sizeof(got));
        task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
        n = receive_and_shut(&world, &receive, &send);
        assert_in_range(n, 0, sizeof(got));
        pattern_check(got, (size_t)n, 1, total);
        total += (size_t)n;
    } while (n > 0);
    assert_int_equal(total, sizeof(bytes));
    assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 0); /* and again */
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.server, "x", 1), 1);      /* the other way is open */
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "x", 1), -EPIPE); /* and no SIGPIPE */
    assert_int_equal(send.op.moved, 0);
    pair_close(&world, &pair);
    world_close(&world);
}

/* The last bytes and the end are noticed together, before anybody asks: the bytes must not use up the notice. */
void finds_the_end_behind_bytes_seen_earlier(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task receive = {0}, send = {0};
    char got[8];
    task_buffer(&receive, got, sizeof(got));
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(&world); /* it waits: the engine watches this descriptor from now on */
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "a", 1), 1);
    assert_int_equal(world_await(&world, &receive), 1);
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "b", 1), 1);
    world.ops->shutdown(world.host, pair.client);
    world_idle(&world);
    assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 1);
    assert_int_equal(got[0], 'b');
    assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 0);
    pair_close(&world, &pair);
    world_close(&world);
}

/* --- sending --- */

#define BULK (512u * 1024)

void keeps_partial_sends_inside(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 4096);
    uint8_t *bytes = malloc(2 * BULK), *got = bytes + BULK;
    size_t bulk = of->simulated ? BULK / 16 : BULK;
    pattern_fill(bytes, bulk, 2, 0);
    struct task send = {0}, receive = {0};
    task_buffer(&send, bytes, bulk);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    world_idle(&world);
    assert_int_equal(send.returned, 0); /* nobody reads: far too much for the buffers */
    assert_true(send.op.moved < bulk);
    for (size_t total = 0; total < bulk;) {
        int64_t n = task_run(&world, &receive, WF_OP_RECV, pair.server, got + total, BULK - total);
        assert_true(n > 0);
        total += (size_t)n;
    }
    assert_int_equal(world_await(&world, &send), bulk);
    assert_int_equal(send.op.moved, bulk);
    pattern_check(got, bulk, 2, 0);
    free(bytes);
    pair_close(&world, &pair);
    world_close(&world);
}

/* The time of the first call, in the system's clock. It stays where there is one already. */
void tells_when_a_send_began(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task send = {0}, receive = {0};
    char got[8];
    _Atomic int64_t began = 0;
    send.op.began_ns = &began;
    int64_t before = wf_clock_now(&wf_clock_monotonic);
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "a", 1), 1);
    int64_t told = began, after = wf_clock_now(&wf_clock_monotonic);
    if (world.ops->tells_start)
        assert_true(told >= before && told <= after);
    assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 1);
    began = 7;
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "b", 1), 1);
    assert_int_equal(began, 7);
    pair_close(&world, &pair);
    world_close(&world);
}

/* How a vector of `count` entries is cut: entry i has sizes[i % 4] bytes. */
struct shape {
    int count;
    size_t sizes[4];
};

static const struct shape shapes[] = {
    {1, {0}},        {1, {1}},        {64, {1, 1, 1, 1}},       {5, {0, 0, 7, 0}},   {64, {0, 1, 0, 2}}, {3, {0, 0, 0}},
    {2, {65536, 1}}, {2, {1, 65536}}, {64, {1000, 0, 1, 4097}}, {63, {3, 5, 7, 11}}, {4, {0, 0, 0, 9}},
};

static size_t shape_task(struct task *task, const struct shape *shape, uint8_t *memory)
{
    size_t total = 0;
    for (int i = 0; i < shape->count; i++) {
        size_t length = shape->sizes[i % 4];
        task->iov[i] = (struct iovec){.iov_base = length ? memory + total : NULL, .iov_len = length};
        total += length;
    }
    task->op.iov_count = shape->count;
    return total;
}

void takes_odd_vectors(const struct implementation *of)
{
    enum { SHAPES = sizeof(shapes) / sizeof(*shapes), ROOM = 128 * 1024 };
    struct world world;
    world_open(&world, of, 1, 1500);
    struct pair pair = pair_open(&world, 0);
    uint8_t *bytes = malloc(2 * ROOM), *got = bytes + ROOM;
    struct task send = {0}, receive = {0};
    for (unsigned i = 0; i < SHAPES; i++) {
        size_t total = shape_task(&send, &shapes[i], bytes);
        pattern_fill(bytes, total, i, 0);
        task_post(&world, 0, &send, WF_OP_SEND, pair.client);
        size_t there = 0;
        for (unsigned turn = i; there < total; turn++) { /* received in the other shapes, one after the other */
            size_t asked = shape_task(&receive, &shapes[turn % SHAPES], got + there);
            if (!asked)
                continue;
            task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
            int64_t n = world_await(&world, &receive);
            assert_in_range(n, 1, asked);
            assert_true(n <= 1500);
            there += (size_t)n;
        }
        assert_int_equal(there, total);
        assert_int_equal(world_await(&world, &send), total);
        pattern_check(got, total, i, 0);
    }
    task_buffer(&receive, got, 0); /* no byte fits: 0 would read as the end */
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    assert_int_equal(world_await(&world, &receive), -EINVAL);
    free(bytes);
    pair_close(&world, &pair);
    world_close(&world);
}

/* Nothing to read, no room to write: nothing to wait for where no byte is to move. */
void finishes_at_once_what_has_no_bytes(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 4096);
    size_t bulk = of->simulated ? BULK / 16 : BULK;
    uint8_t *bytes = calloc(1, bulk), got;
    struct task send = {0}, receive = {0}, empty = {0};
    task_buffer(&receive, &got, 1);
    task_post(&world, 0, &receive, WF_OP_RECV, pair.client);
    world_idle(&world); /* by now the engine knows that there is nothing to read */
    world.ops->cancel(world.engines[0], &receive.op);
    assert_int_equal(world_await(&world, &receive), -ECANCELED);
    assert_int_equal(task_run(&world, &empty, WF_OP_RECV, pair.client, &got, 0), -EINVAL);
    if (!of->zero_copy) { /* what is lent would come back when somebody reads it, and then there is room */
        task_buffer(&send, bytes, bulk);
        task_post(&world, 0, &send, WF_OP_SEND, pair.client);
        world_idle(&world);
        world.ops->cancel(world.engines[0], &send.op);
        assert_int_equal(world_await(&world, &send), -ECANCELED);
        assert_int_equal(task_run(&world, &empty, WF_OP_SEND, pair.client, NULL, 0), 0);
    }
    free(bytes);
    pair_close(&world, &pair);
    world_close(&world);
}

/* --- the end of a connection --- */

void reports_a_reset(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task receive = {0}, send = {0}, own = {0};
    char got[8], mine[8];
    task_buffer(&receive, got, sizeof(got));
    task_post(&world, 0, &receive, WF_OP_RECV, pair.client);
    task_buffer(&own, mine, sizeof(mine));
    task_post(&world, 0, &own, WF_OP_RECV, pair.server);
    world_idle(&world);
    world.ops->kill(world.host, pair.server);
    assert_int_equal(world_await(&world, &receive), -ECONNRESET);
    assert_true(world_await(&world, &own) < 0); /* who kills ends its own operations too */
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "x", 1), -EPIPE);
    pair_close(&world, &pair);

    pair = pair_open(&world, 0); /* unread bytes when the peer closes */
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, "x", 1), 1);
    world_idle(&world);
    descriptor_close(&world, pair.server);
    int64_t result;
    do
        result = task_run(&world, &send, WF_OP_SEND, pair.client, "x", 1);
    while (result == 1);
    assert_true(result == -ECONNRESET || result == -EPIPE);
    descriptor_close(&world, pair.client);
    world_close(&world);
}

void starts_anew_with_a_reused_descriptor(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    for (int i = 0; i < 4; i++) { /* numbers come back with other sockets behind them; no belief may survive */
        struct pair pair = pair_open(&world, 0);
        struct task send = {0}, receive = {0};
        char got[4];
        assert_int_equal(task_run(&world, &send, WF_OP_SEND, i % 2 ? pair.client : pair.server, "q", 1), 1);
        assert_int_equal(task_run(&world, &receive, WF_OP_RECV, i % 2 ? pair.server : pair.client, got, sizeof(got)),
                         1);
        world.ops->detach(world.engines[0], pair.client);
        assert_int_equal(world.ops->attach(world.engines[0], pair.client), 0);
        world.ops->shutdown(world.host, pair.server);
        assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.client, got, sizeof(got)), 0);
        pair_close(&world, &pair);
    }
    world_close(&world);
}

/* --- how far the peer's kernel has got --- */

static struct wf_progress progress_of(struct world *world, int fd)
{
    struct wf_progress progress = {0};
    assert_int_equal(world->ops->progress(world->host, fd, &progress), 0);
    return progress;
}

/* Until the peer's kernel has everything. */
static struct wf_progress await_acknowledged(struct world *world, int fd)
{
    struct wf_progress progress;
    while ((progress = progress_of(world, fd)).pending)
        world_progress(world);
    return progress;
}

void tells_what_is_acknowledged(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task send = {0}, receive = {0};
    uint8_t byte = 'a', got;
    uint64_t before = await_acknowledged(&world, pair.client).acknowledged;
    for (uint64_t sent = 1; sent <= 3; sent++) { /* acknowledged before it is read: that is the kernel's part */
        if (sent > 1)
            assert_int_equal(task_run(&world, &receive, WF_OP_RECV, pair.server, &got, 1), 1);
        assert_int_equal(task_run(&world, &send, WF_OP_SEND, pair.client, &byte, 1), 1);
        assert_int_equal(await_acknowledged(&world, pair.client).acknowledged - before,
                         sent * pair_wire_bytes(&world, 1));
        world_idle(&world);
        struct wf_progress still = progress_of(&world, pair.client);
        assert_int_equal(still.acknowledged - before, sent * pair_wire_bytes(&world, 1));
        assert_int_equal(still.pending, 0);
    }
    pair_close(&world, &pair);
    world_close(&world);
}

/* What has been handed over is acknowledged or pending, and what cannot leave is not acknowledged, but is known to lie
 * here. (The simulated network keeps what it takes on its way.) */
void tells_what_is_pending(const struct implementation *of)
{
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 4096);
    size_t bulk = of->simulated ? BULK / 16 : BULK;
    uint8_t *bytes = calloc(2, BULK), *got = bytes + BULK;
    struct task send = {0}, receive = {0};
    uint64_t before = await_acknowledged(&world, pair.client).acknowledged;
    task_buffer(&send, bytes, bulk);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    struct wf_progress stuck;
    uint64_t handed_over;
    do {
        world_idle(&world);
        stuck = progress_of(&world, pair.client);
        handed_over = stuck.acknowledged - before + stuck.pending;
        /* Of records, those that have left as a whole have moved. */
    } while (of->keyed ? handed_over < send.op.moved : handed_over != send.op.moved);
    assert_in_range(stuck.acknowledged - before, 1, bulk - 1);
    /* Until it is stuck, and what has left is acknowledged. */
    while (!of->simulated && (stuck.unsent == 0 || stuck.unsent < stuck.pending)) {
        world_idle(&world);
        stuck = progress_of(&world, pair.client);
    }
    assert_true(!of->simulated || stuck.unsent == 0);
    world_idle(&world);
    if (of->simulated) /* a kernel may squeeze in some more, once it thinks again about its buffers */
        assert_int_equal(progress_of(&world, pair.client).acknowledged, stuck.acknowledged);
    for (size_t total = 0; total < bulk;)
        total += (size_t)task_run(&world, &receive, WF_OP_RECV, pair.server, got, bulk);
    assert_int_equal(world_await(&world, &send), bulk);
    assert_int_equal(await_acknowledged(&world, pair.client).acknowledged - before, pair_wire_bytes(&world, bulk));
    free(bytes);
    pair_close(&world, &pair);
    world_close(&world);
}
