/* What the simulator promises beyond the seam: time, rails, faults, and the same run for the same seed. */
#include "engine_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static struct implementation simulator(uint64_t seed)
{
    return (struct implementation){.name = "sim", .ops = &wf_engine_sim, .simulated = true, .seed = seed};
}

struct on_a_pair {
    uint64_t seed;
    void (*body)(struct world *world, struct pair pair);
};

/* In a world of its own, with one engine. */
static void run_on_a_pair(void **state)
{
    const struct on_a_pair *on = *state;
    struct implementation of = simulator(on->seed);
    struct world world;
    world_open(&world, &of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    on->body(&world, pair);
    pair_close(&world, &pair);
    world_close(&world);
}

/* A test of cmocka's. */
#define ON_A_PAIR(seed, body)                                                                                          \
    {                                                                                                                  \
#body, run_on_a_pair, NULL, NULL, &(struct on_a_pair)                                                          \
        {                                                                                                              \
            seed, body                                                                                                 \
        }                                                                                                              \
    }

static void freezes_and_thaws(struct world *world, struct pair pair)
{
    struct task send = {0}, receive = {0};
    char got[4];
    wf_sim_freeze(world->sim, pair.server, true);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), 1);
    task_buffer(&receive, got, sizeof(got));
    task_post(world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(world);
    assert_int_equal(wf_sim_next_event(world->sim), WF_NEVER);
    wf_sim_advance(world->sim, wf_sim_now(world->sim) + 60 * WF_NS_PER_S);
    world_idle(world);
    assert_int_equal(receive.returned, 0);
    assert_int_equal(wf_engine_sim.retransmits(world->host, pair.client), 1);
    wf_sim_freeze(world->sim, pair.client, false);
    assert_int_equal(world_await(world, &receive), 1);
}

static void cuts(struct world *world, struct pair pair)
{
    struct task send = {0}, receive = {0};
    char got[4];
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), 1);
    world_idle(world); /* the byte has arrived before the cut */
    int chosen = wf_sim_pick_connection(world->sim);
    assert_true(chosen == pair.client || chosen == pair.server);
    wf_sim_cut(world->sim, pair.client);
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 1);
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), -ECONNRESET);
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 0);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), -ECONNRESET);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), -EPIPE);
}

static void flips_one_byte(struct world *world, struct pair pair)
{
    struct task send = {0}, receive = {0};
    char got[8] = {0};
    assert_true(wf_sim_flip(world->sim, pair.server, 3, 0x20));
    task_buffer(&send, "abcdef", 6);
    task_post(world, 0, &send, WF_OP_SEND, pair.client);
    for (size_t total = 0; total < 6;)
        total += (size_t)task_run(world, &receive, WF_OP_RECV, pair.server, got + total, 6 - total);
    assert_int_equal(world_await(world, &send), 6);
    assert_string_equal(got, "abcDef");
    assert_int_equal(wf_sim_bytes_read(world->sim, pair.server), 6);
    assert_false(wf_sim_flip(world->sim, pair.server, 3, 0x20)); /* too late */
}

static void keeps_to_the_rate_of_a_rail(struct world *world, struct pair pair)
{
    enum { BYTES = 20000 };
    static uint8_t bytes[BYTES], got[BYTES];
    struct sockaddr_storage rail = address_of("127.0.0.1", 0);
    struct wf_sim_rail settings = {.bytes_per_second = 1000000, .delay_ns = WF_NS_PER_MS};
    wf_sim_set_rail(world->sim, &rail, &settings);
    struct task send = {0}, receive = {0};
    int64_t start = wf_sim_now(world->sim);
    task_buffer(&send, bytes, BYTES);
    task_post(world, 0, &send, WF_OP_SEND, pair.client);
    for (size_t total = 0; total < BYTES;)
        total += (size_t)task_run(world, &receive, WF_OP_RECV, pair.server, got, BYTES);
    assert_int_equal(world_await(world, &send), BYTES);
    int64_t took = wf_sim_now(world->sim) - start;
    assert_true(took >= BYTES * 1000LL + WF_NS_PER_MS); /* a microsecond a byte, and the way */
}

static void takes_a_rail_down(void **state)
{
    (void)state;
    struct implementation of = simulator(7);
    struct world world;
    world_open(&world, &of, 1, 0);
    struct sockaddr_storage where, rail = address_of("127.0.0.1", 0);
    int listener = listener_open(&world, "127.0.0.1", 4, &where);
    int client = dialer_open(&world, AF_INET, 0);
    struct wf_sim_rail settings = {.down = true};
    wf_sim_set_rail(world.sim, &rail, &settings);
    struct task connect = {0};
    task_connect(&world, 0, &connect, client, &where);
    world_idle(&world);
    assert_int_equal(connect.returned, 0);
    settings.down = false;
    wf_sim_set_rail(world.sim, &rail, &settings);
    assert_int_equal(world_await(&world, &connect), 0);
    descriptor_close(&world, client);
    descriptor_close(&world, listener);
    world_close(&world);
}

/* What this end's kernel says of its own direction. */
static struct wf_progress progress_of(struct world *world, int fd)
{
    struct wf_progress progress;
    assert_int_equal(wf_engine_sim.progress(world->host, fd, &progress), 0);
    return progress;
}

static void deafens_one_end(struct world *world, struct pair pair)
{
    struct task there = {0}, back = {0}, receive = {0};
    char got[4];
    wf_sim_deafen(world->sim, pair.client, true);
    assert_int_equal(task_run(world, &there, WF_OP_SEND, pair.client, "x", 1), 1);
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 1);
    assert_int_equal(progress_of(world, pair.client).acknowledged, 0); /* it does not hear of that either */
    assert_int_equal(progress_of(world, pair.client).pending, 1);
    assert_int_equal(task_run(world, &back, WF_OP_SEND, pair.server, "y", 1), 1);
    task_buffer(&receive, got, sizeof(got));
    task_post(world, 0, &receive, WF_OP_RECV, pair.client);
    world_idle(world);
    assert_int_equal(receive.returned, 0);
    wf_sim_deafen(world->sim, pair.client, false);
    assert_int_equal(world_await(world, &receive), 1);
    assert_int_equal(progress_of(world, pair.client).acknowledged, 1);
    assert_int_equal(progress_of(world, pair.client).pending, 0);
}

static void ends_a_stream_on_the_way(struct world *world, struct pair pair)
{
    struct task send = {0}, receive = {0};
    char got[4];
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "x", 1), 1);
    wf_sim_end(world->sim, pair.client);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.client, "y", 1), 1); /* it has not been told */
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 1);
    assert_int_equal(got[0], 'x');
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.server, got, sizeof(got)), 0);
    assert_int_equal(progress_of(world, pair.client).acknowledged, 1);
    assert_int_equal(progress_of(world, pair.client).pending, 1);
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.server, "z", 1), 1); /* the other direction lives */
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.client, got, sizeof(got)), 1);
}

static void resets_one_end(struct world *world, struct pair pair)
{
    struct task send = {0}, receive = {0};
    char got[4];
    wf_sim_reset(world->sim, pair.client);
    assert_int_equal(task_run(world, &receive, WF_OP_RECV, pair.client, got, sizeof(got)), -ECONNRESET);
    task_buffer(&receive, got, sizeof(got));
    task_post(world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(world);
    assert_int_equal(receive.returned, 0); /* it knows of nothing */
    assert_int_equal(task_run(world, &send, WF_OP_SEND, pair.server, "x", 1), 1);
    assert_int_equal(world_await(world, &receive), -ECONNRESET);
    char late[4];
    assert_int_equal(task_run(world, &send, WF_OP_RECV, pair.client, late, sizeof(late)), 0); /* it gets nothing */
}

static void mutes_a_rail(void **state)
{
    (void)state;
    struct implementation of = simulator(10);
    struct world world;
    world_open(&world, &of, 1, 0);
    struct sockaddr_storage where, muted = address_of("127.0.2.1", 0);
    int listener = listener_open(&world, "127.0.2.1", 4, &where);
    struct task connect = {0}, send = {0}, receive = {0};
    char got[4];
    struct wf_socket_options from = {.local = address_of("127.0.1.1", 0)};
    int client = wf_engine_sim.socket(world.host, AF_INET, &from, NULL);
    assert_int_equal(wf_engine_sim.attach(world.engines[0], client), 0);
    task_connect(&world, 0, &connect, client, &where);
    assert_int_equal(world_await(&world, &connect), 0);
    int server = (int)task_run(&world, &receive, WF_OP_ACCEPT, listener, NULL, 0);
    assert_int_equal(wf_engine_sim.attach(world.engines[0], server), 0);
    struct wf_sim_rail settings = {.mute = true};
    wf_sim_set_rail(world.sim, &muted, &settings);
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, client, "x", 1), 1);
    assert_int_equal(task_run(&world, &receive, WF_OP_RECV, server, got, sizeof(got)), 1);
    assert_int_equal(progress_of(&world, client).pending, 1);
    assert_int_equal(task_run(&world, &send, WF_OP_SEND, server, "y", 1), 1);
    task_buffer(&receive, got, sizeof(got));
    task_post(&world, 0, &receive, WF_OP_RECV, client);
    world_idle(&world);
    assert_int_equal(receive.returned, 0);
    settings.mute = false;
    wf_sim_set_rail(world.sim, &muted, &settings);
    assert_int_equal(world_await(&world, &receive), 1);
    descriptor_close(&world, client);
    descriptor_close(&world, server);
    descriptor_close(&world, listener);
    world_close(&world);
}

/* What a watcher has seen of one stream; turns each 'x' into a 'u'. */
struct seen {
    uint64_t stream, length;
    char text[512];
};

static void see(void *context, const struct wf_sim_piece *piece)
{
    struct seen *seen = context;
    if (seen->stream != piece->stream)
        return;
    assert_int_equal(piece->offset, seen->length);
    memcpy(seen->text + seen->length, piece->bytes, piece->length);
    seen->length += piece->length;
    for (size_t i = 0; i < piece->length; i++)
        if (piece->bytes[i] == 'x')
            piece->bytes[i] = 'u';
}

static void shows_what_is_sent(struct world *world, struct pair pair)
{
    int both[2];
    assert_int_equal(wf_sim_list_connections(world->sim, both, 2), 2);
    assert_int_equal(both[0] + both[1], pair.client + pair.server);
    struct seen seen = {.stream = wf_sim_stream_of(world->sim, pair.client)};
    assert_int_not_equal(seen.stream, wf_sim_stream_of(world->sim, pair.server));
    wf_sim_watch(world->sim, see, &seen);
    for (int i = 0; i < 100; i++) { /* past the end of a small ring, too */
        struct task send = {0}, receive = {0};
        char got[4] = "";
        task_buffer(&send, "axb", 3);
        task_post(world, 0, &send, WF_OP_SEND, pair.client);
        for (size_t total = 0; total < 3;)
            total += (size_t)task_run(world, &receive, WF_OP_RECV, pair.server, got + total, 3 - total);
        assert_int_equal(world_await(world, &send), 3);
        assert_string_equal(got, "aub");
    }
    assert_int_equal(seen.length, 300);
    assert_memory_equal(seen.text + 297, "axb", 3);
    wf_sim_watch(world->sim, NULL, NULL);
}

static void tells_when_polls_would_end(void **state)
{
    (void)state;
    struct implementation of = simulator(12);
    struct world world;
    struct wf_op *done[1];
    world_open(&world, &of, 2, 0);
    int64_t now = wf_sim_now(world.sim);
    assert_int_equal(wf_sim_timer(world.engines[0]), WF_NEVER);
    assert_int_equal(wf_engine_sim.poll(world.engines[0], done, 1, 5000), 0);
    assert_int_equal(wf_sim_timer(world.engines[0]), now + 5000);
    assert_int_equal(wf_sim_timer(world.engines[1]), WF_NEVER);
    wf_engine_sim.wake(world.engines[0]);
    assert_int_equal(wf_sim_next_event(world.sim), now);
    wf_sim_stop(world.engines[0], true);
    assert_int_equal(wf_sim_timer(world.engines[0]), WF_NEVER);
    assert_int_equal(wf_sim_next_event(world.sim), WF_NEVER);
    wf_sim_stop(world.engines[0], false);
    assert_int_equal(wf_engine_sim.poll(world.engines[0], done, 1, -1), 0);
    assert_int_equal(wf_sim_timer(world.engines[0]), WF_NEVER);
    world_close(&world);
}

static int64_t end_of_traffic(uint64_t seed)
{
    struct implementation of = simulator(seed);
    struct world world;
    world_open(&world, &of, 2, 0);
    run_traffic(&world, 1);
    int64_t end = wf_sim_now(world.sim);
    assert_int_equal(wf_sim_open_descriptors(world.sim), 0);
    world_close(&world);
    return end;
}

static void repeats_itself(void **state)
{
    (void)state;
    int64_t first = end_of_traffic(11);
    assert_int_equal(end_of_traffic(11), first);
    assert_int_not_equal(end_of_traffic(12), first);
}

/* The quick tier runs thousands of simulations: two engines and twenty connected sockets must cost next to nothing. */
static void costs_little(void **state)
{
    (void)state;
    enum { RUNS = 100, PAIRS = 10 };
    clock_t start = clock();
    for (uint64_t seed = 0; seed < RUNS; seed++) {
        struct implementation of = simulator(seed);
        struct world world;
        world_open(&world, &of, 2, 0);
        struct pair pairs[PAIRS];
        for (int i = 0; i < PAIRS; i++)
            pairs[i] = pair_open(&world, 0);
        for (int i = 0; i < PAIRS; i++)
            pair_close(&world, &pairs[i]);
        world_close(&world);
    }
    double each_ms = (double)(clock() - start) * 1000 / CLOCKS_PER_SEC / RUNS;
    print_message("%.3f ms a simulation\n", each_ms);
    assert_true(each_ms < 20); /* with a sanitizer, on a busy machine; 0.1 without */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_A_PAIR(3, freezes_and_thaws),
        ON_A_PAIR(4, cuts),
        ON_A_PAIR(5, flips_one_byte),
        ON_A_PAIR(6, keeps_to_the_rate_of_a_rail),
        cmocka_unit_test(takes_a_rail_down),
        cmocka_unit_test(repeats_itself),
        cmocka_unit_test(costs_little),
        ON_A_PAIR(8, deafens_one_end),
        ON_A_PAIR(9, ends_a_stream_on_the_way),
        ON_A_PAIR(13, resets_one_end),
        cmocka_unit_test(mutes_a_rail),
        ON_A_PAIR(11, shows_what_is_sent),
        cmocka_unit_test(tells_when_polls_would_end),
    };
    return cmocka_run_group_tests_name("simulator", tests, NULL, NULL);
}
