/*
 * preload_node.c: a library to preload that makes weft another node than it is:
 *
 *     NODE_WALL_S=N       CLOCK_REALTIME shows N seconds more than it is (negative: less)
 *     NODE_VERSION=TEXT   weft_version() says so
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* the build hides what is not asked for */

const char *weft_version(void);

int clock_gettime(clockid_t clock, struct timespec *out)
{
    long result = syscall(SYS_clock_gettime, clock, out);
    const char *more = getenv("NODE_WALL_S");

    if (result == 0 && clock == CLOCK_REALTIME && more)
        out->tv_sec += atol(more);
    return (int)result;
}

const char *weft_version(void)
{
    const char *version = getenv("NODE_VERSION");

    return version ? version : WEFT_VERSION;
}
