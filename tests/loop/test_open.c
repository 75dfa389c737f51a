/* test_open.c: endpoints and connections: either side opens, in any order, and waits no longer than it was told to. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct loop_pair pair;

static void both_sides_open(void)
{
    struct weft_connection *forth[2], *back[2];

    loop_pair_create(&pair, NULL, NULL, 2);
    loop_connection(&pair, 0, forth);
    loop_connection(&pair, 1, back);
    loop_exchange(forth[0], forth[1], 70000, 1);
    loop_exchange(back[0], back[1], 70000, 1);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    loop_connection_end(back);
    loop_exchange(forth[1], forth[0], 70000, 1);
    loop_connection_end(forth);
    loop_pair_destroy(&pair);
}

/* Connections of one pair of endpoints share channels, not messages. */
static void connections_of_one_pair_do_not_mix(void)
{
    enum { COUNT = 6 };
    struct weft_connection *ends[COUNT][2];
    struct loop_message message[COUNT];

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int i = 0; i < COUNT; i++)
        loop_connection(&pair, i % 2, ends[i]);
    for (uint64_t i = 0; i < COUNT; i++) {
        loop_message_create(&message[i], i % 2 ? 100 : 200000, i);
        message[i].send = loop_send(ends[i][0], message[i].source.data, message[i].source.size, 1);
    }
    for (int i = COUNT; i-- > 0;)
        message[i].recv = loop_recv(ends[i][1], message[i].sink.data, message[i].sink.size, 1);
    for (int i = 0; i < COUNT; i++) {
        loop_message_finish(&message[i]);
        loop_connection_end(ends[i]);
    }
    loop_pair_destroy(&pair);
}

/* More than there are introductions for (WF_INTRODUCTIONS_SHARED): the last have a few, and carry all the same. */
static void connections_with_few_introductions(void)
{
    enum { CONNECTIONS = 20, MESSAGES = 50, SIZE = 3000 };
    struct weft_connection *ends[CONNECTIONS][2];
    static unsigned char from[SIZE], to[CONNECTIONS][MESSAGES][SIZE];
    static struct weft_request *sends[CONNECTIONS][MESSAGES], *receives[CONNECTIONS][MESSAGES];

    loop_pair_create(&pair, "introductions=65536", NULL, 2);
    loop_fill(from, SIZE, 1);
    for (int i = 0; i < CONNECTIONS; i++)
        loop_connection(&pair, i % 2, ends[i]);
    for (int i = 0; i < CONNECTIONS; i++)
        for (int k = 0; k < MESSAGES; k++)
            sends[i][k] = loop_send(ends[i][0], from, SIZE, 1);
    for (int i = CONNECTIONS; i-- > 0;)
        for (int k = 0; k < MESSAGES; k++)
            receives[i][k] = loop_recv(ends[i][1], to[i][k], SIZE, 1);
    for (int i = 0; i < CONNECTIONS; i++) {
        for (int k = 0; k < MESSAGES; k++) {
            loop_done(receives[i][k], 0, SIZE);
            loop_done(sends[i][k], 0, SIZE);
            LOOP_CHECK(loop_wrong(to[i][k], SIZE, 1) < 0, "message %d of connection %d is wrong", k, i);
        }
        loop_connection_end(ends[i]);
    }
    loop_pair_destroy(&pair);
}

static void connections_reopen_many_times(void)
{
    loop_pair_create(&pair, "introductions=4", NULL, 2);
    int fds = loop_fds(), threads = loop_threads();
    for (int round = 0; round < LOOP_COUNT(1000, 150); round++) {
        struct weft_connection *ends[2];
        loop_note("round %d", round);
        loop_connection(&pair, round % 2, ends);
        loop_exchange(ends[0], ends[1], round % 4 ? 100 : 100000, 1);
        loop_connection_end(ends);
    }
    LOOP_CHECK(loop_fds() == fds && loop_threads() == threads, "%d descriptors, %d threads; %d and %d before",
               loop_fds(), loop_threads(), fds, threads);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    loop_pair_destroy(&pair);
}

static void endpoints_are_unique_and_busy(void)
{
    struct weft_context *context;
    struct weft_endpoint *again = NULL;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    context = pair.node[0].context;
    LOOP_CHECK(weft_endpoint_create(context, 0, &again, &err) == -EEXIST, "endpoint 0 twice");
    LOOP_CHECK(err.code == -EEXIST && err.text[0], "code %d, text '%s'", err.code, err.text);
    LOOP_CHECK(weft_endpoint_create(context, WEFT_ANY_ENDPOINT, &again, &err) == -EINVAL, "the number of any");
    LOOP_CHECK(again == NULL, "an out-parameter was written on failure");
    for (int i = 0; i < 2; i++)
        LOOP_CHECK(weft_endpoint_destroy(pair.node[i].endpoint) == -EBUSY, "node %d: its connection is open", i);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    weft_connection_close(pair.node[0].connection, LOOP_WAIT_MS, NULL);
    weft_connection_close(pair.node[1].connection, LOOP_WAIT_MS, NULL);
    pair.node[0].connection = pair.node[1].connection = NULL;
    LOOP_CHECK(weft_endpoint_destroy(pair.node[0].endpoint) == 0, "its connection is closed");
    LOOP_CALL(weft_endpoint_create(context, 0, &pair.node[0].endpoint, &err), &err);
    loop_node_open(&pair.node[0]);
    loop_node_take(&pair.node[1]);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    loop_pair_destroy(&pair);
}

static void foreign(int result, const struct weft_error *err, const char *call)
{
    LOOP_CHECK(result == -EINVAL && err->code == -EINVAL, "%s: %d %s", call, result, err->text);
    LOOP_CHECK(strncmp(err->text, call, strlen(call)) == 0 && strstr(err->text, "a peer of another context"), "'%s'",
               err->text);
}

/* A connection of two contexts would outlive one of them. */
static void peer_of_another_context(void)
{
    struct weft_connection *none = NULL;
    struct weft_request *request = NULL;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_endpoint *endpoint = pair.node[0].endpoint;
    struct weft_peer *peer = pair.node[1].peer;
    foreign(weft_connection_open(endpoint, peer, 0, LOOP_WAIT_MS, &none, &err), &err, "weft_connection_open()");
    foreign(weft_connection_accept(endpoint, peer, 0, 0, &none, &err), &err, "weft_connection_accept()");
    foreign(weft_connection_open_start(endpoint, peer, 0, NULL, &request, &err), &err, "weft_connection_open_start()");
    foreign(weft_connection_accept_start(endpoint, peer, 0, NULL, &request, &err), &err,
            "weft_connection_accept_start()");
    LOOP_CHECK(!none && !request, "an out-parameter was written on failure");
    loop_pair_destroy(&pair);
}

static void any_endpoint_is_not_opened(void)
{
    struct weft_connection *none = NULL;
    struct weft_request *request = NULL;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    struct loop_node *node = &pair.node[0];
    for (int start = 0; start < 2; start++) {
        err = (struct weft_error){0};
        int rc = start ? weft_connection_open_start(node->endpoint, node->peer, WEFT_ANY_ENDPOINT, NULL, &request, &err)
                       : weft_connection_open(node->endpoint, node->peer, WEFT_ANY_ENDPOINT, 0, &none, &err);
        LOOP_CHECK(rc == -EINVAL && strstr(err.text, "remote_id is WEFT_ANY_ENDPOINT"), "%d '%s'", rc, err.text);
    }
    LOOP_CHECK(!none && !request, "an out-parameter was written on failure");
    loop_pair_destroy(&pair);
}

static void *appear_late(void *endpoint)
{
    struct weft_error err = {0};

    loop_sleep_ms(200);
    LOOP_CALL(weft_endpoint_create(pair.node[1].context, 17, endpoint, &err), &err);
    return NULL;
}

static void endpoint_that_appears_later(void)
{
    struct weft_connection *ends[2] = {NULL, NULL};
    struct weft_endpoint *late = NULL;
    struct weft_error err = {0};
    pthread_t thread;

    loop_needs_kernel("threads");
    loop_pair_create(&pair, NULL, NULL, 2);
    LOOP_CHECK(pthread_create(&thread, NULL, appear_late, &late) == 0, "pthread_create");
    LOOP_CALL(weft_connection_open(pair.node[0].endpoint, pair.node[0].peer, 17, LOOP_WAIT_MS, &ends[0], &err), &err);
    pthread_join(thread, NULL);
    LOOP_CALL(weft_connection_accept(late, pair.node[1].peer, WEFT_ANY_ENDPOINT, LOOP_WAIT_MS, &ends[1], &err), &err);
    LOOP_CHECK(weft_connection_remote(ends[0]) == 17 && weft_connection_remote(ends[1]) == 0, "remote ends %u and %u",
               weft_connection_remote(ends[0]), weft_connection_remote(ends[1]));
    loop_exchange(ends[0], ends[1], 70000, 1);
    loop_connection_end(ends);
    LOOP_CHECK(weft_endpoint_destroy(late) == 0, "the endpoint is still busy");
    loop_pair_destroy(&pair);
}

/* Nobody answers in time; what was asked for then does not come up later as somebody else's connection. */
static void open_and_accept_time_out(void)
{
    struct weft_connection *ends[2] = {NULL, NULL};
    struct weft_endpoint *late = NULL;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    struct loop_node *node = pair.node;
    int64_t start = loop_now_ms();
    int rc = weft_connection_open(node[0].endpoint, node[0].peer, 5, 150, &ends[0], &err);
    LOOP_CHECK(rc == -ETIMEDOUT && err.text[0], "open: %d %s", rc, err.text);
    rc = weft_connection_accept(node[1].endpoint, node[1].peer, WEFT_ANY_ENDPOINT, 150, &ends[1], &err);
    LOOP_CHECK(rc == -ETIMEDOUT && err.text[0], "accept: %d %s", rc, err.text);
    LOOP_CHECK(weft_connection_accept(node[1].endpoint, node[1].peer, 0, 0, &ends[1], &err) == -ETIMEDOUT, "no wait");
    int64_t took = loop_now_ms() - start;
    LOOP_CHECK(took >= 300 && took < 3000 * LOOP_SLOWER, "took %lld ms", (long long)took);
    LOOP_CHECK(ends[0] == NULL && ends[1] == NULL, "an out-parameter was written on failure");

    LOOP_CALL(weft_endpoint_create(node[1].context, 5, &late, &err), &err);
    loop_sleep_ms(50);
    rc = weft_connection_accept(late, node[1].peer, WEFT_ANY_ENDPOINT, 50, &ends[1], &err);
    LOOP_CHECK(rc == -ETIMEDOUT, "a connection whose opener has given up was accepted");
    LOOP_CALL(weft_connection_open(node[0].endpoint, node[0].peer, 5, LOOP_WAIT_MS, &ends[0], &err), &err);
    LOOP_CALL(weft_connection_accept(late, node[1].peer, 0, LOOP_WAIT_MS, &ends[1], &err), &err);
    loop_exchange(ends[0], ends[1], 70000, 1);
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

/* accept() takes the connection of the endpoint it names, and leaves the others. */
static void accept_by_remote_endpoint(void)
{
    enum { COUNT = 5 };
    struct weft_endpoint *endpoint[COUNT];
    struct weft_connection *opened[COUNT], *taken[COUNT];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    struct loop_node *node = pair.node;
    for (uint32_t i = 0; i < COUNT; i++) {
        LOOP_CALL(weft_endpoint_create(node[0].context, 100 + i, &endpoint[i], &err), &err);
        LOOP_CALL(weft_connection_open(endpoint[i], node[0].peer, 0, LOOP_WAIT_MS, &opened[i], &err), &err);
    }
    for (uint32_t i = COUNT; i-- > 1;) {
        LOOP_CALL(weft_connection_accept(node[1].endpoint, node[1].peer, 100 + i, LOOP_WAIT_MS, &taken[i], &err), &err);
        LOOP_CHECK(weft_connection_remote(taken[i]) == 100 + i, "remote %u", weft_connection_remote(taken[i]));
    }
    uint32_t any = WEFT_ANY_ENDPOINT;
    LOOP_CALL(weft_connection_accept(node[1].endpoint, node[1].peer, any, LOOP_WAIT_MS, &taken[0], &err), &err);
    for (int i = 0; i < COUNT; i++)
        loop_exchange(opened[i], taken[i], 3000, 1);
    for (int i = 0; i < COUNT; i++) {
        LOOP_CALL(weft_connection_close(opened[i], LOOP_WAIT_MS, &err), &err);
        LOOP_CALL(weft_connection_close(taken[i], LOOP_WAIT_MS, &err), &err);
        LOOP_CHECK(weft_endpoint_destroy(endpoint[i]) == 0, "the endpoint is still busy");
    }
    loop_pair_destroy(&pair);
}

/* A message may be on its way before the other side has accepted the connection. */
static void send_before_the_accept(void)
{
    struct weft_connection *ends[2] = {NULL, NULL};
    struct loop_message small, large;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    struct loop_node *node = pair.node;
    LOOP_CALL(weft_connection_open(node[0].endpoint, node[0].peer, 0, LOOP_WAIT_MS, &ends[0], &err), &err);
    loop_message_create(&small, 100, 1);
    loop_message_create(&large, 1000000, 2);
    large.send = loop_send(ends[0], large.source.data, large.source.size, 2);
    small.send = loop_send(ends[0], small.source.data, small.source.size, 1);
    loop_sleep_ms(50);
    LOOP_CALL(weft_connection_accept(node[1].endpoint, node[1].peer, 0, LOOP_WAIT_MS, &ends[1], &err), &err);
    small.recv = loop_recv(ends[1], small.sink.data, small.sink.size, 1);
    large.recv = loop_recv(ends[1], large.sink.data, large.sink.size, 2);
    loop_done(small.recv, 0, 100);
    loop_done(large.recv, 0, 1000000);
    loop_done(small.send, 0, 100);
    loop_done(large.send, 0, 1000000);
    loop_message_verify(&small);
    loop_message_verify(&large);
    loop_message_destroy(&small);
    loop_message_destroy(&large);
    loop_connection_end(ends);
    loop_pair_destroy(&pair);
}

/* What was sent has arrived, although the sender has closed since: it can be accepted and received, also by receives of
 * the endpoint. Where nothing was sent, there is nothing to accept. */
static void closed_before_the_accept(void)
{
    enum { MESSAGES = 4 };
    struct weft_connection *ends[2] = {NULL, NULL};
    struct loop_message messages[MESSAGES];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    struct loop_node *node = pair.node;
    for (int count = 0; count <= MESSAGES; count++) {
        LOOP_CALL(weft_connection_open(node[0].endpoint, node[0].peer, 0, LOOP_WAIT_MS, &ends[0], &err), &err);
        for (int i = 0; i < count; i++) {
            loop_message_create(&messages[i], 100, (uint64_t)i);
            messages[i].send = loop_send(ends[0], messages[i].source.data, messages[i].source.size, (uint64_t)i);
            loop_done(messages[i].send, 0, 100);
        }
        LOOP_CALL(weft_connection_close(ends[0], LOOP_WAIT_MS, &err), &err);
        int rc = weft_connection_accept(node[1].endpoint, node[1].peer, 0, 0, &ends[1], &err);
        LOOP_CHECK(rc == (count > 0 ? 0 : -ETIMEDOUT), "accept with %d messages: %d %s", count, rc, err.text);
        for (int i = 0; i < count; i++) {
            if (count % 2)
                messages[i].recv = loop_recv(ends[1], messages[i].sink.data, 100, (uint64_t)i);
            else
                rc = weft_endpoint_recv(node[1].endpoint, messages[i].sink.data, 100, (uint64_t)i, NULL,
                                        &messages[i].recv);
            LOOP_CHECK(rc == 0, "%s", weft_last_error());
            loop_done(messages[i].recv, 0, 100);
            loop_message_verify(&messages[i]);
            loop_message_destroy(&messages[i]);
        }
        if (count > 0) {
            loop_done(loop_recv(ends[1], NULL, 0, 9), -ESHUTDOWN, 0);
            LOOP_CALL(weft_connection_close(ends[1], LOOP_WAIT_MS, &err), &err);
        }
    }
    loop_pair_destroy(&pair);
}

/* What waits for a connection to the endpoint ends with it, what waits for one to another endpoint goes on. */
static void endpoint_destroyed_before_the_accept(void)
{
    struct loop_node *node = pair.node;
    struct weft_endpoint *other;
    struct weft_request *accepts[2];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    LOOP_CALL(weft_endpoint_create(node[1].context, 5, &other, &err), &err);
    LOOP_CALL(weft_connection_accept_start(other, node[1].peer, WEFT_ANY_ENDPOINT, NULL, &accepts[0], &err), &err);
    LOOP_CALL(weft_connection_accept_start(node[1].endpoint, node[1].peer, 7, NULL, &accepts[1], &err), &err);
    LOOP_CHECK(weft_endpoint_destroy(other) == 0, "it has no connection");
    LOOP_CHECK(weft_test(accepts[1], NULL) == 0, "the accept of another endpoint has ended");
    loop_done(accepts[0], -ECANCELED, 0);
    weft_cancel(accepts[1]);
    loop_done(accepts[1], -ECANCELED, 0);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(both_sides_open, 20),
        LOOP_CASE(connections_of_one_pair_do_not_mix, 20),
        LOOP_CASE(connections_with_few_introductions, 30),
        LOOP_CASE(connections_reopen_many_times, 60),
        LOOP_CASE(endpoints_are_unique_and_busy, 20),
        LOOP_CASE(peer_of_another_context, 20),
        LOOP_CASE(any_endpoint_is_not_opened, 20),
        LOOP_CASE(endpoint_that_appears_later, 20),
        LOOP_CASE(open_and_accept_time_out, 20),
        LOOP_CASE(accept_by_remote_endpoint, 20),
        LOOP_CASE(send_before_the_accept, 20),
        LOOP_CASE(closed_before_the_accept, 20),
        LOOP_CASE(endpoint_destroyed_before_the_accept, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
