/* test_small.c: small messages posted one at a time, each when the one before it has left, for receives that come late:
 * whichever limit they reach, they are whole and in order. And what they leave behind for large ones. */
#include "loop_support.h"

#include <stdlib.h>

#define TAG 5
#define TAG_OF_NOBODY 6
#define LOOKS 8 /* of the sender's, between two messages */

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

/* The sender alone goes on; in the simulated world nothing else does. */
static void drive_left(struct weft_request *never)
{
    for (int i = 0; i < LOOKS; i++)
        LOOP_CHECK(weft_test(never, NULL) == 0, "a message that nobody has sent has come");
}

static void one_by_one(const char *settings, const size_t *sizes, size_t kinds, size_t count)
{
    struct loop_message *message = calloc(count, sizeof(*message));
    unsigned char unused[8];

    loop_note("%zu messages, the first of %zu bytes: %s", count, sizes[0], settings);
    LOOP_CHECK(message, "no memory");
    loop_pair_create(&pair, settings, NULL, 2);
    struct weft_request *never = loop_recv(LEFT, unused, sizeof(unused), TAG_OF_NOBODY);
    for (size_t i = 0; i < count; i++) {
        loop_message_create(&message[i], sizes[i % kinds], i + 1);
        message[i].send = loop_send(LEFT, message[i].source.data, message[i].source.size, TAG);
        drive_left(never);
    }
    for (size_t i = 0; i < count; i++)
        message[i].recv = loop_recv(RIGHT, message[i].sink.data, message[i].sink.size, TAG);
    for (size_t i = 0; i < count; i++)
        loop_message_finish(&message[i]);
    for (int side = 0; side < 2; side++)
        LOOP_CHECK(loop_failures(pair.node[side].peer) == 0, "a channel was lost");
    weft_cancel(never);
    (void)loop_end(never);
    loop_pair_destroy(&pair);
    free(message);
}

static void more_than_numbers(void)
{
    const size_t sizes[] = {8};
    one_by_one("introductions=4", sizes, 1, 40);
    one_by_one("introductions=2 window=1", sizes, 1, 20);
}

static void more_than_credit(void)
{
    const size_t sizes[] = {8192};
    one_by_one("unexpected=64K", sizes, 1, 40);
}

static void many(void)
{
    const size_t sizes[] = {8};
    one_by_one("introductions=65536", sizes, 1, 1500);
}

static void more_than_is_copied(void)
{
    const size_t sizes[] = {4096};
    one_by_one("small_pool=64K", sizes, 1, 60);
}

static void beside_large_ones(void)
{
    const size_t sizes[] = {8, 40000, 0, 1, (1 << 20) + 1, 8192, 8};
    one_by_one("chunk=64K", sizes, 7, 70);
    one_by_one("introductions=3 unexpected=128K", sizes, 7, 35);
    one_by_one("crc=on header_pad=128", sizes, 7, 35);
}

static void pass(struct weft_connection *from, struct weft_connection *to)
{
    unsigned char out[8] = {1}, in[8];
    struct weft_request *recv = loop_recv(to, in, sizeof in, TAG), *send = loop_send(from, out, sizeof out, TAG);
    LOOP_CHECK(loop_end(recv).status == 0 && loop_end(send).status == 0, "a message failed");
}

/* Callers that wait for each answer keep one rail warm: in turns, each rail would have half of the messages. More than
 * half, not all: while a thread of the library drives, the next rail in turn is used. */
static void one_answer_at_a_time(void)
{
    enum { COUNT = 1000 };
    struct weft_rail_stats stats[2];

    loop_needs_kernel("callers that drive");
    loop_pair_create(&pair, "workers=shared", NULL, 2);
    for (int i = 0; i < COUNT; i++) {
        pass(LEFT, RIGHT);
        pass(RIGHT, LEFT);
    }
    LOOP_CHECK(weft_peer_rails(pair.node[0].peer, stats, 2) == 2, "not two rails");
    uint64_t first = stats[0].sent_bytes, second = stats[1].sent_bytes, most = first > second ? first : second;
    LOOP_CHECK(most > (first + second) * 6 / 10, "of %llu bytes the busier rail sent %llu",
               (unsigned long long)(first + second), (unsigned long long)most);
    loop_pair_destroy(&pair);
}

static void one_at_a_time(size_t size, int count)
{
    for (int i = 0; i < count; i++) {
        struct loop_message message;
        loop_message_create(&message, size, (uint64_t)i + 1);
        message.recv = loop_recv(RIGHT, message.sink.data, size, TAG);
        message.send = loop_send(LEFT, message.source.data, size, TAG);
        loop_message_finish(&message);
    }
}

static void sent_by_rails(uint64_t *sent)
{
    struct weft_rail_stats stats[2];
    LOOP_CHECK(weft_peer_rails(pair.node[0].peer, stats, 2) == 2, "not two rails");
    for (int i = 0; i < 2; i++)
        sent[i] = stats[i].sent_bytes;
}

/* Messages that go whole by one rail teach nothing about the other. Larger ones that follow use it all the same: each
 * rail has more of them than trials would come to. On a busy machine a rail has less for a while, when the threads that
 * serve it had to wait: it looks slow. Then more messages follow. */
static void all_rails_after_small_ones(void)
{
    enum { COUNT = 40 };
    const size_t large = 256 * 1024;
    const int64_t limit_ms = loop_now_ms() + LOOP_WAIT_MS / 2;
    uint64_t before[2], after[2], least = 0;
    loop_pair_create(&pair, "", NULL, 2);
    one_at_a_time(32 * 1024, COUNT);
    for (int round = 0; least <= large && loop_now_ms() < limit_ms; round++) {
        loop_note("round %d", round);
        sent_by_rails(before);
        one_at_a_time(large, COUNT);
        sent_by_rails(after);
        uint64_t first = after[0] - before[0], second = after[1] - before[1];
        least = first < second ? first : second;
    }
    LOOP_CHECK(least > large, "in no round both rails sent enough of %d messages; in the last one rail sent %llu bytes",
               COUNT, (unsigned long long)least);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(more_than_numbers, 20),
        LOOP_CASE(more_than_credit, 20),
        LOOP_CASE(many, 60),
        LOOP_CASE(more_than_is_copied, 20),
        LOOP_CASE(beside_large_ones, 60),
        LOOP_CASE(one_answer_at_a_time, 60),
        LOOP_CASE(all_rails_after_small_ones, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
