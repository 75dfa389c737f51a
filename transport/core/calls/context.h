/*
 * context.h: the library in one process. The only state outside of a context is of a thread: a hint (`next_place` in
 * request/wait.c), and why its last call without a struct weft_error failed (`refusal` in ground/refusal.c). A context
 * holds a part for each room, and pointers to what joining needs.
 *
 * Locks, outermost first: world.lock -> guard.lock of a session -> that of the lobby -> wf_tray.lock | door.mail_lock,
 * and guard.lock of a session -> wf_endpoints.lock | worker.mail_lock, and wf_tray.level_lock -> wf_tray.lock;
 * wf_waiting.lock and wf_trace.lock inside all of them. With guard.lock held no system call moves data or waits. A few
 * short ones are allowed: asking the kernel about a socket now and then (TCP_INFO), telling it a rate
 * (SO_MAX_PACING_RATE), and, after a loss, logging a line and waking workers.
 */
#ifndef WF_CORE_CALLS_CONTEXT_H
#define WF_CORE_CALLS_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/config.h"
#include "base/log.h"
#include "core/cards/cards.h"
#include "core/device/device.h"
#include "core/device/registration.h"
#include "core/drive/worker.h"
#include "core/ground/world.h"
#include "core/message/connection.h"
#include "core/rail/rail.h"
#include "core/request/wait.h"
#include "core/session/session.h"
#include "io/engine_fault.h"
#include "io/engine_seal.h"
#include "weft.h"

struct wf_door;
struct wf_handshake_key;

/* What a context gets from the process; the model test gives a simulated environment. */
struct wf_environment {
    const struct wf_engine_ops *engine; /* NULL: chosen by the setting `engine` */
    void *engine_host;                  /* NULL for real engines */
    const struct wf_clock *clock;       /* NULL: monotonic */
    uint64_t seed;                      /* 0: identities and secrets from the system; else reproducible */
    const struct wf_memory_ops *memory; /* NULL: CUDA, in a process with real engines */
    void *memory_host;                  /* for the open() of `memory` */
    const struct wf_card_ops *cards;    /* NULL: this machine's, in a process with real engines */
    void *cards_host;                   /* for the functions of `cards` */
    const struct wf_log *log;           /* whose taker gets the lines; NULL: standard error does */
    bool manual;                        /* no threads: the test drives the door and the workers */
};

struct weft_context {
    struct wf_world world;
    struct wf_rails rails;
    struct wf_crew crew;
    struct wf_devices devices;
    struct wf_cards cards;
    struct wf_card_host *card_host; /* of `cards`; NULL: they are a test's, or there are none */
    struct wf_registry registry;
    struct wf_waiting waiting;
    struct wf_endpoints endpoints;
    struct wf_sessions sessions;
    struct wf_door *door;
    struct wf_fault *fault;                         /* wraps the engine; NULL: no faults are injected */
    struct wf_seal *seal;                           /* wraps `fault` or the engine; NULL: nothing is encrypted */
    struct wf_fault_rail fault_rails[WF_RAILS_MAX]; /* the rails, as `fault` knows them */
    struct wf_handshake_key *key;                   /* the key that every peer must have; NULL: any peer may connect */
};

/* Same as weft_context_create(), in this environment (NULL: the process's). */
int wf_context_create(const struct wf_config *config, const struct wf_environment *environment,
                      struct weft_context **out, struct wf_status *status);

/* The context that the session belongs to. */
static inline struct weft_context *wf_context_of(const struct wf_session *session)
{
    return WF_CONTAINER(session->sessions, struct weft_context, sessions);
}

/* The settings that weft_config_create() makes. */
struct weft_config {
    struct wf_config values;
    struct wf_log log;
};

#endif
