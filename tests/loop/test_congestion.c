/*
 * test_congestion.c: which congestion control the sockets of channels get. All of them are this process's own: both
 * nodes are in it.
 */
#include "loop_support.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DESCRIPTORS 1024

/* Connected sockets, and those of them that have this congestion control. */
static void count_sockets(const char *name, int *with, int *all)
{
    *with = *all = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        struct tcp_info info;
        socklen_t length = sizeof info;
        char found[16] = "";
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 || info.tcpi_state != TCP_ESTABLISHED)
            continue;
        length = sizeof found;
        LOOP_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, found, &length) == 0, "descriptor %d", fd);
        *all += 1;
        *with += strncmp(found, name, sizeof found) == 0;
    }
}

static void expect(const char *settings, const char *name)
{
    struct loop_pair pair;
    int with, all, others, none;

    count_sockets(name, &others, &none);
    LOOP_CHECK(none == 0, "%d sockets before there is anything", none);
    loop_pair_create(&pair, settings, NULL, 2);
    count_sockets(name, &with, &all);
    /* Two rails, of each one for small messages and three for bulk data, each with two ends. */
    LOOP_CHECK(with >= 16 && with == all, "%d of %d sockets have %s", with, all, name);
    loop_pair_destroy(&pair);
}

/* No network is shared, and what paces costs processor time. */
static void what_stays_here_is_not_paced(void)
{
    expect("channels=3", "reno");
}

static void a_setting_comes_first(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int refused = setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    close(fd);
    if (refused) /* by a kernel without it, or to all but root */
        skip();
    expect("channels=3 congestion=cubic", "cubic");
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(what_stays_here_is_not_paced, 30),
        LOOP_CASE(a_setting_comes_first, 30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
