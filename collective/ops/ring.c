/*
 * Ring: every member sends to the next, and receives from the one before. The chunk of rank c starts at rank c + 1, and
 * is complete at rank c; then it goes round once more. A lane takes one segment of every chunk.
 */
#include "collective/ops/plan.h"

#define SLOTS 3 /* a partial sum is received, one is sent, and one is free for the step after */

static uint32_t back(const struct wf_plan *plan, uint32_t steps)
{
    uint32_t size = plan->ask.size;
    return (plan->ask.rank + 2 * size - steps % size) % size;
}

/* A lane's part of a chunk. */
struct part {
    uint64_t at, count; /* elements */
};

static struct part part_of(const struct wf_plan *plan, uint32_t chunk, uint64_t lane)
{
    uint64_t first = wf_plan_chunk(plan, chunk), end = wf_plan_chunk(plan, chunk + 1);
    uint64_t at = first + lane * plan->segment;
    if (at >= end)
        return (struct part){end, 0};
    return (struct part){at, end - at < plan->segment ? end - at : plan->segment};
}

static void lay(struct wf_plan *plan)
{
    const struct wf_ask *ask = &plan->ask;
    uint64_t most = ask->kind == WEFT_ALL_REDUCE ? ask->count / ask->size + (ask->count % ask->size > 0) : ask->count;
    plan->segment = wf_plan_segment(plan);
    plan->lanes = (most + plan->segment - 1) / plan->segment;
    plan->scratch = ask->kind == WEFT_ALL_GATHER ? 0 : SLOTS * plan->segment * plan->width;
}

/* Sends part `sent` of `from`, and receives part `landed`. */
static void around(const struct wf_plan *plan, const char *from, struct part sent, char *land, struct part landed,
                   struct wf_step *out)
{
    out->to = back(plan, plan->ask.size - 1);
    out->from = back(plan, 1);
    out->send = from;
    out->send_bytes = sent.count * plan->width;
    out->land = land;
    out->land_bytes = landed.count * plan->width;
}

static void reduce(const struct wf_plan *plan, uint64_t lane, uint32_t step, char *scratch, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    const char *in = ask->in;
    bool scatter = ask->kind == WEFT_REDUCE_SCATTER, last = step == ask->size - 2;
    struct part sent = part_of(plan, back(plan, 1 + step), lane), landed = part_of(plan, back(plan, 2 + step), lane);
    uint64_t slot = plan->segment * plan->width;
    char *land = scratch + step % SLOTS * slot;
    const char *from = step == 0 ? in + sent.at * plan->width
                       : scatter ? scratch + (step - 1) % SLOTS * slot
                                 : (char *)ask->out + sent.at * plan->width;
    around(plan, from, sent, land, landed, out);
    out->land_after = scatter && step >= SLOTS ? (int64_t)step - SLOTS + 1 : -1;
    uint64_t place = scatter ? lane * plan->segment : landed.at;
    out->result = scatter && !last ? land : (char *)ask->out + place * plan->width;
    out->left = land;
    out->right = in + landed.at * plan->width;
    out->count = landed.count;
    out->divide = last;
}

/* In an all-reduce, a part of what lands was sent from its place, in the step of the same number of the first round
 * (plan.h). */
static void gather(const struct wf_plan *plan, uint64_t lane, uint32_t step, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    bool own = step == 0 && ask->kind == WEFT_ALL_GATHER;
    struct part sent = part_of(plan, back(plan, step), lane), landed = part_of(plan, back(plan, step + 1), lane);
    const char *from = own ? (const char *)ask->in + lane * plan->segment * plan->width
                           : (const char *)ask->out + sent.at * plan->width;
    around(plan, from, sent, (char *)ask->out + landed.at * plan->width, landed, out);
}

static void keep_own(const struct wf_plan *plan, uint64_t lane, struct wf_step *out)
{
    const struct wf_ask *ask = &plan->ask;
    struct part own = part_of(plan, ask->rank, lane);
    out->left = (const char *)ask->in + lane * plan->segment * plan->width;
    out->result = (char *)ask->out + own.at * plan->width;
    out->count = own.count;
}

static bool step(const struct wf_plan *plan, uint64_t lane, uint32_t number, char *scratch, struct wf_step *out)
{
    uint32_t once = plan->ask.size - 1;
    switch (plan->ask.kind) {
    case WEFT_ALL_GATHER:
        if (number == once)
            keep_own(plan, lane, out);
        else if (number < once)
            gather(plan, lane, number, out);
        return number <= once;
    case WEFT_REDUCE_SCATTER:
        if (number < once)
            reduce(plan, lane, number, scratch, out);
        return number < once;
    default:
        if (number < once)
            reduce(plan, lane, number, scratch, out);
        else if (number < 2 * once)
            gather(plan, lane, number - once, out);
        return number < 2 * once;
    }
}

const struct wf_algorithm wf_ring = {"ring", lay, step};
