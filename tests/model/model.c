/* model_test [--schedules N] [--first SEED] [--seed SEED] [--rows]: runs schedules; a failure prints the seed that
 * repeats it. --rows prints how often each event of docs/protocol.md's tables of states has happened. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define PATIENCE 300000 /* turns without a payload byte that arrives, or a request that ends: a deadlock */

static uint64_t running;

void model_fail(const char *file, int line, const char *what, long long value)
{
    fprintf(stderr, "model: seed %llu failed: %s (value %lld) at %s:%d; repeat it with --seed %llu\n",
            (unsigned long long)running, what, value, file, line, (unsigned long long)running);
    abort();
}

/* Changes with every payload that has been read. */
static uint64_t progress_of(const struct model_world *world)
{
    return atomic_load(&world->nodes[0].session->moved) + atomic_load(&world->nodes[1].session->moved);
}

static uint64_t run_schedule(uint64_t seed)
{
    static struct model_world world; /* large */
    running = seed;
    model_world_open(&world, seed);
    uint64_t steps = 20 + model_pick(&world, 300);
    for (uint64_t step = 0; step < steps; step++) {
        if (model_pick(&world, 100) < world.pressure)
            model_act(&world);
        else
            model_drive(&world);
        if (model_pick(&world, 4) == 0)
            model_collect(&world);
    }
    uint64_t limit = world.turns + PATIENCE, progress = 0;
    while (!model_drain(&world)) {
        for (int turn = 0; turn < 20; turn++)
            model_drive(&world);
        model_collect(&world);
        if (progress_of(&world) != progress)
            limit = world.turns + PATIENCE;
        progress = progress_of(&world);
        MODEL_CHECK(world.turns < limit, world.turns);
    }
    model_world_close(&world);
    model_judge(&world);
    model_free(&world);
    return world.turns;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 0);
}

int main(int argc, char **argv)
{
    uint64_t schedules = 1000, first = 1, turns = 0;
    bool rows = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--schedules") == 0)
            schedules = number(value);
        else if (strcmp(argv[i], "--first") == 0)
            first = number(value);
        else if (strcmp(argv[i], "--seed") == 0)
            first = number(value), schedules = 1;
        else if (strcmp(argv[i], "--rows") == 0)
            rows = true;
    }
    for (uint64_t i = 0; i < schedules; i++)
        turns += run_schedule(first + i);
    printf("%llu schedules passed (seeds %llu to %llu), %llu turns\n", (unsigned long long)schedules,
           (unsigned long long)first, (unsigned long long)(first + schedules - 1), (unsigned long long)turns);
    if (rows)
        model_rows_print();
    return 0;
}
