/* test_group_many.c: 64 processes, and what a group costs: time until it is made, and memory, by its size. */
#include "group_support.h"

#include <stdio.h>

enum { BARRIERS = 20 };

static int pass_many(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result = 0;
    for (int i = 0; i < BARRIERS && result == 0; i++)
        result = group_pass(process, group, GROUP_MS, err);
    int64_t began_ms = loop_now_ms();
    for (int i = 0; i < 10 * BARRIERS && result == 0; i++)
        result = weft_group_barrier(group, GROUP_MS, err);
    process->world->shared->value[process->slot] = (uint64_t)(loop_now_ms() - began_ms);
    return result;
}

static void many(uint32_t size)
{
    struct group_world world;
    int64_t slowest = 0, fastest = INT64_MAX;
    group_world_create(&world, size, pass_many);
    for (uint32_t i = 0; i < size; i++)
        world.process[i].timeout_ms = 6 * GROUP_MS;
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    for (uint32_t i = 0; i < size; i++) {
        slowest = world.shared->took_ms[i] > slowest ? world.shared->took_ms[i] : slowest;
        fastest = world.shared->took_ms[i] < fastest ? world.shared->took_ms[i] : fastest;
    }
    print_message(
        "%2u processes: made in %lld to %lld ms; rank 0 %llu KB at most, rank %u %llu KB; a barrier %llu us\n", size,
        (long long)fastest, (long long)slowest, (unsigned long long)world.shared->memory_kb[0], size - 1,
        (unsigned long long)world.shared->memory_kb[size - 1],
        (unsigned long long)world.shared->value[0] * 1000 / (10 * BARRIERS));
    group_world_destroy(&world);
}

static void two_to_sixty_four(void)
{
    for (uint32_t size = 2; size <= (uint32_t)LOOP_COUNT(64, 16); size *= 2)
        many(size);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {LOOP_CASE(two_to_sixty_four, 100)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
