/*
 * GPUs that are hot, rails that carry too little, and what a machine did second by second.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/figures.h"
#include "bench/report/oddities.h"
#include "bench/report/rails.h"
#include "report_fixture.h"

/* --- GPUs --- */

static struct report_gpus gpus; /* large */

static void add_gpus(size_t count, const char *model, const double *celsius)
{
    for (size_t i = 0; i < count; i++) {
        struct report_gpu *gpu = &gpus.list[gpus.count++];
        *gpu = (struct report_gpu){.celsius = celsius[i]};
        snprintf(gpu->name, sizeof gpu->name, "node0 gpu%zu", gpus.count - 1);
        snprintf(gpu->model, sizeof gpu->model, "%s", model);
    }
}

/* Why a GPU is hot; "" where it is not. */
static const char *heat(size_t at)
{
    static char why[256];

    why[0] = '\0';
    return report_gpu_is_hot(&gpus, at, why, sizeof why) ? why : "";
}

static void a_gpu_is_hot_beside_three_others_of_its_model(void **state)
{
    (void)state;
    gpus.count = 0;
    add_gpus(4, "A", (double[]){50, 52, 54, 67});
    assert_string_equal(heat(3), "it was at 67 °C, the others at 52 °C");
    assert_string_equal(heat(0), "");
    gpus.list[3].celsius = 66.9; /* less than 15 above 52 */
    assert_string_equal(heat(3), "");
    gpus.count = 0;
    add_gpus(3, "A", (double[]){50, 50, 80}); /* of two nothing is usual */
    add_gpus(2, "B", (double[]){40, 40});
    assert_string_equal(heat(2), "");
    gpus.list[2].celsius = 85; /* whatever the others have */
    assert_string_equal(heat(2), "it was at 85 °C");
    gpus.list[2].celsius = NAN;
    assert_string_equal(heat(2), "");
}

static void what_slowed_down_is_hot(void **state)
{
    (void)state;
    gpus.count = 0;
    add_gpus(1, "A", (double[]){40});
    snprintf(gpus.list[0].throttling, sizeof gpus.list[0].throttling, "hw thermal slowdown");
    assert_string_equal(heat(0), "it slowed down: hw thermal slowdown");
}

static void gpus_of_results_are_read_whatever_they_say(void **state)
{
    json_t *result = report_result();

    (void)state;
    json_object_set_new(
        result, "host",
        json_loads("[{\"node\":\"node0\",\"gpus\":["
                   "{\"gpu\":0,\"name\":\"A\",\"before\":{\"temperature_c\":70},\"after\":{\"temperature_c\":60,"
                   "\"throttling\":\"sw power cap\"}},"
                   "{\"gpu\":1,\"name\":\"A\",\"after\":{\"temperature_c\":55,\"throttling\":\"idle\"}},"
                   "{\"gpu\":1e300},{\"gpu\":-4},{},7]},7]",
                   0, NULL));
    struct report_run *run = report_run_of(result);
    gpus.count = 0;
    report_gpus_add(&gpus, run);
    assert_string_equal(gpus.list[0].name, "node0 gpu0");
    assert_string_equal(gpus.list[0].throttling, "sw power cap");
    assert_true(gpus.list[0].celsius == 70);          /* the most of both moments */
    assert_string_equal(gpus.list[1].throttling, ""); /* who idles is not hot */
    assert_true(gpus.list[1].celsius == 55);
    assert_true(gpus.count <= REPORT_GPUS_MAX);
    report_run_destroy(run);
}

/* --- temperatures.csv --- */

static const char second_by_second[] =
    "timestamp_ns,node,device,temperature_c,power_w,clock_mhz,throttling,busy,bound,rx_bytes,tx_bytes,retransmits\n"
    "1000000000,0,gpu0,50,300,1980,,,,,,\n"
    "1000000000,0,eth0,,,,,,,1000000000,0,\n"
    "1000000000,0,cpu,,,,,0.25,,,,\n"
    "1000000000,0,cpu3,,,,,0.75,1,,,\n"
    "1000000000,0,cpu4,,,,,0.5,0,,,\n"
    "no line of this file\n"
    "3000000000,0,gpu0,88,310,1500,hw thermal slowdown,,,,,\n"
    "3000000000,0,eth0,,,,,,,5000000000,,\n"
    "5000000000,0,eth0,,,,,,,4000000000,,\n" /* a counter that went back */
    "6000000000,0,eth0,,,,,,,4500000000,,\r\n";

static struct report_run *sense_run(const char *text)
{
    struct report_run *run = NULL;

    assert_int_equal(report_run_read(report_text_file("temperatures.csv", text), NULL, &run, NULL), 0);
    return run;
}

static void timelines_are_of_devices(void **state)
{
    struct report_run *run = sense_run(second_by_second);
    struct report_figures figures = {0};
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(report_sense(&figures, run, &status), 0);
    const struct report_figure *heat_of = report_figure_named(&figures, "temperature");
    assert_int_equal(heat_of->rows, 2);
    assert_string_equal(report_cell_named(heat_of, "device", 0), "node0 gpu0");
    assert_true(report_number_named(heat_of, "time", 0) == 0 && report_number_named(heat_of, "time", 1) == 2);
    assert_string_equal(report_cell_named(heat_of, "throttling", 0), "");
    assert_string_equal(report_cell_named(heat_of, "throttling", 1), "hw thermal slowdown");
    assert_string_equal(report_cell_named(report_figure_named(&figures, "clock"), "throttling", 1),
                        "hw thermal slowdown");

    /* Bytes became a rate: 4 GB in 2 s, nothing where the counter went back, then 0.5 GB in a second. */
    const struct report_figure *received = report_figure_named(&figures, "received");
    assert_int_equal(received->rows, 2);
    assert_true(fabs(report_number_named(received, "Received by each network interface", 0) - 2) < 1e-9);
    assert_true(fabs(report_number_named(received, "Received by each network interface", 1) - 0.5) < 1e-9);
    assert_true(report_number_named(received, "time", 1) == 5);
    assert_null(report_figure_named(&figures, "sent")); /* one reading is no rate */

    /* Of processors all together, and the bound ones. */
    const struct report_figure *busy = report_figure_named(&figures, "busy");
    assert_int_equal(busy->rows, 2);
    assert_true(report_number_named(busy, "How busy the processors were", 0) == 25);
    assert_string_equal(report_cell_named(busy, "device", 1), "node0 cpu3");
    report_figures_fini(&figures);

    gpus.count = 0;
    report_gpus_add(&gpus, run);
    assert_int_equal(gpus.count, 1);
    assert_true(gpus.list[0].celsius == 88);
    assert_string_equal(gpus.list[0].throttling, "hw thermal slowdown");
    report_run_destroy(run);
}

static void a_header_alone_and_lost_columns_are_no_harm(void **state)
{
    static const char *const texts[] = {
        "timestamp_ns,node,device,", "timestamp_ns,node,device,temperature_c\n1,0\n,,,\n1,0,gpu0\n",
        "timestamp_ns,node,device,throttling,temperature_c\n1,0,gpu0,\"thermal\n2,0,gpu0,\n1e308,0,gpu0,x,-1e308\n",
        "timestamp_ns,node,device,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,temperature_c\n1,0,gpu0\n"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct report_run *run = sense_run(texts[i]);
        struct report_figures figures = {0};
        gpus.count = 0;
        assert_int_equal(report_sense(&figures, run, NULL), 0);
        report_gpus_add(&gpus, run);
        report_figures_fini(&figures);
        report_run_destroy(run);
    }
}

static void a_core_takes_no_place_of_a_gpu(void **state)
{
    char text[8192] = "timestamp_ns,node,device,temperature_c,busy,bound\n";

    (void)state;
    for (int i = 0; i < 200; i++) {
        size_t length = strlen(text);
        snprintf(text + length, sizeof text - length, "1000000000,0,cpu%d,,0.5,1\n", i);
    }
    strcat(text, "1000000000,0,gpu0,50,,\n");
    struct report_run *run = sense_run(text);
    struct report_figures figures = {0};
    assert_int_equal(report_sense(&figures, run, NULL), 0);
    const struct report_figure *heat_of = report_figure_named(&figures, "temperature");
    assert_non_null(heat_of);
    assert_string_equal(report_cell_named(heat_of, "device", 0), "node0 gpu0");
    report_figures_fini(&figures);
    report_run_destroy(run);
}

/* --- rails --- */

static void a_share_is_beside_that_of_the_line_rates(void **state)
{
    json_t *result = report_result();
    json_t *small = report_sample(result, "node0:a", "node1:a", 1024, 5, 1);
    json_t *large = report_sample(result, "node0:a", "node1:a", 4096, 5, 1);

    (void)state;
    /* Of the largest size; of small ones a rail may carry what it likes. */
    json_object_set_new(small, "rails", json_pack("[{s:s, s:i}]", "name", "eth0", "bytes", 1000000));
    json_object_set_new(
        large, "rails",
        json_pack("[{s:s, s:i}, {s:s, s:i}]", "name", "eth0", "bytes", 300, "name", "eth1", "bytes", 100));
    json_object_set_new(result, "rails",
                        json_pack("[{s:s, s:s, s:i}, {s:s, s:s, s:i}, {s:s, s:s, s:n}, {s:s, s:s, s:i}]", "node",
                                  "node1", "name", "eth0", "speed_mbit", 30000, "node", "node1", "name", "eth1",
                                  "speed_mbit", 10000, "node", "node0", "name", "eth0", "speed_mbit", "node", "node0",
                                  "name", "eth1", "speed_mbit", 10000));
    struct report_run *run = report_run_of(result);
    const json_t *rails = json_object_get(run->root, "rails");
    assert_true(fabs(report_rail_share(run, json_array_get(rails, 0)) - 0.75) < 1e-9);
    assert_true(fabs(report_rail_share(run, json_array_get(rails, 1)) - 0.25) < 1e-9);
    assert_true(isnan(report_rail_share(run, json_array_get(rails, 2)))); /* nothing came to node0 */
    assert_true(fabs(report_rail_fair(rails, json_array_get(rails, 0)) - 0.75) < 1e-9);
    assert_true(fabs(report_rail_fair(rails, json_array_get(rails, 2)) - 0.5) < 1e-9); /* one is not known */

    struct report_figures figures = {0};
    assert_int_equal(report_rails(&figures, run, NULL), 0);
    const struct report_figure *shares = report_figure_named(&figures, "rails");
    assert_int_equal(shares->rows, 4); /* of node1's two, what it carried and what it should */
    assert_true(report_number_named(shares, "share", 0) == 75 && report_number_named(shares, "share", 1) == 75);
    assert_int_equal(report_figure_named(&figures, "rails-counts")->rows, 4);
    report_figures_fini(&figures);
    report_run_destroy(run);
}

static void marks_of_rails_are_of_those_that_failed(void **state)
{
    json_t *result = report_result();

    (void)state;
    json_object_set_new(result, "rails",
                        json_pack("[{s:s, s:s, s:b}, {s:s, s:s, s:i}, {s:s, s:s}, i]", "node", "node0", "name", "eth0",
                                  "retired", 1, "node", "node0", "name", "eth1", "failures", 2, "node", "node0", "name",
                                  "eth2", 7));
    struct report_run *run = report_run_of(result);
    struct report_figures figures = {0};
    assert_int_equal(report_rails(&figures, run, NULL), 0);
    const struct report_figure *counts = report_figure_named(&figures, "rails-counts");
    assert_string_equal(report_cell_named(counts, "remark", 0), "retired: it damaged too much");
    assert_string_equal(report_cell_named(counts, "remark", 1), "connections were lost");
    assert_string_equal(report_cell_named(counts, "remark", 2), "");
    report_figures_fini(&figures);
    report_run_destroy(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_hot_beside_three_others_of_its_model),
        cmocka_unit_test(what_slowed_down_is_hot),
        cmocka_unit_test(gpus_of_results_are_read_whatever_they_say),
        cmocka_unit_test(timelines_are_of_devices),
        cmocka_unit_test(a_header_alone_and_lost_columns_are_no_harm),
        cmocka_unit_test(a_core_takes_no_place_of_a_gpu),
        cmocka_unit_test(a_share_is_beside_that_of_the_line_rates),
        cmocka_unit_test(marks_of_rails_are_of_those_that_failed),
    };

    return cmocka_run_group_tests(tests, report_folder_setup, report_folder_teardown);
}
