/*
 * core_scene.h: what a session is made of, without a session: book, shares, lines, desk and kicks by their rooms' own
 * init functions, over a guard that counts what its hooks are asked, engines that only record, and a clock that the
 * test moves. Two workers, no threads. Owner: the test, one thread where it does not say otherwise.
 */
#ifndef WEFT_TESTS_UNIT_CORE_SCENE_H
#define WEFT_TESTS_UNIT_CORE_SCENE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>

#include "core/channel/lines.h"
#include "core/device/device.h"
#include "core/device/registration.h"
#include "core/drive/worker.h"
#include "core/ground/guard.h"
#include "core/ground/terms.h"
#include "core/message/connection.h"
#include "core/message/desk.h"
#include "core/request/book.h"
#include "core/request/request.h"

#define SCENE_WORKERS 2
#define SCENE_OPS 64 /* that an engine records, or has finished */
#define SCENE_START_NS (1000 * WF_NS_PER_S)

/* What the settings of a scene say, unless the test changes them. */
#define SCENE_EAGER 4096u
#define SCENE_FIRST_BURST (256u * 1024)
#define SCENE_CHUNK (512u * 1024)
#define SCENE_WINDOW 8u
#define SCENE_PAD 128u
#define SCENE_REQUESTS 4u
#define SCENE_INTRODUCTIONS 8u
#define SCENE_POOL (1024u * 1024) /* the unexpected pool, of either side */

/* An engine that moves nothing: it records what is posted, and poll gives what the test has put into `finished`. */
struct scene_engine {
    struct wf_engine base;
    struct wf_engine_limits limits; /* that it was opened with */
    int wakes;                      /* calls of wake() */
    int polls;                      /* calls of poll(), */
    int64_t timeout_ns;             /* and the timeout of the last one */
    struct wf_op *posted[SCENE_OPS];
    int posted_count;
    struct wf_op *finished[SCENE_OPS]; /* given by the next calls of poll(), the first one first */
    int finished_count;
    struct wf_op *late; /* given by the next poll() that may wait, or NULL */
};

struct scene {
    struct wf_clock clock;
    int64_t now_ns;
    int64_t step_ns; /* by which each look at the clock moves it; 0: it stands still */

    /* what a context has */
    struct wf_world world;
    struct wf_crew crew;
    struct wf_devices devices;
    struct wf_registry registry;
    struct wf_waiting waiting;
    struct wf_endpoints endpoints;
    struct scene_engine *engines[SCENE_WORKERS]; /* of the workers, by index */
    struct scene_engine door;                    /* whose wake() is the bell of world.alarm */
    uint64_t retransmits;                        /* what the engines' retransmits() says of any descriptor */

    /* what a session has */
    struct wf_guard guard;
    struct wf_terms terms;
    struct wf_kicks kicks;
    struct wf_book book;
    struct wf_shares shares;
    struct wf_lines lines;
    struct wf_desk desk;

    /* calls of the guard's hooks; that the lock was held, or was not, is asserted there */
    int failures, unheld, kicked, pushed;
    uint32_t references_at_push; /* of the guard, at the last push */
    /* kicks served, by worker */
    int served[SCENE_WORKERS];
};

/* The settings above. */
struct wf_tuning scene_tuning(void);

/* Makes all of it; no lock is held. `tuning` NULL: scene_tuning(). */
void scene_begin(struct scene *scene, const struct wf_tuning *tuning);
void scene_end(struct scene *scene);

/* For cmocka: `*state` is a scene with the settings above. The `locked` ones hold the guard's lock during the test. */
int scene_set_up(void **state);
int scene_tear_down(void **state);
int scene_set_up_locked(void **state);
int scene_tear_down_locked(void **state);

/* The next poll of the worker's engine gives `op`. */
void scene_finish(struct scene *scene, int worker, struct wf_op *op);

/* A connection that is OPEN, opened by this side; the peer takes introductions up to `limit`. Lock held. */
struct weft_connection *scene_connect(struct scene *scene, uint32_t number, uint64_t limit);

#endif
