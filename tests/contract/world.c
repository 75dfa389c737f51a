#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define GIVE_UP_NS (60 * WF_NS_PER_S) /* of one test: far above any slow machine, far below "for ever" */
#define BATCH 8

static int64_t real_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * WF_NS_PER_S + now.tv_nsec;
}

/* From here on, the world's engine is one that injects faults into the implementation's. */
static void inject_faults(struct world *world)
{
    const struct implementation *of = world->of;
    const struct wf_clock *own = world->sim ? wf_sim_clock(world->sim) : &wf_clock_monotonic;
    wf_log_init(&world->log, WF_LOG_ERROR);
    world->rail = (struct wf_fault_rail){.name = "lo", .device = "lo", .address = address_of("127.0.0.1", 0)};
    struct wf_fault_options options = {
        .spec = of->fault,
        .rails = &world->rail,
        .rail_count = 1,
        .clock = of->clock ? of->clock : own,
        .log = &world->log,
    };
    struct wf_status status = {0};
    if (wf_fault_create(&options, &world->fault, &status))
        fail_msg("%s", status.text);
    world->ops = wf_fault_around(world->fault, of->ops, world->sim);
    world->host = world->fault;
    assert_string_equal(world->ops->name, of->ops->name);
}

static void encrypt(struct world *world)
{
    world->seal = wf_seal_create();
    assert_non_null(world->seal);
    world->ops = wf_seal_around(world->seal, world->ops, world->host);
    world->host = world->seal;
    assert_string_equal(world->ops->name, world->of->ops->name);
}

void world_open(struct world *world, const struct implementation *of, int engines, uint32_t call_bytes)
{
    *world = (struct world){.of = of, .ops = of->ops, .random_state = of->seed + 1};
    world->give_up_ns = real_now() + GIVE_UP_NS;
    if (of->simulated) {
        struct wf_sim_options options = {.seed = of->seed, .buffer_max = 4096};
        if (of->keyed) /* a byte of a test is to fit in, and what it is on the wire */
            options.buffer_min = 2 * (1 + WF_RECORD_OVERHEAD);
        world->host = world->sim = wf_sim_create(&options);
        assert_non_null(world->sim);
    }
    if (of->fault)
        inject_faults(world);
    if (of->keyed)
        encrypt(world);
    struct wf_engine_limits limits = {.call_bytes = call_bytes,
                                      .pinned = of->pinned,
                                      .zero_copy = of->zero_copy,
                                      .read_ahead = of->read_ahead,
                                      .set_up = of->set_up};
    for (; world->engine_count < engines; world->engine_count++) {
        struct wf_status status = {0};
        if (world->ops->open(world->host, &limits, &world->engines[world->engine_count], &status))
            fail_msg("open: %s", status.text);
    }
}

void world_close(struct world *world)
{
    for (int i = 0; i < world->engine_count; i++)
        world->ops->close(world->engines[i]);
    wf_seal_destroy(world->seal);
    wf_fault_destroy(world->fault);
    wf_sim_destroy(world->sim);
}

uint64_t world_random(struct world *world)
{
    uint64_t x = world->random_state += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 31)) * 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}

/* --- time --- */

static int poll_once(struct world *world, int engine, int64_t timeout_ns)
{
    struct wf_op *finished[BATCH];
    int count = world->ops->poll(world->engines[engine], finished, BATCH, timeout_ns);
    assert_in_range(count, 0, BATCH);
    for (int i = 0; i < count; i++) {
        struct task *task = finished[i]->context;
        assert_ptr_equal(&task->op, finished[i]);
        assert_false(task->op.posted);
        task->returned++;
        assert_int_equal(task->returned, 1);
    }
    return count;
}

static int poll_all(struct world *world, int64_t timeout_ns)
{
    int count = 0;
    for (int i = 0; i < world->engine_count; i++)
        count += poll_once(world, i, timeout_ns);
    return count;
}

void world_progress(struct world *world)
{
    if (real_now() > world->give_up_ns)
        fail_msg("nothing finished for too long (seed %llu)", (unsigned long long)world->of->seed);
    int64_t timeout_ns = world->sim || world->engine_count > 1 ? 0 : WF_NS_PER_MS;
    if (!poll_all(world, timeout_ns) && world->sim && !wf_sim_step(world->sim))
        fail_msg("nothing will happen any more (seed %llu)", (unsigned long long)world->of->seed);
}

void world_idle(struct world *world)
{
    if (world->sim) {
        do
            poll_all(world, 0);
        while (wf_sim_step(world->sim));
        return;
    }
    /* A real kernel cannot tell; nothing for this long is good evidence, and too little only makes a test weaker. A
     * poll that returns early, though nothing has finished, has moved something. */
    for (int quiet = 0; quiet < 3;) {
        int64_t start = real_now();
        bool some = poll_all(world, WF_NS_PER_MS) > 0;
        quiet = some || real_now() - start < WF_NS_PER_MS / 2 ? 0 : quiet + 1;
    }
}

int64_t world_await(struct world *world, struct task *task)
{
    while (!task->returned)
        world_progress(world);
    return task->op.result;
}

/* --- tasks --- */

void task_buffer(struct task *task, void *memory, size_t length)
{
    task->iov[0] = (struct iovec){.iov_base = memory, .iov_len = length};
    task->op.iov_count = 1;
}

void task_post(struct world *world, int engine, struct task *task, enum wf_op_kind kind, int fd)
{
    task->op.kind = kind;
    task->op.fd = fd;
    task->op.iov = task->iov;
    task->op.context = task;
    task->returned = 0;
    task->op.urgent = kind == WF_OP_RECV && world_random(world) % 2;
    world->ops->post(world->engines[engine], &task->op);
}

void task_connect(struct world *world, int engine, struct task *task, int fd, struct sockaddr_storage *address)
{
    task->op.address = address;
    task_post(world, engine, task, WF_OP_CONNECT, fd);
}

int64_t task_run(struct world *world, struct task *task, enum wf_op_kind kind, int fd, void *memory, size_t length)
{
    task_buffer(task, memory, length);
    task_post(world, 0, task, kind, fd);
    return world_await(world, task);
}

/* --- descriptors --- */

struct sockaddr_storage address_of(const char *text, int port)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
        v6->sin6_family = AF_INET6;
    }
    v4->sin_port = htons((uint16_t)port);
    return address;
}

int port_of(const struct sockaddr_storage *address)
{
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

int listener_open(struct world *world, const char *text, int backlog, struct sockaddr_storage *address)
{
    struct wf_socket_options options = {.local = address_of(text, 0)};
    int fd = world->ops->listen(world->host, &options, backlog);
    if (fd < 0)
        return fd;
    assert_int_equal(world->ops->attach(world->engines[0], fd), 0);
    assert_int_equal(world->ops->address(world->host, fd, false, address), 0);
    return fd;
}

int dialer_open(struct world *world, int family, int buffer_bytes)
{
    struct wf_socket_options options = {.buffer_bytes = buffer_bytes};
    int fd = world->ops->socket(world->host, family, &options, NULL);
    assert_true(fd >= 0);
    assert_int_equal(world->ops->attach(world->engines[0], fd), 0);
    return fd;
}

void descriptor_close(struct world *world, int fd)
{
    world->ops->detach(world->engines[0], fd);
    world->ops->close_fd(world->host, fd);
}

/* A key for each direction of each pair. */
static void protect(struct world *world, const struct pair *pair)
{
    struct wf_record_key keys[2];
    for (size_t i = 0; i < sizeof(keys); i++)
        ((uint8_t *)keys)[i] = (uint8_t)world_random(world);
    world->ops->detach(world->engines[0], pair->client);
    assert_int_equal(wf_seal_protect(world->seal, pair->client, &keys[0], &keys[1]), 0);
    assert_int_equal(wf_seal_protect(world->seal, pair->server, &keys[1], &keys[0]), 0);
    assert_int_equal(world->ops->attach(world->engines[0], pair->client), 0);
}

uint64_t pair_wire_bytes(const struct world *world, uint64_t bytes)
{
    uint64_t records = (bytes + WF_RECORD_MAX - 1) / WF_RECORD_MAX;
    return bytes + (world->of->keyed ? records * WF_RECORD_OVERHEAD : 0);
}

struct pair pair_open(struct world *world, int buffer_bytes)
{
    /* A few bytes at a time fill a small buffer with hardly anything, and TCP's timers come into play. */
    if ((world->of->shortens || world->of->zero_copy) && buffer_bytes && buffer_bytes < 65536)
        buffer_bytes = 65536;
    /* Buffers are inherited from the listener. */
    struct wf_socket_options options = {.local = address_of("127.0.0.1", 0), .buffer_bytes = buffer_bytes};
    int listener = world->ops->listen(world->host, &options, 4);
    assert_true(listener >= 0);
    assert_int_equal(world->ops->attach(world->engines[0], listener), 0);
    struct sockaddr_storage address;
    assert_int_equal(world->ops->address(world->host, listener, false, &address), 0);
    struct task accept = {0}, connect = {0};
    struct pair pair = {.client = dialer_open(world, AF_INET, buffer_bytes)};
    task_post(world, 0, &accept, WF_OP_ACCEPT, listener);
    task_connect(world, 0, &connect, pair.client, &address);
    assert_int_equal(world_await(world, &connect), 0);
    pair.server = (int)world_await(world, &accept);
    assert_true(pair.server >= 0);
    if (world->seal)
        protect(world, &pair);
    assert_int_equal(world->ops->attach(world->engines[0], pair.server), 0);
    descriptor_close(world, listener);
    return pair;
}

void pair_close(struct world *world, const struct pair *pair)
{
    descriptor_close(world, pair->client);
    descriptor_close(world, pair->server);
}

/* --- bytes --- */

uint8_t pattern(unsigned stream, uint64_t offset)
{
    uint64_t x = (offset + 1) * 0x9E3779B97F4A7C15u + stream * 0xD6E8FEB86659FD93u;
    return (uint8_t)(x >> 56);
}

void pattern_fill(void *memory, size_t length, unsigned stream, uint64_t offset)
{
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)memory)[i] = pattern(stream, offset + i);
}

void pattern_check(const void *memory, size_t length, unsigned stream, uint64_t offset)
{
    for (size_t i = 0; i < length; i++)
        if (((const uint8_t *)memory)[i] != pattern(stream, offset + i))
            fail_msg("stream %u differs at byte %llu", stream, (unsigned long long)(offset + i));
}
