/* loop_node.c: nodes, pairs of nodes, and second processes. */
#include "loop_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop_world.h"

/* ------------------------------------------------------------------------------------------- nodes */

static void set_all(struct weft_config *config, const char *settings)
{
    struct weft_error err = {0};
    char copy[512], *rest = copy;

    snprintf(copy, sizeof(copy), "%s", settings ? settings : "");
    for (char *word = strsep(&rest, " "); word; word = strsep(&rest, " ")) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        LOOP_CALL(weft_config_set(config, word, value, &err), &err);
    }
}

struct weft_config *loop_config(const char *settings, int rails)
{
    struct weft_config *config = NULL;
    struct weft_error err = {0};
    char list[LOOP_RAILS_MAX * 16] = "";

    LOOP_CHECK(rails >= 1 && rails <= LOOP_RAILS_MAX, "%d rails", rails);
    LOOP_CALL(weft_config_create(&config, &err), &err);
    for (int i = 1; i <= rails; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s127.0.%d.1", i > 1 ? "," : "", i);
    LOOP_CALL(weft_config_set(config, "rails", list, &err), &err);
    set_all(config, loop_world_settings);
    set_all(config, getenv("LOOP_SETTINGS"));
    set_all(config, settings);
    return config;
}

struct weft_context *loop_context(const char *settings, int rails)
{
    struct weft_config *config = loop_config(settings, rails);
    struct weft_context *context = NULL;
    struct weft_error err = {0};

    LOOP_CALL(loop_world_context(config, &context, &err), &err);
    weft_config_destroy(config);
    loop_memory_join(context);
    return context;
}

void loop_context_end(struct weft_context *context)
{
    loop_memory_leave(context);
    loop_world_context_end(context);
}

void loop_address(char *out, size_t room, int port)
{
    snprintf(out, room, "127.0.1.1:%d", port);
}

int loop_hold_port(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    LOOP_CHECK(bind(fd, (struct sockaddr *)&address, length) == 0, "bind: %s", strerror(errno));
    LOOP_CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "getsockname: %s", strerror(errno));
    *port = ntohs(address.sin_port);
    return fd;
}

void loop_node_start(struct loop_node *node, const char *settings, int rails)
{
    struct weft_error err = {0};

    *node = (struct loop_node){.context = loop_context(settings, rails)};
    LOOP_CALL(weft_endpoint_create(node->context, 0, &node->endpoint, &err), &err);
    const char *traffic = getenv("LOOP_CLASS");
    if (traffic)
        LOOP_CHECK(weft_endpoint_set_class(node->endpoint, (uint32_t)strtoul(traffic, NULL, 10)) == 0, "class %s",
                   traffic);
}

int loop_node_listen(struct loop_node *node)
{
    struct weft_error err = {0};

    LOOP_CALL(weft_listen(node->context, "127.0.1.1:0", &err), &err);
    int port = weft_listen_port(node->context);
    LOOP_CHECK(port > 0 && port < 65536, "port %d", port);
    return port;
}

void loop_node_connect(struct loop_node *node, int port)
{
    struct weft_error err = {0};
    char address[32];

    loop_address(address, sizeof(address), port);
    LOOP_CALL(loop_world_connect(node->context, address, LOOP_WAIT_MS, &node->peer, &err), &err);
}

void loop_node_accept(struct loop_node *node)
{
    struct weft_error err = {0};

    LOOP_CALL(loop_world_accept(node->context, LOOP_WAIT_MS, &node->peer, &err), &err);
}

void loop_node_open(struct loop_node *node)
{
    struct weft_error err = {0};

    LOOP_CALL(weft_connection_open(node->endpoint, node->peer, 0, LOOP_WAIT_MS, &node->connection, &err), &err);
}

void loop_node_take(struct loop_node *node)
{
    struct weft_error err = {0};

    LOOP_CALL(weft_connection_accept(node->endpoint, node->peer, 0, LOOP_WAIT_MS, &node->connection, &err), &err);
    LOOP_CHECK(weft_connection_remote(node->connection) == 0, "remote endpoint %u",
               weft_connection_remote(node->connection));
}

void loop_node_stop(struct loop_node *node)
{
    if (node->connection)
        weft_connection_close(node->connection, 2000, NULL);
    if (node->peer)
        weft_peer_close(node->peer, 2000, NULL);
    if (node->endpoint)
        weft_endpoint_destroy(node->endpoint);
    loop_context_end(node->context);
    *node = (struct loop_node){0};
}

void loop_pair_create(struct loop_pair *pair, const char *settings, const char *other, int rails)
{
    struct loop_node *node = pair->node;

    *pair = (struct loop_pair){0};
    loop_node_start(&node[0], settings, rails);
    loop_node_start(&node[1], other ? other : settings, rails);
    loop_node_connect(&node[0], loop_node_listen(&node[1]));
    loop_node_accept(&node[1]);
    loop_node_open(&node[0]);
    loop_node_take(&node[1]);
}

void loop_pair_destroy(struct loop_pair *pair)
{
    struct loop_node *node = pair->node;

    for (int i = 0; i < 2; i++)
        if (node[i].connection)
            weft_connection_close(node[i].connection, 2000, NULL);
    node[0].connection = node[1].connection = NULL;
    for (int i = 0; i < 2; i++)
        loop_node_stop(&node[i]);
}

void loop_connection(struct loop_pair *pair, int opener, struct weft_connection *ends[2])
{
    struct loop_node *from = &pair->node[opener], *to = &pair->node[!opener];
    struct weft_error err = {0};

    LOOP_CALL(weft_connection_open(from->endpoint, from->peer, 0, LOOP_WAIT_MS, &ends[0], &err), &err);
    LOOP_CALL(weft_connection_accept(to->endpoint, to->peer, 0, LOOP_WAIT_MS, &ends[1], &err), &err);
}

void loop_connection_end(struct weft_connection *ends[2])
{
    struct weft_error err = {0};

    LOOP_CALL(weft_connection_close(ends[0], LOOP_WAIT_MS, &err), &err);
    LOOP_CALL(weft_connection_close(ends[1], LOOP_WAIT_MS, &err), &err);
    ends[0] = ends[1] = NULL;
}

static struct weft_rail_stats rails_sum(const struct weft_peer *peer)
{
    struct weft_rail_stats stats[LOOP_RAILS_MAX], sum = {0};
    int count = weft_peer_rails(peer, stats, LOOP_RAILS_MAX);

    LOOP_CHECK(count >= 1 && count <= LOOP_RAILS_MAX, "weft_peer_rails: %d", count);
    for (int i = 0; i < count; i++) {
        sum.received_bytes += stats[i].received_bytes;
        sum.failures += stats[i].failures;
        sum.damaged += stats[i].damaged;
        sum.resent_bytes += stats[i].resent_bytes;
    }
    return sum;
}

uint64_t loop_received(const struct weft_peer *peer)
{
    return rails_sum(peer).received_bytes;
}

uint64_t loop_failures(const struct weft_peer *peer)
{
    return rails_sum(peer).failures;
}

uint64_t loop_resent(const struct weft_peer *peer)
{
    return rails_sum(peer).resent_bytes;
}

uint64_t loop_damaged(const struct weft_peer *peer)
{
    return rails_sum(peer).damaged;
}

/* ------------------------------------------------------------------------------------------- processes */

void loop_child_start(struct loop_child *child, int (*body)(int in, int out, void *arg), void *arg)
{
    int down[2], up[2];

    loop_needs_kernel("processes");
    LOOP_CHECK(pipe(down) == 0 && pipe(up) == 0, "pipe: %s", strerror(errno));
    fflush(NULL);
    unsigned left = alarm(0); /* of the test's time limit, in seconds: not inherited; the handler is */
    alarm(left);
    child->pid = fork();
    LOOP_CHECK(child->pid >= 0, "fork: %s", strerror(errno));
    if (child->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(down[1]);
        close(up[0]);
        alarm(left);
        signal(SIGABRT, SIG_DFL);
        loop_child_enter();
        _exit(body(down[0], up[1], arg));
    }
    close(down[0]);
    close(up[1]);
    child->in = up[0];
    child->out = down[1];
}

static void child_drop(struct loop_child *child)
{
    close(child->in);
    close(child->out);
    child->pid = 0;
}

void loop_child_kill(struct loop_child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    child_drop(child);
}

void loop_child_stop(const struct loop_child *child)
{
    int status = 0;

    kill(child->pid, SIGSTOP);
    LOOP_CHECK(waitpid(child->pid, &status, WUNTRACED) == child->pid && WIFSTOPPED(status), "it did not stop: %d",
               status);
}

void loop_child_join(struct loop_child *child)
{
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    int status = 0;

    while (waitpid(child->pid, &status, WNOHANG) == 0) {
        LOOP_CHECK(loop_now_ms() < limit, "the child process did not end");
        loop_sleep_ms(5);
    }
    child_drop(child);
    LOOP_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child process ended with wait status 0x%x", status);
}

void loop_tell(int fd, uint64_t value)
{
    ssize_t written = write(fd, &value, sizeof(value));

    LOOP_CHECK(written == sizeof(value), "write to the other process: %s", strerror(errno));
}

bool loop_readable(int fd, int timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int count;

    do /* a thread that has driven io_uring is interrupted by the kernel now and then */
        count = poll(&wait, 1, timeout_ms);
    while (count < 0 && errno == EINTR);
    LOOP_CHECK(count >= 0, "poll: %s", strerror(errno));
    return count == 1;
}

uint64_t loop_hear(int fd)
{
    uint64_t value = 0;

    LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "the other process says nothing");
    LOOP_CHECK(read(fd, &value, sizeof(value)) == sizeof(value), "the other process has gone");
    return value;
}
