/* Which samples of a made-up machine have troubles, and which spans of time these mark. Samples are taken at times
 * that the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sense_fixture.h"

/* Troubles without those of GPUs. */
static unsigned machine_between(struct bench_sense *sense, int64_t start_ns, int64_t end_ns)
{
    return bench_sense_between(sense, start_ns, end_ns, BENCH_SENSE_NO_GPU, BENCH_SENSE_NO_GPU);
}

static unsigned gpu_between(struct bench_sense *sense, int64_t start_ns, int64_t end_ns, int gpu)
{
    return bench_sense_between(sense, start_ns, end_ns, gpu, BENCH_SENSE_NO_GPU);
}

/* Exactly the span [from, to] has `bits`, among samples at whole seconds up to 9. */
static void assert_marked(struct bench_sense *sense, int gpu, int64_t from_ns, int64_t to_ns, unsigned bits)
{
    assert_int_equal(gpu_between(sense, 0, from_ns, gpu), 0);
    assert_int_equal(gpu_between(sense, 0, from_ns + 1, gpu), bits);
    assert_int_equal(gpu_between(sense, from_ns, from_ns, gpu), bits);
    assert_int_equal(gpu_between(sense, to_ns - 1, to_ns, gpu), bits);
    assert_int_equal(gpu_between(sense, to_ns - 1, 9 * S, gpu), bits);
    assert_int_equal(gpu_between(sense, to_ns, to_ns, gpu), 0);
    assert_int_equal(gpu_between(sense, to_ns, 9 * S, gpu), 0);
    assert_int_equal(gpu_between(sense, 0, 9 * S, gpu), bits);
}

/* --- troubles --- */

static void a_held_gpu_marks_the_samples_around_it(void **state)
{
    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(2);
    for (int second = 1; second <= 6; second++) {
        machine_throttle(1, second == 3 ? "application clocks set, thermal (hardware)" : "application clocks set",
                         second == 3);
        bench_sense_take(sense, second * S);
    }
    assert_marked(sense, 1, 2 * S, 4 * S, BENCH_SENSE_GPU_THROTTLED);
    assert_int_equal(gpu_between(sense, 0, 9 * S, 0), 0);
    assert_int_equal(machine_between(sense, 0, 9 * S), 0);
    assert_int_equal(bench_sense_between(sense, 0, 9 * S, 0, 1), BENCH_SENSE_GPU_THROTTLED);
    bench_sense_destroy(sense);
}

static void the_last_state_goes_on(void **state)
{
    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(1);
    assert_int_equal(gpu_between(sense, 0, 9 * S, 0), 0);
    bench_sense_take(sense, 1 * S);
    machine_throttle(0, "power cap", true);
    bench_sense_take(sense, 2 * S);
    assert_int_equal(gpu_between(sense, 0, 1 * S, 0), 0);
    assert_int_equal(gpu_between(sense, 5 * S, 6 * S, 0), BENCH_SENSE_GPU_THROTTLED);
    bench_sense_destroy(sense);
}

static void a_first_state_marks_nothing_before_it(void **state)
{
    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(1);
    machine_throttle(0, "power cap", true);
    bench_sense_take(sense, 1 * S);
    machine_throttle(0, "none", false);
    bench_sense_take(sense, 2 * S);
    bench_sense_take(sense, 3 * S);
    assert_marked(sense, 0, 1 * S, 2 * S, BENCH_SENSE_GPU_THROTTLED);
    bench_sense_destroy(sense);
}

/* Counters of one made-up machine: which grows between the samples at 3 s and 4 s, and what that is. */
static void assert_growth(void (*grow)(void), unsigned bits)
{
    machine_put();
    struct bench_sense *sense = machine_sense(1);
    for (int second = 1; second <= 6; second++) {
        machine_pass_second(0, 0, 0);
        if (second == 4)
            grow();
        bench_sense_take(sense, second * S);
    }
    if (bits)
        assert_marked(sense, BENCH_SENSE_NO_GPU, 3 * S, 4 * S, bits);
    assert_int_equal(machine_between(sense, 0, 9 * S), bits);
    bench_sense_destroy(sense);
}

static void grow_core(void)
{
    tree_put("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "4");
}

static void grow_package(void)
{
    tree_put("/sys/devices/system/cpu/cpu1/thermal_throttle/package_throttle_count", "5");
}

static void grow_foreign_core(void)
{
    tree_put("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "10");
}

static void grow_retransmits(void)
{
    machine_put_retransmits(11);
}

static void grow_errors(void)
{
    machine_put_nic("tx_errors", 1);
}

static void grow_dropped(void)
{
    machine_put_nic("rx_dropped", 8);
}

static void grow_bytes(void)
{
    machine_put_nic("rx_bytes", 123456);
}

static void lose_everything(void)
{
    machine_put_nic("rx_errors", 0);
    tree_put("/proc/net/snmp", "Tcp: RetransSegs");
    tree_put("/proc/stat", "gone");
    tree_put("/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "no number");
    machine_gpus_answer = false;
}

static void a_counter_marks_the_span_in_which_it_grew(void **state)
{
    (void)state;
    assert_growth(grow_core, BENCH_SENSE_CPU_THROTTLED);
    assert_growth(grow_package, BENCH_SENSE_CPU_THROTTLED);
    assert_growth(grow_retransmits, BENCH_SENSE_RETRANSMITS);
    assert_growth(grow_errors, BENCH_SENSE_NIC_ERRORS);
    assert_growth(grow_foreign_core, 0);
    assert_growth(grow_dropped, 0);
    assert_growth(grow_bytes, 0);
    assert_growth(lose_everything, 0);
}

static void a_clock_is_compared_under_load(void **state)
{
    static const int mhz[] = {345, 345, 345, 1980, 1980, 1965, 1980, 1930, 1980, 345, 1980};
    struct bench_sense_level level = {0};

    (void)state;
    for (size_t i = 0; i < sizeof mhz / sizeof mhz[0]; i++)
        assert_int_equal(bench_sense_level_off(&level, mhz[i], 0.02), mhz[i] == 1930);
    assert_true(bench_sense_level_off(&level, 2030, 0.02));
    assert_false(bench_sense_level_off(&level, BENCH_SENSE_UNKNOWN, 0.02));
    /* Where it stays, the median arrives. */
    int off = 0;
    for (int i = 0; i < 40; i++)
        off += bench_sense_level_off(&level, 1500, 0.02);
    assert_in_range(off, 1, 16);
    assert_false(bench_sense_level_off(&level, 1500, 0.02));
}

static void a_changed_clock_marks_its_gpu(void **state)
{
    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(2);
    for (int second = 1; second <= 8; second++) {
        machine_gpus[0].sm_mhz = second == 6 ? 1935 : 1980;
        bench_sense_take(sense, second * S);
    }
    assert_marked(sense, 0, 5 * S, 7 * S, BENCH_SENSE_GPU_CLOCK);
    assert_int_equal(gpu_between(sense, 0, 9 * S, 1), 0);
    bench_sense_destroy(sense);
}

static void a_changed_clock_of_a_busy_processor_counts(void **state)
{
    (void)state;
    machine_put();
    tree_put_task(0, 77, 'R', 0, 0, 1);
    struct bench_sense *sense = machine_sense(0);
    for (int second = 1; second <= 8; second++) {
        /* Idle in the last second, when its clock says nothing. */
        machine_pass_second(1, second == 8 ? 2 : 100, 0);
        tree_put_task(0, 77, 'R', 0, 100 * (unsigned)second, 1);
        tree_put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "%d",
                 second == 6   ? 2200000
                 : second == 8 ? 1500000
                               : 2400000);
        bench_sense_take(sense, second * S);
    }
    assert_marked(sense, BENCH_SENSE_NO_GPU, 5 * S, 7 * S, BENCH_SENSE_CPU_CLOCK);
    bench_sense_destroy(sense);
}

/* A second in which processor 1 worked for `ticks`, and a thread of ours for `own` of them; what of that is others'. */
static double others_of(unsigned ticks, unsigned own, int cpu)
{
    machine_put();
    tree_put_task(0, 77, 'R', 0, 1000, cpu);
    struct bench_sense *sense = machine_sense(0);
    bench_sense_take(sense, 1 * S);
    machine_pass_second(1, ticks, 10);
    tree_put_task(0, 77, 'R', 0, 1000 + own, cpu);
    bench_sense_take(sense, 2 * S);
    double others = bench_sense_store_at(&sense->store, 1).sample->others;
    assert_int_equal(machine_between(sense, 0, 9 * S), others > 0.1 ? BENCH_SENSE_OTHERS : 0);
    bench_sense_destroy(sense);
    return others;
}

static void others_are_who_is_not_ours(void **state)
{
    (void)state;
    assert_float_equal(others_of(90, 90, 1), 0, 1e-6); /* and interrupts are nobody's */
    assert_float_equal(others_of(90, 86, 1), 0.02, 0.011);
    assert_true(others_of(90, 40, 1) > 0.4);
    assert_true(others_of(90, 90, 2) > 0.8); /* our thread was elsewhere */
}

static void put_companion(unsigned ticks)
{
    char path[64], text[512];

    tree_put_task(4242, 4242, 'S', 0, ticks, 1);
    /* The process as a whole is told in the same words as its only thread. */
    snprintf(path, sizeof path, "%s/proc/4242/task/4242/stat", tree_root);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    text[strcspn(text, "\n")] = '\0';
    tree_put("/proc/4242/stat", "%s", text);
}

/* The other node's process, started by this one: none of the others. */
static void a_companion_is_no_other(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        machine_put();
        struct bench_sense *sense = machine_sense(0);
        sense->own.companion = known ? 4242 : 0;
        put_companion(1000);
        bench_sense_take(sense, 1 * S);
        machine_pass_second(1, 90, 0);
        put_companion(1090);
        bench_sense_take(sense, 2 * S);
        assert_int_equal(machine_between(sense, 0, 9 * S), known ? 0 : BENCH_SENSE_OTHERS);
        bench_sense_destroy(sense);
    }
}

static void others_elsewhere_do_not_count(void **state)
{
    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(0);
    bench_sense_take(sense, 1 * S);
    machine_pass_second(2, 100, 0);
    bench_sense_take(sense, 2 * S);
    assert_int_equal(machine_between(sense, 0, 9 * S), 0);
    assert_true(bench_sense_store_at(&sense->store, 1).sample->others == 0);
    bench_sense_destroy(sense);
}

static void merging_loses_no_trouble(void **state)
{
    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(1);
    sense->store.most = 4;
    for (int second = 1; second <= 5; second++) {
        machine_throttle(0, second == 3 ? "power cap" : "none", second == 3);
        if (second == 2)
            machine_put_retransmits(11);
        bench_sense_take(sense, second * S);
    }
    /* Left are those at 2, 4 and 5; what 3 saw counts for 2 to 4, where it lay, and what grew up to 2 from 1 on. */
    assert_int_equal(sense->store.count, 3);
    assert_int_equal(sense->store.samples[1].at_ns, 4 * S);
    assert_int_equal(machine_between(sense, 1 * S, 2 * S), BENCH_SENSE_RETRANSMITS);
    assert_int_equal(machine_between(sense, 0, 1 * S), 0);
    assert_int_equal(machine_between(sense, 2 * S, 9 * S), 0);
    assert_int_equal(gpu_between(sense, 0, 2 * S, 0), BENCH_SENSE_RETRANSMITS);
    assert_int_equal(gpu_between(sense, 2 * S, 2 * S + 1, 0), BENCH_SENSE_GPU_THROTTLED);
    assert_int_equal(gpu_between(sense, 4 * S - 1, 4 * S, 0), BENCH_SENSE_GPU_THROTTLED);
    assert_int_equal(gpu_between(sense, 4 * S, 9 * S, 0), 0);
    for (int second = 6; second <= 1000; second++)
        bench_sense_take(sense, second * S);
    assert_in_range(sense->store.count, 2, 4);
    assert_int_equal(gpu_between(sense, 0, 2000 * S, 0), BENCH_SENSE_GPU_THROTTLED | BENCH_SENSE_RETRANSMITS);
    bench_sense_destroy(sense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_held_gpu_marks_the_samples_around_it, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(the_last_state_goes_on, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(a_first_state_marks_nothing_before_it, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(a_counter_marks_the_span_in_which_it_grew, tree_create, tree_remove),
        cmocka_unit_test(a_clock_is_compared_under_load),
        cmocka_unit_test_setup_teardown(a_changed_clock_marks_its_gpu, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(a_changed_clock_of_a_busy_processor_counts, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(others_are_who_is_not_ours, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(a_companion_is_no_other, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(others_elsewhere_do_not_count, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(merging_loses_no_trouble, tree_create, tree_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
