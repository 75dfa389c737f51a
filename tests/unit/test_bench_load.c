/* What was busy: lines of /proc/stat, spans that add up, and what travels to the other node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/machine/load.h"

static void read_text(const char *text, uint64_t ticks[BENCH_CPUS_MAX])
{
    char path[64];
    FILE *file = tmpfile();

    assert_non_null(file);
    fputs(text, file);
    fflush(file);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    bench_load_read(path, ticks);
    fclose(file);
}

static void work_is_all_but_idle_time(void **state)
{
    static uint64_t ticks[BENCH_CPUS_MAX];

    (void)state;
    read_text("cpu  1 1 1 1 1 1 1 1 1 1\n"
              "cpu0 100 20 3 5000 600 7 8 9 10 11\n" /* idle and waiting for disks: 5000, 600 */
              "cpu3 1 2 3 4 5 6 7\n"                 /* an old kernel; 1 and 2 are not there */
              "cpu2000 1 2 3 4 5 6 7 8\n"
              "cpu5 1 2\n"
              "intr 1 2 3\n"
              "cpu4 9 9 9 9 9 9 9 9\n", /* behind the processors */
              ticks);
    assert_int_equal(ticks[0], 100 + 20 + 3 + 7 + 8 + 9);
    assert_int_equal(ticks[3], 1 + 2 + 3 + 6 + 7);
    assert_int_equal(ticks[1] + ticks[2] + ticks[4] + ticks[5], 0);
    bench_load_read("/nowhere/stat", ticks);
    assert_int_equal(ticks[0], 0);
}

static void spans_add_up(void **state)
{
    struct bench_load *load = calloc(1, sizeof *load);
    struct bench_busy busy;

    (void)state;
    assert_non_null(load);
    bench_load_sum(load, &busy);
    assert_true(busy.seconds == 0); /* nothing yet */
    for (int i = 0; i < 2; i++) {
        bench_load_begin(load);
        bench_load_end(load, 1000);
    }
    assert_int_equal(load->own_ns, 2000);
    assert_true(load->elapsed_ns > 0);
    /* As if a second had passed in which every processor worked twice as much as it can. */
    load->elapsed_ns = 1000000000;
    for (int cpu = 0; cpu < BENCH_CPUS_MAX; cpu++)
        load->ticks[cpu] = 2 * (uint64_t)sysconf(_SC_CLK_TCK);
    bench_load_sum(load, &busy);
    assert_true(busy.cpus >= 1);
    assert_float_equal(busy.busy, busy.cpus, 1e-9);
    assert_float_equal(busy.busiest, 1, 1e-9);
    free(load);
}

static void the_other_node_hears_the_same(void **state)
{
    struct bench_busy busy = {2, 16, 3.5, 1.25, 0.75, 0.125}, heard;
    json_t *json = bench_busy_to_json(&busy);

    (void)state;
    bench_busy_from_json(json, &heard);
    assert_memory_equal(&heard, &busy, sizeof busy);
    json_object_set_new(json, "memory_stall", json_string("much"));
    json_object_set_new(json, "cpus", json_null());
    bench_busy_from_json(json, &heard);
    assert_true(heard.stalled < 0 && heard.cpus == 0);
    json_decref(json);
    busy.seconds = 0;
    json = bench_busy_to_json(&busy);
    assert_true(json_is_null(json));
    bench_busy_from_json(json, &heard);
    assert_true(heard.seconds == 0);
    json_decref(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_all_but_idle_time),
        cmocka_unit_test(spans_add_up),
        cmocka_unit_test(the_other_node_hears_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
