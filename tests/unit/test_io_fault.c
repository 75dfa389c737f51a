/* When injected faults are due: distances and sizes by the seed, rails by their names, and the course of time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "io/fault.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct wf_fault_spec spec_of(const char *text)
{
    struct wf_fault_spec spec;
    struct wf_status status = {0};

    if (wf_fault_parse(text, &spec, &status) != 0)
        fail_msg("%s", status.text);
    return spec;
}

static struct sockaddr_storage address_of(const char *text, uint32_t scope)
{
    struct sockaddr_storage address = {.ss_family = AF_INET};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;

    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)&address)->sin_addr) == 1)
        return address;
    address.ss_family = AF_INET6;
    assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    v6->sin6_scope_id = scope;
    return address;
}

/* --- by bytes and chance --- */

/* Bytes between one event and the next are from a half to one and a half of what was asked for, and so on average. */
static void resets_come_about_as_often_as_asked(void **state)
{
    static const uint64_t steps[] = {1, 7, 64};
    enum { EVERY = 1000, EVENTS = 2000 };
    struct wf_fault_spec spec = spec_of("seed=3,reset_every=1000");

    (void)state;
    for (size_t i = 0; i < COUNT(steps); i++) {
        struct wf_fault_dice dice;
        uint64_t since = 0, total = 0;
        wf_fault_dice_init(&dice, &spec);
        for (int events = 0; events < EVENTS;) {
            since += steps[i];
            if (!wf_fault_reset_due(&dice, steps[i]))
                continue;
            assert_in_range(since, EVERY / 2, EVERY + EVERY / 2 + steps[i]);
            total += since;
            since = 0;
            events++;
        }
        assert_in_range(total / EVENTS, EVERY * 9 / 10, EVERY * 11 / 10 + steps[i]);
    }
}

static void nothing_is_due_that_nobody_asked_for(void **state)
{
    struct wf_fault_spec spec = spec_of("seed=3");
    struct wf_fault_dice dice;
    int bit;

    (void)state;
    wf_fault_dice_init(&dice, &spec);
    for (int i = 0; i < 100; i++) {
        assert_false(wf_fault_reset_due(&dice, UINT64_C(1) << 62));
        assert_int_equal(wf_fault_flip_due(&dice, UINT64_C(1) << 62, &bit), 0);
        assert_true(wf_fault_piece(&dice, UINT64_C(1) << 62) == UINT64_C(1) << 62);
    }
}

/* Marks the flips in a stream received in pieces of `step` bytes. */
static int mark_flips(const struct wf_fault_spec *spec, uint8_t *stream, uint64_t length, uint64_t step)
{
    struct wf_fault_dice dice;
    uint64_t at = 0;
    int flips = 0, bit;

    wf_fault_dice_init(&dice, spec);
    while (at < length) {
        uint64_t end = at + step < length ? at + step : length, next;
        while ((next = wf_fault_flip_due(&dice, end - at, &bit))) {
            assert_in_range(next, 1, end - at);
            assert_in_range(bit, 0, 7);
            at += next;
            stream[at - 1] ^= (uint8_t)(1u << bit);
            flips++;
        }
        at = end;
    }
    return flips;
}

/* Which bits are flipped is a matter of the seed alone, not of how the bytes come in. */
static void flips_hit_places_of_the_seed(void **state)
{
    enum { LENGTH = 100000 };
    static uint8_t one[LENGTH], other[LENGTH];
    struct wf_fault_spec spec = spec_of("seed=5,flip_every=100"), second = spec_of("seed=6,flip_every=100");
    int flips;

    (void)state;
    memset(one, 0, LENGTH);
    memset(other, 0, LENGTH);
    flips = mark_flips(&spec, one, LENGTH, 1);
    assert_in_range(flips, LENGTH / 100 * 8 / 10, LENGTH / 100 * 12 / 10);
    assert_int_equal(mark_flips(&spec, other, LENGTH, 977), flips);
    assert_memory_equal(one, other, LENGTH);
    memset(other, 0, LENGTH);
    mark_flips(&second, other, LENGTH, 977);
    assert_memory_not_equal(one, other, LENGTH);
}

static void every_byte_can_be_asked_for(void **state)
{
    struct wf_fault_spec spec = spec_of("reset_every=1,flip_every=1");
    struct wf_fault_dice dice;
    int bit;

    (void)state;
    wf_fault_dice_init(&dice, &spec);
    for (int i = 0; i < 100; i++) {
        assert_true(wf_fault_reset_due(&dice, 1));
        assert_int_equal(wf_fault_flip_due(&dice, 1, &bit), 1);
        assert_int_equal(wf_fault_piece(&dice, 10), 1);
    }
}

static void pieces_are_shorter(void **state)
{
    struct wf_fault_spec spec = spec_of("short=1");
    struct wf_fault_dice dice;
    bool single = false, large = false;

    (void)state;
    wf_fault_dice_init(&dice, &spec);
    assert_int_equal(wf_fault_piece(&dice, 1), 1);
    for (int i = 0; i < 1000; i++) {
        uint64_t piece = wf_fault_piece(&dice, 1000);
        assert_in_range(piece, 1, 999);
        single |= piece == 1;
        large |= piece > 250;
    }
    assert_true(single && large);
}

/* So that a reset meets a transfer half way. */
static void pieces_end_where_a_reset_is_due(void **state)
{
    struct wf_fault_spec spec = spec_of("reset_every=1000");
    struct wf_fault_dice dice;

    (void)state;
    wf_fault_dice_init(&dice, &spec);
    for (int i = 0; i < 100; i++) {
        uint64_t piece = wf_fault_piece(&dice, 1000000);
        assert_in_range(piece, 500, 1500);
        assert_false(wf_fault_reset_due(&dice, piece - 1));
        assert_int_equal(wf_fault_piece(&dice, 1000000), 1);
        assert_true(wf_fault_reset_due(&dice, 1));
    }
}

/* --- rails --- */

static const struct wf_fault_rail *rails(void)
{
    static struct wf_fault_rail all[] = {
        {.name = "127.0.1.1", .device = "lo"},
        {.name = "127.0.2.1", .device = "lo"},
        {.name = "eth1", .device = "eth1"},
        {.name = "eth2", .device = "eth2"},
    };
    all[0].address = address_of("127.0.1.1", 0);
    all[1].address = address_of("127.0.2.1", 0);
    all[2].address = address_of("fe80::1", 3);
    all[3].address = address_of("fe80::1", 4);
    return all;
}

static void finds_rails_by_all_their_names(void **state)
{
    static const struct {
        const char *rail;
        uint64_t found; /* 0: none */
    } cases[] = {
        {"0", 1},        {"3", 8},         {"4", 0},         {"eth1", 4},
        {"lo", 3},       {"127.0.2.1", 2}, {"127.0.3.1", 0}, {"fe80::1%eth2", 8},
        {"fe80::1", 12}, {"fe80::2", 0},   {"eth", 0},       {"fe80::1%eth3", 0},
        {"00", 1},       {"-1", 0},        {"1x", 0},        {"18446744073709551616", 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        struct wf_fault_plan plan = {0};
        struct wf_status status = {0};
        snprintf(text, sizeof(text), "drop=1@5+5,stall=%s@5+5", cases[i].rail);
        struct wf_fault_spec spec = spec_of(text);
        int rc = wf_fault_plan_init(&plan, &spec, rails(), 4, &status);
        if (cases[i].found) {
            assert_int_equal(rc, 0);
            assert_int_equal(plan.rails[0], 2);
            assert_int_equal(plan.rails[1], cases[i].found);
        } else {
            assert_int_equal(rc, -EINVAL);
            assert_non_null(strstr(status.text, "eth1, eth2"));
            snprintf(text, sizeof(text), "stall=%s:", cases[i].rail);
            assert_non_null(strstr(status.text, text));
        }
    }
}

static void knows_rails_by_address(void **state)
{
    struct sockaddr_storage mapped = address_of("::ffff:127.0.2.1", 0), link = address_of("fe80::1", 4);
    struct sockaddr_storage other = address_of("fe80::1", 5), any = address_of("0.0.0.0", 0), none = {0};

    (void)state;
    assert_int_equal(wf_fault_rail_of(rails(), 4, &mapped), 1);
    assert_int_equal(wf_fault_rail_of(rails(), 4, &link), 3);
    assert_int_equal(wf_fault_rail_of(rails(), 4, &other), -1);
    assert_int_equal(wf_fault_rail_of(rails(), 4, &any), -1);
    assert_int_equal(wf_fault_rail_of(rails(), 4, &none), -1);
}

/* --- by time --- */

static void time_takes_its_course(void **state)
{
    static const struct {
        int64_t since_ms;
        uint64_t stalled, dropped;
        int64_t until_ms; /* -1: for good */
    } cases[] = {
        {0, 0, 0, 10},  {9, 0, 0, 10},  {10, 4, 0, 15}, {15, 4, 3, 20}, {20, 4, 3, 25},   {25, 4, 0, 30},
        {29, 4, 0, 30}, {30, 0, 0, 40}, {40, 0, 8, 41}, {41, 0, 0, -1}, {1000, 0, 0, -1},
    };
    struct wf_fault_spec spec = spec_of("stall=eth1@10+10,drop=lo@15+10,stall=eth1@20+10,drop=3@40+1");
    struct wf_fault_plan plan;

    (void)state;
    assert_int_equal(wf_fault_plan_init(&plan, &spec, rails(), 4, NULL), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wf_fault_state at = wf_fault_state_at(&plan, cases[i].since_ms * WF_NS_PER_MS);
        assert_int_equal(at.stalled, cases[i].stalled);
        assert_int_equal(at.dropped, cases[i].dropped);
        assert_true(at.until_ns == (cases[i].until_ms < 0 ? WF_NEVER : cases[i].until_ms * WF_NS_PER_MS));
    }
    /* One stall follows the other without a gap. */
    assert_true(wf_fault_stall_end(&plan, 2, 12 * WF_NS_PER_MS) == 30 * WF_NS_PER_MS);
    assert_true(wf_fault_stall_end(&plan, 2, 9 * WF_NS_PER_MS) == 9 * WF_NS_PER_MS);
    assert_true(wf_fault_stall_end(&plan, 0, 12 * WF_NS_PER_MS) == 12 * WF_NS_PER_MS);
    assert_true(wf_fault_stall_end(&plan, -1, 12 * WF_NS_PER_MS) == 12 * WF_NS_PER_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resets_come_about_as_often_as_asked),
        cmocka_unit_test(nothing_is_due_that_nobody_asked_for),
        cmocka_unit_test(flips_hit_places_of_the_seed),
        cmocka_unit_test(every_byte_can_be_asked_for),
        cmocka_unit_test(pieces_are_shorter),
        cmocka_unit_test(pieces_end_where_a_reset_is_due),
        cmocka_unit_test(finds_rails_by_all_their_names),
        cmocka_unit_test(knows_rails_by_address),
        cmocka_unit_test(time_takes_its_course),
    };
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
