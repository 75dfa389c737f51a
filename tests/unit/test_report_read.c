/*
 * Files that a report is to be made of: what is a result, what is none and why, and that no file stops the others. A
 * file is somebody's word: fields may be missing, of another type, or as large as numbers are.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/report/contents.h"
#include "report_fixture.h"

/* Reads a file that has to be refused with a code and words. */
static void refused(const char *path, int code, const char *words)
{
    struct report_run *run = NULL;
    struct wf_status status = {0};
    int result = report_run_read(path, NULL, &run, &status);

    if (result == 0)
        report_run_destroy(run);
    if (result != code || !strstr(status.text, words))
        fail_msg("%s: %d, '%s' is not %d, '%s'", path, result, status.text, code, words);
    assert_null(run);
}

static void text_is_refused(const char *text, int code, const char *words)
{
    refused(report_text_file("refused.json", text), code, words);
}

/* --- what it is --- */

static void what_is_no_result_is_refused_with_its_reason(void **state)
{
    static const unsigned char binary[] = {0x7f, 'E', 'L', 'F', 0, 1, 2, 0xff};

    (void)state;
    text_is_refused("", -EBADMSG, "it is empty");
    text_is_refused("hello", -EBADMSG, "it is no JSON");
    refused(report_file("binary.json", binary, sizeof binary), -EBADMSG, "it is no JSON");
    text_is_refused("{\"schema\":\"weft.result/1\",\"samples\":[{\"src\"", -EBADMSG, "ends in the middle (line 1)");
    text_is_refused("{\"schema\":\"weft.result/1\",\"samples\":[]} x", -EBADMSG, "it is no JSON, or is damaged");
    text_is_refused("{\"schema\":\"weft.result/1\",\"n\":1e999,\"samples\":[]}", -EBADMSG, "damaged");
    text_is_refused("[]", -EPROTO, "no schema of ours");
    text_is_refused("{}", -EPROTO, "no schema of ours");
    text_is_refused("{\"schema\":1}", -EPROTO, "no schema of ours");
    text_is_refused("{\"schema\":\"other/1\"}", -EPROTO, "no schema of ours");
    text_is_refused("{\"schema\":\"weft.topo/1\"}", -EPROTO, "its schema is weft.topo/1, of which there is no report");
    refused(report_path("nowhere.json"), -ENOENT, "No such file");
}

static void versions_are_numbers(void **state)
{
    (void)state;
    text_is_refused("{\"schema\":\"weft.result/2\"}", -EBADMSG,
                    "newer weft: its schema is weft.result/2, and weft.result/1");
    text_is_refused("{\"schema\":\"weft.sweep/2\"}", -EBADMSG, "newer");
    text_is_refused("{\"schema\":\"weft.result/4294967297\"}", -EBADMSG, "newer"); /* 2^32 + 1 */
    text_is_refused("{\"schema\":\"weft.result/99999999999999999999\"}", -EBADMSG, "newer");
    static const char *const none[] = {"", "0", "-1", "x", "1x", "1.5", " 1", "+1"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"schema\":\"weft.result/%s\",\"samples\":[]}", none[i]);
        text_is_refused(text, -EPROTO, "of which there is no report");
    }
}

static void the_schema_says_what_it_is(void **state)
{
    static const struct {
        const char *name, *text;
        enum report_source source;
    } files[] = {
        {"a.json", "{\"schema\":\"weft.result/1\",\"samples\":[]}", REPORT_OF_RUN},
        {"b.json", "{\"schema\":\"weft.result/1\",\"command\":\"peers\",\"samples\":7}", REPORT_OF_PEERS},
        {"c.json", "{\"schema\":\"weft.sweep/1\"}", REPORT_OF_SWEEP},
        {"d.json", "{\"schema\":\"weft.model/1\"}", REPORT_OF_MODEL},
        {"e.csv", "timestamp_ns,node,device,x\n", REPORT_OF_SENSE},
        {"f.svg", "<?xml?><svg/>", REPORT_OF_PLAN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct report_run *run = NULL;
        assert_int_equal(report_run_read(report_text_file(files[i].name, files[i].text), NULL, &run, NULL), 0);
        assert_int_equal(run->source, files[i].source);
        report_run_destroy(run);
    }
    refused(report_text_file("g.csv", "weft,node0\n"), -EPROTO, "it is CSV, but none");
    refused(report_text_file("h.svg", "<html>"), -EPROTO, "no drawing in SVG");
    refused(report_text_file("i.csv", ""), -EBADMSG, "it is empty");
}

static void what_is_no_file_is_not_waited_for(void **state)
{
    const char *pipe_path = report_path("pipe.json"), *sparse = report_text_file("sparse.json", "{");

    (void)state;
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    refused(pipe_path, -ESPIPE, "a pipe or a device");
    refused("/dev/null", -ESPIPE, "a pipe or a device");
    refused("/tmp", -EISDIR, "it is a folder");
    if (truncate(sparse, 100ll << 30) == 0) /* not every file system has so large ones */
        refused(sparse, -EFBIG, "it has 100");
    const char *wide = report_text_file("wide.csv", "timestamp_ns,");
    assert_int_equal(truncate(wide, 65ll << 20), 0);
    refused(wide, -EFBIG, "more than the 64 MiB");
}

/* --- samples --- */

static void a_sample_without_its_own_is_damage(void **state)
{
    static const struct {
        const char *key, *value, *words;
    } cases[] = {
        {"src", "null", "sample 2 has no src"},
        {"src", "7", "no src"},
        {"dst", "\"\"", "no dst"},
        {"size_bytes", "-1", "no size_bytes"},
        {"size_bytes", "\"64K\"", "no size_bytes"},
        {"size_bytes", "1e300", "no size_bytes"},
        {"size_bytes", "9223372036854775807", "no size_bytes"},
        {"time_us", "5", "no time_us.p50"},
        {"time_us", "{\"p50\":-1}", "no time_us.p50"},
        {"time_us", "{\"p50\":\"5\"}", "no time_us.p50"},
        {"mode", "\"both\"", "no mode that is known"},
        {"mode", "null", "no mode that is known"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *result = report_result();
        report_sample(result, "node0:a", "node1:a", 1024, 5, 1);
        json_t *sample = report_sample(result, "node0:a", "node1:a", 1024, 5, 1);
        json_object_set_new(sample, cases[i].key, json_loads(cases[i].value, JSON_DECODE_ANY, NULL));
        refused(report_json_file("damaged.json", result), -EBADMSG, cases[i].words);
    }
    text_is_refused("{\"schema\":\"weft.result/1\"}", -EBADMSG, "it has no samples");
    text_is_refused("{\"schema\":\"weft.result/1\",\"samples\":{}}", -EBADMSG, "it has no samples");
    text_is_refused("{\"schema\":\"weft.result/1\",\"samples\":[7]}", -EBADMSG, "sample 1 has no src");
}

static void what_a_sample_needs_not_say_is_not_known(void **state)
{
    json_t *result = report_result();
    json_t *sample = report_sample(result, "node0:a", "node1:a", 1024, 5, 1);

    (void)state;
    json_object_set_new(sample, "bw_gb_per_s", json_null());
    json_object_set_new(sample, "cpu_s_per_gb", json_string("much"));
    json_object_set_new(sample, "iters", json_array());
    json_object_set_new(sample, "failures", json_integer(3));
    json_object_set_new(sample, "stamp", json_pack("[s, s, i]", "clock", "no such stamp", 7));
    json_object_set_new(sample, "rails",
                        json_pack("[{s:s, s:i}, {s:s, s:i}, {s:s}, i]", "name", "eth0", "bytes", 5, "name", "eth0",
                                  "bytes", -5, "name", "eth1", 7));
    struct report_run *run = report_run_of(result);
    assert_int_equal(run->sample_count, 1);
    const struct report_sample *read = &run->samples[0];
    assert_true(isnan(read->rate) && isnan(read->cpu) && isnan(read->p10) && isnan(read->cv));
    assert_true(read->iters == 0 && read->failures == 3 && read->p50 == 5 && read->size == 1024);
    assert_int_equal(read->stamps, 1u << 2);
    assert_int_equal(run->flow_count, 1); /* the other rails tell no bytes */
    assert_true(run->flows[0].bytes == 5);
    assert_string_equal(run->rails.list[0], "node1 eth0"); /* at the receiver */
    assert_null(json_object_get(run->root, "samples"));
    report_run_destroy(run);
}

static void the_rails_of_a_ping_pong_are_the_sender_s(void **state)
{
    json_t *result = report_result();
    json_t *sample = report_sample(result, "node0:a", "node1:a", 8, 5, 1);

    (void)state;
    json_object_set_new(sample, "test", json_string("latency"));
    json_object_set_new(sample, "rails", json_pack("[{s:s, s:i}]", "name", "eth0", "bytes", 5));
    struct report_run *run = report_run_of(result);
    assert_true(run->samples[0].latency);
    assert_string_equal(run->rails.list[0], "node0 eth0");
    report_run_destroy(run);
}

static void a_file_that_takes_for_ever_is_refused(void **state)
{
    json_t *result = report_result();
    char name[32];

    (void)state;
    for (int i = 0; i <= REPORT_BACKENDS_MOST; i++) {
        snprintf(name, sizeof name, "b%d", i);
        json_object_set_new(report_sample(result, "node0:a", "node1:a", 8, 5, 1), "backend", json_string(name));
    }
    refused(report_json_file("many.json", result), -E2BIG, "more than a report can show");
}

static void a_count_is_what_fits(void **state)
{
    json_t *object = json_pack("{s:f, s:f, s:f, s:s}", "huge", 1e300, "minus", -5.0, "some", 7.9, "text", "9");

    (void)state;
    assert_true(report_count(object, "huge") == UINT64_C(1) << 62);
    assert_true(report_count(object, "minus") == 0);
    assert_true(report_count(object, "some") == 7);
    assert_true(report_count(object, "text") == 0 && report_count(object, "none") == 0 && report_count(NULL, "x") == 0);
    json_decref(object);
}

static void the_node_of_an_endpoint_is_in_its_name(void **state)
{
    (void)state;
    assert_int_equal(report_node_of("node0:gpu3"), 0);
    assert_int_equal(report_node_of("node12:gpu3"), 12);
    assert_int_equal(report_node_of("node-1:gpu3"), -1);
    assert_int_equal(report_node_of("gpu3"), -1);
    assert_int_equal(report_node_of(""), -1);
}

/* --- several --- */

static void one_bad_file_does_not_stop_the_others(void **state)
{
    struct report_contents contents = {0};
    struct wf_status status = {0};
    json_t *result = report_result();

    (void)state;
    report_sample(result, "node0:a", "node1:a", 1024, 5, 1);
    const char *good = report_json_file("good.json", result), *bad = report_text_file("\x1b[2Jbad.json", "{");
    const char *paths[] = {report_path("none.json"), good, bad, good};
    assert_int_equal(report_contents_read(&contents, paths, 4, &status), 0);
    assert_int_equal(contents.run_count, 2); /* the same file twice is two runs */
    assert_int_equal(contents.problems.count, 2);
    assert_non_null(report_said(&contents.problems, "none.json: cannot open it: No such file"));
    assert_non_null(report_said(&contents.problems, "bad.json: it is not whole"));
    report_contents_fini(&contents);

    assert_true(report_contents_read(&contents, &bad, 1, &status) < 0);
    assert_non_null(strstr(status.text, "no file is a result"));
    assert_null(strchr(status.text, '\x1b'));
    report_contents_fini(&contents);
}

static void of_a_folder_what_is_ours_is_taken(void **state)
{
    struct report_contents contents = {0};
    struct wf_status status = {0};
    json_t *result = report_result();
    const char *folder = strdup(report_path("."));

    (void)state;
    report_folder_teardown(state);
    assert_int_equal(report_folder_setup(state), 0);
    free((char *)folder);
    folder = strdup(report_path("."));
    report_sample(result, "node0:a", "node1:a", 1024, 5, 1);
    report_json_file("run.json", result);
    report_text_file("package.json", "{\"name\":\"x\"}"); /* somebody else's: nothing is said */
    report_text_file("notes.txt", "hello");
    report_text_file("other.csv", "a,b");
    report_text_file(".hidden.json", "{");
    report_text_file("killed.json", "{\"schema\":\"weft.result/1\",\"samp"); /* may be ours: it is */
    report_text_file("newer.json", "{\"schema\":\"weft.result/7\"}");
    assert_int_equal(mkfifo(report_path("pipe.json"), 0600), 0);
    const char *paths[] = {folder};
    assert_int_equal(report_contents_read(&contents, paths, 1, &status), 0);
    assert_int_equal(contents.run_count, 1);
    assert_non_null(report_said(&contents.problems, "killed.json: it is not whole"));
    assert_non_null(report_said(&contents.problems, "newer.json: it was written by a newer weft"));
    assert_non_null(report_said(&contents.problems, "pipe.json"));
    assert_int_equal(contents.problems.count, 3);
    report_contents_fini(&contents);
    free((char *)folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_result_is_refused_with_its_reason),
        cmocka_unit_test(versions_are_numbers),
        cmocka_unit_test(the_schema_says_what_it_is),
        cmocka_unit_test(what_is_no_file_is_not_waited_for),
        cmocka_unit_test(a_sample_without_its_own_is_damage),
        cmocka_unit_test(what_a_sample_needs_not_say_is_not_known),
        cmocka_unit_test(the_rails_of_a_ping_pong_are_the_sender_s),
        cmocka_unit_test(a_file_that_takes_for_ever_is_refused),
        cmocka_unit_test(a_count_is_what_fits),
        cmocka_unit_test(the_node_of_an_endpoint_is_in_its_name),
        cmocka_unit_test(one_bad_file_does_not_stop_the_others),
        cmocka_unit_test(of_a_folder_what_is_ours_is_taken),
    };

    return cmocka_run_group_tests(tests, report_folder_setup, report_folder_teardown);
}
