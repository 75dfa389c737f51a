/*
 * loop_sim.c: the simulated world. The library blocks where it always does: a caller that waits holds the token of its
 * context's worker and polls that worker's engine. That poll is where the rest of the world goes on: it turns every
 * door and every other worker once, and moves time when nobody has found anything to do.
 */
#include "loop_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/calls/context.h"
#include "core/calls/registering.h"
#include "core/device/registration.h"
#include "core/drive/worker.h"
#include "core/join/door.h"
#include "core/session/session.h"
#include "loop_sim.h"
#include "sim.h"
#include "sim_memory.h"

#define CONTEXTS_MAX 8
#define DEVICES 3
#define STEP_NS WF_NS_PER_MS /* most that time moves at once: waits end when they should */

/* Spinning would be turns in which the others cannot move. */
const char *const loop_world_settings = "workers=shared spin_us=0";
const bool loop_world_simulated = true;

/* Owner: the test's thread. The simulation begins with the first context and ends with the last one. */
static struct wf_sim *sim;
static struct weft_context *contexts[CONTEXTS_MAX];
static int context_count;
static int open_engines;
static uint64_t seed = 1;
static bool turning;
static struct wf_sim_memory *memory; /* NULL: no devices; outlives simulations, as do buffers */

/* --- the world goes on --- */

static int64_t next_timer(void)
{
    int64_t next = WF_NEVER;
    for (int i = 0; i < context_count; i++) {
        int64_t visit = atomic_load(&contexts[i]->world.alarm.due_ns);
        next = visit < next ? visit : next;
    }
    return next;
}

static void move_time(void)
{
    int64_t now = wf_sim_now(sim), until = wf_sim_next_event(sim), timer = next_timer();
    if (until <= now)
        return;
    until = timer < until ? timer : until;
    if (until > now + STEP_NS)
        until = now + STEP_NS;
    wf_sim_advance(sim, until > now ? until : now + WF_NS_PER_US);
}

/* Whose token is taken is being driven by the caller further up. */
static int drive(struct weft_context *context)
{
    struct wf_worker *worker = context->crew.workers[0];
    int handled = wf_door_drive(context->door, 0);
    if (wf_worker_try(worker)) {
        handled += wf_worker_drive(worker, 0);
        wf_worker_leave(worker);
    }
    return handled;
}

static void turn(void)
{
    int handled = 0;
    turning = true;
    for (int i = 0; i < context_count; i++)
        handled += drive(contexts[i]);
    if (handled == 0)
        move_time();
    turning = false;
}

/* --- the engine: the simulator's, with a poll that waits --- */

static struct wf_engine_ops ops;

static int patient_poll(struct wf_engine *engine, struct wf_op **finished, int max, int64_t timeout_ns)
{
    int count = wf_engine_sim.poll(engine, finished, max, 0);
    if (count > 0 || timeout_ns == 0 || turning)
        return count;
    turn();
    return wf_engine_sim.poll(engine, finished, max, 0);
}

static int counted_open(void *host, const struct wf_engine_limits *limits, struct wf_engine **out,
                        struct wf_status *status)
{
    int result = wf_engine_sim.open(host, limits, out, status);
    if (result < 0)
        return result;
    (*out)->ops = &ops;
    open_engines += 1;
    return 0;
}

static struct wf_engine *innermost(struct wf_engine *engine)
{
    return wf_fault_within(wf_seal_within(engine));
}

static bool has_engine(const struct weft_context *context, const struct wf_engine *engine)
{
    return innermost(context->door->engine) == engine || innermost(context->crew.workers[0]->engine) == engine;
}

/* A context whose first engine is closed is being destroyed: the world no longer turns it. */
static void counted_close(struct wf_engine *engine)
{
    for (int i = 0; i < context_count; i++) {
        if (has_engine(contexts[i], engine)) {
            contexts[i] = contexts[--context_count];
            break;
        }
    }
    wf_engine_sim.close(engine);
    if (--open_engines > 0)
        return;
    if (memory)
        wf_sim_memory_join(memory, NULL);
    wf_sim_destroy(sim);
    sim = NULL;
}

/* --- the seam --- */

/* After tests that went well nothing is left on a device. */
static void check_memory(int status, void *unused)
{
    uint64_t out = 0, in = 0;
    (void)unused;
    for (int i = 0; i < DEVICES; i++) {
        struct wf_sim_memory_counts counts = wf_sim_memory_counts(memory, i);
        out += counts.copies[WF_COPY_OUT];
        in += counts.copies[WF_COPY_IN];
    }
    printf("copies: %llu out, %llu in\n", (unsigned long long)out, (unsigned long long)in);
    if (status == 0)
        wf_sim_memory_destroy(memory);
}

struct wf_sim_memory *loop_sim_memory(void)
{
    if (memory)
        return memory;
    memory = wf_sim_memory_create(&(struct wf_sim_memory_options){.seed = seed, .devices = DEVICES});
    if (!memory || on_exit(check_memory, NULL) != 0)
        abort();
    if (sim)
        wf_sim_memory_join(memory, sim);
    return memory;
}

void loop_world_begin(bool device_memory)
{
    const char *text = getenv("LOOP_SEED");
    if (text)
        seed = strtoull(text, NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    ops = wf_engine_sim;
    ops.poll = patient_poll;
    ops.open = counted_open;
    ops.close = counted_close;
    if (device_memory)
        loop_sim_memory();
}

/* Buffers as sockets have them: the contract suite and the model see to tiny ones. */
static int begin_simulation(struct wf_status *status)
{
    struct wf_sim_options options = {
        .seed = seed++, .buffer_min = 16 * 1024, .buffer_max = 1024 * 1024, .delay_max_ns = 200 * WF_NS_PER_US};
    if (sim)
        return 0;
    sim = wf_sim_create(&options);
    if (!sim)
        return wf_fail(status, -ENOMEM, "no memory for a simulation");
    if (memory)
        wf_sim_memory_join(memory, sim);
    return 0;
}

int loop_world_context(const struct weft_config *config, struct weft_context **out, struct weft_error *err)
{
    struct wf_status *status = wf_status_of(err);
    if (context_count == CONTEXTS_MAX)
        return wf_fail(status, -ENOMEM, "the simulated world has room for %d contexts", CONTEXTS_MAX);
    int result = begin_simulation(status);
    if (result < 0)
        return result;
    struct wf_environment environment = {
        .engine = &ops, .engine_host = sim, .clock = wf_sim_clock(sim), .seed = wf_sim_random(sim) | 1, .manual = true};
    if (memory) {
        environment.memory = &wf_memory_sim;
        environment.memory_host = memory;
    }
    result = wf_context_create(&config->values, &environment, out, status);
    if (result < 0)
        return result;
    /* No threads were started; from here on callers drive, as they do beside threads. */
    (*out)->world.manual = false;
    contexts[context_count++] = *out;
    return 0;
}

void loop_world_context_end(struct weft_context *context)
{
    weft_context_destroy(context);
}

int loop_world_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                       struct weft_error *err)
{
    struct wf_dial dial;
    int result = wf_dial_init(&dial, &context->world, address, timeout_ms, wf_status_of(err));
    if (result < 0)
        return result;
    wf_door_dial(context->door, &dial);
    while (!dial.done)
        turn();
    if (dial.status.code < 0) {
        *wf_status_of(err) = dial.status;
        return dial.status.code;
    }
    *out = &dial.session->peer;
    return 0;
}

int loop_world_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err)
{
    int64_t deadline_ns = wf_deadline_after_ms(wf_sim_now(sim), timeout_ms);
    int result;
    while ((result = weft_accept(context, 0, out, err)) == -ETIMEDOUT && wf_sim_now(sim) < deadline_ns)
        turn();
    return result;
}

int loop_world_devices(void)
{
    return DEVICES;
}

void *loop_world_take(int device, size_t bytes)
{
    void *taken = wf_sim_memory_take(loop_sim_memory(), device, bytes);
    if (!taken)
        abort();
    return taken;
}

void loop_world_give(int device, void *taken)
{
    (void)device;
    wf_sim_memory_give(memory, taken);
}

void loop_world_copy(void *to, const void *from, size_t bytes)
{
    wf_sim_memory_copy(memory, to, from, bytes);
}

/* The call sleeps until nobody uses the memory any more: here somebody has to make that happen first. */
void loop_world_deregister(struct weft_registration *registration)
{
    wf_registration_end(registration);
    while (atomic_load(&registration->uses) != WF_REGISTRATION_ENDED)
        turn();
    weft_deregister(registration);
}

void loop_world_flip(uint64_t ahead)
{
    int fd = wf_sim_pick_connection(sim);
    if (fd >= 0)
        wf_sim_flip(sim, fd, wf_sim_bytes_read(sim, fd) + ahead, (uint8_t)(1u << wf_sim_random(sim) % 8));
}

/* Who asks for the time again and again waits for something. */
int64_t loop_world_now_ns(void)
{
    if (!sim)
        return 0;
    turn();
    return wf_sim_now(sim);
}

void loop_world_sleep_ns(int64_t duration_ns)
{
    int64_t until_ns = wf_sim_now(sim) + duration_ns;
    while (wf_sim_now(sim) < until_ns)
        turn();
}
