/* test_any.c: receives from any connection of an endpoint. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define SMALL 1000                  /* below eager */
#define LARGE (3 * 1024 * 1024 + 5) /* above first_burst */
#define ENDS 3                      /* connections */

static struct loop_pair pair;
#define RECEIVER (pair.node[1].endpoint)

static struct weft_connection *ends[ENDS][2]; /* [0] sends, [1] belongs to RECEIVER */

static void connect_all(const char *settings)
{
    loop_pair_create(&pair, settings, NULL, 2);
    ends[0][0] = pair.node[0].connection;
    ends[0][1] = pair.node[1].connection;
    for (int i = 1; i < ENDS; i++)
        loop_connection(&pair, 0, ends[i]);
}

static void end_all(void)
{
    for (int i = 1; i < ENDS; i++)
        loop_connection_end(ends[i]);
    loop_pair_destroy(&pair);
}

static struct weft_request *receive(void *data, size_t size, uint64_t tag, uint32_t flags, int timeout_ms)
{
    struct weft_options options = {.flags = flags, .timeout_ms = timeout_ms};
    struct weft_request *request = NULL;
    int result = weft_endpoint_recv(RECEIVER, data, size, tag, &options, &request);
    LOOP_CHECK(result == 0 && request, "weft_endpoint_recv: %s", strerror(-result));
    return request;
}

/* Waits until the message is here. */
static void await(struct weft_connection *connection, uint64_t tag)
{
    struct weft_message message;
    int result, waited = 0;
    while ((result = weft_probe(connection, tag, NULL, &message)) == 0) {
        LOOP_CHECK(waited++ < LOOP_WAIT_MS, "no message with tag %llu", (unsigned long long)tag);
        loop_sleep_ms(1);
    }
    LOOP_CHECK(result == 1, "weft_probe: %s", strerror(-result));
}

/* Which of the connections it is. */
static int index_of(const struct weft_connection *connection)
{
    for (int i = 0; i < ENDS; i++)
        if (ends[i][1] == connection)
            return i;
    LOOP_CHECK(0, "a connection of nobody");
    return -1;
}

static void finish_from(struct loop_message *message, int end)
{
    struct weft_completion completion = loop_end(message->recv);
    LOOP_CHECK(completion.status == 0 && completion.bytes == message->sink.size, "%s", completion.text);
    LOOP_CHECK(completion.connection == ends[end][1], "it came on another connection");
    loop_done(message->send, 0, message->source.size);
    loop_message_verify(message);
    loop_message_destroy(message);
}

static void takes_from_each(void)
{
    static const size_t sizes[] = {0, SMALL, LARGE};
    struct loop_message message;

    connect_all(NULL);
    for (int late = 0; late < 2; late++)
        for (int end = 0; end < ENDS; end++)
            for (size_t i = 0; i < 3; i++) {
                loop_message_create(&message, sizes[i], i + 10);
                if (!late)
                    message.recv = receive(message.sink.data, message.sink.size, 5, 0, 0);
                message.send = loop_send(ends[end][0], message.source.data, message.source.size, 5);
                if (late) {
                    await(ends[end][1], 5);
                    message.recv = receive(message.sink.data, message.sink.size, 5, 0, 0);
                }
                finish_from(&message, end);
            }
    end_all();
}

/* Where messages wait on all connections, each gives one in its turn, and each gives its own in their order. */
static void connections_take_turns(void)
{
    uint64_t sent[ENDS][4], got;
    int order[ENDS];

    connect_all(NULL);
    for (int end = 0; end < ENDS; end++) {
        for (uint64_t i = 0; i < 4; i++) {
            sent[end][i] = i;
            loop_done(loop_send(ends[end][0], &sent[end][i], sizeof sent[end][i], i), 0, sizeof sent[end][i]);
        }
        await(ends[end][1], 3);
    }
    for (uint64_t i = 0; i < 4; i++)
        for (int turn = 0; turn < ENDS; turn++) {
            struct weft_options any = {.flags = WEFT_ANY_TAG};
            struct weft_message next;
            LOOP_CHECK(weft_endpoint_probe(RECEIVER, 0, &any, &next) == 1, "no message waits");
            struct weft_completion completion = loop_end(receive(&got, sizeof got, 0, WEFT_ANY_TAG, 0));
            LOOP_CHECK(completion.status == 0 && completion.tag == i && got == i, "message %llu of its connection",
                       (unsigned long long)completion.tag);
            LOOP_CHECK(next.connection == completion.connection && next.tag == i && next.bytes == sizeof got,
                       "the probe said something else");
            int end = index_of(completion.connection);
            if (i == 0)
                order[turn] = end;
            LOOP_CHECK(order[turn] == end, "it was the turn of connection %d, not of %d", order[turn], end);
        }
    for (int a = 0; a < ENDS; a++)
        for (int b = 0; b < a; b++)
            LOOP_CHECK(order[a] != order[b], "connection %d had two turns", order[a]);
    end_all();
}

static void receives_of_the_connection_go_first(void)
{
    struct loop_message own, any;

    connect_all(NULL);
    loop_message_create(&any, SMALL, 1);
    loop_message_create(&own, SMALL, 2);
    any.recv = receive(any.sink.data, SMALL, 0, WEFT_ANY_TAG, 0); /* posted first */
    own.recv = loop_recv(ends[1][1], own.sink.data, SMALL, 7);
    own.send = loop_send(ends[1][0], own.source.data, SMALL, 7);
    any.send = loop_send(ends[1][0], any.source.data, SMALL, 7);
    loop_done(own.recv, 0, SMALL);
    loop_done(own.send, 0, SMALL);
    loop_message_verify(&own);
    loop_message_destroy(&own);
    finish_from(&any, 1);
    end_all();
}

static void too_small_keeps_the_message(void)
{
    static const size_t sizes[] = {SMALL, LARGE};
    struct loop_message message;

    connect_all(NULL);
    for (int late = 0; late < 2; late++)
        for (size_t i = 0; i < 2; i++) {
            struct weft_request *small = NULL;
            loop_message_create(&message, sizes[i], i);
            if (!late)
                small = receive(message.sink.data, sizes[i] - 1, 5, 0, 0);
            message.send = loop_send(ends[2][0], message.source.data, sizes[i], 5);
            if (late) {
                await(ends[2][1], 5);
                small = receive(message.sink.data, sizes[i] - 1, 5, 0, 0);
            }
            struct weft_completion completion = loop_end(small);
            LOOP_CHECK(completion.status == -EMSGSIZE && completion.bytes == sizes[i] &&
                           completion.connection == ends[2][1] && completion.text[0],
                       "%s", completion.text);
            message.recv = receive(message.sink.data, sizes[i], 5, 0, 0);
            finish_from(&message, 2);
        }
    end_all();
}

/* Gets the connection by an accept, or by the event that tells of it. */
static struct weft_connection *get(bool by_event)
{
    struct weft_connection *connection = NULL;
    struct weft_event event = {0};
    struct weft_error err;
    if (!by_event) {
        LOOP_CALL(
            weft_connection_accept(RECEIVER, pair.node[1].peer, WEFT_ANY_ENDPOINT, LOOP_WAIT_MS, &connection, &err),
            &err);
        return connection;
    }
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (weft_event_poll(pair.node[1].context, &event, 1) == 0)
        LOOP_CHECK(loop_now_ms() < limit, "no event");
    LOOP_CHECK(event.kind == WEFT_EVENT_CONNECTION && event.endpoint == RECEIVER, "event %d: %s", event.kind,
               event.text);
    return event.connection;
}

/* A message on a connection that the user has not got waits until the user gets it. */
static void wait_to_be_had(bool by_event)
{
    struct loop_message message;
    struct weft_connection *own[2];
    struct weft_error err;

    connect_all(NULL);
    loop_message_create(&message, LARGE, 4);
    message.recv = receive(message.sink.data, LARGE, 9, 0, 0);
    LOOP_CALL(weft_connection_open(pair.node[0].endpoint, pair.node[0].peer, 0, LOOP_WAIT_MS, &own[0], &err), &err);
    message.send = loop_send(own[0], message.source.data, LARGE, 9);
    loop_exchange(ends[0][0], ends[0][1], SMALL, 1);
    LOOP_CHECK(weft_test(message.recv, NULL) == 0, "it came on a connection that nobody has");
    own[1] = get(by_event);
    struct weft_completion completion = loop_end(message.recv);
    LOOP_CHECK(completion.status == 0 && completion.connection == own[1], "%s", completion.text);
    loop_done(message.send, 0, LARGE);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_connection_end(own);
    end_all();
}

static void waits_for_the_accept(void)
{
    wait_to_be_had(false);
}

static void waits_for_the_event(void)
{
    wait_to_be_had(true);
}

/* Posted before there is a peer; and what ends one that nothing comes for. */
static void ends_without_a_message(void)
{
    struct weft_context *context = loop_context(NULL, 1);
    struct weft_endpoint *endpoint;
    struct weft_error err;
    char byte;

    LOOP_CALL(weft_endpoint_create(context, 44, &endpoint, &err), &err);
    struct weft_options late = {.timeout_ms = 5};
    struct weft_request *requests[3];
    for (int i = 0; i < 3; i++)
        LOOP_CHECK(weft_endpoint_recv(endpoint, &byte, 1, 6, i == 0 ? &late : NULL, &requests[i]) == 0, "posting");
    struct weft_completion completion = loop_end(requests[0]);
    LOOP_CHECK(completion.status == -ETIMEDOUT && !completion.connection, "%s", completion.text);
    LOOP_CHECK(strstr(completion.text, "endpoint 44"), "%s", completion.text);
    weft_cancel(requests[1]);
    loop_done(requests[1], -ECANCELED, 0);
    LOOP_CHECK(weft_test(requests[2], NULL) == 0, "it ended with another");
    LOOP_CHECK(weft_endpoint_destroy(endpoint) == 0, "destroying");
    loop_done(requests[2], -ECANCELED, 0);
    LOOP_CALL(weft_endpoint_create(context, 44, &endpoint, &err), &err);
    LOOP_CHECK(weft_endpoint_recv(endpoint, &byte, 1, 6, NULL, &requests[0]) == 0, "posting");
    loop_context_end(context); /* with a receive that waits */
}

/* A message is on its way into the buffer: the receive lets go of it before it ends. */
static void cancelled_on_the_way(void)
{
    struct loop_message message;

    connect_all("chunk=4K window=2");
    for (int i = 0; i < 10; i++) {
        loop_message_create(&message, LARGE, (uint64_t)i);
        message.recv = receive(message.sink.data, LARGE, 0, WEFT_ANY_TAG, 0);
        message.send = loop_send(ends[1][0], message.source.data, LARGE, 5);
        loop_exchange(ends[0][0], ends[0][1], SMALL, 1);
        weft_cancel(message.recv);
        struct weft_completion completion = loop_end(message.recv);
        LOOP_CHECK(completion.status == 0 || completion.status == -ECANCELED, "%s", completion.text);
        if (completion.status < 0 && !completion.connection) /* nothing of it had come: it still waits */
            loop_done(receive(message.sink.data, LARGE, 0, WEFT_ANY_TAG, 0), 0, LARGE);
        completion = loop_end(message.send);
        LOOP_CHECK(completion.status == 0 || completion.status == -ECANCELED, "%s", completion.text);
        loop_message_destroy(&message);
    }
    end_all();
}

/* Of a peer that goes while a message of it is on its way, the receive gets the error; one without a message waits on.
 */
static void the_peer_goes(void)
{
    struct loop_message message;
    char byte = 'b', landing;

    connect_all("chunk=4K window=1");
    loop_message_create(&message, LARGE, 1);
    message.recv = receive(message.sink.data, LARGE, 5, 0, 0);
    struct weft_request *other = receive(&landing, 1, 6, 0, 0);
    message.send = loop_send(ends[1][0], message.source.data, LARGE, 5);
    loop_exchange(ends[0][0], ends[0][1], SMALL, 1);
    weft_cancel(message.send);
    struct weft_completion sent = loop_end(message.send);
    if (sent.status == 0) {
        loop_done(message.recv, 0, LARGE);
    } else {
        weft_cancel(message.recv); /* the sender gave it up before it was introduced, or on its way */
        loop_done(message.recv, -ECANCELED, 0);
    }
    for (int i = 1; i < ENDS; i++)
        LOOP_CHECK(weft_connection_close(ends[i][0], LOOP_WAIT_MS, NULL) == 0, "closing");
    for (int i = 1; i < ENDS; i++)
        LOOP_CHECK(weft_connection_close(ends[i][1], LOOP_WAIT_MS, NULL) == 0, "closing");
    LOOP_CHECK(weft_test(other, NULL) == 0, "no connection ends it");
    loop_done(loop_send(ends[0][0], &byte, 1, 6), 0, 1);
    loop_done(other, 0, 1);
    LOOP_CHECK(landing == byte, "a wrong byte");
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

/* --- many threads --- */

#define THREADS 3
#define EACH 600 /* messages of a connection */

static _Atomic int taken[ENDS][EACH];
static _Atomic int left;

static void *receive_many(void *arg)
{
    uint32_t landed[2];
    (void)arg;
    while (atomic_fetch_sub(&left, 1) > 0) {
        struct weft_completion completion = loop_end(receive(landed, sizeof landed, 0, WEFT_ANY_TAG, 0));
        LOOP_CHECK(completion.status == 0 && completion.bytes == sizeof landed, "%s", completion.text);
        LOOP_CHECK(completion.connection == ends[landed[0]][1], "it came on another connection");
        atomic_fetch_add(&taken[landed[0]][landed[1]], 1);
    }
    return NULL;
}

static void *send_many(void *arg)
{
    uint32_t end = (uint32_t)(uintptr_t)arg;
    for (uint32_t i = 0; i < EACH; i++) {
        uint32_t data[2] = {end, i};
        loop_done(loop_send(ends[end][0], data, sizeof data, i), 0, sizeof data);
    }
    return NULL;
}

static void many_threads(void)
{
    pthread_t threads[THREADS + ENDS];

    loop_needs_kernel("threads of its own");
    connect_all(NULL);
    atomic_store(&left, ENDS * EACH);
    for (uintptr_t i = 0; i < ENDS; i++)
        LOOP_CHECK(pthread_create(&threads[i], NULL, send_many, (void *)i) == 0, "a thread");
    for (int i = 0; i < THREADS; i++)
        LOOP_CHECK(pthread_create(&threads[ENDS + i], NULL, receive_many, NULL) == 0, "a thread");
    for (int i = 0; i < THREADS + ENDS; i++)
        pthread_join(threads[i], NULL);
    for (int end = 0; end < ENDS; end++)
        for (int i = 0; i < EACH; i++)
            LOOP_CHECK(atomic_load(&taken[end][i]) == 1, "message %d of connection %d came %d times", i, end,
                       atomic_load(&taken[end][i]));
    end_all();
}

/* One receive at a time, while messages of one connection come: the next one may come just when the receive is posted
 * for one that waits. */
#define IN_ORDER LOOP_COUNT(100000, 5000)

static void *send_numbered(void *arg)
{
    (void)arg;
    for (uint64_t i = 0; i < (uint64_t)IN_ORDER; i++)
        loop_done(loop_send(ends[0][0], &i, sizeof i, i % 7), 0, sizeof i);
    return NULL;
}

static void keeps_the_order_of_a_connection(void)
{
    pthread_t sender;

    loop_needs_kernel("threads of its own");
    connect_all("workers=split");
    LOOP_CHECK(pthread_create(&sender, NULL, send_numbered, NULL) == 0, "a thread");
    for (uint64_t i = 0; i < (uint64_t)IN_ORDER; i++) {
        uint64_t number = UINT64_MAX;
        loop_done(receive(&number, sizeof number, 0, WEFT_ANY_TAG, 0), 0, sizeof number);
        LOOP_CHECK(number == i, "message %llu came in the place of %llu", (unsigned long long)number,
                   (unsigned long long)i);
    }
    pthread_join(sender, NULL);
    end_all();
}

static void wrong_arguments(void)
{
    struct weft_options both = {.flags = WEFT_ANY_TAG | WEFT_TAG_MASK}, stream = {.flags = WEFT_ON_STREAM};
    struct weft_request *request = NULL;
    struct weft_message message;
    char byte;

    connect_all(NULL);
    LOOP_CHECK(weft_endpoint_recv(RECEIVER, &byte, 1, 0, &both, &request) == -EINVAL, "any tag and a mask");
    LOOP_CHECK(weft_endpoint_recv(RECEIVER, &byte, 1, 0, &stream, &request) == -EINVAL, "a stream");
    LOOP_CHECK(weft_endpoint_recv(RECEIVER, NULL, 1, 0, NULL, &request) == -EINVAL, "no buffer for a byte");
    LOOP_CHECK(weft_endpoint_probe(RECEIVER, 0, &both, &message) == -EINVAL, "any tag and a mask");
    LOOP_CHECK(weft_endpoint_probe(RECEIVER, 0, NULL, &message) == 0, "nothing waits");
    LOOP_CHECK(weft_endpoint_recv(NULL, &byte, 1, 0, NULL, &request) == -EINVAL, "no endpoint");
    LOOP_CHECK(weft_endpoint_recv(RECEIVER, &byte, 1, 0, NULL, NULL) == -EINVAL, "nowhere to put the request");
    LOOP_CHECK(weft_endpoint_probe(NULL, 0, NULL, &message) == -EINVAL, "no endpoint");
    LOOP_CHECK(weft_endpoint_probe(RECEIVER, 0, NULL, NULL) == -EINVAL, "nowhere to put the message");
    LOOP_CHECK(request == NULL, "an out-parameter was written on failure");
    end_all();
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(takes_from_each, 30),
        LOOP_CASE(connections_take_turns, 20),
        LOOP_CASE(receives_of_the_connection_go_first, 20),
        LOOP_CASE(too_small_keeps_the_message, 20),
        LOOP_CASE(waits_for_the_accept, 20),
        LOOP_CASE(waits_for_the_event, 20),
        LOOP_CASE(ends_without_a_message, 20),
        LOOP_CASE(cancelled_on_the_way, 30),
        LOOP_CASE(the_peer_goes, 20),
        LOOP_CASE(many_threads, 60),
        LOOP_CASE(keeps_the_order_of_a_connection, 60),
        LOOP_CASE(wrong_arguments, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
