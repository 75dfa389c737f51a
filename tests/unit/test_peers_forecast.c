/* What is known of a comparison before anything is measured: tools, their versions, how many runs, how long. */
#include "peers_fixture.h"

#include <errno.h>
#include <string.h>

#include "peers/foresee.h"
#include "peers/version.h"

static int three_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    (void)place;
    (void)why;
    return 3;
}

static int large_only(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)place;
    if (asked->size > 1024)
        return 2;
    strcpy(why, "too small for it");
    return 0;
}

static const struct peer_tool weft = {
    .name = "weft", .program = "sh", .version = {"sh", "-c", "echo weft 0.9.1"}, .variants = one_variant};
static const struct peer_tool many = {
    .name = "many", .program = "sh", .version = {"sh", "-c", "echo many 3.12.; exit 1"}, .variants = three_variants};
static const struct peer_tool large = {.name = "large", .program = "sh", .variants = large_only};
static const struct peer_tool absent = {
    .name = "absent", .program = "no-such-tool", .package = "such-tools", .version = {"no-such-tool"}};

static struct peers_plan plan_of_four(void)
{
    struct peers_plan plan = plan_of(&weft, 7);

    plan.tools[1] = &many;
    plan.tools[2] = &large;
    plan.tools[3] = &absent;
    plan.tool_count = 4;
    plan.cases[1] = (struct peer_case){PEER_BANDWIDTH, 4096, 8, 1, 1, 1};
    plan.case_count = 2;
    return plan;
}

static void tools_are_looked_at(void **state)
{
    struct peers_plan plan = plan_of_four();
    struct peers_forecast forecast;
    struct wf_status status = {0};

    (void)state;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_string_equal(forecast.tools[0].version, "0.9.1");
    assert_int_equal(forecast.tools[0].cases, 2);
    assert_string_equal(forecast.tools[0].why, "");
    assert_string_equal(forecast.tools[1].version, ""); /* what asks for it has failed */
    assert_int_equal(forecast.tools[2].cases, 1);
    assert_string_equal(forecast.tools[2].why, "too small for it");
    assert_false(forecast.tools[2].absent);
    assert_true(forecast.tools[3].absent && forecast.tools[3].cases == 0);
    assert_non_null(strstr(forecast.tools[3].why, "such-tools"));
    assert_int_equal(peers_rivals(&plan, &forecast), 2);
}

/* 7 rounds of Weft, and of the two ways that have no trials; 5 trials of three ways, and 7 rounds of two of them. */
static void runs_are_counted(void **state)
{
    struct peers_plan plan = plan_of_four();
    struct peers_forecast forecast;
    struct wf_status status = {0};
    int runs = (7 + (5 * 3 + 7 * 2)) + (7 + (5 * 3 + 7 * 2) + 7 * 2);

    (void)state;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_int_equal(forecast.runs, runs);
    double fixed = forecast.seconds;
    assert_true(fixed > runs * 0.05 && fixed < runs * 1.0);
    /* Where the messages have to be found, there is one more run for each case, and all of them last `seconds`. */
    plan.fixed_messages = false;
    plan.seconds = 2;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_int_equal(forecast.runs, runs + 2);
    assert_true(forecast.seconds > forecast.runs * 2.2 && forecast.seconds < forecast.runs * 3.0);
    /* No 16 messages of 1 GiB, and as many before them, fit into that. */
    plan.cases[0].size = plan.cases[1].size = 1 << 30;
    plan.cases[0].inflight = plan.cases[1].inflight = 16;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_true(forecast.seconds > forecast.runs * 10.0);
    /* Nor is a fixed number of large messages as quick as one of small ones. */
    plan.fixed_messages = true;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), 0);
    assert_true(forecast.seconds > 10 * fixed);
}

static int stop_at_once(void *context, struct wf_status *status)
{
    (void)context;
    return wf_fail(status, -EINTR, "enough");
}

static void it_can_be_stopped(void **state)
{
    struct peers_plan plan = plan_of_four();
    struct peers_forecast forecast;
    struct wf_status status = {0};

    (void)state;
    plan.stop = stop_at_once;
    assert_int_equal(peers_foresee(&plan, &forecast, &status), -EINTR);
    assert_string_equal(status.text, "enough");
}

static void versions_are_read(void **state)
{
    static const struct {
        const char *text, *version;
    } cases[] = {
        {"iperf 3.12 (cJSON 1.7.15)\nLinux vm 6.1.0\n", "3.12"},
        {"# Version 1.13.1\n# Git branch '<unknown>', revision 0000000\n", "1.13.1"},
        {"fi_info: 1.17.0\nlibfabric: 1.17.0\n", "1.17.0"},
        {"mpirun (Open MPI) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/\n", "4.1.4"},
        {"mpirun (Open MPI) 5.0.7rc1\n", "5.0.7rc1"},
        {"version=1.12.1 revision dc92435\n", "1.12.1"},
        {"iperf3 3 of 2024, version 3.12.", "3.12"},
        {"7", NULL},
        {"v2.", NULL},
        {"no number. at. all", NULL},
        {"", NULL},
        {"1.2\033[31m", "1.2"},
        {"1.00000000000000000000000000000000000000000000000000 and 2.5", "2.5"},
    };
    char version[32];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool found = peers_read_version(cases[i].text, version, sizeof(version));
        assert_int_equal(found, cases[i].version != NULL);
        if (found)
            assert_string_equal(version, cases[i].version);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tools_are_looked_at),
        cmocka_unit_test(runs_are_counted),
        cmocka_unit_test(it_can_be_stopped),
        cmocka_unit_test(versions_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
