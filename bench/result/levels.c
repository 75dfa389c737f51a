#include "levels.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"

/* Chosen by simulated meshes, as those of odd.c. */
#define SIGMA_LEAST 0.01
#define PAIRS_LEAST 4
#define BANDWIDTH 0.5 /* of the rate of the largest size: with less, half of a message's time is latency */
#define SIZES_RANGE 16
#define FAR_SIGMAS 1.2816 /* within which 4/5 of a normal distribution lie; */
#define FAR_LEAST 8       /* of so many pairs that is not one alone */
#define NOISIER 1.4
#define PLACES_MANY 32

/* --- medians --- */

static double median_at(const double *values, size_t count, double *room)
{
    size_t there = 0;

    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            room[there++] = values[i];
    return there ? wf_median(room, there) : NAN;
}

size_t bench_levels_places(const struct bench_levels_side *side, enum bench_levels_role role)
{
    return role == BENCH_LEVELS_RECEIVES ? side->targets : side->sources;
}

bool bench_levels_is_of(const struct bench_levels_side *side, const struct bench_levels_place *place, size_t pair)
{
    bool sends = pair / side->targets == place->index, receives = pair % side->targets == place->index;

    return (sends && place->role != BENCH_LEVELS_RECEIVES) || (receives && place->role != BENCH_LEVELS_SENDS);
}

double bench_levels_median(const struct bench_levels_side *side, const struct bench_levels_place *place,
                           const double *values, double *room)
{
    const double *row = values + place->index * side->targets, *column = values + place->index;
    size_t there = 0;

    for (size_t i = 0; place->role != BENCH_LEVELS_RECEIVES && i < side->targets; i++)
        if (!isnan(row[i]))
            room[there++] = row[i];
    for (size_t i = 0; place->role != BENCH_LEVELS_SENDS && i < side->sources; i++)
        if (!isnan(column[i * side->targets]))
            room[there++] = column[i * side->targets];
    return there ? wf_median(room, there) : NAN;
}

/* Levels and scores have a median of 0. One of many places hardly moves it, and to ask each anew would take long. */
double bench_levels_usual(const struct bench_levels_side *side, const struct bench_levels_place *place,
                          const double *values, double *room)
{
    size_t there = 0;

    if (bench_levels_places(side, place->role) >= PLACES_MANY)
        return 0;
    for (size_t i = 0; i < side->pairs; i++)
        if (!bench_levels_is_of(side, place, i) && !isnan(values[i]))
            room[there++] = values[i];
    return there ? wf_median(room, there) : NAN;
}

double bench_levels_effect(const struct bench_levels_side *side, const struct bench_levels_place *place,
                           const double *values, double *room)
{
    double own = bench_levels_median(side, place, values, room);

    return own - bench_levels_usual(side, place, values, room);
}

/* --- levels and scores --- */

void bench_levels_settle(struct bench_levels_side *side, const struct bench_levels_place *without, double *room)
{
    for (size_t size = 0; size < side->used; size++) {
        double *levels = side->levels + size * side->pairs;
        double middle =
            without ? bench_levels_usual(side, without, levels, room) : median_at(levels, side->pairs, room);
        for (size_t i = 0; i < side->pairs; i++)
            levels[i] -= middle;
    }
    for (size_t i = 0; i < side->pairs; i++) {
        size_t there = 0;
        for (size_t size = 0; size < side->used; size++)
            if (!isnan(side->levels[size * side->pairs + i]))
                room[there++] = side->levels[size * side->pairs + i];
        side->scores[i] = there ? wf_median(room, there) : NAN;
    }
}

static void fill(struct bench_levels_side *side, const double *rates, const size_t *used, double *room)
{
    for (size_t size = 0; size < side->used; size++)
        for (size_t i = 0; i < side->pairs; i++) {
            double rate = rates[used[size] * side->pairs + i];
            side->levels[size * side->pairs + i] = rate > 0 ? log(rate) : NAN;
        }
    bench_levels_settle(side, NULL, room);
    memcpy(side->raw, side->scores, side->pairs * sizeof *side->raw);
}

/* S of distances of so many pairs; sorts them. */
static double spread_around_zero(double *values, size_t count, size_t pairs)
{
    double middle = BENCH_MAD_TO_SIGMA * wf_median(values, count);
    double far = count && pairs >= FAR_LEAST ? values[count * 4 / 5] / FAR_SIGMAS : 0;

    return fmax(fmax(middle, far), SIGMA_LEAST);
}

/* The room has distances of this direction, and then of the other. That of few pairs is too uncertain to be preferred
 * for a small difference. */
static double spread_of_both(const struct bench_levels *levels, const struct bench_levels_side *side, size_t own,
                             size_t both)
{
    double alone = spread_around_zero(levels->room, own, side->pairs);
    double together = spread_around_zero(levels->room, both, levels->forth.pairs + levels->back.pairs);

    return side->pairs >= FAR_LEAST && alone > NOISIER * together ? alone : together;
}

static size_t put_distances(const double *values, size_t count, double *room)
{
    size_t there = 0;

    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            room[there++] = fabs(values[i]);
    return there;
}

/* Pairs of the other direction; between nodes that is the same one again. */
static size_t put_others(const struct bench_levels *levels, const struct bench_levels_side *side, bool scores,
                         double *room)
{
    const struct bench_levels_side *other = side == &levels->forth ? &levels->back : &levels->forth;

    if (levels->links->nodes)
        return 0;
    return put_distances(scores ? other->scores : other->levels, other->pairs * (scores ? 1 : other->used), room);
}

double bench_levels_sigma(const struct bench_levels *levels, const struct bench_levels_side *side)
{
    size_t own = put_distances(side->scores, side->pairs, levels->room);

    return spread_of_both(levels, side, own, own + put_others(levels, side, true, levels->room + own));
}

double bench_levels_noise(const struct bench_levels *levels, const struct bench_levels_side *side)
{
    size_t own = put_distances(side->levels, side->pairs * side->used, levels->room);

    return spread_of_both(levels, side, own, own + put_others(levels, side, false, levels->room + own));
}

double bench_levels_sigma_without(const struct bench_levels *levels, const struct bench_levels_side *side,
                                  const struct bench_levels_place *place, double effect)
{
    double usual = bench_levels_usual(side, place, side->scores, levels->room);
    size_t own = 0;

    for (size_t i = 0; i < side->pairs; i++)
        if (!isnan(side->scores[i]))
            levels->room[own++] = fabs(side->scores[i] - usual - (bench_levels_is_of(side, place, i) ? effect : 0));
    return spread_of_both(levels, side, own, own + put_others(levels, side, true, levels->room + own));
}

/* --- the sizes that count --- */

/* The sizes that tell the bandwidth. False: there is not enough of it that anything would be usual. */
static bool choose_sizes(struct bench_levels *levels)
{
    const struct bench_links *links = levels->links;
    struct bench_levels_side *side = &levels->forth;
    double largest = NAN, bytes = 0;

    /* From the largest down; put in order below. */
    for (size_t size = links->sizes; size-- > 0;) {
        const double *rates = links->rates + size * side->pairs;
        size_t there = 0;
        for (size_t i = 0; i < side->pairs; i++)
            there += rates[i] > 0;
        if (there < PAIRS_LEAST)
            continue;
        double rate = median_at(rates, side->pairs, levels->room);
        if (side->used == 0) {
            largest = rate;
            bytes = links->bytes ? links->bytes[size] : 0;
        } else if (rate < BANDWIDTH * largest || (links->bytes && links->bytes[size] * SIZES_RANGE < bytes)) {
            continue;
        }
        levels->used[side->used++] = size;
    }
    for (size_t i = 0; i < side->used / 2; i++) {
        size_t other = levels->used[i];
        levels->used[i] = levels->used[side->used - 1 - i];
        levels->used[side->used - 1 - i] = other;
    }
    levels->back.used = side->used;
    return side->used > 0;
}

int bench_levels_init(struct bench_levels *levels, const struct bench_links *links)
{
    size_t pairs = links->sources * links->targets, back = links->back ? pairs : 0, all = pairs + back;

    *levels = (struct bench_levels){
        .links = links,
        .forth = {.sources = links->sources, .targets = links->targets, .pairs = pairs},
        .back = {.sources = links->targets, .targets = links->sources, .pairs = back},
        .used = calloc(links->sizes + 1, sizeof *levels->used),
        /* Levels, scores and the first scores of both; room for all pairs of all sizes, or once more and for effects.
         */
        .memory = calloc(all * (2 * links->sizes + 3) + links->sizes + links->sources + links->targets + 1,
                         sizeof *levels->memory),
    };
    if (!levels->used || !levels->memory)
        return -ENOMEM;
    levels->forth.levels = levels->memory;
    levels->back.levels = levels->forth.levels + pairs * links->sizes;
    levels->forth.scores = levels->back.levels + back * links->sizes;
    levels->back.scores = levels->forth.scores + pairs;
    levels->forth.raw = levels->back.scores + back;
    levels->back.raw = levels->forth.raw + pairs;
    levels->room = levels->back.raw + back;
    return 0;
}

void bench_levels_fini(struct bench_levels *levels)
{
    free(levels->used);
    free(levels->memory);
}

bool bench_levels_measure(struct bench_levels *levels)
{
    const struct bench_links *links = levels->links;

    if (!choose_sizes(levels))
        return false;
    fill(&levels->forth, links->rates, levels->used, levels->room);
    if (links->back)
        fill(&levels->back, links->back, levels->used, levels->room);
    return true;
}
