/* Receives from any connection of a node: each gets a message of some lane, and says which. */
#include <errno.h>
#include <string.h>

#include "model.h"

#define POISON 0xA5
#define MARGIN 16

static bool is_poison(const uint8_t *data, uint64_t size)
{
    for (uint64_t at = 0; at < size; at++)
        if (data[at] != POISON)
            return false;
    return true;
}

/* In a third of the schedules: where there are some, less is known of the other receives. */
static bool has_anys(const struct model_world *world)
{
    return model_bits(world, 31337) % 3 == 0;
}

static int lane_of(const struct model_world *world, int node, const struct weft_connection *connection)
{
    for (int i = 0; i < world->connection_count; i++)
        if (connection && world->lanes[i][1 - node].receiver == connection)
            return i;
    return -1;
}

static void probe(struct model_world *world, int node, const struct weft_options *options,
                  struct model_receive *receive)
{
    struct weft_message message;
    int result = weft_endpoint_probe(world->nodes[node].endpoint, receive->tag, options, &message);
    MODEL_CHECK(result == 0 || result == 1, result);
    if (result == 0)
        return;
    receive->probed = true;
    receive->probed_lane = lane_of(world, node, message.connection);
    receive->probed_tag = message.tag;
    receive->probed_bytes = message.bytes;
    MODEL_CHECK(receive->probed_lane >= 0 && model_fits(receive, message.tag), message.tag);
}

static void post(struct model_world *world, int node, uint64_t bits)
{
    struct model_anys *anys = &world->anys[node];
    if (anys->count == MODEL_ANY_RECEIVES)
        return;
    static const uint64_t masks[] = {0, 0, UINT64_MAX, ~UINT64_C(1)};
    struct model_receive *receive = &anys->receives[anys->count++];
    *receive = (struct model_receive){.tag = bits % 3, .mask = masks[bits / 4 % 4], .got = -1};
    receive->capacity = bits / 16 % 8 == 0 ? (uint32_t)(bits / 128 % 300) : world->largest;
    receive->room = receive->capacity + MARGIN;
    receive->memory = model_memory_take(world, node, receive->room, &receive->data);
    memset(receive->data, POISON, receive->room);
    struct weft_options options = {.flags = receive->mask == 0 ? WEFT_ANY_TAG : WEFT_TAG_MASK,
                                   .tag_mask = receive->mask};
    if (bits / 1024 % 2)
        probe(world, node, &options, receive);
    options.queue = world->nodes[node].queue;
    options.user_data = receive;
    if (world->timed && bits / 2048 % 8 == 0) {
        options.timeout_ms = 1 + (int32_t)(bits / 16384 % 60);
        receive->cancelled = true;
    }
    int result = weft_endpoint_recv(world->nodes[node].endpoint, receive->memory, receive->capacity, receive->tag,
                                    &options, &receive->request);
    MODEL_CHECK(result == 0, result);
    receive->posted = true;
}

void model_any_act(struct model_world *world, uint64_t bits)
{
    int node = (int)(bits % 2);
    struct model_anys *anys = &world->anys[node];
    bits /= 2;
    if (!has_anys(world))
        return;
    if (bits % 16 > 0 || anys->count == 0) {
        post(world, node, bits / 16);
        return;
    }
    struct model_receive *receive = &anys->receives[bits / 16 % (uint64_t)anys->count];
    if (!receive->request)
        return;
    receive->cancelled = true;
    weft_cancel(receive->request);
}

static void done(struct model_world *world, int node, struct model_receive *receive,
                 const struct weft_completion *completion)
{
    struct model_anys *anys = &world->anys[node];
    int lane = lane_of(world, node, completion->connection);
    bool met = completion->status == 0 || completion->status == -EMSGSIZE;
    receive->request = NULL;
    receive->status = completion->status;
    receive->bytes = completion->bytes;
    world->ended += 1;
    MODEL_CHECK(met || model_expected_error(world, node, completion->status), completion->status);
    MODEL_CHECK(!met || (lane >= 0 && model_fits(receive, completion->tag)), completion->tag);
    MODEL_CHECK(completion->status == 0 || completion->text[0], completion->status);
    MODEL_CHECK(is_poison(receive->data + receive->capacity, MARGIN), lane);
    if (receive->probed && met)
        MODEL_CHECK(lane == receive->probed_lane && completion->tag == receive->probed_tag &&
                        completion->bytes == receive->probed_bytes,
                    lane);
    anys->uncertain |= !met && completion->connection; /* else it has taken no message */
    if (lane >= 0 && completion->tag == MODEL_TAG_LAST && completion->status != -EMSGSIZE)
        world->lanes[lane][1 - node].last_received = true;
    if (completion->status == -EMSGSIZE)
        MODEL_CHECK(completion->bytes > receive->capacity && is_poison(receive->data, receive->capacity), lane);
    if (completion->status == 0) {
        MODEL_CHECK(is_poison(receive->data + completion->bytes, receive->capacity - completion->bytes), lane);
        receive->lane = lane;
        receive->got = model_find_send(world, lane, 1 - node, receive, completion->tag);
        MODEL_CHECK(receive->got >= 0, lane);
        world->lanes[lane][1 - node].sends[receive->got].taken_by =
            MODEL_TAKEN_BY_ANY + (int)(receive - anys->receives);
    }
    memset(receive->data, POISON, receive->room); /* from here on nobody may write there */
}

void model_any_collect(struct model_world *world, int node)
{
    struct weft_completion completion;
    for (int i = 0; i < world->anys[node].count; i++) {
        struct model_receive *receive = &world->anys[node].receives[i];
        if (receive->request && weft_test(receive->request, &completion))
            done(world, node, receive, &completion);
    }
}

bool model_any_completion(struct model_world *world, int node, const struct weft_completion *completion)
{
    for (int i = 0; i < world->anys[node].count; i++) {
        struct model_receive *receive = &world->anys[node].receives[i];
        if (completion->user_data != receive)
            continue;
        MODEL_CHECK(receive->request, i);
        done(world, node, receive, completion);
        return true;
    }
    return false;
}

bool model_any_stop(struct model_world *world, int node)
{
    bool left = false;
    for (int i = 0; i < world->anys[node].count; i++) {
        struct model_receive *receive = &world->anys[node].receives[i];
        left |= receive->request != NULL;
        if (receive->request)
            weft_cancel(receive->request);
    }
    return !left;
}

bool model_any_ended(const struct model_world *world)
{
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < world->anys[node].count; i++)
            if (world->anys[node].receives[i].request)
                return false;
    return true;
}

bool model_any_is_done(const struct model_world *world, int node)
{
    for (int i = 0; i < world->anys[node].count; i++) {
        const struct model_receive *receive = &world->anys[node].receives[i];
        if (receive->request && atomic_load(&receive->request->done))
            return true;
    }
    return false;
}

void model_any_forget(struct model_world *world, int node)
{
    for (int i = 0; i < world->anys[node].count; i++) {
        struct model_receive *receive = &world->anys[node].receives[i];
        if (receive->request)
            world->anys[node].uncertain = true;
        receive->request = NULL;
        memset(receive->data, POISON, receive->room);
    }
}

void model_any_judge(const struct model_world *world)
{
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < world->anys[node].count; i++)
            MODEL_CHECK(is_poison(world->anys[node].receives[i].data, world->anys[node].receives[i].room), i);
}

void model_any_free(struct model_world *world)
{
    for (int node = 0; node < 2; node++)
        for (int i = 0; i < world->anys[node].count; i++)
            model_memory_give(world, world->anys[node].receives[i].memory);
}
