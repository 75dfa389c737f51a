/*
 * loop_cost.c: what an event loop pays for Weft: half the round trip of 8 bytes between two processes that sleep in
 * epoll_wait(), once over a plain TCP socket in the set and once over a queue whose descriptor is in the set.
 *
 * The server, a child process, has one loop for both, and a number of clients of each kind; in a round one of them
 * speaks, and the others are there. The two kinds take turns, round by round, so that whatever else runs on the machine
 * meets both alike. The figures: the median of the rounds' medians, for each kind, and the median, least and largest of
 * the rounds' ratios.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include <signal.h>

#include "weft.h"

#define PATIENCE_MS 30000
#define CLIENTS_MAX 1024
#define ROUNDS_MAX 101
#define TRIPS 2000 /* in a round, of each kind */
#define EVENTS 64
#define QUEUE_KEY UINT64_MAX /* epoll_data of the queue's descriptor; others are plain sockets */

static struct {
    int clients, rounds, trips;
} options = {.clients = 1, .rounds = 11, .trips = TRIPS};

static void die(const char *what)
{
    fprintf(stderr, "loop_cost: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void check(int result, const struct weft_error *err, const char *what)
{
    if (result >= 0)
        return;
    fprintf(stderr, "loop_cost: %s: %s\n", what, err && err->text[0] ? err->text : strerror(-result));
    exit(1);
}

static struct weft_context *create_context(void)
{
    struct weft_error err = {0};
    struct weft_config *config;
    struct weft_context *context;
    char peers[16];
    snprintf(peers, sizeof peers, "%d", options.clients + 1);
    check(weft_config_create(&config, &err), &err, "settings");
    check(weft_config_set(config, "peers", peers, &err), &err, "settings");
    check(weft_config_set(config, "rails", "lo", &err), &err, "settings");
    check(weft_context_create(config, &context, &err), &err, "context");
    weft_config_destroy(config);
    return context;
}

static void watch(int set, int fd, uint64_t key)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};
    if (epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0)
        die("epoll_ctl");
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void no_delay(int fd)
{
    int on = 1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
        die("TCP_NODELAY");
}

/* --- a client's place at either side --- */

struct place {
    struct weft_connection *connection;
    uint64_t word; /* what comes in, and goes back */
};

/* Posts the receive of the next message. Its completion has the place as `user_data`. */
static void post_receive(struct place *place, struct weft_queue *queue)
{
    struct weft_options how = {.queue = queue, .user_data = place};
    struct weft_request *request;
    check(weft_recv(place->connection, &place->word, sizeof place->word, 0, &how, &request), NULL, "weft_recv");
}

/* A send of 8 bytes is copied: its completion tells nothing new. */
static void post_send(const struct place *place, const uint64_t *word, struct weft_queue *queue)
{
    struct weft_options how = {.queue = queue};
    struct weft_request *request;
    check(weft_send(place->connection, word, sizeof *word, 0, &how, &request), NULL, "weft_send");
}

/* --- the server --- */

static void answer_queue(struct weft_queue *queue)
{
    struct weft_completion completions[EVENTS];
    int count;
    while ((count = weft_queue_poll(queue, completions, EVENTS)) > 0)
        for (int i = 0; i < count; i++) {
            struct place *place = completions[i].user_data;
            if (completions[i].status < 0)
                exit(0); /* the client has ended */
            if (!place)
                continue;
            uint64_t word = place->word;
            post_receive(place, queue);
            post_send(place, &word, queue);
        }
}

static void answer_socket(int fd)
{
    uint64_t word;
    ssize_t count = read(fd, &word, sizeof word);
    if (count == 0)
        exit(0);
    if (count == (ssize_t)sizeof word && write(fd, &word, sizeof word) != (ssize_t)sizeof word)
        die("write");
}

static void serve(int listener, int port_pipe)
{
    struct weft_error err = {0};
    struct weft_context *context = create_context();
    struct weft_endpoint *endpoint;
    struct weft_queue *queue;
    static struct place places[CLIENTS_MAX];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    check(weft_endpoint_create(context, 0, &endpoint, &err), &err, "server");
    check(weft_queue_create(context, &queue, &err), &err, "server");
    check(weft_listen(context, "127.0.0.1:0", &err), &err, "server");
    int port = weft_listen_port(context);
    if (write(port_pipe, &port, sizeof port) != (ssize_t)sizeof port)
        die("write");
    int set = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < options.clients; i++) {
        struct weft_peer *peer;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            die("accept");
        no_delay(fd);
        watch(set, fd, (uint64_t)fd);
        check(weft_accept(context, PATIENCE_MS, &peer, &err), &err, "weft_accept");
        check(weft_connection_accept(endpoint, peer, WEFT_ANY_ENDPOINT, PATIENCE_MS, &places[i].connection, &err), &err,
              "weft_connection_accept");
        post_receive(&places[i], queue);
    }
    watch(set, weft_completion_fd(queue), QUEUE_KEY);
    for (;;) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(set, events, EVENTS, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == QUEUE_KEY)
                answer_queue(queue);
            else
                answer_socket((int)events[i].data.u64);
        }
    }
}

/* --- the client --- */

struct client {
    struct weft_queue *queue;
    struct place places[CLIENTS_MAX];
    int sockets[CLIENTS_MAX];
    int queue_set, socket_set[CLIENTS_MAX];
    int speaker; /* in this round */
};

static void connect_all(struct client *client, const struct sockaddr_in *plain, int port)
{
    struct weft_error err = {0};
    struct weft_context *context = create_context();
    struct weft_endpoint *endpoint;
    char address[40];
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    check(weft_endpoint_create(context, 1, &endpoint, &err), &err, "client");
    check(weft_queue_create(context, &client->queue, &err), &err, "client");
    for (int i = 0; i < options.clients; i++) {
        struct weft_peer *peer;
        client->sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client->sockets[i] < 0 || connect(client->sockets[i], (const struct sockaddr *)plain, sizeof *plain) < 0)
            die("connect");
        no_delay(client->sockets[i]);
        client->socket_set[i] = epoll_create1(EPOLL_CLOEXEC);
        watch(client->socket_set[i], client->sockets[i], 0);
        check(weft_connect(context, address, PATIENCE_MS, &peer, &err), &err, "weft_connect");
        check(weft_connection_open(endpoint, peer, 0, PATIENCE_MS, &client->places[i].connection, &err), &err,
              "weft_connection_open");
    }
    client->queue_set = epoll_create1(EPOLL_CLOEXEC);
    watch(client->queue_set, weft_completion_fd(client->queue), QUEUE_KEY);
}

static void plain_trip(struct client *client, int who, uint64_t word)
{
    struct epoll_event event;
    uint64_t back = 0;
    if (write(client->sockets[who], &word, sizeof word) != (ssize_t)sizeof word)
        die("write");
    while (epoll_wait(client->socket_set[who], &event, 1, -1) < 1)
        continue;
    if (read(client->sockets[who], &back, sizeof back) != (ssize_t)sizeof back || back != word)
        die("a plain answer is wrong");
}

/* Takes completions until the receive of the place has ended. */
static void weft_trip(struct client *client, int who, uint64_t word)
{
    struct place *place = &client->places[who];
    struct weft_completion completions[EVENTS];
    post_receive(place, client->queue);
    post_send(place, &word, client->queue);
    for (bool here = false; !here;) {
        struct epoll_event event;
        int count = weft_queue_poll(client->queue, completions, EVENTS);
        for (int i = 0; i < count; i++) {
            check(completions[i].status, NULL, completions[i].text);
            here |= completions[i].user_data == place;
        }
        if (count == 0 && epoll_wait(client->queue_set, &event, 1, -1) < 0 && errno != EINTR)
            die("epoll_wait");
    }
    if (place->word != word) {
        errno = EPROTO;
        die("an answer is wrong");
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The median of half the round trips of one round, in microseconds. */
static double round_of(struct client *client, void (*trip)(struct client *, int, uint64_t))
{
    static double halves[TRIPS];
    for (int i = 0; i < options.trips; i++) {
        int64_t begun = now_ns();
        trip(client, client->speaker, (uint64_t)begun);
        halves[i] = (double)(now_ns() - begun) / 2000;
    }
    return median(halves, options.trips);
}

static void measure(struct client *client)
{
    double plain[ROUNDS_MAX], weft[ROUNDS_MAX], ratio[ROUNDS_MAX];
    round_of(client, plain_trip); /* to warm up */
    round_of(client, weft_trip);
    for (int i = 0; i < options.rounds; i++) {
        bool first = i % 2;
        client->speaker = i % options.clients;
        if (first)
            weft[i] = round_of(client, weft_trip);
        plain[i] = round_of(client, plain_trip);
        if (!first)
            weft[i] = round_of(client, weft_trip);
        ratio[i] = weft[i] / plain[i];
    }
    double p = median(plain, options.rounds), w = median(weft, options.rounds), r = median(ratio, options.rounds);
    printf(
        "half the round trip of 8 bytes, %d client%s, %d rounds of %d: plain %.1f us, weft %.1f us, ratio %.2f [%.2f, "
        "%.2f]\n",
        options.clients, options.clients > 1 ? "s" : "", options.rounds, options.trips, p, w, r, ratio[0],
        ratio[options.rounds - 1]);
}

static int number(const char *text, int most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end || value < 1 || value > most) {
        fprintf(stderr, "loop_cost: '%s' is no number from 1 to %d\n", text, most);
        exit(2);
    }
    return (int)value;
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--clients") == 0)
            options.clients = number(value, CLIENTS_MAX);
        else if (strcmp(argv[i], "--rounds") == 0)
            options.rounds = number(value, ROUNDS_MAX);
        else if (strcmp(argv[i], "--trips") == 0)
            options.trips = number(value, TRIPS);
        else {
            fprintf(stderr, "usage: loop_cost [--clients N] [--rounds N] [--trips N]\n");
            exit(2);
        }
    }
}

int main(int argc, char **argv)
{
    static struct client client;
    struct sockaddr_in plain = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof plain;
    int pipe_fds[2], port;
    struct rlimit files;
    read_options(argc, argv);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* where it is too low, connecting says so */
    }
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&plain, sizeof plain) < 0 || listen(listener, 512) < 0 ||
        getsockname(listener, (struct sockaddr *)&plain, &length) < 0 || pipe(pipe_fds) < 0)
        die("listen");
    pid_t child = fork();
    if (child < 0)
        die("fork");
    if (child == 0) {
        close(pipe_fds[0]);
        serve(listener, pipe_fds[1]);
    }
    close(listener);
    close(pipe_fds[1]);
    if (read(pipe_fds[0], &port, sizeof port) != (ssize_t)sizeof port)
        die("the server has ended");
    connect_all(&client, &plain, port);
    measure(&client);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
