/*
 * watch.h: notices that a rail has gone down, has lost its carrier or its address, or is back, before a socket fails.
 * Writes the rail's `down` and `trouble`, writes to the log, and calls `changed`.
 *
 * The kernel sends news of changes. Any news about a rail, and a report that news were dropped, lead to a look at all
 * rails, at most every few milliseconds. If the kernel sends no news, the rails are looked at every rail_timeout_ms /
 * 2.
 *
 * A rail is looked for by the number of its interface, so a renamed interface stays the same rail; then by the name, so
 * an interface that was removed and made again is found. Rails are found when the context is created: an interface that
 * appears later becomes no rail.
 */
#ifndef WF_CORE_RAIL_WATCH_H
#define WF_CORE_RAIL_WATCH_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/rail/state.h"
#include "io/engine.h"

/* Owner: the door, whose thread drives it. All zero: not open. */
struct wf_rail_watch {
    struct wf_rails *rails;
    void (*changed)(void *user, int rail); /* the rail's `down` has changed */
    void *user;
    struct wf_engine *engine; /* the door's */
    bool is_open;
    bool tells;                        /* the kernel sends news to `news_fd` */
    int news_fd;                       /* socket of the news */
    int ask_fd;                        /* socket of questions and answers */
    uint32_t asked;                    /* number of the last question */
    int64_t period_ns;                 /* time between looks without news; 0: only news lead to a look */
    int64_t due_ns;                    /* of the next look */
    int64_t looked_ns;                 /* the last look */
    struct wf_op op;                   /* receives news */
    struct iovec place;                /* the buffer of `op` */
    alignas(8) uint8_t news[8 * 1024]; /* a longer message is cut short: it leads to a look all the same */
    alignas(8) uint8_t answer[32 * 1024];
};

/* Starts to watch and looks for the first time. Never fails: if a socket cannot be opened, a fallback of the context
 * says so. Does nothing in a simulated world. Call it before the door's thread starts. */
void wf_rail_watch_open(struct wf_rail_watch *watch, struct wf_rails *rails, struct wf_engine *engine,
                        void (*changed)(void *user, int rail), void *user);

/* For each operation that poll() returned. False: `op` is not the watch's. */
bool wf_rail_watch_step(struct wf_rail_watch *watch, const struct wf_op *op);

/* Looks at the rails if a look is due; returns the time of the next call. */
int64_t wf_rail_watch_tick(struct wf_rail_watch *watch, int64_t now_ns);

/* Cancels the operation: poll() must have returned it before close. */
void wf_rail_watch_stop(struct wf_rail_watch *watch);
void wf_rail_watch_close(struct wf_rail_watch *watch);

#endif
