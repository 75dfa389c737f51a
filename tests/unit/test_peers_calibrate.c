/* How many messages a case has, how long Weft takes for them, and how long a tool may: with a Weft that is a script. */
#include "peers_fixture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "peers/calibrate.h"
#include "peers/foresee.h"

static char folder[] = "/tmp/weft-calibrate-test.XXXXXX";

/* --- a Weft that takes a second for each message, or half of one for each way --- */

static const char script[] = "#!/bin/sh\n"
                             "echo \"$@\" >>\"${0%/*}/runs\"\n"
                             "[ -e \"${0%/*}/broken\" ] && exit 1\n"
                             "echo '{\"samples\": [{\"time_us\": {\"p50\": 1e6, \"p99\": 1e6, \"mean\": 1e6}}]}'\n";

static const char *inside(const char *name)
{
    static char path[sizeof folder + 32];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(inside(name), "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    write_file("weft", script);
    return chmod(inside("weft"), 0700);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(inside("weft"));
    unlink(inside("runs"));
    unlink(inside("broken"));
    return rmdir(folder);
}

/* Runs of the script since the last call. */
static int runs(void)
{
    FILE *file = fopen(inside("runs"), "r");
    int count = 0, letter;

    if (!file)
        return 0;
    while ((letter = fgetc(file)) != EOF)
        count += letter == '\n';
    fclose(file);
    unlink(inside("runs"));
    return count;
}

/* The server is elsewhere, and has nothing to do. */
static int begin_nothing(void *context, const struct peer_tool *tool, const struct peer_case *asked, int variant,
                         int *port, struct wf_status *status)
{
    (void)context;
    (void)tool;
    (void)asked;
    (void)variant;
    (void)status;
    *port = 4711;
    return 0;
}

static void tell_nothing(void *context, struct peer_command *server)
{
    (void)context;
    (void)server;
}

static int end_nothing(void *context, bool worked, struct peer_output *server, struct wf_status *status)
{
    (void)context;
    (void)worked;
    (void)server;
    (void)status;
    return 0;
}

static const struct peers_far nowhere = {begin_nothing, tell_nothing, end_nothing};

static struct peers_plan plan_with_script(bool fixed)
{
    struct peers_plan plan = plan_of(&peer_weft, 1);

    plan.place.folder = folder;
    plan.fixed_messages = fixed;
    plan.seconds = 10;
    plan.far = &nowhere;
    return plan;
}

static struct peers_block calibrated(const struct peers_plan *plan, struct peer_case asked)
{
    struct peers_block block = {.asked = asked};
    struct wf_status status = {0};

    if (peers_calibrate(plan, &block, &status) != 0)
        fail_msg("%s", status.text);
    return block;
}

/* --- found --- */

static void messages_are_found(void **state)
{
    const struct peers_plan plan = plan_with_script(false);
    struct peers_block block = calibrated(&plan, (struct peer_case){PEER_BANDWIDTH, 1024, 0, 0, 1, 1});

    (void)state;
    assert_int_equal(runs(), 1);
    assert_int_equal(block.asked.messages, 10);
    assert_int_equal(block.asked.warmup, 1);
    assert_float_equal(block.weft_s, 11, 1e-9);
    block = calibrated(&plan, (struct peer_case){PEER_LATENCY, 8, 0, 0, 1, 1});
    assert_int_equal(runs(), 1);
    assert_int_equal(block.asked.messages, 8); /* 5, but for the least */
}

/* --- said --- */

/* A run of 100,000 messages takes this Weft more than a day. */
static void fixed_messages_are_timed(void **state)
{
    struct peers_plan plan = plan_with_script(true);
    const struct peer_case many = {PEER_BANDWIDTH, 1024, 100000, 500, 16, 1};
    struct peers_block block = calibrated(&plan, many);

    (void)state;
    assert_int_equal(runs(), 1);
    assert_int_equal(block.asked.messages, 100000);
    assert_int_equal(block.asked.warmup, 500);
    assert_float_equal(block.weft_s, 100500, 1e-6);
    assert_true(peers_timeout_ms(&plan, &block) == INT_MAX / 1000 * 1000);

    block = calibrated(&plan, (struct peer_case){PEER_BANDWIDTH, 1024, 8, 1, 1, 1});
    assert_int_equal(runs(), 0); /* the first run has more */
    assert_true(block.weft_s > 0 && block.weft_s < 1);
    assert_int_equal(peers_timeout_ms(&plan, &block), 180000);
}

/* Of messages that are found, too. */
static void a_warm_up_that_is_said_stays(void **state)
{
    struct peers_plan plan = plan_with_script(false);
    struct peers_forecast forecast;
    struct wf_status status = {0};

    (void)state;
    plan.fixed_warmup = true;
    struct peers_block block = calibrated(&plan, (struct peer_case){PEER_BANDWIDTH, 1024, 0, 7, 1, 1});
    assert_int_equal(block.asked.messages, 10);
    assert_int_equal(block.asked.warmup, 7);
    assert_float_equal(block.weft_s, 17, 1e-9);
    block = calibrated(&plan, (struct peer_case){PEER_BANDWIDTH, 1024, 0, 0, 1, 1});
    assert_int_equal(block.asked.warmup, 0);
    block = calibrated(&plan, (struct peer_case){PEER_BANDWIDTH, 1024, 0, 100000, 1, 1});
    assert_true(peers_timeout_ms(&plan, &block) > 3600 * 1000);

    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    double little = forecast.seconds;
    plan.cases[0].warmup = 100000000;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_true(forecast.seconds > little + 100 && forecast.seconds < little + 200);
    runs();
}

/* Weft's own failure is for its rounds to tell. */
static void fixed_messages_are_estimated_where_weft_fails(void **state)
{
    const struct peers_plan plan = plan_with_script(true);

    (void)state;
    write_file("broken", "");
    struct peers_block block = calibrated(&plan, (struct peer_case){PEER_BANDWIDTH, 1 << 20, 100000, 0, 16, 1});
    unlink(inside("broken"));
    assert_int_equal(runs(), 1);
    assert_true(block.weft_s > 10 && block.weft_s < 1000);
    assert_true(peers_timeout_ms(&plan, &block) > 400000);
}

static int stop_at_once(void *context, struct wf_status *status)
{
    (void)context;
    return wf_fail(status, -EINTR, "enough");
}

static void a_stop_is_no_failure_of_weft(void **state)
{
    struct peers_plan plan = plan_with_script(true);
    struct peers_block block = {.asked = {PEER_BANDWIDTH, 1024, 100000, 500, 16, 1}};
    struct wf_status status = {0};

    (void)state;
    plan.stop = stop_at_once;
    assert_int_equal(peers_calibrate(&plan, &block, &status), -EINTR);
    assert_string_equal(status.text, "enough");
    runs();
}

static void a_first_run_is_foreseen(void **state)
{
    struct peers_plan plan = plan_with_script(true);
    struct peers_forecast forecast;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_int_equal(forecast.runs, 1);
    plan.cases[0].messages = 100000000;
    double fixed = peers_foresee(&plan, &forecast, &status) == 0 ? forecast.seconds : 0;
    assert_int_equal(forecast.runs, 2);
    assert_true(fixed > 100 && fixed < 200); /* the first run is short */
    runs();
}

/* --- how long a tool may take --- */

static void a_tool_has_its_time(void **state)
{
    static const struct {
        bool fixed;
        double weft_s;
        int seconds;
    } cases[] = {
        {false, 0, 180},  {false, 0.5, 40},    {false, 1000, 3600},          {true, 0, 180},
        {true, 0.5, 180}, {true, 1000, 40020}, {true, 1e30, INT_MAX / 1000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct peers_plan plan = {.fixed_messages = cases[i].fixed};
        const struct peers_block block = {.weft_s = cases[i].weft_s};
        assert_int_equal(peers_timeout_ms(&plan, &block), 1000 * cases[i].seconds);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_found),           cmocka_unit_test(fixed_messages_are_timed),
        cmocka_unit_test(a_warm_up_that_is_said_stays), cmocka_unit_test(fixed_messages_are_estimated_where_weft_fails),
        cmocka_unit_test(a_stop_is_no_failure_of_weft), cmocka_unit_test(a_first_run_is_foreseen),
        cmocka_unit_test(a_tool_has_its_time),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
