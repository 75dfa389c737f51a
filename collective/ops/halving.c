/*
 * Doubling and halving: log2 N rounds with a partner each, whose number differs in one bit, the lowest first. In a
 * doubling both send all that they have, cut into little messages if it is small; in a halving each sends the half that
 * the other one keeps, and then gets the rest back by the same way. Both add in the same order. Where N is no power of
 * two, the first ranks are folded: an even one gives all to the next, and gets the result at the end.
 */
#include "collective/ops/plan.h"

#define SLICE_BYTES (1024 * 1024) /* of a halving's lane */
#define LAST_TAG 0xFFFF           /* of what a folded rank gets back */

struct fold {
    uint32_t power, rest; /* P and R of weft_coll.h */
    uint32_t place;       /* among the P */
    uint32_t rounds;      /* log2 P */
    bool gives, takes;
};

static struct fold fold_of(const struct wf_ask *ask)
{
    struct fold fold = {.power = 1};
    while (fold.power <= ask->size / 2) {
        fold.power *= 2;
        fold.rounds++;
    }
    fold.rest = ask->size - fold.power;
    bool folded = ask->rank < 2 * fold.rest;
    fold.gives = folded && ask->rank % 2 == 0;
    fold.takes = folded && ask->rank % 2 == 1;
    fold.place = folded ? ask->rank / 2 : ask->rank - fold.rest;
    return fold;
}

static uint32_t rank_at(const struct fold *fold, uint32_t place)
{
    return place < fold->rest ? 2 * place + 1 : place + fold->rest;
}

/* The result: own and landed, the lower rank's on the left. */
static void add(struct wf_step *out, char *result, const char *own, const char *landed, bool own_first, uint64_t count)
{
    out->result = result;
    out->left = own_first ? own : landed;
    out->right = own_first ? landed : own;
    out->count = count;
}

static void send_to(struct wf_step *out, uint32_t rank, const char *from, uint64_t bytes)
{
    out->to = rank;
    out->send = from;
    out->send_bytes = bytes;
}

static void receive_from(struct wf_step *out, uint32_t rank, char *land, uint64_t bytes)
{
    out->from = rank;
    out->land = land;
    out->land_bytes = bytes;
}

/* --- doubling --- */

static uint64_t elements(const struct wf_plan *plan)
{
    return plan->ask.kind == WEFT_REDUCE_SCATTER ? plan->ask.count * plan->ask.size : plan->ask.count;
}

/* Elements that a message may have which goes at once. */
static uint64_t little(const struct wf_plan *plan)
{
    return WF_PLAN_LITTLE_BYTES / plan->width;
}

static void doubling_lay(struct wf_plan *plan)
{
    bool scatter = plan->ask.kind == WEFT_REDUCE_SCATTER;
    bool cut = !scatter && elements(plan) <= WF_PLAN_SMALL_BYTES / plan->width;
    plan->segment = cut ? little(plan) : elements(plan);
    plan->lanes = (elements(plan) + plan->segment - 1) / plan->segment;
    plan->scratch = (scatter ? 3 : 2) * plan->segment * plan->width;
}

static bool given_away(const struct wf_plan *plan, uint64_t at, uint64_t count, uint32_t number, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    bool scatter = ask->kind == WEFT_REDUCE_SCATTER;
    if (number == 0) {
        send_to(out, ask->rank + 1, (const char *)ask->in + at * plan->width, count * plan->width);
    } else {
        receive_from(out, ask->rank + 1, (char *)ask->out + at * plan->width,
                     (scatter ? ask->count : count) * plan->width);
        out->tag = LAST_TAG;
    }
    return number < 2;
}

static bool doubling_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch,
                          struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    const struct fold fold = fold_of(ask);
    bool scatter = ask->kind == WEFT_REDUCE_SCATTER;
    uint64_t at = lane * plan->segment, left = elements(plan) - at, count = left < plan->segment ? left : plan->segment;
    uint64_t slot = plan->segment * plan->width, part = ask->count * plan->width, bytes = count * plan->width;
    const char *in = (const char *)ask->in + at * plan->width;
    char *sum = scatter ? scratch + 2 * slot : (char *)ask->out + at * plan->width, *land = scratch + number % 2 * slot;
    const char *so_far = number == 0 || (number == 1 && !fold.takes) ? in : sum;
    if (fold.gives)
        return given_away(plan, at, count, number, out);
    if (number == 0 && fold.takes) {
        receive_from(out, ask->rank - 1, land, bytes);
        add(out, sum, so_far, land, false, count);
    } else if (number >= 1 && number <= fold.rounds) {
        uint32_t other = fold.place ^ 1u << (number - 1);
        send_to(out, rank_at(&fold, other), so_far, bytes);
        receive_from(out, rank_at(&fold, other), land, bytes);
        add(out, sum, so_far, land, fold.place < other, count);
        out->settle = so_far == sum;
        out->divide = number == fold.rounds;
    } else if (number == fold.rounds + 1 && fold.takes) {
        send_to(out, ask->rank - 1, scatter ? sum + (ask->rank - 1) * part : sum, scatter ? part : bytes);
        out->tag = LAST_TAG;
    } else if (number == fold.rounds + 2 && scatter) {
        out->result = ask->out;
        out->left = sum + ask->rank * part;
        out->count = ask->count;
    }
    return number <= fold.rounds + 2;
}

const struct wf_algorithm wf_doubling = {"doubling", doubling_lay, doubling_step};

/* --- halving --- */

static void halving_lay(struct wf_plan *plan)
{
    plan->segment = SLICE_BYTES / plan->width;
    plan->lanes = (plan->ask.count + plan->segment - 1) / plan->segment;
    plan->segment = plan->lanes == 1 ? plan->ask.count : plan->segment;
    plan->scratch = 2 * (plan->segment + 1) / 2 * plan->width;
}

/* What is kept of a slice after `rounds` rounds; `other`: of the last one's partner. Elements of the array. */
struct range {
    uint64_t first, end;
};

static struct range kept(struct range slice, uint32_t place, uint32_t rounds, bool other)
{
    for (uint32_t i = 0; i < rounds; i++) {
        uint64_t middle = slice.first + (slice.end - slice.first) / 2;
        bool upper = (place >> i & 1) ^ (other && i + 1 == rounds);
        slice = upper ? (struct range){middle, slice.end} : (struct range){slice.first, middle};
    }
    return slice;
}

struct halving {
    const struct wf_plan *plan;
    struct range slice;
    uint32_t rounds;
};

/* The exchange of round `round`: own parts are those at `mine`, and the partner's parts come to `land`. */
static void exchange(const struct halving *h, uint32_t round, struct range give, const char *mine, struct range take,
                     char *land, struct wf_step *out)
{
    uint64_t width = h->plan->width;
    uint32_t partner = h->plan->ask.rank ^ 1u << round;
    send_to(out, partner, mine + give.first * width, (give.end - give.first) * width);
    receive_from(out, partner, land, (take.end - take.first) * width);
}

static void halve(const struct halving *h, uint32_t round, char *land, struct wf_step *out)
{
    const struct wf_ask *ask = &h->plan->ask;
    struct range keep = kept(h->slice, ask->rank, round + 1, false), give = kept(h->slice, ask->rank, round + 1, true);
    const char *so_far = round == 0 ? ask->in : ask->out;
    uint64_t at = keep.first * h->plan->width;
    exchange(h, round, give, so_far, keep, land, out);
    add(out, (char *)ask->out + at, so_far + at, land, !(ask->rank >> round & 1), keep.end - keep.first);
    out->divide = round + 1 == h->rounds;
}

/* What was given away in this round comes back. */
static void get_back(const struct halving *h, uint32_t round, struct wf_step *out)
{
    const struct wf_ask *ask = &h->plan->ask;
    struct range keep = kept(h->slice, ask->rank, round + 1, false), gave = kept(h->slice, ask->rank, round + 1, true);
    exchange(h, round, keep, ask->out, gave, (char *)ask->out + gave.first * h->plan->width, out);
}

static bool halving_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    uint64_t first = lane * plan->segment, left = plan->ask.count - first;
    const struct halving h = {
        .plan = plan,
        .slice = {first, first + (left < plan->segment ? left : plan->segment)},
        .rounds = fold_of(&plan->ask).rounds,
    };
    uint32_t rounds = h.rounds;
    if (number < rounds)
        halve(&h, number, scratch + number % 2 * ((plan->segment + 1) / 2) * plan->width, out);
    else if (number < 2 * rounds)
        get_back(&h, 2 * rounds - 1 - number, out);
    return number < 2 * rounds;
}

const struct wf_algorithm wf_halving = {"halving", halving_lay, halving_step};

/* --- all-gather --- */

/* Everybody has its own first, and in each round as many again, from the ranks after: at any number of members. */
static void gather_lay(struct wf_plan *plan)
{
    plan->segment = plan->ask.count;
    plan->lanes = plan->ask.count > 0;
    plan->scratch = plan->ask.count * plan->ask.size * plan->width;
}

static void copy_to(struct wf_step *out, char *result, const char *from, uint64_t count)
{
    out->result = result;
    out->left = from;
    out->count = count;
}

static bool gather_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    uint64_t part = ask->count * plan->width;
    uint32_t rounds = 0;
    (void)lane;
    while (1u << rounds < ask->size)
        rounds++;
    if (number == 0) {
        copy_to(out, scratch, ask->in, ask->count);
    } else if (number <= rounds) {
        uint32_t have = 1u << (number - 1), more = have < ask->size - have ? have : ask->size - have;
        send_to(out, (ask->rank + ask->size - have) % ask->size, scratch, more * part);
        receive_from(out, (ask->rank + have) % ask->size, scratch + have * part, more * part);
    } else if (number == rounds + 1) {
        copy_to(out, (char *)ask->out + ask->rank * part, scratch, ask->count * (ask->size - ask->rank));
    } else if (number == rounds + 2) {
        copy_to(out, ask->out, scratch + (ask->size - ask->rank) * part, ask->count * ask->rank);
    }
    return number <= rounds + 2;
}

const struct wf_algorithm wf_gather_doubling = {"doubling", gather_lay, gather_step};
