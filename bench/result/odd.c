#include "odd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"

/* Chosen by simulated meshes; tests/unit/test_bench_odd.c has some of them. */
#define SIGMAS 5.0
#define SIGMAS_OF_TWO 7.0 /* of fewer sizes than three */
#define SIGMAS_OF_ONE 12.0
#define NOISES 3.5      /* that a score has to lie below the peers, */
#define NOISES_ONCE 2.5 /* and a level; */
#define PAIRS_MANY 64   /* of so many, more can have bad luck: half a noise more of each */
#define NOISES_MORE 0.5
#define MANY 5         /* sizes, or pairs of an endpoint: of so many one may be as the peers' */
#define LOW 0.9        /* of the peers' rate: what is above is not worth a word */
#define LOW_OF_ONE 0.6 /* of one size */
#define LOW_ONCE 0.95  /* of each size */
#define SIGMA_LEAST 0.01
#define PAIRS_LEAST 4
#define BANDWIDTH 0.5 /* of the rate of the largest size: with less, half of a message's time is latency */
#define SIZES_RANGE 16
#define MAD_TO_SIGMA 1.4826 /* of a normal distribution, */
#define FAR_SIGMAS 1.2816   /* within which 4/5 of it lie; */
#define FAR_LEAST 8         /* of so many pairs that is not one alone */
#define NOISIER 1.4
#define MEDIAN_ERROR 1.2533 /* standard error of a median, in that of a mean */

/* One direction. */
struct bench_levels_side {
    size_t sources, targets, pairs, used; /* sizes that count */
    double *levels;                       /* [size][pair], in those sizes; NaN: none */
    double *scores;                       /* of a pair; NaN: none */
    double *raw;                          /* what these were at first */
};

/* Of both directions. */
struct bench_levels {
    struct bench_levels_side forth, back; /* of none there are no pairs */
    double *memory;                       /* all of the above and below; owned */
    double *room;                         /* for the pairs of both */
    size_t *used;                         /* indexes of the sizes that count; owned */
    const struct bench_links *links;
};

struct search {
    struct bench_levels levels;
    struct bench_odd *odd; /* all that are found; owned */
    size_t count;
};

/* A source or a target of one direction. */
struct bench_levels_place {
    bool sends;
    size_t index;
};

/* --- medians --- */

static double median_at(const double *values, size_t count, double *room)
{
    size_t there = 0;

    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i]))
            room[there++] = values[i];
    return there ? wf_median(room, there) : NAN;
}

static bool bench_levels_is_of(const struct bench_levels_side *side, const struct bench_levels_place *place,
                               size_t pair)
{
    return (place->sends ? pair / side->targets : pair % side->targets) == place->index;
}

/* Median of those that are the place's, or of those that are not. */
static double bench_levels_median(const struct bench_levels_side *side, const struct bench_levels_place *place,
                                  bool of_it, const double *values, double *room)
{
    size_t there = 0;

    for (size_t i = 0; i < side->pairs; i++)
        if (bench_levels_is_of(side, place, i) == of_it && !isnan(values[i]))
            room[there++] = values[i];
    return there ? wf_median(room, there) : NAN;
}

static double bench_levels_effect(const struct bench_levels_side *side, const struct bench_levels_place *place,
                                  const double *values, double *room)
{
    double own = bench_levels_median(side, place, true, values, room);

    return own - bench_levels_median(side, place, false, values, room);
}

/* --- levels and scores --- */

/* Measures levels from their median anew, and makes scores of them. */
static void bench_levels_settle(struct bench_levels_side *side, double *room)
{
    for (size_t size = 0; size < side->used; size++) {
        double *levels = side->levels + size * side->pairs, middle = median_at(levels, side->pairs, room);
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
    bench_levels_settle(side, room);
    memcpy(side->raw, side->scores, side->pairs * sizeof *side->raw);
}

/* S of distances of so many pairs; sorts them. */
static double spread_around_zero(double *values, size_t count, size_t pairs)
{
    double middle = MAD_TO_SIGMA * wf_median(values, count);
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

static const struct bench_levels_side *other_side(const struct bench_levels *levels,
                                                  const struct bench_levels_side *side)
{
    return side == &levels->forth ? &levels->back : &levels->forth;
}

static double bench_levels_sigma(const struct bench_levels *levels, const struct bench_levels_side *side)
{
    const struct bench_levels_side *other = other_side(levels, side);
    size_t own = put_distances(side->scores, side->pairs, levels->room);

    return spread_of_both(levels, side, own, own + put_distances(other->scores, other->pairs, levels->room + own));
}

static double bench_levels_noise(const struct bench_levels *levels, const struct bench_levels_side *side)
{
    const struct bench_levels_side *other = other_side(levels, side);
    size_t own = put_distances(side->levels, side->pairs * side->used, levels->room);

    return spread_of_both(levels, side, own,
                          own + put_distances(other->levels, other->pairs * other->used, levels->room + own));
}

/* Sigma, as if the place had no effect. */
static double bench_levels_sigma_without(const struct bench_levels *levels, const struct bench_levels_side *side,
                                         const struct bench_levels_place *place, double effect)
{
    const struct bench_levels_side *other = other_side(levels, side);
    double usual = bench_levels_median(side, place, false, side->scores, levels->room);
    size_t own = 0;

    for (size_t i = 0; i < side->pairs; i++)
        if (!isnan(side->scores[i]))
            levels->room[own++] = fabs(side->scores[i] - usual - (bench_levels_is_of(side, place, i) ? effect : 0));
    return spread_of_both(levels, side, own, own + put_distances(other->scores, other->pairs, levels->room + own));
}

static double sigmas_asked(const struct search *search)
{
    return search->levels.forth.used == 1 ? SIGMAS_OF_ONE : search->levels.forth.used == 2 ? SIGMAS_OF_TWO : SIGMAS;
}

/* What a score has to lie below at least. */
static double low_least(const struct search *search)
{
    return log(search->levels.forth.used == 1 ? LOW_OF_ONE : LOW);
}

static double noises_asked(const struct search *search, double of_few)
{
    return search->levels.forth.pairs + search->levels.back.pairs >= PAIRS_MANY ? of_few + NOISES_MORE : of_few;
}

/* Whether so many of the sizes, or pairs, are enough. */
static bool most_of(size_t low, size_t all)
{
    return low > 0 && (all < MANY ? low == all : MANY * low >= (MANY - 1) * all);
}

/* --- endpoints --- */

struct effect {
    struct bench_levels_place place;
    double value, sigmas;
    size_t sizes_seen;
};

/* How far the effects of the others of its role lie around each other; with one other, as far as pairs do. */
static double spread_of_others(const struct search *search, const struct bench_levels_side *side,
                               const struct bench_levels_place *place, double sigma)
{
    size_t count = place->sends ? side->sources : side->targets, there = 0;
    double *effects = search->levels.room + side->pairs;

    for (size_t i = 0; i < count; i++) {
        struct bench_levels_place other = {place->sends, i};
        double value = bench_levels_effect(side, &other, side->scores, search->levels.room);
        if (i != place->index && !isnan(value))
            effects[there++] = value;
    }
    if (there < 2)
        return sigma;
    double middle = wf_median(effects, there);
    for (size_t i = 0; i < there; i++)
        effects[i] = fabs(effects[i] - middle);
    return MAD_TO_SIGMA * wf_median(effects, there);
}

/* Pairs of the place, and how many of them are low. */
static size_t pairs_of(const struct bench_levels_side *side, const struct bench_levels_place *place, size_t *low)
{
    size_t count = 0;

    *low = 0;
    for (size_t i = 0; i < side->pairs; i++)
        if (bench_levels_is_of(side, place, i) && !isnan(side->scores[i])) {
            count++;
            *low += side->scores[i] < log(LOW_ONCE);
        }
    return count;
}

static bool stands_out(const struct search *search, const struct bench_levels_side *side, struct effect *effect)
{
    const struct bench_levels_place *place = &effect->place;
    size_t low, count = pairs_of(side, place, &low), there = 0;

    effect->value = bench_levels_effect(side, place, side->scores, search->levels.room);
    if (count < 2 || isnan(effect->value) || effect->value >= low_least(search) || !most_of(low, count))
        return false;
    effect->sizes_seen = 0;
    for (size_t size = 0; size < side->used; size++) {
        double level = bench_levels_effect(side, place, side->levels + size * side->pairs, search->levels.room);
        there += !isnan(level);
        effect->sizes_seen += level < log(LOW_ONCE);
    }
    if (!most_of(effect->sizes_seen, there))
        return false;
    double sigma = bench_levels_sigma_without(&search->levels, side, place, effect->value);
    double error = fmax(MEDIAN_ERROR * sigma / sqrt((double)count), spread_of_others(search, side, place, sigma));
    effect->sigmas = -effect->value / error;
    return effect->sigmas > sigmas_asked(search);
}

static bool worst_place(const struct search *search, const struct bench_levels_side *side, struct effect *worst)
{
    bool any = false;

    for (int sends = 0; sends < 2; sends++)
        for (size_t i = 0; i < (sends ? side->sources : side->targets); i++) {
            struct effect effect = {.place = {sends, i}};
            if (stands_out(search, side, &effect) && (!any || effect.value < worst->value)) {
                *worst = effect;
                any = true;
            }
        }
    return any;
}

/* Takes the place's effect off its pairs, at each size; returns that at the largest. */
static double take_off(struct search *search, struct bench_levels_side *side, const struct bench_levels_place *place)
{
    double last = NAN;

    for (size_t size = 0; size < side->used; size++) {
        double *levels = side->levels + size * side->pairs;
        double effect = bench_levels_effect(side, place, levels, search->levels.room);
        if (isnan(effect))
            continue;
        for (size_t i = 0; i < side->pairs; i++)
            if (bench_levels_is_of(side, place, i))
                levels[i] -= effect;
        last = effect;
    }
    bench_levels_settle(side, search->levels.room);
    return last;
}

static bool place_is_usual_back(const struct search *search, const struct bench_levels_place *place)
{
    struct bench_levels_place back = {!place->sends, place->index};

    return search->levels.back.pairs && bench_levels_median(&search->levels.back, &back, true, search->levels.back.raw,
                                                            search->levels.room) > log(LOW);
}

static double rate_of_place(const struct search *search, const struct bench_levels_place *place)
{
    const struct bench_levels_side *side = &search->levels.forth;

    for (size_t size = side->used; size-- > 0;) {
        double rate = bench_levels_median(side, place, true,
                                          search->levels.links->rates + search->levels.used[size] * side->pairs,
                                          search->levels.room);
        if (!isnan(rate))
            return rate;
    }
    return NAN;
}

static void name_place(struct search *search, const struct effect *effect, double at_largest)
{
    double rate = rate_of_place(search, &effect->place);

    search->odd[search->count++] = (struct bench_odd){
        .kind = effect->place.sends ? BENCH_ODD_SENDER : BENCH_ODD_RECEIVER,
        .src = effect->place.sends ? effect->place.index : 0,
        .dst = effect->place.sends ? 0 : effect->place.index,
        .of_peers = exp(effect->value),
        .sigmas = effect->sigmas,
        .sizes_seen = effect->sizes_seen,
        .rate = rate,
        .peers_rate = rate / exp(at_largest),
        .one_way = place_is_usual_back(search, &effect->place),
    };
}

/* Half of them or more are a group, and not odd. */
static void drop_groups(struct search *search, size_t first, enum bench_odd_kind kind, size_t all, size_t least)
{
    size_t count = 0, kept = first, limit = all > 2 ? (all - 1) / 2 : 0;

    limit = limit > least ? limit : least;
    for (size_t i = first; i < search->count; i++)
        count += search->odd[i].kind == kind;
    if (count <= limit)
        return;
    for (size_t i = first; i < search->count; i++)
        if (search->odd[i].kind != kind)
            search->odd[kept++] = search->odd[i];
    search->count = kept;
}

/* Takes off what stands out. Each can do so only once, as its effect is none then; rounding shall not make it a loop.
 */
static void look_at_places(struct search *search, struct bench_levels_side *side, bool named)
{
    struct effect worst;

    for (size_t turn = 0; turn < side->sources + side->targets && worst_place(search, side, &worst); turn++) {
        double at_largest = take_off(search, side, &worst.place);
        if (named)
            name_place(search, &worst, at_largest);
    }
    if (!named)
        return;
    drop_groups(search, 0, BENCH_ODD_SENDER, side->sources, 1);
    drop_groups(search, 0, BENCH_ODD_RECEIVER, side->targets, 1);
}

/* --- pairs --- */

static bool pair_is_usual_back(const struct search *search, size_t pair)
{
    const struct bench_levels_side *back = &search->levels.back;
    size_t src = pair / search->levels.forth.targets, dst = pair % search->levels.forth.targets;

    return back->pairs && back->raw[dst * back->targets + src] > log(LOW);
}

static void name_pair(struct search *search, size_t pair, double sigma, size_t sizes_seen)
{
    const struct bench_levels_side *side = &search->levels.forth;
    size_t size = side->used - 1;

    while (isnan(side->levels[size * side->pairs + pair]))
        size--;
    double rate = search->levels.links->rates[search->levels.used[size] * side->pairs + pair];
    search->odd[search->count++] = (struct bench_odd){
        .kind = BENCH_ODD_PAIR,
        .src = pair / side->targets,
        .dst = pair % side->targets,
        .of_peers = exp(side->scores[pair]),
        .sigmas = -side->scores[pair] / sigma,
        .sizes_seen = sizes_seen,
        .rate = rate,
        .peers_rate = rate / exp(side->levels[size * side->pairs + pair]),
        .one_way = pair_is_usual_back(search, pair),
    };
}

static void look_at_pairs(struct search *search)
{
    const struct bench_levels_side *side = &search->levels.forth;
    double sigma = bench_levels_sigma(&search->levels, side), noise = bench_levels_noise(&search->levels, side);
    double low = fmin(low_least(search), fmin(-sigmas_asked(search) * sigma, -noises_asked(search, NOISES) * noise));
    double low_once = fmin(log(LOW_ONCE), -noises_asked(search, NOISES_ONCE) * noise);
    size_t first = search->count, all = 0;

    for (size_t i = 0; i < side->pairs; i++) {
        size_t seen = 0, there = 0;
        all += !isnan(side->scores[i]);
        if (isnan(side->scores[i]) || side->scores[i] >= low)
            continue;
        for (size_t size = 0; size < side->used; size++) {
            there += !isnan(side->levels[size * side->pairs + i]);
            seen += side->levels[size * side->pairs + i] < low_once;
        }
        if (most_of(seen, there))
            name_pair(search, i, sigma, seen);
    }
    drop_groups(search, first, BENCH_ODD_PAIR, all, 1);
}

/* --- a search --- */

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

static int bench_levels_init(struct bench_levels *levels, const struct bench_links *links)
{
    size_t pairs = links->sources * links->targets, back = links->back ? pairs : 0, all = pairs + back;

    *levels = (struct bench_levels){
        .links = links,
        .forth = {.sources = links->sources, .targets = links->targets, .pairs = pairs},
        .back = {.sources = links->targets, .targets = links->sources, .pairs = back},
        .used = calloc(links->sizes + 1, sizeof *levels->used),
        /* Levels, scores and the first scores of both; room for all pairs, or sizes, and for effects behind them. */
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

static void bench_levels_fini(struct bench_levels *levels)
{
    free(levels->used);
    free(levels->memory);
}

/* Levels and scores of the sizes that count. False: there are none. */
static bool bench_levels_measure(struct bench_levels *levels)
{
    const struct bench_links *links = levels->links;

    if (!choose_sizes(levels))
        return false;
    fill(&levels->forth, links->rates, levels->used, levels->room);
    if (links->back)
        fill(&levels->back, links->back, levels->used, levels->room);
    return true;
}

/* The caller gives back what there is, also when this failed. */
static int search_init(struct search *search, const struct bench_links *links)
{
    int result = bench_levels_init(&search->levels, links);

    search->count = 0;
    search->odd = calloc(links->sources * links->targets + links->sources + links->targets + 1, sizeof *search->odd);
    return search->odd ? result : -ENOMEM;
}

static void search_fini(struct search *search)
{
    bench_levels_fini(&search->levels);
    free(search->odd);
}

static int by_share(const void *one, const void *other)
{
    double a = ((const struct bench_odd *)one)->of_peers, b = ((const struct bench_odd *)other)->of_peers;

    return a < b ? -1 : a > b;
}

int bench_odd_find(const struct bench_links *links, struct bench_odd *found, size_t most)
{
    struct search search;
    int result = search_init(&search, links);

    if (result == 0 && bench_levels_measure(&search.levels)) {
        look_at_places(&search, &search.levels.back, false);
        look_at_places(&search, &search.levels.forth, true);
        look_at_pairs(&search);
        qsort(search.odd, search.count, sizeof *search.odd, by_share);
        for (size_t i = 0; i < search.count && i < most; i++)
            found[i] = search.odd[i];
        result = (int)search.count;
    }
    search_fini(&search);
    return result;
}
