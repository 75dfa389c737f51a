#include "core/request/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/drive/worker.h"
#include "core/ground/refusal.h"
#include "core/request/request.h"

#define LENT_ROUNDS 4 /* a poll does not wait, however much there is to do */

int wf_queue_create(struct wf_waiting *waiting, struct weft_queue **out, struct wf_status *status)
{
    struct weft_queue *queue = calloc(1, sizeof *queue);
    int result = queue ? wf_tray_create(waiting, &queue->ended) : -ENOMEM;
    if (result < 0)
        free(queue);
    if (result == -ENOMEM)
        return wf_fail(status, result, "no memory for a queue");
    if (result < 0)
        return wf_fail(status, result, "no descriptor for a queue: %s; raise the limit (ulimit -n)",
                       wf_strerror(result));
    queue->waiting = waiting;
    queue->set = -1;
    pthread_mutex_lock(&waiting->world->lock);
    wf_list_push_back(&waiting->queues, &queue->link);
    pthread_mutex_unlock(&waiting->world->lock);
    *out = queue;
    return 0;
}

static void free_queue(struct weft_queue *queue)
{
    if (queue->set >= 0)
        close(queue->set);
    wf_tray_destroy(queue->ended);
    free(queue);
}

/* --- the descriptor --- */

/* What drives while nobody sleeps on a descriptor, and whose engine is lent. */
static struct wf_worker *callers_own(const struct wf_waiting *waiting)
{
    return waiting->world->manual ? NULL : wf_crew_callers_own(waiting->crew);
}

static bool change(int set, int how, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    return epoll_ctl(set, how, fd, &event) == 0;
}

/* Puts the engine's descriptor into the queue's set, or takes it out. If that fails, the worker's thread drives, as for
 * several queues. world.lock held. */
static void lend(struct weft_queue *queue, bool lent)
{
    struct wf_waiting *waiting = queue->waiting;
    if (queue->lent == lent || queue->set < 0)
        return;
    struct wf_worker *worker = callers_own(waiting);
    lent = change(queue->set, lent ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, worker->descriptor) && lent;
    atomic_store(&queue->lent, lent);
    pthread_mutex_lock(&waiting->lock);
    waiting->lent = lent ? queue->ended : NULL;
    pthread_mutex_unlock(&waiting->lock);
    wf_worker_lend(worker, lent);
    wf_tray_let_settle(queue->ended, lent);
}

/*
 * If one queue alone is watched, whoever sleeps on its descriptor drives. With several, an event would wake the threads
 * of all, and the one that drives may not be the one that waits for it. world.lock held.
 */
static void lend_to_only_one(struct wf_waiting *waiting)
{
    int watched = 0;
    WF_LIST_EACH (link, following, &waiting->queues) {
        watched += WF_CONTAINER(link, struct weft_queue, link)->watched;
    }
    WF_LIST_EACH (link, following, &waiting->queues) {
        lend(WF_CONTAINER(link, struct weft_queue, link), watched == 1);
    }
}

/* A set that the engine's descriptor can be put into. */
static void open_set(struct weft_queue *queue, int fd)
{
    struct wf_worker *worker = callers_own(queue->waiting);
    if (!worker || worker->descriptor < 0)
        return;
    queue->set = epoll_create1(EPOLL_CLOEXEC);
    if (queue->set >= 0 && !change(queue->set, EPOLL_CTL_ADD, fd)) {
        close(queue->set);
        queue->set = -1;
    }
}

int weft_completion_fd(struct weft_queue *queue)
{
    if (WF_IS_NULL(wf_refusal(), queue))
        return -EINVAL;
    struct wf_world *world = queue->waiting->world;
    int fd = wf_tray_watch(queue->ended);
    pthread_mutex_lock(&world->lock);
    if (!queue->watched) {
        open_set(queue, fd);
        queue->watched = true;
        lend_to_only_one(queue->waiting);
    }
    pthread_mutex_unlock(&world->lock);
    return queue->set >= 0 ? queue->set : fd;
}

int weft_queue_destroy(struct weft_queue *queue)
{
    if (WF_IS_NULL(wf_refusal(), queue))
        return -EINVAL;
    struct wf_waiting *waiting = queue->waiting;
    uint32_t attached = atomic_load(&queue->attached);
    if (attached != 0) {
        wf_fail(wf_refusal(), -EBUSY, "%u requests that name the queue have not been polled", attached);
        return wf_refused(__func__, -EBUSY);
    }
    pthread_mutex_lock(&waiting->world->lock);
    wf_link_remove(&queue->link);
    lend(queue, false);
    lend_to_only_one(waiting);
    pthread_mutex_unlock(&waiting->world->lock);
    free_queue(queue);
    return 0;
}

void wf_queues_free(struct wf_waiting *waiting)
{
    WF_LIST_EACH (link, following, &waiting->queues) {
        free_queue(WF_CONTAINER(link, struct weft_queue, link));
    }
}

/* --- requests come --- */

void wf_queue_attach(struct weft_queue *queue, struct weft_request *request)
{
    request->queue = queue;
    atomic_fetch_add_explicit(&queue->attached, 1, memory_order_relaxed);
}

void wf_queue_detach(struct weft_request *request)
{
    atomic_fetch_sub_explicit(&request->queue->attached, 1, memory_order_relaxed);
}

bool wf_queue_push(struct weft_request *request)
{
    struct wf_tray *ended = request->queue->ended;
    return request->done_early ? wf_tray_put_quietly(ended, &request->link) : wf_tray_put(ended, &request->link);
}

/* --- requests go --- */

/* Takes up to `max` ended requests. */
static int take(struct weft_queue *queue, struct weft_completion *completions, int max, bool *watched)
{
    struct wf_list taken;
    wf_list_init(&taken);
    int count = wf_tray_take(queue->ended, &taken, max, watched);
    atomic_fetch_sub(&queue->attached, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        struct wf_link *link = wf_list_pop_front(&taken);
        wf_request_collect(WF_CONTAINER(link, struct weft_request, link), &completions[i]);
    }
    return count;
}

/*
 * One round of the callers' own worker. `watched`: the user will sleep on the descriptor, so the worker's thread should
 * have the token: do not ask the thread for it, and do not count a caller's turn, which would keep the thread away.
 */
static void make_progress(struct wf_worker *worker, bool watched)
{
    if (!wf_worker_try(worker)) {
        if (!watched)
            wf_worker_want(worker);
        return;
    }
    if (!watched)
        atomic_fetch_add_explicit(&worker->caller_turns, 1, memory_order_relaxed);
    wf_worker_drive(worker, 0);
    wf_worker_leave(worker);
}

/* The same, for a user who sleeps on a descriptor that tells of the worker's events: drives until a request has ended
 * or nothing is left to do, a few rounds at most. */
static void make_lent_progress(struct weft_queue *queue, struct wf_worker *worker)
{
    bool told = true;
    if (!wf_worker_try(worker)) {
        wf_worker_want(worker);
        return;
    }
    wf_tray_drive(queue->ended, true);
    atomic_fetch_add_explicit(&worker->caller_turns, 1, memory_order_relaxed);
    for (int round = 0; round < LENT_ROUNDS && wf_worker_drive_lent(worker) > 0; round++)
        if (wf_tray_holds(queue->ended))
            break;
    if (!wf_tray_holds(queue->ended))
        told = wf_worker_rest(worker);
    wf_worker_leave(worker);
    wf_tray_drive(queue->ended, false);
    if (!told)
        wf_worker_recall(worker);
}

/* `count` completions were taken. The lent worker's thread settles the tray when it rests; while it sleeps for long, it
 * will not do so soon. */
static void settle_if_left_alone(struct weft_queue *queue, int count)
{
    struct wf_worker *worker = callers_own(queue->waiting);
    if (count > 0 && worker && atomic_load(&queue->lent) && atomic_load(&worker->outside))
        wf_tray_settle(queue->ended);
}

/* Are these no arguments of `call`? */
static bool refuses(const struct weft_queue *queue, const struct weft_completion *completions, int max,
                    const char *call)
{
    if (!queue || !completions)
        return wf_refuse_null(wf_refusal(), call, queue ? "completions" : "queue");
    if (max >= 1)
        return false;
    wf_fail(wf_refusal(), -EINVAL, "max is %d: give the number of completions that there is room for", max);
    return wf_refused(call, -EINVAL) < 0;
}

int weft_queue_wait(struct weft_queue *queue, int timeout_ms, struct weft_completion *completions, int max)
{
    if (refuses(queue, completions, max, __func__))
        return -EINVAL;
    struct wf_waiting *waiting = queue->waiting;
    int count = weft_queue_poll(queue, completions, max);
    int64_t deadline_ns = count == 0 ? wf_deadline_after_ms(wf_world_now(waiting->world), timeout_ms) : 0;
    while (count == 0 && timeout_ms != 0 && wf_wait_tray(queue->ended, deadline_ns)) {
        bool watched; /* another thread may have been faster */
        count = take(queue, completions, max, &watched);
        if (watched && callers_own(waiting) && !atomic_load(&queue->lent))
            wf_worker_recall(callers_own(waiting));
    }
    if (count > 0 && wf_tray_pass_on(queue->ended))
        wf_wait_wake(waiting);
    settle_if_left_alone(queue, count);
    return count > 0 ? count : -ETIMEDOUT;
}

int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max)
{
    if (refuses(queue, completions, max, __func__))
        return -EINVAL;
    struct wf_worker *worker = callers_own(queue->waiting);
    bool watched, lent = atomic_load(&queue->lent);
    int count = take(queue, completions, max, &watched);
    if (!worker)
        return count;
    if (count == 0) {
        if (lent)
            make_lent_progress(queue, worker);
        else
            make_progress(worker, watched);
        count = take(queue, completions, max, &watched);
    }
    settle_if_left_alone(queue, count);
    if (!lent && watched && count < max)
        wf_worker_recall(worker);
    return count;
}
