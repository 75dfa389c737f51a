/*
 * A run beside something else: another run, what was predicted, and other settings. The numbers are worked out by hand.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/against.h"
#include "bench/report/contents.h"
#include "bench/report/figures.h"
#include "bench/report/forecast.h"
#include "report_fixture.h"

/* A run with its grid, and what is made of it. */
struct made {
    struct report_run *run;
    struct report_grid grid;
    struct report_figures figures;
    struct report_verdict verdict;
};

static void open_made(struct made *made, json_t *result)
{
    *made = (struct made){.run = report_run_of(result)};
    assert_int_equal(report_grid_init(&made->grid, made->run, NULL), 0);
}

static void close_made(struct made *made)
{
    report_figures_fini(&made->figures);
    report_verdict_fini(&made->verdict);
    report_grid_fini(&made->grid);
    report_run_destroy(made->run);
}

static void near(double value, double expected)
{
    if (!(fabs(value - expected) < 1e-6))
        fail_msg("%.9g is not %.9g", value, expected);
}

/* --- a baseline --- */

static void compare(struct made *one, const struct made *other)
{
    assert_int_equal(report_against(&one->figures, &one->verdict, &one->grid, 0, &other->grid, 0, "before.json", NULL),
                     0);
}

static void a_ratio_is_a_geometric_mean_with_its_interval(void **state)
{
    json_t *now = report_result(), *before = report_result();
    struct made one, other;

    (void)state;
    report_sample(before, "node0:b", "node1:a", 1024, 9, 1); /* another order of the endpoints */
    report_sample(before, "node0:a", "node1:a", 1024, 9, 1);
    report_sample(now, "node0:a", "node1:a", 1024, 5, 2);
    report_sample(now, "node0:b", "node1:a", 1024, 5, 8);
    report_sample(now, "node0:c", "node1:a", 1024, 5, 100); /* which the other has not */
    report_sample(now, "node0:a", "node1:a", 4096, 5, 100); /* nor this size */
    open_made(&one, now);
    open_made(&other, before);
    compare(&one, &other);
    assert_int_equal(one.figures.count, 1);
    const struct report_figure *figure = one.figures.list[0];
    assert_string_equal(figure->id, "against-before-json");
    assert_int_equal(figure->rows, 1);
    /* log 2 and log 8: mean log 4, deviation log 2 * sqrt 2, over sqrt 2, times 12.706 of one degree */
    near(report_number_named(figure, "ratio", 0), 4);
    near(log(report_number_named(figure, "high", 0) / 4) / log(2), 12.706);
    near(report_number_named(figure, "low", 0) * report_number_named(figure, "high", 0), 16);
    near(report_number_named(figure, "pairs", 0), 2);
    assert_string_equal(report_cell_named(figure, "beyond chance", 0), ""); /* two pairs, and so unlike */
    assert_non_null(report_said(&one.verdict, "Against before.json, isolated: 4.00 times as fast"));
    close_made(&one);
    close_made(&other);
}

static void faster_and_slower_are_beyond_chance(void **state)
{
    static const char *const names[] = {"node0:a", "node0:b", "node0:c", "node0:d"};
    json_t *now = report_result(), *before = report_result();
    struct made one, other;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        double wobble = 1 + 0.001 * (double)i;
        for (int size = 1; size <= 3; size++)
            report_sample(before, names[i], "node1:a", size, 9, 10);
        report_sample(now, names[i], "node1:a", 1, 5, 12 * wobble);
        report_sample(now, names[i], "node1:a", 2, 5, 8 * wobble);
        report_sample(now, names[i], "node1:a", 3, 5, 10.2 * wobble); /* about equal, whatever the interval is */
    }
    open_made(&one, now);
    open_made(&other, before);
    compare(&one, &other);
    const struct report_figure *figure = one.figures.list[0];
    assert_string_equal(report_cell_named(figure, "beyond chance", 0), "faster");
    assert_string_equal(report_cell_named(figure, "beyond chance", 1), "slower");
    assert_string_equal(report_cell_named(figure, "beyond chance", 2), "");
    assert_non_null(
        report_said(&one.verdict, "by more than the pairs differ, 1 is faster and 1 slower, of one run each"));
    close_made(&one);
    close_made(&other);
}

static void of_one_pair_there_is_no_interval(void **state)
{
    json_t *now = report_result(), *before = report_result();
    struct made one, other;

    (void)state;
    report_sample(before, "node0:a", "node1:a", 8, 10, 1);
    report_sample(now, "node0:a", "node1:a", 8, 5, 2);
    /* Of half round trips the times count, and above 1 is faster as well. */
    json_object_set_new(report_sample(before, "node0:a", "node1:a", 8, 10, 0), "test", json_string("latency"));
    json_object_set_new(report_sample(now, "node0:a", "node1:a", 8, 5, 0), "test", json_string("latency"));
    open_made(&one, now);
    open_made(&other, before);
    compare(&one, &other);
    const struct report_figure *figure = one.figures.list[0];
    assert_int_equal(figure->rows, 2);
    for (size_t row = 0; row < 2; row++) {
        near(report_number_named(figure, "ratio", row), 2);
        assert_true(isnan(report_number_named(figure, "low", row)));
        assert_string_equal(report_cell_named(figure, "beyond chance", row), "one pair: no interval");
    }
    assert_string_equal(report_cell_named(figure, "mode", 1), "half round trip");
    assert_non_null(report_said(&one.verdict, "of one pair nothing says how much of that is chance"));
    close_made(&one);
    close_made(&other);
}

static void what_has_nothing_in_common_is_no_figure(void **state)
{
    json_t *now = report_result(), *before = report_result();
    struct made one, other;

    (void)state;
    report_sample(before, "node0:x", "node1:x", 8, 10, 1);
    report_sample(before, "node0:a", "node1:a", 16, 10, 1);
    report_sample(now, "node0:a", "node1:a", 8, 5, 2);
    report_sample(now, "node0:a", "node1:a", 16, 5, 0); /* no rate, no ratio */
    open_made(&one, now);
    open_made(&other, before);
    compare(&one, &other);
    assert_int_equal(one.figures.count, 0);
    assert_int_equal(one.verdict.count, 0);
    close_made(&one);
    close_made(&other);
}

static void a_baseline_is_a_file_or_a_backend(void **state)
{
    json_t *result = report_result(), *other = report_result();
    struct wf_status status = {0};

    (void)state;
    report_sample(other, "node0:z", "node1:z", 8, 10, 1);
    report_sample(result, "node0:a", "node1:a", 8, 5, 3);
    json_object_set_new(report_sample(result, "node0:a", "node1:a", 8, 5, 1), "backend", json_string("tcp"));
    const char *empty = report_json_file("none.json", report_result());
    const char *path = report_json_file("two.json", result), *strange = report_json_file("strange.json", other);
    const struct {
        const char *baseline, *said;
    } cases[] = {
        {NULL, "Against tcp, isolated: 3.00 times as fast"},
        {"weft", "Against weft, isolated: 0.33 times as fast"},
        {path, "two.json, isolated: 1.00 times as fast"},
        {strange, "strange.json has no pair, size and mode in common with this run"},
        {empty, "none.json has no pair, size and mode in common with this run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct report_contents contents = {0};
        assert_int_equal(report_contents_read(&contents, &path, 1, &status), 0);
        assert_int_equal(report_contents_make(&contents, &(struct report_wish){cases[i].baseline, NULL}, &status), 0);
        if (!report_said(&contents.chapters[0].verdict, cases[i].said))
            fail_msg("case %zu: not said: %s", i, cases[i].said);
        report_contents_fini(&contents);
    }
    struct report_contents contents = {0};
    assert_int_equal(report_contents_read(&contents, &path, 1, &status), 0);
    assert_true(report_contents_make(&contents, &(struct report_wish){"nobody", NULL}, &status) < 0);
    assert_non_null(strstr(status.text, "--baseline nobody"));
    report_contents_fini(&contents);
}

/* --- a prediction --- */

/* Two endpoints of each node, of which ranks are 0 to 3; from a to x three sizes: 10, 15 and 40 us. */
static json_t *predicted_mesh(void)
{
    json_t *result = report_result();

    report_sample(result, "node1:host0", "node0:host0", 1024, 10, 1); /* the order of samples is not that of ranks */
    report_sample(result, "node0:host10", "node1:host0", 1024, 10, 1);
    report_sample(result, "node0:host9", "node1:host0", 1024, 10, 1);
    report_sample(result, "node0:host9", "node1:host0", 2048, 15, 1);
    report_sample(result, "node0:host9", "node1:host0", 65536, 40, 1);
    json_object_set_new(report_sample(result, "node0:host9", "node1:host0", 4096, 99, 1), "mode",
                        json_string("loaded"));
    return result; /* ranks: node0:host0, node0:host9, node0:host10, node1:host0 */
}

static int predict(struct made *made, const char *text, struct wf_status *status)
{
    struct report_forecast forecast;
    int result = report_forecast_read(&forecast, report_text_file("predicted.csv", text), status);

    if (result == 0)
        result = report_forecast_add(&made->figures, &made->verdict, &made->grid, &forecast, status);
    report_forecast_fini(&forecast);
    return result;
}

static void errors_are_by_size_pair_and_regime(void **state)
{
    struct made made;

    (void)state;
    open_made(&made, predicted_mesh());
    assert_int_equal(predict(&made,
                             "time_us,src,dst,size_bytes\r\n" /* columns may stand in any order */
                             "11,1,3,1024\n"                  /* + 10 % */
                             "\n"
                             "7.5,node0:host9,node1:host0,2048\n" /* - 50 %, and 15 us are less than twice 10 us */
                             "60,1,node1:host0,65536\n"           /* + 50 %, bandwidth */
                             "13,2,3,1024\n"                      /* + 30 %, of another pair */
                             "5,1,3,4096\n"                       /* not measured in isolated */
                             "5,9,3,1024\n"                       /* nobody's rank */
                             "5,nobody,3,1024\n",
                             NULL),
                     0);
    const struct report_figure *by_size = report_figure_named(&made.figures, "predicted-by-size");
    assert_int_equal(by_size->rows, 3);
    near(report_number_named(by_size, "size", 0), 1024);
    near(report_number_named(by_size, "error, median", 0), 20); /* of 10 and 30 */
    near(report_number_named(by_size, "error, 10 %", 0), 10);
    near(report_number_named(by_size, "error, 90 %", 0), 30);
    near(report_number_named(by_size, "samples", 0), 2);
    near(report_number_named(by_size, "error, median", 1), -50);
    near(report_number_named(by_size, "error, worst", 2), 50);

    const struct report_figure *by_pair = report_figure_named(&made.figures, "predicted-by-pair");
    assert_int_equal(by_pair->rows, 2);
    size_t row = strcmp(report_cell_named(by_pair, "source", 0), "node0:host9") == 0 ? 0 : 1;
    near(report_number_named(by_pair, "error, median", row), 10); /* of -50, 10, 50 */
    near(fabs(report_number_named(by_pair, "error, worst", row)), 50);
    near(report_number_named(by_pair, "error, median", 1 - row), 30);

    const struct report_figure *by_regime = report_figure_named(&made.figures, "predicted-by-regime");
    assert_int_equal(by_regime->rows, 2);
    assert_string_equal(report_cell_named(by_regime, "regime", 0), "latency");
    near(report_number_named(by_regime, "samples", 0), 3);
    near(report_number_named(by_regime, "error, median", 0), 10); /* of -50, 10, 30 */
    near(report_number_named(by_regime, "error, worst", 0), -50);
    assert_string_equal(report_cell_named(by_regime, "regime", 1), "bandwidth");
    near(report_number_named(by_regime, "error, median", 1), 50);
    assert_int_equal(report_figure_named(&made.figures, "predicted")->rows, 8); /* measured and predicted */
    assert_non_null(report_said(&made.verdict, "regime bandwidth: +50.0 % off"));
    close_made(&made);
}

static void a_bad_line_is_named_by_its_number(void **state)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "does not name the column src"},
        {"src,dst,size_bytes\n0,1,1\n", "does not name the column time_us"},
        {"src,dst,size_bytes,time_us\n0,3,1024,5\n\n0,3,1024\n", "line 4 is not"},
        {"src,dst,size_bytes,time_us\n0,3,1024,0\n", "line 2 is not"},
        {"src,dst,size_bytes,time_us\n0,3,1024,-1\n", "line 2 is not"},
        {"src,dst,size_bytes,time_us\n0,3,-1,5\n", "line 2 is not"},
        {"src,dst,size_bytes,time_us\n0,3,1e300,5\n", "line 2 is not"},
        {"src,dst,size_bytes,time_us\n0,3,1K,5\n", "line 2 is not"},
        {"src,dst,size_bytes,time_us\n0,3,1024,nan\n", "line 2 is not"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wf_status status = {0};
        struct made made;
        open_made(&made, predicted_mesh());
        if (predict(&made, cases[i].text, &status) != -EPROTO || !strstr(status.text, cases[i].words))
            fail_msg("case %zu: '%s'", i, status.text);
        assert_int_equal(made.figures.count, 0);
        close_made(&made);
    }
    struct report_forecast forecast;
    struct wf_status status = {0};
    assert_int_equal(report_forecast_read(&forecast, report_path("nowhere.csv"), &status), -ENOENT);
    assert_non_null(strstr(status.text, "--predicted"));
    report_forecast_fini(&forecast);
    assert_int_equal(report_forecast_read(&forecast, "/dev/zero", &status), -ESPIPE);
    report_forecast_fini(&forecast);
}

static void what_predicts_nothing_here_says_so(void **state)
{
    struct made made;

    (void)state;
    open_made(&made, predicted_mesh());
    assert_int_equal(predict(&made, "src,dst,size_bytes,time_us\nnobody,node1:host0,1024,5\n", NULL), 0);
    assert_int_equal(made.figures.count, 0);
    assert_non_null(report_said(&made.verdict, "predicts no pair and size of this run"));
    close_made(&made);
}

/* --- settings --- */

static const struct report_figure *surface_of(const char *text, struct report_figures *figures)
{
    struct report_run *run = NULL;

    assert_int_equal(report_run_read(report_text_file("sweep.json", text), NULL, &run, NULL), 0);
    assert_int_equal(report_sweep(figures, run, NULL), 0);
    report_run_destroy(run);
    return report_figure_named(figures, "surface");
}

static void axes_are_the_settings_of_a_sweep(void **state)
{
    struct report_figures figures = {0};
    const struct report_figure *surface =
        surface_of("{\"schema\":\"weft.sweep/1\",\"unit\":\"GB/s\",\"best\":{\"point\":2},\"points\":["
                   "{\"point\":0,\"value\":3,\"default\":true,\"settings\":{\"chunk\":1048576,\"streams\":10}},"
                   "{\"point\":1,\"value\":4,\"failures\":1,\"settings\":{\"chunk\":\"64K\",\"streams\":10}},"
                   "{\"point\":2,\"value\":5,\"settings\":{\"chunk\":\"64K\",\"streams\":9}},"
                   "{\"point\":3,\"value\":6,\"settings\":{\"chunk\":\"auto\"}}]}",
                   &figures);

    (void)state;
    assert_int_equal(surface->kind, REPORT_HEAT);
    assert_int_equal(surface->rows, 4);
    assert_int_equal(surface->columns[0].role, REPORT_X);
    assert_int_equal(surface->columns[1].role, REPORT_Y);
    /* The second axis goes first, and both by what they are worth: 64K before 1M, numbers before words. */
    assert_string_equal(report_cell_named(surface, "chunk", 0), "64K");
    assert_string_equal(report_cell_named(surface, "streams", 0), "9");
    assert_string_equal(report_cell_named(surface, "remark", 0), "best");
    assert_string_equal(report_cell_named(surface, "remark", 1), "runs failed");
    assert_string_equal(report_cell_named(surface, "chunk", 2), "1M");
    assert_string_equal(report_cell_named(surface, "remark", 2), "default");
    assert_string_equal(report_cell_named(surface, "chunk", 3), "auto");
    assert_string_equal(report_cell_named(surface, "streams", 3), "");
    report_figures_fini(&figures);
}

static void one_axis_is_bars(void **state)
{
    struct report_figures figures = {0};

    (void)state;
    assert_int_equal(surface_of("{\"schema\":\"weft.sweep/1\",\"points\":[{\"value\":1,\"settings\":{\"chunk\":0.25}},"
                                "{\"value\":2,\"settings\":{\"chunk\":0.5}}]}",
                                &figures)
                         ->kind,
                     REPORT_BARS);
    assert_string_equal(report_cell_named(figures.list[0], "chunk", 1), "0.5");
    report_figures_fini(&figures);
    assert_null(surface_of("{\"schema\":\"weft.sweep/1\"}", &figures));
    report_figures_fini(&figures);
    assert_null(surface_of("{\"schema\":\"weft.sweep/1\",\"points\":[7,{}],\"best\":[]}", &figures));
    report_figures_fini(&figures);
}

static struct report_run *run_with(const char *chunk, const char *seed, double peak)
{
    json_t *result = report_result();

    json_object_set_new(result, "config",
                        json_pack("{s:{s:s}, s:{s:s}, s:{s:s}}", "chunk", "value", chunk, "seed", "value", seed,
                                  "engine", "value", "uring"));
    json_object_set_new(json_object_get(result, "summary"), "peak", json_pack("{s:f}", "bw_gb_per_s", peak));
    return report_run_of(result);
}

static void a_surface_of_runs_is_over_what_differs(void **state)
{
    struct report_run *runs[] = {run_with("1M", "1", 5), run_with("64K", "2", 4)};
    struct report_figures figures = {0};

    (void)state;
    assert_int_equal(report_surface_of_runs(&figures, runs, 2, NULL), 0);
    const struct report_figure *surface = report_figure_named(&figures, "surface");
    assert_int_equal(surface->kind, REPORT_BARS); /* a seed is no setting that anybody compares */
    assert_string_equal(report_cell_named(surface, "chunk", 0), "64K");
    near(report_number_named(surface, "value", 0), 4);
    assert_string_equal(report_cell_named(surface, "remark", 1), "best");
    report_figures_fini(&figures);
    assert_int_equal(report_surface_of_runs(&figures, runs, 1, NULL), 0);
    assert_int_equal(figures.count, 0);
    report_run_destroy(runs[0]);
    report_run_destroy(runs[1]);
}

static void lists_that_begin_alike_are_several_values(void **state)
{
    static const char *const lists[][2] = {{"10.0.0.1", "10.0.0.1,10.0.1.1"}, {"0,1", "0,2"}, {"1M", "1M,2M"}};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct report_run *runs[] = {run_with(lists[i][1], "1", 5), run_with(lists[i][0], "1", 4)};
        struct report_figures figures = {0};
        assert_int_equal(report_surface_of_runs(&figures, runs, 2, NULL), 0);
        const struct report_figure *surface = report_figure_named(&figures, "surface");
        assert_int_equal(surface->rows, 2);
        assert_string_equal(report_cell_named(surface, "chunk", 0), lists[i][0]);
        assert_string_equal(report_cell_named(surface, "chunk", 1), lists[i][1]);
        report_figures_fini(&figures);
        report_run_destroy(runs[0]);
        report_run_destroy(runs[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ratio_is_a_geometric_mean_with_its_interval),
        cmocka_unit_test(faster_and_slower_are_beyond_chance),
        cmocka_unit_test(of_one_pair_there_is_no_interval),
        cmocka_unit_test(what_has_nothing_in_common_is_no_figure),
        cmocka_unit_test(a_baseline_is_a_file_or_a_backend),
        cmocka_unit_test(errors_are_by_size_pair_and_regime),
        cmocka_unit_test(a_bad_line_is_named_by_its_number),
        cmocka_unit_test(what_predicts_nothing_here_says_so),
        cmocka_unit_test(axes_are_the_settings_of_a_sweep),
        cmocka_unit_test(one_axis_is_bars),
        cmocka_unit_test(a_surface_of_runs_is_over_what_differs),
        cmocka_unit_test(lists_that_begin_alike_are_several_values),
    };

    return cmocka_run_group_tests(tests, report_folder_setup, report_folder_teardown);
}
