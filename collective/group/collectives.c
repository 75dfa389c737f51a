/* The collectives of weft_coll.h on a group that is up. */
#include <errno.h>
#include <stdlib.h>

#include "collective/group/group.h"
#include "collective/reduce/reduce.h"

/* --- what is wrong with it --- */

/* Elements of `in` and of `out`, in counts. */
static uint64_t in_parts(const struct wf_ask *ask)
{
    return ask->kind == WEFT_REDUCE_SCATTER || ask->kind == WEFT_ALL_TO_ALL ? ask->size : 1;
}

static uint64_t out_parts(const struct wf_ask *ask)
{
    return ask->kind == WEFT_ALL_GATHER || ask->kind == WEFT_ALL_TO_ALL ? ask->size : 1;
}

static bool reads(const struct wf_ask *ask)
{
    return ask->kind != WEFT_BROADCAST || ask->rank == ask->root;
}

static bool in_place(const struct wf_ask *ask, uint64_t bytes)
{
    const char *in = ask->in, *out = ask->out;
    if (ask->kind == WEFT_REDUCE_SCATTER)
        in += ask->rank * bytes;
    if (ask->kind == WEFT_ALL_GATHER)
        out += ask->rank * bytes;
    return in == out;
}

static int check_memory(const struct wf_ask *ask, const char *call, struct weft_error *err)
{
    uint64_t width = wf_reduce_width(ask->type), bytes = ask->count * width;
    uintptr_t in = (uintptr_t)ask->in, out = (uintptr_t)ask->out;
    if (ask->count > UINT64_MAX / 2 / width / ask->size)
        return wf_coll_refuse(err, -EINVAL, "%s: count %llu is more than any memory holds", call,
                              (unsigned long long)ask->count);
    if (ask->count == 0)
        return 0;
    if (!out || (!in && reads(ask)))
        return wf_coll_refuse(err, -EINVAL, "%s: %s is NULL", call, out ? "in" : "out");
    if ((reads(ask) && in % width != 0) || out % width != 0)
        return wf_coll_refuse(err, -EINVAL, "%s: %s is no address of elements of %llu bytes", call,
                              out % width ? "out" : "in", (unsigned long long)width);
    if (reads(ask) && !in_place(ask, bytes) && in < out + bytes * out_parts(ask) && out < in + bytes * in_parts(ask))
        return wf_coll_refuse(err, -EINVAL, "%s: in and out overlap, and not as the call works in place", call);
    return 0;
}

static int check(const struct weft_group *group, const struct wf_ask *ask, const struct wf_coll_way *way,
                 const char *call, struct weft_error *err)
{
    if (!group)
        return wf_coll_refuse(err, -EINVAL, "%s: group is NULL", call);
    if (wf_reduce_width(ask->type) == 0)
        return wf_coll_refuse(err, -EINVAL, "%s: there is no type %d", call, (int)ask->type);
    if ((unsigned)ask->op >= WF_REDUCE_OPS)
        return wf_coll_refuse(err, -EINVAL, "%s: there is no operation %d", call, (int)ask->op);
    if (ask->root >= ask->size)
        return wf_coll_refuse(err, -EINVAL, "%s: the root %u is no rank of a group of %u", call, ask->root, ask->size);
    if (!way->waits && way->timeout_ms < 0)
        return wf_coll_refuse(err, -EINVAL, "%s: timeout_ms is below 0", call);
    return check_memory(ask, call, err);
}

/* --- under way --- */

static void finish(struct wf_coll_operation *operation)
{
    struct weft_group *group = operation->group;
    struct weft_error err = {0};
    int result = wf_coll_stage_out(group->hub, operation->stage, &err);
    if (result < 0)
        wf_coll_fail(group, result, "%s could not copy a result to GPU memory: %.200s", group->places[group->rank].name,
                     err.text);
    else
        wf_coll_operation_end(operation, 0, operation->collective > 0 ? wf_op_bytes(operation->op) : 0);
}

void wf_coll_collective_advance(struct wf_coll_hub *hub, const struct wf_op *op)
{
    struct wf_coll_operation *operation = wf_coll_operation_of(hub, op);
    if (!operation || operation->ended)
        return;
    const struct weft_group *group = operation->group;
    if (group->status == 0)
        wf_op_advance(operation->op);
    if (group->status < 0 && wf_op_idle(op))
        wf_coll_operation_end(operation, group->status, 0);
    else if (group->status == 0 && wf_op_done(op))
        finish(operation);
}

int wf_coll_collectives_tend(struct wf_coll_hub *hub)
{
    int count = 0;
    for (struct wf_coll_operation *at = hub->operations; at; at = at->next)
        if (at->group->status == 0 && at->op && !at->ended && wf_op_stuck(at->op)) {
            wf_coll_collective_advance(hub, at->op);
            count += !wf_op_stuck(at->op);
        }
    return count;
}

void wf_coll_collectives_stop(struct weft_group *group)
{
    for (struct wf_coll_operation *at = group->hub->operations; at; at = at->next)
        if (at->group == group && at->op && !at->ended)
            wf_op_stop(at->op);
}

/* Begins `operation`, which was added; its stage is set. */
static int begin(struct wf_coll_operation *operation, const struct wf_ask *ask)
{
    struct weft_group *group = operation->group;
    int result = wf_op_create(ask, operation->order, &group->port, &operation->op);
    if (result < 0) {
        wf_coll_operation_undo(operation);
        return result;
    }
    wf_coll_judge_left(group);
    wf_coll_collective_advance(group->hub, operation->op);
    return 0;
}

int wf_coll_pass(struct weft_group *group, int timeout_ms, bool waited, void *user_data, struct wf_coll_operation **out)
{
    struct wf_coll_operation *operation = wf_coll_operation_add(group, timeout_ms, waited, user_data);
    if (!operation)
        return -ENOMEM;
    struct wf_ask ask = {
        .kind = WEFT_ALL_REDUCE,
        .type = WEFT_UINT8,
        .op = WEFT_MAX,
        .rank = group->rank,
        .size = group->size,
        .count = 1,
        .in = &operation->byte,
        .out = &operation->byte,
    };
    operation->barrier = group->barriers + 1;
    *out = operation;
    int result = begin(operation, &ask);
    group->barriers += result == 0;
    return result;
}

static int start(struct weft_group *group, const struct wf_ask *ask, const struct wf_coll_way *way,
                 struct wf_coll_operation **out, struct weft_error *err)
{
    struct wf_coll_stage *stage;
    struct wf_ask staged = *ask;
    int timeout_ms = way->timeout_ms > 0 || (way->waits && way->timeout_ms == 0) ? way->timeout_ms : -1;
    if (group->status < 0)
        return wf_coll_refuse(err, group->status, "%s", group->text);
    uint64_t bytes = ask->count * wf_reduce_width(ask->type);
    int result = wf_coll_stage_create(group->hub, &staged, reads(ask) ? bytes * in_parts(ask) : 0,
                                      bytes * out_parts(ask), &stage, err);
    if (result < 0)
        return result;
    struct wf_coll_operation *operation = wf_coll_operation_add(group, timeout_ms, way->waits, way->user_data);
    if (!operation) {
        wf_coll_stage_end(group->hub, stage);
        return wf_coll_refuse(err, -ENOMEM, "no memory for a collective");
    }
    operation->stage = stage;
    operation->collective = group->collectives + 1;
    *out = operation;
    result = begin(operation, &staged);
    group->collectives += result == 0;
    return result < 0 ? wf_coll_refuse(err, result, "no memory for a collective of %llu elements",
                                       (unsigned long long)ask->count)
                      : 0;
}

int wf_coll_collective(struct weft_group *group, struct wf_ask ask, struct wf_coll_way way, const char *call,
                       const char *name, struct weft_error *err)
{
    struct weft_error unused = {0};
    struct wf_coll_operation *operation = NULL;
    err = err ? err : &unused;
    ask.rank = weft_group_rank(group);
    ask.size = group ? group->size : 1;
    int result = check(group, &ask, &way, call, err);
    if (result < 0)
        return result;
    struct wf_coll_hub *hub = group->hub;
    pthread_mutex_lock(&hub->lock);
    result = start(group, &ask, &way, &operation, err);
    if (result == 0 && name)
        operation->name = name;
    if (result == 0 && way.waits)
        result = wf_coll_await(operation, err);
    else if (result == 0)
        wf_coll_drive(hub);
    wf_coll_unlock(hub);
    return result;
}

static int collective(struct weft_group *group, struct wf_ask ask, struct wf_coll_way way, const char *call,
                      struct weft_error *err)
{
    return wf_coll_collective(group, ask, way, call, NULL, err);
}

/* --- the calls --- */

int weft_group_all_reduce(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                          enum weft_op op, int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_REDUCE, .type = type, .op = op, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, true, NULL}, "weft_group_all_reduce", err);
}

int weft_group_all_reduce_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                enum weft_type type, enum weft_op op, int timeout_ms, void *user_data,
                                struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_REDUCE, .type = type, .op = op, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, false, user_data}, "weft_group_all_reduce_start",
                      err);
}

int weft_group_reduce_scatter(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                              enum weft_op op, int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_REDUCE_SCATTER, .type = type, .op = op, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, true, NULL}, "weft_group_reduce_scatter", err);
}

int weft_group_reduce_scatter_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                    enum weft_type type, enum weft_op op, int timeout_ms, void *user_data,
                                    struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_REDUCE_SCATTER, .type = type, .op = op, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, false, user_data}, "weft_group_reduce_scatter_start",
                      err);
}

int weft_group_all_gather(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                          int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_GATHER, .type = type, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, true, NULL}, "weft_group_all_gather", err);
}

int weft_group_all_gather_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                enum weft_type type, int timeout_ms, void *user_data, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_GATHER, .type = type, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, false, user_data}, "weft_group_all_gather_start",
                      err);
}

int weft_group_broadcast(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                         uint32_t root, int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_BROADCAST, .type = type, .root = root, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, true, NULL}, "weft_group_broadcast", err);
}

int weft_group_broadcast_start(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                               uint32_t root, int timeout_ms, void *user_data, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_BROADCAST, .type = type, .root = root, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, false, user_data}, "weft_group_broadcast_start",
                      err);
}

int weft_group_all_to_all(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                          int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_TO_ALL, .type = type, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, true, NULL}, "weft_group_all_to_all", err);
}

int weft_group_all_to_all_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                enum weft_type type, int timeout_ms, void *user_data, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_TO_ALL, .type = type, .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, false, user_data}, "weft_group_all_to_all_start",
                      err);
}

static uint32_t places(const struct weft_group *group, int by)
{
    int64_t size = group ? group->size : 1, rest = by % size;
    return (uint32_t)(rest < 0 ? rest + size : rest);
}

int weft_group_shift(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type, int by,
                     int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {
        .kind = WEFT_SHIFT, .type = type, .by = places(group, by), .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, true, NULL}, "weft_group_shift", err);
}

int weft_group_shift_start(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                           int by, int timeout_ms, void *user_data, struct weft_error *err)
{
    struct wf_ask ask = {
        .kind = WEFT_SHIFT, .type = type, .by = places(group, by), .count = count, .in = in, .out = out};
    return collective(group, ask, (struct wf_coll_way){timeout_ms, false, user_data}, "weft_group_shift_start", err);
}
