/* What people read of a comparison: every line of it, for results that are made up here. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peers/foresee.h"
#include "peers/page.h"
#include "peers/peers.h"
#include "peers/report.h"

#define NONE (-1.0)
#define ROUNDS 3

/* --- results --- */

static struct peers_plan plan;
static struct peers_block blocks[PEERS_CASES_MAX];
static struct peers_result result;
static struct peers_variant variants[32];
static struct peer_reading readings[32][ROUNDS];
static int used;

static void begin(const struct peer_tool *const *tools, int tool_count, const struct peer_case *cases, int case_count)
{
    memset(blocks, 0, sizeof(blocks));
    memset(variants, 0, sizeof(variants));
    used = 0;
    plan = (struct peers_plan){.place = {.rails = {"127.0.0.1"}, .rail_count = 1, .one_machine = true},
                               .tool_count = tool_count,
                               .case_count = case_count,
                               .rounds = ROUNDS,
                               .seconds = 0.5};
    memcpy(plan.tools, tools, (size_t)tool_count * sizeof(tools[0]));
    memcpy(plan.cases, cases, (size_t)case_count * sizeof(cases[0]));
    result = (struct peers_result){
        .plan = &plan, .blocks = blocks, .block_count = case_count, .complete = true, .seconds = 754};
    for (int b = 0; b < case_count; b++) {
        blocks[b] = (struct peers_block){.asked = cases[b], .rounds_done = ROUNDS};
        for (int i = 0; i < tool_count; i++)
            blocks[b].rows[i].tool = tools[i];
    }
}

/* What a tool found in its rounds: `value` in the second, a tenth less in the first and more in the third. */
static struct peers_row *found(int block, int tool, double value, const char *note)
{
    struct peers_row *row = &blocks[block].rows[tool];
    struct peers_variant *variant = &variants[used];

    for (int i = 0; i < ROUNDS; i++) {
        double one = value * (0.9 + 0.1 * i);
        readings[used][i] = (struct peer_reading){NONE, NONE, NONE, NONE, NONE, 0.25};
        if (blocks[block].asked.metric == PEER_LATENCY)
            readings[used][i] = (struct peer_reading){NONE, NONE, one, 2 * one, 1.25 * one, NONE};
        else if (blocks[block].asked.metric == PEER_RATE)
            readings[used][i].messages_per_s = one;
        else
            readings[used][i].gb_per_s = one;
    }
    variant->rounds = readings[used++];
    variant->runs = ROUNDS;
    strcpy(variant->commands.note, note);
    row->variants = variant;
    row->variant_count = 1;
    return row;
}

static void is_absent(int block, int tool)
{
    blocks[block].rows[tool].absent = true;
    strcpy(blocks[block].rows[tool].why, "not installed");
}

/* --- what is printed --- */

static char text[16384];

static void no_line_is_wider(const char *lines, size_t width)
{
    while (*lines) {
        size_t length = strcspn(lines, "\n");
        if (length > width)
            fail_msg("%zu columns: %.*s", length, (int)length, lines);
        if (length > 0)
            assert_true(lines[length - 1] != ' ');
        lines += length + (lines[length] == '\n');
    }
}

static void print_case(int index, int width)
{
    struct peers_page page = {fmemopen(text, sizeof(text), "w"), width};

    peers_report_case(&result, index, &page);
    fclose(page.out);
    no_line_is_wider(text, (size_t)width);
}

static void print_end(void)
{
    struct peers_page page = {fmemopen(text, sizeof(text), "w"), 80};

    peers_report_end(&result, &page);
    fclose(page.out);
    no_line_is_wider(text, 80);
}

static void print_head(const struct peers_forecast *forecast)
{
    struct peers_page page = {fmemopen(text, sizeof(text), "w"), 80};

    peers_report_head(&plan, forecast, &page);
    fclose(page.out);
    no_line_is_wider(text, 80);
}

/* --- cases --- */

static const struct peer_case cases[] = {{PEER_LATENCY, 8, 20000, 2000, 1, 1},
                                         {PEER_BANDWIDTH, 64 << 10, 752, 75, 16, 1},
                                         {PEER_RATE, 65, 100000, 10000, 64, 1}};

/* One tool that is not here, one that failed, and one that cannot: there is nothing to compare with. */
static void a_case_without_another_tool(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_libfabric, &peer_ucx, &peer_iperf3};

    (void)state;
    begin(tools, 4, cases, 1);
    found(0, 0, 12.34, "");
    is_absent(0, 1);
    strcpy(blocks[0].rows[2].error, "ucx_perftest ended with status 3: no memory left, and much else that has to be "
                                    "told \033[31min red");
    strcpy(blocks[0].rows[3].why, "a stream of bytes: it has no messages");
    print_case(0, 80);
    assert_string_equal(text, "\n"
                              "half round trip, messages of 8 bytes (case 1 of 1)\n"
                              "1 in flight, 1 buffer each side; 20000 messages, after 2000 of warm-up\n"
                              "tool        half round trip  spread  weft/tool         p99        mean\n"
                              "weft                12.3 us     20%          1     24.7 us     15.4 us\n"
                              "ucx                       -  failed: ucx_perftest ended with status 3: no memory\n"
                              "                             left, and much else that has to be told ?[31min red\n"
                              "iperf3                    -  a stream of bytes: it has no messages\n"
                              "not here: libfabric\n"
                              "no other tool was measured in this case: nothing to compare with\n");
    print_end();
    assert_string_equal(text, "\n"
                              "1 of 1 case in 13 minutes, over loopback: says nothing about a network\n"
                              "weft/tool    half round trip\n"
                              "ucx                   failed\n"
                              "\n"
                              "NOTHING TO COMPARE WITH: every other tool failed. This is Weft alone. 'weft raw'\n"
                              "has the floor: what plain sockets reach here.\n"
                              "Tools to compare with come with these Debian packages:\n"
                              "  iperf3     iperf3\n"
                              "  ucx        ucx-utils\n"
                              "  libfabric  libfabric-bin\n"
                              "  openmpi    openmpi-bin, and Weft built with libopenmpi-dev\n");
    assert_false(peers_compared(&result));
}

static void cases_with_other_tools(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_raw, &peer_iperf3, &peer_openmpi};

    (void)state;
    begin(tools, 4, cases, 3);
    for (int b = 0; b < 3; b++)
        is_absent(b, 3);
    found(0, 0, 1500, "");
    found(0, 1, 1000, "spinning");
    found(1, 0, 2.5, "");
    found(1, 1, 3.125, "calls of 64K, blocking");
    found(2, 0, 900000, "");
    found(2, 1, 1800000, "64 messages a call, 64 buffers, spinning");
    strcpy(blocks[0].rows[2].why, "a stream of bytes: it has no messages");
    strcpy(blocks[2].rows[2].why, "a stream of bytes: it has no messages");
    struct peers_row *row =
        found(1, 2, 2.5, "a stream of bytes, no messages, from and to 256K of memory: calls of 256K");
    row->variants[0].failures = 1;
    row->variants[0].runs = 4;
    strcpy(row->error, "iperf3 had not ended after 20 s");
    print_case(1, 80);
    assert_string_equal(text, "\n"
                              "bandwidth, messages of 64K (case 2 of 3)\n"
                              "16 in flight, 1 buffer each side; 752 messages, after 75 of warm-up\n"
                              "tool              bandwidth  spread  weft/tool    CPU s/GB\n"
                              "weft              2.50 GB/s     20%          1       0.250\n"
                              "raw               3.12 GB/s     20%       0.80       0.250\n"
                              "iperf3            2.50 GB/s     20%       1.00       0.250\n"
                              "not here: openmpi\n"
                              "  raw: calls of 64K, blocking\n"
                              "  iperf3: a stream of bytes, no messages, from and to 256K of memory: calls of\n"
                              "  256K; failed 1 of 4 times: iperf3 had not ended after 20 s\n");
    print_case(0, 80);
    assert_non_null(strstr(text, "\nweft                1.50 ms     20%          1     3.00 ms     1.88 ms\n"));
    assert_non_null(strstr(text, "\nno other tool was measured in this case: nothing to compare with\n"));
    print_case(2, 80);
    assert_non_null(strstr(text, "\nmessage rate, messages of 65 bytes (case 3 of 3)\n"));
    assert_non_null(strstr(text, "\ntool             messages/s  spread  weft/tool    CPU s/GB\n"));
    assert_non_null(strstr(text, "\nraw         1800 thousand/s     20%       0.50       0.250\n"));
    print_case(1, 132); /* a wide terminal */
    assert_non_null(strstr(text,
                           "\n  iperf3: a stream of bytes, no messages, from and to 256K of memory: calls of 256K; "
                           "failed 1 of 4 times: iperf3 had not ended after\n  20 s\n"));
    print_end();
    assert_string_equal(text, "\n"
                              "3 of 3 cases in 13 minutes, over loopback: says nothing about a network\n"
                              "weft/tool    half round trip      message rate         bandwidth\n"
                              "raw: floor              1.50              0.50              0.80\n"
                              "iperf3                     -                 -              1.00\n");
    assert_true(peers_compared(&result));
}

static void a_case_cut_short(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_iperf3};

    (void)state;
    begin(tools, 2, &cases[1], 1);
    found(0, 0, 2.5, "");
    blocks[0].rounds_done = 0;
    blocks[0].trials_done = 1;
    result.complete = false;
    result.seconds = 12;
    strcpy(blocks[0].error, "interrupted by SIGINT");
    print_case(0, 80);
    assert_non_null(strstr(text, "\niperf3                    -  not measured\n"));
    assert_non_null(strstr(text, "\nonly 0 of 3 rounds, of which nothing counts before the trials are over:\n"
                                 "interrupted by SIGINT\n"));
    assert_null(strstr(text, "nothing to compare with"));
    print_end();
    assert_non_null(strstr(text, "\n0 of 1 case in 12 s,"));
    assert_non_null(strstr(text, "\nNOTHING TO COMPARE WITH: it ended before another tool was measured. "));
}

static void nothing_begun_is_no_comparison(void **state)
{
    const struct peers_result empty = {0};

    (void)state;
    assert_false(peers_compared(&empty));
}

/* Of several cases of a metric the smallest and the largest ratio are told. */
static void many_cases_are_summed_up(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_iperf3};
    const struct peer_case two[] = {cases[1], cases[1]};

    (void)state;
    begin(tools, 2, two, 2);
    found(0, 0, 2, "");
    found(0, 1, 4, "");
    found(1, 0, 3, "");
    found(1, 1, 2, "");
    plan.place.one_machine = false;
    plan.place.rails[0] = "10.0.0.2";
    print_end();
    assert_string_equal(text, "\n"
                              "2 of 2 cases in 13 minutes\n"
                              "weft/tool          bandwidth\n"
                              "iperf3          0.50 to 1.50\n");
}

/* --- the head --- */

static void candidate(struct peers_forecast *forecast, int index, const char *version, int able, const char *why)
{
    struct peers_candidate *one = &forecast->tools[index];

    one->tool = plan.tools[index];
    strcpy(one->version, version);
    one->cases = able > 0 ? able : 0;
    one->absent = able < 0;
    strcpy(one->why, why);
}

static void a_head(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_raw,     &peer_iperf3,
                                                    &peer_ucx,  &peer_openmpi, &peer_nccl};
    struct peers_forecast forecast = {.runs = 310, .seconds = 700};

    (void)state;
    begin(tools, 6, cases, 3);
    candidate(&forecast, 0, "0.1.0", 3, "");
    candidate(&forecast, 1, "", 3, "");
    candidate(&forecast, 2, "3.12", 1, "a stream of bytes: it has no messages");
    candidate(&forecast, 3, "", -1, "not installed: Debian package ucx-utils");
    candidate(&forecast, 4, "", -1, "not installed: Debian package openmpi-bin");
    candidate(&forecast, 5, "", 0, "no GPU here");
    print_head(&forecast);
    assert_string_equal(text, "weft peers: the same messages on Weft and on other tools\n"
                              "tools      weft 0.1.0, raw (plain sockets, the floor), iperf3 3.12 (1 of 3\n"
                              "           cases)\n"
                              "not here   ucx: Debian package ucx-utils\n"
                              "           openmpi: Debian package openmpi-bin, and Weft built with\n"
                              "           libopenmpi-dev\n"
                              "left out   nccl: no GPU here\n"
                              "rails      127.0.0.1\n"
                              "           loopback: says nothing about a network\n"
                              "memory     host; nothing is verified\n"
                              "cases      half round trip of 8 bytes\n"
                              "           message rate of 65 bytes\n"
                              "           bandwidth of 64K\n"
                              "rounds     3 of every tool in each case, in turns; trials before them find the\n"
                              "           two best ways to call a tool, and of these the better one counts\n"
                              "takes      about 12 minutes: an estimate for an idle machine, of 310 runs at\n"
                              "           most\n"
                              "\n"
                              "Values are medians of the rounds. spread: (largest - smallest round) / median.\n"
                              "weft/tool: Weft's value over the tool's, the median of the rounds' ratios: above\n"
                              "1 Weft is ahead, but below 1 in half round trips. CPU: processor seconds of both\n"
                              "sides per 10^9 bytes.\n");
}

static void a_head_of_two_machines(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_iperf3};
    const struct peer_case large[] = {{PEER_BANDWIDTH, 64 << 20, 40, 4, 16, 1},
                                      {PEER_BANDWIDTH, 64 << 20, 40, 4, 16, 16}};
    struct peers_forecast forecast = {.runs = 12, .seconds = 3};

    (void)state;
    begin(tools, 2, large, 2);
    plan.place.one_machine = false;
    plan.place.rail_count = 2;
    plan.place.rails[0] = "10.0.0.2";
    plan.place.rails[1] = "10.0.1.2";
    plan.place.memory = "cuda (emulated)";
    plan.fixed_messages = true;
    candidate(&forecast, 0, "0.1.0", 2, "");
    candidate(&forecast, 1, "3.12", 1, "has one buffer only");
    print_head(&forecast);
    assert_non_null(strstr(text, "\n           these are the tools of this node; a tool has to be on both\n"
                                 "rails      10.0.0.2, 10.0.1.2 of the other node\n"
                                 "memory     cuda (emulated): no GPU was measured; nothing is verified\n"
                                 "cases      bandwidth of 64M, 64M with 16 buffers\n"
                                 "rounds     3 of every tool in each case, in turns\n"
                                 "takes      about 3 s: an estimate for an idle machine, of 12 runs at most,\n"
                                 "           before anything is known of their speed (--iters)\n"));
    assert_null(strstr(text, "NOTHING"));
    plan.place.rails[0] = "127.0.0.1";
    print_head(&forecast);
    assert_null(strstr(text, "loopback"));
    plan.place.rails[1] = "::1";
    print_head(&forecast);
    assert_non_null(strstr(
        text, "rails      127.0.0.1, ::1 of the other node\n           loopback: says nothing about a network\n"));
}

static void a_head_with_nothing_to_compare(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft, &peer_raw, &peer_iperf3};
    struct peers_forecast forecast = {.runs = 12, .seconds = 3};

    (void)state;
    begin(tools, 3, cases, 1);
    candidate(&forecast, 0, "0.1.0", 1, "");
    candidate(&forecast, 1, "", 1, "");
    candidate(&forecast, 2, "", -1, "not installed: Debian package iperf3");
    print_head(&forecast);
    assert_non_null(strstr(text, "\n\nNOTHING TO COMPARE WITH: no other tool that can measure this is here. This is\n"
                                 "Weft beside plain sockets (weft raw), the least that any tool must cost: how far\n"
                                 "Weft is from that floor. It is no comparison with another tool.\n"
                                 "Tools to compare with come with these Debian packages:\n"
                                 "  iperf3     iperf3\n"));
    candidate(&forecast, 2, "3.12", 0, "a stream of bytes: it has no messages");
    print_head(&forecast);
    assert_non_null(strstr(text, "\nNOTHING TO COMPARE WITH: none of the other tools here can measure this. "));
    plan.tool_count = 1;
    print_head(&forecast);
    assert_non_null(strstr(text, "\nNOTHING TO COMPARE WITH: --tools names no other tool. This is Weft alone."));
    plan.tools[0] = &peer_raw;
    print_head(&forecast);
    assert_non_null(strstr(text, " Weft itself is not among\n--tools either.\n"));
}

/* The most of everything. */
static void no_head_is_too_wide(void **state)
{
    static const struct peer_tool *const tools[] = {&peer_weft,      &peer_raw,     &peer_iperf3, &peer_ucx,
                                                    &peer_libfabric, &peer_openmpi, &peer_nccl};
    struct peer_case many[PEERS_CASES_MAX];
    struct peers_forecast forecast = {.runs = 2000000000, .seconds = 1e9};

    (void)state;
    for (int i = 0; i < PEERS_CASES_MAX; i++)
        many[i] = (struct peer_case){PEER_BANDWIDTH, 1234567890123 + (uint64_t)i, 99, 9, 65536, 65536};
    begin(tools, 7, many, PEERS_CASES_MAX);
    plan.place.rail_count = PEER_RAILS_MAX;
    for (int i = 0; i < PEER_RAILS_MAX; i++)
        plan.place.rails[i] = "2001:db8:1111:2222:3333:4444:5555:6666%interface123456";
    for (int i = 0; i < 7; i++)
        candidate(&forecast, i, i % 2 ? "" : "1234567890.1234567890.123456789", i % 3 - 1,
                  "a reason that goes on and on, for as long as it is let, and does not stop before the line is full");
    print_head(&forecast);
    assert_non_null(strstr(text, " 1234567890186 bytes with 65536 buffers\nrounds ")); /* the last one */
}

/* --- small things --- */

static void durations(void **state)
{
    static const struct {
        double seconds;
        const char *text;
    } told[] = {{0.01, "1 s"},      {59.6, "60 s"},       {119.4, "119 s"},     {119.6, "2 minutes"},
                {150, "2 minutes"}, {5300, "88 minutes"}, {5400, "1 h 30 min"}, {36000, "10 h 0 min"}};
    char one[48];

    (void)state;
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++)
        assert_string_equal(peers_duration(told[i].seconds, one, sizeof(one)), told[i].text);
}

static void units(void **state)
{
    static const struct {
        enum peer_metric metric;
        double smallest, value;
        const char *text;
    } told[] = {
        {PEER_LATENCY, 3.3, 3.3, "3.30 us"},
        {PEER_LATENCY, 999, 2000, "2000 us"},
        {PEER_LATENCY, 1000, 2345, "2.35 ms"},
        {PEER_LATENCY, 2e6, 2e6, "2.00 s"},
        {PEER_BANDWIDTH, 12.5, 12.5, "12.5 GB/s"},
        {PEER_BANDWIDTH, 0.0012, 0.0012, "0.0012 GB/s"},
        {PEER_RATE, 1.5e6, 1.5e6, "1.50 million/s"},
        {PEER_RATE, 150, 150, "150 /s"},
        {PEER_LATENCY, 3, -1, "-"},
        {PEER_LATENCY, 0, 0, "0.0000 us"},
    };
    char one[48];

    (void)state;
    for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
        struct peers_unit unit = peers_choose_unit(told[i].metric, told[i].smallest);
        assert_string_equal(peers_value_text(told[i].value, &unit, one, sizeof(one)), told[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_case_without_another_tool),
        cmocka_unit_test(cases_with_other_tools),
        cmocka_unit_test(a_case_cut_short),
        cmocka_unit_test(many_cases_are_summed_up),
        cmocka_unit_test(nothing_begun_is_no_comparison),
        cmocka_unit_test(a_head),
        cmocka_unit_test(a_head_of_two_machines),
        cmocka_unit_test(a_head_with_nothing_to_compare),
        cmocka_unit_test(no_head_is_too_wide),
        cmocka_unit_test(durations),
        cmocka_unit_test(units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
