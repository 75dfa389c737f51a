/*
 * The contract of mem/memory.h, clause by clause, on each implementation: CUDA on the emulated driver, and simulated
 * memory with many seeds. `memory_contract SEED` runs that seed alone, `memory_contract gpu` the machine's own GPUs.
 */
#include "memory_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct contract_case {
    const char *name;
    void (*run)(struct memory_world *world);
} cases[] = {
    {"opens and describes", opens_and_describes},
    {"copies all sizes", copies_all_sizes},
    {"copies many pieces", copies_many_pieces},
    {"copies in several calls", copies_in_several_calls},
    {"copies between devices", copies_between_devices},
    {"copies many at once", copies_many_at_once},
    {"copies by many threads", copies_by_many_threads},
    {"keeps the thread's state", keeps_the_threads_state},
    {"waits for no device", waits_for_no_device},
    {"copies now", copies_now},
    {"locates", locates},
    {"refuses a range over two", refuses_a_range_over_two},
    {"tells allocations apart", tells_allocations_apart},
    {"runs out of memory", runs_out_of_memory},
    {"pins", pins},
    {"exports or says why", exports_or_says_why},
    {"marks what a stream has", marks_what_a_stream_has},
    {"holds a stream", holds_a_stream},
    {"survives a copy that fails", survives_a_copy_that_fails},
    {"survives a piece that is refused", survives_a_piece_that_is_refused},
    {"loses a device", loses_a_device},
    {"closes after a loss", closes_after_a_loss},
};

enum { CASES = sizeof(cases) / sizeof(*cases) };

static const struct memory_kind *const kinds[] = {&memory_emulated, &memory_simulated};

enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

struct run {
    const struct contract_case *what;
    const struct memory_kind *kind;
    char name[96];
};

static uint64_t only_seed; /* 0: all */

static void run_case(void **state)
{
    const struct run *run = *state;
    uint64_t last = only_seed ? only_seed : (uint64_t)run->kind->seeds;

    for (uint64_t seed = only_seed ? only_seed : 1; seed <= last; seed++) {
        struct memory_world world;
        memory_world_open(&world, run->kind, seed);
        run->what->run(&world);
        memory_world_close(&world);
    }
}

/* Runs all cases on each of `count` kinds. */
static int run_all(const struct memory_kind *const *which, int count)
{
    static struct run runs[KINDS * CASES];
    static struct CMUnitTest tests[KINDS * CASES];

    for (int i = 0; i < count * CASES; i++) {
        struct run *run = &runs[i];
        *run = (struct run){.what = &cases[i % CASES], .kind = which[i / CASES]};
        snprintf(run->name, sizeof(run->name), "%s %s", run->kind->name, run->what->name);
        tests[i] = (struct CMUnitTest){.name = run->name, .test_func = run_case, .initial_state = run};
    }
    return _cmocka_run_group_tests("memory contract", tests, (size_t)(count * CASES), NULL, NULL);
}

int main(int argc, char **argv)
{
    static const struct memory_kind *const gpu = &memory_gpu;
    struct wf_status status = {0};

    if (argc > 1 && strcmp(argv[1], "gpu") == 0) {
        if (gpu->probe(&status) == 0)
            return run_all(&gpu, 1);
        print_message("skipped: no GPU: %s\n", status.text);
        return 77;
    }
    only_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    return run_all(kinds, KINDS);
}
