#include "key_check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/key_file.h"

#define RAILS_MAX 64

int bench_key_check(const struct wf_config *config, struct wf_status *status)
{
    const char *path = wf_config_text(config, WF_SET_KEY_FILE);
    uint8_t key[WF_KEY_FILE_BYTES];
    int result = path[0] ? wf_key_file_read(path, key, status) : 0;

    explicit_bzero(key, sizeof key);
    return result ? wf_fail(status, -EINVAL, "%s", status->text) : 0;
}

/* Of a numeric host, or a name that stands for one. */
static bool is_loopback(const char *host)
{
    struct in_addr four;
    struct in6_addr six;

    if (inet_pton(AF_INET, host, &four) == 1)
        return ntohl(four.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &six) == 1)
        return IN6_IS_ADDR_LOOPBACK(&six);
    return strcmp(host, "localhost") == 0;
}

/* The host of "[ADDR:]PORT" or "[ADDR]:PORT"; a port alone listens everywhere. */
static bool listens_on_loopback(const char *address)
{
    char host[256];
    const char *colon = strrchr(address, ':');

    if (!colon)
        return strspn(address, "0123456789") < strlen(address) && is_loopback(address);
    if (address[0] == '[')
        snprintf(host, sizeof host, "%.*s", (int)strcspn(address + 1, "]"), address + 1);
    else
        snprintf(host, sizeof host, "%.*s", strchr(address, ':') == colon ? (int)(colon - address) : 255, address);
    return is_loopback(host);
}

/* A rail's address is listened on, too. */
static bool reaches_this_machine_alone(const struct weft_context *context, const char *address)
{
    struct weft_rail_info rails[RAILS_MAX];
    int count = weft_context_rails(context, rails, RAILS_MAX);

    for (int i = 0; i < count && i < RAILS_MAX; i++)
        if (!is_loopback(rails[i].address))
            return false;
    return listens_on_loopback(address);
}

void bench_key_warn(const struct weft_context *context, const struct bench_options *options, const char *address,
                    int port)
{
    const char *command = bench_command_name(options->command);

    if (wf_config_text(options->config, WF_SET_KEY_FILE)[0] || bench_quiet(options->config) ||
        reaches_this_machine_alone(context, address))
        return;
    fprintf(stderr,
            "weft: warning: whoever can reach port %d may connect, for there is no key; with one:\n"
            "    (umask 077; weft key >weft.key)    and a copy on the other node, with mode 600\n"
            "    weft %s --listen %s --set key_file=weft.key\n"
            "    weft %s --connect ADDRESS:%d --set key_file=weft.key\n",
            port, command, address, command, port);
}
