/*
 * Doubling and halving: log2 N rounds with a partner each, whose number differs in one bit, the lowest first. In a
 * doubling both send all that they have; in a halving each sends the half that the other one keeps, and then gets the
 * rest back by the same way. Both add in the same order. Where N is no power of two, the first ranks are folded: an
 * even one gives all to the next, and gets the result at the end.
 */
#include "collective/ops/plan.h"

#define LAST_TAG 0xFFFF /* of what a folded rank gets back */

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

static void doubling_lay(struct wf_plan *plan)
{
    uint64_t bytes = elements(plan) * plan->width;
    plan->segment = elements(plan);
    plan->lanes = plan->ask.count > 0;
    plan->scratch = (plan->ask.kind == WEFT_REDUCE_SCATTER ? 3 : 2) * bytes;
}

static bool given_away(const struct wf_plan *plan, uint32_t number, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    if (number == 0) {
        send_to(out, ask->rank + 1, ask->in, elements(plan) * plan->width);
    } else {
        receive_from(out, ask->rank + 1, ask->out, ask->count * plan->width);
        out->land_after = 0;
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
    uint64_t count = elements(plan), bytes = count * plan->width, part = ask->count * plan->width;
    char *sum = scatter ? scratch + 2 * bytes : ask->out, *land = scratch + number % 2 * bytes;
    const char *so_far = number == 0 || (number == 1 && !fold.takes) ? ask->in : sum;
    (void)lane;
    if (fold.gives)
        return given_away(plan, number, out);
    if (number == 0 && fold.takes) {
        receive_from(out, ask->rank - 1, land, bytes);
        add(out, sum, so_far, land, false, count);
    } else if (number >= 1 && number <= fold.rounds) {
        uint32_t other = fold.place ^ 1u << (number - 1);
        send_to(out, rank_at(&fold, other), so_far, bytes);
        receive_from(out, rank_at(&fold, other), land, bytes);
        add(out, sum, so_far, land, fold.place < other, count);
        out->settle = true;
        out->divide = number == fold.rounds;
    } else if (number == fold.rounds + 1 && fold.takes) {
        send_to(out, ask->rank - 1, scatter ? sum + (ask->rank - 1) * part : sum, part);
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
    plan->segment = wf_plan_segment(plan, plan->ask.count);
    plan->lanes = (plan->ask.count + plan->segment - 1) / plan->segment;
    plan->scratch = 2 * plan->segment * plan->width;
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
    struct fold fold;
    struct range slice;
    uint64_t width;
};

static uint64_t bytes_of(const struct halving *h, struct range range)
{
    return (range.end - range.first) * h->width;
}

static void halve(const struct halving *h, uint32_t round, char *land, struct wf_step *out)
{
    const struct wf_ask *ask = &h->plan->ask;
    uint32_t place = h->fold.place, other = place ^ 1u << round, rank = rank_at(&h->fold, other);
    struct range keep = kept(h->slice, place, round + 1, false), give = kept(h->slice, place, round + 1, true);
    const char *so_far = round == 0 && !h->fold.takes ? ask->in : ask->out;
    send_to(out, rank, so_far + give.first * h->width, bytes_of(h, give));
    receive_from(out, rank, land, bytes_of(h, keep));
    add(out, (char *)ask->out + keep.first * h->width, so_far + keep.first * h->width, land, place < other,
        keep.end - keep.first);
    out->divide = round + 1 == h->fold.rounds;
}

/* What was given away in this round comes back, when its send has ended. */
static void get_back(const struct halving *h, uint32_t round, struct wf_step *out)
{
    char *all = h->plan->ask.out;
    uint32_t place = h->fold.place, rank = rank_at(&h->fold, place ^ 1u << round);
    struct range keep = kept(h->slice, place, round + 1, false), give = kept(h->slice, place, round + 1, true);
    send_to(out, rank, all + keep.first * h->width, bytes_of(h, keep));
    receive_from(out, rank, all + give.first * h->width, bytes_of(h, give));
    out->land_after = round + 1;
}

static bool halving_given_away(const struct halving *h, uint32_t number, struct wf_step *out)
{
    const struct wf_ask *ask = &h->plan->ask;
    uint64_t at = h->slice.first * h->width;
    if (number == 0) {
        send_to(out, ask->rank + 1, (const char *)ask->in + at, bytes_of(h, h->slice));
    } else {
        receive_from(out, ask->rank + 1, (char *)ask->out + at, bytes_of(h, h->slice));
        out->land_after = 0;
        out->tag = LAST_TAG;
    }
    return number < 2;
}

static bool halving_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    uint64_t first = lane * plan->segment, left = ask->count - first;
    const struct halving h = {
        .plan = plan,
        .fold = fold_of(ask),
        .slice = {first, first + (left < plan->segment ? left : plan->segment)},
        .width = plan->width,
    };
    char *land = scratch + number % 2 * plan->segment * plan->width, *own = (char *)ask->out + first * plan->width;
    uint32_t rounds = h.fold.rounds;
    if (h.fold.gives)
        return halving_given_away(&h, number, out);
    if (number == 0 && h.fold.takes) {
        receive_from(out, ask->rank - 1, land, bytes_of(&h, h.slice));
        add(out, own, (const char *)ask->in + first * plan->width, land, false, h.slice.end - first);
    } else if (number >= 1 && number <= rounds) {
        halve(&h, number - 1, land, out);
    } else if (number > rounds && number <= 2 * rounds) {
        get_back(&h, 2 * rounds - number, out);
    } else if (number == 2 * rounds + 1 && h.fold.takes) {
        send_to(out, ask->rank - 1, own, bytes_of(&h, h.slice));
        out->tag = LAST_TAG;
    }
    return number <= 2 * rounds + 1;
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
