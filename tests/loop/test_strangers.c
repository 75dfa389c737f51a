/* test_strangers.c: who is let in, who is refused and with what words; and that nobody else disturbs anything. */
#include "loop_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct late_server {
    struct loop_node node;
    int port;
};

static void *listen_late(void *arg)
{
    struct late_server *server = arg;
    struct weft_error err = {0};
    char address[32];

    loop_sleep_ms(500);
    loop_address(address, sizeof(address), server->port);
    LOOP_CALL(weft_listen(server->node.context, address, &err), &err);
    LOOP_CHECK(weft_listen_port(server->node.context) == server->port, "port");
    return NULL;
}

static void client_first_server_later(void)
{
    struct late_server server;
    struct loop_node client;
    pthread_t thread;
    int held = loop_hold_port(&server.port);

    loop_node_start(&server.node, NULL, 2);
    loop_node_start(&client, NULL, 2);
    LOOP_CHECK(weft_listen_port(server.node.context) == -ENOTCONN, "a port before weft_listen()");
    LOOP_CHECK(pthread_create(&thread, NULL, listen_late, &server) == 0, "pthread_create");
    loop_node_connect(&client, server.port);
    pthread_join(thread, NULL);
    loop_node_accept(&server.node);
    loop_node_open(&client);
    loop_node_take(&server.node);
    loop_exchange(client.connection, server.node.connection, 70000, 1);
    loop_node_stop(&client);
    loop_node_stop(&server.node);
    close(held);
}

static void nobody_there(void)
{
    struct loop_node node;
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};
    char address[32];
    int64_t start = loop_now_ms();
    int port, held = loop_hold_port(&port);

    loop_node_start(&node, NULL, 1);
    loop_address(address, sizeof(address), port);
    int rc = weft_connect(node.context, address, 300, &peer, &err);
    int64_t took = loop_now_ms() - start;
    LOOP_CHECK(rc == -ETIMEDOUT && err.code == rc, "weft_connect: %d %s", rc, err.text);
    LOOP_CHECK(strstr(err.text, address), "'%s' does not name %s", err.text, address);
    LOOP_CHECK(took >= 250 && took < 3000 * LOOP_SLOWER, "took %lld ms", (long long)took);
    rc = weft_listen(node.context, "127.0.1.1:0", &err);
    LOOP_CHECK(rc == 0, "weft_listen: %d %s", rc, err.text);
    rc = weft_accept(node.context, 100, &peer, &err);
    LOOP_CHECK(rc == -ETIMEDOUT && err.text[0], "weft_accept: %d %s", rc, err.text);
    LOOP_CHECK(peer == NULL, "an out-parameter was written on failure");
    loop_node_stop(&node);
    close(held);
}

struct listening {
    struct weft_context *context;
    pthread_barrier_t *start;
    int result;
    struct weft_error err;
};

static void *listen_now(void *arg)
{
    struct listening *listening = arg;

    pthread_barrier_wait(listening->start);
    listening->result = weft_listen(listening->context, "127.0.1.1:0", &listening->err);
    return NULL;
}

/* Of two threads one gets the listeners, and the other is told so. */
static void two_listen_at_once(void)
{
    for (int round = 0; round < 20; round++) {
        struct loop_node node;
        struct listening listening[2];
        pthread_barrier_t start;
        pthread_t threads[2];

        loop_node_start(&node, NULL, 1);
        pthread_barrier_init(&start, NULL, 2);
        for (int i = 0; i < 2; i++) {
            listening[i] = (struct listening){.context = node.context, .start = &start};
            LOOP_CHECK(pthread_create(&threads[i], NULL, listen_now, &listening[i]) == 0, "pthread_create");
        }
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&start);
        int first = listening[0].result, second = listening[1].result;
        LOOP_CHECK((first == 0 && second == -EALREADY) || (first == -EALREADY && second == 0), "%d and %d", first,
                   second);
        LOOP_CHECK(weft_listen_port(node.context) > 0, "no port");
        const char *why = listening[first ? 0 : 1].err.text;
        LOOP_CHECK(strstr(why, "listen") && !strstr(why, "port 0"), "the one too many is told '%s'", why);
        loop_node_stop(&node);
    }
}

/* Something listens there, takes the connection and never says a word. */
static void silent_server(void)
{
    struct loop_node node;
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};
    char address[32];
    int port, fd = loop_hold_port(&port);

    LOOP_CHECK(listen(fd, 100) == 0, "%s", strerror(errno));
    loop_node_start(&node, NULL, 1);
    loop_address(address, sizeof(address), port);
    int64_t start = loop_now_ms();
    int rc = weft_connect(node.context, address, 500, &peer, &err);
    int64_t took = loop_now_ms() - start;
    LOOP_CHECK(rc == -ETIMEDOUT && err.text[0], "weft_connect: %d %s", rc, err.text);
    LOOP_CHECK(took < 4000 * LOOP_SLOWER, "took %lld ms", (long long)took);
    close(fd);
    loop_node_stop(&node);
}

/* --- whom a crowd pushes out --- */

#define PUSHED_OUT 3

/* Something that has the port, and shows everybody out: so many, or all who come. */
struct crowded {
    struct late_server server;
    int held, listener, callers;
};

static void crowded_begin(struct crowded *crowded)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int one = 1;

    crowded->held = loop_hold_port(&crowded->server.port);
    inet_pton(AF_INET, "127.0.1.1", &at.sin_addr);
    at.sin_port = htons((uint16_t)crowded->server.port);
    crowded->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(crowded->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    LOOP_CHECK(bind(crowded->listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(crowded->listener, 100) == 0,
               "%s", strerror(errno));
}

/* In turn having read what the caller said, which ends the stream, and not, which may reset the connection. */
static bool show_one_out(struct crowded *crowded)
{
    char said[4096];
    int fd = accept(crowded->listener, NULL, NULL);

    if (fd < 0)
        return false;
    if (crowded->callers++ % 2 == 0)
        LOOP_CHECK(recv(fd, said, sizeof(said), 0) > 0, "a caller without a word");
    close(fd);
    return true;
}

static void *show_some_out(void *arg)
{
    struct crowded *crowded = arg;
    struct weft_error err = {0};
    char address[32];

    while (crowded->callers < PUSHED_OUT)
        LOOP_CHECK(show_one_out(crowded), "%s", strerror(errno));
    close(crowded->listener);
    loop_address(address, sizeof(address), crowded->server.port);
    LOOP_CALL(weft_listen(crowded->server.node.context, address, &err), &err);
    return NULL;
}

static void *show_all_out(void *arg)
{
    while (show_one_out(arg)) {
    }
    return NULL;
}

static void pushed_out_and_let_in(void)
{
    struct crowded crowded = {0};
    struct loop_node client;
    pthread_t thread;

    loop_needs_kernel("a listener of its own");
    loop_node_start(&crowded.server.node, NULL, 1);
    loop_node_start(&client, NULL, 1);
    crowded_begin(&crowded);
    LOOP_CHECK(pthread_create(&thread, NULL, show_some_out, &crowded) == 0, "pthread_create");
    loop_node_connect(&client, crowded.server.port);
    pthread_join(thread, NULL);
    LOOP_CHECK(crowded.callers == PUSHED_OUT, "%d callers", crowded.callers);
    loop_node_accept(&crowded.server.node);
    loop_node_open(&client);
    loop_node_take(&crowded.server.node);
    loop_exchange(client.connection, crowded.server.node.connection, 70000, 1);
    loop_node_stop(&client);
    loop_node_stop(&crowded.server.node);
    close(crowded.held);
}

/* Nobody tries for ever where nobody ever gets in: the error says what happened, long before the deadline. */
static void pushed_out_for_good(void)
{
    struct crowded crowded = {0};
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};
    struct loop_node client;
    pthread_t thread;
    char address[32];

    loop_needs_kernel("a listener of its own");
    loop_node_start(&client, NULL, 1);
    crowded_begin(&crowded);
    LOOP_CHECK(pthread_create(&thread, NULL, show_all_out, &crowded) == 0, "pthread_create");
    loop_address(address, sizeof(address), crowded.server.port);
    int rc = weft_connect(client.context, address, -1, &peer, &err);
    LOOP_CHECK(rc == -ECONNRESET, "weft_connect: %d %s", rc, err.text);
    LOOP_CHECK(strstr(err.text, "closed the connection before the set-up was complete"), "%s", err.text);
    shutdown(crowded.listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    LOOP_CHECK(crowded.callers > PUSHED_OUT, "%d callers", crowded.callers);
    close(crowded.listener);
    close(crowded.held);
    loop_node_stop(&client);
}

/* A full house refuses at once and says why; when somebody left there is room again. */
static void one_peer_too_many(void)
{
    struct loop_node second;
    struct loop_pair pair;
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};
    char address[32];

    loop_pair_create(&pair, "", "peers=1", 2);
    loop_node_start(&second, NULL, 2);
    int port = weft_listen_port(pair.node[1].context);
    loop_address(address, sizeof(address), port);
    int64_t start = loop_now_ms();
    int rc = weft_connect(second.context, address, LOOP_WAIT_MS, &peer, &err);
    LOOP_CHECK(rc == -ECONNREFUSED && err.text[0], "weft_connect: %d %s", rc, err.text);
    LOOP_CHECK(strstr(err.text, "peers"), "'%s' does not name the setting", err.text);
    LOOP_CHECK(loop_now_ms() - start < 3000 * LOOP_SLOWER, "took %lld ms", (long long)(loop_now_ms() - start));
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    for (int side = 0; side < 2; side++) {
        weft_connection_close(pair.node[side].connection, 2000, NULL);
        pair.node[side].connection = NULL;
    }
    for (int side = 0; side < 2; side++) {
        weft_peer_close(pair.node[side].peer, 2000, NULL);
        pair.node[side].peer = NULL;
    }
    loop_note("after the first has left");
    loop_node_connect(&second, port);
    loop_node_accept(&pair.node[1]);
    loop_node_open(&second);
    loop_node_take(&pair.node[1]);
    loop_exchange(second.connection, pair.node[1].connection, 70000, 1);
    loop_node_stop(&second);
    loop_pair_destroy(&pair);
}

static void addresses_that_do_not_work(void)
{
    static const struct {
        const char *address, *named;
        int code;
    } rows[] = {
        {"127.0.1.1:99999", "99999", -EINVAL}, {"127.0.1.1:", "127.0.1.1:", -EINVAL},
        {"127.0.1.1:12x", "12x", -EINVAL},     {"70000", "70000", -EINVAL},
        {"[::1:5", "[::1", -EINVAL},           {"203.0.113.77:0", "203.0.113.77", -EADDRNOTAVAIL},
    };
    struct loop_node node, other;
    struct weft_error err = {0};
    char address[32], number[16];

    loop_node_start(&node, NULL, 1);
    loop_node_start(&other, NULL, 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        loop_note("listen on '%s'", rows[i].address);
        int rc = weft_listen(node.context, rows[i].address, &err);
        LOOP_CHECK(rc == rows[i].code && err.code == rc, "%d %s", rc, err.text);
        LOOP_CHECK(strstr(err.text, rows[i].named) && err.text[0], "'%s' does not name it", err.text);
    }
    int port = loop_node_listen(&node);
    LOOP_CHECK(weft_listen(node.context, "127.0.1.1:0", &err) == -EALREADY && err.text[0], "twice: %s", err.text);
    loop_address(address, sizeof(address), port);
    snprintf(number, sizeof(number), "%d", port);
    int rc = weft_listen(other.context, address, &err);
    LOOP_CHECK(rc == -EADDRINUSE && strstr(err.text, number), "a port in use: %d '%s'", rc, err.text);
    loop_node_listen(&other);
    loop_node_stop(&node);
    loop_node_stop(&other);
}

static void rails_and_settings_that_do_not_exist(void)
{
    struct weft_config *config = loop_config(NULL, 1);
    struct weft_context *context = NULL;
    struct weft_error err = {0};

    LOOP_CHECK(weft_config_set(config, "chanels", "4", &err) == -ENOENT && strstr(err.text, "channels"), "%s",
               err.text);
    LOOP_CHECK(weft_config_set(config, "window", "-1", &err) == -EINVAL && strstr(err.text, "-1"), "%s", err.text);
    LOOP_CHECK(weft_config_set(config, "chunk", "12Q", &err) == -EINVAL && strstr(err.text, "12Q"), "%s", err.text);
    LOOP_CHECK(weft_config_get(config, "chanels") == NULL, "an unknown name has a value");
    LOOP_CHECK(weft_config_is_set(config, "chanels") == -ENOENT, "an unknown name is set, or not");
    for (int i = 0; i < 3; i++) { /* of the program weft */
        static const char *const names[] = {"iters", "idle-timeout", "json_stream"};
        LOOP_CHECK(weft_config_set(config, names[i], "7", &err) == -EINVAL && strstr(err.text, "program weft"),
                   "%s: '%s'", names[i], err.text);
    }
    LOOP_CHECK(weft_config_is_set(config, "chunk") == 0, "chunk is set");
    LOOP_CALL(weft_config_set(config, "chunk", "64K", &err), &err);
    LOOP_CHECK(strcmp(weft_config_get(config, "chunk"), "64K") == 0, "chunk is %s", weft_config_get(config, "chunk"));
    LOOP_CHECK(weft_config_is_set(config, "chunk") == 1, "chunk is not set");
    LOOP_CALL(weft_config_set(config, "rails", "127.0.1.1,203.0.113.9", &err), &err);
    int rc = weft_context_create(config, &context, &err);
    LOOP_CHECK(rc == -ENODEV && strstr(err.text, "203.0.113.9"), "%d '%s'", rc, err.text);
    LOOP_CALL(weft_config_set(config, "rails", "nosuch0", &err), &err);
    rc = weft_context_create(config, &context, &err);
    LOOP_CHECK(rc == -ENODEV && strstr(err.text, "nosuch0"), "%d '%s'", rc, err.text);
    LOOP_CHECK(context == NULL, "an out-parameter was written on failure");
    weft_config_destroy(config);
    weft_context_destroy(NULL);

    /* The environment may be one that the program has, too. */
    setenv("WEFT_ITERS", "7", 1);
    LOOP_CALL(weft_config_create(&config, &err), &err);
    LOOP_CHECK(strcmp(weft_config_get(config, "iters"), "7") == 0, "iters is %s", weft_config_get(config, "iters"));
    LOOP_CHECK(weft_config_is_set(config, "iters") == 1, "what the environment has set is not set");
    weft_config_destroy(config);
    unsetenv("WEFT_ITERS");
}

/* ------------------------------------------------------------------------------------------- garbage */

static int stranger(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    inet_pton(AF_INET, "127.0.1.1", &address.sin_addr);
    LOOP_CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "%s", strerror(errno));
    return fd;
}

static void take_line(void *user, int level, const char *line)
{
    char *lines = user;
    snprintf(lines + strlen(lines), 1024 - strlen(lines), "%d %s\n", level, line);
}

/* What would go to standard error goes to the caller's function: of the settings, and of contexts made from them. */
static void lines_to_the_caller(void)
{
    struct weft_config *config = NULL;
    struct weft_context *context = NULL;
    struct weft_error err = {0};
    char lines[1024] = "";

    setenv("WEFT_CHANELS", "7", 1);
    LOOP_CALL(weft_config_create_logged(take_line, lines, &config, &err), &err);
    unsetenv("WEFT_CHANELS");
    LOOP_CHECK(strstr(lines, "1 unknown variable WEFT_CHANELS: did you mean WEFT_CHANNELS?\n"), "'%s'", lines);
    lines[0] = '\0';
    LOOP_CALL(weft_config_set(config, "rails", "127.0.1.1", &err), &err);
    LOOP_CALL(weft_context_create(config, &context, &err), &err);
    weft_config_destroy(config);
    LOOP_CALL(weft_listen(context, "127.0.1.1:0", &err), &err);
    int fd = stranger(weft_listen_port(context));
    char answer;
    LOOP_CHECK(send(fd, "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL) == 18, "%s", strerror(errno));
    while (recv(fd, &answer, 1, 0) > 0) /* until the context has had enough of it */
        continue;
    close(fd);
    weft_context_destroy(context);
    LOOP_CHECK(strncmp(lines, "1 refused 127.", 14) == 0, "'%s'", lines);
}

/* Says something of kind `what`; the descriptor stays open where the kind is to hang around. */
static int annoy(int port, unsigned what)
{
    static const char *const phrases[] = {"GET / HTTP/1.0\r\n\r\n", "WEFT", "", "\x16\x03\x01\x02"};
    struct linger reset = {.l_onoff = 1};
    unsigned char noise[6000];
    int fd = stranger(port);

    loop_fill(noise, sizeof(noise), what);
    if (what % 5 == 4)
        memset(noise, what % 2 ? 0xFF : 0, sizeof(noise));
    size_t length = (what * 7919u) % sizeof(noise);
    if (what % 3 == 0)
        send(fd, phrases[what % 4], strlen(phrases[what % 4]), MSG_NOSIGNAL);
    else if (what % 7)
        send(fd, noise, length, MSG_NOSIGNAL);
    if (what % 10 == 9)
        return fd;
    if (what % 10 == 8)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    return -1;
}

static void two_hundred_strangers(void)
{
    enum { STRANGERS = 200 };
    int hanging[STRANGERS], fds, count = 0;
    struct loop_pair pair;
    struct loop_node next;
    struct loop_message message;

    loop_pair_create(&pair, "channels=1 window=2 chunk=16K", "channels=1 window=2 chunk=16K connect_timeout=1", 2);
    int port = weft_listen_port(pair.node[1].context);
    fds = loop_fds();
    loop_message_create(&message, 32 * 1024 * 1024 / LOOP_SLOWER, 1);
    message.recv = loop_recv(pair.node[1].connection, message.sink.data, message.sink.size, 1);
    message.send = loop_send(pair.node[0].connection, message.source.data, message.source.size, 1);
    for (unsigned i = 0; i < STRANGERS; i++) {
        int fd = annoy(port, i);
        if (fd >= 0)
            hanging[count++] = fd;
    }
    loop_done(message.recv, 0, message.sink.size);
    loop_done(message.send, 0, message.sink.size);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    LOOP_CHECK(loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer) == 0, "a channel was lost");
    loop_note("a peer among strangers");
    loop_node_start(&next, NULL, 2);
    loop_node_connect(&next, port);
    struct loop_node host = {.context = pair.node[1].context, .endpoint = pair.node[1].endpoint};
    loop_node_accept(&host);
    loop_node_open(&next);
    loop_node_take(&host);
    loop_exchange(next.connection, host.connection, 70000, 1);
    weft_connection_close(next.connection, 2000, NULL);
    weft_connection_close(host.connection, 2000, NULL);
    weft_peer_close(host.peer, 2000, NULL);
    next.connection = NULL;
    loop_node_stop(&next);
    /* The silent ones are shown out after connect_timeout, though they hold their ends open. */
    for (int64_t limit = loop_now_ms() + 4000 * LOOP_SLOWER; loop_fds() > fds + count && loop_now_ms() < limit;)
        loop_sleep_ms(20);
    LOOP_CHECK(loop_fds() <= fds + count, "%d descriptors, expected %d", loop_fds(), fds + count);
    for (int i = 0; i < count; i++)
        close(hanging[i]);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 2);
    loop_pair_destroy(&pair);
}

/* Pages of this process that are in memory. */
static long resident_pages(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    LOOP_CHECK(file && fscanf(file, "%*d %ld", &pages) == 1, "/proc/self/statm");
    fclose(file);
    return pages;
}

/* Standard error, where the library writes its lines, goes to a file and back. */
static int begin_capture(int *saved)
{
    int fd = memfd_create("log", MFD_CLOEXEC);

    *saved = dup(STDERR_FILENO);
    LOOP_CHECK(fd >= 0 && *saved >= 0 && dup2(fd, STDERR_FILENO) >= 0, "%s", strerror(errno));
    return fd;
}

static void end_capture(int fd, int saved, char *text, size_t room)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    ssize_t length = pread(fd, text, room - 1, 0);
    text[length > 0 ? length : 0] = '\0';
    close(fd);
}

/* A scan that does not stop: every caller leaves at once, with a reset, so that no port stays taken. */
static void scan(int port, int callers)
{
    struct linger reset = {.l_onoff = 1};

    for (int i = 0; i < callers; i++) {
        int fd = stranger(port);
        if (i % 2)
            send(fd, "\x16\x03\x01\x02\x00\x01", 6, MSG_NOSIGNAL);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
    }
}

/* The kernel hands over callers for as long as some wait. */
static void await_descriptors(int most)
{
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;

    while (loop_fds() > most) {
        LOOP_CHECK(loop_now_ms() < limit, "%d descriptors, expected %d", loop_fds(), most);
        loop_sleep_ms(20);
    }
}

static void ten_thousand_callers(void)
{
    enum { FIRST = 500, CALLERS = 10000, MORE_PAGES = 2048, LOG_EVERY_MS = 5000 };
    char text[16384];
    int saved, lines = 0;
    struct loop_pair pair;
    struct loop_message message;

    loop_pair_create(&pair, "channels=1 window=2 chunk=16K", "channels=1 window=2 chunk=16K connect_timeout=1", 2);
    int port = weft_listen_port(pair.node[1].context), fds = loop_fds();
    loop_message_create(&message, 32 * 1024 * 1024 / LOOP_SLOWER, 1);
    message.recv = loop_recv(pair.node[1].connection, message.sink.data, message.sink.size, 1);
    message.send = loop_send(pair.node[0].connection, message.source.data, message.source.size, 1);
    int64_t start = loop_now_ms();
    int log = begin_capture(&saved);
    scan(port, FIRST);
    loop_done(message.recv, 0, message.sink.size);
    loop_done(message.send, 0, message.sink.size);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    long pages = resident_pages();
    scan(port, LOOP_COUNT(CALLERS - FIRST, 1000));
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 2);
    await_descriptors(fds + 2); /* two of the capture */
    int64_t took = loop_now_ms() - start;
    end_capture(log, saved, text, sizeof(text));
    for (const char *at = text; (at = strstr(at, "refused ")); at++)
        lines++;
    LOOP_CHECK(lines >= 1 && lines <= 1 + took / LOG_EVERY_MS, "%d lines in %lld ms", lines, (long long)took);
    LOOP_CHECK(strstr(text, "refused 127.0.") || strstr(text, "refused a caller who has left"), "%s", text);
    await_descriptors(fds);
    if (!LOOP_SANITIZED) /* its allocator gives memory back late */
        LOOP_CHECK(resident_pages() < pages + MORE_PAGES, "%ld pages after %ld", resident_pages(), pages);
    LOOP_CHECK(loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer) == 0, "a channel was lost");
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(client_first_server_later, 20),
        LOOP_CASE(nobody_there, 20),
        LOOP_CASE(two_listen_at_once, 40),
        LOOP_CASE(silent_server, 20),
        LOOP_CASE(pushed_out_and_let_in, 20),
        LOOP_CASE(pushed_out_for_good, 20),
        LOOP_CASE(one_peer_too_many, 20),
        LOOP_CASE(addresses_that_do_not_work, 20),
        LOOP_CASE(rails_and_settings_that_do_not_exist, 20),
        LOOP_CASE(lines_to_the_caller, 20),
        LOOP_CASE(two_hundred_strangers, 60),
        LOOP_CASE(ten_thousand_callers, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
