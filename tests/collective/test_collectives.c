/*
 * test_collectives.c: every collective, type and operation among processes, in place and not, against the reference, to
 * the bit; twice, the second time several at once.
 */
#include "group_support.h"
#include "inputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One collective at one member. */
struct call {
    struct reference what;
    enum inputs inputs;
    bool in_place;
    void *kept[16]; /* the inputs of all members */
    void *in, *out, *memory[2], *expected;
};

static uint64_t bytes_in(const struct call *call)
{
    return reference_in(&call->what) * weft_type_bytes(call->what.type);
}

static uint64_t bytes_out(const struct call *call)
{
    return reference_out(&call->what) * weft_type_bytes(call->what.type);
}

static void call_init(struct call *call, uint32_t rank)
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

static void call_fini(struct call *call)
{
    for (uint32_t i = 0; i < call->what.size; i++)
        free(call->kept[i]);
    free(call->memory[0]);
    free(call->memory[1]);
    free(call->expected);
}

/* Waits, or only starts: then `user_data` is the call. */
static int call_make(struct call *call, struct weft_group *group, bool waits, struct weft_error *err)
{
    const struct reference *w = &call->what;
    memcpy(call->in, call->kept[weft_group_rank(group)], bytes_in(call));
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

static void call_check(const struct call *call, uint32_t rank)
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

static bool reduces(int kind)
{
    return kind == WEFT_ALL_REDUCE || kind == WEFT_REDUCE_SCATTER;
}

/* All calls of one count, each with inputs of another kind in turn; `each` is called. */
static int for_all(struct group_process *process, uint64_t count, struct weft_group *group, struct weft_error *err,
                   int (*each)(struct weft_group *, struct call *, uint32_t number, struct weft_error *))
{
    uint32_t number = 0;
    for (int kind = 0; kind < 6; kind++)
        for (int type = 0; type < 7; type++)
            for (int op = 0; op < (reduces(kind) ? 4 : 1); op++, number++) {
                struct call call = {
                    .what = {.kind = (enum weft_collective)kind,
                             .type = (enum weft_type)type,
                             .op = (enum weft_op)op,
                             .size = process->size,
                             .root = number % process->size,
                             .by = (int)(number % 5) - 2,
                             .count = count},
                    .inputs = (enum inputs)((number + number / 3) % INPUTS_KINDS),
                    .in_place = number % 2,
                };
                int result = each(group, &call, number, err);
                if (result < 0)
                    return result;
            }
    return 0;
}

/* Twice: the bits are the reference's both times. */
static int make_twice(struct weft_group *group, struct call *call, uint32_t number, struct weft_error *err)
{
    int result = 0;
    uint32_t rank = weft_group_rank(group);
    (void)number;
    for (int round = 0; round < 2 && result == 0; round++) {
        call->in_place = !call->in_place;
        call_init(call, rank);
        result = call_make(call, group, true, err);
        if (result == 0)
            call_check(call, rank);
        call_fini(call);
    }
    return result;
}

static int one_after_the_other(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    uint64_t counts[] = {0, 1, process->size - 1, process->number};
    int result = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && result == 0; i++)
        result = for_all(process, counts[i], group, err, make_twice);
    return result;
}

static void with(uint32_t size, uint64_t count, const char *settings,
                 int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    struct group_world world;
    loop_note("%u members, %llu elements", size, (unsigned long long)count);
    group_world_create(&world, size, body);
    for (uint32_t i = 0; i < size; i++) {
        world.process[i].number = count;
        world.process[i].settings = settings;
    }
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

static void every_call(void)
{
    for (uint32_t size = 1; size <= 7; size++)
        with(size, LOOP_SANITIZED ? 1009 : 10007, NULL, one_after_the_other);
}

static void large(void)
{
    for (uint32_t size = 2; size <= 7; size++)
        with(size, 1000003, NULL, one_after_the_other);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest all[] = {
        LOOP_CASE(every_call, 110),
    };
    const struct CMUnitTest full[] = {
        LOOP_CASE(large, 1100),
    };
    if (argc > 1 && strcmp(argv[1], "large") == 0)
        return cmocka_run_group_tests(full, NULL, NULL);
    return cmocka_run_group_tests(all, NULL, NULL);
}
