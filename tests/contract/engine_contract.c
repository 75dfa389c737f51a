/*
 * The contract of io/engine.h, clause by clause, on each implementation: epoll and io_uring over loopback, the
 * simulator with many seeds, and around each of them the engines that inject faults and that encrypt. `engine_contract
 * [SEED]` runs the simulator with that seed alone.
 */
#include "engine_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SEEDS SIMULATED_SEEDS(24)
#define SEEDS_WITHIN SIMULATED_SEEDS(8) /* for the simulator within an engine that injects faults */

struct contract_case {
    const char *name;
    void (*run)(const struct implementation *of);
    bool once; /* has no chance in it: one seed tells as much as many */
};

static const struct contract_case cases[] = {
    {"connects over IPv4", connects_over_ipv4, false},
    {"connects over IPv6", connects_over_ipv6, false},
    {"listens on everything", listens_on_everything, false},
    {"dials from a bound address", dials_from_a_bound_address, false},
    {"refuses a missing interface", refuses_a_missing_interface, true},
    {"refuses an address in use", refuses_an_address_in_use, true},
    {"reports a refused connect", reports_a_refused_connect, false},
    {"receives what is there", receives_what_is_there, false},
    {"ends a stream with zero", ends_a_stream_with_zero, false},
    {"finds the end behind bytes seen earlier", finds_the_end_behind_bytes_seen_earlier, false},
    {"keeps partial sends inside", keeps_partial_sends_inside, false},
    {"tells when a send began", tells_when_a_send_began, false},
    {"takes odd vectors", takes_odd_vectors, false},
    {"finishes at once what has no bytes", finishes_at_once_what_has_no_bytes, false},
    {"reports a reset", reports_a_reset, false},
    {"starts anew with a reused descriptor", starts_anew_with_a_reused_descriptor, false},
    {"tells what is acknowledged", tells_what_is_acknowledged, false},
    {"tells what is pending", tells_what_is_pending, false},
    {"cancels what waits", cancels_what_waits, false},
    {"cancels connects", cancels_connects, false},
    {"cancels a send half way", cancels_a_send_half_way, false},
    {"serves hundreds at once", serves_hundreds_at_once, true},
    {"holds a send while its memory is lent", holds_a_send_while_its_memory_is_lent, true},
    {"stops lending what is copied", stops_lending_what_is_copied, true},
    {"loses no byte to cancel", loses_no_byte_to_cancel, false},
    {"serves small beside bulk", serves_small_beside_bulk, false},
    {"hears news while busy", hears_news_while_busy, false},
    {"returns no more than asked", returns_no_more_than_asked, false},
    {"carries random traffic", carries_random_traffic, false},
    {"shares a descriptor between engines", shares_a_descriptor_between_engines, false},
    {"receives ordinary bytes with control", receives_ordinary_bytes_with_control, true},
    {"refuses an unknown binding", refuses_an_unknown_binding, true},
    {"gives back what it never had", gives_back_what_it_never_had, true},
    {"wakes before poll", wakes_before_poll, true},
    {"wakes from a thread", wakes_from_a_thread, true},
    {"tells of work while it rests", tells_of_work_while_it_rests, true},
    {"gathers while it sleeps", gathers_while_it_sleeps, true},
    {"tells of a wake from a thread", tells_of_a_wake_from_a_thread, true},
    {"does not wait with work at hand", does_not_wait_with_work_at_hand, true},
    {"keeps to its timeout", keeps_to_its_timeout, true},
    {"shrugs off signals", shrugs_off_signals, true},
    {"outlives the thread that posted", outlives_the_thread_that_posted, true},
    {"serves whoever drives", serves_whoever_drives, true},
    {"catches callers that cheat", catches_callers_that_cheat, true},
};

enum { CASES = sizeof(cases) / sizeof(*cases) };

static const struct implementation implementations[] = {
    {.name = "epoll", .ops = &wf_engine_epoll, .seed = 1},
    {.name = "epoll reading ahead", .ops = &wf_engine_epoll, .read_ahead = WF_READ_AHEAD_ON, .seed = 1},
    {.name = "uring", .ops = &wf_engine_uring, .seed = 1},
    {.name = "uring pinned", .ops = &wf_engine_uring, .pinned = true, .seed = 1},
    {.name = "uring zero-copy", .ops = &wf_engine_uring, .zero_copy = 4096, .seed = 1},
    {.name = "sim", .ops = &wf_engine_sim, .simulated = true, .seed = 1},
    {.name = "fault around epoll", .ops = &wf_engine_epoll, .seed = 1, .fault = "seed=1"},
    {.name = "fault around uring", .ops = &wf_engine_uring, .seed = 1, .fault = "seed=1"},
    {.name = "fault around uring zero-copy", .ops = &wf_engine_uring, .zero_copy = 4096, .seed = 1, .fault = "seed=1"},
    {.name = "fault around sim", .ops = &wf_engine_sim, .simulated = true, .seed = 1, .fault = "seed=1"},
    {.name = "short epoll", .ops = &wf_engine_epoll, .seed = 1, .fault = "short=1", .shortens = true},
    {.name = "short uring", .ops = &wf_engine_uring, .seed = 1, .fault = "short=1", .shortens = true},
    {.name = "short uring zero-copy",
     .ops = &wf_engine_uring,
     .zero_copy = 4096,
     .seed = 1,
     .fault = "short=1",
     .shortens = true},
    {.name = "short sim", .ops = &wf_engine_sim, .simulated = true, .seed = 1, .fault = "short=1", .shortens = true},
    {.name = "seal around epoll", .ops = &wf_engine_epoll, .seed = 1, .keyed = true},
    {.name = "seal around uring", .ops = &wf_engine_uring, .seed = 1, .keyed = true},
    {.name = "seal around uring pinned", .ops = &wf_engine_uring, .pinned = true, .seed = 1, .keyed = true},
    {.name = "seal around sim", .ops = &wf_engine_sim, .simulated = true, .seed = 1, .keyed = true},
    {.name = "seal around short epoll",
     .ops = &wf_engine_epoll,
     .seed = 1,
     .fault = "short=1",
     .shortens = true,
     .keyed = true},
    {.name = "seal around short uring",
     .ops = &wf_engine_uring,
     .seed = 1,
     .fault = "short=1",
     .shortens = true,
     .keyed = true},
    {.name = "seal around short sim",
     .ops = &wf_engine_sim,
     .simulated = true,
     .seed = 1,
     .fault = "short=1",
     .shortens = true,
     .keyed = true},
};

enum { IMPLEMENTATIONS = sizeof(implementations) / sizeof(*implementations) };

struct run {
    const struct contract_case *what;
    struct implementation of;
    char name[96];
};

static uint64_t only_seed; /* 0: all */

static void run_case(void **state)
{
    const struct run *run = *state;
    struct implementation of = run->of;
    struct wf_status status = {0};
    int able = of.simulated ? 0 : of.ops->probe(NULL, &status);
    if (!able && of.zero_copy)
        able = of.ops->zero_copy(NULL, &status);
    if (able == -EOPNOTSUPP || (able == -ENOMEM && of.zero_copy)) {
        print_message("skipped: %s\n", status.text);
        skip();
    }
#ifdef __SANITIZE_THREAD__
    if (of.simulated)
        skip(); /* one thread: nothing that this sanitizer could see */
#endif
    uint64_t last = !of.simulated || run->what->once ? 1 : of.fault || of.keyed ? SEEDS_WITHIN : SEEDS;
    if (only_seed)
        of.seed = last = only_seed;
    for (; of.seed <= last; of.seed++)
        run->what->run(&of);
}

static void is_fit_for_use(void **state)
{
    (void)state;
    struct wf_status status = {0};
    if (wf_engine_epoll.probe(NULL, &status))
        fail_msg("%s", status.text);
    assert_true(wf_engine_sim.probe(NULL, &status) < 0); /* without a network there is none */
    assert_true(status.text[0]);
}

int main(int argc, char **argv)
{
    static struct run runs[IMPLEMENTATIONS * CASES];
    static struct CMUnitTest tests[IMPLEMENTATIONS * CASES + 1];
    only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    int count = 0;
    for (int i = 0; i < IMPLEMENTATIONS; i++) {
        for (int k = 0; k < CASES; k++, count++) {
            struct run *run = &runs[count];
            *run = (struct run){.what = &cases[k], .of = implementations[i]};
            snprintf(run->name, sizeof(run->name), "%s %s", implementations[i].name, cases[k].name);
            tests[count] = (struct CMUnitTest){.name = run->name, .test_func = run_case, .initial_state = run};
        }
    }
    tests[count] = (struct CMUnitTest)cmocka_unit_test(is_fit_for_use);
    return cmocka_run_group_tests_name("engine contract", tests, NULL, NULL);
}
