/* test_kill.c: a peer that dies or stops in the middle of everything ends every request in time, with its name in the
 * text, and the survivor goes on with others. */
#include "loop_support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BIG = 96 * 1024 * 1024, EACH = 3, TIMEOUT_S = 2 };

#define SETTINGS "channels=2 chunk=64K window=4 timeout=2"

/* The victim: large messages each way, tags 0 .. EACH-1, never finished; either it listens or it dials. */
struct victim {
    bool listens;
    bool well_behaved; /* an exchange, then a stop when told; as a dialler it also waits to be told to start */
    int port;          /* where it dials */
};

static int victim_body(int in, int out, void *arg)
{
    const struct victim *victim = arg;
    struct loop_buffer source, sink[EACH];
    struct loop_node node;

    if (victim->well_behaved && !victim->listens)
        loop_hear(in);
    loop_node_start(&node, SETTINGS, 2);
    if (victim->listens) {
        loop_tell(out, (uint64_t)loop_node_listen(&node));
        loop_node_accept(&node);
        loop_node_take(&node);
    } else {
        loop_node_connect(&node, victim->port);
        loop_node_open(&node);
    }
    if (victim->well_behaved) {
        struct loop_message message;
        loop_message_create(&message, 300000, 5);
        loop_done(loop_recv(node.connection, message.sink.data, 300000, 5), 0, 300000);
        loop_done(loop_send(node.connection, message.source.data, 300000, 5), 0, 300000);
        loop_message_verify(&message);
        loop_message_destroy(&message);
        loop_hear(in);
        loop_node_stop(&node);
        return 0;
    }
    loop_buffer_create(&source, LOOP_NEAR, BIG);
    for (uint64_t i = 0; i < EACH; i++) {
        loop_buffer_create(&sink[i], LOOP_FAR, BIG);
        loop_recv(node.connection, sink[i].data, BIG, i);
        loop_send(node.connection, source.data, BIG, i);
    }
    loop_tell(out, 1);
    loop_hear(in); /* killed here */
    return 1;
}

/* What the survivor has under way: large ones in both directions, one of each kind that nobody will match. */
struct survivor {
    struct loop_buffer source, sink[EACH + 1];
    struct weft_request *send[EACH + 1], *recv[EACH + 1];
};

static void survivor_post(struct survivor *survivor, struct weft_connection *connection)
{
    loop_buffer_create(&survivor->source, LOOP_NEAR, BIG);
    for (uint64_t i = 0; i <= EACH; i++) {
        loop_buffer_create(&survivor->sink[i], LOOP_FAR, BIG);
        survivor->recv[i] = loop_recv(connection, survivor->sink[i].data, BIG, i < EACH ? i : 1000);
        survivor->send[i] = loop_send(connection, survivor->source.data, BIG, i < EACH ? i : 1001);
    }
}

/* Every request ends within `limit_ms`, in an error that names the peer. */
static void survivor_end(struct survivor *survivor, const struct weft_peer *peer, int64_t limit_ms)
{
    int64_t start = loop_now_ms();
    const char *name = weft_peer_name(peer);

    LOOP_CHECK(name && strlen(name) > 3, "the peer has no name");
    for (int i = EACH; i >= 0; i--) {
        for (int send = 0; send < 2; send++) {
            loop_note("%s %d of the survivor", send ? "send" : "receive", i);
            struct weft_completion completion = loop_end(send ? survivor->send[i] : survivor->recv[i]);
            LOOP_CHECK(completion.status < 0 && completion.status != -ECANCELED, "status %d", completion.status);
            LOOP_CHECK(strstr(completion.text, name), "'%s' is not in '%s'", name, completion.text);
        }
        loop_buffer_unmap(&survivor->sink[i]);
    }
    loop_buffer_unmap(&survivor->source);
    LOOP_CHECK(loop_now_ms() - start < limit_ms, "took %lld ms", (long long)(loop_now_ms() - start));
}

static void wait_for_bytes(const struct weft_peer *peer, uint64_t bytes)
{
    for (int64_t limit = loop_now_ms() + LOOP_WAIT_MS; loop_received(peer) < bytes;)
        LOOP_CHECK(loop_now_ms() < limit, "the transfer does not get under way");
}

static void check_survivor_closes(struct loop_node *node, int rc)
{
    struct weft_error err = {0};
    int64_t start = loop_now_ms();

    weft_connection_close(node->connection, 3000, &err);
    int closed = weft_peer_close(node->peer, 3000, &err);
    LOOP_CHECK(closed == rc && err.code == rc && err.text[0], "its close: %d '%s', and its status was %d", closed,
               err.text, rc);
    node->connection = NULL;
    node->peer = NULL;
    LOOP_CHECK(loop_now_ms() - start < 1500 * LOOP_SLOWER, "closing what is dead took %lld ms",
               (long long)(loop_now_ms() - start));
}

static void check_survivor_status(struct loop_node *node)
{
    struct weft_error err = {0};
    struct weft_request *request = NULL;
    char byte = 0;

    int rc = weft_peer_status(node->peer, &err);
    LOOP_CHECK(rc < 0 && err.code == rc && strstr(err.text, weft_peer_name(node->peer)), "status %d, text '%s'", rc,
               err.text);
    LOOP_CHECK(weft_send(node->connection, &byte, 1, 0, NULL, &request) == rc, "a send to a dead peer");
    LOOP_CHECK(weft_recv(node->connection, &byte, 1, 0, NULL, &request) == rc, "a receive from a dead peer");
    check_survivor_closes(node, rc);
}

/* The survivor listens; after its peer was killed the next one comes and finds everything in order. */
static void killed_client_is_followed_by_another(void)
{
    static struct survivor survivor;
    struct victim victim = {.listens = false}, next = {.well_behaved = true};
    struct loop_child child, second;

    /* Children are forked before this process has threads, so the port is chosen first. */
    int port, held = loop_hold_port(&port);
    victim.port = next.port = port;
    loop_child_start(&child, victim_body, &victim);
    loop_child_start(&second, victim_body, &next);

    struct loop_node node;
    struct weft_error err = {0};
    char address[32];
    loop_node_start(&node, SETTINGS, 2);
    loop_address(address, sizeof(address), victim.port);
    LOOP_CALL(weft_listen(node.context, address, &err), &err);
    loop_node_accept(&node);
    loop_node_take(&node);
    survivor_post(&survivor, node.connection);
    wait_for_bytes(node.peer, BIG / 20);
    int fds = loop_fds();
    loop_child_kill(&child);
    survivor_end(&survivor, node.peer, (TIMEOUT_S + 3) * 1000 * LOOP_SLOWER);
    check_survivor_status(&node);
    loop_note("the next client");
    loop_tell(second.out, 1);
    loop_node_accept(&node);
    loop_node_take(&node);
    struct loop_message message;
    loop_message_create(&message, 300000, 5);
    loop_done(loop_send(node.connection, message.source.data, 300000, 5), 0, 300000);
    loop_done(loop_recv(node.connection, message.sink.data, 300000, 5), 0, 300000);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    LOOP_CHECK(loop_fds() <= fds, "%d descriptors, %d with the first client", loop_fds(), fds);
    loop_tell(second.out, 1);
    loop_node_stop(&node);
    loop_child_join(&second);
    close(held);
}

/* `stop`: the peer's kernel goes on acknowledging, the peer itself says nothing any more. */
static void lose_server(bool stop)
{
    static struct survivor survivor;
    struct victim victim = {.listens = true};
    struct loop_child child;
    struct loop_node node;

    loop_child_start(&child, victim_body, &victim);
    int port = (int)loop_hear(child.in);
    loop_node_start(&node, SETTINGS, 2);
    loop_node_connect(&node, port);
    loop_node_open(&node);
    loop_hear(child.in);
    survivor_post(&survivor, node.connection);
    wait_for_bytes(node.peer, BIG / 20);
    if (stop)
        loop_child_stop(&child);
    else
        loop_child_kill(&child);
    survivor_end(&survivor, node.peer, (TIMEOUT_S + 3) * 1000 * LOOP_SLOWER);
    check_survivor_status(&node);
    loop_node_stop(&node);
    if (stop)
        loop_child_kill(&child);
}

static void killed_server(void)
{
    lose_server(false);
}

static void stopped_server(void)
{
    lose_server(true);
}

enum { LEFT_BEHIND = 4, LEFT_BYTES = 3000 };

/* Sends small messages, tags 0 .. LEFT_BEHIND-1, and one that cannot end; ends when told, without a close. */
static int leaver_body(int in, int out, void *arg)
{
    struct loop_buffer source;
    struct loop_node node;

    (void)arg;
    loop_node_start(&node, SETTINGS, 2);
    loop_tell(out, (uint64_t)loop_node_listen(&node));
    loop_node_accept(&node);
    loop_node_take(&node);
    loop_buffer_create(&source, LOOP_NEAR, BIG);
    for (uint64_t tag = 0; tag < LEFT_BEHIND; tag++) {
        loop_fill(source.data, LEFT_BYTES, tag);
        loop_done(loop_send(node.connection, source.data, LEFT_BYTES, tag), 0, LEFT_BYTES);
    }
    loop_send(node.connection, source.data, BIG, LEFT_BEHIND);
    loop_hear(in);
    return 0;
}

static void await_message(struct loop_node *node, uint64_t tag)
{
    struct weft_message found;
    int rc = 0;

    for (int64_t limit = loop_now_ms() + LOOP_WAIT_MS; rc == 0 && loop_now_ms() < limit;)
        rc = weft_probe(node->connection, tag, NULL, &found);
    LOOP_CHECK(rc == 1 && found.tag == tag, "message %llu: %d", (unsigned long long)tag, rc);
}

static void take_left_behind(const struct loop_node *node, struct loop_buffer *sink, uint64_t tag, bool from_any)
{
    struct weft_message found;
    struct weft_request *request;

    LOOP_CHECK(weft_probe(node->connection, tag, NULL, &found) == 1 && found.bytes == LEFT_BYTES, "it is not here");
    memset(sink->data, 0, LEFT_BYTES);
    if (from_any)
        LOOP_CHECK(weft_endpoint_recv(node->endpoint, sink->data, LEFT_BYTES, tag, NULL, &request) == 0, "any");
    else
        request = loop_recv(node->connection, sink->data, LEFT_BYTES, tag);
    loop_done(request, 0, LEFT_BYTES);
    LOOP_CHECK(loop_wrong(sink->data, LEFT_BYTES, tag) < 0, "message %llu is wrong", (unsigned long long)tag);
}

/* A process may end once its sends are complete: what came whole can be received, also after its loss was noticed. */
static void what_came_whole_outlives_its_sender(void)
{
    struct loop_child child;
    struct loop_node node;
    struct loop_buffer sink;
    struct weft_message found;
    struct weft_error err = {0};
    int rc = 0;

    loop_child_start(&child, leaver_body, NULL);
    int port = (int)loop_hear(child.in);
    loop_node_start(&node, SETTINGS, 2);
    loop_node_connect(&node, port);
    loop_node_open(&node);
    for (uint64_t tag = 0; tag <= LEFT_BEHIND; tag++)
        await_message(&node, tag);
    loop_tell(child.out, 1);
    loop_child_join(&child);
    for (int64_t limit = loop_now_ms() + LOOP_WAIT_MS; rc == 0 && loop_now_ms() < limit;)
        rc = weft_peer_status(node.peer, &err);
    LOOP_CHECK(rc < 0, "the loss is not noticed");

    loop_buffer_create(&sink, LOOP_FAR, BIG);
    take_left_behind(&node, &sink, 2, false);
    loop_done(loop_recv(node.connection, sink.data, LEFT_BYTES - 1, 0), -EMSGSIZE, LEFT_BYTES);
    take_left_behind(&node, &sink, 0, false);
    take_left_behind(&node, &sink, 3, true);
    LOOP_CHECK(weft_probe(node.connection, LEFT_BEHIND, NULL, &found) == rc, "a message that cannot end");
    struct weft_completion completion = loop_end(loop_recv(node.connection, sink.data, BIG, LEFT_BEHIND));
    LOOP_CHECK(completion.status == rc && strstr(completion.text, weft_peer_name(node.peer)), "its receive: %d '%s'",
               completion.status, completion.text);
    take_left_behind(&node, &sink, 1, true);
    check_survivor_closes(&node, rc);
    loop_buffer_unmap(&sink);
    loop_node_stop(&node);
}

/* Only receives wait, nothing is under way: a stopped peer is noticed nevertheless. */
static void stopped_while_idle(void)
{
    struct victim victim = {.listens = true, .well_behaved = true};
    struct loop_child child;
    struct loop_node node;
    struct loop_buffer sink;

    loop_child_start(&child, victim_body, &victim);
    int port = (int)loop_hear(child.in);
    loop_node_start(&node, SETTINGS, 2);
    loop_node_connect(&node, port);
    loop_node_open(&node);
    loop_buffer_create(&sink, LOOP_FAR, BIG);
    struct weft_request *recv = loop_recv(node.connection, sink.data, BIG, 3);
    loop_sleep_ms(100);
    loop_child_stop(&child);
    int64_t start = loop_now_ms();
    struct weft_completion completion = loop_end(recv);
    LOOP_CHECK(completion.status < 0, "status %d", completion.status);
    LOOP_CHECK(loop_now_ms() - start < (TIMEOUT_S + 3) * 1000 * LOOP_SLOWER, "took %lld ms",
               (long long)(loop_now_ms() - start));
    loop_buffer_unmap(&sink);
    loop_node_stop(&node);
    loop_child_kill(&child);
}

/* Silence of a peer that lives is no failure, however long. */
static void idle_is_not_dead(void)
{
    struct loop_pair pair;
    struct loop_message message;

    loop_pair_create(&pair, "timeout=1", NULL, 2);
    loop_message_create(&message, 300000, 1);
    message.recv = loop_recv(pair.node[0].connection, message.sink.data, 300000, 1);
    loop_sleep_ms(3300);
    message.send = loop_send(pair.node[1].connection, message.source.data, 300000, 1);
    loop_done(message.recv, 0, 300000);
    loop_done(message.send, 0, 300000);
    loop_message_verify(&message);
    /* Nor is a send whose receive comes late. */
    message.send = loop_send(pair.node[1].connection, message.source.data, 300000, 1);
    loop_sleep_ms(2500);
    message.recv = loop_recv(pair.node[0].connection, message.sink.data, 300000, 1);
    loop_done(message.recv, 0, 300000);
    loop_done(message.send, 0, 300000);
    LOOP_CHECK(loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer) == 0, "a channel was lost");
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(killed_client_is_followed_by_another, 40),
        LOOP_CASE(killed_server, 40),
        LOOP_CASE(what_came_whole_outlives_its_sender, 40),
        LOOP_CASE(stopped_server, 40),
        LOOP_CASE(stopped_while_idle, 40),
        LOOP_CASE(idle_is_not_dead, 30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
