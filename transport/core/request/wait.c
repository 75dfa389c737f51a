#include "core/request/wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/drive/worker.h"
#include "core/ground/refusal.h"
#include "core/request/book.h"
#include "core/request/request.h"
#include "core/request/tray.h"

#define WAKES_AT_ONCE 16
#define LONGEST_SLEEP_NS (100 * WF_NS_PER_MS)
#define LOOKS_PER_TIME 4 /* looks that find nothing, for one look at the clock */

/* The requests of one waiting caller. */
struct wait {
    struct wf_waiting *waiting;
    struct wf_tray *tray; /* waits for this, and not for requests; NULL: for requests */
    struct weft_request *const *requests;
    int count;
    int64_t deadline_ns;
    int next; /* where the next search begins, so that every request gets its turn */
};

static void wake(void *waiting)
{
    wf_wait_wake(waiting);
}

static bool token_free(void *waiting)
{
    return wf_wait_token_free(waiting);
}

/* The lent worker's thread is about to rest: what its user has not looked for by now is shown. */
static void resting(void *argument)
{
    struct wf_waiting *waiting = argument;
    pthread_mutex_lock(&waiting->lock);
    struct wf_tray *tray = waiting->lent;
    if (tray)
        wf_tray_hold(tray);
    pthread_mutex_unlock(&waiting->lock);
    if (!tray)
        return;
    wf_tray_settle(tray);
    wf_tray_let_go(tray);
}

void wf_waiting_init(struct wf_waiting *waiting, struct wf_crew *crew)
{
    waiting->world = crew->world;
    waiting->crew = crew;
    wf_world_on_wake(waiting->world, wake, waiting);
    wf_crew_callers(crew, waiting, token_free, resting);
    pthread_mutex_init(&waiting->lock, NULL);
    wf_list_init(&waiting->waiters);
    wf_list_init(&waiting->poked);
    wf_list_init(&waiting->signals);
    wf_list_init(&waiting->queues);
}

void wf_waiting_fini(struct wf_waiting *waiting)
{
    pthread_mutex_destroy(&waiting->lock);
}

/*
 * `word` is wf_waiter.poked of a thread that was told (it is 1) and may have left: the kernel compares addresses and
 * does not read the word. Another thread that sleeps at this address by now wakes, and looks at its own word.
 */
static void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool wf_wait_completed(struct wf_waiting *waiting, struct weft_request *request)
{
    if (!atomic_load_explicit(&request->waiter, memory_order_seq_cst))
        return false;
    pthread_mutex_lock(&waiting->lock);
    struct wf_waiter *waiter = atomic_load(&request->waiter);
    bool self = waiter && waiter->drives && pthread_equal(waiter->thread, pthread_self());
    bool wake = waiter && !self && atomic_exchange(&waiter->poked, 1) == 0;
    if (wake && waiter->drives)
        waiting->bell_due = true;
    else if (wake)
        wf_list_push_back(&waiting->poked, &waiter->poked_link);
    pthread_mutex_unlock(&waiting->lock);
    return wake;
}

void wf_wait_wake(struct wf_waiting *waiting)
{
    for (;;) {
        _Atomic uint32_t *words[WAKES_AT_ONCE];
        struct wf_tray *tray = NULL;
        struct wf_link *link;
        int count = 0;
        pthread_mutex_lock(&waiting->lock);
        while (count < WAKES_AT_ONCE && (link = wf_list_pop_front(&waiting->poked)))
            words[count++] = &WF_CONTAINER(link, struct wf_waiter, poked_link)->poked;
        bool ring = waiting->bell_due;
        waiting->bell_due = false;
        if ((link = wf_list_pop_front(&waiting->signals))) {
            tray = WF_CONTAINER(link, struct wf_tray, signal_link);
            wf_tray_hold(tray);
        }
        pthread_mutex_unlock(&waiting->lock);
        if (ring)
            wf_wait_ring(waiting);
        if (count == 0 && !tray)
            return;
        for (int i = 0; i < count; i++)
            futex_wake(words[i]);
        if (tray)
            wf_tray_signal(tray);
    }
}

bool wf_wait_poke(struct wf_waiting *waiting, struct wf_list *sleepers)
{
    WF_LIST_EACH (link, following, sleepers) {
        struct wf_waiter *waiter = WF_CONTAINER(link, struct wf_waiter, tray_link);
        if (waiter->drives && pthread_equal(waiter->thread, pthread_self()))
            return false; /* this thread drives, and looks as soon as it has done what it is about */
        if (atomic_exchange(&waiter->poked, 1) != 0)
            continue;
        if (waiter->drives)
            waiting->bell_due = true;
        else
            wf_list_push_back(&waiting->poked, &waiter->poked_link);
        return true;
    }
    return false;
}

void wf_wait_ring(struct wf_waiting *waiting)
{
    struct wf_worker *worker = waiting->crew->count > 0 ? wf_crew_callers_own(waiting->crew) : NULL;
    if (worker)
        worker->engine->ops->wake(worker->engine);
}

/* The next waiter in turn that was told nothing yet: a waiter that was told is about to leave. wf_waiting.lock held. */
static struct wf_waiter *next_in_turn(struct wf_waiting *waiting)
{
    WF_LIST_EACH (link, following, &waiting->waiters) {
        struct wf_waiter *waiter = WF_CONTAINER(link, struct wf_waiter, link);
        if (atomic_exchange(&waiter->poked, 1) != 0)
            continue;
        wf_link_remove(link);
        wf_list_push_back(&waiting->waiters, link);
        return waiter;
    }
    return NULL;
}

bool wf_wait_token_free(struct wf_waiting *waiting)
{
    if (atomic_load_explicit(&waiting->waiter_count, memory_order_seq_cst) == 0)
        return false;
    pthread_mutex_lock(&waiting->lock);
    struct wf_waiter *waiter = next_in_turn(waiting);
    _Atomic uint32_t *word = waiter ? &waiter->poked : NULL;
    pthread_mutex_unlock(&waiting->lock);
    if (word)
        futex_wake(word);
    return word != NULL;
}

/* The index of an ended request, or -1. */
static int find_done(struct wait *wait)
{
    if (wait->tray)
        return wf_tray_holds(wait->tray) ? 0 : -1;
    for (int i = 0; i < wait->count; i++) {
        int index = wait->next + i;
        if (index >= wait->count)
            index -= wait->count;
        struct weft_request *request = wait->requests[index];
        if (request && atomic_load_explicit(&request->done, memory_order_seq_cst)) {
            wait->next = index + 1;
            return index;
        }
    }
    return -1;
}

/* wf_waiting.lock held. */
static void enter_tray(struct wf_tray *tray, struct wf_waiter *waiter)
{
    wf_list_push_back(&tray->sleepers, &waiter->tray_link);
    atomic_fetch_add(&tray->sleeper_count, 1);
}

/* wf_waiting.lock held. */
static void leave_tray(struct wf_tray *tray, struct wf_waiter *waiter)
{
    wf_link_remove(&waiter->tray_link);
    atomic_fetch_sub(&tray->sleeper_count, 1);
}

static void set_waiter(struct wait *wait, struct wf_waiter *waiter)
{
    for (int i = 0; i < wait->count; i++)
        if (wait->requests[i])
            atomic_store_explicit(&wait->requests[i]->waiter, waiter, memory_order_seq_cst);
}

static void futex_sleep(struct wf_waiter *waiter, int64_t until_ns)
{
    struct timespec until = {.tv_sec = until_ns / WF_NS_PER_S, .tv_nsec = until_ns % WF_NS_PER_S};
    /* FUTEX_WAIT_BITSET takes an absolute CLOCK_MONOTONIC time. */
    syscall(SYS_futex, &waiter->poked, FUTEX_WAIT_BITSET_PRIVATE, 0, until_ns == WF_NEVER ? NULL : &until, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

/* Sleeps until a request ends, the token is free, or the deadline has passed. */
static void sleep_until_poked(struct wait *wait)
{
    struct wf_waiting *waiting = wait->waiting;
    struct wf_waiter waiter = {.poked = 0};
    wf_link_init(&waiter.poked_link);
    pthread_mutex_lock(&waiting->lock);
    wf_list_push_back(&waiting->waiters, &waiter.link);
    atomic_fetch_add(&waiting->waiter_count, 1);
    if (wait->tray)
        enter_tray(wait->tray, &waiter);
    set_waiter(wait, &waiter);
    pthread_mutex_unlock(&waiting->lock);

    const struct wf_worker *worker = wf_crew_callers_own(waiting->crew);
    bool token_free = worker && atomic_load(&worker->token) == WF_TOKEN_FREE;
    if (find_done(wait) < 0 && !token_free)
        futex_sleep(&waiter, wait->deadline_ns);

    pthread_mutex_lock(&waiting->lock);
    set_waiter(wait, NULL);
    if (wait->tray)
        leave_tray(wait->tray, &waiter);
    wf_link_remove(&waiter.link);
    wf_link_remove(&waiter.poked_link);
    atomic_fetch_sub(&waiting->waiter_count, 1);
    pthread_mutex_unlock(&waiting->lock);
}

/* Tells the worker's thread that callers drive. Token held: only its holder writes `caller_turns` here. */
static void note_turn(struct wf_worker *worker)
{
    uint32_t turns = atomic_load_explicit(&worker->caller_turns, memory_order_relaxed);
    atomic_store_explicit(&worker->caller_turns, turns + 1, memory_order_relaxed);
}

/* One round, token held. While it sleeps, the thread is told of what others put into its tray, and of requests that
 * these end: workers of rails, and callers that cancel or close. */
static int drive_and_sleep(struct wait *wait, struct wf_worker *worker, int64_t rest_ns)
{
    struct wf_waiting *waiting = wait->waiting;
    if (rest_ns == 0)
        return wf_worker_drive(worker, 0);
    struct wf_waiter waiter = {.drives = true, .thread = pthread_self()};
    pthread_mutex_lock(&waiting->lock);
    if (wait->tray)
        enter_tray(wait->tray, &waiter);
    set_waiter(wait, &waiter);
    pthread_mutex_unlock(&waiting->lock);
    int events = wf_worker_drive_until(worker, find_done(wait) >= 0 ? 0 : rest_ns, &waiter.poked);
    pthread_mutex_lock(&waiting->lock);
    set_waiter(wait, NULL);
    if (wait->tray)
        leave_tray(wait->tray, &waiter);
    pthread_mutex_unlock(&waiting->lock);
    return events;
}

/* Drives the worker, its token held, until a request has ended or the deadline has passed. */
static int drive_until_done(struct wait *wait, struct wf_worker *worker)
{
    struct wf_waiting *waiting = wait->waiting;
    int64_t now = wf_world_now(waiting->world);
    struct wf_watch watch;
    wf_watch_begin(&watch, &worker->spin, waiting->world->tuning.spin_ns, now);
    for (unsigned looks = 0;; looks++) {
        note_turn(worker);
        int index = find_done(wait);
        if (index >= 0 || now >= wait->deadline_ns || atomic_load(&worker->stopping))
            return index;
        int64_t rest = 0;
        if (wf_watch_over(&watch, now)) {
            rest = wait->deadline_ns - now;
            if (rest > LONGEST_SLEEP_NS)
                rest = LONGEST_SLEEP_NS;
        }
        int events = drive_and_sleep(wait, worker, rest);
        /* `now` is from before the drive: reading the clock again would delay the caller whose event has come. */
        wf_watch_saw(&watch, events, now);
        index = events > 0 ? find_done(wait) : -1;
        if (index >= 0)
            return index;
        if (events > 0 || rest > 0 || looks % LOOKS_PER_TIME == 0) /* reading the clock takes as long as a look */
            now = wf_world_now(waiting->world);
    }
}

/* Where rails have workers of their own, threads end requests while another caller drives: looks a little for that.
 * False: it is time to sleep. */
static bool look_beside(struct wait *wait, const struct wf_worker *worker)
{
    if (wait->waiting->world->shared)
        return false;
    int64_t now = wf_world_now(wait->waiting->world);
    struct wf_watch watch;
    wf_watch_begin(&watch, &wait->waiting->caller_spin, wait->waiting->world->tuning.spin_ns, now);
    for (;;) {
        bool over = now >= wait->deadline_ns || atomic_load(&worker->token) == WF_TOKEN_FREE;
        bool found = find_done(wait) >= 0;
        wf_watch_saw(&watch, found, now);
        if (found || over)
            return true;
        if (wf_watch_over(&watch, now))
            return false;
        now = wf_world_now(wait->waiting->world);
    }
}

static int wait_driving(struct wait *wait, struct wf_worker *worker)
{
    for (;;) {
        int index = find_done(wait);
        if (index >= 0)
            return index;
        if (wf_worker_try(worker)) {
            index = drive_until_done(wait, worker);
            wf_worker_leave(worker);
        } else {
            wf_worker_want(worker);
            if (!look_beside(wait, worker))
                sleep_until_poked(wait);
            index = find_done(wait);
            if (index >= 0 && atomic_load(&worker->token) == WF_TOKEN_FREE)
                wf_wait_token_free(wait->waiting); /* this thread does not need the token that it may have been
                                                    * offered */
        }
        if (index < 0 && wf_world_now(wait->waiting->world) >= wait->deadline_ns)
            return find_done(wait);
        if (index >= 0)
            return index;
    }
}

static int wait_aside(struct wait *wait)
{
    int64_t now = wf_world_now(wait->waiting->world);
    struct wf_watch watch;
    wf_watch_begin(&watch, &wait->waiting->caller_spin, wait->waiting->world->tuning.spin_ns, now);
    for (;;) {
        int index = find_done(wait);
        wf_watch_saw(&watch, index >= 0, now);
        if (index >= 0 || now >= wait->deadline_ns)
            return index;
        if (wf_watch_over(&watch, now))
            sleep_until_poked(wait);
        now = wf_world_now(wait->waiting->world);
    }
}

/* The index of what has ended, or -1 after the deadline. */
static int wait_until_done(struct wait *wait)
{
    struct wf_worker *worker = wf_crew_callers_own(wait->waiting->crew);
    return worker ? wait_driving(wait, worker) : wait_aside(wait);
}

/*
 * `*out`: the wf_waiting that all requests belong to. -ENOENT: there are no requests; -EINVAL: one will end in a queue,
 * or they belong to several contexts, each of which has its own lock for waiters.
 */
static int waiting_of(struct weft_request *const *requests, int count, struct wf_waiting **out)
{
    struct wf_waiting *waiting = NULL;
    for (int i = 0; i < count; i++) {
        if (!requests[i])
            continue;
        if (requests[i]->queue)
            return wf_fail(wf_refusal(), -EINVAL,
                           "requests[%d] ends in the queue of its options: take it with weft_queue_poll()", i);
        if (waiting && requests[i]->book->waiting != waiting)
            return wf_fail(wf_refusal(), -EINVAL,
                           "requests[%d] is of another context than those before it: wait for each context by itself",
                           i);
        waiting = requests[i]->book->waiting;
    }
    *out = waiting;
    return waiting ? 0 : wf_fail(wf_refusal(), -ENOENT, "there is no request among the %d entries", count);
}

/* The index of a request that has ended, or -1 after the timeout. */
static int wait_for_one(struct wf_waiting *waiting, struct weft_request *const *requests, int count, int timeout_ms)
{
    struct wait wait = {.waiting = waiting, .requests = requests, .count = count};
    int found = find_done(&wait);
    if (found >= 0 || timeout_ms == 0)
        return found;
    wait.deadline_ns = wf_deadline_after_ms(wf_world_now(waiting->world), timeout_ms);
    return wait_until_done(&wait);
}

bool wf_wait_tray(struct wf_tray *tray, int64_t deadline_ns)
{
    struct wait wait = {.waiting = tray->waiting, .tray = tray, .deadline_ns = deadline_ns};
    return wait_until_done(&wait) >= 0;
}

/* The index after that of the request that this thread collected last. */
static _Thread_local int next_place;

/*
 * Requests mostly end in the order of posting. A caller that keeps them in a ring finds the next one at `next_place`:
 * then no wait is needed, and no other request is looked at. With 64 requests that look took a tenth of the time of a
 * small message.
 */
static int ended_in_order(struct weft_request *const *requests, int count, int place)
{
    const struct weft_request *next = place < count ? requests[place] : NULL;
    bool ended = next && !next->queue && atomic_load_explicit(&next->done, memory_order_acquire);
    return ended ? place : -1;
}

int weft_wait_any(struct weft_request *const *requests, int count, int timeout_ms, int *index,
                  struct weft_completion *completion)
{
    if (count > 0 && WF_IS_NULL(wf_refusal(), requests))
        return -EINVAL;
    struct wf_waiting *waiting;
    int *place = &next_place; /* once: each look for a variable of the thread is a call */
    int found = ended_in_order(requests, count, *place);
    int result = found < 0 ? waiting_of(requests, count, &waiting) : 0;
    if (result < 0)
        return wf_refused(__func__, result);
    if (found < 0)
        found = wait_for_one(waiting, requests, count, timeout_ms);
    if (found < 0)
        return -ETIMEDOUT;
    wf_request_collect(requests[found], completion);
    *place = found + 1 < count ? found + 1 : 0;
    if (index)
        *index = found;
    return 0;
}

int weft_wait(struct weft_request *request, int timeout_ms, struct weft_completion *completion)
{
    if (WF_IS_NULL(wf_refusal(), request))
        return -EINVAL;
    return weft_wait_any(&request, 1, timeout_ms, NULL, completion);
}

void wf_wait_progress(struct wf_waiting *waiting)
{
    struct wf_worker *worker = wf_crew_callers_own(waiting->crew);
    if (waiting->world->manual || !worker)
        return;
    if (!wf_worker_try(worker)) {
        wf_worker_want(worker);
        return;
    }
    note_turn(worker);
    wf_worker_drive(worker, 0);
    wf_worker_leave(worker);
}

int weft_test(struct weft_request *request, struct weft_completion *completion)
{
    if (WF_IS_NULL(wf_refusal(), request))
        return -EINVAL;
    if (request->queue) {
        wf_fail(wf_refusal(), -EINVAL, "the request ends in the queue of its options: take it with weft_queue_poll()");
        return wf_refused(__func__, -EINVAL);
    }
    if (wf_request_collect(request, completion))
        return 1;
    wf_wait_progress(request->book->waiting);
    return wf_request_collect(request, completion) ? 1 : 0;
}
