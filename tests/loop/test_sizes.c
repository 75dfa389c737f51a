/* test_sizes.c: every size arrives whole, in both directions at once, whatever the channels, windows, chunks, rails. */
#include "loop_support.h"

#include <stdio.h>

static const size_t sizes[] = {
    0, 1, 3, 4095, 4096, 8191, 8192, 8193, 65535, 65536, 65537, (1 << 20) + 1, 5 * (1 << 20) + 7};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

/* All sizes under way at once, every second receive posted after the sends. */
static void exchange_all(struct loop_pair *pair, uint64_t seed)
{
    static struct loop_message message[2][SIZE_COUNT];

    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int side = 0; side < 2; side++)
            loop_message_create(&message[side][i], sizes[i], seed + i * 2 + (uint64_t)side);
    }
    for (int late = 0; late < 2; late++) {
        for (size_t i = (size_t)late; i < SIZE_COUNT; i += 2) {
            for (int side = 0; side < 2; side++)
                message[side][i].recv =
                    loop_recv(pair->node[!side].connection, message[side][i].sink.data, sizes[i], 100 + i);
        }
        for (size_t i = 0; !late && i < SIZE_COUNT; i++) {
            for (int side = 0; side < 2; side++)
                message[side][i].send =
                    loop_send(pair->node[side].connection, message[side][i].source.data, sizes[i], 100 + i);
        }
    }
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int side = 0; side < 2; side++) {
            loop_done(message[side][i].recv, 0, sizes[i]);
            loop_done(message[side][i].send, 0, sizes[i]);
            loop_message_verify(&message[side][i]);
            loop_message_destroy(&message[side][i]);
        }
    }
}

static void run_shape(const char *settings, const char *other, int rails)
{
    struct loop_pair pair;

    loop_note("%s | %s, %d rails", settings, other ? other : "the same", rails);
    loop_pair_create(&pair, settings, other, rails);
    for (uint64_t round = 0; round < 2; round++)
        exchange_all(&pair, 1000 * round);
    for (int side = 0; side < 2; side++)
        LOOP_CHECK(loop_failures(pair.node[side].peer) == 0, "a channel was lost");
    loop_pair_destroy(&pair);
}

/* All of {1, 16} channels x {1, 64} chunks of window x {4K, 4M} of chunk. */
static void run_rails(int rails)
{
    for (int shape = 0; shape < 8; shape++) {
        char settings[128];
        if (LOOP_SLOW_SANITIZER && shape % 3 != rails % 3)
            continue;
        snprintf(settings, sizeof(settings), "channels=%d window=%d chunk=%s", shape & 1 ? 16 : 1, shape & 2 ? 64 : 1,
                 shape & 4 ? "4M" : "4K");
        run_shape(settings, NULL, rails);
    }
}

static void matrix_1_rail(void)
{
    run_rails(1);
}

static void matrix_3_rails(void)
{
    run_rails(3);
}

static void matrix_4_rails(void)
{
    run_rails(4);
}

static void defaults_one_at_a_time(void)
{
    struct loop_pair pair;

    loop_pair_create(&pair, NULL, NULL, 1);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        loop_note("size %zu", sizes[i]);
        loop_exchange(pair.node[0].connection, pair.node[1].connection, sizes[i], i);
    }
    loop_pair_destroy(&pair);
}

static void odd_settings(void)
{
    run_shape("channels=3 window=7 chunk=5001 eager=0 first_burst=0", NULL, 2);
    run_shape("channels=2 window=3 chunk=64K eager=64K first_burst=64K", NULL, 2);
    run_shape("channels=2 window=2 chunk=1M eager=1 first_burst=1M header_pad=4096 call=4K", NULL, 1);
    run_shape("channels=1 window=4 chunk=100K header_pad=64 introductions=2", NULL, 1);
    run_shape("channels=2 chunk=128K unexpected=64K small_pool=64K", NULL, 2);
}

static void settings_differ_between_nodes(void)
{
    run_shape("window=1 chunk=4K eager=0", "window=64 chunk=4M eager=64K", 2);
    run_shape("window=64 chunk=4M first_burst=1M", "window=1 chunk=4K first_burst=0 unexpected=64K", 2);
    run_shape("channels=1", "channels=8", 2);
    run_shape("channels=8", "channels=1", 2);
    run_shape("introductions=2 header_pad=4096", "introductions=512 header_pad=64", 1);
}

/* One node has more rails than the other. */
static void rails_differ_between_nodes(void)
{
    for (int side = 0; side < 2; side++) {
        struct loop_pair pair = {0};
        struct loop_node *node = pair.node;
        loop_note("%d rails at the dialling side", side ? 1 : 3);
        loop_node_start(&node[0], NULL, side ? 1 : 3);
        loop_node_start(&node[1], NULL, side ? 3 : 1);
        loop_node_connect(&node[0], loop_node_listen(&node[1]));
        loop_node_accept(&node[1]);
        loop_node_open(&node[0]);
        loop_node_take(&node[1]);
        exchange_all(&pair, 5);
        loop_pair_destroy(&pair);
    }
}

/* Sizes around those that the settings in force make special. */
static void sizes_around_limits(void)
{
    struct loop_pair pair;
    static const size_t centers[] = {64, 1000, 2000, 3000, 5000, 65536};

    loop_pair_create(&pair, "channels=2 chunk=1000 window=4 eager=2000 first_burst=5000", NULL, 2);
    for (size_t i = 0; i < sizeof(centers) / sizeof(centers[0]); i++) {
        for (size_t size = centers[i] - 2; size <= centers[i] + 2; size++) {
            loop_note("size %zu", size);
            loop_exchange(pair.node[0].connection, pair.node[1].connection, size, size);
        }
    }
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(defaults_one_at_a_time, 20),
        LOOP_CASE(matrix_1_rail, 60),
        LOOP_CASE(matrix_3_rails, 60),
        LOOP_CASE(matrix_4_rails, 60),
        LOOP_CASE(odd_settings, 60),
        LOOP_CASE(settings_differ_between_nodes, 60),
        LOOP_CASE(rails_differ_between_nodes, 20),
        LOOP_CASE(sizes_around_limits, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
