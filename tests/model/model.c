/*
 * model_test [OPTION]...: runs schedules; a failure prints the seed that repeats it.
 *
 *   --schedules N   how many [1000]
 *   --first SEED    from this one on [1]
 *   --seed SEED     this one alone, and the library's warnings with it
 *   --faults        rails fail, connections break, bytes are damaged, processes stop
 *   --trace         prints each frame that is sent
 *   --rows          prints how often each event of docs/protocol.md's tables of states has happened
 *   --all-rows      fails where one never has
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"

static uint64_t running;
static const struct model_world *at_work;

void model_fail(const char *file, int line, const char *what, long long value)
{
    fprintf(stderr, "model: seed %llu failed: %s (value %lld) at %s:%d; repeat it with --seed %llu\n",
            (unsigned long long)running, what, value, file, line, (unsigned long long)running);
    model_print(at_work);
    abort();
}

struct options {
    uint64_t schedules, first;
    bool faults, trace, rows, all_rows, alone;
};

static uint64_t run_schedule(uint64_t seed, const struct options *options)
{
    static struct model_world world; /* large */
    memset(&world, 0, sizeof world);
    world.faulty = options->faults;
    world.traced = options->trace;
    world.quiet = !options->alone;
    running = seed;
    at_work = &world;
    model_world_open(&world, seed);
    model_live(&world);
    model_world_close(&world);
    model_judge(&world);
    model_free(&world);
    model_devices_close(&world);
    return world.turns;
}

static uint64_t number(const char *text)
{
    return strtoull(text, NULL, 0);
}

static int read_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--schedules") == 0)
            options->schedules = number(value), i++;
        else if (strcmp(argv[i], "--first") == 0)
            options->first = number(value), i++;
        else if (strcmp(argv[i], "--seed") == 0)
            options->first = number(value), options->schedules = 1, options->alone = true, i++;
        else if (strcmp(argv[i], "--faults") == 0)
            options->faults = true;
        else if (strcmp(argv[i], "--trace") == 0)
            options->trace = true;
        else if (strcmp(argv[i], "--rows") == 0)
            options->rows = true;
        else if (strcmp(argv[i], "--all-rows") == 0)
            options->all_rows = true;
        else
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {.schedules = 1000, .first = 1};
    uint64_t turns = 0;
    if (read_options(argc, argv, &options) < 0) {
        fprintf(stderr, "model_test: see the first lines of tests/model/model.c for its options\n");
        return 2;
    }
    for (uint64_t i = 0; i < options.schedules; i++)
        turns += run_schedule(options.first + i, &options);
    printf("%llu schedules passed (seeds %llu to %llu), %llu turns\n", (unsigned long long)options.schedules,
           (unsigned long long)options.first, (unsigned long long)(options.first + options.schedules - 1),
           (unsigned long long)turns);
    if (options.rows)
        model_rows_print();
    return options.all_rows && model_rows_missed() > 0 ? 1 : 0;
}
