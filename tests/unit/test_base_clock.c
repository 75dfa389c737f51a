/* Deadlines do not overflow, and the clock does not go back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"

static void test_deadlines(void **state)
{
    static const struct {
        int64_t now_ns, timeout_ms, deadline;
    } cases[] = {
        {0, 0, 0},
        {5, 0, 5},
        {5, 1, 5 + WF_NS_PER_MS},
        {5, -1, WF_NEVER},
        {5, INT64_MIN, WF_NEVER},
        {5, INT64_MAX, WF_NEVER},
        {5, INT64_MAX / WF_NS_PER_MS, INT64_MAX / WF_NS_PER_MS * WF_NS_PER_MS + 5},
        {INT64_MAX - 1, 1, WF_NEVER},
        {-WF_NS_PER_MS, 1, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_true(wf_deadline_after_ms(cases[i].now_ns, cases[i].timeout_ms) == cases[i].deadline);
}

static void test_monotonic(void **state)
{
    int64_t before = wf_clock_now(&wf_clock_monotonic);

    (void)state;
    assert_true(before > 0);
    for (int i = 0; i < 1000; i++) {
        int64_t now = wf_clock_now(&wf_clock_monotonic);
        assert_true(now >= before);
        before = now;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_monotonic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
