/* test_events.c: what a context tells of unasked: peers that come, connections that they open, peers that are lost. The
 * events come in an order that can be followed, each once, and a descriptor says when there are some. */
#include "loop_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void check_event(const struct weft_event *event)
{
    bool connection = event->kind == WEFT_EVENT_CONNECTION, lost = event->kind == WEFT_EVENT_LOST;

    LOOP_CHECK(event->peer && event->reserved == 0, "an event without a peer");
    LOOP_CHECK(connection == (event->connection != NULL) && connection == (event->endpoint != NULL), "kind %d",
               event->kind);
    LOOP_CHECK(lost == (event->status < 0) && lost == (event->text[0] != '\0'), "kind %d, status %d, '%s'", event->kind,
               event->status, event->text);
}

/* Sleeps on the descriptor for the next event, which must be of this kind. */
static struct weft_event next(struct weft_context *context, int kind)
{
    struct weft_event event;
    int64_t until = loop_now_ms() + LOOP_WAIT_MS;

    loop_note("waits for event %d", kind);
    while (weft_event_poll(context, &event, 1) == 0) { /* readable while an event MAY be waiting */
        LOOP_CHECK(loop_now_ms() < until, "no event");
        loop_readable(weft_event_fd(context), LOOP_WAIT_MS);
    }
    check_event(&event);
    LOOP_CHECK(event.kind == kind, "event %d (%s), expected %d", event.kind, event.text, kind);
    return event;
}

static void nothing(struct weft_context *context)
{
    struct weft_event event;

    LOOP_CHECK(weft_event_poll(context, &event, 1) == 0, "event %d: %s", event.kind, event.text);
    LOOP_CHECK(!loop_readable(weft_event_fd(context), 0), "readable, and there is nothing");
}

static void start(struct loop_node nodes[2], char *address, size_t room)
{
    for (int i = 0; i < 2; i++)
        loop_node_start(&nodes[i], NULL, 2);
    loop_address(address, room, loop_node_listen(&nodes[0]));
}

static void connect_to(struct loop_node *node, const char *address)
{
    struct weft_error err = {0};

    LOOP_CALL(weft_connect(node->context, address, LOOP_WAIT_MS, &node->peer, &err), &err);
}

/* ------------------------------------------------------------------------------------------- */

/* From a peer to its end, on one descriptor. */
static void a_life_in_events(void)
{
    struct loop_node nodes[2];
    struct weft_error err = {0};
    char address[32];

    loop_needs_kernel("descriptors");
    start(nodes, address, sizeof(address));
    int fd = weft_event_fd(nodes[0].context);
    LOOP_CHECK(fd >= 0 && weft_event_fd(nodes[0].context) == fd, "descriptor %d", fd);
    nothing(nodes[0].context);
    connect_to(&nodes[1], address);
    LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "no event");
    nodes[0].peer = next(nodes[0].context, WEFT_EVENT_PEER).peer;
    nothing(nodes[0].context);
    LOOP_CHECK(weft_accept(nodes[0].context, 0, &nodes[0].peer, &err) == -ETIMEDOUT, "the peer is there twice");

    loop_node_open(&nodes[1]);
    LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "no event");
    struct weft_event event = next(nodes[0].context, WEFT_EVENT_CONNECTION);
    LOOP_CHECK(event.peer == nodes[0].peer && event.endpoint == nodes[0].endpoint, "of another peer or endpoint");
    nodes[0].connection = event.connection;
    nothing(nodes[0].context);
    LOOP_CHECK(weft_connection_accept(nodes[0].endpoint, nodes[0].peer, 0, 0, &event.connection, &err) == -ETIMEDOUT,
               "the connection is there twice");
    loop_exchange(nodes[0].connection, nodes[1].connection, 300000, 1);

    /* The other way round: the side that dialled is told of what comes to it. */
    loop_node_open(&nodes[0]);
    event = next(nodes[1].context, WEFT_EVENT_CONNECTION);
    LOOP_CHECK(event.peer == nodes[1].peer, "of another peer");
    nothing(nodes[1].context);

    LOOP_CHECK(weft_peer_close(nodes[1].peer, LOOP_WAIT_MS, &err) == 0, "%s", err.text);
    nodes[1].peer = NULL;
    nodes[1].connection = NULL;
    event = next(nodes[0].context, WEFT_EVENT_LOST);
    LOOP_CHECK(event.peer == nodes[0].peer && event.status == -ESHUTDOWN, "status %d", event.status);
    LOOP_CHECK(weft_peer_status(nodes[0].peer, &err) == -ESHUTDOWN, "%s", err.text);
    nothing(nodes[0].context);
    weft_peer_close(nodes[0].peer, LOOP_WAIT_MS, NULL);
    nodes[0].peer = NULL;
    nodes[0].connection = NULL;
    loop_sleep_ms(50);
    nothing(nodes[0].context);
    nothing(nodes[1].context); /* nobody is told of what he has ended himself */
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

/* All has happened before anybody asks: the order is right nevertheless, whatever room there is for events. */
static void all_at_once(void)
{
    enum { CONNECTIONS = 5 };

    loop_needs_kernel("descriptors");
    for (int max = 1; max <= 8; max += 7) {
        struct loop_node nodes[2];
        struct weft_event events[8 + CONNECTIONS];
        struct weft_connection *connection;
        struct weft_error err = {0};
        char address[32];
        int count = 0, got;

        start(nodes, address, sizeof(address));
        connect_to(&nodes[1], address);
        for (int i = 0; i < CONNECTIONS; i++)
            LOOP_CALL(weft_connection_open(nodes[1].endpoint, nodes[1].peer, 0, LOOP_WAIT_MS, &connection, &err), &err);
        int fd = weft_event_fd(nodes[0].context);
        while (count < 1 + CONNECTIONS) {
            LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "only %d events", count);
            got = weft_event_poll(nodes[0].context, events + count, max);
            LOOP_CHECK(got >= 0 && got <= max, "%d", got);
            count += got;
        }
        for (int i = 0; i < count; i++) {
            check_event(&events[i]);
            LOOP_CHECK(events[i].kind == (i ? WEFT_EVENT_CONNECTION : WEFT_EVENT_PEER), "%d: kind %d", i,
                       events[i].kind);
            LOOP_CHECK(events[i].peer == events[0].peer, "of another peer");
        }
        nothing(nodes[0].context);
        for (int i = 0; i < 2; i++)
            loop_node_stop(&nodes[i]);
    }
}

/* A peer goes to who asks first, and what it has opened meanwhile is told to who has it. */
static void accepted_by_a_request(void)
{
    struct loop_node nodes[2];
    struct weft_request *request, *accepting;
    struct weft_error err = {0};
    char address[32];

    loop_needs_kernel("descriptors");
    start(nodes, address, sizeof(address));
    weft_event_fd(nodes[0].context);
    LOOP_CALL(weft_accept_start(nodes[0].context, NULL, &request, &err), &err);
    connect_to(&nodes[1], address);
    loop_node_open(&nodes[1]);
    nothing(nodes[0].context); /* the peer is another's, who has not taken it yet */
    nodes[0].peer = loop_end(request).peer;
    struct weft_event event = next(nodes[0].context, WEFT_EVENT_CONNECTION);
    LOOP_CHECK(event.peer == nodes[0].peer, "of another peer");
    nodes[0].connection = event.connection;
    LOOP_CALL(weft_connection_accept_start(nodes[0].endpoint, nodes[0].peer, 0, NULL, &accepting, &err), &err);
    struct weft_connection *second;
    LOOP_CALL(weft_connection_open(nodes[1].endpoint, nodes[1].peer, 0, LOOP_WAIT_MS, &second, &err), &err);
    LOOP_CHECK(loop_end(accepting).connection != NULL, "no connection");
    nothing(nodes[0].context);
    loop_exchange(nodes[0].connection, nodes[1].connection, 70000, 1);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

/* A peer is lost before it is collected: LOST comes behind. */
static void lost_before_it_is_taken(void)
{
    struct loop_node nodes[2];
    struct weft_queue *queue, *beside;
    struct weft_request *request;
    struct weft_completion completion;
    struct weft_error err = {0};
    char address[32];

    loop_needs_kernel("descriptors");
    start(nodes, address, sizeof(address));
    LOOP_CALL(weft_queue_create(nodes[0].context, &queue, &err), &err);
    LOOP_CALL(weft_queue_create(nodes[0].context, &beside, &err), &err);
    (void)weft_completion_fd(beside); /* of two that are watched, each tells of its ended requests alone */
    struct weft_options options = {.queue = queue};
    LOOP_CALL(weft_accept_start(nodes[0].context, &options, &request, &err), &err);
    connect_to(&nodes[1], address);
    loop_node_open(&nodes[1]);
    /* The request has ended and is not taken. */
    LOOP_CHECK(loop_readable(weft_completion_fd(queue), LOOP_WAIT_MS), "the accept does not end");
    weft_peer_close(nodes[1].peer, LOOP_WAIT_MS, NULL);
    nodes[1].peer = NULL;
    nodes[1].connection = NULL;
    nothing(nodes[0].context);
    LOOP_CHECK(weft_queue_poll(queue, &completion, 1) == 1 && completion.status == 0, "it has ended");
    nodes[0].peer = completion.peer;
    LOOP_CHECK(weft_queue_destroy(queue) == 0 && weft_queue_destroy(beside) == 0, "destroying empty queues");
    LOOP_CHECK(next(nodes[0].context, WEFT_EVENT_CONNECTION).peer == nodes[0].peer, "of another peer");
    LOOP_CHECK(next(nodes[0].context, WEFT_EVENT_LOST).peer == nodes[0].peer, "of another peer");
    nothing(nodes[0].context);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

static int client_body(int in, int out, void *arg)
{
    struct loop_node node;

    (void)out, (void)arg;
    loop_node_start(&node, NULL, 1);
    loop_node_connect(&node, (int)loop_hear(in));
    loop_sleep_ms(LOOP_WAIT_MS);
    return 0;
}

static void killed_peer(void)
{
    struct loop_child child;
    struct loop_node node;
    struct weft_error err = {0};

    loop_needs_kernel("processes");
    loop_child_start(&child, client_body, NULL);
    loop_node_start(&node, "rail_timeout_ms=100 timeout=2", 1);
    loop_tell(child.out, (uint64_t)loop_node_listen(&node));
    node.peer = next(node.context, WEFT_EVENT_PEER).peer;
    loop_child_kill(&child);
    struct weft_event event = next(node.context, WEFT_EVENT_LOST);
    LOOP_CHECK(event.peer == node.peer && event.status == weft_peer_status(node.peer, &err), "status %d, %s",
               event.status, err.text);
    LOOP_CHECK(strcmp(event.text, err.text) == 0, "'%s' and '%s'", event.text, err.text);
    nothing(node.context);
    loop_node_stop(&node);
}

/* Clients that say nothing, or the first half of a HELLO, and one that is stopped, hold up nobody. */
static void silent_clients(void)
{
    enum { SILENT = 40 };
    struct loop_node nodes[2];
    struct sockaddr_in address = {.sin_family = AF_INET};
    unsigned char half[20] = {'W', 'E', 'F', 'T'};
    char text[32];
    int fds[SILENT];

    loop_needs_kernel("sockets of others");
    start(nodes, text, sizeof(text));
    inet_pton(AF_INET, "127.0.1.1", &address.sin_addr);
    address.sin_port = htons((uint16_t)weft_listen_port(nodes[0].context));
    for (int i = 0; i < SILENT; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        LOOP_CHECK(connect(fds[i], (struct sockaddr *)&address, sizeof(address)) == 0, "%s", strerror(errno));
        if (i % 2)
            LOOP_CHECK(send(fds[i], half, (size_t)(1 + i % 4), MSG_NOSIGNAL) > 0, "%s", strerror(errno));
    }
    int64_t before = loop_now_ms();
    connect_to(&nodes[1], text);
    nodes[0].peer = next(nodes[0].context, WEFT_EVENT_PEER).peer;
    loop_node_open(&nodes[1]);
    nodes[0].connection = next(nodes[0].context, WEFT_EVENT_CONNECTION).connection;
    LOOP_CHECK(loop_now_ms() - before < LOOP_WAIT_MS / 4, "held up for %lld ms", (long long)(loop_now_ms() - before));
    loop_exchange(nodes[0].connection, nodes[1].connection, 70000, 1);
    for (int i = 0; i < SILENT; i++)
        close(fds[i]);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

/* Events of many peers, taken by several threads while the peers come and go: each is told once. */
enum { TAKERS = 3, VISITS = 60 };
static struct weft_context *crowded;
static _Atomic int peers_seen, lost_seen;

static void *take_events(void *argument)
{
    struct weft_event events[4];
    int fd = weft_event_fd(crowded);

    (void)argument;
    loop_child_enter(); /* a failure here ends the process */
    while (lost_seen < VISITS) {
        loop_readable(fd, 50);
        int count = weft_event_poll(crowded, events, 4);
        for (int i = 0; i < count; i++) {
            check_event(&events[i]);
            peers_seen += events[i].kind == WEFT_EVENT_PEER;
            lost_seen += events[i].kind == WEFT_EVENT_LOST;
            if (events[i].kind == WEFT_EVENT_LOST)
                weft_peer_close(events[i].peer, LOOP_WAIT_MS, NULL);
        }
    }
    return NULL;
}

static void several_takers(void)
{
    struct loop_node nodes[2];
    pthread_t threads[TAKERS];
    char address[32];

    loop_needs_kernel("threads");
    start(nodes, address, sizeof(address));
    crowded = nodes[0].context;
    peers_seen = lost_seen = 0;
    for (int i = 0; i < TAKERS; i++)
        LOOP_CHECK(pthread_create(&threads[i], NULL, take_events, NULL) == 0, "pthread_create");
    for (int i = 0; i < VISITS; i++) {
        loop_note("visit %d", i);
        connect_to(&nodes[1], address);
        while (peers_seen <= i) /* a peer that leaves before is told of to nobody */
            sched_yield();
        weft_peer_close(nodes[1].peer, LOOP_WAIT_MS, NULL);
        nodes[1].peer = NULL;
    }
    for (int i = 0; i < TAKERS; i++)
        pthread_join(threads[i], NULL);
    LOOP_CHECK(peers_seen == VISITS && lost_seen == VISITS, "%d came, %d were lost", (int)peers_seen, (int)lost_seen);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&nodes[i]);
}

static void wrong_arguments(void)
{
    struct loop_node node;
    struct weft_event event;

    loop_node_start(&node, NULL, 1);
    LOOP_CHECK(weft_event_poll(NULL, &event, 1) == -EINVAL, "no context");
    LOOP_CHECK(weft_event_poll(node.context, NULL, 1) == -EINVAL, "no place");
    LOOP_CHECK(weft_event_poll(node.context, &event, 0) == -EINVAL, "no room");
    LOOP_CHECK(weft_event_fd(NULL) == -EINVAL, "no context");
    loop_node_stop(&node);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LOOP_CASE(a_life_in_events, 30),        LOOP_CASE(all_at_once, 30),     LOOP_CASE(accepted_by_a_request, 30),
        LOOP_CASE(lost_before_it_is_taken, 30), LOOP_CASE(killed_peer, 40),     LOOP_CASE(silent_clients, 30),
        LOOP_CASE(several_takers, 60),          LOOP_CASE(wrong_arguments, 10),
    };
    loop_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
