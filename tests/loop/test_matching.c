/* test_matching.c: what a send means, which receive takes which message, and what a probe says. */
#include "loop_support.h"

#include <errno.h>
#include <string.h>

#define SMALL 1000                  /* below eager */
#define LARGE (3 * 1024 * 1024 + 5) /* above first_burst */

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

static const size_t sizes[] = {0, SMALL, LARGE};

/* --- posting --- */

static struct weft_request *send_sync(struct weft_connection *connection, const struct loop_message *message,
                                      uint64_t tag)
{
    struct weft_options options = {.flags = WEFT_SYNC};
    struct weft_request *request = NULL;
    int result = weft_send(connection, message->source.data, message->source.size, tag, &options, &request);
    LOOP_CHECK(result == 0 && request, "weft_send: %s", strerror(-result));
    return request;
}

static struct weft_request *receive_masked(struct loop_message *message, uint64_t tag, uint64_t mask)
{
    struct weft_options options = {.flags = WEFT_TAG_MASK, .tag_mask = mask};
    struct weft_request *request = NULL;
    int result = weft_recv(RIGHT, message->sink.data, message->sink.size, tag, &options, &request);
    LOOP_CHECK(result == 0 && request, "weft_recv: %s", strerror(-result));
    return request;
}

static void send_from_left(struct loop_message *message, uint64_t tag)
{
    message->send = loop_send(LEFT, message->source.data, message->source.size, tag);
}

/* Waits until a receive would take a message, and says which. */
static struct weft_message probe(uint64_t tag, uint32_t flags, uint64_t mask)
{
    struct weft_options options = {.flags = flags, .tag_mask = mask};
    struct weft_message message = {0};
    int result, waited = 0;
    while ((result = weft_probe(RIGHT, tag, &options, &message)) == 0) {
        LOOP_CHECK(waited++ < LOOP_WAIT_MS, "no message for tag %llu", (unsigned long long)tag);
        loop_sleep_ms(1);
    }
    LOOP_CHECK(result == 1, "weft_probe: %s", strerror(-result));
    LOOP_CHECK(message.connection == RIGHT && message.reserved == 0, "what is filled in");
    return message;
}

static void expect_nothing(uint64_t tag, uint32_t flags, uint64_t mask)
{
    struct weft_options options = {.flags = flags, .tag_mask = mask};
    struct weft_message message;
    int result = weft_probe(RIGHT, tag, &options, &message);
    LOOP_CHECK(result == 0, "weft_probe says %d for tag %llu", result, (unsigned long long)tag);
}

/* Waits until no message with the tag is here any more. */
static void await_nothing(uint64_t tag)
{
    struct weft_message message;
    for (int waited = 0; weft_probe(RIGHT, tag, NULL, &message) == 1; waited++) {
        LOOP_CHECK(waited < LOOP_WAIT_MS, "the message with tag %llu stays", (unsigned long long)tag);
        loop_sleep_ms(1);
    }
}

/* --- masks --- */

static void masks_choose(void)
{
    struct loop_message upper, lower, exact, all;

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int late = 0; late < 2; late++) {
        loop_message_create(&upper, LARGE, 1);
        loop_message_create(&lower, SMALL, 2);
        loop_message_create(&exact, SMALL, 3);
        loop_message_create(&all, LARGE, 4);
        struct loop_message *const order[] = {&upper, &lower, &exact, &all};
        static const uint64_t tags[] = {0xab00000000000007, 0xcd00000000000004, 7, 0xcd00000000000001};
        for (int step = 0; step < 2; step++) {
            if (step == late) {
                exact.recv = receive_masked(&exact, 7, UINT64_MAX); /* the same as without a mask */
                upper.recv = receive_masked(&upper, UINT64_C(0xab) << 56, UINT64_C(0xff) << 56);
                lower.recv = receive_masked(&lower, 4, 0xf);
                all.recv = receive_masked(&all, 99, 0); /* any */
            } else {
                for (int i = 0; i < 4; i++)
                    send_from_left(order[i], tags[i]);
                for (int i = 0; late && i < 4; i++)
                    probe(tags[i], 0, 0);
            }
        }
        for (int i = 0; i < 4; i++)
            loop_message_finish(order[i]);
    }
    loop_pair_destroy(&pair);
}

/* Of the receives that are for a message, the one that was posted first takes it, whatever it is for besides. */
static void masks_keep_the_order_of_posting(void)
{
    struct loop_message message[4];

    loop_pair_create(&pair, NULL, NULL, 2);
    for (size_t i = 0; i < 4; i++)
        loop_message_create(&message[i], SMALL, i);
    message[0].recv = receive_masked(&message[0], 2, 2);
    message[1].recv = loop_recv(RIGHT, message[1].sink.data, SMALL, 3);
    message[2].recv = receive_masked(&message[2], 1, 1);
    message[3].recv = loop_recv_any(RIGHT, message[3].sink.data, SMALL);
    for (size_t i = 0; i < 4; i++)
        send_from_left(&message[i], 3);
    for (size_t i = 0; i < 4; i++)
        loop_message_finish(&message[i]);
    loop_pair_destroy(&pair);
}

/* --- probes --- */

static void probe_tells_what_a_receive_takes(void)
{
    struct loop_message message[3];

    loop_pair_create(&pair, NULL, NULL, 2);
    expect_nothing(0, WEFT_ANY_TAG, 0);
    for (size_t i = 0; i < 3; i++) {
        loop_message_create(&message[i], sizes[i], i + 5);
        send_from_left(&message[i], 40 + i);
    }
    struct weft_message found = probe(42, 0, 0); /* the last one: all are here */
    LOOP_CHECK(found.tag == 42 && found.bytes == LARGE, "tag %llu", (unsigned long long)found.tag);
    found = probe(0, WEFT_ANY_TAG, 0);
    LOOP_CHECK(found.tag == 40 && found.bytes == 0, "tag %llu", (unsigned long long)found.tag);
    found = probe(1, WEFT_TAG_MASK, 1);
    LOOP_CHECK(found.tag == 41 && found.bytes == SMALL, "tag %llu", (unsigned long long)found.tag);
    expect_nothing(43, 0, 0);
    expect_nothing(64, WEFT_TAG_MASK, 64);

    /* A receive that is too small takes nothing away. */
    loop_done(loop_recv(RIGHT, NULL, 0, 42), -EMSGSIZE, LARGE);
    found = probe(42, 0, 0);
    LOOP_CHECK(found.bytes == LARGE, "%llu bytes", (unsigned long long)found.bytes);
    for (size_t i = 3; i-- > 0;) {
        message[i].recv = loop_recv(RIGHT, message[i].sink.data, message[i].sink.size, 40 + i);
        expect_nothing(40 + i, 0, 0);
        loop_message_finish(&message[i]);
    }
    expect_nothing(0, WEFT_ANY_TAG, 0);
    loop_pair_destroy(&pair);
}

static void probe_ends_with_the_connection(void)
{
    struct weft_options any = {.flags = WEFT_ANY_TAG};
    struct weft_message found;
    struct loop_message message;

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_connection *ends[2];
    loop_connection(&pair, 0, ends);
    loop_message_create(&message, SMALL, 1);
    message.send = loop_send(ends[0], message.source.data, SMALL, 3);
    loop_done(message.send, 0, SMALL);
    int waited = 0;
    while (weft_probe(ends[1], 3, NULL, &found) == 0 && waited++ < LOOP_WAIT_MS)
        loop_sleep_ms(1);
    LOOP_CHECK(weft_connection_close(ends[0], LOOP_WAIT_MS, NULL) == 0, "closing");
    LOOP_CHECK(weft_probe(ends[1], 3, NULL, &found) == 1 && found.bytes == SMALL, "what came before can be received");
    loop_done(loop_recv(ends[1], message.sink.data, SMALL, 3), 0, SMALL);
    waited = 0;
    while (weft_probe(ends[1], 0, &any, &found) == 0 && waited++ < LOOP_WAIT_MS)
        loop_sleep_ms(1);
    LOOP_CHECK(weft_probe(ends[1], 0, &any, &found) == -ESHUTDOWN, "nothing comes any more");
    LOOP_CHECK(weft_connection_close(ends[1], LOOP_WAIT_MS, NULL) == 0, "closing");
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

/* --- sends that wait for their receive --- */

static void sync_send_ends_with_its_receive(void)
{
    struct loop_message message;

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int late = 0; late < 2; late++) {
        for (size_t i = 0; i < 3; i++) {
            loop_message_create(&message, sizes[i], i + 70);
            if (!late)
                message.recv = loop_recv(RIGHT, message.sink.data, message.sink.size, 5);
            message.send = send_sync(LEFT, &message, 5);
            if (late) {
                probe(5, 0, 0);
                loop_exchange(LEFT, RIGHT, SMALL, 6); /* the acknowledgements of all that was sent before are here */
                LOOP_CHECK(weft_test(message.send, NULL) == 0, "a send of %zu bytes has ended without a receive",
                           sizes[i]);
                message.recv = loop_recv(RIGHT, message.sink.data, message.sink.size, 5);
            }
            loop_done(message.send, 0, message.source.size);
#ifndef __SANITIZE_THREAD__ /* it does not know that what io_uring carries puts threads in an order */
            LOOP_CHECK(loop_wrong(message.sink.data, sizes[i], message.seed) < 0, "it has not landed");
#endif
            loop_done(message.recv, 0, message.sink.size);
            loop_message_verify(&message);
            loop_message_destroy(&message);
        }
    }
    loop_pair_destroy(&pair);
}

/* A receive that is too small, or is cancelled, does not end the send. */
static void sync_send_outlives_small_receives(void)
{
    struct loop_message message;

    loop_pair_create(&pair, NULL, NULL, 2);
    for (size_t i = 1; i < 3; i++) {
        loop_message_create(&message, sizes[i], i + 80);
        message.send = send_sync(LEFT, &message, 5);
        loop_done(loop_recv(RIGHT, message.sink.data, sizes[i] - 1, 5), -EMSGSIZE, sizes[i]);
        LOOP_CHECK(weft_test(message.send, NULL) == 0, "a send of %zu bytes has ended", sizes[i]);
        message.recv = loop_recv(RIGHT, message.sink.data, message.sink.size, 5);
        loop_message_finish(&message);
    }
    loop_pair_destroy(&pair);
}

/* Cancelled: it has gone, also where all of it had come. Closed: its status says so. */
static void sync_send_ends_early(void)
{
    struct loop_message message;
    struct weft_connection *ends[2];

    loop_pair_create(&pair, NULL, NULL, 2);
    for (size_t i = 0; i < 3; i++) {
        loop_message_create(&message, sizes[i], i + 90);
        message.send = send_sync(LEFT, &message, 5);
        probe(5, 0, 0);
        weft_cancel(message.send);
        loop_done(message.send, -ECANCELED, 0);
        await_nothing(5);

        loop_connection(&pair, 0, ends);
        message.send = send_sync(ends[0], &message, 5);
        LOOP_CHECK(weft_connection_close(ends[1], LOOP_WAIT_MS, NULL) == 0, "closing");
        loop_done(message.send, -ESHUTDOWN, 0);
        LOOP_CHECK(weft_connection_close(ends[0], LOOP_WAIT_MS, NULL) == 0, "closing");
        loop_message_destroy(&message);
    }
    loop_pair_destroy(&pair);
}

/* --- notifications of no operation --- */

static void notifications_alone(void)
{
    static const size_t lengths[] = {0, 1, SMALL, WEFT_NOTIFICATION_MAX};
    static unsigned char source[WEFT_NOTIFICATION_MAX], sink[WEFT_NOTIFICATION_MAX];
    struct weft_request *request = NULL, *notes[4], *sends[4];

    loop_pair_create(&pair, "unexpected=32K", NULL, 2);
    loop_fill(source, sizeof source, 6);
    for (int late = 0; late < 2; late++) {
        for (int step = 0; step < 2; step++)
            for (size_t i = 0; i < 4; i++) {
                int result = step == late ? weft_recv_notification(RIGHT, sink, sizeof sink, NULL, &notes[i])
                                          : weft_notify(LEFT, source, lengths[i], i + 300, NULL, &sends[i]);
                LOOP_CHECK(result == 0, "posting: %s", strerror(-result));
            }
        for (size_t i = 0; i < 4; i++) {
            struct weft_completion completion = loop_end(notes[i]);
            LOOP_CHECK(completion.status == 0 && completion.bytes == lengths[i] && completion.tag == i + 300,
                       "notification %zu: %s", i, completion.text);
            loop_done(sends[i], 0, lengths[i]);
        }
        LOOP_CHECK(loop_wrong(sink, sizeof sink, 6) < 0, "the longest is wrong");
    }
    LOOP_CHECK(weft_notify(LEFT, source, WEFT_NOTIFICATION_MAX + 1, 0, NULL, &request) == -EMSGSIZE, "too long");
    struct weft_options options = {.flags = WEFT_SYNC};
    LOOP_CHECK(weft_notify(LEFT, source, 1, 0, &options, &request) == -EINVAL, "no flags are allowed");
    loop_pair_destroy(&pair);
}

/* --- arguments --- */

static void wrong_arguments(void)
{
    struct weft_options both = {.flags = WEFT_ANY_TAG | WEFT_TAG_MASK}, sync = {.flags = WEFT_SYNC};
    struct weft_options masked = {.flags = WEFT_TAG_MASK};
    struct weft_request *request = NULL;
    struct weft_message message;
    char byte = 0;

    loop_pair_create(&pair, NULL, NULL, 1);
    LOOP_CHECK(weft_recv(RIGHT, &byte, 1, 0, &both, &request) == -EINVAL, "any tag and a mask");
    LOOP_CHECK(weft_probe(RIGHT, 0, &both, &message) == -EINVAL, "any tag and a mask");
    LOOP_CHECK(weft_probe(RIGHT, 0, &sync, &message) == -EINVAL, "a probe takes no WEFT_SYNC");
    LOOP_CHECK(weft_recv(RIGHT, &byte, 1, 0, &sync, &request) == -EINVAL, "a receive takes no WEFT_SYNC");
    LOOP_CHECK(weft_send(LEFT, &byte, 1, 0, &masked, &request) == -EINVAL, "a send takes no mask");
    LOOP_CHECK(weft_probe(NULL, 0, NULL, &message) == -EINVAL, "no connection");
    LOOP_CHECK(weft_probe(RIGHT, 0, NULL, NULL) == -EINVAL, "nowhere to put the message");
    LOOP_CHECK(weft_notify(NULL, &byte, 1, 0, NULL, &request) == -EINVAL, "no connection");
    LOOP_CHECK(weft_notify(LEFT, &byte, 1, 0, NULL, NULL) == -EINVAL, "nowhere to put the request");
    LOOP_CHECK(request == NULL, "an out-parameter was written on failure");
    loop_exchange(LEFT, RIGHT, SMALL, 0);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(masks_choose, 20),
        LOOP_CASE(masks_keep_the_order_of_posting, 20),
        LOOP_CASE(probe_tells_what_a_receive_takes, 20),
        LOOP_CASE(probe_ends_with_the_connection, 20),
        LOOP_CASE(sync_send_ends_with_its_receive, 30),
        LOOP_CASE(sync_send_outlives_small_receives, 20),
        LOOP_CASE(sync_send_ends_early, 30),
        LOOP_CASE(notifications_alone, 20),
        LOOP_CASE(wrong_arguments, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
