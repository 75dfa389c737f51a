#include "odd.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/histogram.h"
#include "levels.h"

/* Chosen by simulated meshes; tests/unit/test_bench_odd.c has some of them. */
#define SIGMAS 5.0
#define SIGMAS_OF_TWO 7.0 /* of fewer sizes than three */
#define SIGMAS_OF_ONE 12.0
#define NOISES 3.5      /* that a score has to lie below the peers, */
#define NOISES_ONCE 2.5 /* and a level; */
#define PAIRS_MANY 64   /* of so many, more can have bad luck: half a noise more of each */
#define NOISES_MORE 0.5
#define FEW_NODES 8
#define CHANCE 0.01         /* pairs that would be so by chance */
#define MANY 5              /* sizes, or pairs of an endpoint: of so many one may be as the peers' */
#define LOW 0.9             /* of the peers' rate: what is above is not worth a word */
#define LOW_OF_ONE 0.6      /* of one size */
#define LOW_ONCE 0.95       /* of each size */
#define MEDIAN_ERROR 1.2533 /* standard error of a median, in that of a mean */

struct search {
    struct bench_levels levels;
    struct bench_odd *odd; /* all that are found; owned */
    size_t count;
};

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

/* --- endpoints, nodes --- */

struct effect {
    struct bench_levels_place place;
    double value, sigmas;
    size_t sizes_seen;
};

/* How far the effects of the others of its role lie around each other, when its own is taken off; with one other, as
 * far as pairs do. */
static double spread_of_others(const struct search *search, const struct bench_levels_side *side,
                               const struct effect *effect, double sigma)
{
    size_t count = bench_levels_places(side, effect->place.role), there = 0;
    double *scores = search->levels.room + side->pairs, *effects = scores + side->pairs;

    for (size_t i = 0; i < side->pairs; i++)
        scores[i] = side->scores[i] - (bench_levels_is_of(side, &effect->place, i) ? effect->value : 0);
    for (size_t i = 0; i < count; i++) {
        struct bench_levels_place other = {effect->place.role, i};
        double value = bench_levels_effect(side, &other, scores, search->levels.room);
        if (i != effect->place.index && !isnan(value))
            effects[there++] = value;
    }
    if (there < 2)
        return sigma;
    double middle = wf_median(effects, there);
    for (size_t i = 0; i < there; i++)
        effects[i] = fabs(effects[i] - middle);
    return BENCH_MAD_TO_SIGMA * wf_median(effects, there);
}

/* Pairs of the place, and how many of them are low beside the others: half of all pairs and more may be a node's. */
static size_t pairs_of(const struct search *search, const struct bench_levels_side *side,
                       const struct bench_levels_place *place, size_t *low)
{
    double usual = bench_levels_usual(side, place, side->scores, search->levels.room);
    size_t count = 0;

    *low = 0;
    for (size_t i = 0; i < side->pairs; i++)
        if (bench_levels_is_of(side, place, i) && !isnan(side->scores[i])) {
            count++;
            *low += side->scores[i] - usual < log(LOW_ONCE);
        }
    return count;
}

static bool stands_out(const struct search *search, const struct bench_levels_side *side, struct effect *effect)
{
    const struct bench_levels_place *place = &effect->place;
    size_t low, count = pairs_of(search, side, place, &low), there = 0;

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
    double error = fmax(MEDIAN_ERROR * sigma / sqrt((double)count), spread_of_others(search, side, effect, sigma));
    effect->sigmas = -effect->value / error;
    return effect->sigmas > sigmas_asked(search);
}

/* Of few nodes one has so many of the pairs that the median of all may be its own or the others', at each size another:
 * then its levels are measured from the others. */
static bool worst_of_role(const struct search *search, struct bench_levels_side *side, enum bench_levels_role role,
                          struct effect *worst, bool any)
{
    bool few = role == BENCH_LEVELS_BOTH && side->sources <= FEW_NODES;

    for (size_t i = 0; i < bench_levels_places(side, role); i++) {
        struct effect effect = {.place = {role, i}};
        if (few)
            bench_levels_settle(side, &effect.place, search->levels.room);
        if (stands_out(search, side, &effect) && (!any || effect.value < worst->value)) {
            *worst = effect;
            any = true;
        }
    }
    if (few)
        bench_levels_settle(side, NULL, search->levels.room);
    return any;
}

/* A node first: its sending and its receiving are low then, too. */
static bool worst_place(const struct search *search, struct bench_levels_side *side, struct effect *worst)
{
    if (search->levels.links->nodes && worst_of_role(search, side, BENCH_LEVELS_BOTH, worst, false))
        return true;
    return worst_of_role(search, side, BENCH_LEVELS_RECEIVES, worst,
                         worst_of_role(search, side, BENCH_LEVELS_SENDS, worst, false));
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
    bench_levels_settle(side, NULL, search->levels.room);
    return last;
}

static bool place_is_usual_back(const struct search *search, const struct bench_levels_place *place)
{
    bool sends = place->role == BENCH_LEVELS_SENDS;
    struct bench_levels_place back = {sends ? BENCH_LEVELS_RECEIVES : BENCH_LEVELS_SENDS, place->index};

    return search->levels.back.pairs && place->role != BENCH_LEVELS_BOTH &&
           bench_levels_median(&search->levels.back, &back, search->levels.back.raw, search->levels.room) > log(LOW);
}

static double rate_of_place(const struct search *search, const struct bench_levels_place *place)
{
    const struct bench_levels_side *side = &search->levels.forth;

    for (size_t size = side->used; size-- > 0;) {
        double rate = bench_levels_median(
            side, place, search->levels.links->rates + search->levels.used[size] * side->pairs, search->levels.room);
        if (!isnan(rate))
            return rate;
    }
    return NAN;
}

static void name_place(struct search *search, const struct effect *effect, double at_largest)
{
    static const enum bench_odd_kind kinds[] = {[BENCH_LEVELS_RECEIVES] = BENCH_ODD_RECEIVER,
                                                [BENCH_LEVELS_SENDS] = BENCH_ODD_SENDER,
                                                [BENCH_LEVELS_BOTH] = BENCH_ODD_NODE};
    double rate = rate_of_place(search, &effect->place);
    enum bench_levels_role role = effect->place.role;

    search->odd[search->count++] = (struct bench_odd){
        .kind = kinds[role],
        .src = role == BENCH_LEVELS_RECEIVES ? 0 : effect->place.index,
        .dst = role == BENCH_LEVELS_SENDS ? 0 : effect->place.index,
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

    for (size_t turn = 0; turn < 2 * side->sources + side->targets && worst_place(search, side, &worst); turn++) {
        double at_largest = take_off(search, side, &worst.place);
        if (named)
            name_place(search, &worst, at_largest);
    }
    if (!named)
        return;
    drop_groups(search, 0, BENCH_ODD_NODE, side->sources, 1);
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

/* How many pairs would be as low as this at all of so many sizes, if that were as often so as it is at single sizes of
 * the others. Those that are as low at all sizes are no chance, and do not count. */
static double pairs_by_chance(const struct bench_levels_side *side, double highest, size_t sizes)
{
    size_t low = 0, all = 0;

    for (size_t i = 0; i < side->pairs; i++) {
        size_t own = 0, there = 0;
        for (size_t size = 0; size < side->used; size++) {
            there += !isnan(side->levels[size * side->pairs + i]);
            own += side->levels[size * side->pairs + i] <= highest;
        }
        if (own < there) {
            low += own;
            all += there;
        }
    }
    return low ? (double)side->pairs * pow((double)low / (double)all, (double)sizes) : 0;
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
        double highest = -INFINITY;
        all += !isnan(side->scores[i]);
        if (isnan(side->scores[i]) || side->scores[i] >= low)
            continue;
        for (size_t size = 0; size < side->used; size++) {
            double level = side->levels[size * side->pairs + i];
            there += !isnan(level);
            seen += level < low_once;
            highest = level < low_once ? fmax(highest, level) : highest;
        }
        if (most_of(seen, there) && pairs_by_chance(side, highest, seen) < CHANCE)
            name_pair(search, i, sigma, seen);
    }
    drop_groups(search, first, BENCH_ODD_PAIR, all, 1);
}

/* --- a search --- */

/* The caller gives back what there is, also when this failed. */
static int search_init(struct search *search, const struct bench_links *links)
{
    int result = bench_levels_init(&search->levels, links);

    search->count = 0;
    search->odd =
        calloc(links->sources * links->targets + 2 * links->sources + links->targets + 1, sizeof *search->odd);
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
