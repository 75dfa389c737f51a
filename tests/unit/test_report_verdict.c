/*
 * The sentences of a report: how a run ended, where it was, what is slow and why, as far as its file knows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/contents.h"
#include "report_fixture.h"

static struct report_contents contents;

/* What is said of a result with more members, which are JSON; until the next call. */
static const struct report_verdict *verdict_of(json_t *result, const char *members)
{
    const char *path;
    struct wf_status status = {0};
    json_error_t error;
    json_t *more = json_loads(members, 0, &error);

    if (!more)
        fail_msg("%s: %s", members, error.text);
    json_object_update(result, more);
    json_decref(more);
    report_contents_fini(&contents);
    path = report_json_file("verdict.json", result);
    assert_int_equal(report_contents_read(&contents, &path, 1, &status), 0);
    assert_int_equal(report_contents_make(&contents, &(struct report_wish){NULL, NULL}, &status), 0);
    return &contents.chapters[0].verdict;
}

static void says(const struct report_verdict *verdict, enum report_level level, const char *words)
{
    const struct report_sentence *sentence = report_said(verdict, words);

    if (!sentence || sentence->level != level) {
        for (size_t i = 0; i < verdict->count; i++)
            print_message("%s: %s\n", report_level_name(verdict->list[i].level), verdict->list[i].text);
        fail_msg("not said: %s", words);
    }
}

/* Pairs of four hosts, of which node0:host1 to node1:host2 has half of the rate of the others. */
static json_t *mesh(void)
{
    json_t *result = report_result();
    char src[32], dst[32];

    for (int size = 0; size < 3; size++)
        for (int i = 0; i < 16; i++) {
            snprintf(src, sizeof src, "node0:host%d", i / 4);
            snprintf(dst, sizeof dst, "node1:host%d", i % 4);
            report_sample(result, src, dst, 1 << 20 << size, 100, (i == 6 ? 2.5 : 5) * (1 + 0.001 * (i % 3)));
        }
    return result;
}

/* Of the largest size so many bytes came to node1 over each of two rails. */
static json_t *mesh_over(int eth0, int eth1)
{
    json_t *result = mesh();

    json_object_set_new(
        json_array_get(json_object_get(result, "samples"), 47), "rails",
        json_pack("[{s:s, s:i}, {s:s, s:i}]", "name", "eth0", "bytes", eth0, "name", "eth1", "bytes", eth1));
    return result;
}

static void the_end_comes_first(void **state)
{
    (void)state;
    says(verdict_of(mesh(),
                    "{\"summary\":{\"passed\":true,\"wrong_bytes\":0,\"verified_bytes\":1e300,\"measured_bytes\":-5}}"),
         REPORT_GOOD, "All 48 samples ran: 0 wrong bytes of ");
    says(verdict_of(mesh(), "{\"summary\":{\"passed\":true}}"), REPORT_GOOD, "nothing was verified");
    says(verdict_of(mesh(), "{\"summary\":{\"wrong_bytes\":3,\"verified_bytes\":2000}}"), REPORT_BAD,
         "3 wrong bytes of 2.0 kB verified.");
    says(verdict_of(mesh(), "{\"error\":\"no route\",\"summary\":{}}"), REPORT_BAD, "It failed: no route");
    says(verdict_of(mesh(),
                    "{\"cut_short\":{\"node\":\"node1\",\"samples\":48,\"samples_planned\":96,\"reason\":\"SIGINT\"},"
                    "\"summary\":{\"passed\":true}}"),
         REPORT_BAD, "Cut short at node1: 48 of 96 samples. SIGINT");
    assert_null(report_said(&contents.chapters[0].verdict, "samples ran")); /* which is not to be called passed */
}

static void where_it_was_is_no_secret(void **state)
{
    static const char rails[] = "{\"rails\":[{\"node\":\"node0\",\"name\":\"lo\",\"speed_mbit\":80000},"
                                "{\"node\":\"node1\",\"name\":\"lo\",\"speed_mbit\":80000}]%s}";
    char members[300];

    (void)state;
    snprintf(members, sizeof members, rails, "");
    says(verdict_of(mesh(), members), REPORT_PLAIN, "50 % of the line rate of 10 GB/s");
    snprintf(members, sizeof members, rails, ",\"loopback\":true,\"emulated\":true");
    const struct report_verdict *verdict = verdict_of(mesh(), members);
    says(verdict, REPORT_PLAIN, "over loopback: this says nothing about a network");
    says(verdict, REPORT_DOUBT, "EMULATED");
    assert_null(report_said(verdict, "line rate"));
    /* The slower of both is not known: either node may be it. */
    static const char *const unknown[][2] = {{"null", "80000"}, {"80000", "null"}};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        snprintf(members, sizeof members,
                 "{\"rails\":[{\"node\":\"node0\",\"name\":\"eth0\",\"speed_mbit\":%s},"
                 "{\"node\":\"node1\",\"name\":\"eth0\",\"speed_mbit\":%s}]}",
                 unknown[i][0], unknown[i][1]);
        assert_null(report_said(verdict_of(mesh(), members), "line rate"));
    }
}

static void a_cause_is_told_where_the_file_knows_it(void **state)
{
    static const char affinity[] =
        "{\"host\":[{\"node\":\"node0\",\"affinity\":{\"rails\":[{\"numa_node\":%s},{\"numa_node\":%s}],"
        "\"endpoints\":[{\"endpoint\":\"host0\",\"numa_node\":0},{\"endpoint\":\"host1\",\"numa_node\":%s}]}}]}";
    char members[400];

    (void)state;
    says(verdict_of(mesh(), "{}"), REPORT_DOUBT, "Slow: node0:host1 to node1:host2 has 50 % of what its peers have");
    says(&contents.chapters[0].verdict, REPORT_DOUBT, "the file does not say why");
    snprintf(members, sizeof members, affinity, "0", "0", "1");
    says(verdict_of(mesh(), members), REPORT_DOUBT, "node0:host1 is on NUMA node 1, the rails are on 0");
    /* Not known, and on several. */
    static const char *const others[][3] = {
        {"null", "null", "1"}, {"0", "0", "null"}, {"0", "1", "1"}, {"1e300", "1e300", "1"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        snprintf(members, sizeof members, affinity, others[i][0], others[i][1], others[i][2]);
        says(verdict_of(mesh(), members), REPORT_DOUBT, "the file does not say why");
    }
    json_t *result = mesh();
    json_object_set_new(json_array_get(json_object_get(result, "samples"), 6), "retransmits", json_integer(12));
    says(verdict_of(result, "{}"), REPORT_DOUBT, "TCP sent 12 segments again meanwhile");
}

static void rails_are_judged_where_there_is_a_network(void **state)
{
    static const char *const loopback[] = {"", ",\"loopback\":true"};
    char members[400];

    (void)state;
    for (int local = 0; local < 2; local++) {
        json_t *result = mesh_over(61, 39);
        snprintf(members, sizeof members,
                 "{\"rails\":[{\"node\":\"node1\",\"name\":\"eth0\"},{\"node\":\"node1\",\"name\":\"eth1\"},"
                 "{\"node\":\"node1\",\"name\":\"eth2\",\"failures\":2},{\"node\":\"node0\",\"name\":\"eth2\","
                 "\"retired\":true}]%s}",
                 loopback[local]);
        const struct report_verdict *verdict = verdict_of(result, members);
        says(verdict, REPORT_DOUBT, "Rail eth2 of node1 lost 2 connections.");
        says(verdict, REPORT_BAD, "Rail eth2 of node0 was taken out of use");
        assert_null(report_said(verdict, "Rail eth0 of node1 is slow"));
        assert_null(report_said(verdict, "Rail eth1 of node1 is slow")); /* 39 % are more than 0.8 of a third */
    }
    for (int local = 0; local < 2; local++) {
        json_t *result = mesh_over(61, 39);
        snprintf(members, sizeof members,
                 "{\"rails\":[{\"node\":\"node1\",\"name\":\"eth0\"},{\"node\":\"node1\",\"name\":\"eth1\"}]%s}",
                 loopback[local]);
        const struct report_verdict *verdict = verdict_of(result, members);
        if (local)
            assert_null(report_said(verdict, "Rail eth1 of node1 is slow"));
        else
            says(verdict, REPORT_DOUBT,
                 "Rail eth1 of node1 is slow: it brought 39 % of the bytes, and should bring 50 %");
    }
}

static void a_share_is_by_line_rates_that_are_known(void **state)
{
    static const struct {
        const char *eth0, *eth1, *words;
    } cases[] = {
        {"10000", "10000", "20 % of the bytes, and should bring 50 % (by the line rates)"},
        {"null", "10000", "20 % of the bytes, and should bring 50 % (if all are alike)"},
        {"0", "10000", "20 % of the bytes, and should bring 50 % (if all are alike)"},
        {"-20000", "40000", "20 % of the bytes, and should bring 50 % (if all are alike)"},
        {"40000", "10000", NULL},
    };
    char members[300];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *result = mesh_over(80, 20);
        snprintf(members, sizeof members,
                 "{\"rails\":[{\"node\":\"node1\",\"name\":\"eth0\",\"speed_mbit\":%s},"
                 "{\"node\":\"node1\",\"name\":\"eth1\",\"speed_mbit\":%s},"
                 "{\"node\":\"node0\",\"name\":\"eth0\",\"speed_mbit\":null}]}",
                 cases[i].eth0, cases[i].eth1);
        const struct report_verdict *verdict = verdict_of(result, members);
        if (cases[i].words)
            says(verdict, REPORT_DOUBT, cases[i].words);
        else
            assert_null(report_said(verdict, "is slow"));
    }
}

static void add_peer(json_t *result, const char *tool, const char *metric, int buffers, double median, double ratio)
{
    json_array_append_new(json_object_get(result, "samples"),
                          json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:f}", "backend", tool, "metric", metric,
                                    "unit", strcmp(metric, "latency") == 0 ? "us" : "GB/s", "size_bytes", 64 << 20,
                                    "inflight", 16, "buffers", buffers, "median", median, "ratio", ratio));
}

/* 64M is measured with one buffer, which may stay in the caches, and with one for each message in flight. */
static void a_tool_is_compared_in_its_own_case(void **state)
{
    json_t *result = report_result();

    (void)state;
    json_object_set_new(result, "command", json_string("peers"));
    add_peer(result, "weft", "bandwidth", 1, 8, 1);
    add_peer(result, "ucx", "bandwidth", 1, 10, 0.8);
    add_peer(result, "weft", "bandwidth", 16, 4, 1);
    add_peer(result, "openmpi", "bandwidth", 16, 2, 2);
    const struct report_verdict *verdict = verdict_of(result, "{}");
    says(verdict, REPORT_PLAIN, "bandwidth, 64M: weft 8 GB/s, the best other tool (ucx) 10: weft over it 0.80.");
    says(verdict, REPORT_PLAIN,
         "bandwidth, 64M, 16 buffers: weft 4 GB/s, the best other tool (openmpi) 2: weft over it 2.00.");
    const struct report_figure *figure = report_figure_named(&contents.chapters[0].figures, "peers-rate");
    assert_string_equal(report_cell_named(figure, "case", 1), "bandwidth, 64M");
    assert_string_equal(report_cell_named(figure, "case", 3), "bandwidth, 64M, 16 buffers");
}

static void neither_the_floor_nor_the_plugin_is_another_tool(void **state)
{
    json_t *result = report_result();

    (void)state;
    json_object_set_new(result, "command", json_string("peers"));
    add_peer(result, "weft", "bandwidth", 1, 8, 1);
    add_peer(result, "raw", "bandwidth", 1, 12, 0.67);
    add_peer(result, "plugin", "bandwidth", 1, 9, 0.89);
    add_peer(result, "weft", "latency", 1, 8, 1);
    add_peer(result, "plugin", "latency", 1, 7, 1.14);
    add_peer(result, "ucx", "latency", 1, 9, 0.89);
    const struct report_verdict *verdict = verdict_of(result, "{}");
    says(verdict, REPORT_PLAIN, "bandwidth, 64M: weft 8 GB/s; no other tool was measured.");
    says(verdict, REPORT_PLAIN, "latency, 64M: weft 8 us, the best other tool (ucx) 9");
}

/* So many sizes and pairs that no table holds them: the rest of the report is made all the same. */
static void what_is_too_large_leaves_the_rest(void **state)
{
    struct report_wish wish = {NULL, NULL};
    struct wf_status status = {0};
    json_t *result = report_result();
    char src[32];

    (void)state;
    for (int i = 0; i < 5800; i++) {
        snprintf(src, sizeof src, "node0:host%d", i);
        report_sample(result, src, "node1:host0", i + 1, 100, 5);
    }
    says(verdict_of(result, "{}"), REPORT_BAD, "more than a report can show");
    const char *path = report_path("verdict.json");
    wish.predicted = report_text_file("predicted.csv", "src,dst,size_bytes,time_us\n0,5800,1,100\n");
    report_contents_fini(&contents);
    assert_int_equal(report_contents_read(&contents, &path, 1, &status), 0);
    assert_int_equal(report_contents_make(&contents, &wish, &status), 0);
    report_contents_fini(&contents);
    wish = (struct report_wish){path, NULL};
    assert_int_equal(report_contents_read(&contents, &path, 1, &status), 0);
    assert_true(report_contents_make(&contents, &wish, &status) < 0);
    assert_non_null(strstr(status.text, "--baseline"));
    report_contents_fini(&contents);
}

static int teardown(void **state)
{
    report_contents_fini(&contents);
    return report_folder_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_comes_first),
        cmocka_unit_test(where_it_was_is_no_secret),
        cmocka_unit_test(a_cause_is_told_where_the_file_knows_it),
        cmocka_unit_test(rails_are_judged_where_there_is_a_network),
        cmocka_unit_test(a_share_is_by_line_rates_that_are_known),
        cmocka_unit_test(a_tool_is_compared_in_its_own_case),
        cmocka_unit_test(neither_the_floor_nor_the_plugin_is_another_tool),
        cmocka_unit_test(what_is_too_large_leaves_the_rest),
    };

    return cmocka_run_group_tests(tests, report_folder_setup, teardown);
}
