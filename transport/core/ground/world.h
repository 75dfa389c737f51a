/*
 * world.h: what a context has for all rooms of the core: its settings, log, clock, engine, random numbers, and the list
 * of better paths that are not in use, with the reasons.
 *
 * Fields that other rooms may read: all but `seed`. The fields from `tuning` to `host_name` but `trace`, and `wake` and
 * `waiting`, are written while the context is built, and never afterwards. `trace` is for the functions of trace.h.
 */
#ifndef WF_CORE_GROUND_WORLD_H
#define WF_CORE_GROUND_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/log.h"
#include "base/status.h"
#include "core/ground/alarm.h"
#include "core/ground/trace.h"
#include "io/engine.h"
#include "wire/hello.h"

struct weft_error;
struct wf_engine_ops;

/* The settings a context uses, read once. Units as in `weft config`. */
struct wf_tuning {
    uint32_t channels, window, chunk, eager, first_burst, introductions, header_pad, call, zero_copy;
    uint64_t unexpected, small_pool, requests, staging;
    uint32_t peers;
    int socket_buffer, port;
    int dscp[WF_CLASSES]; /* 0: no mark */
    char congestion[16];
    int64_t spin_ns, timeout_ns, connect_timeout_ns, rail_timeout_ns;
    bool crc, encrypt;
    bool devmem; /* device channels are used where cards can; never with `crc` or `encrypt` */
    enum wf_read_ahead_when read_ahead;
    uint32_t crc_limit;
};

/* Owner: the context. */
struct wf_world {
    struct wf_tuning tuning;
    struct wf_log log;
    const struct wf_clock *clock;
    struct wf_trace trace; /* beside the clock: who writes events has read that, or a setting, just before */
    const struct wf_engine_ops *engine_ops;
    void *engine_host;
    bool manual;         /* no threads: a test drives the door and the workers */
    bool simulated;      /* not on this machine's network */
    bool shared;         /* one worker drives everything, and callers may drive it */
    uint64_t boot_nonce; /* as in wf_hello */
    char host_name[WF_NAME_BYTES];
    /* Wakes threads whose requests have ended; called with `waiting` after a session's lock is released. */
    void (*wake)(void *waiting);
    void *waiting;

    struct wf_alarm alarm;          /* the door's */
    pthread_mutex_t lock;           /* guards the sessions, accept queue, queues, `seed`, a rail's changing fields */
    uint64_t seed;                  /* state of the reproducible generator; 0: random numbers come from the system */
    pthread_mutex_t fallbacks_lock; /* taken last */
    char fallbacks[4096];           /* one on each line, and the notes of a plan; only grows */
};

/* `world` is all zero before. `seed` 0: random numbers come from the system; else they are reproducible, for tests. */
void wf_world_init(struct wf_world *world, enum wf_log_level level, uint64_t seed);
void wf_world_fini(struct wf_world *world);

/* Sets `wake`, which is called after the lock of a session whose requests have ended is released. */
static inline void wf_world_on_wake(struct wf_world *world, void (*wake)(void *waiting), void *waiting)
{
    world->wake = wake;
    world->waiting = waiting;
}

/* Fills `bytes` with identities or secrets. Any thread. 0 or -EIO. */
int wf_world_random(struct wf_world *world, void *bytes, size_t length);

/* Notes why a better path is not in use. Any thread, any lock. */
void wf_world_fallback(struct wf_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* TCP_CONGESTION for a socket; "": the system's. The setting comes first; without one, sockets that serve only peers on
 * this machine get "reno" (docs/decisions/0010-call-size.md). */
const char *wf_world_congestion(const struct wf_world *world, bool on_this_machine);

static inline int64_t wf_world_now(const struct wf_world *world)
{
    return wf_clock_now(world->clock);
}

/* A weft_error of the public interface is a wf_status. */
static inline struct wf_status *wf_status_of(struct weft_error *err)
{
    return (struct wf_status *)err;
}

#endif
