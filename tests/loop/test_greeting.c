/* test_greeting.c: what two contexts tell each other when they meet is there with the peer, before any message. */
#include "loop_support.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loop_world.h"

static void set(struct weft_context *context, const void *bytes, uint32_t length)
{
    struct weft_error err = {0};
    LOOP_CALL(weft_greeting_set(context, bytes, length, &err), &err);
}

static void expect(const struct weft_peer *peer, const void *bytes, uint32_t length)
{
    uint32_t got = 77;
    const char *greeting = weft_peer_greeting(peer, &got);
    LOOP_CHECK(greeting && got == length, "%u bytes, not %u", got, length);
    LOOP_CHECK(memcmp(greeting, bytes, length) == 0 && greeting[length] == '\0', "other bytes than were told");
    LOOP_CHECK(weft_peer_greeting(peer, NULL) == (const void *)greeting, "not where it was");
}

static void bring_up(struct loop_node *server, struct loop_node *client)
{
    loop_node_connect(client, weft_listen_port(server->context));
    loop_node_accept(server);
}

static void connections(struct loop_node *server, struct loop_node *client)
{
    loop_node_open(client);
    loop_node_take(server);
    loop_exchange(client->connection, server->connection, 5000, 1);
}

/* Of all lengths, and any bytes: a greeting is no text. */
static void each_has_the_others(void)
{
    static const uint32_t lengths[] = {0, 1, 2, 255, 1500, 4095, WEFT_GREETING_MAX};
    enum { COUNT = sizeof lengths / sizeof lengths[0] };
    for (int i = 0; i < COUNT; i++) {
        struct loop_node server, client;
        unsigned char bytes[2][WEFT_GREETING_MAX];
        loop_note("%u bytes", lengths[i]);
        loop_fill(bytes[0], WEFT_GREETING_MAX, (uint64_t)i);
        loop_fill(bytes[1], WEFT_GREETING_MAX, (uint64_t)i + 100);
        bytes[0][0] = 0;
        loop_node_start(&server, NULL, 2);
        loop_node_start(&client, NULL, 2);
        set(server.context, bytes[0], lengths[i]);
        set(client.context, bytes[1], lengths[COUNT - 1 - i]);
        loop_node_listen(&server);
        bring_up(&server, &client);
        expect(client.peer, bytes[0], lengths[i]);
        expect(server.peer, bytes[1], lengths[COUNT - 1 - i]);
        connections(&server, &client);
        expect(client.peer, bytes[0], lengths[i]);
        loop_node_stop(&client);
        loop_node_stop(&server);
    }
}

static void nothing_is_told(void)
{
    struct loop_pair pair;
    loop_pair_create(&pair, NULL, NULL, 1);
    expect(pair.node[0].peer, "", 0);
    expect(pair.node[1].peer, "", 0);
    loop_pair_destroy(&pair);
}

/* A later greeting is for peers met later, and the caller's memory is not used after the call. */
static void what_is_told_stays(void)
{
    enum { CLIENTS = 5 };
    struct loop_node server, clients[CLIENTS];
    struct weft_peer *peers[CLIENTS];
    char text[64];
    loop_node_start(&server, NULL, 1);
    loop_node_listen(&server);
    for (int i = 0; i < CLIENTS; i++) {
        loop_node_start(&clients[i], NULL, 1);
        set(clients[i].context, text, (uint32_t)snprintf(text, sizeof text, "client %d", i));
        set(server.context, text, (uint32_t)snprintf(text, sizeof text, "server of client %d", i));
        memset(text, '?', sizeof text);
        bring_up(&server, &clients[i]);
        peers[i] = server.peer;
    }
    set(server.context, NULL, 0);
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(text, sizeof text, "client %d", i);
        expect(peers[i], text, (uint32_t)strlen(text));
        snprintf(text, sizeof text, "server of client %d", i);
        expect(clients[i].peer, text, (uint32_t)strlen(text));
    }
    for (int i = 0; i < CLIENTS; i++) {
        if (i + 1 < CLIENTS)
            weft_peer_close(peers[i], 0, NULL); /* loop_node_stop() closes the last */
        loop_node_stop(&clients[i]);
    }
    loop_node_stop(&server);
}

struct changing {
    struct weft_context *context;
    _Atomic bool over;
};

static void *change(void *arg)
{
    struct changing *changing = arg;
    char bytes[WEFT_GREETING_MAX];
    for (int i = 0; !atomic_load(&changing->over); i++) {
        memset(bytes, 'a' + i % 26, sizeof bytes);
        set(changing->context, bytes, WEFT_GREETING_MAX);
    }
    return NULL;
}

/* Every peer is told one greeting, never half of one and half of the next. */
static void changed_while_peers_come(void)
{
    struct loop_node server, client;
    struct changing changing = {0};
    pthread_t thread;
    char bytes[WEFT_GREETING_MAX];
    loop_needs_kernel("threads");
    loop_node_start(&server, NULL, 1);
    loop_node_listen(&server);
    changing.context = server.context;
    memset(bytes, 'a', sizeof bytes);
    set(server.context, bytes, sizeof bytes);
    LOOP_CHECK(pthread_create(&thread, NULL, change, &changing) == 0, "pthread_create");
    loop_node_start(&client, NULL, 1);
    for (int i = 0; i < LOOP_COUNT(40, 10); i++) {
        bring_up(&server, &client);
        memset(bytes, *(const char *)weft_peer_greeting(client.peer, NULL), sizeof bytes);
        LOOP_CHECK(bytes[0] >= 'a' && bytes[0] <= 'z', "'%c'", bytes[0]);
        expect(client.peer, bytes, sizeof bytes);
        weft_peer_close(server.peer, 0, NULL);
        weft_peer_close(client.peer, 0, NULL);
        server.peer = client.peer = NULL;
    }
    atomic_store(&changing.over, true);
    pthread_join(thread, NULL);
    loop_node_stop(&client);
    loop_node_stop(&server);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(each_has_the_others, 30),
        LOOP_CASE(nothing_is_told, 10),
        LOOP_CASE(what_is_told_stays, 20),
        LOOP_CASE(changed_while_peers_come, 30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
