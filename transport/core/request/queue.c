#include "core/request/queue.h"

#include <errno.h>
#include <stdlib.h>

#include "core/drive/worker.h"
#include "core/ground/refusal.h"
#include "core/request/request.h"

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
    pthread_mutex_lock(&waiting->world->lock);
    wf_list_push_back(&waiting->queues, &queue->link);
    pthread_mutex_unlock(&waiting->world->lock);
    *out = queue;
    return 0;
}

static void free_queue(struct weft_queue *queue)
{
    wf_tray_destroy(queue->ended);
    free(queue);
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
    return wf_tray_put(request->queue->ended, &request->link);
}

int weft_completion_fd(struct weft_queue *queue)
{
    if (WF_IS_NULL(wf_refusal(), queue))
        return -EINVAL;
    return wf_tray_watch(queue->ended);
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
 * One round of a shared worker. `watched`: the user will sleep on the descriptor, so the worker's thread should have
 * the token: do not ask the thread for it, and do not count a caller's turn, which would keep the thread away.
 */
static void make_progress(struct wf_waiting *waiting, bool watched)
{
    struct wf_worker *worker = waiting->crew->workers[0];
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

/* Are these no arguments of `call`? */
static bool refuses(const struct weft_queue *queue, const struct weft_completion *completions, int max, const char *call)
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
        if (watched && waiting->world->shared && !waiting->world->manual)
            wf_worker_recall(waiting->crew->workers[0]);
    }
    if (count > 0 && wf_tray_pass_on(queue->ended))
        wf_wait_wake(waiting);
    return count > 0 ? count : -ETIMEDOUT;
}

int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max)
{
    if (refuses(queue, completions, max, __func__))
        return -EINVAL;
    struct wf_waiting *waiting = queue->waiting;
    bool watched;
    int count = take(queue, completions, max, &watched);
    if (waiting->world->manual || !waiting->world->shared)
        return count;
    if (count == 0) {
        make_progress(waiting, watched);
        count = take(queue, completions, max, &watched);
    }
    if (watched && count < max)
        wf_worker_recall(waiting->crew->workers[0]);
    return count;
}
