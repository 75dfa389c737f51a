/* IPv6 over loopback, where an address can stand: listening, connecting, rails; and both families side by side. */
#include "loop_support.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop_node node[2];

static bool has_ipv6(void)
{
    struct sockaddr_in6 one = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    bool works = fd >= 0 && bind(fd, (struct sockaddr *)&one, sizeof one) == 0;

    if (fd >= 0)
        close(fd);
    return works;
}

/* Listens on `listen_on` with the rails of each side, connects to `connect_to` with the port put after it, and moves a
 * message each way. The rails in use must be `names`. */
static void meet(const char *listener_rails, const char *listen_on, const char *dialler_rails, const char *connect_to,
                 const char *names)
{
    char settings[2][128], address[64], used[256] = "";
    struct weft_rail_stats stats[LOOP_RAILS_MAX];
    struct weft_error err = {0};

    loop_note("%s with %s, %s with %s", listen_on, listener_rails, connect_to, dialler_rails);
    snprintf(settings[0], sizeof settings[0], "rails=%s", dialler_rails);
    snprintf(settings[1], sizeof settings[1], "rails=%s", listener_rails);
    loop_node_start(&node[0], settings[0], 1);
    loop_node_start(&node[1], settings[1], 1);
    LOOP_CALL(weft_listen(node[1].context, listen_on, &err), &err);
    snprintf(address, sizeof address, "%s:%d", connect_to, weft_listen_port(node[1].context));
    LOOP_CALL(weft_connect(node[0].context, address, LOOP_WAIT_MS, &node[0].peer, &err), &err);
    loop_node_accept(&node[1]);
    loop_node_open(&node[0]);
    loop_node_take(&node[1]);
    loop_exchange(node[0].connection, node[1].connection, 3000000, 1);
    int count = weft_peer_rails(node[0].peer, stats, LOOP_RAILS_MAX);
    for (int i = 0; i < count; i++)
        snprintf(used + strlen(used), sizeof used - strlen(used), "%s%s>%s", i ? " " : "", stats[i].local,
                 stats[i].remote);
    LOOP_CHECK(strcmp(used, names) == 0, "rails '%s', not '%s'", used, names);
    loop_node_stop(&node[0]);
    loop_node_stop(&node[1]);
}

static void rails_and_addresses(void)
{
    meet("::1", "[::1]:0", "::1", "[::1]", "::1>::1");
    meet("[::1]", "[::]:0", "[::1]", "[::1]", "::1>::1");
    meet("::1", "0", "0:0:0:0:0:0:0:1", "[::1]", "::1>::1");
}

/* The control conversation and the rails need not be of one family. */
static void families_apart(void)
{
    meet("::1", "127.0.0.1:0", "::1", "127.0.0.1", "::1>::1");
    meet("::1", "0.0.0.0:0", "::1", "127.0.0.1", "::1>::1");
    meet("127.0.1.1", "[::1]:0", "127.0.1.1", "[::1]", "127.0.1.1>127.0.1.1");
}

/* Rails meet rails of their own family, in whatever order each side names them. */
static void families_mixed(void)
{
    meet("127.0.1.1,::1", "0", "::1,127.0.1.1", "[::1]", "::1>::1 127.0.1.1>127.0.1.1");
    meet("::1,127.0.1.1", "0", "127.0.1.1", "127.0.0.1", "127.0.1.1>127.0.1.1");
}

static const char *address_of_lo(const char *family, struct weft_interface_info *list, int room)
{
    char settings[64];
    struct weft_error err = {0};
    snprintf(settings, sizeof settings, "rails=lo family=%s", family);
    struct weft_config *config = loop_config(settings, 1);
    LOOP_CALL(weft_interfaces(config, list, room, &err), &err);
    weft_config_destroy(config);
    return list[0].address;
}

/* An interface with addresses of both families stands for the one that is asked for. */
static void family_of_an_interface(void)
{
    struct weft_interface_info list[1];

    LOOP_CHECK(strcmp(address_of_lo("auto", list, 1), "127.0.0.1") == 0, "%s", list[0].address);
    LOOP_CHECK(strcmp(address_of_lo("ipv4", list, 1), "127.0.0.1") == 0, "%s", list[0].address);
    LOOP_CHECK(strcmp(address_of_lo("ipv6", list, 1), "::1") == 0, "%s", list[0].address);
    meet("lo family=ipv6", "[::1]:0", "lo family=ipv6", "[::1]", "::1>::1");
}

static void families_that_do_not_meet(void)
{
    struct weft_error err = {0};
    char address[64];

    loop_node_start(&node[0], "rails=::1", 1);
    loop_node_start(&node[1], "rails=127.0.1.1", 1);
    int port = loop_node_listen(&node[1]);
    snprintf(address, sizeof address, "127.0.1.1:%d", port);
    int rc = weft_connect(node[0].context, address, LOOP_WAIT_MS, &node[0].peer, &err);
    LOOP_CHECK(rc == -EHOSTUNREACH && strstr(err.text, "only IPv6"), "%d %s", rc, err.text);
    loop_context_end(node[0].context);
    loop_context_end(node[1].context);
}

static void link_local_needs_an_interface(void)
{
    struct weft_config *config = loop_config("rails=fe80::1", 1);
    struct weft_context *context = NULL;
    struct weft_error err = {0};

    int rc = weft_context_create(config, &context, &err);
    LOOP_CHECK(rc == -EINVAL && strstr(err.text, "fe80::1%eth0"), "%d %s", rc, err.text);
    weft_config_destroy(config);
    loop_node_start(&node[0], "rails=::1", 1);
    rc = weft_listen(node[0].context, "[fe80::1]:0", &err);
    LOOP_CHECK(rc == -EINVAL && strstr(err.text, "fe80::1%eth0"), "%d %s", rc, err.text);
    rc = weft_connect(node[0].context, "fe80::1%weft-none0", LOOP_WAIT_MS, &node[0].peer, &err);
    LOOP_CHECK(rc == -ENODEV && strstr(err.text, "'weft-none0'"), "%d %s", rc, err.text);
    loop_context_end(node[0].context);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    if (!has_ipv6()) {
        printf("skipped: this machine has no ::1\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        LOOP_CASE(rails_and_addresses, 20),
        LOOP_CASE(families_apart, 20),
        LOOP_CASE(families_mixed, 20),
        LOOP_CASE(family_of_an_interface, 20),
        LOOP_CASE(families_that_do_not_meet, 20),
        LOOP_CASE(link_local_needs_an_interface, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
