/* Whether memory grows: the rule on made-up series, and what a sampler makes of a made-up machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sense_fixture.h"

#define KIB 1024
#define MIB (1024 * KIB)
#define PAGE (4 * KIB)
#define MOST 3601
#define SEEDS 300

static int64_t at_ns[MOST], values[MOST];

/* --- random numbers that a seed repeats --- */

static uint64_t state;

static uint64_t random_below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

/* --- series of a sample each second --- */

/* A healthy process: it warms up, takes some pages for good now and then, but rarely, and more for a moment. */
static void make_healthy(size_t seconds, uint64_t seed)
{
    int64_t floor = 20 * MIB;

    state = seed;
    for (size_t i = 0; i < seconds; i++) {
        at_ns[i] = (int64_t)i * S + (int64_t)random_below(S / 10);
        if (i < 45)
            floor += (int64_t)random_below(100) * PAGE;
        else if (random_below(600) == 0)
            floor += (int64_t)(1 + random_below(8)) * PAGE;
        values[i] = floor + (random_below(4) == 0 ? (int64_t)random_below(2 * MIB) / PAGE * PAGE : 0);
    }
}

static void add_leak(size_t seconds, int64_t bytes_per_min, int64_t lump)
{
    for (size_t i = 0; i < seconds; i++)
        values[i] += (int64_t)i * bytes_per_min / 60 / lump * lump;
}

static void judge(size_t seconds, struct bench_growth *growth)
{
    bench_growth_judge(at_ns, values, 1, seconds, growth);
}

static void a_leak_is_found_in_ten_minutes(void **unused)
{
    static const int64_t lumps[] = {PAGE, 16 * KIB, 64 * KIB};
    struct bench_growth growth;

    (void)unused;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (size_t k = 0; k < sizeof lumps / sizeof lumps[0]; k++) {
            make_healthy(600, seed);
            add_leak(600, 64 * KIB, lumps[k]);
            judge(600, &growth);
            assert_int_equal(growth.verdict, BENCH_GROWTH_FOUND);
            assert_true(growth.bytes_per_min > 50 * KIB && growth.bytes_per_min < 120 * KIB);
            assert_true(growth.seconds > 530 && growth.seconds < 545);
        }
}

static void a_slow_leak_is_found_in_an_hour(void **unused)
{
    struct bench_growth growth;

    (void)unused;
    make_healthy(3600, 1);
    add_leak(3600, 20 * KIB, PAGE);
    judge(3600, &growth);
    assert_int_equal(growth.verdict, BENCH_GROWTH_FOUND);
}

static void a_healthy_process_is_not_blamed(void **unused)
{
    static const size_t lengths[] = {200, 600, 3600};
    struct bench_growth growth;

    (void)unused;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            make_healthy(lengths[k], seed);
            judge(lengths[k], &growth);
            assert_int_equal(growth.verdict, BENCH_GROWTH_NONE);
        }
}

/* Memory that is taken once, whenever, is no leak; nor is a cache that fills up, or one that is emptied now and then.
 */
static void what_ends_is_no_leak(void **unused)
{
    struct bench_growth growth;

    (void)unused;
    for (size_t jump = 0; jump < 600; jump += 7) {
        make_healthy(600, jump);
        for (size_t i = jump; i < 600; i++)
            values[i] += 8 * MIB;
        judge(600, &growth);
        assert_int_equal(growth.verdict, BENCH_GROWTH_NONE);
    }
    for (size_t full = 60; full < 400; full += 20) {
        make_healthy(600, full);
        for (size_t i = 0; i < 600; i++)
            values[i] += (int64_t)(i < full ? i : full) * 64 * KIB;
        judge(600, &growth);
        assert_int_equal(growth.verdict, BENCH_GROWTH_NONE);
    }
    for (size_t period = 20; period < 300; period += 10) {
        make_healthy(600, period);
        for (size_t i = 0; i < 600; i++)
            values[i] += (int64_t)(i % period) * 64 * KIB;
        judge(600, &growth);
        assert_int_equal(growth.verdict, BENCH_GROWTH_NONE);
    }
}

static void what_shrinks_does_not_grow(void **unused)
{
    struct bench_growth growth;

    (void)unused;
    make_healthy(600, 3);
    add_leak(600, -64 * KIB, PAGE);
    judge(600, &growth);
    assert_int_equal(growth.verdict, BENCH_GROWTH_NONE);
    assert_true(growth.bytes_per_min < 0);
}

static void what_is_not_known_is_not_judged(void **unused)
{
    struct bench_growth growth;

    (void)unused;
    judge(0, &growth);
    assert_int_equal(growth.verdict, BENCH_GROWTH_UNKNOWN);
    make_healthy(600, 5);
    add_leak(600, 640 * KIB, PAGE);
    judge(175, &growth); /* too short */
    assert_int_equal(growth.verdict, BENCH_GROWTH_UNKNOWN);
    assert_true(growth.first > 0 && growth.last > 0);
    for (size_t i = 300; i < 600; i++)
        values[i] = -1;
    judge(600, &growth);
    assert_int_equal(growth.verdict, BENCH_GROWTH_UNKNOWN);
}

/* --- the sampler --- */

static int64_t registered = 1 * MIB;

static void tell_held(void *context, struct bench_sense_held *held)
{
    (void)context;
    held->registered = registered;
}

static struct bench_sense *watching(bench_sense_ask_held *held)
{
    struct bench_sense_want want = {.root = tree_root, .gpu_pci = machine_pci, .gpu_count = 1, .held = held};
    struct bench_sense *sense = NULL;
    struct wf_status status;

    machine_put();
    assert_int_equal(bench_sense_create(&want, &sense, &status), 0);
    sense->gpus.read = machine_read_gpu;
    return sense;
}

static void a_sampler_watches_all(void **unused)
{
    struct bench_sense *sense = watching(tell_held);
    struct bench_sense_memory all[8];

    (void)unused;
    for (int64_t i = 0; i < 600; i++) {
        registered = MIB + i * KIB;                               /* 60 KiB a minute more is registered */
        machine_gpus[0].free_bytes = 1024ll * MIB - i * 64 * KIB; /* and 3.75 MiB less are free */
        bench_sense_take(sense, (i + 1) * S);
    }
    assert_int_equal(bench_sense_memories(sense, all, 8), 4);
    assert_string_equal(all[0].name, "rss");
    assert_true(all[0].growth.last > 0);
    assert_string_equal(all[1].name, "pinned");
    assert_int_equal(all[1].growth.verdict, BENCH_GROWTH_NONE);
    assert_string_equal(all[2].name, "registered");
    assert_int_equal(all[2].growth.verdict, BENCH_GROWTH_FOUND);
    assert_string_equal(all[3].name, "gpu0 free");
    assert_int_equal(all[3].growth.verdict, BENCH_GROWTH_FOUND);
    assert_true(all[3].growth.first > all[3].growth.last && all[3].growth.last > 900ll * MIB);
    bench_sense_destroy(sense);
}

/* For longer than there is room for, with a leak that goes on; and a GPU that does not tell. The machine is read once: to
 * read it so many times is minutes of the kernel's time under sanitizers. */
static void a_long_run_is_thinned_out(void **unused)
{
    struct bench_sense *sense = watching(tell_held);
    struct bench_sense_memory all[8];
    const bool there = true;

    (void)unused;
    machine_gpus[0].free_bytes = WF_NVML_UNKNOWN;
    registered = 0;
    bench_sense_take(sense, S);
    for (int64_t i = 1; i < 3 * BENCH_SENSE_HELD_ROOM / 2; i++) {
        sense->ledger.now[BENCH_SENSE_REGISTERED] = i * KIB;
        bench_sense_ledger_add(&sense->ledger, (i + 1) * S, machine_gpus, &there);
    }
    assert_true(sense->ledger.count < BENCH_SENSE_HELD_ROOM);
    assert_int_equal(sense->ledger.skip, 2);
    bench_sense_memories(sense, all, 8);
    assert_int_equal(all[2].growth.verdict, BENCH_GROWTH_FOUND);
    assert_int_equal(all[3].growth.verdict, BENCH_GROWTH_UNKNOWN);
    bench_sense_destroy(sense);
}

static void without_a_wish_nothing_is_watched(void **unused)
{
    struct bench_sense *sense = watching(NULL);
    struct bench_sense_memory all[8];

    (void)unused;
    bench_sense_take(sense, S);
    assert_int_equal(bench_sense_memories(sense, all, 8), 0);
    bench_sense_destroy(sense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_is_found_in_ten_minutes),
        cmocka_unit_test(a_slow_leak_is_found_in_an_hour),
        cmocka_unit_test(a_healthy_process_is_not_blamed),
        cmocka_unit_test(what_ends_is_no_leak),
        cmocka_unit_test(what_shrinks_does_not_grow),
        cmocka_unit_test(what_is_not_known_is_not_judged),
        cmocka_unit_test_setup_teardown(a_sampler_watches_all, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(a_long_run_is_thinned_out, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(without_a_wish_nothing_is_watched, tree_create, tree_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
