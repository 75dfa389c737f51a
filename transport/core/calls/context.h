/*
 * context.h: the library in one process. There is no other global state: everything below hangs from a context.
 *
 * Locks, outermost first: context.lock -> session.lock -> context.endpoint_lock | worker.mail_lock | queue.lock, and
 * queue.level_lock -> queue.lock; context.wait_lock inside all of them. With session.lock held no system
 * call moves data or waits; what a kernel knows of a socket is asked now and then (TCP_INFO), and where something has
 * been lost a line is logged and workers are woken.
 */
#ifndef WF_CORE_CALLS_CONTEXT_H
#define WF_CORE_CALLS_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/config.h"
#include "base/list.h"
#include "base/log.h"
#include "core/calls/placement.h"
#include "core/device/device.h"
#include "core/ground/spin.h"
#include "core/rail/address.h"
#include "core/rail/rail.h"
#include "io/engine_fault.h"
#include "io/engine_seal.h"
#include "weft.h"
#include "wire/hello.h"

#define WF_WORKERS_MAX (2 * WF_RAILS_MAX)
#define WF_REGION_HASH 256

struct wf_door;
struct wf_handshake_key;
struct wf_worker;

/* What the process provides; the model test provides a simulated one. */
struct wf_environment {
    const struct wf_engine_ops *engine; /* NULL: chosen by the setting `engine` */
    void *engine_host;                  /* NULL for real engines */
    const struct wf_clock *clock;       /* NULL: monotonic */
    uint64_t seed;                      /* 0: identities and secrets from the system; else reproducible */
    const struct wf_memory_ops *memory; /* NULL: CUDA, in a process with real engines */
    void *memory_host;                  /* for its open() */
    bool manual;                        /* no threads: the test drives the door and the workers */
};

/* The settings a context uses, read once. Units as in `weft config`. */
struct wf_tuning {
    uint32_t channels, window, chunk, eager, first_burst, introductions, header_pad, call, zero_copy;
    uint64_t unexpected, small_pool, requests, staging;
    uint32_t peers;
    int socket_buffer, port;
    char congestion[16];
    int64_t spin_ns, timeout_ns, connect_timeout_ns, rail_timeout_ns;
    bool crc, encrypt;
    enum wf_read_ahead_when read_ahead;
    uint32_t crc_limit;
};

struct weft_context {
    struct wf_tuning tuning;
    struct wf_log log;
    const struct wf_clock *clock;
    const struct wf_engine_ops *engine_ops;
    void *engine_host;
    struct wf_fault *fault;                         /* stands around the engine; NULL: no faults are injected */
    struct wf_seal *seal;                           /* stands around both; NULL: nothing is encrypted */
    struct wf_fault_rail fault_rails[WF_RAILS_MAX]; /* what it knows of the rails */
    bool manual;
    bool simulated; /* not on this machine's network */
    bool shared;    /* one worker drives everything, and callers may drive it */
    uint64_t seed;  /* state of the reproducible generator; 0: system */
    uint64_t boot_nonce; /* as in wf_hello */
    struct wf_handshake_key *key; /* what every peer has to hold; NULL: everybody may connect */
    char host_name[WF_NAME_BYTES];
    char fallbacks[4096]; /* with the notes of a plan */

    int rail_count;
    struct wf_rail rails[WF_RAILS_MAX];
    struct wf_placement placement;
    int worker_count;
    struct wf_worker *workers[WF_WORKERS_MAX];
    struct wf_door *door;
    struct wf_devices devices;

    pthread_mutex_t lock;    /* sessions, accept queue, queues, the generator, what changes of a rail, fallbacks */
    pthread_cond_t changed;  /* a session came up, failed or went; CLOCK_MONOTONIC */
    struct wf_list sessions; /* every session that exists */
    struct wf_list accepted; /* sessions that came up and wait for weft_accept() */
    int session_count;
    struct wf_list queues;

    pthread_mutex_t region_lock;                  /* registrations; taken after any other lock */
    struct wf_list registrations[WF_REGION_HASH]; /* by key */
    struct wf_list device_registrations;          /* of these, the ones of device memory */

    pthread_mutex_t endpoint_lock;
    struct wf_list endpoints;

    pthread_mutex_t log_lock; /* taken after any other lock */
    struct wf_log_limit unknown_log;

    _Atomic uint64_t requests_out; /* requests not yet tested to their end */
    _Atomic uint64_t large_out;    /* operations of more than `eager` under way; receives by what they may bring */
    pthread_mutex_t wait_lock;     /* what follows, and every request's `waiter` */
    struct wf_list waiters;        /* threads asleep until a completion or a free drive token */
    struct wf_list poked;          /* of these, the ones whose request has ended and who are still to be woken */
    struct wf_list signals;        /* queues whose descriptor is to be brought up to date */
    _Atomic int waiter_count;
    struct wf_spin caller_spin; /* of callers who wait for workers */
};

/* As weft_context_create(), in a given environment (NULL: the process's). */
int wf_context_create(const struct wf_config *config, const struct wf_environment *environment,
                      struct weft_context **out, struct wf_status *status);

/* Fills `bytes` with identities or secrets. Any thread. */
int wf_context_random(struct weft_context *context, void *bytes, size_t length);

/* A rail as it is now, for any thread but the door's. */
void wf_context_rail(struct weft_context *context, int index, struct wf_rail *out);

/* What TCP_CONGESTION a socket gets, "" for none: the setting's; without one, that for peers on this machine if it is
 * for them alone (docs/decisions/0010-call-size.md). */
const char *wf_context_congestion(const struct weft_context *context, bool on_this_machine);

static inline int64_t wf_context_now(const struct weft_context *context)
{
    return wf_clock_now(context->clock);
}

/* Notes why a better path is not in use. Any thread that has no lock but devices.lock. */
void wf_context_fallback(struct weft_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The public error is a view of the internal one. */
static inline struct wf_status *wf_status_of(struct weft_error *err)
{
    return (struct wf_status *)err;
}

/* Settings behind weft_config_create(). */
struct weft_config {
    struct wf_config values;
    struct wf_log log;
};

#endif
