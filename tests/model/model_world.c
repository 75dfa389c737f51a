#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/worker.h"
#include "model_remote.h"

#define PATIENCE 400000 /* turns without an end: a deadlock */

uint64_t model_pick(struct model_world *world, uint64_t limit)
{
    return wf_sim_random(world->sim) % limit;
}

static uint64_t one_of(struct model_world *world, const uint64_t *values, int count)
{
    return values[model_pick(world, (uint64_t)count)];
}

#define ONE_OF(world, ...)                                                                                             \
    one_of(world, (const uint64_t[]){__VA_ARGS__}, (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)))

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
static void draw_settings(struct model_world *world, struct wf_config *config)
{
    static const char *const rails[] = {"127.0.1.1", "127.0.1.1,127.0.2.1", "127.0.1.1,127.0.2.1,127.0.3.1"};
    wf_config_init(config);
    set_text(config, WF_SET_RAILS, rails[model_pick(world, 3)]);
    set_text(config, WF_SET_WORKERS, model_pick(world, 2) ? "shared" : "split");
    set_text(config, WF_SET_LOG, "warn");
    set_number(config, WF_SET_CHANNELS, ONE_OF(world, 1, 1, 2, 4));
    set_number(config, WF_SET_WINDOW, ONE_OF(world, 1, 2, 5, 64));
    set_number(config, WF_SET_CHUNK, ONE_OF(world, 64, 1000, 4096, 65536));
    set_number(config, WF_SET_EAGER, ONE_OF(world, 0, 100, 2048, 8192));
    set_number(config, WF_SET_FIRST_BURST, ONE_OF(world, 0, 3000, 65536));
    set_number(config, WF_SET_INTRODUCTIONS, ONE_OF(world, 2, 2, 7, 1024));
    set_number(config, WF_SET_UNEXPECTED, ONE_OF(world, 4096, 16384, 262144));
    set_number(config, WF_SET_SMALL_POOL, ONE_OF(world, 4096, 65536));
    set_number(config, WF_SET_HEADER_PAD, ONE_OF(world, 64, 512, 4096));
    set_number(config, WF_SET_CALL, ONE_OF(world, 4096, 65536));
    set_text(config, WF_SET_CRC, model_pick(world, 2) ? "on" : "off");
}

static void open_node(struct model_world *world, int index)
{
    struct wf_environment environment = {.engine = &wf_engine_sim,
                                         .engine_host = world->sim,
                                         .clock = wf_sim_clock(world->sim),
                                         .seed = world->seed * 2 + (uint64_t)index + 1,
                                         .manual = true};
    struct model_node *node = &world->nodes[index];
    struct wf_status status;
    static struct wf_config config; /* large */
    draw_settings(world, &config);
    int result = wf_context_create(&config, &environment, &node->context, &status);
    if (result < 0)
        fprintf(stderr, "%s\n", status.text);
    MODEL_CHECK(result == 0, result);
    MODEL_CHECK(weft_endpoint_create(node->context, (uint32_t)index, &node->endpoint, NULL) == 0, index);
}

static int64_t next_timer(const struct model_world *world)
{
    int64_t next = WF_NEVER;
    for (int i = 0; i < 2; i++) {
        if (!world->nodes[i].context)
            continue;
        int64_t visit = atomic_load(&world->nodes[i].context->door->next_visit_ns);
        next = visit < next ? visit : next;
    }
    return next;
}

static void move_time(struct model_world *world)
{
    int64_t now = wf_sim_now(world->sim), event = wf_sim_next_event(world->sim), timer = next_timer(world);
    if (event <= now)
        return;
    int64_t until = event < timer ? event : timer;
    /* Nothing on its way and no timer soon: a step, so that a stall is seen as one. */
    if (until == WF_NEVER || until > now + WF_NS_PER_S)
        until = now + WF_NS_PER_MS;
    wf_sim_advance(world->sim, until > now ? until : now + WF_NS_PER_US);
}

static int drive_one(struct model_world *world)
{
    struct model_node *node = &world->nodes[model_pick(world, 2)];
    if (!node->context)
        return 0;
    uint64_t workers = (uint64_t)node->context->worker_count;
    if (model_pick(world, workers * 3 + 1) == 0)
        return wf_door_drive(node->context->door, 0);
    return wf_worker_drive(node->context->workers[model_pick(world, workers)], 0);
}

/* Time moves now and then under load, and as soon as nobody has found anything to do for a while. */
void model_drive(struct model_world *world)
{
    world->turns += 1;
    if (world->idle_turns < 8 && model_pick(world, 32) != 0) {
        world->idle_turns = drive_one(world) > 0 ? 0 : world->idle_turns + 1;
    } else {
        world->idle_turns = 0;
        move_time(world);
    }
}

int model_finish(struct model_world *world, struct weft_request *request)
{
    struct weft_completion completion;
    for (int turn = 0; !weft_test(request, &completion); turn++) {
        MODEL_CHECK(turn < PATIENCE, turn);
        model_drive(world);
        model_collect(world);
    }
    return completion.status;
}

static struct wf_session *accepted_session(struct weft_context *context)
{
    struct weft_peer *peer;
    return weft_accept(context, 0, &peer, NULL) == 0 ? peer->session : NULL;
}

static void connect_nodes(struct model_world *world)
{
    struct sockaddr_storage address;
    struct wf_status status;
    struct wf_dial dial;
    MODEL_CHECK(wf_address_parse("127.0.0.1:5000", 0, true, &address, &status) == 0, 0);
    MODEL_CHECK(wf_door_listen(world->nodes[0].context->door, &address, &status) == 0, 0);
    MODEL_CHECK(wf_dial_init(&dial, world->nodes[1].context, "127.0.0.1:5000", 30000, &status) == 0, 0);
    wf_door_dial(world->nodes[1].context->door, &dial);
    for (int turn = 0; !dial.done || !world->nodes[0].session; turn++) {
        MODEL_CHECK(turn < PATIENCE, turn);
        model_drive(world);
        if (!world->nodes[0].session)
            world->nodes[0].session = accepted_session(world->nodes[0].context);
        if (dial.done && dial.status.code < 0)
            fprintf(stderr, "%s\n", dial.status.text);
        MODEL_CHECK(!dial.done || dial.status.code == 0, dial.status.code);
    }
    world->nodes[1].session = dial.session;
}

/* Opens one connection from a node chosen by the seed; the other accepts it. */
static void open_connection(struct model_world *world, int index)
{
    int opener = (int)model_pick(world, 2), other = 1 - opener;
    struct weft_request *request;
    struct weft_connection **pair = world->connections[index];
    int result = wf_connection_open_start(world->nodes[opener].endpoint, &world->nodes[opener].session->peer,
                                          (uint32_t)other, &pair[opener], &request, NULL);
    MODEL_CHECK(result == 0, result);
    result = model_finish(world, request);
    MODEL_CHECK(result == 0, result);
    result = weft_connection_accept(world->nodes[other].endpoint, &world->nodes[other].session->peer, (uint32_t)opener,
                                    0, &pair[other], NULL);
    MODEL_CHECK(result == 0, result);
    for (int side = 0; side < 2; side++) {
        world->lanes[index][side].sender = pair[side];
        world->lanes[index][side].receiver = pair[1 - side];
    }
}

/* Tiny chunks or buffers with large messages show nothing more, only longer. */
static void keep_it_short(struct model_world *world, bool tiny_buffers)
{
    uint32_t chunks = world->seed % 11 == 0 ? 400 : 30; /* now and then past what may be unacknowledged */
    uint32_t most = world->nodes[0].session->chunk * chunks;
    if (tiny_buffers && most > 800)
        most = 800;
    if (world->largest > most)
        world->largest = most;
}

void model_world_open(struct model_world *world, uint64_t seed)
{
    memset(world, 0, sizeof *world);
    world->seed = seed;
    struct wf_sim_options options = {.seed = seed, .buffer_min = 1500};
    if (seed % 3 == 0)
        options.delay_max_ns = 20 * WF_NS_PER_MS; /* streams overtake each other by far */
    if (seed % 5 == 0) {
        options.buffer_min = 20;
        options.buffer_max = 200;
    }
    world->sim = wf_sim_create(&options);
    MODEL_CHECK(world->sim, 0);
    world->largest = (uint32_t)ONE_OF(world, 64, 3000, 3000, 20000, 20000, 120000);
    world->pressure = 5 + model_pick(world, 60);
    open_node(world, 0);
    open_node(world, 1);
    connect_nodes(world);
    model_queues_open(world);
    keep_it_short(world, options.buffer_max == 200);
    world->connection_count = 1 + (int)model_pick(world, MODEL_CONNECTIONS);
    for (int i = 0; i < world->connection_count; i++)
        open_connection(world, i);
    world->one_sided = ONE_OF(world, 0, 20, 50, 80);
    model_remote_open(world);
}

/* --- the end --- */

/* What must be back where it came from once every connection is closed. */
static void check_nothing_left(struct wf_session *session)
{
    MODEL_CHECK(session->inbound_pool.taken == 0, session->inbound_pool.taken);
    MODEL_CHECK(session->outbound_pool.taken == 0, session->outbound_pool.taken);
    MODEL_CHECK(session->slot_pool.taken == 0, session->slot_pool.taken);
    MODEL_CHECK(session->range_pool.taken == 0, session->range_pool.taken);
    MODEL_CHECK(session->blocks.free == session->blocks.count, session->blocks.free);
    MODEL_CHECK(session->connection_count == 0, session->connection_count);
    MODEL_CHECK(wf_list_empty(&session->requests), 0);
}

static void check_credit(const struct wf_session *sender, const struct wf_session *receiver)
{
    MODEL_CHECK(sender->unsolicited_spent == receiver->unsolicited_settled,
                sender->unsolicited_spent - receiver->unsolicited_settled);
}

/* An open that nobody answers, given up after a while: the peer must not be left with half a connection. */
static void open_in_vain(struct model_world *world)
{
    int opener = (int)model_pick(world, 2);
    struct weft_connection *connection;
    struct weft_request *request;
    int result = wf_connection_open_start(world->nodes[opener].endpoint, &world->nodes[opener].session->peer, 7,
                                          &connection, &request, NULL);
    MODEL_CHECK(result == 0, result);
    for (uint64_t turns = model_pick(world, 300); turns > 0; turns--)
        model_drive(world);
    weft_cancel(request);
    result = model_finish(world, request);
    MODEL_CHECK(result == -ECANCELED, result);
    wf_connection_let_go(connection);
}

/* One side closes and is done before the other begins. */
static void close_in_turn(struct model_world *world, int index)
{
    int first = (int)model_pick(world, 2);
    for (int i = 0; i < 2; i++) {
        struct weft_connection *connection = world->connections[index][i ^ first];
        struct weft_request *request = wf_connection_close_start(connection);
        MODEL_CHECK(request, index);
        int result = model_finish(world, request);
        MODEL_CHECK(result == 0, result);
        wf_connection_let_go(connection);
    }
}

static void close_connections(struct model_world *world)
{
    struct weft_request *requests[MODEL_CONNECTIONS][2] = {{NULL}};
    int at_once = (int)model_pick(world, (uint64_t)world->connection_count + 1);
    for (int i = at_once; i < world->connection_count; i++)
        close_in_turn(world, i);
    for (int i = 0; i < at_once; i++)
        for (int side = 0; side < 2; side++) {
            if (model_pick(world, 3) == 0)
                for (int turn = 0; turn < 200; turn++)
                    model_drive(world);
            requests[i][side] = wf_connection_close_start(world->connections[i][side]);
            MODEL_CHECK(requests[i][side], i);
        }
    for (int i = 0; i < at_once; i++)
        for (int side = 0; side < 2; side++) {
            int result = model_finish(world, requests[i][side]);
            MODEL_CHECK(result == 0, result);
            wf_connection_let_go(world->connections[i][side]);
        }
    for (int turn = 0; world->nodes[0].session->connection_count + world->nodes[1].session->connection_count; turn++) {
        MODEL_CHECK(turn < PATIENCE, turn);
        model_drive(world);
    }
}

static void close_sessions(struct model_world *world)
{
    int first = (int)model_pick(world, 2);
    struct weft_request *requests[2];
    for (int i = 0; i < 2; i++)
        MODEL_CHECK((requests[i] = wf_session_ask_to_close(world->nodes[i ^ first].session)), i);
    for (int i = 0; i < 2; i++) {
        int result = model_finish(world, requests[i]);
        MODEL_CHECK(result == 0, result);
        wf_session_release(world->nodes[i ^ first].session);
    }
}

void model_world_close(struct model_world *world)
{
    model_queues_close(world);
    if (model_pick(world, 3) == 0)
        open_in_vain(world);
    close_connections(world);
    model_remote_close(world);
    check_nothing_left(world->nodes[0].session);
    check_nothing_left(world->nodes[1].session);
    check_credit(world->nodes[0].session, world->nodes[1].session);
    check_credit(world->nodes[1].session, world->nodes[0].session);
    close_sessions(world);
    for (int i = 0; i < 2; i++)
        weft_context_destroy(world->nodes[i].context);
    wf_sim_destroy(world->sim);
}
