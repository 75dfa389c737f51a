#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/drive/worker.h"
#include "core/rail/address.h"
#include "model_remote.h"

#define PATIENCE 400000         /* turns without anything that moves: a deadlock */
#define FAULTY_PATIENCE 4000000 /* the same, where standing still may be part of it */
#define ENDLESS_NS (2000 * WF_NS_PER_S)

uint64_t model_pick(struct model_world *world, uint64_t limit)
{
    return wf_sim_random(world->sim) % limit;
}

uint64_t model_one_of(struct model_world *world, const uint64_t *values, int count)
{
    return values[model_pick(world, (uint64_t)count)];
}

static void set_number(struct wf_config *config, enum wf_setting_id id, uint64_t value)
{
    char text[32];
    struct wf_status status;
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    MODEL_CHECK(wf_config_set(config, id, text, WF_ORIGIN_COMMAND, "model", &status) == 0, id);
}

static void set_text(struct wf_config *config, enum wf_setting_id id, const char *text)
{
    struct wf_status status;
    MODEL_CHECK(wf_config_set(config, id, text, WF_ORIGIN_COMMAND, "model", &status) == 0, id);
}

/* Settings as odd as the table allows: each node its own. */
static void draw_settings(struct model_world *world, struct wf_config *config, int index)
{
    char rails[64];
    bool roomy = model_bits(world, 675) % 2; /* by the seed alone, as below */
    wf_config_init(config);
    model_rail_list(rails, sizeof rails, index, world->faults.rail_count[index]);
    set_text(config, WF_SET_RAILS, rails);
    set_text(config, WF_SET_WORKERS, model_pick(world, 2) ? "shared" : "split");
    set_text(config, WF_SET_LOG, world->quiet ? "error" : "warn");
    set_number(config, WF_SET_CHANNELS, MODEL_ONE_OF(world, 1, 1, 2, 4));
    set_number(config, WF_SET_WINDOW, MODEL_ONE_OF(world, 1, 2, 5, 64));
    set_number(config, WF_SET_CHUNK, MODEL_ONE_OF(world, 64, 1000, 4096, 65536));
    set_number(config, WF_SET_EAGER, MODEL_ONE_OF(world, 0, 100, 2048, 8192));
    uint64_t burst = MODEL_ONE_OF(world, 0, 3000, 65536);
    set_number(config, WF_SET_FIRST_BURST, roomy && burst == 65536 ? 1 << 20 : burst);
    set_number(config, WF_SET_INTRODUCTIONS, MODEL_ONE_OF(world, 2, 2, 7, 1024));
    uint64_t unexpected = MODEL_ONE_OF(world, 4096, 16384, 262144);
    set_number(config, WF_SET_UNEXPECTED, roomy && unexpected == 262144 ? 4 << 20 : unexpected);
    set_number(config, WF_SET_SMALL_POOL, MODEL_ONE_OF(world, 4096, 65536));
    set_number(config, WF_SET_HEADER_PAD, MODEL_ONE_OF(world, 64, 512, 4096));
    set_number(config, WF_SET_CALL, MODEL_ONE_OF(world, 4096, 65536));
    set_number(config, WF_SET_TIMEOUT, (uint64_t)(world->timeout_ns / WF_NS_PER_S));
    set_number(config, WF_SET_CONNECT_TIMEOUT, (uint64_t)(world->connect_timeout_ns / WF_NS_PER_S));
    set_number(config, WF_SET_RAIL_TIMEOUT_MS, (uint64_t)(world->rail_timeout_ns / WF_NS_PER_MS));
    set_text(config, WF_SET_CRC, model_pick(world, 3) ? "on" : "off");
    set_number(config, WF_SET_CRC_LIMIT, MODEL_ONE_OF(world, 0, 1, 3, 16));
    set_number(config, WF_SET_STAGING, model_bits(world, 500 + (uint64_t)index) % 2 ? 65536 : 1 << 20);
}

/* In half of the schedules rails lie on NUMA nodes, and the endpoints of some connections on one of these: by the seed
 * alone, so that what else a seed draws stays as it was. */
static uint64_t place_bits(const struct model_world *world, int salt)
{
    return model_bits(world, (uint64_t)salt);
}

/* In one schedule of four the channels are encrypted, on both nodes: by the seed alone, as above, and whoever lives
 * again (1 << 40 is added to it) goes on as before. */
static bool is_encrypted(const struct model_world *world)
{
    return world->seed % (UINT64_C(1) << 40) % 4 == 3;
}

static void draw_encryption(const struct model_world *world, struct wf_config *config)
{
    if (!is_encrypted(world))
        return;
    set_text(config, WF_SET_KEY_FILE, MODEL_KEY_FILE);
    set_text(config, WF_SET_ENCRYPT, "on");
}

static void place_rails(struct model_world *world, int index)
{
    struct wf_placement *placement = &world->nodes[index].context->crew.placement;
    if (place_bits(world, 0) % 2)
        return;
    placement->rail_policy = WF_POLICY_NODE;
    for (int i = 0; i < WF_PLAN_RAILS; i++)
        placement->rail_nodes[i] = (int16_t)(place_bits(world, index * WF_PLAN_RAILS + i) % 3);
}

void model_place_endpoint(struct model_world *world, int index, int connection)
{
    int node = (int)(place_bits(world, 1000 * (connection + 1) + index) % 4) - 1;
    MODEL_CHECK(weft_endpoint_set_node(world->nodes[index].endpoint, node) == 0, node);
    uint32_t traffic = model_traffic_class(world, index, connection);
    MODEL_CHECK(weft_endpoint_set_class(world->nodes[index].endpoint, traffic) == 0, traffic);
}

/* In half of the schedules connections have classes: by the seed alone, as above. */
uint32_t model_traffic_class(const struct model_world *world, int opener, int connection)
{
    if (place_bits(world, 7000) % 2)
        return 0;
    return (uint32_t)(place_bits(world, 7000 + 2 * connection + opener + 1) % WF_CLASSES);
}

/* Some nodes have none, as an older version would. */
static bool has_cards(const struct model_world *world, int index)
{
    return world->cards && place_bits(world, 7200 + index) % 8 > 0;
}

void model_node_open(struct model_world *world, int index)
{
    struct wf_environment environment = {.engine = &wf_engine_sim,
                                         .engine_host = world->sim,
                                         .clock = wf_sim_clock(world->sim),
                                         .seed = world->seed * 4 + (uint64_t)world->lives++ * 2 + (uint64_t)index + 1,
                                         .memory = world->devices ? &wf_memory_sim : NULL,
                                         .memory_host = world->devices,
                                         .cards = has_cards(world, index) ? &wf_cards_sim : NULL,
                                         .cards_host = world->cards,
                                         .manual = true};
    struct model_node *node = &world->nodes[index];
    struct sockaddr_storage address;
    struct wf_status status;
    static struct wf_config config; /* large */
    draw_settings(world, &config, index);
    draw_encryption(world, &config);
    if (world->cards) { /* payload that is summed, or small, does not go on their channels */
        set_text(&config, WF_SET_CRC, "off");
        set_number(&config, WF_SET_EAGER, place_bits(world, 7210 + index) % 2 ? 0 : 20);
    }
    int result = wf_context_create(&config, &environment, &node->context, &status);
    if (result < 0)
        fprintf(stderr, "%s\n", status.text);
    MODEL_CHECK(result == 0, result);
    model_judge_cards(world, node->context);
    MODEL_CHECK(weft_endpoint_create(node->context, (uint32_t)index, &node->endpoint, NULL) == 0, index);
    place_rails(world, index);
    if (index == 1)
        return;
    MODEL_CHECK(wf_address_parse("127.0.0.1:5000", 0, true, &address, &status) == 0, 0);
    MODEL_CHECK(wf_door_listen(node->context->door, &address, &status) == 0, 0);
}

/* --- driving --- */

/* A worker, or with DOOR the door. */
#define DOOR (-1)

static struct wf_engine *engine_of(const struct weft_context *context, int which)
{
    return wf_seal_within(which == DOOR ? context->door->engine : context->crew.workers[which]->engine);
}

static int drive(struct weft_context *context, int which)
{
    return which == DOOR ? wf_door_drive(context->door, -1) : wf_worker_drive(context->crew.workers[which], -1);
}

/* Drives the first that wants to be driven now whatever happens; false: none does, `*next` is when one will. */
static bool drive_due(struct model_world *world, int64_t *next, int *handled)
{
    int64_t now = wf_sim_now(world->sim);
    *next = model_faults_next(world);
    for (int i = 0; i < 2; i++) {
        struct weft_context *context = world->nodes[i].context;
        for (int which = DOOR; context && which < context->crew.count; which++) {
            int64_t due = wf_sim_timer(engine_of(context, which));
            if (due <= now) {
                *handled = drive(context, which);
                return true;
            }
            *next = due < *next ? due : *next;
        }
    }
    return false;
}

/* Returns whether there may be something to do now. */
static int move_time(struct model_world *world)
{
    int handled;
    int64_t next, now = wf_sim_now(world->sim), event = wf_sim_next_event(world->sim);
    if (event <= now)
        return 1;
    if (drive_due(world, &next, &handled))
        return handled;
    next = event < next ? event : next;
    /* Nothing on its way and no timer: a step, so that a stall is seen as one. */
    wf_sim_advance(world->sim, next == WF_NEVER ? now + WF_NS_PER_MS : next);
    return 1;
}

static int drive_one(struct model_world *world)
{
    int index = (int)model_pick(world, 2);
    struct weft_context *context = world->nodes[index].context;
    if (!context || model_stopped(world, index))
        return 0;
    uint64_t workers = (uint64_t)context->crew.count;
    return drive(context, model_pick(world, workers * 3 + 1) == 0 ? DOOR : (int)model_pick(world, workers));
}

/* Time moves now and then under load, and as soon as nobody has found anything to do for a while. */
void model_drive(struct model_world *world)
{
    world->turns += 1;
    model_faults_turn(world);
    bool moves = world->idle_turns >= 8 || model_pick(world, 32) == 0;
    int handled = moves ? move_time(world) : drive_one(world);
    world->idle_turns = handled > 0 ? 0 : world->idle_turns + 1;
}

/* --- patience --- */

/* Changes with every payload that has been read, and every request that ends. */
static uint64_t progress_of(const struct model_world *world)
{
    uint64_t progress = world->ended;
    for (int i = 0; i < 2; i++)
        if (world->nodes[i].session)
            progress += atomic_load(&world->nodes[i].session->lines.moved);
    if (!world->cards)
        return progress;
    struct wf_sim_cards_counts counts = wf_sim_cards_counts(world->cards); /* patterns are nobody's bytes */
    return progress + counts.device_bytes + counts.host_bytes;
}

void model_bear(struct model_world *world, struct model_patience *patience)
{
    int64_t now = wf_sim_now(world->sim), calm = world->faults.calm_ns;
    uint64_t progress = progress_of(world);
    if (!patience->begun || progress != patience->progress || calm > now) {
        if (!patience->begun)
            patience->endless_ns = now + ENDLESS_NS;
        patience->begun = true;
        patience->progress = progress;
        uint64_t turns = world->faulty ? FAULTY_PATIENCE : PATIENCE;
        bool in_vain = world->card_rules > 0; /* channels are dialled for ever */
        patience->turns = world->turns + (in_vain ? 8 * turns : turns);
        patience->until_ns = (calm > now ? calm : now) + 5 * world->timeout_ns + 2 * world->connect_timeout_ns;
    }
    MODEL_CHECK(world->turns < patience->turns, world->turns);
    MODEL_CHECK(!world->faulty || now < patience->until_ns, now);
    MODEL_CHECK(now < patience->endless_ns, now);
}

int model_finish(struct model_world *world, struct weft_request *request)
{
    struct model_patience patience = {0};
    struct weft_completion completion;
    while (model_standing_still(world) || !weft_test(request, &completion)) {
        model_bear(world, &patience);
        model_drive(world);
        model_collect(world);
    }
    return completion.status;
}

/* --- opening --- */

/* Tiny chunks or buffers with large messages show nothing more, only longer. */
static void keep_it_short(struct model_world *world, bool tiny_buffers)
{
    uint32_t chunks = world->seed % 11 == 0 ? 400 : 30; /* now and then past what may be unacknowledged */
    uint32_t ours = world->nodes[0].context->world.tuning.chunk, theirs = world->nodes[1].context->world.tuning.chunk;
    uint32_t most = (ours < theirs ? ours : theirs) * chunks;
    if (tiny_buffers && most > 800)
        most = 800;
    if (world->largest > most)
        world->largest = most;
}

/* Time for a frame on several rails that are silent one after the other. What a stream of a few bytes at a time needs
 * for one, or for a set-up, is no reason to give it up; nor what it needs for a record, of which nothing is
 * acknowledged before all of it is there, and which may be of as many bytes as go in a call: 64 KiB, 20 of them in a
 * millisecond or two, or in 20. */
static void draw_patience(struct model_world *world, bool tiny, bool slow)
{
    world->rail_timeout_ns = (int64_t)MODEL_ONE_OF(world, slow || tiny ? 300 : 60, 300, 1000) * WF_NS_PER_MS;
    world->timeout_ns = (1 + world->rail_timeout_ns * 12 / WF_NS_PER_S) * WF_NS_PER_S;
    world->connect_timeout_ns = 5 * WF_NS_PER_S;
    if (!tiny || world->faulty)
        return;
    if (slow)
        world->timeout_ns = world->rail_timeout_ns = world->connect_timeout_ns = 60 * WF_NS_PER_S;
    if (is_encrypted(world))
        world->timeout_ns = 600 * WF_NS_PER_S;
}

void model_world_open(struct model_world *world, uint64_t seed)
{
    world->seed = seed;
    struct wf_sim_options options = {.seed = seed, .buffer_min = 1500};
    bool tiny = seed % 5 == 0, slow = seed % 3 == 0;
    if (slow && !(world->faulty && tiny))
        options.delay_max_ns = MODEL_DELAY_MAX_NS; /* streams overtake each other by far */
    if (tiny) {
        options.buffer_min = world->faulty ? 300 : 20;
        options.buffer_max = world->faulty ? 2000 : 200;
    }
    world->sim = wf_sim_create(&options);
    MODEL_CHECK(world->sim, 0);
    draw_patience(world, tiny, slow);
    world->largest = (uint32_t)MODEL_ONE_OF(world, 64, 3000, 3000, 20000, 20000, 120000);
    world->pressure = 5 + model_pick(world, 60);
    world->timed = model_pick(world, 4) == 0;
    world->abrupt = model_pick(world, 8) == 0;
    world->one_sided = MODEL_ONE_OF(world, 0, 20, 50, 80);
    world->connection_count = 1 + (int)model_pick(world, MODEL_CONNECTIONS);
    model_faults_draw(world);
    model_faults_open(world);
    model_devices_open(world);
    model_node_open(world, 0);
    model_node_open(world, 1);
    keep_it_short(world, tiny);
    model_queues_open(world);
    model_remote_open(world);
}
