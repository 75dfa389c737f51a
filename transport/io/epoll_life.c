/* The epoll engine: its life, and that of its descriptors. */
#include "io/epoll_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441 /* the same number on all architectures */
#endif

#define DEFAULT_CALL_BYTES (256u * 1024)
#define WAKE_KEY (-1) /* the eventfd's key; all other keys are descriptors */

/* --- attach and detach --- */

int wf_epoll_attach(struct wf_engine *engine_base, int fd)
{
    return wf_interest_attach(&wf_epoll_self(engine_base)->interest, fd);
}

void wf_epoll_detach(struct wf_engine *engine_base, int fd)
{
    struct wf_epoll_engine *engine = wf_epoll_self(engine_base);
    wf_interest_detach(&engine->interest, fd);
    struct wf_hot *hot = wf_hot_find(&engine->hot, fd);
    if (hot) /* the number may soon be another's */
        wf_hot_clear(hot);
}

/* --- open and close --- */

void wf_epoll_close(struct wf_engine *engine_base)
{
    struct wf_epoll_engine *engine = wf_epoll_self(engine_base);
    wf_doorbell_fini(&engine->bell);
    if (engine->interest.epoll_fd >= 0)
        close(engine->interest.epoll_fd);
    wf_interest_fini(&engine->interest);
    free(engine);
}

static int open_descriptors(struct wf_epoll_engine *engine, struct wf_status *status)
{
    engine->interest.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (engine->interest.epoll_fd < 0)
        return wf_fail(status, -errno, "epoll_create1: %s", wf_strerror(errno));
    int result = wf_doorbell_init(&engine->bell);
    if (result)
        return wf_fail(status, result, "eventfd: %s", wf_strerror(result));
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.fd = WAKE_KEY};
    if (epoll_ctl(engine->interest.epoll_fd, EPOLL_CTL_ADD, engine->bell.fd, &event))
        return wf_fail(status, -errno, "epoll_ctl for the eventfd: %s", wf_strerror(errno));
    /* Linux 5.11; a container's filter may refuse it with either error. Then each wait takes two calls. */
    struct timespec none = {0};
    engine->has_pwait2 = syscall(SYS_epoll_pwait2, engine->interest.epoll_fd, engine->events, 1, &none, NULL, 0) >= 0;
    return 0;
}

int wf_epoll_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out, struct wf_status *status)
{
    (void)host;
    struct wf_epoll_engine *engine = aligned_alloc(WF_CACHE_LINE, sizeof *engine);
    if (!engine)
        return wf_fail(status, -ENOMEM, "epoll engine: out of memory");
    memset(engine, 0, sizeof *engine);
    engine->base.ops = &wf_engine_epoll;
    wf_interest_init(&engine->interest, -1);
    engine->bell.fd = -1;
    wf_hot_init(&engine->hot);
    engine->call_bytes = limits && limits->call_bytes ? limits->call_bytes : DEFAULT_CALL_BYTES;
    wf_read_ahead_init(&engine->ahead, limits ? limits->read_ahead : WF_READ_AHEAD_AUTO, &wf_clock_monotonic);
    wf_list_init(&engine->runnable);
    wf_list_init(&engine->finished);
    int result = open_descriptors(engine, status);
    if (result) {
        wf_epoll_close(&engine->base);
        return result;
    }
    *out = &engine->base;
    return 0;
}

int wf_epoll_probe(void *host, struct wf_status *status)
{
    struct wf_engine *engine;
    int result = wf_epoll_open(host, NULL, &engine, status);
    if (!result)
        wf_epoll_close(engine);
    return result;
}
