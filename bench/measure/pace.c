#include "pace.h"

#define WARM_PART 10 /* of the share: what the warm-up may take beyond its first round */
#define GROWTH 4     /* from one round to the next */
#define LONGEST_NS (INT64_MAX / 8)

void bench_pace_init(struct bench_pace *pace, const struct bench_budget *budget, uint32_t warmup, uint32_t least,
                     uint32_t most)
{
    *pace = (struct bench_pace){
        .first = warmup || least == most ? warmup : 1,
        .least = least,
        .most = most,
        .share_ns = budget->phases ? budget->left_ns / budget->phases : budget->left_ns,
    };
}

uint32_t bench_pace_next(const struct bench_pace *pace)
{
    if (pace->done == 0)
        return pace->first;
    if (pace->least == pace->most)
        return 0;
    /* Another round is worth its time only where many messages are to follow. */
    int64_t count = (int64_t)pace->last * GROWTH, left = pace->share_ns / WARM_PART - pace->spent_ns;
    int64_t most = pace->most < UINT32_MAX / GROWTH ? pace->most : UINT32_MAX / GROWTH;
    return count <= most && left > 0 && count <= left / pace->each_ns ? (uint32_t)count : 0;
}

void bench_pace_took(struct bench_pace *pace, uint32_t count, uint64_t elapsed_ns)
{
    int64_t took = elapsed_ns < LONGEST_NS ? (int64_t)elapsed_ns : LONGEST_NS; /* the other node may say anything */

    pace->last = count;
    pace->done += count;
    pace->spent_ns = took < LONGEST_NS - pace->spent_ns ? pace->spent_ns + took : LONGEST_NS;
    pace->each_ns = took > count ? took / count : 1;
}

uint32_t bench_pace_iters(const struct bench_pace *pace)
{
    int64_t count = pace->each_ns ? pace->share_ns / pace->each_ns : pace->least;

    return count < pace->least ? pace->least : count > pace->most ? pace->most : (uint32_t)count;
}
