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
struct side {
    size_t sources, targets, pairs, used; /* sizes that count */
    double *levels;                       /* [size][pair], in those sizes; NaN: none */
    double *scores;                       /* of a pair; NaN: none */
    double *raw;                          /* what these were at first */
};

struct search {
    struct side forth, back; /* of none there are no pairs */
    double *memory;          /* all of the above and below; owned */
    double *room;            /* for the pairs of both */
    size_t *used;            /* indexes of the sizes that count; owned */
    const struct bench_links *links;
    struct bench_odd *odd; /* all that are found; owned */
    size_t count;
};

/* A source or a target of one direction. */
struct place {
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

static bool is_of(const struct side *side, const struct place *place, size_t pair)
{
    return (place->sends ? pair / side->targets : pair % side->targets) == place->index;
}

/* Median of those that are the place's, or of those that are not. */
static double median_of(const struct side *side, const struct place *place, bool of_it, const double *values,
                        double *room)
{
    size_t there = 0;

    for (size_t i = 0; i < side->pairs; i++)
        if (is_of(side, place, i) == of_it && !isnan(values[i]))
            room[there++] = values[i];
    return there ? wf_median(room, there) : NAN;
}

static double effect_of(const struct side *side, const struct place *place, const double *values, double *room)
{
    double own = median_of(side, place, true, values, room);

    return own - median_of(side, place, false, values, room);
}

/* --- levels and scores --- */

/* Measures levels from their median anew, and makes scores of them. */
static void settle(struct side *side, double *room)
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

static void fill(struct side *side, const double *rates, const size_t *used, double *room)
{
    for (size_t size = 0; size < side->used; size++)
        for (size_t i = 0; i < side->pairs; i++) {
            double rate = rates[used[size] * side->pairs + i];
            side->levels[size * side->pairs + i] = rate > 0 ? log(rate) : NAN;
        }
    settle(side, room);
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
static double spread_of_both(const struct search *search, const struct side *side, size_t own, size_t both)
{
    double alone = spread_around_zero(search->room, own, side->pairs);
    double together = spread_around_zero(search->room, both, search->forth.pairs + search->back.pairs);

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

static const struct side *other_side(const struct search *search, const struct side *side)
{
    return side == &search->forth ? &search->back : &search->forth;
}

static double sigma_of(const struct search *search, const struct side *side)
{
    const struct side *other = other_side(search, side);
    size_t own = put_distances(side->scores, side->pairs, search->room);

    return spread_of_both(search, side, own, own + put_distances(other->scores, other->pairs, search->room + own));
}

static double noise_of(const struct search *search, const struct side *side)
{
    const struct side *other = other_side(search, side);
    size_t own = put_distances(side->levels, side->pairs * side->used, search->room);

    return spread_of_both(search, side, own,
                          own + put_distances(other->levels, other->pairs * other->used, search->room + own));
}

/* Sigma, as if the place had no effect. */
static double sigma_without(const struct search *search, const struct side *side, const struct place *place,
                            double effect)
{
    const struct side *other = other_side(search, side);
    double usual = median_of(side, place, false, side->scores, search->room);
    size_t own = 0;

    for (size_t i = 0; i < side->pairs; i++)
        if (!isnan(side->scores[i]))
            search->room[own++] = fabs(side->scores[i] - usual - (is_of(side, place, i) ? effect : 0));
    return spread_of_both(search, side, own, own + put_distances(other->scores, other->pairs, search->room + own));
}

static double sigmas_asked(const struct search *search)
{
    return search->forth.used == 1 ? SIGMAS_OF_ONE : search->forth.used == 2 ? SIGMAS_OF_TWO : SIGMAS;
}

/* What a score has to lie below at least. */
static double low_least(const struct search *search)
{
    return log(search->forth.used == 1 ? LOW_OF_ONE : LOW);
}

static double noises_asked(const struct search *search, double of_few)
{
    return search->forth.pairs + search->back.pairs >= PAIRS_MANY ? of_few + NOISES_MORE : of_few;
}

/* Whether so many of the sizes, or pairs, are enough. */
static bool most_of(size_t low, size_t all)
{
    return low > 0 && (all < MANY ? low == all : MANY * low >= (MANY - 1) * all);
}

/* --- endpoints --- */

struct effect {
    struct place place;
    double value, sigmas;
    size_t sizes_seen;
};

/* How far the effects of the others of its role lie around each other; with one other, as far as pairs do. */
static double spread_of_others(const struct search *search, const struct side *side, const struct place *place,
                               double sigma)
{
    size_t count = place->sends ? side->sources : side->targets, there = 0;
    double *effects = search->room + side->pairs;

    for (size_t i = 0; i < count; i++) {
        struct place other = {place->sends, i};
        double value = effect_of(side, &other, side->scores, search->room);
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
static size_t pairs_of(const struct side *side, const struct place *place, size_t *low)
{
    size_t count = 0;

    *low = 0;
    for (size_t i = 0; i < side->pairs; i++)
        if (is_of(side, place, i) && !isnan(side->scores[i])) {
            count++;
            *low += side->scores[i] < log(LOW_ONCE);
        }
    return count;
}

static bool stands_out(const struct search *search, const struct side *side, struct effect *effect)
{
    const struct place *place = &effect->place;
    size_t low, count = pairs_of(side, place, &low), there = 0;

    effect->value = effect_of(side, place, side->scores, search->room);
    if (count < 2 || isnan(effect->value) || effect->value >= low_least(search) || !most_of(low, count))
        return false;
    effect->sizes_seen = 0;
    for (size_t size = 0; size < side->used; size++) {
        double level = effect_of(side, place, side->levels + size * side->pairs, search->room);
        there += !isnan(level);
        effect->sizes_seen += level < log(LOW_ONCE);
    }
    if (!most_of(effect->sizes_seen, there))
        return false;
    double sigma = sigma_without(search, side, place, effect->value);
    double error = fmax(MEDIAN_ERROR * sigma / sqrt((double)count), spread_of_others(search, side, place, sigma));
    effect->sigmas = -effect->value / error;
    return effect->sigmas > sigmas_asked(search);
}

static bool worst_place(const struct search *search, const struct side *side, struct effect *worst)
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
static double take_off(struct search *search, struct side *side, const struct place *place)
{
    double last = NAN;

    for (size_t size = 0; size < side->used; size++) {
        double *levels = side->levels + size * side->pairs;
        double effect = effect_of(side, place, levels, search->room);
        if (isnan(effect))
            continue;
        for (size_t i = 0; i < side->pairs; i++)
            if (is_of(side, place, i))
                levels[i] -= effect;
        last = effect;
    }
    settle(side, search->room);
    return last;
}

static bool place_is_usual_back(const struct search *search, const struct place *place)
{
    struct place back = {!place->sends, place->index};

    return search->back.pairs && median_of(&search->back, &back, true, search->back.raw, search->room) > log(LOW);
}

static double rate_of_place(const struct search *search, const struct place *place)
{
    const struct side *side = &search->forth;

    for (size_t size = side->used; size-- > 0;) {
        double rate =
            median_of(side, place, true, search->links->rates + search->used[size] * side->pairs, search->room);
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
static void look_at_places(struct search *search, struct side *side, bool named)
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
    const struct side *back = &search->back;
    size_t src = pair / search->forth.targets, dst = pair % search->forth.targets;

    return back->pairs && back->raw[dst * back->targets + src] > log(LOW);
}

static void name_pair(struct search *search, size_t pair, double sigma, size_t sizes_seen)
{
    const struct side *side = &search->forth;
    size_t size = side->used - 1;

    while (isnan(side->levels[size * side->pairs + pair]))
        size--;
    double rate = search->links->rates[search->used[size] * side->pairs + pair];
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
    const struct side *side = &search->forth;
    double sigma = sigma_of(search, side), noise = noise_of(search, side);
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
static bool choose_sizes(struct search *search)
{
    const struct bench_links *links = search->links;
    struct side *side = &search->forth;
    double largest = NAN, bytes = 0;

    /* From the largest down; put in order below. */
    for (size_t size = links->sizes; size-- > 0;) {
        const double *rates = links->rates + size * side->pairs;
        size_t there = 0;
        for (size_t i = 0; i < side->pairs; i++)
            there += rates[i] > 0;
        if (there < PAIRS_LEAST)
            continue;
        double rate = median_at(rates, side->pairs, search->room);
        if (side->used == 0) {
            largest = rate;
            bytes = links->bytes ? links->bytes[size] : 0;
        } else if (rate < BANDWIDTH * largest || (links->bytes && links->bytes[size] * SIZES_RANGE < bytes)) {
            continue;
        }
        search->used[side->used++] = size;
    }
    for (size_t i = 0; i < side->used / 2; i++) {
        size_t other = search->used[i];
        search->used[i] = search->used[side->used - 1 - i];
        search->used[side->used - 1 - i] = other;
    }
    search->back.used = side->used;
    return side->used > 0;
}

static int search_init(struct search *search, const struct bench_links *links)
{
    size_t pairs = links->sources * links->targets, back = links->back ? pairs : 0, all = pairs + back;

    *search = (struct search){
        .links = links,
        .forth = {.sources = links->sources, .targets = links->targets, .pairs = pairs},
        .back = {.sources = links->targets, .targets = links->sources, .pairs = back},
        .used = calloc(links->sizes + 1, sizeof *search->used),
        .odd = calloc(pairs + links->sources + links->targets + 1, sizeof *search->odd),
        /* Levels, scores and the first scores of both; room for all pairs, or sizes, and for effects behind them. */
        .memory = calloc(all * (2 * links->sizes + 3) + links->sizes + links->sources + links->targets + 1,
                         sizeof *search->memory),
    };
    if (!search->used || !search->odd || !search->memory)
        return -ENOMEM;
    search->forth.levels = search->memory;
    search->back.levels = search->forth.levels + pairs * links->sizes;
    search->forth.scores = search->back.levels + back * links->sizes;
    search->back.scores = search->forth.scores + pairs;
    search->forth.raw = search->back.scores + back;
    search->back.raw = search->forth.raw + pairs;
    search->room = search->back.raw + back;
    return 0;
}

static void search_fini(struct search *search)
{
    free(search->used);
    free(search->odd);
    free(search->memory);
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

    if (result == 0 && choose_sizes(&search)) {
        fill(&search.forth, links->rates, search.used, search.room);
        if (links->back)
            fill(&search.back, links->back, search.used, search.room);
        look_at_places(&search, &search.back, false);
        look_at_places(&search, &search.forth, true);
        look_at_pairs(&search);
        qsort(search.odd, search.count, sizeof *search.odd, by_share);
        for (size_t i = 0; i < search.count && i < most; i++)
            found[i] = search.odd[i];
        result = (int)search.count;
    }
    search_fini(&search);
    return result;
}
