/*
 * epoll_parts.h: what the two sources of the epoll engine share: engine_epoll.c (operations) and epoll_life.c (its
 * life, and that of its descriptors). No other source includes it.
 */
#ifndef WF_IO_EPOLL_PARTS_H
#define WF_IO_EPOLL_PARTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "io/doorbell.h"
#include "io/engine.h"
#include "io/hot.h"
#include "io/interest.h"
#include "io/read_ahead.h"

#define WF_EPOLL_BATCH 64

/* Owner: the thread that drives the engine; the bell is shared with those who call wake. */
struct wf_epoll_engine {
    struct wf_engine base;
    struct wf_interest interest;
    uint32_t call_bytes;
    struct wf_read_ahead ahead;
    bool has_pwait2;
    bool skipped; /* the last poll did not ask the kernel for events */
    struct wf_hot_set hot;
    int hot_tries;                 /* polls since the last one that asked for events */
    bool again;                    /* the last bytes came on the descriptor of the bytes before */
    int gathering[WF_EPOLL_BATCH]; /* descriptors whose RECV began to wait since the last sleep, and may gather bytes */
    int gathering_count;
    struct wf_list runnable, finished;
    struct wf_link round_end; /* in `runnable`: behind it are those of the next round */
    struct epoll_event events[WF_EPOLL_BATCH];
    struct wf_doorbell bell;
};

static inline struct wf_epoll_engine *wf_epoll_self(struct wf_engine *engine)
{
    return WF_CONTAINER(engine, struct wf_epoll_engine, base);
}

/* Members of wf_engine_epoll. */
int wf_epoll_probe(void *host, struct wf_status *status);
int wf_epoll_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out, struct wf_status *status);
void wf_epoll_close(struct wf_engine *engine);
int wf_epoll_attach(struct wf_engine *engine, int fd);
void wf_epoll_detach(struct wf_engine *engine, int fd);

#endif
