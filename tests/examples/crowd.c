/*
 * crowd.c: many clients of examples/epoll_server.c in one thread: crowd ADDRESS CLIENTS. All connect at once. Every
 * fourth stalls: it sends and never takes an answer. The others send messages of several sizes, one after the other,
 * and compare what comes back; then they close. The stalled ones are there until the last of the others is done. Exit
 * status 0: every answer was right, nobody waited for another.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

#define AT_ONCE 64
#define CLIENTS_MAX 1024
#define TRIPS 12
#define STALLED_SENDS 40
#define LARGEST (200u << 10)
#define PATIENCE_MS 60000

enum step { CONNECTING, OPENING, TALKING, STALLED, CLOSING, GONE };

struct client {
    enum step step;
    struct weft_peer *peer;
    struct weft_connection *connection;
    int trips;
    unsigned char *out, *in;
};

static struct weft_context *context;
static struct weft_endpoint *endpoint;
static struct weft_queue *queue;
static struct client clients[CLIENTS_MAX];
static int count, talkers, stallers, talking;

static void check(int result, const char *what, const struct weft_error *err)
{
    if (result >= 0)
        return;
    fprintf(stderr, "crowd: %s: %s\n", what, err && err->text[0] ? err->text : strerror(-result));
    exit(1);
}

static struct weft_options about(struct client *client)
{
    return (struct weft_options){.queue = queue, .user_data = client, .timeout_ms = PATIENCE_MS};
}

/* Small, of one chunk, larger than the server's first room, and large; empty, too. */
static uint64_t size_of(int trip)
{
    static const uint64_t sizes[] = {8, 0, 1, 5000, 64, LARGEST};
    return sizes[trip % (int)(sizeof sizes / sizeof sizes[0])];
}

static void talk(struct client *client)
{
    struct weft_options options = about(client);
    struct weft_request *request;
    uint64_t bytes = size_of(client->trips);
    memset(client->out, client->trips + 1 + (int)(client - clients), bytes);
    memset(client->in, 0, LARGEST);
    check(weft_recv(client->connection, client->in, LARGEST, (uint64_t)client->trips, &options, &request), "receive",
          NULL);
    options.user_data = NULL; /* what comes back says that it has arrived */
    check(weft_send(client->connection, client->out, bytes, (uint64_t)client->trips, &options, &request), "send", NULL);
}

static void stall(struct client *client)
{
    struct weft_options options = {.queue = queue}; /* they end with the context at the latest */
    struct weft_request *request;
    client->step = STALLED;
    stallers++;
    for (int i = 0; i < STALLED_SENDS; i++)
        check(weft_send(client->connection, client->out, LARGEST, 0, &options, &request), "send", NULL);
}

static void answered(struct client *client, const struct weft_completion *completion)
{
    uint64_t bytes = size_of(client->trips);
    if (completion->bytes != bytes || memcmp(client->out, client->in, bytes) != 0) {
        fprintf(stderr, "crowd: answer %d of client %d is wrong\n", client->trips, (int)(client - clients));
        exit(1);
    }
    if (!talking) { /* who plays a victim is killed from here on */
        talking = 1;
        printf("talking\n");
        fflush(stdout);
    }
    if (++client->trips < TRIPS) {
        talk(client);
        return;
    }
    struct weft_options options = about(client);
    struct weft_request *request;
    struct weft_error err = {0};
    client->step = CLOSING;
    check(weft_peer_close_start(client->peer, &options, &request, &err), "close", &err);
}

static void ended(const struct weft_completion *completion)
{
    struct client *client = completion->user_data;
    struct weft_options options = about(client);
    struct weft_request *request;
    struct weft_error err = {0};
    if (!client)
        return;
    check(completion->status, completion->text, NULL);
    switch (client->step) {
    case CONNECTING:
        client->step = OPENING;
        client->peer = completion->peer;
        check(weft_connection_open_start(endpoint, client->peer, 0, &options, &request, &err), "open", &err);
        break;
    case OPENING:
        client->connection = completion->connection;
        client->step = TALKING;
        if ((client - clients) % 4 == 3)
            stall(client);
        else
            talk(client);
        break;
    case TALKING:
        answered(client, completion);
        break;
    case CLOSING:
        client->step = GONE;
        talkers++;
        break;
    case STALLED:
    case GONE:
        break;
    }
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    count = argc == 3 ? atoi(argv[2]) : 0;
    if (count < 1 || count > CLIENTS_MAX) {
        fprintf(stderr, "usage: %s ADDRESS CLIENTS\n", argv[0]);
        return 2;
    }
    check(weft_context_create(NULL, &context, &err), "context", &err);
    check(weft_endpoint_create(context, 1, &endpoint, &err), "endpoint", &err);
    check(weft_queue_create(context, &queue, &err), "queue", &err);
    for (int i = 0; i < count; i++) {
        struct weft_options options = about(&clients[i]);
        struct weft_request *request;
        clients[i].out = calloc(2, LARGEST);
        clients[i].in = clients[i].out + LARGEST;
        check(weft_connect_start(context, argv[1], &options, &request, &err), "connect", &err);
    }
    struct pollfd event = {.fd = weft_completion_fd(queue), .events = POLLIN};
    while (talkers < count - count / 4) {
        struct weft_completion completions[AT_ONCE];
        int ends = weft_queue_poll(queue, completions, AT_ONCE);
        for (int i = 0; i < ends; i++)
            ended(&completions[i]);
        if (ends == 0 && poll(&event, 1, PATIENCE_MS) == 0) {
            fprintf(stderr, "crowd: %d of %d have been served, and nothing happens any more\n", talkers, count);
            return 1;
        }
    }
    printf("%d clients served, %d stalled meanwhile\n", talkers, stallers);
    fflush(stdout);
    weft_context_destroy(context);
    return 0;
}
