#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/drive/worker.h"
#include "core/join/door.h"
#include "core/rail/address.h"
#include "core/session/session.h"

#define ADDRESS "127.0.0.1:5000"
#define PATIENCE_MS 30000
#define IDLE_TURNS 100000
#define HEADER_PAD 512  /* the setting's default */
#define RAILS_TEXT 1536 /* 64 addresses of up to 20 bytes, and a name */

/* Else headers would be counted instead of copied. */
_Static_assert(WF_BATCH_FRAMES *(HEADER_PAD + WF_PACKED_BYTES) <= PIPE_COPIED, "a batch's own memory is copied");

void cost_check(bool holds, const char *file, int line, const char *condition)
{
    if (holds)
        return;
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}

static void *take(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    COST_CHECK(memory);
    return memory;
}

/* --- the engine: the pipe's, with its time taken --- */

static void metered_post(struct wf_engine *engine, struct wf_op *op)
{
    uint64_t start;
    bool wanted = meter_engine_begins(&start);
    pipe_engine_ops.post(engine, op);
    if (wanted)
        meter_engine_ends(start);
}

static int metered_poll(struct wf_engine *engine, struct wf_op **finished, int max, int64_t timeout_ns)
{
    uint64_t start;
    bool wanted = meter_engine_begins(&start);
    int count = pipe_engine_ops.poll(engine, finished, max, timeout_ns);
    if (wanted)
        meter_engine_ends(start);
    return count;
}

static struct wf_engine_ops metered; /* the same for all worlds */

static int metered_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                        struct wf_status *status)
{
    int result = pipe_engine_ops.open(host, limits, out, status);
    if (result == 0)
        (*out)->ops = &metered;
    return result;
}

static void make_metered(void)
{
    metered = pipe_engine_ops;
    metered.open = metered_open;
    metered.post = metered_post;
    metered.poll = metered_poll;
}

/* --- contexts --- */

static const char *const settings = "spin_us=0 pin=off peers=65536 requests=16777216 introductions=8192 timeout=86400 "
                                    "rail_timeout_ms=3600000 connect_timeout=60 log=error";

static void apply_one(struct wf_config *config, const char *name, const char *value)
{
    struct wf_status status;
    int id = wf_setting_find(name, &status);
    COST_CHECK(id >= 0);
    COST_CHECK(wf_config_set(config, (enum wf_setting_id)id, value, WF_ORIGIN_COMMAND, "core_cost", &status) == 0);
}

static void apply(struct wf_config *config, const char *list)
{
    char text[512], *rest = text;
    snprintf(text, sizeof text, "%s", list);
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        COST_CHECK(value);
        *value++ = '\0';
        apply_one(config, word, value);
    }
}

static void choose(struct wf_config *config, const struct cost_size *size, int side)
{
    char text[RAILS_TEXT];
    size_t used = 0;
    wf_config_init(config);
    apply(config, settings);
    for (int i = 0; i < size->rails; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s127.%d.%d.1", i ? "," : "", side + 1, i + 1);
    apply_one(config, "rails", text);
    snprintf(text, sizeof text, "channels=%d call=%dK workers=%s", size->channels, size->call,
             size->workers == 1 ? "shared" : "split");
    apply(config, text);
}

static void open_context(struct cost_world *world, int side)
{
    static struct wf_config config; /* large */
    struct wf_status status = {0};
    struct wf_environment environment = {
        .engine = &metered, .engine_host = &world->net, .seed = (uint64_t)side + 1, .manual = true};
    choose(&config, &world->size, side);
    if (wf_context_create(&config, &environment, &world->contexts[side], &status) < 0)
        fprintf(stderr, "core_cost: %s\n", status.text);
    const struct wf_crew *crew = world->contexts[side] ? &world->contexts[side]->crew : NULL;
    COST_CHECK(crew && crew->count == world->size.workers + (crew->express > 0)); /* and one of the express channels */
    COST_CHECK(weft_endpoint_create(world->contexts[side], 0, &world->endpoints[side], NULL) == 0);
    COST_CHECK(weft_queue_create(world->contexts[side], &world->queues[side], NULL) == 0);
}

/* --- meeting --- */

int cost_world_drive(struct cost_world *world, enum meter_side side)
{
    struct wf_crew *crew = &world->contexts[side]->crew;
    int handled = 0;
    for (int i = 0; i < crew->count; i++)
        handled += wf_worker_drive(crew->workers[i], 0);
    return handled;
}

/* Everybody once. */
static void turn(struct cost_world *world, int *idle)
{
    int handled = 0;
    for (int side = 0; side < METER_SIDES; side++)
        handled += wf_door_drive(world->contexts[side]->door, 0) + cost_world_drive(world, (enum meter_side)side);
    *idle = handled > 0 ? 0 : *idle + 1;
    COST_CHECK(*idle < IDLE_TURNS);
}

static void meet(struct cost_world *world, int session)
{
    struct weft_context *sender = world->contexts[METER_SENDER];
    struct wf_status status;
    struct wf_dial dial;
    int idle = 0;
    COST_CHECK(wf_dial_init(&dial, &sender->world, ADDRESS, PATIENCE_MS, &status) == 0);
    wf_door_dial(sender->door, &dial);
    while (!dial.done)
        turn(world, &idle);
    if (dial.status.code < 0)
        fprintf(stderr, "core_cost: %s\n", dial.status.text);
    COST_CHECK(dial.status.code == 0);
    world->peers[METER_SENDER][session] = &dial.session->peer;
    while (weft_accept(world->contexts[METER_RECEIVER], 0, &world->peers[METER_RECEIVER][session], NULL) < 0)
        turn(world, &idle);
    COST_CHECK(world->peers[METER_RECEIVER][session]->session->id == dial.session->id);
}

/* Connections are accepted in the order in which they came, which may be another one: they are put where the number
 * belongs. */
static void accept_connections(struct cost_world *world, int session, int first, int count)
{
    struct weft_connection **opened = world->connections[METER_SENDER] + first, *accepted;
    uint32_t lowest = opened[0]->number, step = count > 1 ? opened[1]->number - lowest : 1;
    for (int i = 0; i < count; i++) {
        COST_CHECK(weft_connection_accept(world->endpoints[METER_RECEIVER], world->peers[METER_RECEIVER][session],
                                          WEFT_ANY_ENDPOINT, 0, &accepted, NULL) == 0);
        uint32_t place = (accepted->number - lowest) / step;
        COST_CHECK(place < (uint32_t)count && opened[place]->number == accepted->number);
        world->connections[METER_RECEIVER][first + (int)place] = accepted;
    }
}

static void connect_all(struct cost_world *world, int session, int first, int count)
{
    struct weft_request **requests = take((size_t)count, sizeof *requests);
    struct weft_completion completion;
    int idle = 0;
    for (int i = 0; i < count; i++) {
        COST_CHECK(weft_connection_open_start(world->endpoints[METER_SENDER], world->peers[METER_SENDER][session], 0,
                                              NULL, &requests[i], NULL) == 0);
        world->connections[METER_SENDER][first + i] = requests[i]->connection;
    }
    for (int i = 0; i < count; i++) {
        while (!weft_test(requests[i], &completion))
            turn(world, &idle);
        COST_CHECK(completion.status == 0);
    }
    accept_connections(world, session, first, count);
    free(requests);
}

/* Every channel of every session is at work, and nothing is left to say. */
static void settle(struct cost_world *world)
{
    int expected = world->size.rails * (world->size.channels + 1), idle = 0;
    for (int i = 0; i < world->size.sessions; i++)
        for (int side = 0; side < METER_SIDES; side++)
            while (world->peers[side][i]->session->lines.up_count < expected)
                turn(world, &idle);
    while (idle < 3)
        turn(world, &idle);
}

void cost_world_open(struct cost_world *world, const struct cost_size *size)
{
    struct sockaddr_storage address;
    struct wf_status status;
    make_metered();
    *world = (struct cost_world){.size = *size};
    for (int side = 0; side < METER_SIDES; side++) {
        open_context(world, side);
        world->peers[side] = take((size_t)size->sessions, sizeof *world->peers[side]);
        world->connections[side] = take((size_t)size->connections, sizeof *world->connections[side]);
    }
    COST_CHECK(wf_address_parse(ADDRESS, 0, true, &address, &status) == 0);
    COST_CHECK(wf_door_listen(world->contexts[METER_RECEIVER]->door, &address, &status) == 0);
    int each = size->connections / size->sessions;
    for (int i = 0; i < size->sessions; i++) {
        meet(world, i);
        connect_all(world, i, i * each, each);
    }
    settle(world);
}

/* Nobody says goodbye: in a world without threads the sessions just end. */
void cost_world_close(struct cost_world *world)
{
    for (int side = 0; side < METER_SIDES; side++) {
        weft_context_destroy(world->contexts[side]);
        free(world->peers[side]);
        free(world->connections[side]);
    }
    pipe_net_fini(&world->net);
}

void cost_world_watch(const struct cost_world *world)
{
    meter_forget();
    for (int side = 0; side < METER_SIDES; side++)
        for (int i = 0; i < world->size.sessions; i++)
            meter_watch(&world->peers[side][i]->session->guard.lock, (enum meter_side)side);
}
