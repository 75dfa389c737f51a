#include "rule.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"

#define ROUNDING_MS 1e-9

double straggler_usual_ms(const struct straggler_rule *rule)
{
    double sorted[STRAGGLER_HISTORY];
    size_t count = rule->barriers < STRAGGLER_HISTORY ? (size_t)rule->barriers : STRAGGLER_HISTORY;

    memcpy(sorted, rule->shortest_ms, sizeof sorted);
    return wf_median(sorted, count);
}

static int smaller(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

/* What a rank has certainly waited for others. */
static double sure(const struct straggler_told *told)
{
    return fmax(0, told->wait_ms - told->starved_ms);
}

/* The lower third of all but one, which is taken out of the sorted ones. */
static double third_of_others(const double *sorted, uint32_t ranks, double own)
{
    uint32_t place = ranks < 7 ? 0 : (ranks - 1) / 3 - 1;

    return own <= sorted[place] ? sorted[place + 1] : sorted[place];
}

/* How long it was kept from entering by others that had its processor. */
static double kept(const struct straggler_told *told, double tell_ms_of_others)
{
    return told->later_starved_ms + fmin(told->tell_starved_ms, fmax(0, told->tell_ms - tell_ms_of_others));
}

/* The shortest wait of another that is no shorter than what they have waited for certain. */
static double tightest(const struct straggler_told *told, uint32_t ranks, uint32_t rank, double bound_ms)
{
    double found = INFINITY;

    for (uint32_t i = 0; i < ranks; i++)
        if (i != rank && told[i].wait_ms >= bound_ms)
            found = fmin(found, told[i].wait_ms);
    return found;
}

static void judge(const struct straggler_told *told, uint32_t ranks, uint32_t rank, double limit_ms,
                  struct straggler_judged *judged)
{
    double own_ms = told[rank].wait_ms;

    judged->verdict = STRAGGLER_IN_TIME;
    if (judged->late_ms < limit_ms)
        return;
    judged->late_ms = tightest(told, ranks, rank, judged->late_ms + own_ms - ROUNDING_MS) - own_ms;
    judged->verdict = judged->late_ms - judged->kept_ms < limit_ms ? STRAGGLER_FOR_PROCESSOR : STRAGGLER_NAMED;
}

int straggler_look(struct straggler_rule *rule, const struct straggler_told *told, uint32_t ranks,
                   struct straggler_judged *judged)
{
    double *waits = calloc(2 * (size_t)ranks, sizeof *waits), *tellings = waits + ranks;
    double limit_ms = fmax(rule->threshold_ms, STRAGGLER_FACTOR * straggler_usual_ms(rule));

    if (!waits)
        return -ENOMEM;
    for (uint32_t i = 0; i < ranks; i++) {
        waits[i] = sure(&told[i]);
        tellings[i] = told[i].tell_ms;
    }
    qsort(waits, ranks, sizeof *waits, smaller);
    qsort(tellings, ranks, sizeof *tellings, smaller);
    for (uint32_t i = 0; i < ranks; i++) {
        judged[i].late_ms = third_of_others(waits, ranks, sure(&told[i])) - told[i].wait_ms;
        judged[i].kept_ms = kept(&told[i], third_of_others(tellings, ranks, told[i].tell_ms));
        judge(told, ranks, i, limit_ms, &judged[i]);
    }
    rule->shortest_ms[rule->barriers++ % STRAGGLER_HISTORY] = waits[0];
    free(waits);
    return 0;
}
