/*
 * Two processes do to each other everything that an older version of the library can do, and check what comes of it.
 * Compiled twice: with this version of weft.h and the library, and with the older one. So it uses what both have.
 *
 *     talk listen NAME=VALUE...             prints its port, takes one peer, and does it all
 *     talk connect ADDRESS NAME=VALUE...    the other one
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

#define WAIT_MS 60000
#define REGION (2u << 20)
#define SMALL_MESSAGES 2000

/* One connection of two, the first of which the client has opened. */
static struct weft_context *context;
static struct weft_connection *connection;
static unsigned char *mine, *region; /* of REGION bytes */
static struct weft_registration *registration;
static uint64_t key; /* of the peer's region */

static void check(int holds, int line, const char *what, const char *text)
{
    if (holds)
        return;
    fprintf(stderr, "talk.c:%d: does not hold: %s: %s\n", line, what, text);
    exit(EXIT_FAILURE);
}

#define CHECK(condition, text) check((condition), __LINE__, #condition, (text))

/* Byte `at` of what is moved under this number. */
static unsigned char byte_of(uint64_t number, uint64_t at)
{
    return (unsigned char)(number * 151 + at + (at >> 8) * 7 + (at >> 16) * 3);
}

static void fill(unsigned char *bytes, uint64_t length, uint64_t number)
{
    for (uint64_t i = 0; i < length; i++)
        bytes[i] = byte_of(number, i);
}

static void verify(const unsigned char *bytes, uint64_t length, uint64_t number)
{
    for (uint64_t i = 0; i < length; i++)
        CHECK(bytes[i] == byte_of(number, i), "a wrong byte has arrived");
}

static struct weft_completion end_of(struct weft_request *request, int status)
{
    struct weft_completion done;
    int result = weft_wait(request, WAIT_MS, &done);
    CHECK(result == 0, "it does not end");
    CHECK(done.status == status, done.status ? done.text : "it ends well");
    return done;
}

static struct weft_request *posted(int result, struct weft_request *request)
{
    CHECK(result == 0, strerror(-result));
    return request;
}

static struct weft_request *send(const void *bytes, uint64_t length, uint64_t tag)
{
    struct weft_request *request;
    int result = weft_send(connection, bytes, length, tag, NULL, &request);
    return posted(result, request);
}

static struct weft_request *receive(void *bytes, uint64_t capacity, uint64_t tag, uint32_t flags)
{
    struct weft_options options = {.flags = flags};
    struct weft_request *request;
    int result = weft_recv(connection, bytes, capacity, tag, &options, &request);
    return posted(result, request);
}

/* Both sides have come here. */
static void meet(uint64_t place)
{
    uint64_t theirs = 0;
    struct weft_request *request = receive(&theirs, sizeof theirs, 1000 + place, 0);
    end_of(send(&place, sizeof place, 1000 + place), 0);
    end_of(request, 0);
    CHECK(theirs == place, "somewhere else");
}

/* --- messages --- */

static void messages(void)
{
    static const uint64_t sizes[] = {0, 1, 64, 8192, 8193, 65536, 300000, 1 << 20, (1 << 20) + 1, REGION};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *landing = calloc(1, sizes[i] + 1);
        CHECK(landing != NULL, "memory");
        fill(mine, sizes[i], i);
        if (i % 2) /* the receive first, so that bytes go straight to their place */
            meet(i);
        struct weft_request *in = i % 2 ? receive(landing, sizes[i], i, 0) : NULL;
        if (i % 2)
            meet(100 + i);
        struct weft_request *out = send(mine, sizes[i], i);
        if (!in)
            in = receive(landing, sizes[i] + 1, 77, WEFT_ANY_TAG);
        struct weft_completion done = end_of(in, 0);
        CHECK(done.bytes == sizes[i] && done.tag == i, "another message");
        end_of(out, 0);
        verify(landing, sizes[i], i);
        free(landing);
    }
}

/* In their order, by tag, whatever the order of the receives. */
static void many_messages(void)
{
    static unsigned char out[SMALL_MESSAGES][16], in[SMALL_MESSAGES][16];
    static struct weft_request *requests[2 * SMALL_MESSAGES];
    for (int i = 0; i < SMALL_MESSAGES; i++) {
        fill(out[i], 16, (uint64_t)i);
        requests[i] = send(out[i], 16, 50 + (uint64_t)i % 2);
    }
    for (int tag = 1; tag >= 0; tag--)
        for (int i = tag; i < SMALL_MESSAGES; i += 2)
            requests[SMALL_MESSAGES + i] = receive(in[i], 16, 50 + (uint64_t)tag, 0);
    for (int i = 0; i < 2 * SMALL_MESSAGES; i++)
        end_of(requests[i], 0);
    for (int i = 0; i < SMALL_MESSAGES; i++)
        verify(in[i], 16, (uint64_t)i);
}

static void cancelled(void)
{
    struct weft_request *request = receive(mine, 64, 4444, 0);
    weft_cancel(request);
    end_of(request, -ECANCELED);
    meet(1);
}

/* --- one-sided operations, of one side while the other waits --- */

/* A notification of the peer's, of a side that only has memory. */
static void hear(const char *words)
{
    char bytes[64] = "";
    struct weft_request *request;
    int result = weft_recv_notification(connection, bytes, sizeof bytes, NULL, &request);
    struct weft_completion done = end_of(posted(result, request), 0);
    CHECK(done.bytes == strlen(words) && memcmp(bytes, words, done.bytes) == 0, "another notification");
    CHECK(done.tag == done.bytes, "another tag");
}

static struct weft_options notify(const char *words)
{
    return (struct weft_options){
        .flags = WEFT_NOTIFY, .notify_tag = strlen(words), .notify_data = words, .notify_length = strlen(words)};
}

static void write_and_read(void)
{
    static const uint64_t sizes[] = {1, 5000, 100000, REGION - 8};
    struct weft_request *request;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weft_options options = notify("written");
        fill(mine, sizes[i], 10 + i);
        int result = weft_write(connection, mine, sizes[i], key, 8, &options, &request);
        CHECK(end_of(posted(result, request), 0).bytes == sizes[i], "another length");
        memset(mine, 0, sizes[i]);
        meet(200 + i); /* a read may end there behind a write that was asked for later */
        options = notify("read back");
        result = weft_read(connection, mine, sizes[i], key, 8, &options, &request);
        CHECK(end_of(posted(result, request), 0).bytes == sizes[i], "another length");
        verify(mine, sizes[i], 10 + i);
        meet(300 + i);
    }
}

static void let_write_and_read(void)
{
    for (uint64_t i = 0; i < 4; i++) {
        hear("written");
        meet(200 + i);
        hear("read back");
        meet(300 + i);
    }
    verify(region + 8, REGION - 8, 13);
}

/* Lists of pieces: every second 100 bytes of one side, the others of the other side. */
static void lists(void)
{
    enum { PIECES = 3000 };
    static struct weft_piece pieces[PIECES];
    struct weft_options options = notify("a list");
    struct weft_request *request;
    for (uint64_t i = 0; i < PIECES; i++)
        pieces[i] = (struct weft_piece){.local = 200 * i, .remote = 200 * i + 100, .length = i % 101};
    fill(mine, REGION, 20);
    int result = weft_write_list(connection, mine, pieces, PIECES, key, &options, &request);
    end_of(posted(result, request), 0);
    memset(mine, 0, REGION);
    result = weft_read_list(connection, mine, pieces, PIECES, key, NULL, &request);
    end_of(posted(result, request), 0);
    for (uint64_t i = 0; i < PIECES; i++)
        for (uint64_t at = 200 * i; at < 200 * (i + 1); at++)
            CHECK(mine[at] == (at < 200 * i + i % 101 ? byte_of(20, at) : 0), "a wrong byte in a piece");
}

static void refused(void)
{
    struct weft_request *request;
    int result = weft_write(connection, mine, 10, key + 1, 0, NULL, &request);
    end_of(posted(result, request), -EACCES);
    result = weft_read(connection, mine, 100000, key + 1, 0, NULL, &request);
    end_of(posted(result, request), -EACCES);
    result = weft_write(connection, mine, 100000, key, REGION - 10, NULL, &request);
    end_of(posted(result, request), -ERANGE);
    /* What is refused takes nothing with it. */
    struct weft_options options = notify("after it");
    result = weft_write(connection, mine, 10, key, 0, &options, &request);
    end_of(posted(result, request), 0);
}

static void one_sided(int asks, struct weft_peer *peer)
{
    uint64_t own = weft_registration_key(registration), denied = weft_peer_denied(peer);
    struct weft_request *request = receive(&key, sizeof key, 9000, 0);
    end_of(send(&own, sizeof own, 9000), 0);
    end_of(request, 0);
    if (asks) {
        write_and_read();
        meet(2);
        lists();
        refused();
    } else {
        let_write_and_read();
        meet(2);
        hear("a list");
        hear("after it");
        CHECK(weft_peer_denied(peer) == denied + 3, "what was refused is counted");
    }
    meet(3);
}

/* --- all of it --- */

static void close_one(int closes)
{
    struct weft_request *request = receive(mine, 64, 5555, 0);
    struct weft_error err = {0};
    meet(4);
    if (closes)
        CHECK(weft_connection_close(connection, WAIT_MS, &err) == 0, err.text);
    end_of(request, closes ? -ECANCELED : -ESHUTDOWN);
    if (!closes)
        CHECK(weft_connection_close(connection, WAIT_MS, &err) == 0, err.text);
}

static void do_it_all(int client, struct weft_endpoint *endpoint, struct weft_peer *peer)
{
    struct weft_error err = {0};
    for (int round = 0; round < 2; round++) { /* either side opens, asks, and closes once */
        int first = client == (round == 0);
        int result = first ? weft_connection_open(endpoint, peer, 7, WAIT_MS, &connection, &err)
                           : weft_connection_accept(endpoint, peer, 7, WAIT_MS, &connection, &err);
        CHECK(result == 0, err.text);
        messages();
        many_messages();
        cancelled();
        one_sided(first, peer);
        close_one(first);
    }
}

static struct weft_peer *find_peer(int client, const char *address)
{
    struct weft_peer *peer;
    struct weft_error err = {0};
    if (client) {
        CHECK(weft_connect(context, address, WAIT_MS, &peer, &err) == 0, err.text);
        return peer;
    }
    CHECK(weft_listen(context, "127.0.0.1:0", &err) == 0, err.text);
    printf("port %d\n", weft_listen_port(context));
    fflush(stdout);
    CHECK(weft_accept(context, WAIT_MS, &peer, &err) == 0, err.text);
    return peer;
}

int main(int argc, char **argv)
{
    int client = argc > 2 && strcmp(argv[1], "connect") == 0;
    struct weft_config *config;
    struct weft_endpoint *endpoint;
    struct weft_error err = {0};
    CHECK(argc > 1 && (client || strcmp(argv[1], "listen") == 0), "usage: see the source");
    CHECK(weft_config_create(&config, &err) == 0, err.text);
    for (int i = client ? 3 : 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        CHECK(value != NULL, argv[i]);
        *value++ = '\0';
        CHECK(weft_config_set(config, argv[i], value, &err) == 0, err.text);
    }
    CHECK(weft_context_create(config, &context, &err) == 0, err.text);
    weft_config_destroy(config);
    mine = calloc(1, REGION);
    region = calloc(1, REGION);
    CHECK(mine != NULL && region != NULL, "memory");
    CHECK(weft_register(context, region, REGION, &registration, &err) == 0, err.text);
    CHECK(weft_endpoint_create(context, 7, &endpoint, &err) == 0, err.text);
    struct weft_peer *peer = find_peer(client, client ? argv[2] : NULL);
    do_it_all(client, endpoint, peer);
    int result = weft_peer_close(peer, WAIT_MS, &err);
    CHECK(result == 0 || result == -ESHUTDOWN, err.text); /* the other side may be first */
    weft_deregister(registration);
    weft_context_destroy(context);
    free(mine);
    free(region);
    printf("done\n");
    return EXIT_SUCCESS;
}
