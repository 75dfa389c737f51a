/* Finished numbers: written-down cases, and random ones against a bitmap. Argument: the seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/finished.h"

#define NUMBERS 1500

static uint64_t seed = 20240612;

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Intervals rising, apart from each other and from the floor: then there is one at most for each gap. */
static void check_invariant(const struct wf_finished *set)
{
    uint64_t before = set->floor;

    assert_true(set->count <= set->capacity);
    for (uint32_t i = 0; i < set->count; i++) {
        assert_true(set->above[i].start > before);
        assert_true(set->above[i].end > set->above[i].start);
        before = set->above[i].end;
    }
}

static void in_order_needs_no_memory(void **state)
{
    struct wf_finished set;

    (void)state;
    wf_finished_init(&set);
    assert_true(set.floor == 1);
    for (uint64_t number = 1; number <= 1000; number++) {
        assert_false(wf_finished_has(&set, number));
        assert_int_equal(wf_finished_add(&set, number), 0);
        assert_int_equal(wf_finished_add(&set, number), -EEXIST);
        assert_true(wf_finished_has(&set, number));
        assert_true(set.floor == number + 1);
    }
    assert_null(set.above);
    wf_finished_fini(&set);
}

struct step {
    enum { ADD, RAISE } what;
    uint64_t number;
    int rc;
    uint64_t floor;
    uint32_t count;
};

static const struct step steps[] = {
    {ADD, 0, -EEXIST, 1, 0}, /* numbers start at 1: 0 has always ended */
    {ADD, 3, 0, 1, 1},
    {ADD, 3, -EEXIST, 1, 1},
    {ADD, 5, 0, 1, 2},
    {ADD, 4, 0, 1, 1}, /* joins both */
    {ADD, 4, -EEXIST, 1, 1},
    {ADD, 2, 0, 1, 1},
    {ADD, 1, 0, 6, 0}, /* the floor swallows the interval */
    {ADD, 1, -EEXIST, 6, 0},
    {RAISE, 3, 0, 6, 0},
    {RAISE, 6, 0, 6, 0},
    {ADD, 10, 0, 6, 1},
    {ADD, 20, 0, 6, 2},
    {ADD, 21, 0, 6, 2},
    {ADD, 30, 0, 6, 3},
    {RAISE, 9, 0, 9, 3},
    {RAISE, 10, 0, 11, 2}, /* touches */
    {RAISE, 21, 0, 22, 1}, /* ends within an interval */
    {RAISE, 29, 0, 29, 1},
    {ADD, 29, 0, 31, 0},
    {ADD, 40, 0, 31, 1},
    {ADD, 50, 0, 31, 2},
    {RAISE, 51, 0, 51, 0},
    {ADD, 53, 0, 51, 1},
    {RAISE, 100, 0, 100, 0}, /* over everything */
    {ADD, UINT64_MAX, -EEXIST, 100, 0},
    {ADD, UINT64_MAX - 1, 0, 100, 1},
    {RAISE, UINT64_MAX - 1, 0, UINT64_MAX, 0},
    {RAISE, UINT64_MAX, 0, UINT64_MAX, 0},
    {ADD, UINT64_MAX, -EEXIST, UINT64_MAX, 0},
};

static void written_down_steps(void **state)
{
    struct wf_finished set;

    (void)state;
    wf_finished_init(&set);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (steps[i].what == ADD)
            assert_int_equal(wf_finished_add(&set, steps[i].number), steps[i].rc);
        else
            wf_finished_raise(&set, steps[i].number);
        check_invariant(&set);
        assert_true(set.floor == steps[i].floor);
        assert_int_equal(set.count, steps[i].count);
        assert_true(steps[i].what == RAISE || wf_finished_has(&set, steps[i].number));
    }
    wf_finished_fini(&set);
}

/* The bound that the design counts on: intervals at most the unfinished numbers between, plus one. */
static void every_second_number(void **state)
{
    struct wf_finished set;

    (void)state;
    wf_finished_init(&set);
    for (uint64_t number = 2; number <= 2048; number += 2)
        assert_int_equal(wf_finished_add(&set, number), 0);
    assert_int_equal(set.count, 1024);
    for (uint64_t number = 1; number <= 2048; number++)
        assert_int_equal(wf_finished_has(&set, number), number % 2 == 0);
    for (uint64_t number = 2047; number > 1; number -= 2)
        assert_int_equal(wf_finished_add(&set, number), 0);
    check_invariant(&set);
    assert_int_equal(set.count, 1);
    assert_int_equal(wf_finished_add(&set, 1), 0);
    assert_true(set.floor == 2049);
    assert_int_equal(set.count, 0);
    wf_finished_fini(&set);
}

static void fini_leaves_an_empty_set(void **state)
{
    struct wf_finished set;

    (void)state;
    wf_finished_init(&set);
    assert_int_equal(wf_finished_add(&set, 7), 0);
    wf_finished_fini(&set);
    wf_finished_fini(&set);
    assert_false(wf_finished_has(&set, 7));
    assert_int_equal(wf_finished_add(&set, 1), 0);
    wf_finished_fini(&set);
}

/* ------------------------------------------------------------------------------------------- random */

static void compare(const struct wf_finished *set, const uint8_t *map)
{
    uint64_t floor = 1;
    uint32_t intervals = 0;

    check_invariant(set);
    while (floor < NUMBERS && map[floor])
        floor++;
    assert_true(set->floor == floor);
    for (uint64_t number = 1; number < NUMBERS; number++) {
        assert_int_equal(wf_finished_has(set, number), map[number]);
        intervals += number > floor && map[number] && !map[number - 1];
    }
    assert_int_equal(set->count, intervals);
}

/* `reach`: how far ahead of the floor numbers finish, as the introduction limit allows. */
static void one_random_direction(uint64_t *random)
{
    uint8_t map[NUMBERS] = {0};
    uint64_t reach = 1 + draw(random) % 600, raises = draw(random) % 8;
    struct wf_finished set;

    wf_finished_init(&set);
    for (int i = 0; i < 1200; i++) {
        uint64_t number = set.floor + draw(random) % (reach + 4) - draw(random) % 3;
        if (number == 0 || number >= NUMBERS)
            continue;
        if (draw(random) % 400 < raises) {
            wf_finished_raise(&set, number);
            memset(map + 1, 1, number - 1);
        } else {
            assert_int_equal(wf_finished_add(&set, number), map[number] ? -EEXIST : 0);
            map[number] = 1;
        }
        if (i % 16 == 0)
            compare(&set, map);
    }
    compare(&set, map);
    wf_finished_fini(&set);
}

static void random_against_a_bitmap(void **state)
{
    uint64_t random = seed;

    (void)state;
    print_message("  seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 60; i++)
        one_random_direction(&random);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_needs_no_memory), cmocka_unit_test(written_down_steps),
        cmocka_unit_test(every_second_number),      cmocka_unit_test(fini_leaves_an_empty_set),
        cmocka_unit_test(random_against_a_bitmap),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
