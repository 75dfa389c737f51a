/* What adapters ask for, and how they read what was printed: recorded output, and output that is none. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/peers.h"
#include "peers/question.h"

static const struct peer_case bandwidth = {PEER_BANDWIDTH, 1 << 20, 2000, 16, 16, 1};
static const struct peer_case latency = {PEER_LATENCY, 8, 2000, 16, 1, 1};
static const struct peer_case rate = {PEER_RATE, 64, 2000, 16, 64, 1};
static const struct peer_place loopback = {.folder = "/opt/weft/bin",
                                           .rails = {"127.0.0.1"},
                                           .devices = {"lo"},
                                           .rail_count = 1,
                                           .port = 4711,
                                           .one_machine = true};

static char *recorded(const char *name)
{
    static char text[65536];
    char path[512];
    size_t length;
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", PEERS_FIXTURES, name);
    file = fopen(path, "r");
    assert_non_null(file);
    length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = '\0';
    return text;
}

static int take(const struct peer_tool *tool, const struct peer_case *asked, const char *text,
                struct peer_reading *reading, struct wf_status *status)
{
    struct peer_output output = {text, 0.5, 1};

    *reading = (struct peer_reading){-1, -1, -1, -1, -1, -1};
    return tool->read(asked, &output, &output, reading, status);
}

static void iperf3_is_read(void **state)
{
    struct peer_reading reading;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(take(&peer_iperf3, &bandwidth, recorded("iperf3.json"), &reading, &status), 0);
    /* 23966715842.98473 bit/s; 97.125 % of 0.358337 s and 39.988 % of 0.358411 s for 1.073741824 GB */
    assert_float_equal(reading.gb_per_s, 2.99583948, 1e-6);
    assert_float_equal(reading.cpu_s_per_gb, 0.457614, 1e-4);
    assert_true(reading.messages_per_s < 0);
    assert_true(reading.p50_us < 0);
}

static void weft_is_read(void **state)
{
    struct peer_reading reading;
    struct wf_status status = {0};

    (void)state;
    /* The mean of 142.275888 us for 2^20 bytes, not the median. */
    assert_int_equal(take(&peer_weft, &bandwidth, recorded("weft_bandwidth.json"), &reading, &status), 0);
    assert_float_equal(reading.gb_per_s, 7.370019, 1e-4);
    assert_float_equal(reading.messages_per_s, 7028.6, 0.1);
    assert_float_equal(reading.cpu_s_per_gb, 0.269954, 1e-4);
    assert_int_equal(take(&peer_weft, &latency, recorded("weft_latency.json"), &reading, &status), 0);
    assert_float_equal(reading.p50_us, 5.093, 1e-4);
    assert_float_equal(reading.p99_us, 63.8905, 1e-4);
    assert_float_equal(reading.mean_us, 14.0338, 1e-3);
    assert_true(reading.gb_per_s < 0);
}

static void what_is_not_understood_is_refused(void **state)
{
    static const struct {
        const struct peer_tool *tool;
        const char *text, *said;
    } rows[] = {
        {&peer_iperf3, "", "no JSON"},
        {&peer_iperf3, "iperf3: error - unable to connect\n", "no JSON"},
        {&peer_iperf3, "[]", "bits_per_second"},
        {&peer_iperf3, "{\"end\": {}}", "bits_per_second"},
        {&peer_iperf3, "{\"end\": {\"sum_received\": {\"bytes\": 5, \"bits_per_second\": 0}}}", "bits_per_second"},
        {&peer_iperf3, "{\"error\": \"the server is busy\"}", "the server is busy"},
        {&peer_weft, "", "no JSON"},
        {&peer_weft, "{\"samples\": []}", "0 samples"},
        {&peer_weft, "{\"samples\": [{}, {}]}", "2 samples"},
        {&peer_weft, "{\"samples\": [{\"time_us\": {\"mean\": 0}}]}", "times"},
        {&peer_weft, "{\"samples\": [{\"time_us\": {\"mean\": \"fast\"}}]}", "times"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct peer_reading reading;
        struct wf_status status = {0};
        assert_int_equal(take(rows[i].tool, &bandwidth, rows[i].text, &reading, &status), -EPROTO);
        assert_non_null(strstr(status.text, rows[i].said));
        assert_true(reading.gb_per_s < 0);
    }
}

/* ------------------------------------------------------------------------------------------- command lines */

static char *line(const struct peer_tool *tool, const struct peer_case *asked, const struct peer_place *place,
                  int index, bool server)
{
    static struct peer_commands commands;
    static char text[4096];

    memset(&commands, 0, sizeof(commands));
    assert_int_equal(tool->commands(asked, place, index, &commands), 0);
    return peer_command_text(server ? &commands.server : &commands.client, text, sizeof(text));
}

static void iperf3_has_no_messages(void **state)
{
    char why[200] = "";

    (void)state;
    assert_int_equal(peer_iperf3.variants(&latency, &loopback, why), 0);
    assert_string_not_equal(why, "");
    assert_int_equal(peer_iperf3.variants(&rate, &loopback, why), 0);
    assert_true(peer_iperf3.variants(&bandwidth, &loopback, why) >= 5);
}

static void iperf3_moves_the_same_bytes(void **state)
{
    (void)state;
    assert_string_equal(line(&peer_iperf3, &bandwidth, &loopback, 0, true), "iperf3 -s -1 -B 127.0.0.1 -p 4711");
    assert_string_equal(line(&peer_iperf3, &bandwidth, &loopback, 0, false),
                        "iperf3 -c 127.0.0.1 -p 4711 -n 2097152000 -l 128K -J -i0");
}

static void iperf3_says_that_it_has_no_warm_up(void **state)
{
    static const char note[] = "a stream of bytes, no messages, from and to 128K of memory: calls of 128K";
    struct peer_case asked = bandwidth;
    struct peer_commands commands = {0};
    char all[200];

    (void)state;
    assert_int_equal(peer_iperf3.commands(&asked, &loopback, 0, &commands), 0);
    snprintf(all, sizeof(all), "%s; no warm-up", note);
    assert_string_equal(commands.note, all);
    asked.warmup = 0;
    memset(&commands, 0, sizeof(commands));
    assert_int_equal(peer_iperf3.commands(&asked, &loopback, 0, &commands), 0);
    assert_string_equal(commands.note, note);
}

/* Data goes from client to server, and each side gets its rails and Weft's settings. */
static void weft_is_asked_for_a_pair(void **state)
{
    struct peer_place place = {.folder = "/opt/weft/bin",
                               .rails = {"::1", "127.0.0.1"},
                               .devices = {"eth0", "eth1"},
                               .rail_count = 2,
                               .port = 4711,
                               .settings = {"chunk=1M"}};

    (void)state;
    assert_string_equal(line(&peer_weft, &bandwidth, &place, 0, true),
                        "/opt/weft/bin/weft pair '--listen=[::1]:4711' --rails ::1,127.0.0.1 --set=chunk=1M --quiet "
                        "--json=-");
    const char *client = line(&peer_weft, &bandwidth, &place, 0, false);
    assert_non_null(strstr(client, "'--connect=[::1]:4711' --rails eth0,eth1 --src=node1:host0 --dst=node0:host0 "));
    assert_non_null(strstr(client, "--size=1048576 --iters=2000 --warmup=16 --check=0"));
    assert_non_null(strstr(client, "--inflight=16"));
    assert_non_null(strstr(client, "--set=chunk=1M"));
    place.one_machine = true;
    client = line(&peer_weft, &latency, &place, 0, false);
    assert_non_null(strstr(client, "--rails ::1,127.0.0.1 "));
    assert_non_null(strstr(client, "--lat"));
    assert_null(strstr(client, "--inflight"));
}

static void words_are_quoted_for_a_shell(void **state)
{
    struct peer_command command = {0};
    char text[128], cut[8];

    (void)state;
    peer_setting(&command, "UCX_TLS=tcp self");
    peer_word(&command, "tool");
    peer_word(&command, "it's");
    assert_int_equal(peer_word(&command, "%s", ""), 0);
    assert_string_equal(peer_command_text(&command, text, sizeof(text)), "UCX_TLS='tcp self' tool 'it'\\''s' ''");
    assert_string_equal(peer_command_text(&command, cut, sizeof(cut)), "UCX_TLS");
}

static void what_does_not_fit_fails_for_good(void **state)
{
    struct peer_command command = {0};
    char large[sizeof(command.text) + 1];

    (void)state;
    memset(large, 'x', sizeof(large) - 1);
    large[sizeof(large) - 1] = '\0';
    assert_int_equal(peer_word(&command, "tool"), 0);
    assert_int_equal(peer_word(&command, "%s", large), -ENOBUFS);
    assert_int_equal(peer_word(&command, "x"), -ENOBUFS);
    memset(&command, 0, sizeof(command));
    for (int i = 0; i < PEER_WORDS_MAX - 1; i++)
        assert_int_equal(peer_word(&command, "x"), 0);
    assert_int_equal(peer_word(&command, "x"), -ENOBUFS);
    assert_null(command.words[PEER_WORDS_MAX - 1]);
}

/* ------------------------------------------------------------------------------------------- the other node */

/* As `weft` asks, with one member replaced. */
static int ask(const char *name, json_t *value, struct peers_question *out, struct wf_status *status)
{
    static const struct peer_place here = {.folder = "."};
    struct peer_tool tool = {.name = "tool", .program = "sh", .variants = peer_weft.variants};
    const struct peers_plan plan = {.tools = {&tool}, .tool_count = 1};
    const struct peers_question question = {&tool, 0, bandwidth};
    json_t *json = peers_question_to_json(&question);
    int rc;

    if (name)
        json_object_set_new(json, name, value);
    rc = peers_question_from_json(json, &plan, &here, out, status);
    json_decref(json);
    return rc;
}

static void a_question_arrives_as_it_was_asked(void **state)
{
    struct peers_question question;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(ask(NULL, NULL, &question, &status), 0);
    assert_non_null(question.tool);
    assert_int_equal(question.variant, 0);
    assert_int_equal(question.asked.metric, bandwidth.metric);
    assert_int_equal(question.asked.size, bandwidth.size);
    assert_int_equal(question.asked.messages, bandwidth.messages);
    assert_int_equal(question.asked.warmup, bandwidth.warmup);
    assert_int_equal(question.asked.inflight, bandwidth.inflight);
    assert_int_equal(question.asked.buffers, bandwidth.buffers);
}

/* Only what is in our own tables, and numbers that mean something. */
static void other_questions_are_refused(void **state)
{
    struct {
        const char *name;
        json_t *value;
        const char *said;
    } rows[] = {
        {"run", json_string("/bin/sh"), "no such tool"},
        {"run", json_string("iperf3"), "no such tool"},
        {"run", json_integer(3), "no such tool"},
        {"metric", json_string("bandwidth; rm"), "metric"},
        {"metric", json_null(), "metric"},
        {"size", json_integer(0), "size"},
        {"size", json_integer((INT64_C(1) << 40) + 1), "size"},
        {"size", json_integer(-1), "size"},
        {"size", json_string("8 -x"), "size"},
        {"messages", json_integer(0), "messages"},
        {"messages", json_integer(INT64_MAX), "messages"},
        {"warmup", json_integer(-1), "warmup"},
        {"warmup", json_real(1.5), "warmup"},
        {"inflight", json_integer(INT64_C(1) << 32), "inflight"},
        {"buffers", json_integer(65537), "buffers"},
        {"variant", json_integer(1), "variant"},
        {"variant", json_integer(-1), "variant"},
        {"variant", json_integer(INT64_C(1) << 32), "variant"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct peers_question question;
        struct wf_status status = {0};
        assert_int_equal(ask(rows[i].name, rows[i].value, &question, &status), -EINVAL);
        if (!strstr(status.text, rows[i].said))
            fail_msg("'%s' does not name %s", status.text, rows[i].said);
    }
}

static void only_addresses_are_addresses(void **state)
{
    static const char *const good[] = {"127.0.0.1", "::1", "fd77:77:77:0::1", "fe80::7%eth0", "fe80::7%lab0.5"};
    static const char *const bad[] = {"",         "localhost",     "-oProxy=x",    "127.0.0.1 -x", "127.0.0.1%lo",
                                      "fe80::7%", "fe80::7%a b",   "fe80::7%$(x)", "1.2.3",        "::1;",
                                      "%eth0",    "fe80::7%eth0%1"};

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        if (!peers_is_address(good[i]))
            fail_msg("%s is an address", good[i]);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (peers_is_address(bad[i]))
            fail_msg("'%s' is no address", bad[i]);
}

static void tools_are_chosen_by_name(void **state)
{
    struct peers_plan plan = {0};
    struct wf_status status = {0};
    int all;

    (void)state;
    assert_int_equal(peers_choose_tools("", &plan, &status), 0);
    all = plan.tool_count;
    assert_int_equal(peers_choose_tools("iperf3,weft", &plan, &status), 0);
    assert_int_equal(plan.tool_count, 2);
    assert_ptr_equal(plan.tools[0], &peer_weft);
    assert_int_equal(peers_choose_tools("^iperf3", &plan, &status), 0);
    assert_int_equal(plan.tool_count, all - 1);
    assert_int_equal(peers_choose_tools("iperf", &plan, &status), -EINVAL);
    assert_non_null(strstr(status.text, "'iperf' is none of weft"));
    assert_int_equal(peers_choose_tools("weft,", &plan, &status), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(iperf3_is_read),
        cmocka_unit_test(weft_is_read),
        cmocka_unit_test(what_is_not_understood_is_refused),
        cmocka_unit_test(iperf3_has_no_messages),
        cmocka_unit_test(iperf3_moves_the_same_bytes),
        cmocka_unit_test(iperf3_says_that_it_has_no_warm_up),
        cmocka_unit_test(weft_is_asked_for_a_pair),
        cmocka_unit_test(words_are_quoted_for_a_shell),
        cmocka_unit_test(what_does_not_fit_fails_for_good),
        cmocka_unit_test(a_question_arrives_as_it_was_asked),
        cmocka_unit_test(other_questions_are_refused),
        cmocka_unit_test(only_addresses_are_addresses),
        cmocka_unit_test(tools_are_chosen_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
