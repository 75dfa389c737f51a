#include "key.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/key_file.h"
#include "result.h"

#define RAILS_MAX 64

static const char about[] = "usage: weft key >FILE\n\n"
                            "Prints a key file: a fresh key of 256 bits, as 64 hexadecimal digits. Whoever holds it "
                            "may connect to whoever has\n"
                            "it set. FILE must be readable by its owner alone, and the same on every node:\n\n"
                            "  (umask 077; weft key >weft.key)\n"
                            "  weft mesh --listen --set key_file=weft.key\n"
                            "  weft mesh --connect ADDRESS --set key_file=weft.key\n";

/* A file that others can read would have the key before anybody could change its mode. */
static bool others_can_read(int fd)
{
    struct stat there;

    if (fstat(fd, &there) != 0 || !S_ISREG(there.st_mode) || !(there.st_mode & (S_IRWXG | S_IRWXO)))
        return false;
    fprintf(stderr,
            "weft: no key is written into a file with mode %04o, where others may get at it: (umask 077; weft key "
            ">FILE) for a new file, chmod 600 for one that is there\n",
            (unsigned)there.st_mode & 07777);
    return true;
}

int bench_key(int argc, char **argv)
{
    uint8_t key[WF_KEY_FILE_BYTES];
    char text[WF_KEY_FILE_DIGITS + 1];
    bool help = argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);

    if (help) {
        fputs(about, stdout);
        return BENCH_PASSED;
    }
    if (argc > 1) {
        fprintf(stderr, "weft: weft key takes nothing ('%.60s'): see 'weft key --help'\n", argv[1]);
        return BENCH_USAGE;
    }
    if (others_can_read(STDOUT_FILENO))
        return BENCH_FAILED;
    if (getrandom(key, sizeof(key), 0) != (ssize_t)sizeof(key)) {
        fprintf(stderr, "weft: no random numbers for a key: %s\n", wf_strerror(errno));
        return BENCH_FAILED;
    }
    wf_key_file_text(key, text);
    printf("# A key of Weft: whoever has this line may connect. Keep it to yourself (chmod 600).\n%s\n", text);
    explicit_bzero(key, sizeof(key));
    explicit_bzero(text, sizeof(text));
    return BENCH_PASSED;
}

int bench_key_check(const struct wf_config *config, struct wf_status *status)
{
    const char *path = wf_config_text(config, WF_SET_KEY_FILE);
    uint8_t key[WF_KEY_FILE_BYTES];
    int rc = path[0] ? wf_key_file_read(path, key, status) : 0;

    explicit_bzero(key, sizeof(key));
    return rc ? wf_fail(status, -EINVAL, "%s", status->text) : 0;
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
        snprintf(host, sizeof(host), "%.*s", (int)strcspn(address + 1, "]"), address + 1);
    else
        snprintf(host, sizeof(host), "%.*s", strchr(address, ':') == colon ? (int)(colon - address) : 255, address);
    return is_loopback(host);
}

/* A rail's address is listened on, too. */
static bool reaches_this_machine_alone(const struct bench_link *link, const char *address)
{
    struct weft_rail_info rails[RAILS_MAX];
    int count = weft_context_rails(link->context, rails, RAILS_MAX);

    for (int i = 0; i < count && i < RAILS_MAX; i++)
        if (!is_loopback(rails[i].address))
            return false;
    return listens_on_loopback(address);
}

void bench_key_warn(const struct bench_link *link, const struct bench_options *options, const char *address, int port)
{
    const char *command = bench_command_name(options->command);

    if (wf_config_text(options->config, WF_SET_KEY_FILE)[0] || bench_quiet(options->config) ||
        reaches_this_machine_alone(link, address))
        return;
    fprintf(stderr,
            "weft: warning: whoever can reach port %d may connect, for there is no key; with one:\n"
            "    (umask 077; weft key >weft.key)    and a copy on the other node, with mode 600\n"
            "    weft %s --listen %s --set key_file=weft.key\n"
            "    weft %s --connect ADDRESS:%d --set key_file=weft.key\n",
            port, command, address, command, port);
}
