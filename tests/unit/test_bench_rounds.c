/* How the pass that verifies goes on and ends, the same at both nodes. The other node is played by the test. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/words/random.h"
#include "bench/measure/rounds.h"

#define MS 1000000ll

/* --- one phase: iterations, window, share and timed pass in ms; what is next --- */

static struct bench_rounds rounds_of(uint32_t iters, uint32_t window, int64_t share_ns, uint64_t timed_ns)
{
    struct bench_budget budget = {.left_ns = share_ns, .phases = 1};
    struct bench_rounds rounds;

    bench_rounds_init(&rounds, &budget, iters, window, timed_ns);
    return rounds;
}

static void the_first_round_goes_by_the_timed_pass(void **state)
{
    static const struct {
        uint32_t iters, window;
        int64_t share_ns;
        uint64_t timed_ns;
        uint32_t count;
    } rows[] = {
        {100, 1, 2000 * MS, 100 * MS, 100},           /* all at once */
        {100, 1, 1600 * MS, 100 * MS, 100},           /* just so: at four times the time, in a quarter of the share */
        {100, 1, 160 * MS, 100 * MS, 10},             /* a part */
        {100, 16, 160 * MS, 100 * MS, 16},            /* but a window */
        {100, 16, 0, 100 * MS, 16},                   /* also without any time */
        {8, 16, 0, 100 * MS, 8},                      /* there is no more */
        {1000000000, 65536, 2000 * MS, 0, 125000000}, /* what took no time is taken for something */
        {1, 1, 0, UINT64_MAX, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bench_rounds rounds = rounds_of(rows[i].iters, rows[i].window, rows[i].share_ns, rows[i].timed_ns);
        assert_int_equal(bench_rounds_next(&rounds), rows[i].count);
    }
}

static void the_next_goes_by_the_one_before(void **state)
{
    struct bench_rounds rounds = rounds_of(100, 1, 100 * MS, 62 * MS + MS / 2);

    (void)state;
    assert_int_equal(bench_rounds_next(&rounds), 10);
    bench_rounds_took(&rounds, 10, 20 * MS);
    assert_int_equal(bench_rounds_next(&rounds), 40); /* of 2 ms, in the 80 ms that are left */
    bench_rounds_took(&rounds, 40, 60 * MS);
    assert_int_equal(bench_rounds_next(&rounds), 13); /* of 1.5 ms in 20 */
    bench_rounds_took(&rounds, 13, 20 * MS);
    assert_int_equal(bench_rounds_next(&rounds), 0);
    assert_int_equal(rounds.done, 63);
}

static void it_ends_when_all_is_verified(void **state)
{
    struct bench_rounds rounds = rounds_of(100, 1, 100 * MS, 250 * MS);

    (void)state;
    bench_rounds_took(&rounds, 10, 1 * MS);
    assert_int_equal(bench_rounds_next(&rounds), 90);
    bench_rounds_took(&rounds, 90, 9 * MS);
    assert_int_equal(bench_rounds_next(&rounds), 0);
}

static void it_ends_when_the_time_is_over(void **state)
{
    struct bench_rounds rounds = rounds_of(100, 4, 10 * MS, 10000 * MS);

    (void)state;
    assert_int_equal(bench_rounds_next(&rounds), 4);
    bench_rounds_took(&rounds, 4, 10 * MS);
    assert_int_equal(bench_rounds_next(&rounds), 0);
    rounds = rounds_of(100, 4, 10 * MS, 10000 * MS);
    bench_rounds_took(&rounds, 4, UINT64_MAX);
    assert_int_equal(bench_rounds_next(&rounds), 0);
    rounds = rounds_of(100, 4, 10 * MS, 10000 * MS);
    bench_rounds_took(&rounds, 4, 8 * MS + 1); /* less is left than one more takes */
    assert_int_equal(bench_rounds_next(&rounds), 0);
}

/* Whatever the times are. */
static void at_least_a_window_and_never_more_than_all(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        uint32_t iters = 1 + (uint32_t)((random = bench_random_mix(random)) % 300);
        uint32_t window = 1 + (uint32_t)((random = bench_random_mix(random)) % 40), count;
        int64_t share = (int64_t)((random = bench_random_mix(random)) % (uint64_t)(50 * MS));
        struct bench_rounds rounds = rounds_of(iters, window, share, (random = bench_random_mix(random)) % (20 * MS));
        for (int round = 0; (count = bench_rounds_next(&rounds)) > 0; round++) {
            assert_true(round < (int)iters && count <= iters - rounds.done);
            bench_rounds_took(&rounds, count, (random = bench_random_mix(random)) % (uint64_t)(20 * MS));
        }
        assert_true(rounds.done <= iters && rounds.done >= (window < iters ? window : iters));
        assert_true(rounds.done == iters || rounds.spent_ns + rounds.each_ns > share);
    }
}

/* --- all of it --- */

static struct {
    uint64_t their_ns;
    int fails_at;      /* round that fails; 0: none */
    int swap_fails_at; /* the same of what the nodes tell each other */
    int rounds, swaps;
    uint32_t next;
} play;

int bench_control_swap(struct bench_control *control, const struct bench_news *mine, struct bench_news *theirs,
                       struct wf_status *status)
{
    (void)control;
    (void)mine;
    if (++play.swaps == play.swap_fails_at)
        return wf_fail(status, -ECONNABORTED, "gave up");
    *theirs = (struct bench_news){.elapsed_ns = play.their_ns};
    return 0;
}

static int play_round(void *context, uint32_t first, uint32_t count, struct wf_status *status)
{
    assert_ptr_equal(context, &play);
    assert_int_equal(first, play.next); /* in order, and none left out */
    play.next += count;
    return ++play.rounds == play.fails_at ? wf_fail(status, -EINTR, "interrupted") : 0;
}

/* Runs a phase of 100 iterations of a set. */
static int run(struct bench_budget *budget, uint64_t their_ns, struct wf_status *status)
{
    struct bench_rounds rounds;

    play.their_ns = their_ns;
    play.rounds = play.swaps = 0;
    play.next = 0;
    bench_rounds_init(&rounds, budget, 100, 10, 1000 * 1000 * MS);
    return bench_rounds_run(&rounds, budget, NULL, play_round, &play, status);
}

static void the_slower_node_decides(void **state)
{
    struct bench_budget budget = {.left_ns = 1000 * 1000 * MS, .phases = 1};
    struct wf_status status;

    (void)state;
    memset(&play, 0, sizeof(play));
    /* After a window the other node says that all of the time has gone. */
    assert_int_equal(run(&budget, 1000ull * 1000 * MS, &status), 0);
    assert_int_equal(play.next, 10);
    assert_int_equal(play.swaps, 1);
    assert_int_equal(budget.left_ns, 0);
    /* Each round takes a part of it: 10, 40, and the rest. */
    budget = (struct bench_budget){.left_ns = 1000 * 1000 * MS, .phases = 1};
    assert_int_equal(run(&budget, 200ull * 1000 * MS, &status), 0);
    assert_int_equal(play.next, 100);
    assert_int_equal(play.swaps, 3);
}

static void phases_share_the_time(void **state)
{
    struct bench_budget budget = {.left_ns = 4000 * 1000 * MS, .phases = 4};
    struct wf_status status;

    (void)state;
    memset(&play, 0, sizeof(play));
    assert_int_equal(run(&budget, 500ull * 1000 * MS, &status), 0);
    assert_int_equal(play.next, 20);
    assert_int_equal(budget.left_ns, 3000 * 1000 * MS);
    assert_int_equal(run(&budget, 200ull * 1000 * MS, &status), 0);
    assert_int_equal(play.next, 100);
    assert_int_equal(budget.phases, 2);
    assert_int_equal(budget.left_ns, 2400 * 1000 * MS); /* what it did not need is the others' */
    assert_int_equal(run(&budget, 9000ull * 1000 * MS, &status), 0);
    assert_int_equal(budget.left_ns, 0);
    assert_int_equal(run(&budget, 1, &status), 0);
    assert_int_equal(play.next, 10); /* a window, without any time */
    assert_int_equal(budget.phases, 0);
}

static void a_failure_ends_it_at_once(void **state)
{
    struct bench_budget budget = {.left_ns = 1000 * 1000 * MS, .phases = 1};
    struct wf_status status;

    (void)state;
    memset(&play, 0, sizeof(play));
    play.fails_at = 2;
    assert_int_equal(run(&budget, 200ull * 1000 * MS, &status), -EINTR);
    assert_int_equal(play.swaps, 1); /* that node says nothing more */
    assert_int_equal(play.rounds, 2);
    memset(&play, 0, sizeof(play));
    play.swap_fails_at = 1;
    assert_int_equal(run(&budget, 200ull * 1000 * MS, &status), -ECONNABORTED);
    assert_int_equal(play.rounds, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_round_goes_by_the_timed_pass),
        cmocka_unit_test(the_next_goes_by_the_one_before),
        cmocka_unit_test(it_ends_when_all_is_verified),
        cmocka_unit_test(it_ends_when_the_time_is_over),
        cmocka_unit_test(at_least_a_window_and_never_more_than_all),
        cmocka_unit_test(the_slower_node_decides),
        cmocka_unit_test(phases_share_the_time),
        cmocka_unit_test(a_failure_ends_it_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
