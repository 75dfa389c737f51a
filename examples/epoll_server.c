/*
 * A server for many clients in one thread, which never waits but in epoll_wait(): every message of a client goes back
 * to it, with the same tag. Clients may come, go, die and stall; none waits for another. WEFT_PEERS says how many may
 * be there at a time; one that has died counts for some seconds more.
 *
 *     epoll_server PORT      PORT 0: the kernel chooses one, which is printed
 *
 * Three descriptors are in the epoll set: what arrives unasked (weft_event_fd), what was asked for and has ended
 * (weft_completion_fd), and signals. Ctrl-C ends the server in an orderly way. The exit status is then 0.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "weft.h"

#define AT_ONCE 64
#define PATIENCE_MS 10000 /* for an answer that its client does not take, and for a client to say goodbye */
#define FIRST_BYTES 4096  /* room for a message; it grows with what comes */
#define MOST_BYTES (64u << 20)

/* A peer, until it is lost and its last line is closed. */
struct client {
    struct client *next;
    struct weft_peer *peer;
    int lines, lost;
};

/* One connection of a client. One request of it is under way: a receive, or the send of the answer. */
struct line {
    struct line *next, **place; /* in the list of all lines, and what points to it there */
    struct client *client;
    struct weft_connection *connection;
    unsigned char *bytes; /* while the request is under way they belong to the library */
    uint64_t room;
    int answering; /* 0: the request is a receive; 1: a send */
};

static struct server {
    const char *name; /* of the program */
    struct weft_context *context;
    struct weft_endpoint *endpoint;
    struct weft_queue *queue;
    struct client *clients;
    struct line *lines;
    uint64_t answered;
} server;

static int fail(const char *what, int result, const struct weft_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", server.name, what, err && err->text[0] ? err->text : strerror(-result));
    return result;
}

/* --- a client and its lines --- */

/* Closing takes as long as the client does. These requests have no user_data, and nobody waits for them. */
static struct weft_options closing(void)
{
    return (struct weft_options){.queue = server.queue, .timeout_ms = PATIENCE_MS};
}

/* A peer's handle ends those of its connections: it is closed after them. */
static void forget_if_gone(struct client *client)
{
    struct weft_options options = closing();
    struct weft_request *request;
    struct client **link = &server.clients;
    if (!client->lost || client->lines > 0)
        return;
    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    weft_peer_close_start(client->peer, &options, &request, NULL);
    free(client);
}

/* Nothing of the line is under way. */
static void hang_up(struct line *line, const char *why)
{
    struct weft_options options = closing();
    struct weft_request *request;
    if (why)
        fprintf(stderr, "%s: a connection of %s is closed: %s\n", server.name, weft_peer_name(line->client->peer), why);
    weft_connection_close_start(line->connection, &options, &request, NULL);
    line->client->lines--;
    forget_if_gone(line->client);
    *line->place = line->next;
    if (line->next)
        line->next->place = line->place;
    free(line->bytes);
    free(line);
}

static void listen_on(struct line *line)
{
    struct weft_options options = {.queue = server.queue, .user_data = line, .flags = WEFT_ANY_TAG};
    struct weft_request *request;
    line->answering = 0;
    int result = weft_recv(line->connection, line->bytes, line->room, 0, &options, &request);
    if (result < 0) /* -EAGAIN would mean: more requests are under way than the setting `requests` allows */
        hang_up(line, result == -ESHUTDOWN ? NULL : strerror(-result));
}

static void answer(struct line *line, uint64_t bytes, uint64_t tag)
{
    struct weft_options options = {.queue = server.queue, .user_data = line, .timeout_ms = PATIENCE_MS};
    struct weft_request *request;
    line->answering = 1;
    int result = weft_send(line->connection, line->bytes, bytes, tag, &options, &request);
    if (result < 0)
        hang_up(line, result == -ESHUTDOWN ? NULL : strerror(-result));
}

/* The message is larger than the room for it. It is kept: the next receive that is large enough gets it. */
static void make_room(struct line *line, uint64_t bytes)
{
    unsigned char *more = bytes <= MOST_BYTES ? realloc(line->bytes, bytes) : NULL;
    if (!more) {
        hang_up(line, "a message is too large for this server");
        return;
    }
    line->bytes = more;
    line->room = bytes;
    listen_on(line);
}

static void ended(const struct weft_completion *completion)
{
    struct line *line = completion->user_data;
    if (!line)
        return; /* a close */
    server.answered += completion->status == 0 && line->answering;
    if (completion->status == -EMSGSIZE && !line->answering)
        make_room(line, completion->bytes);
    else if (completion->status == -ESHUTDOWN) /* the client has closed: no news */
        hang_up(line, NULL);
    else if (completion->status < 0)
        hang_up(line, completion->text);
    else if (line->answering)
        listen_on(line);
    else
        answer(line, completion->bytes, completion->tag);
}

/* Takes some of what has ended; 0: there was nothing. */
static int take_completions(void)
{
    struct weft_completion completions[AT_ONCE];
    int count = weft_queue_poll(server.queue, completions, AT_ONCE);
    for (int i = 0; i < count; i++)
        ended(&completions[i]);
    return count;
}

/* --- what arrives unasked --- */

static struct client *client_of(const struct weft_peer *peer)
{
    struct client *client = server.clients;
    while (client->peer != peer)
        client = client->next;
    return client;
}

static void welcome(struct weft_peer *peer)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        exit(fail("a client", -ENOMEM, NULL));
    *client = (struct client){.next = server.clients, .peer = peer};
    server.clients = client;
}

static void connected(struct client *client, struct weft_connection *connection)
{
    struct line *line = calloc(1, sizeof *line);
    unsigned char *bytes = malloc(FIRST_BYTES);
    if (!line || !bytes)
        exit(fail("a connection", -ENOMEM, NULL));
    *line = (struct line){.next = server.lines,
                          .place = &server.lines,
                          .client = client,
                          .connection = connection,
                          .bytes = bytes,
                          .room = FIRST_BYTES};
    if (line->next)
        line->next->place = &line->next;
    server.lines = line;
    client->lines++;
    listen_on(line);
}

/* Takes some of it; 0: there was nothing. */
static int take_events(void)
{
    struct weft_event events[AT_ONCE];
    int count = weft_event_poll(server.context, events, AT_ONCE);
    for (int i = 0; i < count; i++) {
        if (events[i].kind == WEFT_EVENT_PEER)
            welcome(events[i].peer);
        if (events[i].kind == WEFT_EVENT_CONNECTION)
            connected(client_of(events[i].peer), events[i].connection);
        if (events[i].kind == WEFT_EVENT_LOST) { /* its requests end, too: they close the lines */
            client_of(events[i].peer)->lost = 1;
            forget_if_gone(client_of(events[i].peer));
        }
    }
    return count;
}

/* --- the loop --- */

static int watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return fd < 0 ? fd : epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
}

/*
 * Sleeps only after both were found empty. Until then it looks at the signals between two batches: with many clients
 * something may always have ended, and nobody could stop a server that looked for the last of it first.
 */
static int run(int signals)
{
    int set = epoll_create1(EPOLL_CLOEXEC), taken = 0; /* in the turn before */
    if (set < 0 || watch(set, weft_event_fd(server.context)) < 0 || watch(set, signals) < 0 ||
        watch(set, weft_completion_fd(server.queue)) < 0)
        return fail("epoll", -errno, NULL);
    for (;;) {
        struct epoll_event events[3];
        int count = epoll_wait(set, events, 3, taken > 0 ? 0 : -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.fd == signals)
                return close(set);
        taken = take_events();
        taken += take_completions();
    }
}

/* What clients that were still there have left. */
static void free_all(void)
{
    for (struct line *line = server.lines, *next; line; line = next) {
        next = line->next;
        free(line->bytes);
        free(line);
    }
    for (struct client *client = server.clients, *next; client; client = next) {
        next = client->next;
        free(client);
    }
}

/* SIGINT and SIGTERM as a descriptor; blocked before there is a context, so that its threads have them blocked, too. */
static int open_signals(void)
{
    sigset_t caught;
    sigemptyset(&caught);
    sigaddset(&caught, SIGINT);
    sigaddset(&caught, SIGTERM);
    sigprocmask(SIG_BLOCK, &caught, NULL);
    return signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    server.name = argv[0];
    if (argc != 2) {
        fprintf(stderr, "usage: %s PORT\n", argv[0]);
        return 2;
    }
    int signals = open_signals();
    int result = weft_context_create(NULL, &server.context, &err); /* settings: the defaults and the environment */
    if (result == 0)
        result = weft_endpoint_create(server.context, 0, &server.endpoint, &err);
    if (result == 0)
        result = weft_queue_create(server.context, &server.queue, &err);
    if (result == 0)
        result = weft_listen(server.context, argv[1], &err);
    if (result < 0) {
        fail("cannot start", result, &err);
    } else {
        printf("port %d\n", weft_listen_port(server.context));
        fflush(stdout);
        result = run(signals);
        printf("%llu messages went back\n", (unsigned long long)server.answered);
    }
    weft_context_destroy(server.context); /* ends every session; a line's memory is not touched any more */
    free_all();
    return result < 0 ? 1 : 0;
}
