/*
 * watch.h: notices that a rail has gone down, lost its carrier or its address, and that it is back, although no
 * socket has failed yet. Says so in `down` and `trouble` of the rail, in the log, and to `changed`.
 *
 * The kernel tells of changes; whatever it tells, also that it had to leave something out, leads to another look at all
 * rails, at most every few milliseconds. Where it does not tell, they are looked at every rail_timeout_ms / 2.
 *
 * A rail is looked for by its interface's number, so one that is renamed stays the same; then by its name, so one that
 * was removed and made anew is found again. Rails are found when the context is created: an interface that appears
 * later becomes none.
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
    void (*changed)(void *user, int rail); /* a rail has gone down or come back, which its `down` says */
    void *user;
    struct wf_engine *engine; /* the door's */
    bool is_open;
    bool tells;                        /* the kernel tells of changes on `news_fd` */
    int news_fd;                       /* what the kernel tells */
    int ask_fd;                        /* what it answers */
    uint32_t asked;                    /* number of the last question */
    int64_t period_ns;                 /* the time between two looks that no news lead to; 0: there are none */
    int64_t due_ns;                    /* of the next look */
    int64_t looked_ns;                 /* the last look */
    struct wf_op op;                   /* receives news */
    struct iovec place;                /* the operation's */
    alignas(8) uint8_t news[8 * 1024]; /* a longer message is cut short, which does not matter */
    alignas(8) uint8_t answer[32 * 1024];
};

/* Starts to watch and looks for the first time. Never fails: what cannot be had, a fallback of the context tells of.
 * Nothing is watched in a simulated world. Before the door's thread starts. */
void wf_rail_watch_open(struct wf_rail_watch *watch, struct wf_rails *rails, struct wf_engine *engine,
                        void (*changed)(void *user, int rail), void *user);

/* The step behind the operation's return from poll. False: `op` is not the watch's. */
bool wf_rail_watch_step(struct wf_rail_watch *watch, const struct wf_op *op);

/* Looks at the rails if that is due; returns when to come again. */
int64_t wf_rail_watch_tick(struct wf_rail_watch *watch, int64_t now_ns);

/* Ends the operation: it has to be polled back before close. */
void wf_rail_watch_stop(struct wf_rail_watch *watch);
void wf_rail_watch_close(struct wf_rail_watch *watch);

#endif
