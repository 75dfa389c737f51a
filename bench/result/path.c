#include "path.h"

#include <string.h>

#define DIRECT_PERCENT 95

static const char *const names[BENCH_PATHS] = {NULL, "host", "staged", "devmem"};

enum bench_path bench_path_of(enum bench_memory memory, uint64_t direct, uint64_t all)
{
    if (memory == BENCH_HOST)
        return BENCH_PATH_HOST;
    return all > 0 && direct >= all - all / 100 * (100 - DIRECT_PERCENT) ? BENCH_PATH_DEVMEM : BENCH_PATH_STAGED;
}

const char *bench_path_name(enum bench_path path)
{
    return path < BENCH_PATHS ? names[path] : NULL;
}

enum bench_path bench_path_named(const char *name)
{
    for (int i = 0; name && i < BENCH_PATHS; i++)
        if (names[i] && strcmp(names[i], name) == 0)
            return (enum bench_path)i;
    return BENCH_PATH_UNKNOWN;
}
