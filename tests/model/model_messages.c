#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/request/queue.h"
#include "model_remote.h"

#define POISON 0xA5
#define MARGIN 16
#define LITTLE 300       /* some messages are smaller than this, also where that is more than world.largest */
#define EXACT UINT64_MAX /* the mask of a receive for one tag */

/* --- the reference's data: every message has bytes of its own --- */

static uint8_t content(const struct model_world *world, int connection, int side, int index, uint32_t at)
{
    uint64_t mixed = world->seed * 31 + (uint64_t)(connection * 2 + side);
    mixed = (mixed * 1000003 + (uint64_t)index) * 0x9E3779B97F4A7C15ull;
    mixed ^= (at / 8) * 0xC2B2AE3D27D4EB4Full;
    mixed ^= mixed >> 29;
    mixed *= 0xBF58476D1CE4E5B9ull;
    return (uint8_t)((mixed ^ (mixed >> 32)) >> (at % 4 * 8));
}

static bool is_content(const struct model_world *world, int connection, int side, int index, const uint8_t *data,
                       uint32_t size)
{
    for (uint32_t at = 0; at < size; at++)
        if (data[at] != content(world, connection, side, index, at))
            return false;
    return true;
}

static bool is_poison(const uint8_t *data, uint64_t size)
{
    for (uint64_t at = 0; at < size; at++)
        if (data[at] != POISON)
            return false;
    return true;
}

static uint32_t draw_size(struct model_world *world)
{
    switch (model_pick(world, 5)) {
    case 0:
        return (uint32_t)model_pick(world, 4);
    case 1:
        return (uint32_t)model_pick(world, LITTLE);
    case 2:
        return world->largest;
    default:
        return (uint32_t)model_pick(world, world->largest + 1);
    }
}

/* --- posting --- */

/* Bits for one post that no draw of other things sees. */
static uint64_t bits_of(const struct model_world *world, int what, int connection, int side, int index)
{
    return model_bits(world, 100000u * (uint64_t)what + (uint64_t)((connection * 2 + side) * 1000 + index));
}

enum { BITS_SYNC = 1, BITS_MASK, BITS_PROBE, BITS_NOTICE };

/* Of some requests, not of the last ones; they may end in -ETIMEDOUT. 0: none. */
static int32_t draw_deadline(struct model_world *world, const struct model_lane *lane, bool *has_one)
{
    if (!world->timed || lane->last_sent || model_pick(world, 12) != 0)
        return 0;
    *has_one = true;
    return 1 + (int32_t)model_pick(world, 60);
}

static void post_send(struct model_world *world, int connection, int side, uint32_t size, uint64_t tag)
{
    struct model_lane *lane = &world->lanes[connection][side];
    int index = lane->send_count++;
    struct model_send *send = &lane->sends[index];
    *send = (struct model_send){.size = size, .tag = tag, .taken_by = -1};
    send->memory = model_memory_take(world, side, size + 1, &send->data);
    for (uint32_t at = 0; at < size; at++)
        send->data[at] = content(world, connection, side, index, at);
    memcpy(&send->look, send->data, size < sizeof send->look ? size : sizeof send->look);
    send->sync = world->seed % 2 && bits_of(world, BITS_SYNC, connection, side, index) % 3 == 0;
    struct weft_options options = {
        .flags = send->sync ? WEFT_SYNC : 0, .queue = world->nodes[side].queue, .user_data = send};
    options.timeout_ms = draw_deadline(world, lane, &send->cancelled);
    int result = model_vector_send(world, side, lane->sender, send, &options);
    MODEL_CHECK(result == 0 || model_excused(world, side, result), result);
    send->status = result;
    send->posted = result == 0;
    if (result < 0)
        send->request = NULL;
}

static uint32_t flags_for(uint64_t mask)
{
    return mask == EXACT ? 0 : mask == 0 ? WEFT_ANY_TAG : WEFT_TAG_MASK;
}

/* What a receive would take if it were posted now. */
static void probe(struct model_world *world, struct model_lane *lane, int side, struct model_receive *receive)
{
    struct weft_options options = {.flags = flags_for(receive->mask), .tag_mask = receive->mask};
    struct weft_message message;
    int result = weft_probe(lane->receiver, receive->tag, &options, &message);
    MODEL_CHECK(result >= 0 || model_excused(world, 1 - side, result), result);
    if (result != 1)
        return;
    MODEL_CHECK(message.connection == lane->receiver && message.reserved == 0, message.tag);
    MODEL_CHECK(model_fits(receive, message.tag), message.tag);
    receive->probed = true;
    receive->probed_tag = message.tag;
    receive->probed_bytes = message.bytes;
}

/* `mask`: the bits of the tag that must be equal. */
static void post_receive(struct model_world *world, int connection, int side, uint32_t capacity, uint64_t tag,
                         uint64_t mask)
{
    struct model_lane *lane = &world->lanes[connection][side];
    struct model_receive *receive = &lane->receives[lane->receive_count++];
    struct weft_options options = {
        .flags = flags_for(mask), .tag_mask = mask, .queue = world->nodes[1 - side].queue, .user_data = receive};
    *receive = (struct model_receive){.capacity = capacity, .tag = tag, .mask = mask, .got = -1};
    receive->room = capacity + MARGIN;
    receive->memory = model_memory_take(world, 1 - side, receive->room, &receive->data);
    memset(receive->data, POISON, receive->room);
    options.timeout_ms = draw_deadline(world, lane, &receive->cancelled);
    if (bits_of(world, BITS_PROBE, connection, side, lane->receive_count) % 3 == 0)
        probe(world, lane, side, receive);
    int result = model_vector_recv(world, 1 - side, lane->receiver, receive, &options);
    MODEL_CHECK(result == 0 || model_excused(world, 1 - side, result), result);
    receive->status = result;
    receive->posted = result == 0;
    if (result < 0)
        receive->request = NULL;
}

void model_send_one(struct model_world *world, int connection, int side)
{
    post_send(world, connection, side, draw_size(world), model_pick(world, 3));
}

static void act_receive(struct model_world *world, int connection, int side)
{
    struct model_lane *lane = &world->lanes[connection][side];
    uint64_t bits = bits_of(world, BITS_MASK, connection, side, lane->receive_count);
    /* Those that take the last message take every other one, too. */
    static const uint64_t masks[] = {~UINT64_C(1), ~UINT64_C(2), ~UINT64_C(3), MODEL_TAG_LAST, UINT64_C(1) << 63};
    uint64_t mask = bits % 4 ? EXACT : masks[bits / 4 % (sizeof masks / sizeof masks[0])];
    uint32_t capacity = world->largest;
    if (model_pick(world, 8) == 0)
        capacity = draw_size(world);
    if (lane->receive_count < MODEL_MESSAGES)
        post_receive(world, connection, side, capacity, model_pick(world, 3), model_pick(world, 4) == 0 ? 0 : mask);
}

static void act_cancel(struct model_world *world, struct model_lane *lane)
{
    (void)world;
    if (model_pick(world, 2) && lane->send_count > 0) {
        struct model_send *send = &lane->sends[model_pick(world, (uint64_t)lane->send_count)];
        if (send->request) {
            send->cancelled = true;
            weft_cancel(send->request);
        }
    } else if (lane->receive_count > 0) {
        struct model_receive *receive = &lane->receives[model_pick(world, (uint64_t)lane->receive_count)];
        if (receive->request) {
            receive->cancelled = true;
            weft_cancel(receive->request);
        }
    }
}

void model_act(struct model_world *world)
{
    if (model_standing_still(world))
        return;
    uint64_t bits = bits_of(world, BITS_NOTICE, 0, 0, (int)world->acts++);
    if (world->one_sided > 0 && bits % 16 == 0)
        model_notices_act(world, bits / 16);
    else if (bits % 16 < 4)
        model_any_act(world, bits / 16);
    if (model_pick(world, 100) < world->one_sided) {
        model_remote_act(world);
        return;
    }
    int connection = (int)model_pick(world, (uint64_t)world->connection_count), side = (int)model_pick(world, 2);
    struct model_lane *lane = &world->lanes[connection][side];
    uint64_t what = model_pick(world, 100);
    if (what < 48) {
        if (lane->send_count < MODEL_MESSAGES)
            model_send_one(world, connection, side);
    } else if (what < 92) {
        act_receive(world, connection, side);
    } else {
        act_cancel(world, lane);
    }
}

/* --- completions --- */

/* The send whose bytes these are: not taken yet, of this tag and size. Of some that are alike, the first. */
int model_find_send(struct model_world *world, int connection, int side, const struct model_receive *receive,
                    uint64_t tag)
{
    struct model_lane *lane = &world->lanes[connection][side];
    for (int i = 0; i < lane->send_count; i++) {
        const struct model_send *send = &lane->sends[i];
        if (send->taken_by < 0 && send->tag == tag && send->size == receive->bytes &&
            is_content(world, connection, side, i, receive->data, send->size))
            return i;
    }
    return -1;
}

/* A message ends like this at both sides. */
bool model_expected_error(const struct model_world *world, int node, int status)
{
    if (status == -EMSGSIZE || status == -ECANCELED || (status == -EIO && world->failing))
        return true;
    return (status == -ETIMEDOUT && world->timed) || (status == -ESHUTDOWN && world->abrupt) ||
           model_excused(world, node, status);
}

static void receive_done(struct model_world *world, int connection, int side, int index,
                         const struct weft_completion *completion)
{
    struct model_lane *lane = &world->lanes[connection][side];
    struct model_receive *receive = &lane->receives[index];
    receive->request = NULL;
    receive->status = completion->status;
    receive->bytes = completion->bytes;
    world->ended += 1;
    model_vector_landed(&receive->vector, receive->data);
    if (completion->tag == MODEL_TAG_LAST &&
        completion->status != -EMSGSIZE) /* also when it was cancelled on the way */
        lane->last_received = true;
    MODEL_CHECK(is_poison(receive->data + receive->capacity, MARGIN), index);
    MODEL_CHECK(completion->connection == lane->receiver && !completion->peer, index);
    MODEL_CHECK(completion->status != -EMSGSIZE || completion->bytes > receive->capacity, completion->bytes);
    if (completion->status == -EMSGSIZE)
        MODEL_CHECK(is_poison(receive->data, receive->capacity), index);
    if (receive->probed && (completion->status == 0 || completion->status == -EMSGSIZE))
        MODEL_CHECK(completion->bytes == receive->probed_bytes && completion->tag == receive->probed_tag, index);
    if (completion->status == 0) {
        MODEL_CHECK(completion->bytes <= receive->capacity, completion->bytes);
        MODEL_CHECK(model_fits(receive, completion->tag), completion->tag);
        MODEL_CHECK(is_poison(receive->data + completion->bytes, receive->capacity - completion->bytes), index);
        receive->got = model_find_send(world, connection, side, receive, completion->tag);
        MODEL_CHECK(receive->got >= 0, index);
        lane->sends[receive->got].taken_by = index;
    } else {
        MODEL_CHECK(model_expected_error(world, 1 - side, completion->status), completion->status);
    }
    memset(receive->data, POISON, receive->room); /* from here on nobody may write there */
}

/* Has a receive of the lane got the send, or one that has ended and is not collected? */
static bool is_received(const struct model_world *world, const struct model_lane *lane, int node,
                        const struct model_send *send)
{
    if (model_any_is_done(world, node))
        return true;
    for (int i = 0; i < lane->receive_count; i++)
        if (lane->receives[i].request && atomic_load(&lane->receives[i].request->done))
            return true;
    return model_is_got(lane, send);
}

static void send_done(struct model_world *world, struct model_lane *lane, int side, struct model_send *send,
                      const struct weft_completion *completion)
{
    if (send->sync && completion->status == 0 && world->nodes[1 - side].context && !world->lost)
        MODEL_CHECK(is_received(world, lane, 1 - side, send), send->size);
    bool expected = completion->status == 0 || model_expected_error(world, side, completion->status);
    send->request = NULL;
    send->status = completion->status;
    world->ended += 1;
    MODEL_CHECK(completion->connection == lane->sender && !completion->peer, completion->status);
    if (!expected)
        fprintf(stderr, "%s\n", completion->text);
    MODEL_CHECK(expected, completion->status);
    model_vector_ruin(&send->vector);
    memset(send->data, 0x11, send->size); /* from here on nobody may read there */
}

static void collect_lane(struct model_world *world, int connection, int side)
{
    struct model_lane *lane = &world->lanes[connection][side];
    struct weft_completion completion;
    for (int i = 0; i < lane->receive_count; i++)
        if (!world->nodes[1 - side].queue && lane->receives[i].request &&
            weft_test(lane->receives[i].request, &completion))
            receive_done(world, connection, side, i, &completion);
    for (int i = 0; i < lane->send_count; i++)
        if (!world->nodes[side].queue && lane->sends[i].request && weft_test(lane->sends[i].request, &completion))
            send_done(world, lane, side, &lane->sends[i], &completion);
}

/* --- the same, out of queues --- */

void model_queues_open(struct model_world *world)
{
    for (int i = 0; i < 2 && world->seed % 3 == 1; i++) {
        MODEL_CHECK(weft_queue_create(world->nodes[i].context, &world->nodes[i].queue, NULL) == 0, i);
        if (world->seed % 2 == 1)
            weft_completion_fd(world->nodes[i].queue);
    }
}

void model_queues_close(struct model_world *world)
{
    for (int i = 0; i < 2; i++) {
        if (world->nodes[i].queue)
            MODEL_CHECK(weft_queue_destroy(world->nodes[i].queue) == 0, i);
        world->nodes[i].queue = NULL;
    }
}

/* Nobody else is at work: the descriptor tells exactly whether something has ended. */
static void check_level(const struct weft_queue *queue)
{
    struct pollfd watch = {.fd = queue->ended->fd, .events = POLLIN};
    if (queue->ended->watched)
        MODEL_CHECK((poll(&watch, 1, 0) == 1) == !wf_list_empty(&queue->ended->list),
                    wf_list_empty(&queue->ended->list));
}

/* Whose completion it is: `user_data` is what was posted. */
static void take_completion(struct model_world *world, const struct weft_completion *completion)
{
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            struct model_lane *lane = &world->lanes[connection][side];
            for (int i = 0; i < lane->receive_count; i++)
                if (completion->user_data == &lane->receives[i]) {
                    MODEL_CHECK(lane->receives[i].request, i);
                    receive_done(world, connection, side, i, completion);
                    return;
                }
            for (int i = 0; i < lane->send_count; i++)
                if (completion->user_data == &lane->sends[i]) {
                    MODEL_CHECK(lane->sends[i].request, i);
                    send_done(world, lane, side, &lane->sends[i], completion);
                    return;
                }
        }
    for (int node = 0; node < 2; node++)
        if (model_any_completion(world, node, completion))
            return;
    MODEL_CHECK(!"a completion of nothing that was posted", 0);
}

static void collect_queue(struct model_world *world, struct weft_queue *queue)
{
    struct weft_completion completions[3];
    int count;
    check_level(queue);
    while ((count = weft_queue_poll(queue, completions, 1 + (int)(world->turns % 3))) > 0) {
        for (int i = 0; i < count; i++) {
            MODEL_CHECK(i == 0 || completions[i].completed_ns >= completions[i - 1].completed_ns, i);
            take_completion(world, &completions[i]);
        }
        check_level(queue);
    }
    MODEL_CHECK(count == 0, count);
}

void model_collect(struct model_world *world)
{
    if (model_standing_still(world))
        return;
    for (int node = 0; node < 2; node++) {
        if (world->nodes[node].queue)
            collect_queue(world, world->nodes[node].queue);
        else
            model_any_collect(world, node);
    }
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            collect_lane(world, connection, side);
            model_remote_collect(world, connection, side);
        }
}

/* --- letting everything end --- */

static bool receives_open(const struct model_lane *lane)
{
    for (int i = 0; i < lane->receive_count; i++)
        if (lane->receives[i].request)
            return true;
    return false;
}

static bool sends_open(const struct model_lane *lane)
{
    for (int i = 0; i < lane->send_count; i++)
        if (lane->sends[i].request)
            return true;
    return false;
}

/* A last message, and receives for any tag until it has come: all before it are then consumed. */
static bool drain_lane(struct model_world *world, int connection, int side)
{
    struct model_lane *lane = &world->lanes[connection][side];
    if (!lane->last_sent) {
        lane->last_sent = true;
        post_send(world, connection, side, (uint32_t)model_pick(world, world->largest + 1), MODEL_TAG_LAST);
    }
    if (lane->last_received) {
        for (int i = 0; i < lane->receive_count; i++)
            if (lane->receives[i].request && !lane->receives[i].cancelled) {
                lane->receives[i].cancelled = true;
                weft_cancel(lane->receives[i].request);
            }
        return !receives_open(lane) && !sends_open(lane);
    }
    bool any_open = false;
    for (int i = 0; i < lane->receive_count; i++)
        any_open |= lane->receives[i].request && lane->receives[i].mask == 0 && !lane->receives[i].cancelled;
    if (!any_open) {
        MODEL_CHECK(lane->receive_count < 2 * MODEL_MESSAGES + 4, lane->receive_count);
        post_receive(world, connection, side, world->largest > LITTLE ? world->largest : LITTLE, 0, 0);
    }
    return false;
}

bool model_all_ended(const struct model_world *world)
{
    bool ended = model_any_ended(world);
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            const struct model_lane *lane = &world->lanes[connection][side];
            ended &= !receives_open(lane) && !sends_open(lane) && model_remote_all_ended(world, connection, side);
        }
    return ended;
}

void model_forget(struct model_world *world, int node)
{
    world->nodes[node].queue = NULL;
    model_any_forget(world, node);
    for (int connection = 0; connection < world->connection_count; connection++) {
        struct model_lane *out = &world->lanes[connection][node], *in = &world->lanes[connection][1 - node];
        for (int i = 0; i < out->send_count; i++) {
            if (out->sends[i].request) /* nobody knows how a cancel has ended */
                out->sends[i].status = -ESHUTDOWN;
            out->sends[i].request = NULL;
        }
        for (int i = 0; i < in->receive_count; i++) {
            if (in->receives[i].request)
                in->receives[i].status = -ESHUTDOWN;
            in->receives[i].request = NULL;
            memset(in->receives[i].data, POISON, in->receives[i].room);
            model_vector_ruin(&in->receives[i].vector);
        }
    }
}

bool model_drain(struct model_world *world)
{
    if (model_standing_still(world))
        return false;
    model_devices_mend(world); /* the last messages arrive */
    bool done = true;
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            done &= drain_lane(world, connection, side);
            done &= model_remote_drain(world, connection, side);
        }
    for (int node = 0; node < 2 && done; node++)
        done &= model_any_stop(world, node);
    return done;
}

/* --- the verdict --- */

static void judge_late_touch(const struct model_lane *lane)
{
    for (int i = 0; i < lane->receive_count; i++) {
        MODEL_CHECK(is_poison(lane->receives[i].data, lane->receives[i].room), i);
        model_vector_judge(&lane->receives[i].vector);
    }
}

void model_judge(struct model_world *world)
{
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            model_match_judge(&world->lanes[connection][side], &world->anys[1 - side]);
            model_match_judge_anys(&world->lanes[connection][side], &world->anys[1 - side], connection);
            model_alike_judge(world, &world->lanes[connection][side], &world->anys[1 - side]);
            judge_late_touch(&world->lanes[connection][side]);
        }
    model_any_judge(world);
    model_remote_judge(world);
}

void model_free(struct model_world *world)
{
    model_any_free(world);
    model_remote_free(world);
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            struct model_lane *lane = &world->lanes[connection][side];
            for (int i = 0; i < lane->send_count; i++) {
                model_memory_give(world, lane->sends[i].memory);
                model_vector_free(world, &lane->sends[i].vector);
            }
            for (int i = 0; i < lane->receive_count; i++) {
                model_memory_give(world, lane->receives[i].memory);
                model_vector_free(world, &lane->receives[i].vector);
            }
        }
}
