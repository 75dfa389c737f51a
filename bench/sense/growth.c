/* Does it grow? A pure function of samples; the rule is in memory.h. */
#include <stdbool.h>

#include "base/clock.h"
#include "memory.h"

#define WARM_UP_NS (60 * WF_NS_PER_S)
#define WARM_UP_PARTS 10 /* or this part of the whole */

/* What was sampled, as the rule sees it. */
struct series {
    const int64_t *at_ns, *values;
    size_t stride, count;
};

static int64_t value_at(const struct series *series, size_t i)
{
    return series->values[i * series->stride];
}

/* The least value of each span; false: one has none that is known. */
static bool find_floors(const struct series *series, int64_t from_ns, int64_t span_ns,
                        int64_t floors[BENCH_GROWTH_SPANS])
{
    bool known = true;

    for (int k = 0; k < BENCH_GROWTH_SPANS; k++)
        floors[k] = -1;
    for (size_t i = 0; i < series->count; i++) {
        int64_t k = (series->at_ns[i] - from_ns) / span_ns, value = value_at(series, i);
        if (series->at_ns[i] < from_ns || value < 0)
            continue;
        if (k >= BENCH_GROWTH_SPANS) /* the last sample ends the last span */
            k = BENCH_GROWTH_SPANS - 1;
        if (floors[k] < 0 || value < floors[k])
            floors[k] = value;
    }
    for (int k = 0; k < BENCH_GROWTH_SPANS; k++)
        known &= floors[k] >= 0;
    return known;
}

static bool rises(const int64_t floors[BENCH_GROWTH_SPANS], double bytes_per_min)
{
    const int steps = BENCH_GROWTH_SPANS - 1;
    int64_t rise = floors[steps] - floors[0];
    int even = 0;

    for (int k = 0; k < steps; k++) {
        int64_t step = floors[k + 1] - floors[k];
        if (step < 0 || 2 * step > rise)
            return false;
        even += 4 * steps * step >= rise;
    }
    return rise >= BENCH_GROWTH_LEAST && bytes_per_min >= BENCH_GROWTH_LEAST_PER_MIN && even >= steps - 1;
}

void bench_growth_judge(const int64_t *at_ns, const int64_t *values, size_t stride, size_t count,
                        struct bench_growth *growth)
{
    const struct series series = {at_ns, values, stride, count};
    int64_t floors[BENCH_GROWTH_SPANS];

    *growth = (struct bench_growth){.first = -1, .last = -1};
    if (count == 0)
        return;
    growth->first = value_at(&series, 0);
    growth->last = value_at(&series, count - 1);
    int64_t whole_ns = at_ns[count - 1] - at_ns[0];
    int64_t warm_ns = whole_ns / WARM_UP_PARTS > WARM_UP_NS ? whole_ns / WARM_UP_PARTS : WARM_UP_NS;
    int64_t left_ns = whole_ns - warm_ns;
    if (left_ns < BENCH_GROWTH_LEAST_S * WF_NS_PER_S)
        return;
    growth->seconds = (double)left_ns / WF_NS_PER_S;
    if (!find_floors(&series, at_ns[0] + warm_ns, left_ns / BENCH_GROWTH_SPANS, floors))
        return;
    growth->first = floors[0];
    growth->last = floors[BENCH_GROWTH_SPANS - 1];
    /* From the middle of the first span to that of the last. */
    growth->bytes_per_min =
        (double)(growth->last - growth->first) * 60 / (growth->seconds * (BENCH_GROWTH_SPANS - 1) / BENCH_GROWTH_SPANS);
    growth->verdict = rises(floors, growth->bytes_per_min) ? BENCH_GROWTH_FOUND : BENCH_GROWTH_NONE;
}
