/* The journal of a sweep, and what is read of a run's result. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/sweep/journal.h"
#include "bench/sweep/reading.h"

struct fixture {
    char folder[64], path[96];
    json_t *sweep;
    struct wf_status status;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    assert_non_null(fixture);
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/weft-journal.XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->path, sizeof fixture->path, "%s/sweep.jsonl", fixture->folder);
    fixture->sweep = json_pack("{s:i, s:s}", "seed", 42, "measure", "pair");
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    unlink(fixture->path);
    rmdir(fixture->folder);
    json_decref(fixture->sweep);
    free(fixture);
    return 0;
}

static void add(struct fixture *fixture, struct bench_journal *journal, int point)
{
    json_t *run = json_pack("{s:i}", "point", point);

    assert_int_equal(bench_journal_add(journal, run, &fixture->status), 0);
    json_decref(run);
}

static void append(const struct fixture *fixture, const char *text)
{
    FILE *file = fopen(fixture->path, "a");

    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int point_of(const json_t *run)
{
    return run ? (int)json_integer_value(json_object_get(run, "point")) : -1;
}

static void a_cut_sweep_goes_on(void **state)
{
    struct fixture *fixture = *state;
    struct bench_journal journal;

    assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
    assert_null(bench_journal_next(&journal));
    add(fixture, &journal, 3);
    add(fixture, &journal, 1);
    bench_journal_close(&journal);
    append(fixture, "{\"point\": 7"); /* the cut came in the middle of a line */
    for (int again = 0; again < 2; again++) {
        assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
        assert_int_equal(point_of(bench_journal_next(&journal)), 3);
        assert_int_equal(point_of(bench_journal_next(&journal)), 1);
        if (again)
            assert_int_equal(point_of(bench_journal_next(&journal)), 8);
        assert_null(bench_journal_next(&journal));
        if (!again)
            add(fixture, &journal, 8);
        bench_journal_close(&journal);
    }
}

static void even_its_first_line_may_be_cut(void **state)
{
    struct fixture *fixture = *state;
    struct bench_journal journal;

    append(fixture, "{\"schema\":\"weft.sw");
    for (int again = 0; again < 2; again++) {
        assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
        assert_null(bench_journal_next(&journal));
        bench_journal_close(&journal);
    }
}

static void refused(struct fixture *fixture, int code, const char *said)
{
    struct bench_journal journal;

    int result = bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status);
    bench_journal_close(&journal);
    if (result != code || !strstr(fixture->status.text, said))
        fail_msg("%d: %s", result, fixture->status.text);
}

static void another_sweep_is_not_gone_on_with(void **state)
{
    struct fixture *fixture = *state;
    struct bench_journal journal;

    assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
    bench_journal_close(&journal);
    json_object_set_new(fixture->sweep, "seed", json_integer(43));
    refused(fixture, -EEXIST, "its seed is 42, and that of this one 43");
    json_object_set_new(fixture->sweep, "seed", json_integer(42));
    json_object_set_new(fixture->sweep, "vary", json_string("chunk"));
    refused(fixture, -EEXIST, "its vary is not there, and that of this one \"chunk\"");
    json_object_del(fixture->sweep, "vary");
    append(fixture, "rubbish\n");
    refused(fixture, -EEXIST, "sweep.jsonl:2: this is no run of a sweep");
    unlink(fixture->path);
    append(fixture, "{\"schema\": \"weft.result/1\"}\n");
    refused(fixture, -EEXIST, "is no journal of a sweep");
    unlink(fixture->path);
    append(fixture, "somebody's words without an end");
    refused(fixture, -EEXIST, "is no journal of a sweep");
    struct stat there;
    assert_int_equal(stat(fixture->path, &there), 0);
    assert_true(there.st_size > 0); /* they are still there */
    unlink(fixture->path);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    refused(fixture, -EISDIR, "sweep.jsonl");
    rmdir(fixture->path);
}

/* After a power cut a file may have zeroes in it: what stands behind them is not lost in silence. */
static void zeroes_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct bench_journal journal;

    assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
    add(fixture, &journal, 3);
    bench_journal_close(&journal);
    FILE *file = fopen(fixture->path, "a");
    assert_non_null(file);
    assert_int_equal(fwrite("\0\0\0\0\n{\"point\": 1}\n", 1, 18, file), 18);
    assert_int_equal(fclose(file), 0);
    refused(fixture, -EEXIST, "sweep.jsonl:3: this is no run of a sweep");
}

static void two_sweeps_do_not_share_one(void **state)
{
    struct fixture *fixture = *state;
    struct bench_journal journal;

    assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
    pid_t other = fork();
    if (other == 0) {
        int result = bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status);
        _exit(result == -EEXIST && strstr(fixture->status.text, "another weft sweep is writing") ? 0 : 1);
    }
    int wait_status = -1;
    assert_int_equal(waitpid(other, &wait_status, 0), other);
    assert_int_equal(wait_status, 0);
    bench_journal_close(&journal);
    assert_int_equal(bench_journal_open(&journal, fixture->folder, fixture->sweep, &fixture->status), 0);
    bench_journal_close(&journal);
}

static void without_a_folder_there_is_none(void **state)
{
    struct fixture *fixture = *state;
    struct bench_journal journal;

    assert_int_equal(bench_journal_open(&journal, "", fixture->sweep, &fixture->status), 0);
    add(fixture, &journal, 3);
    assert_null(bench_journal_next(&journal));
    bench_journal_close(&journal);
}

/* --- results --- */

static const char pair_text[] =
    "{\"samples\": [{\"mode\": \"isolated\", \"size_bytes\": 1024, \"cpu_s_per_gb\": 0.5}],"
    " \"summary\": {\"sets\": ["
    "  {\"mode\": \"isolated\", \"size_bytes\": 1024, \"median_p50_us\": 8.0, \"median_bw_gb_per_s\": 2.0,"
    "   \"aggregate_bw_gb_per_s\": null, \"cpu_s_per_gb\": null},"
    "  {\"mode\": \"loaded\", \"size_bytes\": 4096, \"median_p50_us\": 2.0, \"median_bw_gb_per_s\": 1.0,"
    "   \"aggregate_bw_gb_per_s\": 8.0, \"cpu_s_per_gb\": 2.0}]}}";

static void a_run_comes_to_one_figure(void **state)
{
    struct bench_reading reading;
    struct wf_status status;

    (void)state;
    assert_int_equal(bench_reading_from_json(pair_text, false, &reading, &status), 0);
    assert_float_equal(reading.value, 4, 1e-9);        /* sqrt(2 * 8): all pairs at once count together */
    assert_float_equal(reading.cpu_s_per_gb, 1, 1e-9); /* sqrt(0.5 * 2) */
    assert_int_equal(json_array_size(reading.sets), 2);
    bench_reading_fini(&reading);
    assert_int_equal(bench_reading_from_json(pair_text, true, &reading, &status), 0);
    assert_float_equal(reading.value, 4, 1e-9); /* sqrt(8 * 2) */
    bench_reading_fini(&reading);
}

static void what_is_no_result_is_refused(void **state)
{
    static const char *const texts[] = {
        "",
        "weft: no",
        "[]",
        "{}",
        "{\"summary\": {\"sets\": []}}",
        "{\"summary\": {\"sets\": [{\"mode\": \"isolated\", \"median_bw_gb_per_s\": null}]}}",
        "{\"summary\": {\"sets\": [{\"mode\": 7, \"median_bw_gb_per_s\": -1}]}}",
        "{\"summary\": {\"sets\": [7]}}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct bench_reading reading;
        struct wf_status status;
        if (bench_reading_from_json(texts[i], false, &reading, &status) != -EPROTO)
            fail_msg("%s", texts[i]);
        assert_true(reading.value <= 0);
        bench_reading_fini(&reading);
    }
}

/* Sizes give way to memory in silence: the mean over fewer of them is no figure beside the others. */
static void other_messages_are_not_compared(void **state)
{
    static const char *const others[] = {
        "[{\"mode\":\"loaded\",\"size_bytes\":1024}]",
        "[{\"mode\":\"loaded\",\"size_bytes\":1024},{\"mode\":\"isolated\",\"size_bytes\":1048576}]",
        "[{\"mode\":\"loaded\",\"size_bytes\":1024},{\"mode\":\"loaded\",\"size_bytes\":2097152}]",
        ("[{\"mode\":\"loaded\",\"size_bytes\":1024},{\"mode\":\"loaded\",\"size_bytes\":1048576},"
         "{\"mode\":\"loaded\",\"size_bytes\":4194304}]"),
        "[]",
    };
    json_t *first = json_loads("[{\"mode\":\"loaded\",\"size_bytes\":1024,\"value\":1.0},"
                               "{\"mode\":\"loaded\",\"size_bytes\":1048576,\"value\":1.0}]",
                               0, NULL);
    struct bench_reading reading = {.value = 1, .sets = json_deep_copy(first)};
    struct wf_status status = {0};

    (void)state;
    json_object_set_new(json_array_get(reading.sets, 0), "value", json_real(2));
    assert_int_equal(bench_reading_check(&reading, first, &status), 0);
    assert_int_equal(bench_reading_check(&reading, NULL, &status), 0);
    bench_reading_fini(&reading);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        reading.sets = json_loads(others[i], 0, NULL);
        assert_int_equal(bench_reading_check(&reading, first, &status), -EPROTO);
        if (i == 0)
            assert_non_null(strstr(status.text, "(sets: 1, up to 1K, instead of 2, up to 1M)"));
        bench_reading_fini(&reading);
    }
    json_decref(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_cut_sweep_goes_on, set_up, tear_down),
        cmocka_unit_test_setup_teardown(even_its_first_line_may_be_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_sweep_is_not_gone_on_with, set_up, tear_down),
        cmocka_unit_test_setup_teardown(zeroes_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_sweeps_do_not_share_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_folder_there_is_none, set_up, tear_down),
        cmocka_unit_test(a_run_comes_to_one_figure),
        cmocka_unit_test(what_is_no_result_is_refused),
        cmocka_unit_test(other_messages_are_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
