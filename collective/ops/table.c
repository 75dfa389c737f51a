/* Which algorithm serves what. */
#include <stdio.h>

#include "collective/ops/plan.h"
#include "collective/reduce/reduce.h"

#define SEGMENT_BYTES (512 * 1024) /* what a lane sends in a step */

/* Which numbers of members a row is for. */
enum members {
    ANY,
    PAIR,  /* 2 */
    HALVED /* a power of two, and more than 2: `up_to` is for each of them */
};

/* Rows of a kind stand together; the first one that has room for the bytes is taken. Bytes are those of the larger of
 * `in` and `out`. */
static const struct row {
    enum weft_collective kind;
    uint64_t up_to; /* bytes */
    enum members members;
    const struct wf_algorithm *algorithm;
} table[] = {
    {WEFT_ALL_REDUCE, WF_PLAN_SMALL_BYTES, ANY, &wf_doubling},
    {WEFT_ALL_REDUCE, 512 * 1024, PAIR, &wf_doubling}, /* sends as much as a ring, in one step */
    {WEFT_ALL_REDUCE, 128 * 1024, HALVED, &wf_halving}, /* above that, a ring keeps the rails at work */
    {WEFT_ALL_REDUCE, UINT64_MAX, ANY, &wf_ring},
    {WEFT_REDUCE_SCATTER, 8 * 1024, ANY, &wf_doubling},
    {WEFT_REDUCE_SCATTER, UINT64_MAX, ANY, &wf_ring},
    {WEFT_ALL_GATHER, 64 * 1024, ANY, &wf_gather_doubling},
    {WEFT_ALL_GATHER, UINT64_MAX, ANY, &wf_ring},
    {WEFT_BROADCAST, WF_PLAN_SMALL_BYTES, ANY, &wf_tree},
    {WEFT_BROADCAST, UINT64_MAX, ANY, &wf_chain},
    {WEFT_ALL_TO_ALL, UINT64_MAX, ANY, &wf_pairs},
    {WEFT_SHIFT, UINT64_MAX, ANY, &wf_pairs},
};

#define ROWS (sizeof table / sizeof table[0])

const char *wf_collective_name(enum weft_collective kind)
{
    static const char *const names[] = {"all-reduce", "reduce-scatter", "all-gather",
                                        "broadcast",  "all-to-all",     "shift"};
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "";
}

static bool is_for(const struct row *row, uint64_t bytes, uint32_t size)
{
    switch (row->members) {
    case PAIR:
        return size == 2 && bytes <= row->up_to;
    case HALVED:
        return size > 2 && (size & (size - 1)) == 0 && bytes <= row->up_to * size;
    default:
        return bytes <= row->up_to;
    }
}

const struct wf_algorithm *wf_plan_choose(enum weft_collective kind, uint64_t bytes, uint32_t size)
{
    if (size == 1 && wf_collective_name(kind)[0])
        return &wf_alone;
    for (size_t i = 0; i < ROWS; i++)
        if (table[i].kind == kind && is_for(&table[i], bytes, size))
            return table[i].algorithm;
    return NULL;
}

/* How many times `count` elements the larger array has. */
static uint64_t arrays(const struct wf_ask *ask)
{
    bool all = ask->kind == WEFT_REDUCE_SCATTER || ask->kind == WEFT_ALL_GATHER || ask->kind == WEFT_ALL_TO_ALL;
    return all ? ask->size : 1;
}

void wf_plan_init(struct wf_plan *plan, const struct wf_ask *ask)
{
    *plan = (struct wf_plan){.ask = *ask, .width = wf_reduce_width(ask->type)};
    plan->algorithm = wf_plan_choose(ask->kind, ask->count * arrays(ask) * plan->width, ask->size);
    if (ask->count > 0)
        plan->algorithm->lay(plan);
}

uint64_t wf_plan_segment(const struct wf_plan *plan)
{
    return SEGMENT_BYTES / plan->width;
}

uint64_t wf_plan_chunk(const struct wf_plan *plan, uint32_t rank)
{
    uint64_t count = plan->ask.count, size = plan->ask.size;
    if (plan->ask.kind != WEFT_ALL_REDUCE)
        return count * rank;
    return count / size * rank + count % size * rank / size;
}

/* --- for people --- */

uint64_t weft_type_bytes(enum weft_type type)
{
    return wf_reduce_width(type);
}

const char *weft_group_algorithm(enum weft_collective collective, uint64_t bytes, uint32_t size)
{
    const struct wf_algorithm *algorithm = wf_plan_choose(collective, bytes, size);
    return algorithm ? algorithm->name : "";
}

int weft_group_algorithms(char *text, uint64_t room)
{
    static const char *const members[] = {"", " (2 members)", " (for each of 4, 8, 16, ... members)"};
    char all[ROWS * 96] = "";
    size_t used = 0;
    for (size_t i = 0; i < ROWS; i++) {
        char bytes[40] = "more";
        if (table[i].up_to != UINT64_MAX)
            snprintf(bytes, sizeof bytes, "up to %llu bytes", (unsigned long long)table[i].up_to);
        else if (i == 0 || table[i - 1].kind != table[i].kind)
            snprintf(bytes, sizeof bytes, "any");
        used +=
            (size_t)snprintf(all + used, sizeof all - used, "%-14s  %-19s  %s%s\n", wf_collective_name(table[i].kind),
                             bytes, table[i].algorithm->name, members[table[i].members]);
    }
    return snprintf(text, text ? room : 0, "%s", all);
}
