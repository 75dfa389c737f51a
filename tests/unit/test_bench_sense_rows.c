/* What samples of a made-up machine become: rows, figures, and text for people; and the thread that takes them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "sense_fixture.h"

/* --- rows --- */

static char *csv_of(struct bench_sense *sense, int node)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);

    assert_non_null(file);
    assert_int_equal(bench_sense_write_csv(sense, file, node), 0);
    fclose(file);
    return text;
}

static struct bench_sense *two_samples(void)
{
    machine_put();
    struct bench_sense *sense = machine_sense(1);
    machine_throttle(0, "power cap, sync boost", true);
    bench_sense_take(sense, 1 * S);
    tree_put("/proc/stat", "cpu1 25 10 20 1020 5 8 12\ncpu3 1 0 0 1099 0 0 0");
    tree_put("/sys/class/powercap/intel-rapl:0/energy_uj", "150000"); /* around its range */
    bench_sense_take(sense, 2 * S);
    return sense;
}

static void samples_become_rows(void **state)
{
    (void)state;
    struct bench_sense *sense = two_samples();
    char *text = csv_of(sense, 1);
    char expected[2048];
    snprintf(expected, sizeof expected,
             "%s"
             "1000000000,1,gpu0,40,300.500,1980,2619,\"power cap, sync boost\",,,,,,,,,,\n"
             "1000000000,1,cpu,55,,,,,7,,,,,,,,,\n"
             "1000000000,1,core1,,,2400,,,7,,1,,,,,,,\n"
             "1000000000,1,nic:eth7,,,,,,,,,1000,2000,0,0,7,,\n"
             "1000000000,1,tcp,,,,,,,,,,,,,,,10\n"
             "2000000000,1,gpu0,40,300.500,1980,2619,\"power cap, sync boost\",,,,,,,,,,\n"
             "2000000000,1,cpu,55,0.250,2400,,,7,0.750,,,,,,,,\n"
             "2000000000,1,core1,,,2400,,,7,0.750,1,,,,,,,\n"
             "2000000000,1,core3,,,,,,,0.010,0,,,,,,,\n"
             "2000000000,1,nic:eth7,,,,,,,,,1000,2000,0,0,7,,\n"
             "2000000000,1,tcp,,,,,,,,,,,,,,,10\n",
             bench_sense_csv_header);
    assert_string_equal(text, expected);
    free(text);
    bench_sense_destroy(sense);
}

static void pieces_make_the_same_rows(void **state)
{
    (void)state;
    struct bench_sense *sense = two_samples();
    char *whole = csv_of(sense, 0), pieces[4096] = "", piece[BENCH_SENSE_ROW_MAX + 100];
    uint64_t next = 0;
    size_t length;
    int count = 0;
    while ((length = bench_sense_rows(sense, 0, &next, piece, sizeof piece)) > 0) {
        assert_int_equal(length, strlen(piece));
        assert_int_equal(piece[length - 1], '\n');
        strncat(pieces, piece, sizeof pieces - strlen(pieces) - 1);
        count++;
    }
    assert_true(count > 1);
    assert_string_equal(pieces, whole + strlen(bench_sense_csv_header));
    free(whole);
    bench_sense_destroy(sense);
}

static void what_is_missing_is_unknown(void **state)
{
    struct bench_sense_want want = {.root = tree_root,
                                    .gpu_pci = machine_pci,
                                    .gpu_count = 1,
                                    .interfaces = machine_interfaces,
                                    .interface_count = 1};
    struct bench_sense *sense = NULL;
    struct bench_sense_summary summary[2];
    struct wf_status status;

    (void)state;
    assert_int_equal(bench_sense_create(&want, &sense, &status), 0);
    sense->gpus.read = machine_read_gpu;
    machine_gpus_answer = false;
    bench_sense_take(sense, 1 * S);
    bench_sense_take(sense, 2 * S);
    assert_int_equal(bench_sense_between(sense, 0, 9 * S, 0, BENCH_SENSE_NO_GPU), 0);
    assert_int_equal(bench_sense_gpu_celsius(sense, 0), BENCH_SENSE_UNKNOWN);
    assert_int_equal(bench_sense_gpu_celsius(sense, 1), BENCH_SENSE_UNKNOWN);
    assert_int_equal(bench_sense_cpu_celsius(sense), BENCH_SENSE_UNKNOWN);
    assert_int_equal(bench_sense_summarize(sense, summary, 2), 2);
    assert_true(summary[0].celsius.count == 0 && summary[1].mhz.count == 0);
    char *text = csv_of(sense, 0);
    assert_non_null(strstr(text, "\n2000000000,0,gpu0,,,,,,,,,,,,,,,\n2000000000,0,cpu,,,,,,,,,,,,,,,\n"
                                 "2000000000,0,nic:eth7,,,,,,,,,,,,,,,\n2000000000,0,tcp,,,,,,,,,,,,,,,\n"));
    free(text);
    bench_sense_destroy(sense);
}

/* --- figures --- */

static void figures_are_of_all_readings(void **state)
{
    struct bench_sense_summary summary[3];

    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(2);
    sense->store.most = 2; /* merging changes no figure */
    for (int i = 0; i < 4; i++) {
        machine_gpus[1].celsius = 40 + 2 * i;
        machine_throttle(1, i < 3 ? "power cap" : "none", i < 3);
        bench_sense_take(sense, (i + 1) * S);
    }
    assert_int_equal(bench_sense_gpu_celsius(sense, 1), 46);
    machine_gpus_answer = false; /* what was last read stays */
    bench_sense_take(sense, 5 * S);
    assert_int_equal(bench_sense_gpu_celsius(sense, 1), 46);
    assert_int_equal(bench_sense_cpu_celsius(sense), 55);
    assert_int_equal(bench_sense_summarize(sense, summary, 3), 3);
    assert_string_equal(summary[1].device, "gpu1");
    assert_string_equal(summary[2].device, "cpu");
    assert_int_equal(summary[1].celsius.count, 4);
    assert_float_equal(summary[1].celsius.mean, 43, 1e-9);
    assert_float_equal(summary[1].celsius.sd, 2.581988897, 1e-6);
    assert_true(summary[1].celsius.min == 40 && summary[1].celsius.max == 46);
    assert_int_equal(summary[1].held_back, 3);
    assert_float_equal(summary[0].watts.mean, 300.5, 1e-9);
    assert_int_equal(summary[2].celsius.count, 5);
    bench_sense_destroy(sense);
}

static void a_summary_tells_what_changed(void **state)
{
    char *text = NULL;
    size_t length;

    (void)state;
    machine_put();
    struct bench_sense *sense = machine_sense(1);
    bench_sense_take(sense, 1 * S);
    machine_put_retransmits(15);
    machine_put_nic("rx_errors", 2);
    bench_sense_take(sense, 2 * S);
    FILE *out = open_memstream(&text, &length);
    bench_sense_put_summary(sense, out, 80);
    fclose(out);
    assert_non_null(strstr(text, "gpu0   temperature (C)       40.0      0.0      40.0      40.0\n"));
    assert_non_null(strstr(text, "sent 5 segments again"));
    assert_non_null(strstr(text, "eth7: 2 errors receiving"));
    assert_non_null(strstr(text, "\"performance\""));
    assert_non_null(strstr(text, "2 samples in 1.0 s"));
    free(text);
    bench_sense_destroy(sense);
}

/* --- the thread --- */

static size_t count_samples(struct bench_sense *sense)
{
    pthread_mutex_lock(&sense->lock);
    size_t count = sense->store.count;
    pthread_mutex_unlock(&sense->lock);
    return count;
}

static void wait_for_samples(struct bench_sense *sense, size_t count)
{
    int64_t deadline_ns = wf_clock_now(&wf_clock_monotonic) + 30 * S;

    while (count_samples(sense) < count && wf_clock_now(&wf_clock_monotonic) < deadline_ns)
        nanosleep(&(struct timespec){.tv_nsec = WF_NS_PER_MS}, NULL);
    assert_true(count_samples(sense) >= count);
}

/* On this machine, whatever it has. */
static void a_poke_brings_a_sample(void **state)
{
    struct bench_sense_want want = {.interval_ns = 3600 * S};
    struct bench_sense *sense = NULL;
    struct bench_sense_cost cost;
    struct wf_status status;

    (void)state;
    int64_t begin_ns = wf_clock_now(&wf_clock_monotonic);
    assert_int_equal(bench_sense_start(&want, &sense, &status), 0);
    assert_int_equal(count_samples(sense), 1);
    bench_sense_poke(sense);
    wait_for_samples(sense, 2);
    bench_sense_stop(sense);
    assert_int_equal(count_samples(sense), 3);
    bench_sense_stop(sense);
    assert_int_equal(count_samples(sense), 3);
    int64_t end_ns = wf_clock_now(&wf_clock_monotonic);
    for (int i = 0; i < 3; i++)
        assert_in_range(sense->store.samples[i].at_ns, i ? sense->store.samples[i - 1].at_ns : begin_ns, end_ns);
    bench_sense_cost(sense, &cost);
    assert_true(cost.own_cpu_ns > 0);
    assert_int_equal(cost.elapsed_ns, sense->store.samples[2].at_ns - sense->store.samples[0].at_ns);
    assert_float_equal(cost.share, (double)cost.own_cpu_ns / (double)cost.elapsed_ns, 1e-9);
    bench_sense_destroy(sense);
}

static void samples_come_by_themselves(void **state)
{
    struct bench_sense_want want = {.interval_ns = 5 * WF_NS_PER_MS};
    struct bench_sense *sense = NULL;
    struct wf_status status;

    (void)state;
    assert_int_equal(bench_sense_start(&want, &sense, &status), 0);
    wait_for_samples(sense, 4);
    bench_sense_destroy(sense);
}

static void too_much_is_refused(void **state)
{
    struct bench_sense_want want = {.gpu_count = BENCH_SENSE_GPUS_MAX + 1};
    struct bench_sense *sense = NULL;
    struct wf_status status;

    (void)state;
    assert_int_equal(bench_sense_start(&want, &sense, &status), -EINVAL);
    assert_non_null(strstr(status.text, "65 GPUs"));
    want = (struct bench_sense_want){.interface_count = BENCH_SENSE_INTERFACES_MAX + 1};
    assert_int_equal(bench_sense_start(&want, &sense, &status), -EINVAL);
    assert_null(sense);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(samples_become_rows, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(pieces_make_the_same_rows, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(what_is_missing_is_unknown, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(figures_are_of_all_readings, tree_create, tree_remove),
        cmocka_unit_test_setup_teardown(a_summary_tells_what_changed, tree_create, tree_remove),
        cmocka_unit_test(a_poke_brings_a_sample),
        cmocka_unit_test(samples_come_by_themselves),
        cmocka_unit_test(too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
