/*
 * The rule that names a late rank, on barriers that are made up: ranks with clocks that differ by hours, a tree of
 * links with noise and lost packets, processors that are taken away. An hour of a healthy group, for many seeds, names
 * nobody; a delay is named each time, with its length.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/straggler/asked.h"
#include "bench/straggler/rule.h"
#include "noise.h"

#define RANKS_MOST 16
#define HOUR 36000 /* barriers, ten a second */
#define SEEDS 5

/* A group and its network. All times are true ones, in ms; what a rank tells is of its own clock. */
struct group {
    uint32_t ranks;
    uint64_t random;
    double link_ms;           /* one way, at least */
    double lost;              /* share of messages that come 200 ms late */
    double jitter_ms;         /* how far ranks enter apart, median */
    double starved;           /* share of barriers in which a rank is starved at some place */
    double clock[RANKS_MOST]; /* offset of its clock */
    struct straggler_told told[RANKS_MOST];
    struct straggler_judged judged[RANKS_MOST];
    struct straggler_rule rule;
};

static void make(struct group *group, uint32_t ranks, uint64_t seed)
{
    memset(group, 0, sizeof *group);
    group->ranks = ranks;
    group->random = seed;
    group->link_ms = 0.03;
    group->lost = 1e-4;
    group->jitter_ms = 0.05;
    group->rule.threshold_ms = 10;
    for (uint32_t i = 0; i < ranks; i++)
        group->clock[i] = 3.6e6 * normal(&group->random);
}

static double link_ms(struct group *group)
{
    return group->link_ms * (1 + fabs(noise(&group->random, true))) + (share(&group->random) < group->lost ? 200 : 0);
}

/* Up to 40 ms, of a rank that could run and was not let. */
static double starved_ms(struct group *group)
{
    return share(&group->random) < group->starved ? 40 * share(&group->random) : 0;
}

/* When the last of those at and below a rank has told it so. */
static double gathered(struct group *group, const double *entered, uint32_t rank)
{
    double at = entered[rank];

    for (uint32_t child = 2 * rank + 1; child <= 2 * rank + 2 && child < group->ranks; child++)
        at = fmax(at, gathered(group, entered, child) + link_ms(group));
    return at;
}

/* One barrier; `delayed` enters `delay_ms` late (-1: nobody). */
static void barrier(struct group *group, int delayed, double delay_ms)
{
    double entered[RANKS_MOST] = {0}, ended[RANKS_MOST];

    for (uint32_t i = 0; i < group->ranks; i++) {
        struct straggler_told *told = &group->told[i];
        *told = (struct straggler_told){.tell_ms = 0.1, .later_starved_ms = starved_ms(group)};
        told->tell_starved_ms = starved_ms(group);
        told->tell_ms += told->tell_starved_ms;
        told->delayed_ms = (int)i == delayed ? delay_ms : 0;
        entered[i] = told->later_starved_ms + told->tell_starved_ms + told->delayed_ms +
                     group->jitter_ms * exp(noise(&group->random, false));
    }
    ended[0] = gathered(group, entered, 0);
    for (uint32_t i = 1; i < group->ranks; i++)
        ended[i] = ended[(i - 1) / 2] + link_ms(group);
    for (uint32_t i = 0; i < group->ranks; i++) {
        double own_begin = entered[i] + group->clock[i];
        group->told[i].starved_ms = starved_ms(group);
        group->told[i].wait_ms = ended[i] + group->told[i].starved_ms + group->clock[i] - own_begin;
    }
    assert_int_equal(straggler_look(&group->rule, group->told, group->ranks, group->judged), 0);
}

static uint32_t named(const struct group *group)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < group->ranks; i++)
        count += group->judged[i].verdict == STRAGGLER_NAMED;
    return count;
}

static void hour_names_nobody(uint32_t ranks, double starved, double link)
{
    struct group group;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        make(&group, ranks, seed);
        group.starved = starved;
        group.link_ms = link;
        for (int i = 0; i < HOUR; i++) {
            barrier(&group, -1, 0);
            for (uint32_t rank = 0; rank < ranks; rank++)
                if (group.judged[rank].verdict == STRAGGLER_NAMED)
                    fail_msg("seed %llu, %u ranks, barrier %d: rank %u is named, late by %.1f ms",
                             (unsigned long long)seed, ranks, i, rank, group.judged[rank].late_ms);
        }
    }
}

/* --- a healthy group --- */

static void test_nobody_is_named_in_a_healthy_hour(void **state)
{
    (void)state;
    hour_names_nobody(4, 0, 0.03);
    hour_names_nobody(RANKS_MOST, 0, 0.03);
}

static void test_nobody_is_named_where_the_network_is_slow(void **state)
{
    (void)state;
    hour_names_nobody(8, 0, 2);
}

static void test_nobody_is_named_for_want_of_a_processor(void **state)
{
    (void)state;
    hour_names_nobody(4, 0.001, 0.03);
}

/* --- a late rank --- */

static void delays_are_named(struct group *group, const struct straggler_asked *asked)
{
    for (uint64_t number = 1; number <= asked->barriers; number++) {
        int delayed = straggler_delayed(asked, number, group->ranks);
        barrier(group, delayed, (double)asked->delay_ms);
        assert_int_equal(named(group), delayed >= 0);
        if (delayed < 0)
            continue;
        assert_int_equal(group->judged[delayed].verdict, STRAGGLER_NAMED);
        assert_true(fabs(group->judged[delayed].late_ms / (double)asked->delay_ms - 1) <= 0.1);
    }
}

static void test_each_delay_is_named_with_its_length(void **state)
{
    struct straggler_asked asked = {
        .barriers = HOUR, .delay_ms = 50, .every = 20, .delayed_rank = STRAGGLER_ANY, .seed = 1};
    struct group group;

    (void)state;
    for (; asked.seed <= SEEDS; asked.seed++) {
        make(&group, 3 + (uint32_t)asked.seed % (RANKS_MOST - 2), asked.seed);
        group.lost =
            0; /* what gets lost on the way to the delayed rank keeps it, too: nobody has waited for it alone */
        delays_are_named(&group, &asked);
    }
}

static void test_who_is_always_late_is_named_always(void **state)
{
    struct straggler_asked asked = {.barriers = 1000, .delay_ms = 20, .every = 1, .delayed_rank = 2};
    struct group group;

    (void)state;
    make(&group, 5, 7);
    group.lost = 0;
    delays_are_named(&group, &asked);
}

static void test_two_ranks(void **state)
{
    struct straggler_asked asked = {.barriers = 1000, .delay_ms = 50, .every = 2, .delayed_rank = STRAGGLER_ANY};
    struct group group;

    (void)state;
    make(&group, 2, 7);
    group.lost = 0;
    delays_are_named(&group, &asked);
}

/* --- single barriers --- */

static void look(struct straggler_judged *judged, uint32_t ranks, const struct straggler_told *told)
{
    struct straggler_rule rule = {.threshold_ms = 10};

    assert_int_equal(straggler_look(&rule, told, ranks, judged), 0);
}

/* Whatever the number of ranks, and whichever link loses a packet on the way down. */
static void test_who_hears_late_makes_nobody_late(void **state)
{
    struct straggler_told told[64];
    struct straggler_judged judged[64];

    (void)state;
    for (uint32_t ranks = 3; ranks <= 64; ranks++)
        for (uint32_t below = 1; below < ranks; below++) {
            memset(told, 0, sizeof told);
            for (uint32_t i = 0; i < ranks; i++) {
                uint32_t up = i;
                while (up > below)
                    up = (up - 1) / 2;
                told[i].wait_ms = up == below ? 200 : 0.1;
            }
            look(judged, ranks, told);
            for (uint32_t i = 0; i < ranks; i++)
                assert_int_equal(judged[i].verdict, STRAGGLER_IN_TIME);
        }
}

static void test_the_starved_bound_others_from_below(void **state)
{
    /* two of three others were not let, after the end or before it: the third one's wait is the right one */
    const struct straggler_told told[] = {{.wait_ms = 0.1, .delayed_ms = 50},
                                          {.wait_ms = 90, .starved_ms = 40},
                                          {.wait_ms = 50.2},
                                          {.wait_ms = 50.3, .starved_ms = 20}};
    struct straggler_judged judged[4];

    (void)state;
    look(judged, 4, told);
    assert_int_equal(judged[0].verdict, STRAGGLER_NAMED);
    assert_true(fabs(judged[0].late_ms - 50.1) < 0.3);
    for (int i = 1; i < 4; i++)
        assert_int_equal(judged[i].verdict, STRAGGLER_IN_TIME);
}

static void test_a_busy_processor_is_told_from_a_late_rank(void **state)
{
    struct straggler_told told[] = {{.wait_ms = 0.1, .later_starved_ms = 45}, {.wait_ms = 50}, {.wait_ms = 50}};
    struct straggler_judged judged[3];

    (void)state;
    look(judged, 3, told);
    assert_int_equal(judged[0].verdict, STRAGGLER_FOR_PROCESSOR);
    told[0] = (struct straggler_told){.wait_ms = 0.1, .later_starved_ms = 25};
    look(judged, 3, told);
    assert_int_equal(judged[0].verdict, STRAGGLER_NAMED);
    /* in the telling all were kept as long, which makes nobody enter later than others */
    told[0] = (struct straggler_told){.wait_ms = 0.1, .tell_ms = 60, .tell_starved_ms = 60};
    told[1].tell_ms = told[2].tell_ms = 60;
    look(judged, 3, told);
    assert_int_equal(judged[0].verdict, STRAGGLER_NAMED);
}

static void test_two_that_are_late_of_seven_are_both_named(void **state)
{
    struct straggler_told told[7];
    struct straggler_judged judged[7];

    (void)state;
    memset(told, 0, sizeof told);
    for (int i = 0; i < 7; i++)
        told[i].wait_ms = i == 1 ? 0.1 : i == 3 ? 30 : 60;
    look(judged, 7, told);
    for (int i = 0; i < 7; i++)
        assert_int_equal(judged[i].verdict, i == 1 || i == 3 ? STRAGGLER_NAMED : STRAGGLER_IN_TIME);
    assert_true(fabs(judged[1].late_ms - 59.9) < 1e-6);
    assert_true(fabs(judged[3].late_ms - 30) < 1e-6);
}

static void test_the_limit_follows_the_network(void **state)
{
    struct straggler_rule rule = {.threshold_ms = 10};
    struct straggler_told told[] = {{.wait_ms = 20}, {.wait_ms = 20}, {.wait_ms = 20}};
    struct straggler_judged judged[3];

    (void)state;
    assert_true(straggler_usual_ms(&rule) == 0);
    for (int i = 0; i < 2 * STRAGGLER_HISTORY; i++)
        assert_int_equal(straggler_look(&rule, told, 3, judged), 0);
    assert_true(straggler_usual_ms(&rule) == 20);
    told[0].wait_ms = told[1].wait_ms = 90; /* late by 70, and a barrier takes 20 */
    assert_int_equal(straggler_look(&rule, told, 3, judged), 0);
    assert_int_equal(judged[2].verdict, STRAGGLER_IN_TIME);
    told[0].wait_ms = told[1].wait_ms = 101;
    assert_int_equal(straggler_look(&rule, told, 3, judged), 0);
    assert_int_equal(judged[2].verdict, STRAGGLER_NAMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_is_named_in_a_healthy_hour),
        cmocka_unit_test(test_nobody_is_named_where_the_network_is_slow),
        cmocka_unit_test(test_nobody_is_named_for_want_of_a_processor),
        cmocka_unit_test(test_each_delay_is_named_with_its_length),
        cmocka_unit_test(test_who_is_always_late_is_named_always),
        cmocka_unit_test(test_two_ranks),
        cmocka_unit_test(test_who_hears_late_makes_nobody_late),
        cmocka_unit_test(test_the_starved_bound_others_from_below),
        cmocka_unit_test(test_a_busy_processor_is_told_from_a_late_rank),
        cmocka_unit_test(test_two_that_are_late_of_seven_are_both_named),
        cmocka_unit_test(test_the_limit_follows_the_network),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
