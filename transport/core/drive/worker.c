#include "core/drive/worker.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "affinity/pin.h"
#include "base/limits.h"

#define OPS_AT_ONCE 32
#define WHY_BYTES 320
#define ROUNDS_UNTOLD 8 /* a busy worker tells of disposals after so many rounds: the peer's senders wait for them */
#define PARK_MIN_NS (200 * WF_NS_PER_US)
#define PARK_MAX_NS (1 * WF_NS_PER_MS)
#define PARK_NEAR_NS (4 * WF_NS_PER_MS)  /* longest rest while callers keep driving and nothing large is under way */
#define NEAR_RESTS 16                    /* PARK_NEAR_NS needs so many rests in a row without anything large, */
#define NEAR_TURN_NS (20 * WF_NS_PER_US) /* and a turn of a caller at least this often */
#define REST_NS (1 * WF_NS_PER_S)
#define COPIES_NS (20 * WF_NS_PER_US) /* longest rest while device copies are under way: their end wakes no engine */

int wf_worker_create(struct wf_crew *crew, int index, struct wf_worker **out, struct wf_status *status)
{
    struct wf_worker *worker = calloc(1, sizeof *worker);
    if (!worker)
        return wf_fail(status, -ENOMEM, "no memory for a worker");
    const struct wf_world *world = crew->world;
    worker->crew = crew;
    worker->index = index;
    worker->descriptor = worker->nudge = -1;
    worker->shared = world->shared || (crew->express > 0 && index == crew->express);
    const char *role = worker->shared ? "worker" : index % 2 ? "rx" : "tx";
    snprintf(worker->name, sizeof worker->name, "weft-%s%u", role, worker->shared ? 0 : (unsigned)index / 2 % 100);
    pthread_mutex_init(&worker->mail_lock, NULL);
    sem_init(&worker->entered, 0, 0);
    wf_list_init(&worker->kicked);
    wf_list_init(&worker->untold);
    wf_list_init(&worker->awaited);
    struct wf_engine_limits limits = {
        .call_bytes = world->tuning.call,
        .pinned = !worker->shared,
        .zero_copy = world->tuning.zero_copy,
        .read_ahead = world->tuning.read_ahead,
    };
    bool own = worker->shared && crew->express_engine;
    const struct wf_engine_ops *ops = own ? crew->express_engine : world->engine_ops;
    worker->sink = malloc(WF_SINK_BYTES);
    int result = worker->sink ? ops->open(own ? NULL : world->engine_host, &limits, &worker->engine, status)
                              : wf_fail(status, -ENOMEM, "no memory for a worker");
    if (result < 0) {
        wf_worker_destroy(worker);
        return result;
    }
    if (worker->shared && ops->descriptor)
        worker->nudge = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (worker->nudge >= 0)
        worker->descriptor = ops->descriptor(worker->engine);
    *out = worker;
    return 0;
}

void wf_worker_destroy(struct wf_worker *worker)
{
    if (!worker)
        return;
    if (worker->engine)
        worker->engine->ops->close(worker->engine);
    pthread_mutex_destroy(&worker->mail_lock);
    sem_destroy(&worker->entered);
    if (worker->nudge >= 0)
        close(worker->nudge);
    free(worker->sink);
    free(worker);
}

/* --- one round --- */

static int poll_once(struct wf_worker *worker, int64_t timeout_ns)
{
    struct wf_op *finished[OPS_AT_ONCE];
    int count = worker->engine->ops->poll(worker->engine, finished, OPS_AT_ONCE, timeout_ns);
    for (int i = 0; i < count; i++) {
        struct wf_task *task = finished[i]->context;
        task->ended(task);
        wf_worker_ring_bells(worker);
    }
    return count > 0 ? count : 0;
}

/* Tells what is untold, unless a lent worker can leave it to frames that go out soon, or to its thread. */
static void tell(struct wf_worker *worker, bool lent)
{
    const struct wf_chores *chores = &worker->crew->chores;
    chores->tell(worker, &worker->awaited);
    if (!lent || atomic_load_explicit(&worker->tell_all, memory_order_relaxed)) {
        atomic_store_explicit(&worker->tell_all, false, memory_order_relaxed);
        chores->tell(worker, &worker->untold);
    }
    wf_worker_ring_bells(worker);
    worker->rounds_untold = 0;
}

/* May the round not sleep? Who rings the bell sets one of these first; a look of this round may have taken the ring. */
static bool is_called(const struct wf_worker *worker, const _Atomic uint32_t *call)
{
    return (call && atomic_load(call) != 0) || atomic_load(&worker->stopping);
}

/* `lent`: see wf_worker_drive_lent(); `call`: wf_worker_drive_until(), or NULL. */
static int drive(struct wf_worker *worker, int64_t timeout_ns, bool lent, const _Atomic uint32_t *call)
{
    const struct wf_chores *chores = &worker->crew->chores;
    int handled = wf_worker_serve_kicks(worker);
    handled += chores->drive(chores->devices, worker);
    wf_worker_ring_bells(worker); /* of the workers that send what a copy has made ready */
    handled += poll_once(worker, 0);
    bool untold = !wf_list_empty(&worker->untold) || !wf_list_empty(&worker->awaited);
    worker->rounds_untold = untold ? worker->rounds_untold + 1 : 0;
    if (untold && (handled == 0 || worker->rounds_untold > ROUNDS_UNTOLD))
        tell(worker, lent);
    handled += wf_worker_serve_kicks(worker);
    if (worker->answer_comes) {
        worker->answer_comes = false;
        handled += poll_once(worker, 0);
        handled += wf_worker_serve_kicks(worker);
    }
    if (handled == 0 && timeout_ns != 0 && !is_called(worker, call)) {
        if (chores->busy(chores->devices, worker) && (timeout_ns < 0 || timeout_ns > COPIES_NS))
            timeout_ns = COPIES_NS;
        handled += poll_once(worker, timeout_ns);
        handled += wf_worker_serve_kicks(worker);
    }
    return handled;
}

int wf_worker_drive(struct wf_worker *worker, int64_t timeout_ns)
{
    return drive(worker, timeout_ns, false, NULL);
}

int wf_worker_drive_until(struct wf_worker *worker, int64_t timeout_ns, const _Atomic uint32_t *call)
{
    return drive(worker, timeout_ns, false, call);
}

/* --- the token --- */

static bool take_token(struct wf_worker *worker, uint32_t as)
{
    uint32_t expected = WF_TOKEN_FREE;
    return atomic_compare_exchange_strong(&worker->token, &expected, as);
}

bool wf_worker_try(struct wf_worker *worker)
{
    return take_token(worker, WF_TOKEN_CALLER);
}

void wf_worker_want(struct wf_worker *worker)
{
    if (atomic_load(&worker->token) != WF_TOKEN_THREAD)
        return;
    atomic_store(&worker->wanted, 1);
    worker->engine->ops->wake(worker->engine);
}

void wf_worker_recall(struct wf_worker *worker)
{
    if (atomic_load(&worker->token) != WF_TOKEN_FREE || atomic_exchange(&worker->park, WF_PARK_END) == WF_PARK_END)
        return;
    syscall(SYS_futex, &worker->park, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Ends the sleep of a thread that sleeps outside. */
static void nudge(struct wf_worker *worker)
{
    uint64_t one = 1;
    if (atomic_exchange(&worker->outside, false))
        while (write(worker->nudge, &one, sizeof one) < 0 && errno == EINTR)
            ;
}

/* Is there something to do of which the engine knows nothing? Token held. */
static bool owes(const struct wf_worker *worker)
{
    const struct wf_chores *chores = &worker->crew->chores;
    return !wf_list_empty(&worker->awaited) || chores->busy(chores->devices, worker);
}

/* Will the descriptor tell of the next thing to do, and is there none now? Token held. */
static bool rests(struct wf_worker *worker)
{
    return !owes(worker) && worker->engine->ops->rest(worker->engine, false) == 0;
}

int wf_worker_drive_lent(struct wf_worker *worker)
{
    bool just_driven = worker->driven;
    worker->driven = false;
    bool tell_all = atomic_load_explicit(&worker->tell_all, memory_order_relaxed);
    /* What has come since that round makes the descriptor readable. */
    if (just_driven && !tell_all && wf_worker_serve_kicks(worker) == 0 && rests(worker))
        return 0;
    int handled = drive(worker, 0, true, NULL);
    worker->driven = handled > 0;
    return handled;
}

bool wf_worker_rest(struct wf_worker *worker)
{
    worker->driven = false;
    worker->engine->ops->rest(worker->engine, true);
    return !owes(worker);
}

void wf_worker_lend(struct wf_worker *worker, bool lent)
{
    if (atomic_exchange(&worker->lent, lent) == lent)
        return;
    if (lent)
        wf_worker_want(worker); /* a thread that sleeps in the engine lets go */
    else
        nudge(worker);
}

void wf_worker_leave(struct wf_worker *worker)
{
    do {
        /* The thread went to sleep when nothing was to be done, but this caller may leave something undone. */
        if (atomic_load_explicit(&worker->outside, memory_order_seq_cst) &&
            !(wf_list_empty(&worker->untold) && rests(worker)))
            nudge(worker);
        uint32_t as = atomic_load_explicit(&worker->token, memory_order_relaxed);
        atomic_store_explicit(&worker->token, WF_TOKEN_FREE, memory_order_seq_cst);
        /* This thread must serve a kick that came after its last look: no other thread may do so soon. */
        if (!atomic_load_explicit(&worker->has_mail, memory_order_seq_cst) || !take_token(worker, as))
            break;
        wf_worker_serve_kicks(worker);
    } while (true);
    const struct wf_chores *chores = &worker->crew->chores;
    chores->token_free(chores->waiting);
}

/* --- the thread --- */

static void park(struct wf_worker *worker, int64_t rest_ns)
{
    atomic_store(&worker->rests_long, rest_ns > PARK_MAX_NS);
    if (rest_ns > PARK_MAX_NS &&
        atomic_load(&worker->crew->large_out) >
            0) { /* a caller that raises large_out after this load sees rests_long and wakes this thread */
        atomic_store(&worker->rests_long, false);
        rest_ns = PARK_MAX_NS;
    }
    struct timespec rest = {.tv_sec = 0, .tv_nsec = rest_ns};
    if (!atomic_load(&worker->stopping))
        syscall(SYS_futex, &worker->park, FUTEX_WAIT_PRIVATE, WF_PARK_REST, &rest, NULL, 0);
    atomic_store(&worker->rests_long, false);
}

/* How long to rest after a rest of `last_ns` in which callers took `turns` turns; `calm`: rests in a row without
 * anything large. */
static int64_t next_rest(int64_t last_ns, uint32_t turns, int calm)
{
    int64_t longest = calm >= NEAR_RESTS && turns >= last_ns / NEAR_TURN_NS ? PARK_NEAR_NS : PARK_MAX_NS;
    return last_ns * 2 < longest ? last_ns * 2 : longest;
}

void wf_worker_stay_near(struct wf_worker *worker)
{
    uint32_t rests = WF_PARK_REST;
    if (atomic_load(&worker->rests_long) && atomic_compare_exchange_strong(&worker->park, &rests, WF_PARK_LESS))
        syscall(SYS_futex, &worker->park, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Looks for events; once it is time to sleep, does so in the engine. */
static void take_turn(struct wf_worker *worker, struct wf_watch *watch)
{
    int64_t now = wf_world_now(worker->crew->world);
    int events = wf_worker_drive_until(worker, wf_watch_over(watch, now) ? REST_NS : 0, &worker->wanted);
    wf_watch_saw(watch, events, events > 0 ? wf_world_now(worker->crew->world) : now);
}

/* Spins a little after each event, then sleeps in the engine. */
static void drive_until_wanted(struct wf_worker *worker)
{
    const struct wf_world *world = worker->crew->world;
    struct wf_watch watch;
    wf_watch_begin(&watch, &worker->spin, world->tuning.spin_ns, wf_world_now(world));
    while (!atomic_load(&worker->stopping) && !atomic_load(&worker->wanted))
        take_turn(worker, &watch);
    wf_worker_leave(worker);
}

/* What callers have left to frames and looks that come soon has waited for one rest: it waits no longer. */
static void note_rest(struct wf_worker *worker)
{
    const struct wf_chores *chores = &worker->crew->chores;
    atomic_store(&worker->tell_all, true);
    chores->resting(chores->waiting);
}

/* Lent: drives until nothing is left to do, and sleeps without the token. */
static void sleep_outside(struct wf_worker *worker)
{
    const struct wf_chores *chores = &worker->crew->chores;
    bool resting = false;
    while (!resting && !atomic_load(&worker->stopping) && !atomic_load(&worker->wanted)) {
        int64_t wait_ns = chores->busy(chores->devices, worker) ? COPIES_NS : 0;
        resting = wf_worker_drive(worker, wait_ns) == 0 && rests(worker);
    }
    if (!resting)
        (void)wf_worker_rest(worker);        /* the caller who wants the token may sleep before it drives */
    atomic_store(&worker->outside, resting); /* before the token is free: a caller that leaves must see it */
    wf_worker_leave(worker);
    note_rest(worker);
    struct pollfd events[2] = {{.fd = worker->descriptor, .events = POLLIN}, {.fd = worker->nudge, .events = POLLIN}};
    if (resting && !atomic_load(&worker->stopping))
        poll(events, 2, REST_NS / WF_NS_PER_MS);
    atomic_store(&worker->outside, false);
    uint64_t count;
    if (events[1].revents & POLLIN)
        while (read(worker->nudge, &count, sizeof count) < 0 && errno == EINTR)
            ;
}

/* The thread of a shared worker: drives while no caller does. */
static void run_shared(struct wf_worker *worker)
{
    uint32_t seen = atomic_load(&worker->caller_turns);
    int64_t rest = PARK_MIN_NS;
    int calm = 0;
    while (!atomic_load(&worker->stopping)) {
        uint32_t turns = atomic_load(&worker->caller_turns), told = atomic_exchange(&worker->park, WF_PARK_REST);
        bool large = told == WF_PARK_LESS || atomic_load(&worker->crew->large_out) > 0;
        bool callers = (atomic_exchange(&worker->wanted, 0) != 0 || turns != seen) && told != WF_PARK_END;
        calm = large ? 0 : calm < NEAR_RESTS ? calm + 1 : calm;
        seen = turns;
        if (!callers && take_token(worker, WF_TOKEN_THREAD)) {
            rest = PARK_MIN_NS;
            if (atomic_load(&worker->lent))
                sleep_outside(worker);
            else
                drive_until_wanted(worker);
        }
        if (atomic_load(&worker->lent))
            note_rest(worker);
        park(worker, rest);
        rest = next_rest(rest, atomic_load(&worker->caller_turns) - seen, calm);
    }
}

/* The thread of a worker that is not shared: spins a little after each event, then sleeps in the engine. */
static void run_alone(struct wf_worker *worker)
{
    const struct wf_world *world = worker->crew->world;
    take_token(worker, WF_TOKEN_THREAD);
    struct wf_watch watch;
    wf_watch_begin(&watch, &worker->spin, world->tuning.spin_ns, wf_world_now(world));
    while (!atomic_load(&worker->stopping))
        take_turn(worker, &watch);
    atomic_store(&worker->token, WF_TOKEN_FREE);
}

/* Pins the thread to its CPUs: the first thing that it does. 0, or an error where pin = require. */
static int bind_thread(struct wf_worker *worker, struct wf_status *status)
{
    struct wf_world *world = worker->crew->world;
    const struct wf_placement *placement = &worker->crew->placement;
    char why[WHY_BYTES];
    if (!placement->cpus || wf_cpus_count(&placement->cpus[worker->index]) == 0)
        return 0;
    int result = wf_pin_thread(&placement->cpus[worker->index], why, sizeof why);
    if (result == 0)
        return 0;
    if (placement->pin == WF_PIN_REQUIRE)
        return wf_fail(status, result, "pin = require: thread %s: %s", worker->name, why);
    if (strstr(world->fallbacks, why))
        return 0; /* one line is enough for all threads with this reason: there is no room for 32 lines */
    wf_world_fallback(world, "pin: thread %s is where the system puts it, %s", worker->name, why);
    return 0;
}

static void *run(void *argument)
{
    struct wf_worker *worker = argument;
    pthread_setname_np(pthread_self(), worker->name);
    worker->tid = (int)syscall(SYS_gettid);
    int result = bind_thread(worker, &worker->refusal);
    sem_post(&worker->entered);
    if (result < 0)
        return NULL;
    if (worker->shared)
        run_shared(worker);
    else
        run_alone(worker);
    return NULL;
}

int wf_worker_start(struct wf_worker *worker, struct wf_status *status)
{
    int result = pthread_create(&worker->thread, NULL, run, worker);
    char remedy[160];
    if (result != 0)
        return wf_fail(status, -result, "cannot start a worker thread: %s; %s", wf_strerror(result),
                       wf_thread_remedy(remedy, sizeof remedy));
    worker->has_thread = true;
    while (sem_wait(&worker->entered) != 0)
        continue; /* a signal */
    if (worker->refusal.code)
        *status = worker->refusal;
    return worker->refusal.code;
}

void wf_worker_stop(struct wf_worker *worker)
{
    if (!worker->has_thread)
        return;
    atomic_store(&worker->stopping, true);
    nudge(worker);
    atomic_store(&worker->park, WF_PARK_END);
    syscall(SYS_futex, &worker->park, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    worker->engine->ops->wake(worker->engine);
    pthread_join(worker->thread, NULL);
    worker->has_thread = false;
}
