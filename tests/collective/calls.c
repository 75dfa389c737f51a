#include "calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t bytes_in(const struct call *call)
{
    return reference_in(&call->what) * weft_type_bytes(call->what.type);
}

static uint64_t bytes_out(const struct call *call)
{
    return reference_out(&call->what) * weft_type_bytes(call->what.type);
}

void call_init(struct call *call, uint32_t rank)
{
    const struct reference *what = &call->what;
    uint64_t in = bytes_in(call), out = bytes_out(call), part = what->count * weft_type_bytes(what->type);
    for (uint32_t i = 0; i < what->size; i++) {
        call->kept[i] = malloc(in + 1);
        inputs_fill(call->inputs, what->type, call->kept[i], reference_in(what),
                    what->count * 31 + i * 7 + (uint64_t)what->type);
    }
    call->what.in = (const void *const *)call->kept;
    call->memory[0] = malloc((in > out ? in : out) + 1);
    call->memory[1] = call->in_place ? NULL : malloc(out + 1);
    call->expected = malloc(out + 1);
    call->in = call->out = call->memory[0];
    if (!call->in_place)
        call->out = call->memory[1];
    else if (what->kind == WEFT_ALL_GATHER)
        call->in = (char *)call->in + rank * part;
    else if (what->kind == WEFT_REDUCE_SCATTER)
        call->out = (char *)call->out + rank * part;
    reference_result(&call->what, rank, call->expected);
}

void call_fini(struct call *call)
{
    for (uint32_t i = 0; i < call->what.size; i++)
        free(call->kept[i]);
    free(call->memory[0]);
    free(call->memory[1]);
    free(call->expected);
}

int call_make(struct call *call, struct weft_group *group, bool waits, struct weft_error *err)
{
    memcpy(call->in, call->kept[weft_group_rank(group)], bytes_in(call));
    return call_post(call, group, waits, err);
}

int call_post(struct call *call, struct weft_group *group, bool waits, struct weft_error *err)
{
    const struct reference *w = &call->what;
    switch (w->kind) {
    case WEFT_ALL_REDUCE:
        return waits ? weft_group_all_reduce(group, call->in, call->out, w->count, w->type, w->op, GROUP_MS, err)
                     : weft_group_all_reduce_start(group, call->in, call->out, w->count, w->type, w->op, GROUP_MS, call,
                                                   err);
    case WEFT_REDUCE_SCATTER:
        return waits ? weft_group_reduce_scatter(group, call->in, call->out, w->count, w->type, w->op, GROUP_MS, err)
                     : weft_group_reduce_scatter_start(group, call->in, call->out, w->count, w->type, w->op, GROUP_MS,
                                                       call, err);
    case WEFT_ALL_GATHER:
        return waits ? weft_group_all_gather(group, call->in, call->out, w->count, w->type, GROUP_MS, err)
                     : weft_group_all_gather_start(group, call->in, call->out, w->count, w->type, GROUP_MS, call, err);
    case WEFT_BROADCAST:
        return waits ? weft_group_broadcast(group, call->in, call->out, w->count, w->type, w->root, GROUP_MS, err)
                     : weft_group_broadcast_start(group, call->in, call->out, w->count, w->type, w->root, GROUP_MS,
                                                  call, err);
    case WEFT_ALL_TO_ALL:
        return waits ? weft_group_all_to_all(group, call->in, call->out, w->count, w->type, GROUP_MS, err)
                     : weft_group_all_to_all_start(group, call->in, call->out, w->count, w->type, GROUP_MS, call, err);
    default:
        return waits
                   ? weft_group_shift(group, call->in, call->out, w->count, w->type, w->by, GROUP_MS, err)
                   : weft_group_shift_start(group, call->in, call->out, w->count, w->type, w->by, GROUP_MS, call, err);
    }
}

/* How far a sum may be from one in float64: each addition is rounded by half a unit in the last place of its result. */
static void check_error(const struct call *call, uint32_t rank)
{
    static const double epsilon[] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8};
    const struct reference *w = &call->what;
    uint64_t first = w->kind == WEFT_REDUCE_SCATTER ? rank * w->count : 0;
    if (w->kind > WEFT_REDUCE_SCATTER || w->op != WEFT_SUM || call->inputs == INPUTS_SPECIAL || w->type > WEFT_BFLOAT16)
        return;
    for (uint64_t i = 0; i < w->count; i++) {
        double sum = 0, size = 0, got = reference_read(w->type, call->out, i);
        for (uint32_t j = 0; j < w->size; j++) {
            double value = reference_read(w->type, call->kept[j], first + i);
            sum += value;
            size += fabs(value);
        }
        double bound = call->inputs == INPUTS_WHOLE ? 0 : (w->size + 1) * epsilon[w->type] * size + 0x1p-24;
        LOOP_CHECK(fabs(got - sum) <= bound, "element %llu of type %d: %.17g, and the sum is %.17g",
                   (unsigned long long)i, (int)w->type, got, sum);
    }
}

void call_check(const struct call *call, uint32_t rank)
{
    const struct reference *w = &call->what;
    LOOP_CHECK(memcmp(call->out, call->expected, bytes_out(call)) == 0,
               "collective %d of %llu elements of type %d, operation %d, by %u, %s: rank %u has another result",
               (int)w->kind, (unsigned long long)w->count, (int)w->type, (int)w->op, w->size,
               call->in_place ? "in place" : "not in place", rank);
    if (!call->in_place)
        LOOP_CHECK(memcmp(call->in, call->kept[rank], bytes_in(call)) == 0, "the input has changed");
    check_error(call, rank);
}
