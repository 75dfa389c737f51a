/* One-sided operations under a schedule: writes, reads, lists, notifications, keys that are wrong and registrations
 * that end in the middle. Each operation has a slot of its own in the peer's memory, so that every byte there is known:
 * untouched, or the operation's. */
#include "model_remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/calls/registering.h"
#include "core/device/registration.h"

#define POISON 0xA5
#define RUINED 0x11
#define SLOT_EXTRA 256 /* room for gaps between pieces */

static uint8_t content(const struct model_world *world, const struct model_op *op, uint64_t at)
{
    uint64_t mixed = (world->seed * 77 + op->id) * 0x9E3779B97F4A7C15ull + at / 4 * 0xC2B2AE3D27D4EB4Full;
    mixed ^= mixed >> 31;
    return (uint8_t)(0x40 | ((mixed >> (at % 4 * 8)) & 0x3f)); /* never POISON, never RUINED */
}

static uint64_t slot_bytes(const struct model_world *world)
{
    return world->remote_largest + SLOT_EXTRA;
}

static uint8_t *slot_of(const struct model_world *world, const struct model_side *side, const struct model_op *op)
{
    return side->regions[op->region].memory + (uint64_t)op->index * slot_bytes(world);
}

/* How many bytes of the operation are as `wanted` says: 1 its content, 0 untouched; -1 where some are neither. */
static int64_t count_remote(const struct model_world *world, const struct model_side *side, const struct model_op *op)
{
    const uint8_t *slot = slot_of(world, side, op);
    int64_t here = 0;
    uint64_t at = 0;
    for (int i = 0; i < op->piece_count; i++)
        for (uint64_t byte = 0; byte < op->pieces[i].length; byte++, at++) {
            uint8_t found = slot[op->pieces[i].remote - op->start + byte];
            if (found == content(world, op, at))
                here += 1;
            else if (found != POISON)
                return -1;
        }
    return here;
}

static void fill(const struct model_world *world, const struct model_op *op, uint8_t *memory, bool remote)
{
    uint64_t at = 0;
    for (int i = 0; i < op->piece_count; i++)
        for (uint64_t byte = 0; byte < op->pieces[i].length; byte++, at++)
            memory[(remote ? op->pieces[i].remote - op->start : op->pieces[i].local) + byte] = content(world, op, at);
}

/* --- regions --- */

void model_remote_open(struct model_world *world)
{
    world->remote_largest = world->largest < 12000 ? world->largest : 12000;
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            struct model_side *remote = &world->sides[connection][side];
            memset(remote, 0, sizeof *remote);
            for (int i = 0; i < MODEL_REGIONS; i++) {
                struct model_region *region = &remote->regions[i];
                region->bytes = slot_bytes(world) * MODEL_OPS;
                region->base = model_memory_take(world, 1 - side, region->bytes, &region->memory);
                memset(region->memory, POISON, region->bytes);
                int result = weft_register(world->nodes[1 - side].context, region->base, region->bytes,
                                           &region->registration, NULL);
                MODEL_CHECK(result == 0, result);
            }
        }
}

/* Once nobody uses an ended registration its memory is the user's: from then on it must not change. */
static void watch_ended(struct model_region *region)
{
    if (!region->registration || !region->ended || region->given_back ||
        atomic_load(&region->registration->uses) != WF_REGISTRATION_ENDED)
        return;
    region->given_back = true;
    memset(region->memory, RUINED, region->bytes);
}

void model_remote_close(struct model_world *world)
{
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++)
            for (int i = 0; i < MODEL_REGIONS; i++) {
                struct model_region *region = &world->sides[connection][side].regions[i];
                if (!region->registration)
                    continue;
                uint32_t uses = atomic_load(&region->registration->uses);
                MODEL_CHECK((uses & ~WF_REGISTRATION_ENDED) == 0, uses);
                weft_deregister(region->registration);
                region->registration = NULL;
            }
}

/* --- posting --- */

/* Cuts the operation into pieces: in order at the far side, in reverse order here, with gaps. */
static uint64_t cut(struct model_world *world, struct model_op *op)
{
    uint64_t left = op->size, remote = op->start, local = 0;
    op->piece_count = op->listed ? 1 + (int)model_pick(world, MODEL_PIECES) : 1;
    for (int i = 0; i < op->piece_count; i++) {
        bool last = i + 1 == op->piece_count;
        op->pieces[i].length = last ? left : model_pick(world, left + 1);
        left -= op->pieces[i].length;
        remote += op->listed ? model_pick(world, 4) : 0;
        op->pieces[i].remote = remote;
        remote += op->pieces[i].length;
    }
    for (int i = op->piece_count - 1; i >= 0; i--) {
        local += op->listed ? model_pick(world, 4) : 0;
        op->pieces[i].local = local;
        local += op->pieces[i].length;
    }
    return local;
}

static int post_plain(struct model_op *op, struct model_side *side, uint64_t key, const struct weft_options *options)
{
    if (op->reading)
        return weft_read(side->asker, op->memory, op->size, key, op->pieces[0].remote, options, &op->request);
    return weft_write(side->asker, op->memory, op->size, key, op->pieces[0].remote, options, &op->request);
}

static int post_list(struct model_op *op, struct model_side *side, uint64_t key, const struct weft_options *options)
{
    uint64_t count = (uint64_t)op->piece_count;
    if (op->reading)
        return weft_read_list(side->asker, op->memory, op->pieces, count, key, options, &op->request);
    return weft_write_list(side->asker, op->memory, op->pieces, count, key, options, &op->request);
}

static void post(struct model_world *world, int from, struct model_side *side, struct model_op *op)
{
    struct model_region *region = &side->regions[op->region];
    uint64_t key = weft_registration_key(region->registration);
    struct weft_options options = {0};
    if (op->wrong == MODEL_WRONG_KEY)
        key += 1;
    if (op->notifies) {
        op->note = malloc(op->note_size + 1);
        for (uint32_t at = 0; at < op->note_size; at++)
            op->note[at] = content(world, op, at + 7);
        options = (struct weft_options){
            .flags = WEFT_NOTIFY, .notify_tag = op->id, .notify_data = op->note, .notify_length = op->note_size};
    }
    int result = op->listed ? post_list(op, side, key, &options) : post_plain(op, side, key, &options);
    MODEL_CHECK(result == 0 || model_excused(world, from, result), result);
    if (result == 0)
        return;
    op->request = NULL;
    op->ended = true;
    op->status = result;
}

static void act_post(struct model_world *world, int connection, int from)
{
    struct model_side *side = &world->sides[connection][from];
    if (side->op_count == MODEL_OPS)
        return;
    struct model_op *op = &side->ops[side->op_count];
    *op = (struct model_op){.index = side->op_count, .id = (uint64_t)((connection * 2 + from) * 100 + side->op_count)};
    side->op_count += 1;
    side->asker = world->connections[connection][from];
    op->reading = model_pick(world, 2);
    op->listed = model_pick(world, 3) == 0;
    op->notifies = model_pick(world, 2);
    op->note_size = (uint32_t)(model_pick(world, 3) ? model_pick(world, 200) : model_pick(world, 9000));
    op->region = (int)model_pick(world, MODEL_REGIONS);
    op->size = model_pick(world, 4) ? model_pick(world, world->remote_largest + 1) : model_pick(world, 3);
    op->wrong = model_pick(world, 10) == 0 ? MODEL_WRONG_KEY : model_pick(world, 10) == 0 ? MODEL_WRONG_PLACE : 0;
    struct model_region *region = &side->regions[op->region];
    op->start = (uint64_t)op->index * slot_bytes(world);
    if (op->wrong == MODEL_WRONG_PLACE)
        op->start = region->bytes + 1;
    op->late = region->ended;
    uint64_t span = cut(world, op);
    op->room = span + 16;
    op->memory = model_memory_take(world, from, op->room, &op->local);
    memset(op->local, POISON, op->room);
    if (op->reading && !op->wrong && !region->given_back)
        fill(world, op, slot_of(world, side, op), true);
    else if (!op->reading)
        fill(world, op, op->local, false);
    post(world, from, side, op);
}

static void act_cancel(struct model_world *world, struct model_side *side)
{
    if (side->op_count == 0)
        return;
    struct model_op *op = &side->ops[model_pick(world, (uint64_t)side->op_count)];
    if (!op->request)
        return;
    op->cancelled = true;
    weft_cancel(op->request);
}

/* The owner of the memory ends a registration while the peer may be using it. */
static void act_end_region(struct model_world *world, struct model_side *side)
{
    struct model_region *region = &side->regions[MODEL_REGIONS - 1];
    if (region->ended || model_pick(world, 4))
        return;
    region->ended = true;
    wf_registration_end(region->registration);
}

static void post_note_receive(struct model_world *world, int connection, int from, bool tight)
{
    struct model_side *side = &world->sides[connection][from];
    if (side->receive_count == MODEL_NOTE_RECEIVES)
        return;
    struct model_note_receive *receive = &side->receives[side->receive_count++];
    receive->capacity = tight ? (uint32_t)model_pick(world, 100) : 9000;
    receive->memory = model_memory_take(world, 1 - from, receive->capacity + 16, &receive->data);
    memset(receive->data, POISON, receive->capacity + 16);
    int result = weft_recv_notification(world->connections[connection][1 - from], receive->memory, receive->capacity,
                                        NULL, &receive->request);
    MODEL_CHECK(result == 0 || model_excused(world, 1 - from, result), result);
    if (result < 0)
        receive->request = NULL;
}

void model_remote_act(struct model_world *world)
{
    int connection = (int)model_pick(world, (uint64_t)world->connection_count), from = (int)model_pick(world, 2);
    struct model_side *side = &world->sides[connection][from];
    uint64_t what = model_pick(world, 100);
    if (what < 60)
        act_post(world, connection, from);
    else if (what < 80 && side->receive_count < MODEL_OPS)
        post_note_receive(world, connection, from, model_pick(world, 20) == 0);
    else if (what < 95)
        act_cancel(world, side);
    else
        act_end_region(world, side);
}

/* --- completions --- */

static void check_write(const struct model_world *world, const struct model_side *side, const struct model_op *op)
{
    if (side->regions[op->region].given_back || op->wrong)
        return;
    int64_t here = count_remote(world, side, op);
    /* A copy that has not ended may have left anything so far. */
    bool copying = world->devices && (world->failing || world->nodes[0].context || world->nodes[1].context);
    MODEL_CHECK(here >= 0 || (op->status < 0 && (model_faults_damaged(world) || copying)), op->id);
    if (op->status == 0)
        MODEL_CHECK((uint64_t)here == op->size, here);
}

static void check_read(const struct model_world *world, const struct model_op *op)
{
    uint64_t at = 0;
    for (int i = 0; i < op->piece_count; i++)
        for (uint64_t byte = 0; byte < op->pieces[i].length; byte++, at++) {
            uint8_t found = op->local[op->pieces[i].local + byte];
            bool excused = op->status < 0 && (found == POISON || model_faults_damaged(world) || world->failing);
            MODEL_CHECK(found == content(world, op, at) || excused, op->id);
        }
    for (uint64_t margin = op->room - 16; margin < op->room; margin++)
        MODEL_CHECK(op->local[margin] == POISON, op->id);
}

static bool expected_status(const struct model_world *world, int from, const struct model_side *side,
                            const struct model_op *op)
{
    bool empty_list = op->listed && op->size == 0; /* there is no place that could be wrong */
    if (model_excused(world, from, op->status) || (op->status == -ESHUTDOWN && world->abrupt))
        return true;
    if (op->status == -EIO && world->failing)
        return true;
    if (op->status == -ECANCELED) /* or the receive of its notification was */
        return op->cancelled || (world->abrupt && op->notifies);
    if (op->wrong == MODEL_WRONG_KEY)
        return op->status == -EACCES;
    if (op->wrong == MODEL_WRONG_PLACE && !empty_list)
        return op->status == -ERANGE || (op->status == -EACCES && side->regions[op->region].ended);
    if (op->late)
        return op->status == -EACCES;
    return op->status == 0 || (op->status == -EACCES && side->regions[op->region].ended);
}

/* The owner is told of a read: where that ends with a copy to a device, the copy has ended, and well. */
static void check_told(const struct model_world *world, const struct model_op *op)
{
    uint64_t at = 0;
    if (op->memory == op->local)
        return;
    MODEL_CHECK(!(op->ended && op->status == -EIO), op->id);
    for (int i = 0; i < op->piece_count && !op->ended; i++)
        for (uint64_t byte = 0; byte < op->pieces[i].length; byte++, at++)
            MODEL_CHECK(op->local[op->pieces[i].local + byte] == content(world, op, at) || model_faults_damaged(world),
                        op->id);
}

static void op_done(struct model_world *world, int from, struct model_side *side, struct model_op *op,
                    const struct weft_completion *completion)
{
    op->request = NULL;
    op->ended = true;
    op->status = completion->status;
    world->ended += 1;
    MODEL_CHECK(expected_status(world, from, side, op), op->status);
    MODEL_CHECK(completion->connection == side->asker, op->id);
    if (op->status == 0)
        MODEL_CHECK(completion->bytes == op->size, completion->bytes);
    if (op->reading)
        check_read(world, op);
    else
        check_write(world, side, op);
    memset(op->local, op->reading ? POISON : RUINED, op->room); /* from here on it is ours again */
    if (op->note)
        memset(op->note, RUINED, op->note_size);
}

static struct model_op *op_of(struct model_side *side, uint64_t id)
{
    for (int i = 0; i < side->op_count; i++)
        if (side->ops[i].id == id)
            return &side->ops[i];
    return NULL;
}

static void note_done(struct model_world *world, int from, struct model_side *side, struct model_note_receive *receive,
                      const struct weft_completion *completion)
{
    receive->request = NULL;
    world->ended += 1;
    struct model_op *op = op_of(side, completion->tag);
    if (model_excused(world, 1 - from, completion->status))
        return;
    if (world->abrupt && (completion->status == -ESHUTDOWN || completion->status == -ECANCELED))
        return;
    if (completion->status == -ECANCELED) { /* by its user, or the asker gave the notification up on its way */
        const struct model_notice *given_up = model_notice_of(side, completion->tag);
        MODEL_CHECK(receive->cancelled || (op && op->cancelled) || (given_up && given_up->cancelled),
                    receive->capacity);
        return;
    }
    struct model_notice *notice = model_notice_of(side, completion->tag);
    if (notice) {
        model_notice_told(world, side, notice, receive, completion);
        return;
    }
    MODEL_CHECK(op && op->notifies, completion->tag);
    MODEL_CHECK(op->notified == 0, op->notified);
    op->notified += completion->status != -EMSGSIZE; /* else it waits for the next receive */
    MODEL_CHECK(!op->wrong || op->size == 0, op->id);
    if (completion->status == -EMSGSIZE) {
        MODEL_CHECK(op->note_size > receive->capacity && completion->bytes == op->note_size, op->note_size);
        return;
    }
    if (completion->status == -EIO && world->failing) /* it came, and could not be copied to its receive */
        return;
    MODEL_CHECK(completion->status == 0 && completion->bytes == op->note_size, completion->status);
    for (uint32_t at = 0; at < op->note_size; at++)
        MODEL_CHECK(receive->data[at] == content(world, op, at + 7), at);
    /* What it announces is in place. */
    if (op->reading)
        check_told(world, op);
    if (!op->reading && !side->regions[op->region].given_back && !op->wrong)
        MODEL_CHECK((uint64_t)count_remote(world, side, op) == op->size, op->id);
}

void model_remote_collect(struct model_world *world, int connection, int from)
{
    struct model_side *side = &world->sides[connection][from];
    struct weft_completion completion;
    for (int i = 0; i < side->op_count; i++)
        if (side->ops[i].request && weft_test(side->ops[i].request, &completion))
            op_done(world, from, side, &side->ops[i], &completion);
    for (int i = 0; i < side->receive_count; i++)
        if (side->receives[i].request && weft_test(side->receives[i].request, &completion))
            note_done(world, from, side, &side->receives[i], &completion);
    model_notices_collect(world, connection, from);
    for (int i = 0; i < MODEL_REGIONS; i++)
        watch_ended(&side->regions[i]);
}

/* --- the end --- */

/* Notifications that must still come: of what has succeeded. Others may, while their operation has not ended. */
static bool all_ended(const struct model_side *side, bool *owed)
{
    bool ended = true;
    *owed = false;
    for (int i = 0; i < side->op_count; i++) {
        const struct model_op *op = &side->ops[i];
        ended &= op->ended;
        *owed |= op->notifies && op->ended && op->status == 0 && op->notified == 0;
    }
    *owed |= model_notices_owed(side);
    return ended && model_notices_ended(side);
}

bool model_remote_all_ended(const struct model_world *world, int connection, int from)
{
    const struct model_side *side = &world->sides[connection][from];
    bool ended = model_notices_ended(side);
    for (int i = 0; i < side->op_count; i++)
        ended &= side->ops[i].ended;
    for (int i = 0; i < side->receive_count; i++)
        ended &= side->receives[i].request == NULL;
    return ended;
}

/* As weft_deregister() would, were its context there still. */
static void free_ended(struct model_world *world, int node, struct weft_registration *registration)
{
    for (int rail = 0; registration->loans && rail < world->faults.rail_count[node]; rail++)
        if (registration->loans[rail].handle)
            wf_cards_sim.take_back(world->cards, &registration->loans[rail]);
    free(registration->loans);
    free(registration);
}

/* What the peer had written so far stays; from here on nobody may write. */
static void give_back(struct model_world *world, int node, struct model_region *region)
{
    if (region->ended) /* else it went with its context */
        free_ended(world, node, region->registration);
    region->registration = NULL;
    region->ended = region->given_back = true;
    memset(region->memory, RUINED, region->bytes);
}

void model_remote_forget(struct model_world *world, int node)
{
    for (int connection = 0; connection < world->connection_count; connection++) {
        struct model_side *own = &world->sides[connection][node], *other = &world->sides[connection][1 - node];
        for (int i = 0; i < own->op_count; i++) {
            own->ops[i].request = NULL;
            own->ops[i].ended = true;
            own->ops[i].status = -ESHUTDOWN;
            memset(own->ops[i].local, own->ops[i].reading ? POISON : RUINED, own->ops[i].room);
        }
        model_notices_forget(own);
        for (int i = 0; i < other->receive_count; i++)
            other->receives[i].request = NULL;
        for (int i = 0; i < MODEL_REGIONS; i++)
            give_back(world, node, &other->regions[i]);
    }
}

bool model_remote_drain(struct model_world *world, int connection, int from)
{
    struct model_side *side = &world->sides[connection][from];
    bool owed, ended = all_ended(side, &owed);
    int waiting = 0;
    for (int i = 0; i < side->receive_count; i++)
        waiting += side->receives[i].request != NULL;
    if (ended && !owed) {
        for (int i = 0; i < side->receive_count; i++)
            if (side->receives[i].request && !side->receives[i].cancelled) {
                side->receives[i].cancelled = true;
                weft_cancel(side->receives[i].request);
            }
        return waiting == 0;
    }
    if (waiting == 0) {
        MODEL_CHECK(side->receive_count < MODEL_NOTE_RECEIVES, side->receive_count);
        post_note_receive(world, connection, from, false);
    }
    return false;
}

static void judge_region(const struct model_world *world, struct model_side *side, int index)
{
    struct model_region *region = &side->regions[index];
    if (region->given_back) {
        for (uint64_t at = 0; at < region->bytes; at++)
            MODEL_CHECK(region->memory[at] == RUINED, at);
        return;
    }
    for (int i = 0; i < side->op_count; i++) {
        struct model_op *op = &side->ops[i];
        if (op->region != index || op->wrong)
            continue;
        if (!op->reading)
            check_write(world, side, op);
        uint64_t slot = slot_bytes(world);
        for (int piece = 0; piece < op->piece_count; piece++) /* what was judged is as if untouched */
            memset(slot_of(world, side, op) + (op->pieces[piece].remote - op->start), POISON, op->pieces[piece].length);
        (void)slot;
    }
    for (uint64_t at = 0; at < region->bytes; at++)
        MODEL_CHECK(region->memory[at] == POISON, at);
}

void model_remote_judge(struct model_world *world)
{
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int from = 0; from < 2; from++) {
            struct model_side *side = &world->sides[connection][from];
            for (int i = 0; i < MODEL_REGIONS; i++)
                judge_region(world, side, i);
            for (int i = 0; i < side->op_count; i++) {
                const struct model_op *op = &side->ops[i];
                if (op->reading)
                    for (uint64_t at = 0; at < op->room; at++)
                        MODEL_CHECK(op->local[at] == POISON, op->id);
            }
        }
}

void model_remote_free(struct model_world *world)
{
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int from = 0; from < 2; from++) {
            struct model_side *side = &world->sides[connection][from];
            for (int i = 0; i < side->op_count; i++) {
                model_memory_give(world, side->ops[i].memory);
                free(side->ops[i].note);
            }
            model_notices_free(side);
            for (int i = 0; i < side->receive_count; i++)
                model_memory_give(world, side->receives[i].memory);
            for (int i = 0; i < MODEL_REGIONS; i++)
                model_memory_give(world, side->regions[i].base);
        }
}
