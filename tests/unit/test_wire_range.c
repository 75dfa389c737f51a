/* Ranges: written-down cases, and random ones against a map with one byte per byte. Argument: the seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/range.h"

#define MAP_BYTES 640

static uint64_t seed = 20240611;

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static void check_invariant(const struct wf_range_set *set)
{
    uint64_t covered = 0;

    assert_true(set->count <= set->capacity);
    for (uint32_t i = 0; i < set->count; i++) {
        assert_true(set->ranges[i].start < set->ranges[i].end);
        if (i > 0)
            assert_true(set->ranges[i - 1].end < set->ranges[i].start);
        covered += set->ranges[i].end - set->ranges[i].start;
    }
    assert_true(covered == set->covered);
}

struct step {
    uint64_t start, end;
    int rc;
    uint32_t count;
    uint64_t covered, prefix; /* after the step; prefix: the longest present */
};

static void run_steps(const struct step *steps, size_t count)
{
    struct wf_range_set set;

    wf_range_init(&set);
    for (size_t i = 0; i < count; i++) {
        const struct step *s = &steps[i];
        assert_int_equal(wf_range_add(&set, s->start, s->end), s->rc);
        check_invariant(&set);
        assert_int_equal(set.count, s->count);
        assert_true(set.covered == s->covered);
        assert_true(wf_range_prefix(&set, s->prefix));
        assert_true(s->prefix == UINT64_MAX || !wf_range_prefix(&set, s->prefix + 1));
    }
}

static void steps_of_a_message(void **state)
{
    static const struct step steps[] = {
        {0, 0, 0, 0, 0, 0}, /* the empty message */
        {9, 9, 0, 0, 0, 0},
        {9, 8, -EPROTO, 0, 0, 0}, /* no range at all */
        {100, 200, 0, 1, 100, 0},
        {100, 200, -EEXIST, 1, 100, 0},
        {120, 180, -EEXIST, 1, 100, 0},
        {100, 101, -EEXIST, 1, 100, 0},
        {199, 200, -EEXIST, 1, 100, 0},
        {99, 101, -EPROTO, 1, 100, 0},
        {199, 201, -EPROTO, 1, 100, 0},
        {50, 250, -EPROTO, 1, 100, 0},
        {300, 400, 0, 2, 200, 0},
        {150, 350, -EPROTO, 2, 200, 0},
        {200, 301, -EPROTO, 2, 200, 0},
        {199, 300, -EPROTO, 2, 200, 0},
        {150, 150, 0, 2, 200, 0},   /* empty, within */
        {0, 100, 0, 2, 300, 200},   /* joins the next */
        {400, 500, 0, 2, 400, 200}, /* joins the one before */
        {200, 300, 0, 1, 500, 500}, /* joins both */
        {0, 500, -EEXIST, 1, 500, 500},
        {0, 501, -EPROTO, 1, 500, 500},
    };

    (void)state;
    run_steps(steps, sizeof(steps) / sizeof(steps[0]));
}

static void steps_at_the_end_of_64_bits(void **state)
{
    static const struct step steps[] = {
        {UINT64_MAX - 1, UINT64_MAX, 0, 1, 1, 0},
        {UINT64_MAX - 2, UINT64_MAX, -EPROTO, 1, 1, 0},
        {UINT64_MAX, 0, -EPROTO, 1, 1, 0},
        {0, UINT64_MAX, -EPROTO, 1, 1, 0},
        {0, UINT64_MAX - 1, 0, 1, UINT64_MAX, UINT64_MAX},
        {0, UINT64_MAX, -EEXIST, 1, UINT64_MAX, UINT64_MAX},
    };

    (void)state;
    run_steps(steps, sizeof(steps) / sizeof(steps[0]));
}

/* Full: one more entry is refused and changes nothing, while what joins an entry is still taken. */
static void fill_up(struct wf_range_set *set)
{
    for (uint64_t i = set->count; i < set->capacity; i++)
        assert_int_equal(wf_range_add(set, 10 * i + 10, 10 * i + 15), 0);
    struct wf_range_set before = *set;
    assert_int_equal(wf_range_add(set, 1, 2), -ENOSPC);
    assert_int_equal(wf_range_add(set, 17, 18), -ENOSPC);
    assert_int_equal(wf_range_add(set, 1000000, 1000001), -ENOSPC);
    assert_int_equal(set->count, before.count);
    assert_true(set->covered == before.covered);
    check_invariant(set);
    assert_int_equal(wf_range_test(set, 17, 18), 0);
    assert_int_equal(wf_range_add(set, 12, 13), -EEXIST);
    assert_int_equal(wf_range_add(set, 8, 12), -EPROTO);
}

static void full_and_lent(void **state)
{
    static struct wf_range array[WF_RANGE_MAX];
    struct wf_range_set set;

    (void)state;
    wf_range_init(&set);
    assert_false(wf_range_borrowed(&set));
    fill_up(&set);
    assert_int_equal(set.count, WF_RANGE_INLINE);
    wf_range_lend(&set, array, WF_RANGE_MAX);
    assert_true(wf_range_borrowed(&set));
    assert_ptr_equal(set.ranges, array);
    assert_int_equal(set.count, WF_RANGE_INLINE);
    check_invariant(&set);
    fill_up(&set);
    assert_int_equal(set.count, WF_RANGE_MAX);
    for (uint64_t i = 0; i + 1 < WF_RANGE_MAX; i++)
        assert_int_equal(wf_range_add(&set, 10 * i + 15, 10 * i + 20), 0);
    assert_int_equal(set.count, 1);
    assert_int_equal(wf_range_add(&set, 0, 10), 0);
    assert_true(wf_range_prefix(&set, 10 * WF_RANGE_MAX + 5));
    check_invariant(&set);
}

static void lent_while_empty(void **state)
{
    struct wf_range array[16];
    struct wf_range_set set;

    (void)state;
    wf_range_init(&set);
    wf_range_lend(&set, array, 16);
    assert_true(wf_range_prefix(&set, 0));
    assert_false(wf_range_prefix(&set, 1));
    assert_int_equal(wf_range_add(&set, 3, 4), 0);
    assert_int_equal(wf_range_test(&set, 3, 4), 1);
}

/* ------------------------------------------------------------------------------------------- random */

/* 0 absent, 1 present, -EPROTO in part, as the map sees it. */
static int map_test(const uint8_t *map, uint64_t start, uint64_t end)
{
    uint64_t present = 0;

    for (uint64_t i = start; i < end; i++)
        present += map[i];
    if (present == 0)
        return 0;
    return present == end - start ? 1 : -EPROTO;
}

static uint32_t map_runs(const uint8_t *map)
{
    uint32_t runs = 0;

    for (size_t i = 0; i < MAP_BYTES; i++)
        runs += map[i] && (i == 0 || !map[i - 1]);
    return runs;
}

static int map_add(uint8_t *map, uint32_t capacity, uint64_t start, uint64_t end)
{
    int present = map_test(map, start, end);

    if (start == end)
        return 0;
    if (present)
        return present > 0 ? -EEXIST : present;
    memset(map + start, 1, end - start);
    if (map_runs(map) <= capacity)
        return 0;
    memset(map + start, 0, end - start);
    return -ENOSPC;
}

static void compare(const struct wf_range_set *set, const uint8_t *map, uint64_t *random)
{
    uint64_t covered = 0, prefix = 0;

    check_invariant(set);
    for (size_t i = 0; i < MAP_BYTES; i++)
        covered += map[i];
    while (prefix < MAP_BYTES && map[prefix])
        prefix++;
    assert_true(set->covered == covered);
    assert_int_equal(set->count, map_runs(map));
    assert_true(wf_range_prefix(set, prefix));
    assert_false(wf_range_prefix(set, prefix + 1));
    for (int i = 0; i < 8; i++) {
        uint64_t start = draw(random) % MAP_BYTES, end = start + draw(random) % (MAP_BYTES - start + 1);
        assert_int_equal(wf_range_test(set, start, end), map_test(map, start, end));
    }
}

static void one_random_message(uint64_t *random)
{
    struct wf_range array[WF_RANGE_MAX];
    uint8_t map[MAP_BYTES] = {0};
    struct wf_range_set set;
    uint64_t reach = 1 + draw(random) % 40, lend = draw(random) % 60, steps = 20 + draw(random) % 400;

    wf_range_init(&set);
    for (uint64_t i = 0; i < steps; i++) {
        if (i == lend)
            wf_range_lend(&set, array, WF_RANGE_INLINE + (uint32_t)(draw(random) % (WF_RANGE_MAX - WF_RANGE_INLINE)));
        uint64_t start = draw(random) % MAP_BYTES, end = start + draw(random) % (reach + 1);
        if (end > MAP_BYTES)
            end = MAP_BYTES;
        int expected = map_add(map, set.capacity, start, end);
        assert_int_equal(wf_range_add(&set, start, end), expected);
        compare(&set, map, random);
    }
}

static void random_against_a_map(void **state)
{
    uint64_t random = seed;

    (void)state;
    print_message("  seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 300; i++)
        one_random_message(&random);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_a_message),   cmocka_unit_test(steps_at_the_end_of_64_bits),
        cmocka_unit_test(full_and_lent),        cmocka_unit_test(lent_while_empty),
        cmocka_unit_test(random_against_a_map),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
