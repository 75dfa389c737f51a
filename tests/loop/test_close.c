/* test_close.c: closing ends what is outstanding with the right status, on both sides, and leaves nothing behind. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SMALL 1000
#define LARGE (8 * 1024 * 1024 + 1)

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

static void connection_close_cancels_receives(void)
{
    struct loop_buffer sink[3];
    struct weft_request *recv[3];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    for (uint64_t i = 0; i < 3; i++) {
        loop_buffer_create(&sink[i], LOOP_FAR, LARGE);
        recv[i] = loop_recv(LEFT, sink[i].data, LARGE, i);
    }
    LOOP_CALL(weft_connection_close(LEFT, LOOP_WAIT_MS, &err), &err);
    LEFT = NULL;
    for (int i = 0; i < 3; i++) {
        loop_done(recv[i], -ECANCELED, 0);
        loop_buffer_unmap(&sink[i]);
    }
    loop_pair_destroy(&pair);
}

/* Own sends are finished first: also those whose receives come only while the close waits. */
static void *receive_late(void *arg)
{
    struct loop_message *message = arg;

    loop_sleep_ms(150);
    for (int i = 0; i < 4; i++)
        message[i].recv = loop_recv(RIGHT, message[i].sink.data, message[i].sink.size, 1);
    return NULL;
}

static void connection_close_finishes_sends(void)
{
    static const size_t sizes[] = {LARGE, SMALL, 0, LARGE};
    struct loop_message message[4];
    struct weft_error err = {0};
    pthread_t thread;

    loop_needs_kernel("threads");
    loop_pair_create(&pair, "channels=2 chunk=64K", NULL, 2);
    for (int i = 0; i < 4; i++) {
        loop_message_create(&message[i], sizes[i], (uint64_t)i);
        message[i].send = loop_send(LEFT, message[i].source.data, sizes[i], 1);
    }
    LOOP_CHECK(pthread_create(&thread, NULL, receive_late, message) == 0, "pthread_create");
    LOOP_CALL(weft_connection_close(LEFT, LOOP_WAIT_MS, &err), &err);
    LEFT = NULL;
    pthread_join(thread, NULL);
    for (int i = 0; i < 4; i++) {
        loop_done(message[i].send, 0, sizes[i]);
        loop_done(message[i].recv, 0, sizes[i]);
        loop_message_verify(&message[i]);
        loop_message_destroy(&message[i]);
    }
    loop_pair_destroy(&pair);
}

static void connection_close_gives_up_in_time(void)
{
    struct loop_message message;
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    loop_message_create(&message, LARGE, 1);
    message.send = loop_send(LEFT, message.source.data, LARGE, 1);
    int64_t start = loop_now_ms();
    LOOP_CHECK(weft_connection_close(LEFT, 200, &err) == -ETIMEDOUT, "nobody receives");
    LOOP_CHECK(err.text[0], "no text");
    LEFT = NULL;
    /* half of the setting timeout, in every build: a close that waits for that instead of its own limit takes longer */
    LOOP_CHECK(loop_now_ms() - start < 15000, "took %lld ms", (long long)(loop_now_ms() - start));
    loop_done(message.send, -ECANCELED, 0);
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

/* Refused when posted, or soon after. */
static void posted_after_the_close(void)
{
    struct weft_request *request = NULL;
    char byte = 0;

    for (int send = 0; send < 2; send++) {
        int rc = send ? weft_send(RIGHT, &byte, 1, 0, NULL, &request) : weft_recv(RIGHT, &byte, 1, 0, NULL, &request);
        LOOP_CHECK(rc == 0 || rc == -ESHUTDOWN, "%s after the peer's close: %d", send ? "a send" : "a receive", rc);
        if (rc == 0)
            loop_done(request, -ESHUTDOWN, 0);
    }
}

static void the_other_side_sees_the_close(void)
{
    struct loop_message recv[3], send[3];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    for (uint64_t i = 0; i < 3; i++) {
        loop_message_create(&recv[i], LARGE, i);
        loop_message_create(&send[i], LARGE, i);
        recv[i].recv = loop_recv(RIGHT, recv[i].sink.data, LARGE, i);
        send[i].send = loop_send(RIGHT, send[i].source.data, LARGE, i);
    }
    LOOP_CALL(weft_connection_close(LEFT, LOOP_WAIT_MS, &err), &err);
    LEFT = NULL;
    for (int i = 0; i < 3; i++) {
        loop_done(recv[i].recv, -ESHUTDOWN, 0);
        loop_done(send[i].send, -ESHUTDOWN, 0);
        loop_message_destroy(&recv[i]);
        loop_message_destroy(&send[i]);
    }
    posted_after_the_close();
    LOOP_CALL(weft_connection_close(RIGHT, LOOP_WAIT_MS, &err), &err);
    RIGHT = NULL;
    loop_pair_destroy(&pair);
}

/* What the closer has sent and finished is there, although it was received by nobody yet. */
static void sent_before_the_close_is_still_received(void)
{
    struct loop_message message[3];
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    for (uint64_t i = 0; i < 3; i++) {
        loop_message_create(&message[i], SMALL, i);
        message[i].send = loop_send(LEFT, message[i].source.data, SMALL, i);
        loop_done(message[i].send, 0, SMALL);
    }
    LOOP_CALL(weft_connection_close(LEFT, LOOP_WAIT_MS, &err), &err);
    LEFT = NULL;
    loop_sleep_ms(50);
    for (uint64_t i = 3; i-- > 0;) {
        message[i].recv = loop_recv(RIGHT, message[i].sink.data, SMALL, i);
        loop_done(message[i].recv, 0, SMALL);
        loop_message_verify(&message[i]);
        loop_message_destroy(&message[i]);
    }
    loop_pair_destroy(&pair);
}

/* Who has received a message may leave at once: its sender is told that it arrived, not that the other side is gone. */
static void finish_after_the_close(struct loop_message *message)
{
    loop_done(message->send, 0, message->sink.size);
    loop_message_verify(message);
    loop_message_destroy(message);
}

enum leaving { CONNECTION_CLOSES, CONTEXT_ENDS, CONTEXT_ENDS_AND_CHANNELS_ARE_LOST };

static void receive_then_leave(enum leaving how)
{
    /* Within its limit no heartbeat comes that would send what nobody was told to send. */
    char settings[96] = "channels=4 chunk=64K timeout=300";
    bool close_peer = how != CONNECTION_CLOSES, lossy = how == CONTEXT_ENDS_AND_CHANNELS_ARE_LOST;
    const size_t large = lossy ? 2000000 : 300000;
    struct weft_connection *ends[2];
    struct weft_error err = {0};
    struct loop_message message;
    uint64_t lost = 0;

    if (!close_peer)
        loop_pair_create(&pair, settings, NULL, 2);
    const int rounds = how == CONNECTION_CLOSES ? LOOP_COUNT(300, 60)
                       : lossy                  ? LOOP_COUNT(100, 20)
                                                : LOOP_COUNT(40, 10);
    for (int round = 0; round < rounds; round++) {
        loop_note("the %s closes, round %d", close_peer ? "peer" : "connection", round);
        if (lossy)
            snprintf(settings, sizeof settings, "channels=4 chunk=64K timeout=300 fault=seed=%d,reset_every=256K",
                     round);
        if (close_peer)
            loop_pair_create(&pair, settings, NULL, 2);
        loop_connection(&pair, round % 2, ends);
        loop_message_create(&message, round % 3 ? large : 20000, (uint64_t)round);
        message.recv = loop_recv(ends[1], message.sink.data, message.sink.size, 1);
        message.send = loop_send(ends[0], message.source.data, message.sink.size, 1);
        loop_done(message.recv, 0, message.sink.size);
        if (!close_peer) {
            LOOP_CALL(weft_connection_close(ends[1], LOOP_WAIT_MS, &err), &err);
            finish_after_the_close(&message);
            LOOP_CALL(weft_connection_close(ends[0], LOOP_WAIT_MS, &err), &err);
            continue;
        }
        struct loop_node *leaver = &pair.node[!(round % 2)], *stayer = &pair.node[round % 2];
        lost += loop_failures(leaver->peer);
        loop_context_end(leaver->context);
        *leaver = (struct loop_node){0};
        finish_after_the_close(&message);
        loop_node_stop(stayer);
    }
    if (!close_peer)
        loop_pair_destroy(&pair);
    LOOP_CHECK(!lossy || lost > 0, "no channel was lost");
}

static void close_after_the_last_receive(void)
{
    receive_then_leave(CONNECTION_CLOSES);
}

static void leave_after_the_last_receive(void)
{
    receive_then_leave(CONTEXT_ENDS);
}

static void leave_while_channels_are_lost(void)
{
    receive_then_leave(CONTEXT_ENDS_AND_CHANNELS_ARE_LOST);
}

static void check_peer_close(int closer)
{
    struct loop_node *own = &pair.node[closer], *other = &pair.node[!closer];
    struct loop_message send[2], recv[2];
    struct weft_error err = {0};
    struct loop_node *side[2] = {own, other};

    loop_pair_create(&pair, NULL, NULL, 2);
    for (int i = 0; i < 2; i++) {
        loop_message_create(&send[i], LARGE, 1);
        loop_message_create(&recv[i], LARGE, 2);
        send[i].send = loop_send(side[i]->connection, send[i].source.data, LARGE, 1);
        recv[i].recv = loop_recv(side[i]->connection, recv[i].sink.data, LARGE, 2);
    }
    LOOP_CHECK(weft_peer_status(other->peer, &err) == 0, "%s", err.text);
    LOOP_CALL(weft_peer_close(own->peer, LOOP_WAIT_MS, &err), &err);
    own->peer = NULL;
    own->connection = NULL;
    loop_done(send[0].send, -ESHUTDOWN, 0);
    loop_done(recv[0].recv, -ESHUTDOWN, 0);
    for (int i = 0; i < 2; i++) {
        struct weft_request *request = i ? send[1].send : recv[1].recv;
        struct weft_completion completion = loop_end(request);
        LOOP_CHECK(completion.status == -ESHUTDOWN, "the other side got %d: %s", completion.status, completion.text);
    }
    LOOP_CHECK(weft_peer_status(other->peer, &err) < 0 && err.text[0], "the other side still thinks it is connected");
    for (int i = 0; i < 2; i++) {
        loop_message_destroy(&send[i]);
        loop_message_destroy(&recv[i]);
    }
    LOOP_CHECK(weft_endpoint_destroy(own->endpoint) == 0, "the endpoint is still busy");
    own->endpoint = NULL;
    loop_pair_destroy(&pair);
}

static void peer_close_ends_both_sides(void)
{
    check_peer_close(0);
    check_peer_close(1);
}

/* The second one to close need not know that it is the second. */
static void the_peer_has_closed_first(void)
{
    struct weft_error err = {0};

    loop_pair_create(&pair, NULL, NULL, 2);
    LOOP_CALL(weft_peer_close(pair.node[0].peer, LOOP_WAIT_MS, &err), &err);
    pair.node[0].peer = NULL;
    LEFT = NULL;
    for (int64_t limit = loop_now_ms() + LOOP_WAIT_MS; weft_peer_status(pair.node[1].peer, &err) == 0; loop_sleep_ms(1))
        LOOP_CHECK(loop_now_ms() < limit, "the peer's close does not come");
    LOOP_CHECK(weft_peer_status(pair.node[1].peer, &err) == -ESHUTDOWN, "%d '%s'", err.code, err.text);
    LOOP_CALL(weft_peer_close(pair.node[1].peer, LOOP_WAIT_MS, &err), &err);
    pair.node[1].peer = NULL;
    RIGHT = NULL;
    loop_pair_destroy(&pair);
}

/* An idle session closes at once, and the next one works. What a close could wait for instead takes LOOP_WAIT_MS. */
static void peers_come_and_go(void)
{
    struct weft_error err = {0};
    char settings[64];
    int fds = 0;

    snprintf(settings, sizeof settings, "channels=4 rail_timeout_ms=%d timeout=%d", LOOP_WAIT_MS, LOOP_WAIT_MS / 1000);
    for (int round = 0; round < LOOP_COUNT(30, 8); round++) {
        int64_t start = loop_now_ms();
        loop_note("round %d", round);
        loop_pair_create(&pair, settings, NULL, 2);
        loop_exchange(LEFT, RIGHT, 70000, 1);
        LOOP_CALL(weft_connection_close(LEFT, LOOP_WAIT_MS, &err), &err);
        LOOP_CALL(weft_connection_close(RIGHT, LOOP_WAIT_MS, &err), &err);
        LEFT = RIGHT = NULL;
        for (int i = 0; i < 2; i++)
            LOOP_CALL(weft_peer_close(pair.node[i].peer, LOOP_WAIT_MS, &err), &err);
        pair.node[0].peer = pair.node[1].peer = NULL;
        loop_pair_destroy(&pair);
        LOOP_CHECK(loop_now_ms() - start < LOOP_WAIT_MS / 4, "took %lld ms", (long long)(loop_now_ms() - start));
        if (round == 0)
            fds = loop_fds();
        LOOP_CHECK(loop_fds() == fds, "%d descriptors, %d after the first round", loop_fds(), fds);
    }
}

/* Contexts that stay, sessions that come and go between them. */
static void sessions_come_and_go(void)
{
    struct loop_node node[2];
    int fds = 0;

    loop_node_start(&node[0], "channels=2", 2);
    loop_node_start(&node[1], "channels=2", 2);
    int port = loop_node_listen(&node[1]);
    for (int round = 0; round < LOOP_COUNT(100, 20); round++) {
        loop_note("round %d", round);
        loop_node_connect(&node[0], port);
        loop_node_accept(&node[1]);
        loop_node_open(&node[0]);
        loop_node_take(&node[1]);
        loop_exchange(node[0].connection, node[1].connection, 70000, 1);
        for (int i = 0; i < 2; i++)
            weft_connection_close(node[i].connection, 2000, NULL);
        for (int i = 0; i < 2; i++)
            weft_peer_close(node[i].peer, 2000, NULL);
        for (int64_t limit = loop_now_ms() + 2000; round && loop_fds() > fds && loop_now_ms() < limit;)
            loop_sleep_ms(1);
        if (round == 0)
            fds = loop_fds();
        LOOP_CHECK(loop_fds() <= fds + 2, "%d descriptors, %d after the first round", loop_fds(), fds);
    }
    for (int i = 0; i < 2; i++) {
        node[i].connection = NULL;
        node[i].peer = NULL;
        loop_node_stop(&node[i]);
    }
}

/* A context that goes takes nothing of its memory's content with it, and its peer hears of it. */
static void context_destroyed_with_everything_live(void)
{
    struct loop_message own[4], other;
    struct weft_error err = {0};

    for (int round = 0; round < 4; round++) {
        loop_note("round %d", round);
        loop_pair_create(&pair, "channels=1 chunk=64K window=4", NULL, 2);
        struct loop_node *leaver = &pair.node[round % 2], *stayer = &pair.node[!(round % 2)];
        for (uint64_t i = 0; i < 4; i++) {
            loop_message_create(&own[i], LARGE, i);
            if (i % 2)
                loop_send(leaver->connection, own[i].source.data, LARGE, i);
            else
                loop_recv(leaver->connection, own[i].sink.data, LARGE, i);
        }
        loop_message_create(&other, LARGE, 9);
        other.recv = loop_recv(stayer->connection, other.sink.data, LARGE, 1);
        other.send = loop_send(stayer->connection, other.source.data, LARGE, 0);
        if (round < 2)
            loop_sleep_ms(round * 2);
        loop_context_end(leaver->context);
        *leaver = (struct loop_node){0};
        for (int i = 0; i < 4; i++)
            loop_message_destroy(&own[i]);
        loop_end(other.recv);
        loop_end(other.send);
        loop_message_destroy(&other);
        LOOP_CHECK(weft_peer_status(stayer->peer, &err) < 0, "the other side still thinks it is connected");
        loop_node_stop(stayer);
    }
}

static int connect_and_stay(int in, int out, void *arg)
{
    struct loop_node node;

    (void)arg;
    int port = (int)loop_hear(in);
    loop_node_start(&node, "channels=1", 1);
    loop_node_connect(&node, port);
    loop_tell(out, 1);
    loop_hear(in); /* killed here */
    return 1;
}

/* Peers that are stopped answer no CLOSE: all of them have one second together, and not one after the other. */
static void context_destroyed_while_peers_are_stopped(void)
{
    enum { PEERS = 8 };
    struct loop_child child[PEERS];
    struct loop_node node;

    loop_needs_kernel("processes");
    for (int i = 0; i < PEERS; i++)
        loop_child_start(&child[i], connect_and_stay, NULL);
    loop_node_start(&node, "channels=1", 1);
    int port = loop_node_listen(&node);
    for (int i = 0; i < PEERS; i++) {
        loop_tell(child[i].out, (uint64_t)port);
        loop_node_accept(&node);
        loop_hear(child[i].in);
        loop_child_stop(&child[i]);
    }
    int64_t start = loop_now_ms();
    loop_context_end(node.context);
    LOOP_CHECK(loop_now_ms() - start < PEERS * 500 * LOOP_SLOWER, "took %lld ms", (long long)(loop_now_ms() - start));
    for (int i = 0; i < PEERS; i++)
        loop_child_kill(&child[i]);
}

static int send_and_learn(int in, int out, void *arg)
{
    struct loop_node node;
    struct loop_message message;
    struct weft_error err;

    (void)arg;
    int port = (int)loop_hear(in);
    loop_node_start(&node, "channels=1", 1);
    loop_node_connect(&node, port);
    loop_node_open(&node);
    loop_message_create(&message, SMALL, 1);
    message.send = loop_send(node.connection, message.source.data, SMALL, 1);
    loop_done(message.send, 0, SMALL);
    loop_tell(out, 1);
    loop_hear(in); /* stopped here */
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (weft_peer_status(node.peer, &err) == 0 && loop_now_ms() < limit)
        loop_sleep_ms(5);
    loop_tell(out, (uint64_t)-weft_peer_status(node.peer, &err));
    loop_hear(in);
    return 0;
}

/* A peer that is stopped does not answer CLOSE. It finds the goodbye when it goes on, and no lost session. */
static void a_stopped_peer_finds_the_goodbye(void)
{
    struct loop_child child;
    struct loop_node node;
    struct loop_message message;

    loop_needs_kernel("processes");
    loop_child_start(&child, send_and_learn, NULL);
    loop_node_start(&node, "channels=1", 1);
    loop_tell(child.out, (uint64_t)loop_node_listen(&node));
    loop_node_accept(&node);
    loop_node_take(&node);
    loop_message_create(&message, SMALL, 1);
    message.recv = loop_recv(node.connection, message.sink.data, SMALL, 1);
    loop_done(message.recv, 0, SMALL);
    loop_hear(child.in);
    loop_child_stop(&child);
    loop_context_end(node.context);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_tell(child.out, 1);
    LOOP_CHECK(kill(child.pid, SIGCONT) == 0, "SIGCONT");
    uint64_t status = loop_hear(child.in);
    LOOP_CHECK(status == ESHUTDOWN, "the peer learns of the close as %s", strerror((int)status));
    loop_child_kill(&child);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(connection_close_cancels_receives, 20),
        LOOP_CASE(connection_close_finishes_sends, 20),
        LOOP_CASE(connection_close_gives_up_in_time, 20),
        LOOP_CASE(the_other_side_sees_the_close, 20),
        LOOP_CASE(sent_before_the_close_is_still_received, 20),
        LOOP_CASE(close_after_the_last_receive, 20),
        LOOP_CASE(leave_after_the_last_receive, 20),
        LOOP_CASE(leave_while_channels_are_lost, 60),
        LOOP_CASE(peer_close_ends_both_sides, 20),
        LOOP_CASE(the_peer_has_closed_first, 20),
        LOOP_CASE(peers_come_and_go, 60),
        LOOP_CASE(sessions_come_and_go, 60),
        LOOP_CASE(context_destroyed_with_everything_live, 40),
        LOOP_CASE(context_destroyed_while_peers_are_stopped, 40),
        LOOP_CASE(a_stopped_peer_finds_the_goodbye, 40),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
