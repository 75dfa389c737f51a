/* test_match.c: messages of a connection and tag are matched in posting order, and a receive that does not fit harms
 * nobody else. */
#include "loop_support.h"

#include <errno.h>
#include <string.h>

#define SMALL 1000                  /* below eager */
#define MIDDLE (40 * 1024)          /* below first_burst */
#define LARGE (3 * 1024 * 1024 + 5) /* above both */

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

static void send_from_left(struct loop_message *message, uint64_t tag)
{
    message->send = loop_send(LEFT, message->source.data, message->source.size, tag);
}

static void receive_at_right(struct loop_message *message, uint64_t tag)
{
    message->recv = loop_recv(RIGHT, message->sink.data, message->sink.size, tag);
}

/* Two messages of one tag into two receives that both fit either: the contents tell the order. */
static void in_order(size_t first, size_t second, int delay_ms, uint64_t tag)
{
    struct loop_message one, two;
    struct loop_buffer sink[2];
    struct weft_request *recv[2];

    loop_message_create(&one, first, 11 + tag);
    loop_message_create(&two, second, 22 + tag);
    for (int i = 0; i < 2; i++)
        loop_buffer_create(&sink[i], LOOP_FAR, LARGE);
    if (delay_ms < 0) {
        for (int i = 0; i < 2; i++)
            recv[i] = loop_recv(RIGHT, sink[i].data, LARGE, tag);
    }
    send_from_left(&one, tag);
    send_from_left(&two, tag);
    if (delay_ms > 0)
        loop_sleep_ms(delay_ms);
    if (delay_ms >= 0) {
        for (int i = 0; i < 2; i++)
            recv[i] = loop_recv(RIGHT, sink[i].data, LARGE, tag);
    }
    loop_done(recv[1], 0, second);
    loop_done(recv[0], 0, first);
    LOOP_CHECK(loop_wrong(sink[0].data, first, one.seed) < 0, "the first receive holds another message");
    LOOP_CHECK(loop_wrong(sink[1].data, second, two.seed) < 0, "the second receive holds another message");
    loop_done(one.send, 0, first);
    loop_done(two.send, 0, second);
    loop_message_destroy(&one);
    loop_message_destroy(&two);
    for (int i = 0; i < 2; i++)
        loop_buffer_unmap(&sink[i]);
}

static void same_tag_in_posting_order(void)
{
    static const size_t pairs[][2] = {{SMALL, LARGE}, {LARGE, SMALL}, {MIDDLE, SMALL}, {LARGE, MIDDLE},
                                      {0, LARGE},     {LARGE, 0},     {LARGE, LARGE}};
    static const int delays[] = {-1, 0, 20};

    loop_pair_create(&pair, "channels=4 chunk=64K", NULL, 3);
    for (uint64_t round = 0; round < LOOP_COUNT(10, 3); round++) {
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
            for (size_t d = 0; d < 3; d++) {
                loop_note("round %d, %zu then %zu, receives %d ms after", (int)round, pairs[i][0], pairs[i][1],
                          delays[d]);
                in_order(pairs[i][0], pairs[i][1], delays[d], round % 2);
            }
        }
    }
    loop_pair_destroy(&pair);
}

static void receive_posted_a_second_after_arrival(void)
{
    static const size_t sizes[] = {0, SMALL, MIDDLE, LARGE};
    struct loop_message message[4];

    loop_pair_create(&pair, NULL, NULL, 2);
    for (size_t i = 0; i < 4; i++) {
        loop_message_create(&message[i], sizes[i], i);
        send_from_left(&message[i], i);
    }
    loop_sleep_ms(1000);
    for (size_t i = 4; i-- > 0;)
        receive_at_right(&message[i], i);
    for (size_t i = 0; i < 4; i++)
        loop_message_finish(&message[i]);
    loop_pair_destroy(&pair);
}

static void any_tag_takes_the_next(void)
{
    static const uint64_t tags[] = {5, UINT64_MAX, 0, 5, 7};
    struct loop_message message[5];

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < 5; i++) {
            loop_message_create(&message[i], i % 2 ? LARGE : SMALL, i + 50);
            if (!late)
                message[i].recv = loop_recv_any(RIGHT, message[i].sink.data, message[i].sink.size);
        }
        for (size_t i = 0; i < 5; i++)
            send_from_left(&message[i], tags[i]);
        loop_sleep_ms(late * 50);
        for (size_t i = 0; late && i < 5; i++)
            message[i].recv = loop_recv_any(RIGHT, message[i].sink.data, message[i].sink.size);
        for (size_t i = 0; i < 5; i++) {
            struct weft_completion completion = loop_end(message[i].recv);
            LOOP_CHECK(completion.status == 0 && completion.bytes == message[i].sink.size, "status %d, %llu bytes",
                       completion.status, (unsigned long long)completion.bytes);
            LOOP_CHECK(completion.tag == tags[i], "tag %llu", (unsigned long long)completion.tag);
            loop_done(message[i].send, 0, message[i].source.size);
            loop_message_verify(&message[i]);
            loop_message_destroy(&message[i]);
        }
    }
    loop_pair_destroy(&pair);
}

/* A named tag and ANY_TAG compete: the receive that was posted first has the right. */
static void any_tag_beside_named_tags(void)
{
    struct loop_message six, other, again;

    loop_pair_create(&pair, NULL, NULL, 1);
    loop_message_create(&six, SMALL, 6);
    loop_message_create(&other, SMALL, 7);
    loop_message_create(&again, LARGE, 8);
    receive_at_right(&six, 6);
    other.recv = loop_recv_any(RIGHT, other.sink.data, other.sink.size);
    receive_at_right(&again, 6);
    send_from_left(&other, 5);
    send_from_left(&six, 6);
    send_from_left(&again, 6);
    loop_message_finish(&other);
    loop_message_finish(&six);
    loop_message_finish(&again);

    loop_message_create(&six, SMALL, 16);
    loop_message_create(&other, SMALL, 17);
    other.recv = loop_recv_any(RIGHT, other.sink.data, other.sink.size);
    receive_at_right(&six, 6);
    send_from_left(&other, 6);
    send_from_left(&six, 6);
    loop_message_finish(&other);
    loop_message_finish(&six);
    loop_pair_destroy(&pair);
}

static void two_tags_received_in_opposite_order(void)
{
    enum { EACH = 12 };
    static struct loop_message message[2][EACH];
    static const size_t sizes[] = {SMALL, LARGE, 0, MIDDLE};

    loop_pair_create(&pair, "channels=3 chunk=128K", NULL, 2);
    for (size_t i = 0; i < EACH; i++) {
        for (size_t tag = 0; tag < 2; tag++) {
            loop_message_create(&message[tag][i], sizes[(i + tag) % 4], i * 2 + tag);
            send_from_left(&message[tag][i], tag);
        }
    }
    for (size_t tag = 2; tag-- > 0;) {
        for (size_t i = 0; i < EACH; i++)
            receive_at_right(&message[tag][i], tag);
    }
    for (size_t i = EACH; i-- > 0;) {
        loop_message_finish(&message[0][i]);
        loop_message_finish(&message[1][i]);
    }
    loop_pair_destroy(&pair);
}

static void check_too_small(size_t size, size_t capacity, bool late)
{
    struct loop_message message;
    struct loop_buffer sink;
    struct weft_request *recv = NULL;

    loop_note("%zu bytes into %zu, %s", size, capacity, late ? "late" : "posted before");
    loop_message_create(&message, size, size);
    loop_buffer_create(&sink, LOOP_FAR, capacity);
    loop_set(sink.data, capacity, LOOP_POISON);
    if (!late)
        recv = loop_recv(RIGHT, sink.data, capacity, 3);
    send_from_left(&message, 3);
    loop_sleep_ms(late ? 30 : 0);
    if (late)
        recv = loop_recv(RIGHT, sink.data, capacity, 3);
    loop_done(recv, -EMSGSIZE, size);
    if (size >= LARGE)
        LOOP_CHECK(weft_test(message.send, NULL) == 0, "the send has ended without a receive");
    LOOP_CHECK(loop_differs(sink.data, capacity, LOOP_POISON) < 0, "the small landing was written");
    loop_buffer_unmap(&sink);
    receive_at_right(&message, 3); /* it has been kept */
    loop_message_finish(&message);
    loop_exchange(LEFT, RIGHT, LARGE, 3);
    loop_exchange(LEFT, RIGHT, SMALL, 3);
}

static void receive_too_small(void)
{
    static const size_t sizes[] = {1, SMALL, MIDDLE, LARGE};

    loop_pair_create(&pair, "channels=2 chunk=64K eager=8K first_burst=64K", NULL, 2);
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < 4; i++) {
            check_too_small(sizes[i], 0, late);
            check_too_small(sizes[i], sizes[i] - 1, late);
            check_too_small(sizes[i], sizes[i] / 3, late);
        }
    }
    LOOP_CHECK(loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer) == 0, "a channel was lost");
    loop_pair_destroy(&pair);
}

/* A receive that is too small stands between others of its tag, all posted at once: each message goes to the next with
 * room. */
static void receive_too_small_among_others(void)
{
    struct loop_message message[3];
    struct loop_buffer sink;

    loop_pair_create(&pair, "channels=2 chunk=64K", NULL, 2);
    loop_buffer_create(&sink, LOOP_FAR, 100);
    loop_set(sink.data, sink.size, LOOP_POISON);
    for (size_t i = 0; i < 3; i++)
        loop_message_create(&message[i], LARGE, i + 90);
    receive_at_right(&message[0], 1);
    struct weft_request *small = loop_recv(RIGHT, sink.data, sink.size, 1);
    receive_at_right(&message[1], 1);
    for (size_t i = 0; i < 3; i++)
        send_from_left(&message[i], 1);
    loop_done(small, -EMSGSIZE, LARGE);
    LOOP_CHECK(loop_differs(sink.data, sink.size, LOOP_POISON) < 0, "the small landing was written");
    receive_at_right(&message[2], 1);
    for (size_t i = 0; i < 3; i++)
        loop_message_finish(&message[i]);
    loop_buffer_unmap(&sink);
    loop_pair_destroy(&pair);
}

static void capacity_above_the_message(void)
{
    static const size_t sizes[] = {0, SMALL, MIDDLE, LARGE};

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < 4; i++) {
            struct loop_message message;
            struct loop_buffer sink;
            loop_message_create(&message, sizes[i], i);
            loop_buffer_create(&sink, LOOP_FAR, sizes[i] + 70000);
            loop_set(sink.data, sink.size, LOOP_POISON);
            if (late)
                send_from_left(&message, i);
            message.recv = loop_recv(RIGHT, sink.data, sink.size, i);
            if (!late)
                send_from_left(&message, i);
            loop_done(message.recv, 0, sizes[i]);
            loop_done(message.send, 0, sizes[i]);
            LOOP_CHECK(loop_wrong(sink.data, sizes[i], i) < 0, "%zu bytes are wrong", sizes[i]);
            LOOP_CHECK(loop_differs(sink.data + sizes[i], 70000, LOOP_POISON) < 0, "bytes behind the message changed");
            loop_buffer_unmap(&sink);
            loop_message_destroy(&message);
        }
    }
    loop_pair_destroy(&pair);
}

static void empty_messages(void)
{
    struct weft_request *send[20], *recv[20];

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int late = 0; late < 2; late++) {
        for (int i = 0; !late && i < 20; i++)
            recv[i] = loop_recv(RIGHT, NULL, 0, 9);
        for (int i = 0; i < 20; i++)
            send[i] = loop_send(LEFT, NULL, 0, 9);
        for (int i = 0; late && i < 20; i++)
            recv[i] = loop_recv(RIGHT, NULL, 0, 9);
        for (int i = 0; i < 20; i++) {
            loop_done(recv[i], 0, 0);
            loop_done(send[i], 0, 0);
        }
    }
    loop_exchange(LEFT, RIGHT, SMALL, 9);
    loop_pair_destroy(&pair);
}

static void wrong_arguments(void)
{
    struct weft_request *request = NULL;
    struct weft_options unknown = {.flags = 1u << 30};
    char byte = 0;

    loop_pair_create(&pair, NULL, NULL, 1);
    LOOP_CHECK(weft_send(LEFT, &byte, 1, 0, &unknown, &request) == -EINVAL, "unknown flags");
    LOOP_CHECK(weft_recv(LEFT, &byte, 1, 0, &unknown, &request) == -EINVAL, "unknown flags");
    LOOP_CHECK(weft_send(LEFT, NULL, 1, 0, NULL, &request) == -EINVAL, "no buffer for a byte");
    LOOP_CHECK(weft_recv(LEFT, NULL, 1, 0, NULL, &request) == -EINVAL, "no buffer for a byte");
    LOOP_CHECK(request == NULL, "an out-parameter was written on failure");
    loop_exchange(LEFT, RIGHT, SMALL, 0);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(same_tag_in_posting_order, 60),
        LOOP_CASE(receive_posted_a_second_after_arrival, 20),
        LOOP_CASE(any_tag_takes_the_next, 20),
        LOOP_CASE(any_tag_beside_named_tags, 20),
        LOOP_CASE(two_tags_received_in_opposite_order, 20),
        LOOP_CASE(receive_too_small, 60),
        LOOP_CASE(receive_too_small_among_others, 20),
        LOOP_CASE(capacity_above_the_message, 20),
        LOOP_CASE(empty_messages, 20),
        LOOP_CASE(wrong_arguments, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
