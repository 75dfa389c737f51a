#include "spread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"

#define GROUPS_LEAST 6   /* pairs: among fewer, two that differ are no groups */
#define GROUPS_RATIO 1.5 /* of the groups' medians */
#define GROUPS_SHARE 0.9 /* of the variance that lies between the groups; of an even spread it is 0.75 */

const struct bench_way bench_ways[BENCH_WAYS] = {{0, 1}, {1, 0}, {0, 0}, {1, 1}};

const struct bench_way *bench_ways_of(const struct bench_result *result, int *count)
{
    static const struct bench_way of_many[] = {{BENCH_ANY_TWO, BENCH_ANY_TWO}, {BENCH_ANY_ONE, BENCH_ANY_ONE}};
    bool two = result->node_count <= 2;

    *count = two ? BENCH_WAYS : (int)(sizeof of_many / sizeof of_many[0]);
    return two ? bench_ways : of_many;
}

const char *bench_way_text(const struct bench_way *way, char *text, size_t room)
{
    if (way->src_node >= 0)
        snprintf(text, room, "%d>%d", way->src_node, way->dst_node);
    else
        snprintf(text, room, "%s", way->src_node == BENCH_ANY_TWO ? "all" : "own");
    return text;
}

bool bench_plan_has_way(const struct bench_plan *plan, const struct bench_way *way)
{
    for (uint32_t i = 0; i < plan->pair_count; i++)
        if (bench_pair_goes(&plan->pairs[i], way))
            return true;
    return false;
}

const struct bench_sample *bench_sample_find(const struct bench_result *result, const struct bench_set *set,
                                             const struct bench_pair *pair)
{
    for (size_t i = 0; i < result->sample_count; i++) {
        const struct bench_sample *sample = &result->samples[i];
        if (bench_sample_in_set(sample, set) && bench_pair_equal(&sample->pair, pair))
            return sample;
    }
    return NULL;
}

/* --- figures of a direction --- */

static double cv_of(const double *values, size_t count)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return mean > 0 ? sqrt(squares / (double)count) / mean : 0;
}

static double ranked(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return sorted[rank ? rank - 1 : 0];
}

static void spread_over_pairs(double *rates, size_t count, struct bench_spread *spread)
{
    spread->cv = cv_of(rates, count);
    spread->median = wf_median(rates, count); /* sorts */
    spread->min = rates[0];
    spread->p10 = ranked(rates, count, 0.1);
    spread->p90 = ranked(rates, count, 0.9);
}

/* The longest time is the lowest rate. */
static void spread_over_messages(const struct bench_sample *sample, struct bench_spread *spread)
{
    const struct wf_times *time = &sample->time;
    double bytes = (double)sample->size / 1e3;

    spread->by_message = true;
    spread->cv = time->cv;
    spread->median = bench_sample_rate(sample);
    spread->min = time->max > 0 ? bytes / time->max : -1;
    spread->p10 = time->p90 > 0 ? bytes / time->p90 : -1;
    spread->p90 = time->p10 > 0 ? bytes / time->p10 : -1;
}

/* A set's sample of this way, from `*index` on; NULL: no more. */
static const struct bench_sample *next_sample(const struct bench_result *result, const struct bench_set *set,
                                              const struct bench_way *way, size_t *index)
{
    while (*index < result->sample_count) {
        const struct bench_sample *sample = &result->samples[(*index)++];
        if (bench_sample_in_set(sample, set) && bench_pair_goes(&sample->pair, way))
            return sample;
    }
    return NULL;
}

static double median_of(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                        double (*value)(const struct bench_sample *sample), double *room)
{
    const struct bench_sample *sample;
    size_t count = 0;

    for (size_t i = 0; (sample = next_sample(result, set, way, &i)) != NULL;)
        if (value(sample) >= 0)
            room[count++] = value(sample);
    return count ? wf_median(room, count) : -1;
}

size_t bench_way_rates(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                       double *rates)
{
    const struct bench_sample *sample;
    size_t count = 0;

    for (size_t i = 0; (sample = next_sample(result, set, way, &i)) != NULL;)
        if (bench_sample_rate(sample) >= 0)
            rates[count++] = bench_sample_rate(sample);
    return count;
}

static double time_of(const struct bench_sample *sample)
{
    return sample->time.p50;
}

void bench_spread_of(const struct bench_result *result, const struct bench_set *set, const struct bench_way *way,
                     double *room, struct bench_spread *spread)
{
    const struct bench_sample *sample, *last = NULL;
    uint64_t bytes = 0;

    *spread = (struct bench_spread){.grouped = true,
                                    .counted = true,
                                    .min = -1,
                                    .p10 = -1,
                                    .median = -1,
                                    .p90 = -1,
                                    .cv = -1,
                                    .together = -1,
                                    .iters = UINT32_MAX};
    spread->time_us = median_of(result, set, way, time_of, room);
    spread->messages_per_s = median_of(result, set, way, bench_sample_messages_per_s, room);
    for (size_t i = 0; (sample = next_sample(result, set, way, &i)) != NULL; last = sample) {
        spread->pairs++;
        spread->grouped &= sample->grouped == sample->iters && sample->iters > 1;
        spread->counted &= bench_sample_counted(sample);
        spread->iters = sample->iters < spread->iters ? sample->iters : spread->iters;
        spread->wrong += sample->wrong.bytes;
        spread->checked |= sample->checked;
        spread->failed |= sample->failures > 0;
        bytes += bench_sample_measured_bytes(sample);
    }
    size_t rates = bench_way_rates(result, set, way, room);
    if (rates > 1)
        spread_over_pairs(room, rates, spread);
    else if (rates == 1)
        spread_over_messages(last, spread);
    if (set->mode == BENCH_LOADED && set->backend->moves_data && set->elapsed_ns > 0)
        spread->together = (double)bytes / (double)set->elapsed_ns;
}

/* --- two groups --- */

/* Variance between the groups, times the count squared; `sums` are those of the first `low` rates and of all. */
static double between(double low_sum, size_t low, double sum, size_t count)
{
    double difference = low_sum / (double)low - (sum - low_sum) / (double)(count - low);

    return (double)low * (double)(count - low) * difference * difference;
}

static double variance(const double *values, size_t count)
{
    double cv = cv_of(values, count), sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return cv * cv * sum * sum; /* times the count squared */
}

/* Where the widest gap is, there the groups part, if they do: a cut that is best by variance and lies elsewhere is one
 * through a cloud. */
static size_t best_cut(const double *sorted, size_t count, double *share)
{
    double sum = 0, low_sum = 0, best = 0, widest = 0;
    size_t cut = 0, gap = 0;

    for (size_t i = 0; i < count; i++)
        sum += sorted[i];
    for (size_t low = 1; low < count; low++) {
        low_sum += sorted[low - 1];
        if (between(low_sum, low, sum, count) > best) {
            best = between(low_sum, low, sum, count);
            cut = low;
        }
        if (sorted[low] - sorted[low - 1] > widest) {
            widest = sorted[low] - sorted[low - 1];
            gap = low;
        }
    }
    *share = variance(sorted, count) > 0 ? best / variance(sorted, count) : 0;
    return cut == gap ? cut : 0;
}

bool bench_groups_find(double *rates, size_t count, struct bench_groups *groups)
{
    double share;

    wf_median(rates, count); /* sorts */
    size_t cut = count >= GROUPS_LEAST ? best_cut(rates, count, &share) : 0;
    if (cut < 2 || count - cut < 2 || share < GROUPS_SHARE)
        return false;
    *groups = (struct bench_groups){
        .low_count = cut,
        .high_count = count - cut,
        .bound = rates[cut - 1],
        .low = wf_median(rates, cut),
        .high = wf_median(rates + cut, count - cut),
    };
    return groups->high >= GROUPS_RATIO * groups->low;
}
