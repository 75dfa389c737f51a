#include "invite.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agree.h"
#include "bench/words/words.h"

#define ADDRESSES (BENCH_RAILS_MAX + 2)

/* Under which this node may be called, the likeliest first. */
struct addresses {
    char text[ADDRESSES][64];
    int count;
};

static void add_address(struct addresses *addresses, const char *text)
{
    for (int i = 0; i < addresses->count; i++)
        if (strcmp(addresses->text[i], text) == 0)
            return;
    if (text[0] && addresses->count < ADDRESSES)
        bench_copy_text(addresses->text[addresses->count++], sizeof addresses->text[0], text);
}

/* The address that the default route leaves from: a datagram socket is connected to an address of documentation, which
 * sends nothing. */
static void add_default_route(struct addresses *addresses, int family)
{
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(9)};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    const struct sockaddr *to = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
    struct sockaddr_storage from;
    socklen_t length = sizeof from;
    char text[64] = "";
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    inet_pton(AF_INET, "198.51.100.1", &four.sin_addr);
    inet_pton(AF_INET6, "2001:db8::1", &six.sin6_addr);
    if (fd < 0)
        return;
    if (connect(fd, to, family == AF_INET ? sizeof four : sizeof six) == 0 &&
        getsockname(fd, (struct sockaddr *)&from, &length) == 0)
        inet_ntop(family,
                  family == AF_INET ? (void *)&((struct sockaddr_in *)&from)->sin_addr
                                    : (void *)&((struct sockaddr_in6 *)&from)->sin6_addr,
                  text, sizeof text);
    close(fd);
    add_address(addresses, text);
}

static void add_rails(struct addresses *addresses, const struct bench_link *link)
{
    struct weft_rail_info rails[BENCH_RAILS_MAX];
    int count = weft_context_rails(link->context, rails, BENCH_RAILS_MAX);

    for (int i = 0; i < count && i < BENCH_RAILS_MAX; i++)
        add_address(addresses, rails[i].address);
}

/* The host of "HOST:PORT" or "[HOST]:PORT", where there is one; a port alone is every address. */
static void add_told(struct addresses *addresses, const char *address)
{
    char host[64];
    const char *colon = strrchr(address, ':');
    bool brackets = address[0] == '[', bare = colon && strchr(address, ':') != colon;

    if (!brackets && !colon && strspn(address, "0123456789") == strlen(address))
        return;
    if (brackets)
        snprintf(host, sizeof host, "%.*s", (int)strcspn(address + 1, "]"), address + 1);
    else
        snprintf(host, sizeof host, "%.*s", colon && !bare ? (int)(colon - address) : 63, address);
    if (strcmp(host, "0.0.0.0") != 0 && strcmp(host, "::") != 0)
        add_address(addresses, host);
}

static void find_addresses(struct addresses *addresses, const struct bench_link *link, const char *address)
{
    add_told(addresses, address);
    if (addresses->count)
        return;
    add_default_route(addresses, AF_INET);
    add_default_route(addresses, AF_INET6);
    add_rails(addresses, link);
}

/* The interface of a link-local address is this node's: the other one has a name of its own for it. */
static void put_address(FILE *out, const char *address, int port)
{
    int bare = (int)strcspn(address, "%");

    if (strchr(address, ':'))
        fprintf(out, "[%.*s%s]:%d", bare, address, address[bare] ? "%INTERFACE" : "", port);
    else
        fprintf(out, "%s:%d", address, port);
}

static void put_command(const struct bench_options *options, const struct addresses *addresses, int port, FILE *out)
{
    const char *key_file = wf_config_text(options->config, WF_SET_KEY_FILE);

    if (options->invite)
        fprintf(out, "; on the other node:\n  %s ", options->invite);
    else
        fprintf(out, "; on the other node:\n  weft %s --connect ", bench_command_name(options->command));
    put_address(out, addresses->count ? addresses->text[0] : "ADDRESS", port);
    fputs(options->latency ? " --lat" : "", out);
    bench_print_shared(options, !options->invite, out);
    if (key_file[0])
        fprintf(out, " --set key_file=%s", key_file);
    for (int i = 1; i < addresses->count; i++) {
        fputs(i == 1 ? "\nor, where that does not reach this node, at " : ", ", out);
        put_address(out, addresses->text[i], port);
    }
}

void bench_invite(const struct bench_link *link, const struct bench_options *options, const char *address, int port,
                  FILE *out)
{
    struct addresses addresses = {.count = 0};

    fprintf(out, "node0 waits on port %d", port);
    if (!options->invite || options->invite[0]) {
        find_addresses(&addresses, link, address);
        put_command(options, &addresses, port, out);
    }
    fputc('\n', out);
    fflush(out);
}
