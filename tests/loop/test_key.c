/* test_key.c: who holds the key gets in, who does not is told why, and neither costs anybody else anything. */
#include "loop_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "loop_world.h"

#define CAPTURE 65536

static char folder[] = "weft_key_XXXXXX";
static char key_a[64], key_b[64]; /* "key_file=..." */

static void make_key(const char *name, char digit, char setting[64])
{
    char path[48], digits[66];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(setting, 64, "key_file=%s", path);
    memset(digits, digit, 64);
    memcpy(digits + 64, "\n", 2);
    FILE *file = fopen(path, "w");
    if (!file || fchmod(fileno(file), 0600) != 0 || fputs(digits, file) < 0 || fclose(file) != 0)
        abort();
}

static int make_keys(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    make_key("a", 'a', key_a);
    make_key("b", 'b', key_b);
    return 0;
}

static int drop_keys(void **state)
{
    (void)state;
    unlink(strchr(key_a, '=') + 1);
    unlink(strchr(key_b, '=') + 1);
    return rmdir(folder);
}

/* A call that must fail with this code and these words; how long it took does not matter, but for the watchdog. */
static void expect_refusal(struct weft_context *context, int port, int code, const char *words)
{
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};
    char address[32];

    loop_address(address, sizeof(address), port);
    int rc = loop_world_connect(context, address, LOOP_WAIT_MS, &peer, &err);
    LOOP_CHECK(rc == code && err.code == rc, "weft_connect: %d %s", rc, err.text);
    LOOP_CHECK(strstr(err.text, words), "'%s' does not say '%s'", err.text, words);
    LOOP_CHECK(strstr(err.text, address), "'%s' does not name %s", err.text, address);
    LOOP_CHECK(!peer, "an out-parameter was written on failure");
}

static void nobody_came(struct weft_context *context)
{
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};

    LOOP_CHECK(loop_world_accept(context, 0, &peer, &err) == -ETIMEDOUT, "somebody was let in: %s", err.text);
}

static void the_same_key(void)
{
    struct loop_pair pair;
    char settings[96];

    snprintf(settings, sizeof(settings), "channels=2 chunk=16K %s", key_a);
    loop_pair_create(&pair, settings, NULL, 2);
    for (int i = 0; i < 4; i++)
        loop_exchange(pair.node[0].connection, pair.node[1].connection, (size_t)1 << (6 * i + 2), (uint64_t)i + 1);
    loop_pair_destroy(&pair);
}

/* Others have a message under way meanwhile. */
struct bystanders {
    struct loop_pair pair;
    struct loop_message message;
};

static void bystanders_begin(struct bystanders *others)
{
    struct loop_message *message = &others->message;
    char settings[96];

    snprintf(settings, sizeof(settings), "window=2 chunk=16K %s", key_a);
    loop_pair_create(&others->pair, settings, NULL, 2);
    loop_message_create(message, 32 * 1024 * 1024 / LOOP_SLOWER, 1);
    message->recv = loop_recv(others->pair.node[1].connection, message->sink.data, message->sink.size, 1);
    message->send = loop_send(others->pair.node[0].connection, message->source.data, message->source.size, 1);
}

static void bystanders_end(struct bystanders *others)
{
    struct loop_message *message = &others->message;
    struct loop_node *node = others->pair.node;

    loop_message_finish(message);
    LOOP_CHECK(loop_failures(node[0].peer) + loop_failures(node[1].peer) == 0, "a channel was lost");
    nobody_came(node[1].context);
    loop_exchange(node[0].connection, node[1].connection, 70000, 2);
    loop_pair_destroy(&others->pair);
}

static void refused_beside_a_transfer(void)
{
    struct weft_context *other = loop_context(key_b, 1), *none = loop_context("", 1), *open = loop_context("", 1);
    struct weft_context *right = loop_context(key_a, 1);
    struct weft_error err = {0};
    struct bystanders bystanders;

    LOOP_CALL(weft_listen(open, "127.0.1.1:0", &err), &err);
    bystanders_begin(&bystanders);
    int port = weft_listen_port(bystanders.pair.node[1].context);
    for (int i = 0; i < 3; i++) {
        expect_refusal(other, port, -EACCES, "refused: another key than ours");
        expect_refusal(none, port, -EACCES, "the listening side has a key, the dialling side none");
        expect_refusal(right, weft_listen_port(open), -EACCES, "the dialling side has a key, the listening side none");
    }
    nobody_came(open);
    loop_context_end(other);
    loop_context_end(none);
    loop_context_end(open);
    loop_context_end(right);
    bystanders_end(&bystanders);
}

/* Bytes that the program holds; 0 where a sanitizer's own heap does not tell. */
static size_t heap(void)
{
    return LOOP_SANITIZED ? 0 : mallinfo2().uordblks;
}

static void a_thousand_refusals(void)
{
    enum { WARM = 100, REFUSALS = 1000 };
    struct weft_context *others[2] = {loop_context(key_b, 1), loop_context("", 1)};
    struct loop_pair pair;
    size_t before = 0;
    int fds = 0;

    loop_pair_create(&pair, key_a, NULL, 1);
    int port = weft_listen_port(pair.node[1].context);
    for (int i = 0; i < WARM + LOOP_COUNT(REFUSALS, 100); i++) {
        if (i == WARM) {
            before = heap();
            fds = loop_fds();
        }
        expect_refusal(others[i % 2], port, -EACCES, i % 2 ? "the dialling side none" : "another key");
    }
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    /* The last conversation may not be over yet on the other side: one of them is 64 KiB and a descriptor. */
    LOOP_CHECK(heap() < before + 256 * 1024, "%zu bytes, were %zu", heap(), before);
    LOOP_CHECK(loop_fds() <= fds + 2, "%d descriptors, were %d", loop_fds(), fds);
    nobody_came(pair.node[1].context);
    loop_context_end(others[0]);
    loop_context_end(others[1]);
    loop_pair_destroy(&pair);
}

/* A key that cannot be had is an error of the context, with the file in it. */
static void unusable_key_files(void)
{
    struct weft_config *config = loop_config("", 1);
    struct weft_context *context = NULL;
    struct weft_error err = {0};
    const char *path = strchr(key_a, '=') + 1;

    LOOP_CALL(weft_config_set(config, "key_file", "nowhere.key", &err), &err);
    LOOP_CHECK(loop_world_context(config, &context, &err) == -ENOENT && strstr(err.text, "nowhere.key"), "%s",
               err.text);
    LOOP_CALL(weft_config_set(config, "key_file", path, &err), &err);
    LOOP_CHECK(chmod(path, 0640) == 0, "chmod: %s", strerror(errno));
    LOOP_CHECK(loop_world_context(config, &context, &err) == -EACCES && strstr(err.text, "chmod 600"), "%s", err.text);
    LOOP_CHECK(chmod(path, 0600) == 0, "chmod: %s", strerror(errno));
    LOOP_CHECK(!context, "an out-parameter was written on failure");
    weft_config_destroy(config);
}

/* ------------------------------------------------------------------------------------------- in between */

/* Somebody on the way: takes one connection and either passes everything on, or sends it back. */
struct relay {
    pthread_t thread;
    int listener, port;
    int target;                  /* 0: reflects */
    unsigned char said[CAPTURE]; /* by the dialer */
    size_t length;
};

static int socket_on(int port, bool listens, int *got)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    socklen_t length = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, "127.0.1.1", &at.sin_addr);
    int rc = listens ? bind(fd, (struct sockaddr *)&at, length) : connect(fd, (struct sockaddr *)&at, length);
    LOOP_CHECK(fd >= 0 && rc == 0 && (!listens || listen(fd, 8) == 0), "%s", strerror(errno));
    if (got) {
        LOOP_CHECK(getsockname(fd, (struct sockaddr *)&at, &length) == 0, "%s", strerror(errno));
        *got = ntohs(at.sin_port);
    }
    return fd;
}

/* Moves what is there. False at the end of the stream. */
static bool move(int from, int to, struct relay *relay)
{
    unsigned char bytes[4096];
    ssize_t got = recv(from, bytes, sizeof(bytes), 0);

    if (got <= 0 || send(to, bytes, (size_t)got, MSG_NOSIGNAL) != got)
        return false;
    if (relay && relay->length + (size_t)got <= CAPTURE) {
        memcpy(relay->said + relay->length, bytes, (size_t)got);
        relay->length += (size_t)got;
    }
    return true;
}

static void *run_relay(void *arg)
{
    struct relay *relay = arg;
    int near = accept(relay->listener, NULL, NULL);
    int far = relay->target ? socket_on(relay->target, false, NULL) : near;
    struct pollfd wait[2] = {{.fd = near, .events = POLLIN}, {.fd = far, .events = POLLIN}};
    bool more = true;

    while (more && poll(wait, relay->target ? 2 : 1, LOOP_WAIT_MS) > 0) {
        if (wait[0].revents)
            more = move(near, far, relay);
        if (more && relay->target && wait[1].revents)
            more = move(far, near, NULL);
    }
    close(near);
    if (far != near)
        close(far);
    return NULL;
}

static void relay_start(struct relay *relay, int target)
{
    relay->target = target;
    relay->length = 0;
    relay->listener = socket_on(0, true, &relay->port);
    LOOP_CHECK(pthread_create(&relay->thread, NULL, run_relay, relay) == 0, "pthread_create");
}

static void relay_stop(struct relay *relay)
{
    pthread_join(relay->thread, NULL);
    close(relay->listener);
}

/* What a stranger hears until the other side hangs up. */
static size_t hear(int fd, unsigned char *bytes, size_t room)
{
    size_t have = 0;
    ssize_t got;

    while ((got = recv(fd, bytes + have, room - have, 0)) > 0)
        have += (size_t)got;
    return have;
}

/* Everything that a dialer with the key has ever said lets nobody in a second time. */
static void replayed(void)
{
    static struct relay relay;
    static unsigned char heard[CAPTURE];
    struct bystanders bystanders;
    struct loop_node server, client;
    struct weft_error err = {0};
    char address[32];

    loop_needs_kernel("relays");
    bystanders_begin(&bystanders);
    loop_node_start(&server, key_a, 1);
    loop_node_start(&client, key_a, 1);
    int port = loop_node_listen(&server);
    relay_start(&relay, port);
    loop_address(address, sizeof(address), relay.port);
    LOOP_CALL(weft_connect(client.context, address, LOOP_WAIT_MS, &client.peer, &err), &err);
    loop_node_accept(&server);
    loop_node_open(&client);
    loop_node_take(&server);
    relay_stop(&relay);
    LOOP_CHECK(relay.length > 400, "%zu bytes captured", relay.length);
    LOOP_CHECK(!memmem(relay.said, relay.length, "WEFT", 4), "HELLO was not sealed");
    for (int i = 0; i < 20; i++) {
        int fd = socket_on(port, false, NULL);
        LOOP_CHECK(send(fd, relay.said, relay.length, MSG_NOSIGNAL) == (ssize_t)relay.length, "%s", strerror(errno));
        hear(fd, heard, sizeof(heard));
        close(fd);
        nobody_came(server.context);
    }
    loop_exchange(client.connection, server.connection, 70000, 1);
    LOOP_CHECK(loop_failures(server.peer) + loop_failures(client.peer) == 0, "a channel was lost");
    loop_node_stop(&client);
    loop_node_stop(&server);
    bystanders_end(&bystanders);
}

/* One's own words sent back, and one's own call passed on to oneself: neither is another holder of the key. */
static void reflected(void)
{
    static struct relay relay;
    struct bystanders bystanders;
    struct loop_node both;

    loop_needs_kernel("relays");
    bystanders_begin(&bystanders);
    loop_node_start(&both, key_a, 1);
    int own = loop_node_listen(&both);
    relay_start(&relay, 0);
    expect_refusal(both.context, relay.port, -EPROTO, "makes no sense");
    relay_stop(&relay);
    relay_start(&relay, own);
    expect_refusal(both.context, relay.port, -EACCES, "leads back to this side");
    relay_stop(&relay);
    nobody_came(both.context);
    loop_node_stop(&both);
    bystanders_end(&bystanders);
}

/* A call that is meant for oneself is none that was led astray. */
static void oneself(void)
{
    struct loop_node node;
    struct weft_error err = {0};
    struct weft_peer *other = NULL;

    loop_node_start(&node, key_a, 1);
    loop_node_connect(&node, loop_node_listen(&node));
    LOOP_CALL(loop_world_accept(node.context, LOOP_WAIT_MS, &other, &err), &err);
    weft_peer_close(node.peer, 2000, NULL);
    weft_peer_close(other, 2000, NULL);
    node.peer = NULL;
    loop_node_stop(&node);
}

/* One byte a time, and then none: the deadline ends it as it ends every other stranger's. */
static void slow_hello(void)
{
    static const unsigned char start[] = {0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3};
    struct loop_pair pair;
    unsigned char heard[64];
    char settings[96];

    loop_needs_kernel("sockets for strangers");
    snprintf(settings, sizeof(settings), "connect_timeout=1 %s", key_a);
    loop_pair_create(&pair, settings, NULL, 1);
    int fd = socket_on(weft_listen_port(pair.node[1].context), false, NULL);
    for (size_t i = 0; i < sizeof(start); i++)
        LOOP_CHECK(send(fd, start + i, 1, MSG_NOSIGNAL) == 1, "%s", strerror(errno));
    hear(fd, heard, sizeof(heard)); /* until it is shown out */
    close(fd);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 1);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(the_same_key, 20),
        LOOP_CASE(refused_beside_a_transfer, 40),
        LOOP_CASE(a_thousand_refusals, 60),
        LOOP_CASE(unusable_key_files, 20),
        LOOP_CASE(replayed, 30),
        LOOP_CASE(reflected, 30),
        LOOP_CASE(oneself, 20),
        LOOP_CASE(slow_hello, 20),
    };
    return cmocka_run_group_tests(tests, make_keys, drop_keys);
}
