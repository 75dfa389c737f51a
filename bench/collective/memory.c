#include <stdio.h>

#include "bench/machine/memory_limits.h"
#include "bench/words/words.h"
#include "plan.h"

void coll_lacks_memory(const struct coll_plan *plan, uint32_t ranks, uint64_t each, uint64_t beside, char why[200])
{
    uint32_t hosts = plan->host_count ? plan->host_count : 1;
    uint64_t needed = (ranks + hosts - 1) / hosts * each + beside;
    const char *limit;
    char one[32], other[32];
    uint64_t there = bench_memory_available(&limit);

    why[0] = '\0';
    if (needed > there)
        snprintf(why, 200, "needs %s of memory, and %s is left (%s)", bench_human_bytes(needed, one, sizeof one),
                 bench_human_bytes(there, other, sizeof other), limit);
}
