/* test_cancel.c: a request ends exactly once, early when asked or at its deadline, and its memory is the caller's again
 * from then on. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define SMALL 1000
#define LARGE (1024 * 1024 + 9)
#define HUGE_SIZE (48 * 1024 * 1024)
#define SLOW "channels=1 window=1 chunk=4K"

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

static void nothing_broke(void)
{
    LOOP_CHECK(loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer) == 0, "a channel was lost");
    loop_exchange(LEFT, RIGHT, LARGE, 4242);
    loop_exchange(LEFT, RIGHT, SMALL, 4243);
}

static void receive_before_its_match(void)
{
    struct loop_message message;
    struct loop_buffer unused;

    loop_pair_create(&pair, NULL, NULL, 2);
    for (size_t size = 0; size <= LARGE; size = size * 40 + SMALL) {
        loop_buffer_create(&unused, LOOP_FAR, LARGE);
        struct weft_request *recv = loop_recv(RIGHT, unused.data, LARGE, 1);
        weft_cancel(recv);
        weft_cancel(recv);
        loop_done(recv, -ECANCELED, 0);
        loop_buffer_unmap(&unused);
        loop_message_create(&message, size, size);
        message.send = loop_send(LEFT, message.source.data, size, 1);
        message.recv = loop_recv(RIGHT, message.sink.data, size, 1);
        loop_message_finish(&message);
    }
    nothing_broke();
    loop_pair_destroy(&pair);
}

/* Until what a cancelled transfer had on its way has come and gone. */
static void wait_for_quiet(void)
{
    uint64_t before, now = loop_received(pair.node[1].peer);

    do {
        before = now;
        loop_sleep_ms(20 * LOOP_SLOWER);
        now = loop_received(pair.node[1].peer);
    } while (now != before);
}

/* Starts a transfer that takes long, and returns when more has arrived than comes without a match. */
static void start_slow(struct loop_message *message, size_t size)
{
    wait_for_quiet();
    uint64_t before = loop_received(pair.node[1].peer);

    loop_message_create(message, size, size);
    message->recv = loop_recv(RIGHT, message->sink.data, size, 7);
    message->send = loop_send(LEFT, message->source.data, size, 7);
    for (int64_t limit = loop_now_ms() + LOOP_WAIT_MS; loop_received(pair.node[1].peer) - before < 256 * 1024;)
        LOOP_CHECK(loop_now_ms() < limit, "the transfer does not get under way");
}

/* Cancels one side under way. Both ends end, and the memory of each is unmapped at once. (A sender may be told that its
 * send was cancelled although the last byte had just landed: that receive is whole.) */
static void cancel_under_way(bool receiver, const char *settings)
{
    struct loop_message message;

    loop_note("the %s cancels, %s", receiver ? "receiver" : "sender", settings);
    loop_pair_create(&pair, settings, NULL, 2);
    for (int round = 0; round < LOOP_COUNT(6, 2); round++) {
        start_slow(&message, HUGE_SIZE / (LOOP_SLOW_SANITIZER ? 8 : 1));
        weft_cancel(receiver ? message.recv : message.send);
        struct weft_completion first = loop_end(receiver ? message.recv : message.send);
        loop_buffer_unmap(receiver ? &message.sink : &message.source);
        struct weft_completion second = loop_end(receiver ? message.send : message.recv);
        if (!receiver && second.status == 0)
            LOOP_CHECK(loop_wrong(message.sink.data, message.sink.size, message.seed) < 0, "the receive is not whole");
        loop_buffer_unmap(receiver ? &message.source : &message.sink);
        LOOP_CHECK(first.status == -ECANCELED || first.status == 0, "the cancelled request ended with %d: %s",
                   first.status, first.text);
        if (first.status == 0)
            LOOP_CHECK(second.status == 0, "one side 0, the other %d: %s", second.status, second.text);
        loop_exchange(LEFT, RIGHT, 65537, 7);
    }
    nothing_broke();
    loop_pair_destroy(&pair);
}

static void receive_under_way(void)
{
    cancel_under_way(true, SLOW);
    cancel_under_way(true, "channels=4 chunk=64K window=16");
}

static void send_under_way(void)
{
    cancel_under_way(false, SLOW);
    cancel_under_way(false, "channels=4 chunk=64K window=16");
}

enum { WAITING = 10, WITHDRAWN = 2 };

static bool is_withdrawn(int i)
{
    return i % 4 == 3;
}

/* Receives what was not withdrawn, in its order. A receive may still be matched with a message whose withdrawal is on
 * its way: it ends with it, and the next one takes its place. */
static void receive_the_others(struct loop_message *message)
{
    struct loop_buffer sink[WAITING];
    struct weft_request *recv[WAITING];
    int posted = 0, next = 0;

    for (; posted < WAITING - WITHDRAWN; posted++) {
        loop_buffer_create(&sink[posted], LOOP_FAR, LARGE);
        recv[posted] = loop_recv(RIGHT, sink[posted].data, LARGE, 1);
    }
    for (int i = 0; i < posted; i++) {
        loop_note("receive %d, message %d", i, next);
        struct weft_completion completion = loop_end(recv[i]);
        if (completion.status == -ECANCELED) {
            LOOP_CHECK(posted < WAITING, "more receives were cancelled than sends");
            loop_buffer_create(&sink[posted], LOOP_FAR, LARGE);
            recv[posted] = loop_recv(RIGHT, sink[posted].data, LARGE, 1);
            posted++;
        } else {
            LOOP_CHECK(completion.status == 0 && completion.bytes == LARGE, "status %d", completion.status);
            next += is_withdrawn(next);
            LOOP_CHECK(loop_wrong(sink[i].data, LARGE, message[next].seed) < 0, "not the message that is next");
            next++;
        }
        loop_buffer_unmap(&sink[i]);
    }
}

/* Sends that wait for their receives: two of them are withdrawn, the others arrive in their order. */
static void sends_that_wait(void)
{
    struct loop_message message[WAITING];

    loop_pair_create(&pair, "channels=2 chunk=64K", NULL, 2);
    for (int late = 0; late < 2; late++) {
        for (int i = 0; i < WAITING; i++) {
            loop_message_create(&message[i], LARGE, (uint64_t)i + 1);
            message[i].send = loop_send(LEFT, message[i].source.data, LARGE, 1);
        }
        loop_sleep_ms(30);
        for (int i = 0; i < WAITING; i++) {
            if (!is_withdrawn(i))
                continue;
            weft_cancel(message[i].send);
            loop_done(message[i].send, -ECANCELED, 0);
            loop_buffer_unmap(&message[i].source);
        }
        loop_sleep_ms(late * 30);
        receive_the_others(message);
        for (int i = 0; i < WAITING; i++) {
            if (!is_withdrawn(i))
                loop_done(message[i].send, 0, LARGE);
            loop_message_destroy(&message[i]);
        }
    }
    nothing_broke();
    loop_pair_destroy(&pair);
}

/* The introduction limit keeps most sends in the queue: cancelled there, the peer never hears of them. */
static void sends_in_the_queue(void)
{
    enum { COUNT = 40 };
    struct loop_message message[COUNT];

    loop_pair_create(&pair, "introductions=2 small_pool=64K", NULL, 1);
    for (size_t i = 0; i < COUNT; i++) {
        loop_message_create(&message[i], LARGE, i + 1);
        message[i].send = loop_send(LEFT, message[i].source.data, LARGE, i);
    }
    for (size_t i = COUNT; i-- > 0;) {
        if (i == 20)
            continue;
        weft_cancel(message[i].send);
        loop_done(message[i].send, -ECANCELED, 0);
        loop_buffer_unmap(&message[i].source);
    }
    message[20].recv = loop_recv(RIGHT, message[20].sink.data, LARGE, 20);
    loop_done(message[20].recv, 0, LARGE);
    loop_done(message[20].send, 0, LARGE);
    loop_message_verify(&message[20]);
    for (size_t i = 0; i < COUNT; i++)
        loop_message_destroy(&message[i]);
    nothing_broke();
    loop_pair_destroy(&pair);
}

static void deadlines(void)
{
    struct weft_options soon = {.timeout_ms = 150};
    struct loop_message message;
    struct weft_request *recv = NULL, *send = NULL;
    int64_t start = loop_now_ms();

    loop_pair_create(&pair, NULL, NULL, 2);
    loop_message_create(&message, LARGE, 1);
    LOOP_CHECK(weft_recv(LEFT, message.sink.data, LARGE, 1, &soon, &recv) == 0, "weft_recv");
    LOOP_CHECK(weft_send(LEFT, message.source.data, LARGE, 1, &soon, &send) == 0, "weft_send");
    loop_done(recv, -ETIMEDOUT, 0);
    loop_done(send, -ETIMEDOUT, 0);
    int64_t took = loop_now_ms() - start;
    LOOP_CHECK(took >= 150 && took < 2000 * LOOP_SLOWER, "deadlines of 150 ms ended after %lld", (long long)took);
    loop_message_destroy(&message);
    nothing_broke();

    /* A deadline that is not reached changes nothing, nor does one of a message that took part of it. */
    soon.timeout_ms = LOOP_WAIT_MS;
    loop_message_create(&message, LARGE, 2);
    LOOP_CHECK(weft_recv(RIGHT, message.sink.data, LARGE, 2, &soon, &recv) == 0, "weft_recv");
    loop_sleep_ms(200);
    LOOP_CHECK(weft_send(LEFT, message.source.data, LARGE, 2, &soon, &send) == 0, "weft_send");
    loop_done(recv, 0, LARGE);
    loop_done(send, 0, LARGE);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

/* The other side of a request that may have ended before the two were matched. */
static struct weft_completion end_or_withdraw(struct weft_request *request)
{
    struct weft_completion completion;

    if (weft_wait(request, 3000, &completion) == 0)
        return completion;
    weft_cancel(request);
    return loop_end(request);
}

static void deadline_under_way(void)
{
    struct weft_options soon = {.timeout_ms = 80};

    loop_pair_create(&pair, SLOW, NULL, 1);
    for (int side = 0; side < 2; side++) {
        struct loop_message message;
        loop_message_create(&message, HUGE_SIZE, 3);
        LOOP_CHECK(weft_recv(RIGHT, message.sink.data, HUGE_SIZE, 1, side ? &soon : NULL, &message.recv) == 0, "recv");
        LOOP_CHECK(weft_send(LEFT, message.source.data, HUGE_SIZE, 1, side ? NULL : &soon, &message.send) == 0, "send");
        struct weft_completion own = loop_end(side ? message.recv : message.send);
        loop_buffer_unmap(side ? &message.sink : &message.source);
        struct weft_completion other = end_or_withdraw(side ? message.send : message.recv);
        LOOP_CHECK(own.status == -ETIMEDOUT, "48 MiB in 4 KiB steps ended with %d: %s", own.status, own.text);
        LOOP_CHECK(other.status < 0, "one side timed out, the other ended with %d", other.status);
        loop_message_destroy(&message);
    }
    nothing_broke();
    loop_pair_destroy(&pair);
}

/* A wait that expires leaves its request as it was; cancel after the end is too late. */
static void waits_expire_requests_do_not(void)
{
    struct loop_message message;
    struct weft_completion completion;
    int index = -1;

    loop_pair_create(&pair, NULL, NULL, 1);
    loop_message_create(&message, LARGE, 1);
    message.recv = loop_recv(RIGHT, message.sink.data, LARGE, 1);
    LOOP_CHECK(weft_wait(message.recv, 0, &completion) == -ETIMEDOUT, "a wait of 0 ms");
    LOOP_CHECK(weft_wait(message.recv, 40, &completion) == -ETIMEDOUT, "a wait of 40 ms");
    LOOP_CHECK(weft_test(message.recv, &completion) == 0, "a test");
    struct weft_request *both[3] = {NULL, message.recv, NULL};
    LOOP_CHECK(weft_wait_any(both, 3, 40, &index, &completion) == -ETIMEDOUT, "a wait for any");
    LOOP_CHECK(weft_wait_any(both, 1, 40, &index, &completion) == -ENOENT, "a wait for none");
    LOOP_CHECK(index == -1, "an out-parameter was written on failure");
    message.send = loop_send(LEFT, message.source.data, LARGE, 1);
    LOOP_CHECK(weft_wait_any(both, 3, LOOP_WAIT_MS, &index, &completion) == 0, "a wait for any");
    LOOP_CHECK(index == 1 && completion.status == 0, "index %d, status %d", index, completion.status);
    loop_sleep_ms(50);
    weft_cancel(message.send);
    loop_done(message.send, 0, LARGE);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

static void *deregister(void *registration)
{
    weft_deregister(registration);
    return NULL;
}

/* A registration in use is not gone before the operation is. */
static void registrations_are_held(void)
{
    struct weft_registration *held = NULL, *second = NULL;
    struct loop_message message;
    struct weft_error err = {0};
    pthread_t thread;

    loop_needs_kernel("threads");
    loop_pair_create(&pair, NULL, NULL, 1);
    loop_message_create(&message, LARGE, 1);
    LOOP_CALL(weft_register(pair.node[0].context, message.source.data, LARGE, &held, &err), &err);
    LOOP_CALL(weft_register(pair.node[0].context, message.sink.data, LARGE, &second, &err), &err);
    LOOP_CHECK(weft_register(pair.node[0].context, NULL, 5, &second, &err) == -EINVAL, "NULL was registered");
    LOOP_CHECK(weft_register(pair.node[0].context, message.source.data, UINT64_MAX, &second, &err) == -EINVAL, "wraps");
    enum weft_memory_kind kind = message.source.device == LOOP_NO_DEVICE ? WEFT_MEMORY_HOST : WEFT_MEMORY_CUDA;
    LOOP_CHECK(weft_registration_kind(held) == kind, "kind %d", weft_registration_kind(held));
    LOOP_CHECK(weft_registration_key(held) && weft_registration_key(held) != weft_registration_key(second), "keys");
    weft_deregister(second);
    struct weft_options options = {.registration = held};
    LOOP_CHECK(weft_send(LEFT, message.source.data, LARGE, 1, &options, &message.send) == 0, "weft_send");
    LOOP_CHECK(pthread_create(&thread, NULL, deregister, held) == 0, "pthread_create");
    loop_sleep_ms(100);
    LOOP_CHECK(pthread_tryjoin_np(thread, NULL) == EBUSY, "deregistered under a send");
    message.recv = loop_recv(RIGHT, message.sink.data, LARGE, 1);
    loop_done(message.recv, 0, LARGE);
    loop_done(message.send, 0, LARGE);
    pthread_join(thread, NULL);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(receive_before_its_match, 20), LOOP_CASE(receive_under_way, 60),
        LOOP_CASE(send_under_way, 60),           LOOP_CASE(sends_that_wait, 20),
        LOOP_CASE(sends_in_the_queue, 20),       LOOP_CASE(deadlines, 20),
        LOOP_CASE(deadline_under_way, 60),       LOOP_CASE(waits_expire_requests_do_not, 20),
        LOOP_CASE(registrations_are_held, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
