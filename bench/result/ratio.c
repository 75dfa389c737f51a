#include "ratio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/backends/backend.h"
#include "bench/plan/names.h"
#include "bench/words/json.h"

/* --- like and unlike --- */

static bool differ(const char *what, uint64_t one, uint64_t other, char why[BENCH_UNLIKE])
{
    if (one == other)
        return false;
    snprintf(why, BENCH_UNLIKE, "%s: %llu with weft, %llu with the other", what, (unsigned long long)one,
             (unsigned long long)other);
    return true;
}

/* All of its messages share one time. How many that are, iters auto decides for each backend. */
static bool is_one_group(const struct bench_sample *sample)
{
    return sample->grouped == sample->iters;
}

char *bench_samples_unlike(const struct bench_sample *one, const struct bench_sample *other, char why[BENCH_UNLIKE])
{
    char mine[48], theirs[48];

    why[0] = '\0';
    if (one->pair.src_memory != other->pair.src_memory || one->pair.dst_memory != other->pair.dst_memory) {
        snprintf(why, BENCH_UNLIKE, "memory: %s with weft, %s with the other",
                 bench_both_memories(one->pair.src_memory, one->pair.dst_memory, mine, sizeof mine),
                 bench_both_memories(other->pair.src_memory, other->pair.dst_memory, theirs, sizeof theirs));
        return why;
    }
    if (one->checked != other->checked)
        snprintf(why, BENCH_UNLIKE, "verification: only %s was verified", one->checked ? "weft" : "the other");
    else if (one->latency != other->latency)
        snprintf(why, BENCH_UNLIKE, "one is a ping-pong, the other is none");
    else if (!differ("bytes", one->size, other->size, why) &&
             !differ("in flight", one->inflight, other->inflight, why) &&
             !differ("buffers", one->buffers, other->buffers, why) && !(is_one_group(one) && is_one_group(other)))
        differ("completions in a time", one->grouped, other->grouped, why);
    return why;
}

static const struct bench_sample *find(const struct bench_result *result, const struct bench_set *set,
                                       const struct bench_pair *pair)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_in_set(&result->samples[i], set) && bench_pair_equal(&result->samples[i].pair, pair))
            return &result->samples[i];
    return NULL;
}

static size_t samples_in(const struct bench_result *result, const struct bench_set *set)
{
    size_t count = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        count += bench_sample_in_set(&result->samples[i], set);
    return count;
}

static void compare_sets(const struct bench_result *result, struct bench_ratio *ratio)
{
    if (samples_in(result, ratio->weft) != samples_in(result, ratio->other)) {
        snprintf(ratio->unlike, sizeof ratio->unlike, "pairs: the run ended before all were measured with both");
        return;
    }
    for (size_t i = 0; i < result->sample_count && !ratio->unlike[0]; i++) {
        const struct bench_sample *one = &result->samples[i];
        if (!bench_sample_in_set(one, ratio->weft))
            continue;
        const struct bench_sample *other = find(result, ratio->other, &one->pair);
        if (other)
            bench_samples_unlike(one, other, ratio->unlike);
        else
            snprintf(ratio->unlike, sizeof ratio->unlike, "pairs: not the same with both");
    }
}

static bool any_fact(const struct bench_result *result, const char *name)
{
    const json_t *facts;
    size_t index;

    for (int node = 0; node < result->node_count; node++)
        json_array_foreach(json_object_get(result->host[node], "backends"), index,
                           facts) if (json_is_true(json_object_get(facts, name))) return true;
    return false;
}

const char *bench_ratio_caveat(const struct bench_result *result)
{
    if (any_fact(result, "emulated"))
        return "not comparable: emulated: neither a GPU nor NCCL was measured";
    if (any_fact(result, "time_sliced"))
        return "not comparable: kernels are time-sliced without MPS";
    return NULL;
}

/* --- figures --- */

static double quotient(double above, double below)
{
    return above >= 0 && below > 0 ? above / below : -1;
}

double bench_ratio_rate(const struct bench_ratio *ratio)
{
    return quotient(ratio->rate[0], ratio->rate[1]);
}

double bench_ratio_aggregate(const struct bench_ratio *ratio)
{
    return quotient(ratio->aggregate[0], ratio->aggregate[1]);
}

double bench_ratio_time(const struct bench_ratio *ratio)
{
    return quotient(ratio->time_us[1], ratio->time_us[0]);
}

/* `room` for all samples. */
static double median_time(const struct bench_result *result, const struct bench_set *set, double *room)
{
    size_t count = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        if (bench_sample_in_set(&result->samples[i], set))
            room[count++] = result->samples[i].time.p50;
    return count ? wf_median(room, count) : -1;
}

static void fill(const struct bench_result *result, struct bench_ratio *ratio)
{
    const struct bench_set *const sets[2] = {ratio->weft, ratio->other};
    double *room = calloc(result->sample_count + 1, sizeof *room);

    for (int i = 0; i < 2; i++) {
        size_t count = room ? bench_set_rates(result, sets[i], room) : 0;
        ratio->rate[i] = count ? wf_median(room, count) : -1;
        ratio->aggregate[i] = bench_set_aggregate(sets[i]);
        ratio->time_us[i] = room ? median_time(result, sets[i], room) : -1;
    }
    free(room);
}

static const struct bench_set *weft_beside(const struct bench_result *result, const struct bench_set *other)
{
    for (int i = 0; i < result->set_count; i++) {
        const struct bench_set *set = &result->sets[i];
        if (strcmp(set->backend->name, "weft") == 0 && set->mode == other->mode && set->size == other->size)
            return set;
    }
    return NULL;
}

bool bench_ratio_next(const struct bench_result *result, int *index, struct bench_ratio *ratio)
{
    for (; *index < result->set_count; (*index)++) {
        const struct bench_set *other = &result->sets[*index], *weft = weft_beside(result, other);
        if (!weft || weft == other || !other->backend->moves_data)
            continue;
        memset(ratio, 0, sizeof *ratio);
        ratio->weft = weft;
        ratio->other = other;
        compare_sets(result, ratio);
        fill(result, ratio);
        (*index)++;
        return true;
    }
    return false;
}

/* --- for results --- */

static json_t *ratio_to_json(const struct bench_ratio *ratio, const char *caveat)
{
    bool like = !ratio->unlike[0];
    const char *why = like ? caveat : ratio->unlike;

    return json_pack("{s:s, s:s, s:s, s:I, s:b, s:o, s:o, s:o, s:o}", "backend", "weft", "against",
                     ratio->other->backend->name, "mode", bench_mode_name(ratio->other->mode), "size_bytes",
                     (json_int_t)ratio->other->size, "comparable", (int)(like && !caveat), "why",
                     why ? json_string(why) : json_null(), "median_bw",
                     bench_number_or_null(like ? bench_ratio_rate(ratio) : -1), "aggregate_bw",
                     bench_number_or_null(like ? bench_ratio_aggregate(ratio) : -1), "median_p50",
                     bench_number_or_null(like ? bench_ratio_time(ratio) : -1));
}

json_t *bench_ratios_to_json(const struct bench_result *result)
{
    const char *caveat = bench_ratio_caveat(result);
    struct bench_ratio ratio;
    json_t *all = json_array();
    int index = 0;

    while (bench_ratio_next(result, &index, &ratio))
        json_array_append_new(all, ratio_to_json(&ratio, caveat));
    return all;
}
