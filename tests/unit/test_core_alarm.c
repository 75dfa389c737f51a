/* The door's alarm: visits come when they were asked for, in the order of their times, and to nobody else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/ground/alarm.h"

#define VISITS 300

static int wakes;

static void wake(struct wf_engine *engine)
{
    (void)engine;
    wakes += 1;
}

static const struct wf_engine_ops ops = {.wake = wake};
static struct wf_engine engine = {.ops = &ops};
static struct wf_alarm alarm_clock;
static struct wf_visit visits[VISITS];

static int set_up(void **state)
{
    (void)state;
    memset(&alarm_clock, 0, sizeof alarm_clock);
    memset(visits, 0, sizeof visits);
    wf_alarm_init(&alarm_clock);
    wf_alarm_listen(&alarm_clock, &engine);
    wakes = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wf_alarm_fini(&alarm_clock);
    return 0;
}

static uint32_t draw(uint32_t below)
{
    static uint64_t state = 12345;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % below;
}

/* A session that has begun, was visited once, and is to be visited at `due_ns` again. */
static void begin(struct wf_visit *visit, int64_t due_ns)
{
    assert_int_equal(wf_alarm_enter(&alarm_clock, visit), 0);
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 0), visit);
    wf_alarm_again(&alarm_clock, visit, due_ns);
}

static void a_new_session_is_visited_at_once(void **state)
{
    (void)state;
    assert_int_equal(wf_alarm_enter(&alarm_clock, &visits[0]), 0);
    assert_int_equal(atomic_load(&alarm_clock.due_ns), 0);
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 0), &visits[0]);
    assert_null(wf_alarm_next(&alarm_clock, INT64_MAX - 1)); /* nobody has asked for another one */
    assert_true(atomic_load(&alarm_clock.due_ns) == WF_NEVER);
}

static void only_an_earlier_time_rings(void **state)
{
    (void)state;
    begin(&visits[0], 1000);
    begin(&visits[1], 2000);
    assert_null(wf_alarm_next(&alarm_clock, 10));
    assert_int_equal(atomic_load(&alarm_clock.due_ns), 1000);
    wakes = 0;
    wf_alarm_by(&alarm_clock, &visits[0], 1500);
    wf_alarm_by(&alarm_clock, &visits[0], 1000);
    wf_alarm_by(&alarm_clock, &visits[1], 1200); /* the door looks before that anyway, and finds out then */
    assert_int_equal(wakes, 0);
    wf_alarm_by(&alarm_clock, &visits[1], 500);
    assert_int_equal(wakes, 1);
    assert_int_equal(atomic_load(&alarm_clock.due_ns), 500);
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 600), &visits[1]);
    assert_null(wf_alarm_next(&alarm_clock, 600));
    assert_int_equal(atomic_load(&alarm_clock.due_ns), 1000);
}

/* What is asked for while the door is with the session is another visit. */
static void asked_for_during_the_visit(void **state)
{
    (void)state;
    begin(&visits[0], 1000);
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 1000), &visits[0]);
    wf_alarm_by(&alarm_clock, &visits[0], 0);
    wf_alarm_again(&alarm_clock, &visits[0], 5000);
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 1000), &visits[0]);
    wf_alarm_again(&alarm_clock, &visits[0], 5000);
    assert_null(wf_alarm_next(&alarm_clock, 4999));
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 5000), &visits[0]);
}

static void a_session_that_has_ended_is_not_visited(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        begin(&visits[i], 100 * (i + 1));
    wf_alarm_by(&alarm_clock, &visits[0], 1);
    wf_alarm_leave(&alarm_clock, &visits[0]);
    wf_alarm_leave(&alarm_clock, &visits[0]);
    wf_alarm_leave(&alarm_clock, &visits[2]);
    assert_ptr_equal(wf_alarm_next(&alarm_clock, 1000), &visits[1]);
    assert_null(wf_alarm_next(&alarm_clock, 1000));
}

/* Random times, against an array. */
static void in_the_order_of_their_times(void **state)
{
    int64_t due[VISITS], now = 0;
    (void)state;
    for (int i = 0; i < VISITS; i++)
        begin(&visits[i], due[i] = 1 + draw(10000));
    for (int made = 0; made < 20000; made++) {
        int asked = (int)draw(VISITS);
        int64_t by = now + draw(3000), first = WF_NEVER, last = 0;
        wf_alarm_by(&alarm_clock, &visits[asked], by);
        due[asked] = by < due[asked] ? by : due[asked];
        now += draw(20);
        const struct wf_visit *visit;
        while ((visit = wf_alarm_next(&alarm_clock, now))) {
            int i = (int)(visit - visits);
            assert_true(due[i] <= now && due[i] >= last);
            last = due[i];
            due[i] = now + 1 + draw(10000);
            wf_alarm_again(&alarm_clock, &visits[i], due[i]);
        }
        for (int i = 0; i < VISITS; i++) {
            assert_true(due[i] > now);
            first = due[i] < first ? due[i] : first;
        }
        assert_int_equal(atomic_load(&alarm_clock.due_ns), first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_session_is_visited_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_an_earlier_time_rings, set_up, tear_down),
        cmocka_unit_test_setup_teardown(asked_for_during_the_visit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_session_that_has_ended_is_not_visited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(in_the_order_of_their_times, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
