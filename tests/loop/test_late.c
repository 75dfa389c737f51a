/* test_late.c: receives that come late, from both sides, with full pools and full sockets, deadlock nobody. */
#include "loop_support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

static void post_send(struct loop_message *message, struct weft_connection *from, size_t size, uint64_t tag)
{
    loop_message_create(message, size, tag * 1000 + size);
    message->send = loop_send(from, message->source.data, size, tag);
}

static void post_recv(struct loop_message *message, struct weft_connection *at, uint64_t tag)
{
    message->recv = loop_recv(at, message->sink.data, message->sink.size, tag);
}

static void finish(struct loop_message *message)
{
    loop_done(message->recv, 0, message->sink.size);
    loop_done(message->send, 0, message->sink.size);
    loop_message_verify(message);
    loop_message_destroy(message);
}

enum { EACH = 8, BIG = 4 * 1024 * 1024 + 3 };

static void both_sides_late(const char *settings, int rails)
{
    static struct loop_message message[2][EACH];

    loop_note("%s, %d rails", settings, rails);
    loop_pair_create(&pair, settings, NULL, rails);
    for (uint64_t i = 0; i < EACH; i++) {
        post_send(&message[0][i], LEFT, BIG, i);
        post_send(&message[1][i], RIGHT, BIG, i);
    }
    loop_sleep_ms(100);
    for (uint64_t i = EACH; i-- > 0;) {
        post_recv(&message[0][i], RIGHT, i);
        post_recv(&message[1][i], LEFT, i);
    }
    for (int i = 0; i < EACH; i++) {
        finish(&message[0][i]);
        finish(&message[1][i]);
    }
    loop_pair_destroy(&pair);
}

static void large_both_ways_received_late(void)
{
    both_sides_late("channels=1 window=1 chunk=64K", 1);
    both_sides_late("channels=4", 2);
    both_sides_late("channels=1 first_burst=1M unexpected=128K", 2);
    both_sides_late("channels=2 first_burst=0 eager=0", 1);
    both_sides_late("channels=1 socket_buffer=8K window=64 chunk=256K", 1);
}

/* Messages of one tag that nobody receives fill the pool of both sides; then another tag's must pass. */
static void pool_full_of_another_tag(void)
{
    enum { FILL = 200, PASS = 6 };
    static struct loop_message fill[2][FILL], pass[2][PASS];
    static const size_t fill_sizes[] = {2000, 40000, 100, 200000};
    static const size_t pass_sizes[] = {100, BIG, 0, 40000, 65537, 8193};

    loop_pair_create(&pair, "channels=2 chunk=64K unexpected=64K small_pool=64K", NULL, 2);
    for (uint64_t i = 0; i < FILL; i++) {
        post_send(&fill[0][i], LEFT, fill_sizes[i % 4], 1);
        post_send(&fill[1][i], RIGHT, fill_sizes[i % 4], 1);
    }
    loop_sleep_ms(100);
    for (size_t i = 0; i < PASS; i++) {
        post_send(&pass[0][i], LEFT, pass_sizes[i], 2);
        post_send(&pass[1][i], RIGHT, pass_sizes[i], 2);
        post_recv(&pass[0][i], RIGHT, 2);
        post_recv(&pass[1][i], LEFT, 2);
    }
    for (size_t i = 0; i < PASS; i++) {
        loop_note("message %zu past the full pool", i);
        finish(&pass[0][i]);
        finish(&pass[1][i]);
    }
    for (size_t i = 0; i < FILL; i++) {
        post_recv(&fill[0][i], RIGHT, 1);
        post_recv(&fill[1][i], LEFT, 1);
    }
    for (size_t i = 0; i < FILL; i++) {
        loop_note("message %zu out of the full pool", i);
        finish(&fill[0][i]);
        finish(&fill[1][i]);
    }
    loop_exchange(LEFT, RIGHT, 1000, 3);
    loop_pair_destroy(&pair);
}

/* Many small messages that wait unreceived, then received from the last tag to the first. */
static void reverse_tags(const char *settings, bool one_by_one)
{
    enum { MANY = LOOP_COUNT(5000, 1500), SIZE = 300 };
    static unsigned char source[MANY][SIZE], sink[MANY][SIZE];
    static struct weft_request *send[MANY], *recv[MANY];

    loop_note("%s, %s", settings, one_by_one ? "one by one" : "all at once");
    loop_pair_create(&pair, settings, NULL, 2);
    for (uint64_t i = 0; i < MANY; i++) {
        loop_fill(source[i], SIZE, i);
        send[i] = loop_send(LEFT, source[i], SIZE, i);
    }
    loop_sleep_ms(50);
    for (uint64_t i = MANY; i-- > 0;) {
        recv[i] = loop_recv(RIGHT, sink[i], SIZE, i);
        if (one_by_one)
            loop_done(recv[i], 0, SIZE);
    }
    for (uint64_t i = 0; i < MANY; i++) {
        if (!one_by_one)
            loop_done(recv[i], 0, SIZE);
        loop_done(send[i], 0, SIZE);
        LOOP_CHECK(loop_wrong(sink[i], SIZE, i) < 0, "message %llu is wrong", (unsigned long long)i);
    }
    loop_pair_destroy(&pair);
}

static void many_small_in_reverse_tag_order(void)
{
    reverse_tags(NULL, false);
    reverse_tags("unexpected=64K", false);
    reverse_tags("introductions=8192", true);
    reverse_tags("introductions=8192 unexpected=64K small_pool=64K", true);
}

/* The other process: as many large messages each way as the test, receives posted at once. */
static int stopped_side(int in, int out, void *arg)
{
    static struct loop_message message[EACH];
    struct loop_node node;

    (void)arg;
    loop_node_start(&node, "channels=1 window=64 chunk=256K timeout=20", 2);
    loop_tell(out, (uint64_t)loop_node_listen(&node));
    loop_node_accept(&node);
    loop_node_take(&node);
    for (uint64_t i = 0; i < EACH; i++) {
        post_send(&message[i], node.connection, BIG, i);
        post_recv(&message[i], node.connection, i);
    }
    loop_tell(out, 1);
    for (int i = 0; i < EACH; i++)
        finish(&message[i]);
    loop_tell(out, 2);
    loop_hear(in);
    loop_node_stop(&node);
    return 0;
}

/* While one side stands still the sockets to it fill up; after that everything arrives. */
static void sockets_full_while_the_peer_is_stopped(void)
{
    static struct loop_message message[EACH];
    struct loop_child child;
    struct loop_node node;

    loop_child_start(&child, stopped_side, NULL);
    int port = (int)loop_hear(child.in);
    loop_node_start(&node, "channels=1 window=64 chunk=256K timeout=20", 2);
    loop_node_connect(&node, port);
    loop_node_open(&node);
    loop_hear(child.in);
    loop_child_stop(&child);
    for (uint64_t i = 0; i < EACH; i++) {
        post_send(&message[i], node.connection, BIG, i);
        post_recv(&message[i], node.connection, i);
    }
    loop_sleep_ms(700);
    kill(child.pid, SIGCONT);
    for (int i = 0; i < EACH; i++)
        finish(&message[i]);
    LOOP_CHECK(loop_hear(child.in) == 2, "the other process did not finish");
    LOOP_CHECK(loop_failures(node.peer) == 0, "a channel was lost");
    loop_tell(child.out, 3);
    loop_child_join(&child);
    loop_node_stop(&node);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(sockets_full_while_the_peer_is_stopped, 40),
        LOOP_CASE(large_both_ways_received_late, 60),
        LOOP_CASE(pool_full_of_another_tag, 30),
        LOOP_CASE(many_small_in_reverse_tag_order, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
