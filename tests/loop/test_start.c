/* test_start.c: peers and connections are set up and ended by requests, as messages are sent: with and without a queue,
 * late, cancelled, refused, and with a context that is destroyed meanwhile. No call of these waits. */
#include "loop_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOON_MS 200 /* a deadline that is to pass */

/* ------------------------------------------------------------------------------------------- helpers */

/* A queue of a side, or none; its requests are told apart by their user_data. */
static struct weft_queue *queues[2];

static struct weft_options options_of(int side, void *user_data, int timeout_ms)
{
    return (struct weft_options){.queue = queues[side], .user_data = user_data, .timeout_ms = timeout_ms};
}

static void check_completion(const struct weft_completion *completion)
{
    LOOP_CHECK((completion->status == 0) == (completion->text[0] == '\0'), "status %d has the text '%s'",
               completion->status, completion->text);
    LOOP_CHECK(completion->status == 0 || (!completion->peer && !completion->connection),
               "a failure hands something over");
}

/* The completion of the only request under way on this side, from the queue if there is one. */
static struct weft_completion end_of(int side, struct weft_request *request, void *user_data)
{
    struct weft_completion completion;

    if (queues[side])
        LOOP_CHECK(weft_queue_wait(queues[side], LOOP_WAIT_MS, &completion, 1) == 1, "nothing ends in the queue");
    else
        completion = loop_end(request);
    LOOP_CHECK(completion.user_data == user_data, "the completion of another request");
    check_completion(&completion);
    return completion;
}

static struct weft_completion good(int side, struct weft_request *request, void *user_data)
{
    struct weft_completion completion = end_of(side, request, user_data);

    LOOP_CHECK(completion.status == 0, "status %d: %s", completion.status, completion.text);
    return completion;
}

/* Ends in `status`, and its text has `word`. */
static void fails(struct weft_request *request, int status, const char *word)
{
    struct weft_completion completion = loop_end(request);

    check_completion(&completion);
    LOOP_CHECK(completion.status == status, "status %d (%s), expected %d", completion.status, completion.text, status);
    LOOP_CHECK(strstr(completion.text, word), "'%s' does not say '%s'", completion.text, word);
}

static void begin_queues(struct loop_node nodes[2], bool with)
{
    struct weft_error err = {0};

    for (int side = 0; side < 2; side++) {
        queues[side] = NULL;
        if (with)
            LOOP_CALL(weft_queue_create(nodes[side].context, &queues[side], &err), &err);
    }
}

/* What has ended leaves descriptors and threads for a moment: the other side has to notice. */
static void settle(int fds, int threads)
{
    int64_t until = loop_now_ms() + LOOP_WAIT_MS;

    while (loop_fds() != fds || loop_threads() != threads)
        LOOP_CHECK(loop_now_ms() < until, "%d descriptors, %d threads; %d and %d before", loop_fds(), loop_threads(),
                   fds, threads);
}

static struct weft_request *connect_start(struct loop_node *node, const char *address, int timeout_ms)
{
    struct weft_options options = {.timeout_ms = timeout_ms};
    struct weft_request *request = NULL;
    struct weft_error err = {0};

    LOOP_CALL(weft_connect_start(node->context, address, &options, &request, &err), &err);
    return request;
}

/* A socket that listens, takes nothing, and whose queue is full: the kernel lets callers go unanswered. */
struct silence {
    int listener, full[2];
    char address[32];
};

static void silence_begin(struct silence *silence)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);

    inet_pton(AF_INET, "127.0.1.1", &address.sin_addr);
    silence->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    LOOP_CHECK(bind(silence->listener, (struct sockaddr *)&address, length) == 0, "bind: %s", strerror(errno));
    LOOP_CHECK(listen(silence->listener, 0) == 0, "listen: %s", strerror(errno));
    LOOP_CHECK(getsockname(silence->listener, (struct sockaddr *)&address, &length) == 0, "%s", strerror(errno));
    for (int i = 0; i < 2; i++) {
        silence->full[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(silence->full[i], (struct sockaddr *)&address, length);
    }
    loop_address(silence->address, sizeof(silence->address), ntohs(address.sin_port));
}

static void silence_end(struct silence *silence)
{
    close(silence->listener);
    close(silence->full[0]);
    close(silence->full[1]);
}

/* ------------------------------------------------------------------------------------------- from nothing to nothing
 */

static void whole_life(bool with_queues, bool accept_first)
{
    struct loop_node nodes[2];
    struct weft_request *requests[2];
    struct weft_error err = {0};
    struct weft_options options[2];
    char address[32];
    int marks[2];

    for (int i = 0; i < 2; i++)
        loop_node_start(&nodes[i], NULL, 2);
    loop_address(address, sizeof(address), loop_node_listen(&nodes[0]));
    int fds = loop_fds(), threads = loop_threads();
    begin_queues(nodes, with_queues);
    for (int i = 0; i < 2; i++)
        options[i] = options_of(i, &marks[i], LOOP_WAIT_MS);

    if (accept_first)
        LOOP_CALL(weft_accept_start(nodes[0].context, &options[0], &requests[0], &err), &err);
    LOOP_CALL(weft_connect_start(nodes[1].context, address, &options[1], &requests[1], &err), &err);
    nodes[1].peer = good(1, requests[1], &marks[1]).peer;
    if (!accept_first)
        LOOP_CALL(weft_accept_start(nodes[0].context, &options[0], &requests[0], &err), &err);
    nodes[0].peer = good(0, requests[0], &marks[0]).peer;
    LOOP_CHECK(nodes[0].peer && nodes[1].peer && weft_peer_status(nodes[0].peer, NULL) == 0, "no peers");

    if (accept_first)
        LOOP_CALL(weft_connection_accept_start(nodes[0].endpoint, nodes[0].peer, 0, &options[0], &requests[0], &err),
                  &err);
    LOOP_CALL(weft_connection_open_start(nodes[1].endpoint, nodes[1].peer, 0, &options[1], &requests[1], &err), &err);
    nodes[1].connection = good(1, requests[1], &marks[1]).connection;
    if (!accept_first)
        LOOP_CALL(weft_connection_accept_start(nodes[0].endpoint, nodes[0].peer, WEFT_ANY_ENDPOINT, &options[0],
                                               &requests[0], &err),
                  &err);
    nodes[0].connection = good(0, requests[0], &marks[0]).connection;
    LOOP_CHECK(nodes[0].connection && nodes[1].connection, "no connections");
    loop_exchange(nodes[0].connection, nodes[1].connection, 300000, 1);

    for (int i = 0; i < 2; i++)
        LOOP_CALL(weft_connection_close_start(nodes[i].connection, &options[i], &requests[i], &err), &err);
    for (int i = 0; i < 2; i++) {
        struct weft_completion completion = good(i, requests[i], &marks[i]);
        LOOP_CHECK(!completion.connection, "a close hands out its connection");
        nodes[i].connection = NULL;
    }
    for (int i = 0; i < 2; i++)
        LOOP_CALL(weft_peer_close_start(nodes[i].peer, &options[i], &requests[i], &err), &err);
    for (int i = 0; i < 2; i++) {
        good(i, requests[i], &marks[i]);
        nodes[i].peer = NULL;
        LOOP_CHECK(weft_endpoint_destroy(nodes[i].endpoint) == 0, "node %d: the endpoint is busy", i);
        nodes[i].endpoint = NULL;
        LOOP_CHECK(!queues[i] || weft_queue_destroy(queues[i]) == 0, "node %d: the queue is busy", i);
    }
    settle(fds, threads);
    for (int i = 0; i < 2; i++)
        loop_context_end(nodes[i].context);
}

static void whole_life_by_requests(void)
{
    loop_needs_kernel("requests that dial");
    whole_life(false, true);
    whole_life(false, false);
}

static void whole_life_by_queues(void)
{
    loop_needs_kernel("requests that dial");
    whole_life(true, true);
    whole_life(true, false);
}

/* An endpoint need not outlive its peer's close: the connections go with the handle. */
static void peer_closed_with_its_connections(void)
{
    struct loop_pair pair;
    struct weft_request *request;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_request *receive = loop_recv(pair.node[0].connection, NULL, 0, 1);
    LOOP_CALL(weft_peer_close_start(pair.node[0].peer, NULL, &request, &err), &err);
    pair.node[0].peer = NULL;
    pair.node[0].connection = NULL;
    loop_done(receive, -ESHUTDOWN, 0);
    loop_done(request, 0, 0);
    LOOP_CHECK(weft_endpoint_destroy(pair.node[0].endpoint) == 0, "the endpoint is busy");
    pair.node[0].endpoint = NULL;
    loop_pair_destroy(&pair);
}

/* ------------------------------------------------------------------------------------------- late, cancelled */

static void late_and_cancelled_peers(void)
{
    struct loop_node nodes[2];
    struct weft_request *request;
    struct weft_error err = {0};
    struct silence silence;
    char address[32];
    int port, held = loop_hold_port(&port);

    loop_needs_kernel("sockets of others");
    silence_begin(&silence);
    loop_node_start(&nodes[0], NULL, 1);
    int fds = loop_fds(), threads = loop_threads();
    loop_address(address, sizeof(address), port);
    fails(connect_start(&nodes[0], address, SOON_MS), -ETIMEDOUT, address);
    fails(connect_start(&nodes[0], silence.address, SOON_MS), -ETIMEDOUT, silence.address);
    request = connect_start(&nodes[0], silence.address, 0);
    LOOP_CHECK(weft_wait(request, 50, NULL) == -ETIMEDOUT, "it is over");
    weft_cancel(request);
    weft_cancel(request);
    fails(request, -ECANCELED, silence.address);
    LOOP_CALL(weft_accept_start(nodes[0].context, &(struct weft_options){.timeout_ms = SOON_MS}, &request, &err), &err);
    fails(request, -ETIMEDOUT, "no peer connected");
    LOOP_CALL(weft_accept_start(nodes[0].context, NULL, &request, &err), &err);
    LOOP_CHECK(weft_test(request, NULL) == 0, "it is over");
    weft_cancel(request);
    fails(request, -ECANCELED, "peer");
    settle(fds, threads);
    loop_node_stop(&nodes[0]);
    silence_end(&silence);
    close(held);
}

/* A cancel comes too late for what has ended: the peer is the caller's. */
static void cancel_that_comes_too_late(void)
{
    struct loop_node nodes[2];
    struct weft_request *requests[2];
    struct weft_error err = {0};
    struct weft_completion completion;
    char address[32];

    loop_needs_kernel("requests that dial");
    for (int i = 0; i < 2; i++)
        loop_node_start(&nodes[i], NULL, 1);
    loop_address(address, sizeof(address), loop_node_listen(&nodes[0]));
    for (int round = 0; round < 30; round++) {
        loop_note("round %d", round);
        LOOP_CALL(weft_accept_start(nodes[0].context, NULL, &requests[0], &err), &err);
        requests[1] = connect_start(&nodes[1], address, 0);
        if (weft_wait(requests[1], round / 10, &completion) < 0) {
            weft_cancel(requests[1]);
            completion = loop_end(requests[1]);
        }
        LOOP_CHECK(completion.status == 0 || completion.status == -ECANCELED, "%s", completion.text);
        if (completion.peer)
            weft_peer_close(completion.peer, LOOP_WAIT_MS, NULL);
        weft_cancel(requests[0]);
        completion = loop_end(requests[0]);
        LOOP_CHECK(completion.status == 0 || completion.status == -ECANCELED, "%s", completion.text);
        if (completion.peer)
            weft_peer_close(completion.peer, LOOP_WAIT_MS, NULL);
    }
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

static void late_and_cancelled_connections(void)
{
    struct loop_pair pair;
    struct weft_request *request, *send;
    struct weft_error err = {0};
    struct weft_options soon = {.timeout_ms = SOON_MS};
    struct loop_buffer source;

    loop_pair_create(&pair, NULL, NULL, 1);
    struct loop_node *node = &pair.node[0];
    struct weft_endpoint *other;
    LOOP_CALL(weft_endpoint_create(node->context, 9, &other, &err), &err);
    LOOP_CALL(weft_connection_open_start(other, node->peer, 77, &soon, &request, &err), &err);
    fails(request, -ETIMEDOUT, "endpoint 77");
    LOOP_CALL(weft_connection_open_start(other, node->peer, 77, NULL, &request, &err), &err);
    weft_cancel(request);
    fails(request, -ECANCELED, "endpoint 77");
    LOOP_CALL(weft_connection_accept_start(other, node->peer, 5, &soon, &request, &err), &err);
    fails(request, -ETIMEDOUT, "endpoint 5");
    LOOP_CALL(weft_connection_accept_start(other, node->peer, WEFT_ANY_ENDPOINT, NULL, &request, &err), &err);
    weft_cancel(request);
    fails(request, -ECANCELED, "any endpoint");
    int64_t until = loop_now_ms() + LOOP_WAIT_MS;
    while (weft_endpoint_destroy(other) == -EBUSY) /* the peer's answer is still to come */
        LOOP_CHECK(loop_now_ms() < until, "what failed has left a connection");

    /* Nobody receives it: the close waits for it, up to its deadline. */
    loop_buffer_create(&source, LOOP_NEAR, 8 << 20);
    loop_fill(source.data, source.size, 1);
    send = loop_send(node->connection, source.data, source.size, 1);
    LOOP_CALL(weft_connection_close_start(node->connection, &soon, &request, &err), &err);
    node->connection = NULL;
    fails(request, -ETIMEDOUT, "cancelled");
    loop_done(send, -ECANCELED, 0);
    loop_buffer_unmap(&source);
    loop_pair_destroy(&pair);
}

static int stopped_body(int in, int out, void *arg)
{
    struct loop_node node;

    (void)in, (void)arg;
    loop_node_start(&node, NULL, 1);
    loop_tell(out, (uint64_t)loop_node_listen(&node));
    loop_node_accept(&node);
    loop_sleep_ms(LOOP_WAIT_MS);
    return 0;
}

/* The peer is stopped, so it answers nothing. */
static void late_and_cancelled_ends_of_peers(void)
{
    struct weft_options soon = {.timeout_ms = SOON_MS};

    loop_needs_kernel("processes");
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct loop_child child;
        struct loop_node node;
        struct weft_request *request;
        struct weft_error err = {0};

        loop_child_start(&child, stopped_body, NULL);
        int port = (int)loop_hear(child.in);
        loop_node_start(&node, NULL, 1);
        loop_node_connect(&node, port);
        loop_child_stop(&child);
        LOOP_CALL(weft_peer_close_start(node.peer, cancelled ? NULL : &soon, &request, &err), &err);
        node.peer = NULL;
        if (cancelled)
            LOOP_CHECK(weft_wait(request, SOON_MS, NULL) == -ETIMEDOUT, "it is over");
        if (cancelled)
            weft_cancel(request);
        fails(request, cancelled ? -ECANCELED : -ETIMEDOUT, cancelled ? "cut" : "did not answer");
        loop_node_stop(&node);
        loop_child_kill(&child);
    }
}

/* ------------------------------------------------------------------------------------------- refused */

static void refused_by_the_peer(void)
{
    struct loop_pair pair;
    struct loop_node third;
    char address[32];

    loop_needs_kernel("requests that dial");
    loop_pair_create(&pair, NULL, "peers=1", 1);
    loop_node_start(&third, NULL, 1);
    loop_address(address, sizeof(address), weft_listen_port(pair.node[1].context));
    fails(connect_start(&third, address, LOOP_WAIT_MS), -ECONNREFUSED, "busy");
    loop_node_stop(&third);
    loop_pair_destroy(&pair);
}

#define REFUSED(call, word)                                                                                            \
    do {                                                                                                               \
        struct weft_error refusal = {0};                                                                               \
        struct weft_error *err = &refusal;                                                                             \
        int result = (call);                                                                                           \
        LOOP_CHECK(result == -EINVAL && refusal.code == -EINVAL, "%d", result);                                        \
        LOOP_CHECK(strstr(refusal.text, word), "'%s' does not say '%s'", refusal.text, word);                          \
        LOOP_CHECK(out == NULL, "an out-parameter was written on failure");                                            \
    } while (0)

static void wrong_arguments(void)
{
    struct loop_pair pair;
    struct weft_request *out = NULL;
    struct weft_queue *foreign = NULL;
    struct weft_error error = {0};

    loop_pair_create(&pair, NULL, NULL, 1);
    struct loop_node *a = &pair.node[0], *b = &pair.node[1];
    LOOP_CALL(weft_queue_create(b->context, &foreign, &error), &error);
    struct weft_options flags = {.flags = WEFT_NOTIFY}, timeout = {.timeout_ms = -1}, queue = {.queue = foreign};
    const struct {
        const struct weft_options *options;
        const char *word;
    } rows[] = {{&flags, "flags 0x2"}, {&timeout, "-1"}, {&queue, "queue"}};
    for (int i = 0; i < 3; i++) {
        const struct weft_options *bad = rows[i].options;
        REFUSED(weft_connect_start(a->context, "127.0.1.1:9", bad, &out, err), rows[i].word);
        REFUSED(weft_accept_start(a->context, bad, &out, err), rows[i].word);
        REFUSED(weft_connection_open_start(a->endpoint, a->peer, 0, bad, &out, err), rows[i].word);
        REFUSED(weft_connection_accept_start(a->endpoint, a->peer, 0, bad, &out, err), rows[i].word);
        REFUSED(weft_connection_close_start(a->connection, bad, &out, err), rows[i].word);
        REFUSED(weft_peer_close_start(a->peer, bad, &out, err), rows[i].word);
    }
    REFUSED(weft_connect_start(NULL, "127.0.1.1:9", NULL, &out, err), "context");
    REFUSED(weft_connect_start(a->context, NULL, NULL, &out, err), "address");
    REFUSED(weft_connect_start(a->context, "127.0.1.1:9", NULL, NULL, err), "out");
    REFUSED(weft_connect_start(a->context, "127.0.1.1:0", NULL, &out, err), "port 0");
    REFUSED(weft_connect_start(a->context, "name:0", NULL, &out, err), "port 0");
    REFUSED(weft_accept_start(NULL, NULL, &out, err), "context");
    REFUSED(weft_connection_open_start(NULL, a->peer, 0, NULL, &out, err), "endpoint");
    REFUSED(weft_connection_open_start(a->endpoint, NULL, 0, NULL, &out, err), "peer");
    REFUSED(weft_connection_open_start(a->endpoint, b->peer, 0, NULL, &out, err), "another context");
    REFUSED(weft_connection_accept_start(a->endpoint, b->peer, 0, NULL, &out, err), "another context");
    REFUSED(weft_connection_close_start(NULL, NULL, &out, err), "connection");
    REFUSED(weft_peer_close_start(NULL, NULL, &out, err), "peer");
    LOOP_CHECK(weft_queue_wait(NULL, 0, &(struct weft_completion){0}, 1) == -EINVAL, "no queue");
    LOOP_CHECK(weft_queue_wait(foreign, 0, NULL, 1) == -EINVAL, "no place");
    LOOP_CHECK(weft_queue_wait(foreign, 0, &(struct weft_completion){0}, 0) == -EINVAL, "no room");
    LOOP_CHECK(weft_queue_wait(foreign, 0, &(struct weft_completion){0}, 1) == -ETIMEDOUT, "it is empty");
    LOOP_CHECK(weft_queue_wait(foreign, 20, &(struct weft_completion){0}, 1) == -ETIMEDOUT, "it is empty");
    LOOP_CHECK(weft_queue_destroy(foreign) == 0, "the queue is busy");
    loop_exchange(a->connection, b->connection, 70000, 1); /* all handles are still good */
    loop_pair_destroy(&pair);
}

/* ------------------------------------------------------------------------------------------- a context that goes */

/* Everything that can be under way is, with and without a queue, and some has ended and was not taken. */
static void context_destroyed_meanwhile(void)
{
    struct loop_pair pair;
    struct weft_request *request;
    struct weft_error err = {0};
    struct silence silence;
    char address[32];

    loop_needs_kernel("requests that dial");
    silence_begin(&silence);
    for (int with = 0; with < 2; with++) {
        loop_pair_create(&pair, NULL, NULL, 1);
        struct loop_node *a = &pair.node[0], *b = &pair.node[1];
        begin_queues(pair.node, with);
        struct weft_options options = options_of(0, NULL, 0);
        loop_address(address, sizeof(address), weft_listen_port(b->context));
        for (int i = 0; i < 3; i++) {
            LOOP_CALL(weft_connect_start(a->context, silence.address, &options, &request, &err), &err);
            LOOP_CALL(weft_connect_start(a->context, address, &options, &request, &err), &err);
            LOOP_CALL(weft_connect_start(a->context, "no-such-name.invalid:9", &options, &request, &err), &err);
            LOOP_CALL(weft_accept_start(a->context, &options, &request, &err), &err);
            LOOP_CALL(weft_connection_open_start(a->endpoint, a->peer, 77, &options, &request, &err), &err);
            LOOP_CALL(weft_connection_accept_start(a->endpoint, a->peer, 77, &options, &request, &err), &err);
            if (i == 1) /* the one of the first round is there by then */
                LOOP_CALL(weft_accept(b->context, LOOP_WAIT_MS, &(struct weft_peer *){NULL}, &err), &err);
        }
        LOOP_CALL(weft_connection_close_start(a->connection, &options, &request, &err), &err);
        LOOP_CALL(weft_peer_close_start(a->peer, &options, &request, &err), &err);
        loop_context_end(a->context);
        weft_context_destroy(b->context);
        loop_memory_leave(b->context);
    }
    silence_end(&silence);
}

/* ------------------------------------------------------------------------------------------- several threads */

enum { WAITERS = 4, ROUNDS = 200 };

static struct weft_queue *shared_queue;
static struct weft_connection *shared_connection;
static _Atomic int completions_seen;
static char the_end; /* user_data of the requests that send the waiting threads home, one each */

static void send_home(void)
{
    struct weft_options options = {.queue = shared_queue, .user_data = &the_end};
    struct weft_request *request;

    LOOP_CHECK(weft_send(shared_connection, "", 0, 2, &options, &request) == 0, "send"); /* it ends in the call */
}

/* With a limit that is not to pass: whoever sleeps is told. */
static void *wait_on_the_queue(void *argument)
{
    struct weft_completion completions[3];
    int ends = 0;

    loop_child_enter(); /* a failure here ends the process */
    (void)argument;
    while (ends == 0) {
        int count = weft_queue_wait(shared_queue, LOOP_WAIT_MS, completions, 3);
        LOOP_CHECK(count > 0, "weft_queue_wait: %d", count);
        for (int i = 0; i < count; i++) {
            LOOP_CHECK(completions[i].status == 0, "%s", completions[i].text);
            ends += completions[i].user_data == &the_end;
            completions_seen += completions[i].user_data != &the_end;
        }
    }
    while (--ends > 0) /* those of other threads */
        send_home();
    return NULL;
}

/* Requests of several kinds end in it: messages, and connections that open and close. */
static void threads_wait_on_one_queue(void)
{
    struct loop_pair pair;
    struct weft_error err = {0};
    pthread_t threads[WAITERS];
    static unsigned char bytes[64], sinks[ROUNDS][64];

    loop_needs_kernel("threads");
    loop_pair_create(&pair, NULL, NULL, 1);
    LOOP_CALL(weft_queue_create(pair.node[1].context, &shared_queue, &err), &err);
    completions_seen = 0;
    shared_connection = pair.node[1].connection;
    for (int i = 0; i < WAITERS; i++)
        LOOP_CHECK(pthread_create(&threads[i], NULL, wait_on_the_queue, NULL) == 0, "pthread_create");
    struct weft_options options = {.queue = shared_queue};
    for (int i = 0; i < ROUNDS; i++) {
        struct weft_request *request;
        if (i % 4 == 0)
            LOOP_CALL(weft_connection_open_start(pair.node[1].endpoint, pair.node[1].peer, 0, &options, &request, &err),
                      &err);
        else
            LOOP_CHECK(weft_recv(pair.node[1].connection, sinks[i], sizeof(bytes), 1, &options, &request) == 0, "recv");
        if (i % 4)
            loop_done(loop_send(pair.node[0].connection, bytes, sizeof(bytes), 1), 0, sizeof(bytes));
        if (i % 16 == 0)
            loop_sleep_ms(2); /* they go to sleep */
    }
    int64_t until = loop_now_ms() + LOOP_WAIT_MS;
    while (completions_seen < ROUNDS)
        LOOP_CHECK(loop_now_ms() < until, "%d completions", (int)completions_seen);
    for (int i = 0; i < WAITERS; i++)
        send_home();
    for (int i = 0; i < WAITERS; i++)
        pthread_join(threads[i], NULL);
    LOOP_CHECK(completions_seen == ROUNDS, "%d completions", (int)completions_seen);
    LOOP_CHECK(weft_queue_destroy(shared_queue) == 0, "the queue is busy");
    loop_pair_destroy(&pair);
}

static void ipv6(void)
{
    struct loop_node nodes[2];
    struct weft_error err = {0};
    struct weft_request *request;
    char address[48];

    loop_needs_kernel("IPv6");
    loop_node_start(&nodes[0], "rails=::1", 1);
    loop_node_start(&nodes[1], "rails=::1", 1);
    if (weft_listen(nodes[0].context, "[::1]:0", &err) < 0) {
        loop_node_stop(&nodes[0]);
        loop_node_stop(&nodes[1]);
        print_message("skipped: this machine has no IPv6: %s\n", err.text);
        skip();
    }
    snprintf(address, sizeof(address), "[::1]:%d", weft_listen_port(nodes[0].context));
    fails(connect_start(&nodes[1], "::1:8555", SOON_MS), -ETIMEDOUT, "is [::1]:8555 meant?");
    request = connect_start(&nodes[1], address, LOOP_WAIT_MS);
    struct weft_completion completion = loop_end(request);
    LOOP_CHECK(completion.status == 0, "%s", completion.text);
    LOOP_CHECK(strstr(weft_peer_name(completion.peer), "[::1]:"), "%s", weft_peer_name(completion.peer));
    weft_peer_close(completion.peer, LOOP_WAIT_MS, NULL);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(whole_life_by_requests, 30),
        LOOP_CASE(whole_life_by_queues, 30),
        LOOP_CASE(peer_closed_with_its_connections, 20),
        LOOP_CASE(late_and_cancelled_peers, 30),
        LOOP_CASE(cancel_that_comes_too_late, 30),
        LOOP_CASE(late_and_cancelled_connections, 30),
        LOOP_CASE(late_and_cancelled_ends_of_peers, 30),
        LOOP_CASE(refused_by_the_peer, 20),
        LOOP_CASE(wrong_arguments, 20),
        LOOP_CASE(context_destroyed_meanwhile, 40),
        LOOP_CASE(threads_wait_on_one_queue, 60),
        LOOP_CASE(ipv6, 20),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
