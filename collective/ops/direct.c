/* What nothing is added in: broadcasts by a chain and a tree, all-to-all and shift by pairs. */
#include "collective/ops/plan.h"

static uint32_t place_of(uint32_t rank, uint32_t root, uint32_t size)
{
    return (rank + size - root) % size;
}

/* --- chain: the root sends to the next, which passes on --- */

static void segments(struct wf_plan *plan)
{
    plan->segment = wf_plan_segment(plan);
    plan->lanes = (plan->ask.count + plan->segment - 1) / plan->segment;
}

/* Its first element. */
static uint64_t segment_of(const struct wf_plan *plan, uint64_t lane, uint64_t *count)
{
    uint64_t at = lane * plan->segment, left = plan->ask.count - at;
    *count = left < plan->segment ? left : plan->segment;
    return at;
}

static void take_or_keep(const struct wf_ask *ask, uint32_t from, uint64_t at, uint64_t count, uint64_t width,
                         struct wf_step *out)
{
    char *place = (char *)ask->out + at * width;
    if (from == WF_OPS_NOBODY) {
        out->left = (const char *)ask->in + at * width;
        out->result = place;
        out->count = count;
        return;
    }
    out->from = from;
    out->land = place;
    out->land_bytes = count * width;
}

static bool chain_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    uint32_t place = place_of(ask->rank, ask->root, ask->size);
    uint64_t count, at = segment_of(plan, lane, &count);
    (void)scratch;
    out->tag = 0;
    if (number == 0) {
        uint32_t before = (ask->rank + ask->size - 1) % ask->size;
        take_or_keep(ask, place > 0 ? before : WF_OPS_NOBODY, at, count, plan->width, out);
    } else if (number == 1 && place + 1 < ask->size) {
        out->to = (ask->rank + 1) % ask->size;
        out->send = (place > 0 ? (const char *)ask->out : (const char *)ask->in) + at * plan->width;
        out->send_bytes = count * plan->width;
    }
    return number < 2;
}

const struct wf_algorithm wf_chain = {"ring", segments, chain_step};

/* --- tree: place p gets it from p without its lowest bit --- */

static uint32_t lowest_bit(uint32_t place, uint32_t size)
{
    uint32_t bit = 1;
    while (place > 0 ? !(place & bit) : bit < size)
        bit *= 2;
    return bit;
}

uint32_t wf_tree_parent(uint32_t rank, uint32_t root, uint32_t size)
{
    uint32_t place = place_of(rank, root, size);
    return place == 0 ? WF_OPS_NOBODY : (place - lowest_bit(place, size) + root) % size;
}

/* Little ones at once, as in a doubling. */
static void little(struct wf_plan *plan)
{
    plan->segment = WF_PLAN_LITTLE_BYTES / plan->width;
    plan->lanes = (plan->ask.count + plan->segment - 1) / plan->segment;
}

static bool tree_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    uint32_t place = place_of(ask->rank, ask->root, ask->size);
    uint64_t count, at = segment_of(plan, lane, &count);
    (void)scratch;
    out->tag = 0;
    if (number == 0) {
        take_or_keep(ask, wf_tree_parent(ask->rank, ask->root, ask->size), at, count, plan->width, out);
        return true;
    }
    uint32_t reach = lowest_bit(place, ask->size) >> number;
    if (reach > 0 && place + reach < ask->size) {
        out->to = (ask->rank + reach) % ask->size;
        out->send = (place > 0 ? (const char *)ask->out : (const char *)ask->in) + at * plan->width;
        out->send_bytes = count * plan->width;
    }
    return reach > 0;
}

const struct wf_algorithm wf_tree = {"tree", little, tree_step};

/* --- pairs: to the one that is as many ranks on as the other one is back --- */

static void pairs(struct wf_plan *plan)
{
    plan->segment = plan->ask.count;
    plan->lanes = plan->ask.count == 0 ? 0 : plan->ask.kind == WEFT_ALL_TO_ALL ? plan->ask.size : 1;
}

static bool pairs_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    bool all = ask->kind == WEFT_ALL_TO_ALL;
    uint32_t by = all ? (uint32_t)lane : ask->by;
    uint32_t to = (uint32_t)(((uint64_t)ask->rank + by) % ask->size), from = (ask->rank + ask->size - by) % ask->size;
    uint64_t bytes = ask->count * plan->width;
    (void)scratch;
    take_or_keep(ask, by > 0 ? from : WF_OPS_NOBODY, all ? from * ask->count : 0, ask->count, plan->width, out);
    if (by == 0 && all)
        out->left = (const char *)ask->in + ask->rank * bytes;
    if (by > 0) {
        out->to = to;
        out->send = (const char *)ask->in + (all ? to * bytes : 0);
        out->send_bytes = bytes;
    }
    return number == 0;
}

const struct wf_algorithm wf_pairs = {"pairs", pairs, pairs_step};

/* --- alone: a group of one --- */

static void whole(struct wf_plan *plan)
{
    plan->segment = plan->ask.count;
    plan->lanes = plan->ask.count > 0;
}

static bool alone_step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    (void)scratch;
    take_or_keep(&plan->ask, WF_OPS_NOBODY, lane, plan->ask.count, plan->width, out);
    return number == 0;
}

const struct wf_algorithm wf_alone = {"copy", whole, alone_step};
