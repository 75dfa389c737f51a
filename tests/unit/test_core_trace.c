/* The ring of a trace: order, room, what is lost, and what began too early. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/ground/trace.h"

#define ROOM 4

static void add(struct wf_trace *trace, int64_t begin_ns)
{
    struct wf_trace_event event = {.begin_ns = begin_ns, .end_ns = begin_ns + 1, .tag = (uint64_t)begin_ns};

    wf_trace_add(trace, &event);
}

/* Takes up to `max`: they must be those from `first` on, `count` of them, and `lost` lost so far. */
static void take(struct wf_trace *trace, uint32_t max, uint64_t first, uint32_t count, uint64_t lost)
{
    struct wf_trace_event events[2 * ROOM];
    uint64_t lost_now;

    assert_int_equal(wf_trace_take(trace, events, max, &lost_now), count);
    assert_int_equal(lost_now, lost);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(events[i].tag, first + i);
}

static void off_until_started(void **state)
{
    struct wf_trace trace = {0};

    (void)state;
    wf_trace_init(&trace);
    assert_false(wf_trace_on(&trace));
    add(&trace, 1);
    take(&trace, ROOM, 0, 0, 0);
    assert_int_equal(wf_trace_start(&trace, ROOM, 10), 0);
    assert_true(wf_trace_on(&trace));
    assert_int_equal(wf_trace_start(&trace, 0, 10), 0);
    assert_false(wf_trace_on(&trace));
    add(&trace, 11); /* a place that saw the flag just before */
    take(&trace, ROOM, 0, 0, 0);
    wf_trace_fini(&trace);
}

static void first_ones_stay(void **state)
{
    struct wf_trace trace = {0};

    (void)state;
    wf_trace_init(&trace);
    assert_int_equal(wf_trace_start(&trace, ROOM, 0), 0);
    for (int64_t i = 1; i <= ROOM + 3; i++)
        add(&trace, i);
    take(&trace, 3, 1, 3, 3);
    for (int64_t i = 5; i <= 7; i++) /* around the end of the ring */
        add(&trace, i);
    add(&trace, 8);
    take(&trace, 0, 0, 0, 4);
    take(&trace, 2 * ROOM, 4, ROOM, 4);
    add(&trace, 9);
    take(&trace, 1, 9, 1, 4);
    wf_trace_fini(&trace);
}

static void a_start_forgets(void **state)
{
    struct wf_trace trace = {0};

    (void)state;
    wf_trace_init(&trace);
    assert_int_equal(wf_trace_start(&trace, 1, 0), 0);
    add(&trace, 1);
    add(&trace, 2);
    assert_int_equal(wf_trace_start(&trace, ROOM, 5), 0);
    add(&trace, 4); /* it began before, and has ended only now */
    take(&trace, ROOM, 0, 0, 0);
    add(&trace, 5);
    add(&trace, 6);
    take(&trace, ROOM, 5, 2, 0);
    wf_trace_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_until_started),
        cmocka_unit_test(first_ones_stay),
        cmocka_unit_test(a_start_forgets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
