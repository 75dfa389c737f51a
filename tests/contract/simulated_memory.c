/* What simulated device memory promises beyond the seam: nobody but copies touches it, faults come when they are asked
 * for, who breaks the contract is stopped, and the same seed does the same. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim_memory.h"

#define PAGE 4096
#define SIZE 10000

static const struct wf_memory_ops *const ops = &wf_memory_sim;

/* A simulation, its devices, open and in use. */
struct world {
    struct wf_sim *sim;
    struct wf_sim_memory *host;
    struct wf_memory *memory;
    uint8_t *here; /* host memory of SIZE bytes */
    uint8_t *there;
};

static void world_open(struct world *world, uint64_t seed)
{
    *world = (struct world){.sim = wf_sim_create(&(struct wf_sim_options){.seed = seed})};
    world->host = wf_sim_memory_create(&(struct wf_sim_memory_options){.seed = seed});
    wf_sim_memory_join(world->host, world->sim);
    assert_int_equal(ops->open(world->host, &world->memory, NULL), 0);
    assert_int_equal(ops->use(world->memory, 0, NULL), 0);
    assert_int_equal(ops->use(world->memory, 1, NULL), 0);
    world->here = malloc(SIZE);
    assert_int_equal(ops->alloc(world->memory, 0, SIZE, (void **)&world->there, NULL), 0);
    for (int i = 0; i < SIZE; i++)
        world->here[i] = (uint8_t)(i * 7 + i / 256);
}

static void world_close(struct world *world)
{
    ops->free(world->memory, 0, world->there);
    ops->close(world->memory);
    wf_sim_memory_join(world->host, NULL);
    wf_sim_memory_destroy(world->host);
    wf_sim_destroy(world->sim);
    free(world->here);
}

static int start(struct world *world, struct wf_copy *copy, enum wf_copy_way way)
{
    struct wf_copy_piece piece = {.to = way == WF_COPY_IN ? world->there : world->here,
                                  .from = way == WF_COPY_IN ? world->here : world->there,
                                  .bytes = SIZE};
    *copy = (struct wf_copy){.device = 0, .way = way};
    return ops->copy_start(world->memory, copy, &piece, 1, false);
}

static int finish(struct world *world, struct wf_copy *copy)
{
    int result;
    while ((result = ops->copy_done(world->memory, copy)) == 0)
        if (!wf_sim_step(world->sim))
            wf_sim_advance(world->sim, wf_sim_now(world->sim) + WF_NS_PER_US);
    return result;
}

/* Does `body` end its process by `expected`? */
static void ends_by(int expected, void (*body)(struct world *world))
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct world world;
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        signal(SIGSEGV, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        world_open(&world, 5);
        body(&world);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)expected;
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0); /* its runtime reports a fault and exits */
#else
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), expected);
#endif
}

static void there_and_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct world world;
        struct wf_copy copy;
        uint8_t expected[SIZE];
        world_open(&world, seed);
        memcpy(expected, world.here, SIZE);
        assert_int_equal(start(&world, &copy, WF_COPY_IN), 0);
        assert_int_equal(finish(&world, &copy), 1);
        memset(world.here, 0, SIZE);
        assert_int_equal(start(&world, &copy, WF_COPY_OUT), 0);
        assert_int_equal(finish(&world, &copy), 1);
        assert_memory_equal(world.here, expected, SIZE);
        struct wf_sim_memory_counts counts = wf_sim_memory_counts(world.host, 0);
        assert_int_equal(counts.copies[WF_COPY_IN], 1);
        assert_int_equal(counts.bytes[WF_COPY_OUT], SIZE);
        assert_int_equal(counts.live, 0);
        world_close(&world);
    }
}

/* What is written to the source of a copy before it has ended, or read of its destination, is the wrong thing sooner
 * or later. */
static void early_touch_is_seen(void **state)
{
    (void)state;
    int changed = 0, unready = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct world world;
        struct wf_copy copy;
        uint8_t expected[SIZE], got[SIZE];
        world_open(&world, seed);
        memcpy(expected, world.here, SIZE);
        assert_int_equal(start(&world, &copy, WF_COPY_IN), 0);
        wf_sim_memory_copy(world.host, got, world.there, SIZE);
        unready += memcmp(got, expected, SIZE) != 0;
        memset(world.here, 1, SIZE);
        assert_int_equal(finish(&world, &copy), 1);
        wf_sim_memory_copy(world.host, got, world.there, SIZE);
        changed += memcmp(got, expected, SIZE) != 0;
        world_close(&world);
    }
    assert_true(unready > 30);
    assert_true(changed > 20);
}

static void copies_overtake_each_other(void **state)
{
    (void)state;
    int overtaken = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct world world;
        struct wf_copy first, second;
        world_open(&world, seed);
        assert_int_equal(start(&world, &first, WF_COPY_OUT), 0);
        assert_int_equal(start(&world, &second, WF_COPY_OUT), 0);
        assert_int_equal(finish(&world, &second), 1);
        int done = ops->copy_done(world.memory, &first);
        overtaken += done == 0;
        if (done == 0)
            assert_int_equal(finish(&world, &first), 1);
        world_close(&world);
    }
    assert_in_range(overtaken, 5, 35);
}

static void failures_as_asked(void **state)
{
    (void)state;
    struct world world;
    struct wf_copy copy;
    void *memory = NULL;
    struct wf_status status;
    world_open(&world, 3);
    wf_sim_memory_fail_copy(world.host, 0, WF_COPY_IN, 2, false);
    wf_sim_memory_fail_copy(world.host, 0, WF_COPY_OUT, 1, true);
    assert_int_equal(start(&world, &copy, WF_COPY_OUT), -EIO);
    assert_string_equal(ops->why(world.memory, 0), "SIMULATED_COPY_FAILED (719)");
    assert_int_equal(start(&world, &copy, WF_COPY_OUT), 0);
    assert_int_equal(finish(&world, &copy), 1);
    assert_int_equal(start(&world, &copy, WF_COPY_IN), 0);
    assert_int_equal(finish(&world, &copy), 1);
    assert_int_equal(start(&world, &copy, WF_COPY_IN), 0);
    assert_int_equal(finish(&world, &copy), -EIO);
    wf_sim_memory_fail_alloc(world.host, 1, 1);
    assert_int_equal(ops->alloc(world.memory, 1, 100, &memory, &status), -ENOMEM);
    assert_int_equal(ops->alloc(world.memory, 1, 100, &memory, &status), 0);
    ops->free(world.memory, 1, memory);
    wf_sim_memory_fail_pin(world.host, 1);
    void *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(ops->pin(world.memory, 0, pages, PAGE, &status), -ENOMEM);
    assert_int_equal(ops->pin(world.memory, 0, pages, PAGE, &status), 0);
    assert_int_equal(wf_sim_memory_pins(world.host), 1);
    ops->unpin(world.memory, 0, pages);
    munmap(pages, PAGE);
    world_close(&world);
}

static void lost_device(void **state)
{
    (void)state;
    struct world world;
    struct wf_copy copies[2];
    uint8_t before[SIZE], after[SIZE];
    world_open(&world, 8);
    for (int i = 0; i < 2; i++)
        assert_int_equal(start(&world, &copies[i], i ? WF_COPY_IN : WF_COPY_OUT), 0);
    wf_sim_memory_lose(world.host, 0);
    wf_sim_memory_copy(world.host, before, world.there, SIZE);
    wf_sim_advance(world.sim, wf_sim_now(world.sim) + WF_NS_PER_S);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ops->copy_done(world.memory, &copies[i]), -ENODEV);
    assert_int_equal(start(&world, &copies[0], WF_COPY_IN), -ENODEV);
    wf_sim_memory_copy(world.host, after, world.there, SIZE);
    assert_memory_equal(before, after, SIZE);
    assert_int_equal(ops->use(world.memory, 0, NULL), -ENODEV);
    assert_int_equal(ops->copy_now(world.memory, before, world.there, 1, NULL), -ENODEV);
    world_close(&world);
}

static void frozen_device(void **state)
{
    (void)state;
    struct world world;
    struct wf_copy copy;
    world_open(&world, 9);
    assert_int_equal(start(&world, &copy, WF_COPY_OUT), 0);
    wf_sim_memory_freeze(world.host, 0, true);
    assert_int_equal(wf_sim_next_event(world.sim), WF_NEVER);
    wf_sim_advance(world.sim, wf_sim_now(world.sim) + WF_NS_PER_S);
    assert_int_equal(ops->copy_done(world.memory, &copy), 0);
    wf_sim_memory_freeze(world.host, 0, false);
    assert_int_equal(finish(&world, &copy), 1);
    world_close(&world);
}

static void spans_are_named(void **state)
{
    (void)state;
    struct world world;
    struct wf_memory_place place;
    struct wf_status status;
    void *parts[40];
    int touching = 0;
    world_open(&world, 2);
    for (int i = 0; i < 40; i++)
        parts[i] = wf_sim_memory_take(world.host, 1, 512);
    for (int i = 1; i < 40; i++)
        touching += (uint8_t *)parts[i] == (uint8_t *)parts[i - 1] + 512;
    assert_in_range(touching, 5, 35);
    for (int i = 1; i < 40; i++) {
        int result = ops->locate(world.memory, parts[i - 1], 513, &place, &status);
        assert_int_equal(result, -EINVAL);
        bool touch = (uint8_t *)parts[i] == (uint8_t *)parts[i - 1] + 512;
        assert_non_null(strstr(status.text, touch ? "span two allocations" : "end in none"));
    }
    assert_int_equal(ops->locate(world.memory, (uint8_t *)parts[7] + 12, 500, &place, &status), 0);
    assert_int_equal(place.device, 1);
    assert_int_equal(ops->locate(world.memory, world.here, SIZE, &place, &status), 0);
    assert_int_equal(place.device, WF_NO_DEVICE);
    for (int i = 0; i < 40; i++)
        wf_sim_memory_give(world.host, parts[i]);
    world_close(&world);
}

static void count_call(void *counter)
{
    *(int *)counter += 1;
}

static void streams_keep_their_order(void **state)
{
    (void)state;
    struct world world;
    struct wf_copy mark = {.device = 0, .way = WF_COPY_MARK};
    int calls = 0;
    world_open(&world, 4);
    uint32_t *flag = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_int_equal(ops->pin(world.memory, 0, flag, PAGE, NULL), 0);
    struct wf_sim_stream *stream = wf_sim_stream_create(world.host, 0);
    wf_sim_stream_work(stream, WF_NS_PER_MS);
    wf_sim_stream_work(stream, WF_NEVER);
    mark.stream = stream;
    assert_int_equal(ops->copy_start(world.memory, &mark, NULL, 0, false), 0);
    assert_int_equal(ops->hold(world.memory, 0, stream, flag, 7), 0);
    wf_sim_stream_call(stream, count_call, &calls);
    wf_sim_advance(world.sim, wf_sim_now(world.sim) + WF_NS_PER_S);
    assert_int_equal(ops->copy_done(world.memory, &mark), 0);
    wf_sim_stream_release(stream);
    assert_int_equal(finish(&world, &mark), 1);
    assert_false(wf_sim_stream_idle(stream));
    assert_int_equal(calls, 0);
    *flag = 7;
    assert_true(wf_sim_stream_idle(stream));
    assert_int_equal(calls, 1);
    wf_sim_stream_destroy(stream);
    ops->unpin(world.memory, 0, flag);
    munmap(flag, PAGE);
    world_close(&world);
}

/* --- who breaks the contract --- */

static void touch(struct world *world)
{
    *(volatile uint8_t *)world->there = 1;
}

static void start_twice(struct world *world)
{
    struct wf_copy copy;
    start(world, &copy, WF_COPY_OUT);
    struct wf_copy_piece piece = {.to = world->here, .from = world->there, .bytes = 1};
    ops->copy_start(world->memory, &copy, &piece, 1, false);
}

static void free_early(struct world *world)
{
    struct wf_copy copy;
    start(world, &copy, WF_COPY_IN);
    wf_sim_advance(world->sim, wf_sim_now(world->sim) + WF_NS_PER_S); /* it has ended; the caller was not told */
    ops->free(world->memory, 0, world->there);
}

static void unpin_early(struct world *world)
{
    struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
    void *pages = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct wf_copy_piece piece = {.to = pages, .from = world->there, .bytes = 10};
    ops->pin(world->memory, 0, pages, PAGE, NULL);
    ops->copy_start(world->memory, &copy, &piece, 1, false);
    ops->unpin(world->memory, 0, pages);
}

static void leave_the_allocation(struct world *world)
{
    struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
    struct wf_copy_piece piece = {.to = world->here, .from = world->there + 1, .bytes = SIZE};
    ops->copy_start(world->memory, &copy, &piece, 1, false);
}

static void mix_up_sides(struct world *world)
{
    struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
    struct wf_copy_piece piece = {.to = world->there, .from = world->here, .bytes = 10};
    ops->copy_start(world->memory, &copy, &piece, 1, false);
}

static void close_early(struct world *world)
{
    struct wf_copy copy;
    start(world, &copy, WF_COPY_OUT);
    ops->close(world->memory);
}

static void leave_memory(struct world *world)
{
    ops->close(world->memory);
    wf_sim_memory_destroy(world->host);
}

static void violations_end_the_process(void **state)
{
    (void)state;
    ends_by(SIGSEGV, touch);
    ends_by(SIGABRT, start_twice);
    ends_by(SIGABRT, free_early);
    ends_by(SIGABRT, unpin_early);
    ends_by(SIGABRT, leave_the_allocation);
    ends_by(SIGABRT, mix_up_sides);
    ends_by(SIGABRT, close_early);
    ends_by(SIGABRT, leave_memory);
}

/* The end of a run of many copies, as a number. */
static uint64_t run(uint64_t seed)
{
    struct world world;
    struct wf_copy copies[20];
    uint64_t sum = 0;
    world_open(&world, seed);
    wf_sim_memory_fail_percent(world.host, 0, 20);
    bool started[20];
    for (int i = 0; i < 20; i++)
        started[i] = start(&world, &copies[i], i % 2 ? WF_COPY_IN : WF_COPY_OUT) == 0;
    for (int i = 0; i < 20; i++)
        sum = sum * 31 + (uint64_t)(started[i] ? finish(&world, &copies[i]) : 7) + (uint64_t)wf_sim_now(world.sim);
    for (int i = 0; i < SIZE; i++)
        sum = sum * 31 + world.here[i];
    world_close(&world);
    return sum;
}

static void a_seed_is_a_run(void **state)
{
    (void)state;
    assert_true(run(1) == run(1));
    assert_true(run(2) == run(2));
    assert_true(run(1) != run(2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_and_back),    cmocka_unit_test(early_touch_is_seen),
        cmocka_unit_test(failures_as_asked), cmocka_unit_test(copies_overtake_each_other),
        cmocka_unit_test(lost_device),       cmocka_unit_test(frozen_device),
        cmocka_unit_test(spans_are_named),   cmocka_unit_test(streams_keep_their_order),
        cmocka_unit_test(a_seed_is_a_run),   cmocka_unit_test(violations_end_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
