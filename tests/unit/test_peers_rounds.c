/* Trials and rounds: what is run how often and in what order, and what counts of it. */
#include "peers/report.h"
#include "peers_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int two_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    (void)place;
    (void)why;
    return 2;
}

static int no_variant(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    two_variants(asked, place, why);
    snprintf(why, 200, "it has no such thing");
    return 0;
}

static int weft_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                         struct peer_commands *out)
{
    (void)asked;
    (void)place;
    return echo("w", index, "6", out);
}

static int other_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                          struct peer_commands *out)
{
    (void)asked;
    (void)place;
    return echo("o", index, index ? "3" : "nonsense", out);
}

static const struct peer_tool weft = {
    .name = "weft", .program = "sh", .variants = one_variant, .commands = weft_commands, .read = read_value};
static const struct peer_tool other = {
    .name = "other", .program = "sh", .variants = two_variants, .commands = other_commands, .read = read_value};
static const struct peer_tool unable = {.name = "unable", .program = "sh", .variants = no_variant};
static const struct peer_tool absent = {.name = "absent", .program = "no-such-tool", .package = "such-tools"};

/* Every tool and variant once in every round, in an order that moves on; what fails twice is left alone. */
static void rounds_take_turns(void **state)
{
    struct peers_plan plan = plan_of(&weft, 3);
    struct peers_result result;
    struct peers_summary summary;
    char text[256];

    (void)state;
    memcpy(plan.tools, (const struct peer_tool *[]){&weft, &other, &unable, &absent}, 4 * sizeof(plan.tools[0]));
    plan.tool_count = 4;
    trace_rounds(&plan, &result, text, sizeof(text));
    assert_string_equal(text, "w0\no0\no1\n"
                              "o0\no1\nw0\n"
                              "o1\nw0\n");
    assert_true(peers_passed(&result));
    const struct peers_row *rows = result.blocks[0].rows;
    peers_sum_up(&result, &result.blocks[0], &rows[1], &summary);
    assert_int_equal(summary.variant, 1);
    assert_int_equal(summary.failures, 2);
    assert_float_equal(summary.ratio, 2, 1e-9);
    assert_string_equal(rows[1].error, "no number in 'nonsense?'");
    assert_string_equal(rows[2].why, "it has no such thing");
    assert_true(rows[3].absent && strstr(rows[3].why, "such-tools"));
    peers_result_fini(&result);
}

/* As a tool says in Latin-1, but for a letter. */
static int say_no_utf8(const struct peer_case *asked, const struct peer_place *place, int index,
                       struct peer_commands *out)
{
    (void)asked;
    (void)place;
    (void)index;
    peer_setting(&out->client, "NAME=\xe4");
    peer_word(&out->client, "sh");
    peer_word(&out->client, "-c");
    return peer_word(&out->client, "printf 'Ger\\344t f\\303\\274r \\377 x' >&2; exit 3 # \xe4");
}

static int fail_with_half_a_letter(const struct peer_case *asked, const struct peer_output *server,
                                   const struct peer_output *client, struct peer_reading *out, struct wf_status *status)
{
    (void)asked;
    (void)server;
    (void)client;
    (void)out;
    return wf_fail(status, -EPROTO, "%0250d\xc3\xbc", 0);
}

static int say_nothing(const struct peer_case *asked, const struct peer_place *place, int index,
                       struct peer_commands *out)
{
    (void)asked;
    (void)place;
    (void)index;
    return peer_word(&out->client, "true");
}

/* JSON takes no other: the key would be missing. */
static void a_reason_is_utf8(void **state)
{
    const struct peer_tool latin = {
        .name = "latin", .program = "sh", .variants = one_variant, .commands = say_no_utf8, .read = read_value};
    const struct peer_tool half = {.name = "half",
                                   .program = "sh",
                                   .variants = one_variant,
                                   .commands = say_nothing,
                                   .read = fail_with_half_a_letter};
    struct peers_plan plan = plan_of(&latin, 1);
    struct peers_result result;
    char text[16], zeroes[256];

    (void)state;
    plan.tools[1] = &half;
    plan.tool_count = 2;
    trace_rounds(&plan, &result, text, sizeof(text));
    json_t *samples = peers_samples(&result), *sample = json_array_get(samples, 0);
    const char *reason = json_string_value(json_object_get(sample, "reason"));
    assert_non_null(reason);
    assert_non_null(strstr(reason, "ended with status 3: Ger?t f\xc3\xbcr ? x"));
    json_t *client = json_object_get(json_array_get(json_object_get(sample, "variants"), 0), "client");
    assert_string_equal(json_string_value(json_array_get(json_object_get(client, "environment"), 0)), "NAME=?");
    assert_non_null(strstr(json_string_value(json_object_get(client, "command")), "exit 3 # ?"));

    reason = json_string_value(json_object_get(json_array_get(samples, 1), "reason"));
    snprintf(zeroes, sizeof(zeroes), "%0250d?", 0);
    assert_string_equal(reason ? reason : "none", zeroes);
    json_decref(samples);
    peers_result_fini(&result);
}

static int three_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    two_variants(asked, place, why);
    return 3;
}

/* A tool with three variants, which differ in their commands. */
static struct peer_tool tool_of_three(int (*commands)(const struct peer_case *asked, const struct peer_place *place,
                                                      int index, struct peer_commands *out))
{
    return (struct peer_tool){
        .name = "tool", .program = "sh", .variants = three_variants, .commands = commands, .read = read_value};
}

static int slow_and_fast(const struct peer_case *asked, const struct peer_place *place, int index,
                         struct peer_commands *out)
{
    static const char *const values[] = {"2", "3", "2.9"};

    (void)asked;
    (void)place;
    return echo("o", index, values[index], out);
}

/* After three trials it is known that variant 0 is far behind; what is near goes on. */
static void the_hopeless_are_given_up(void **state)
{
    const struct peer_tool tool = tool_of_three(slow_and_fast);
    struct peers_plan plan = plan_of(&tool, 5);
    struct peers_result result;
    char text[256];

    (void)state;
    trace_rounds(&plan, &result, text, sizeof(text));
    assert_string_equal(text, "o0\no1\no2\n"
                              "o1\no2\no0\n"
                              "o2\no0\no1\n"
                              "o1\no2\n"
                              "o1\no2\n"
                              "o1\no2\n" /* from here on they count */
                              "o2\no1\n"
                              "o1\no2\n"
                              "o2\no1\n"
                              "o1\no2\n");
    assert_true(result.blocks[0].rows[0].variants[0].given_up);
    assert_false(result.blocks[0].rows[0].variants[1].given_up);
    assert_int_equal(peers_best_variant(&result.blocks[0], &result.blocks[0].rows[0]), 1);
    peers_result_fini(&result);
}

/* Variant 0 is lucky three times, and slow ever after. */
static int lucky_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                          struct peer_commands *out)
{
    char lucky[160];

    (void)asked;
    (void)place;
    snprintf(lucky, sizeof(lucky), "$([ $(grep -c '^o0$' %s) -gt 3 ] && echo 1 || echo 5)", trace_path);
    return echo("o", index, index == 0 ? lucky : index == 1 ? "4" : "3.9", out);
}

/* The best two of the trials are run again, and what they were in the trials does not count. */
static void luck_does_not_count(void **state)
{
    const struct peer_tool tool = tool_of_three(lucky_commands);
    struct peers_plan plan = plan_of(&tool, 3);
    struct peers_result result;
    struct peers_summary summary;
    char text[256];

    (void)state;
    trace_rounds(&plan, &result, text, sizeof(text));
    assert_string_equal(text, "o0\no1\no2\n"
                              "o1\no2\no0\n"
                              "o2\no0\no1\n"
                              "o0\no1\n"
                              "o1\no0\n"
                              "o0\no1\n");
    const struct peers_row *row = &result.blocks[0].rows[0];
    peers_sum_up(&result, &result.blocks[0], row, &summary);
    assert_int_equal(summary.variant, 1);
    assert_float_equal(summary.median, 4, 1e-9);
    assert_float_equal(row->variants[0].trials[2].gb_per_s, 5, 1e-9);
    assert_float_equal(row->variants[0].rounds[2].gb_per_s, 1, 1e-9);
    assert_true(row->variants[2].given_up && row->variants[2].rounds[0].gb_per_s < 0);
    peers_result_fini(&result);
}

static int broken_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                           struct peer_commands *out)
{
    (void)asked;
    (void)place;
    return echo("o", index, index == 1 ? "3" : "nonsense", out);
}

/* The one way that works goes on alone. */
static void what_fails_in_trials_does_not_go_on(void **state)
{
    const struct peer_tool tool = tool_of_three(broken_commands);
    struct peers_plan plan = plan_of(&tool, 2);
    struct peers_result result;
    struct peers_summary summary;
    char text[256];

    (void)state;
    trace_rounds(&plan, &result, text, sizeof(text));
    assert_string_equal(text, "o0\no1\no2\n"
                              "o1\no2\no0\n"
                              "o1\n"
                              "o1\n");
    peers_sum_up(&result, &result.blocks[0], &result.blocks[0].rows[0], &summary);
    assert_int_equal(summary.variant, 1);
    assert_int_equal(summary.failures, 4);
    peers_result_fini(&result);
}

/* Stops what comes after so many runs. */
static void note_progress(void *context, int done, int total, const char *doing)
{
    bool *stops = context;

    assert_true(strstr(doing, "(trial)") && total == 5 * 3 + 5 * 2);
    *stops = done >= 4;
}

static int stop_when_told(void *context, struct wf_status *status)
{
    const bool *stops = context;

    return *stops ? wf_fail(status, -EINTR, "enough") : 0;
}

/* Nothing counts, and no tool is said to have failed because one of its ways has. */
static void a_stop_among_trials(void **state)
{
    const struct peer_tool tool = tool_of_three(broken_commands);
    struct peers_plan plan = plan_of(&tool, 5);
    struct peers_result result;
    struct peers_summary summary;
    struct wf_status status = {0};
    bool stops = false;
    char text[4096] = "";

    (void)state;
    plan.stop = stop_when_told;
    plan.progress = note_progress;
    plan.context = &stops;
    assert_int_equal(peers_measure(&plan, &result, &status), -EINTR);
    const struct peers_block *block = &result.blocks[0];
    assert_int_equal(block->trials_done, 1);
    assert_int_equal(block->rounds_done, 0);
    assert_non_null(strstr(block->rows[0].error, "no number"));
    assert_null(peers_failure(block, &block->rows[0]));
    peers_sum_up(&result, block, &block->rows[0], &summary);
    assert_int_equal(summary.variant, -1);
    FILE *out = fmemopen(text, sizeof(text), "w");
    peers_report_case(&result, 0, &(struct peers_page){out, 80});
    fclose(out);
    assert_non_null(strstr(text, "not measured"));
    assert_non_null(strstr(text, "only 0 of 5 rounds, of which nothing counts before the trials are over: enough"));
    peers_result_fini(&result);
}

/* Leaves its own line among those of the tools. */
static void note_measured(void *context, const struct peers_result *result, int index)
{
    FILE *trace = fopen(trace_path, "a");

    (void)context;
    assert_non_null(trace);
    assert_int_equal(result->block_count, index + 1);
    fprintf(trace, "case %d: %d rounds, %s\n", index, result->blocks[index].rounds_done,
            result->complete ? "the last" : "more to come");
    fclose(trace);
}

/* A case can be read before the next one begins. */
static void cases_are_told_one_by_one(void **state)
{
    struct peers_plan plan = plan_of(&weft, 2);
    struct peers_result result;
    char text[256];

    (void)state;
    plan.cases[1] = plan.cases[0];
    plan.case_count = 2;
    plan.measured = note_measured;
    trace_rounds(&plan, &result, text, sizeof(text));
    assert_string_equal(text, "w0\nw0\ncase 0: 2 rounds, more to come\n"
                              "w0\nw0\ncase 1: 2 rounds, the last\n");
    peers_result_fini(&result);
}

static void count_measured(void *context, const struct peers_result *result, int index)
{
    (void)context;
    assert_true(result->blocks[index].rounds_done == 0 && strcmp(result->blocks[index].error, "enough") == 0);
    assert_false(result->complete);
    assert_int_equal(index, 0);
}

static int stop_at_once(void *context, struct wf_status *status)
{
    (void)context;
    return wf_fail(status, -EINTR, "enough");
}

/* What there is of it is told. */
static void a_case_cut_short_is_told(void **state)
{
    struct peers_plan plan = plan_of(&weft, 2);
    struct peers_result result;
    struct wf_status status = {0};

    (void)state;
    plan.cases[1] = plan.cases[0];
    plan.case_count = 2;
    plan.stop = stop_at_once;
    plan.measured = count_measured;
    assert_int_equal(peers_measure(&plan, &result, &status), -EINTR);
    assert_int_equal(result.block_count, 1);
    peers_result_fini(&result);
}

/* Cases differ in what they take: what is done and what is planned agree at the end. */
static void note_last(void *context, int done, int total, const char *doing)
{
    int *left = context;

    (void)doing;
    *left = total - done;
}

static int more_of_large(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    return asked->size > 1024 ? two_variants(asked, place, why) : one_variant(asked, place, why);
}

static void progress_knows_all_cases(void **state)
{
    const struct peer_tool tool = {
        .name = "tool", .program = "sh", .variants = more_of_large, .commands = weft_commands, .read = read_value};
    struct peers_plan plan = plan_of(&tool, 3);
    struct peers_result result;
    char text[256];
    int left = -1;

    (void)state;
    plan.cases[1] = plan.cases[0];
    plan.cases[1].size = 2048;
    plan.case_count = 2;
    plan.progress = note_last;
    plan.context = &left;
    trace_rounds(&plan, &result, text, sizeof(text));
    assert_int_equal(left, 1); /* it is told before the last one */
    peers_result_fini(&result);
}

static int too_many(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    (void)place;
    (void)why;
    return PEERS_VARIANTS_MAX + 1;
}

/* The best of some ways would be told as the best of all. */
static void ways_are_not_left_out(void **state)
{
    const struct peer_tool tool = {
        .name = "tool", .program = "sh", .variants = too_many, .commands = other_commands, .read = read_value};
    struct peers_plan plan = plan_of(&tool, 1);
    struct peers_result result;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(peers_measure(&plan, &result, &status), -E2BIG);
    assert_string_equal(status.text, "tool has 65 ways, of which 64 could be tried");
    peers_result_fini(&result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounds_take_turns),
        cmocka_unit_test(a_reason_is_utf8),
        cmocka_unit_test(the_hopeless_are_given_up),
        cmocka_unit_test(luck_does_not_count),
        cmocka_unit_test(what_fails_in_trials_does_not_go_on),
        cmocka_unit_test(ways_are_not_left_out),
        cmocka_unit_test(cases_are_told_one_by_one),
        cmocka_unit_test(progress_knows_all_cases),
        cmocka_unit_test(a_case_cut_short_is_told),
        cmocka_unit_test(a_stop_among_trials),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
