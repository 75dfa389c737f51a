/* Finished numbers: written-down cases, and random ones against a bitmap. Argument: the seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
    uint64_t number; /* that is added */
    int rc;
    uint64_t floor;
    uint32_t count;
};

static const struct step steps[] = {
    {0, -EEXIST, 1, 0}, /* numbers start at 1: 0 has always ended */
    {3, 0, 1, 1},
    {3, -EEXIST, 1, 1},
    {5, 0, 1, 2},
    {4, 0, 1, 1}, /* joins both */
    {4, -EEXIST, 1, 1},
    {2, 0, 1, 1},
    {1, 0, 6, 0}, /* the floor swallows the interval */
    {1, -EEXIST, 6, 0},
    {10, 0, 6, 1},
    {7, 0, 6, 2},
    {6, 0, 8, 1}, /* and leaves the next one */
    {20, 0, 8, 2},
    {8, 0, 9, 2},
    {9, 0, 11, 1}, /* touches */
    {UINT64_MAX, -EEXIST, 11, 1},
    {UINT64_MAX - 1, 0, 11, 2},
};

static void written_down_steps(void **state)
{
    struct wf_finished set;

    (void)state;
    wf_finished_init(&set);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        assert_int_equal(wf_finished_add(&set, steps[i].number), steps[i].rc);
        check_invariant(&set);
        assert_true(set.floor == steps[i].floor);
        assert_int_equal(set.count, steps[i].count);
        assert_true(wf_finished_has(&set, steps[i].number));
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
    uint64_t reach = 1 + draw(random) % 600;
    struct wf_finished set;

    wf_finished_init(&set);
    for (int i = 0; i < 1200; i++) {
        uint64_t number = set.floor + draw(random) % (reach + 4) - draw(random) % 3;
        if (number == 0 || number >= NUMBERS)
            continue;
        assert_int_equal(wf_finished_add(&set, number), map[number] ? -EEXIST : 0);
        map[number] = 1;
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
