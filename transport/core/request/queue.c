#include "core/request/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/drive/worker.h"
#include "core/ground/refusal.h"
#include "core/request/request.h"

int wf_queue_create(struct wf_waiting *waiting, struct weft_queue **out, struct wf_status *status)
{
    struct weft_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return wf_fail(status, -ENOMEM, "no memory for a queue");
    queue->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (queue->fd < 0) {
        int result = -errno;
        free(queue);
        return wf_fail(status, result, "no descriptor for a queue: %s; raise the limit (ulimit -n)",
                       wf_strerror(result));
    }
    queue->waiting = waiting;
    atomic_init(&queue->references, 1);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_mutex_init(&queue->level_lock, NULL);
    wf_list_init(&queue->ended);
    wf_link_init(&queue->signal_link);
    pthread_mutex_lock(&waiting->world->lock);
    wf_list_push_back(&waiting->queues, &queue->link);
    pthread_mutex_unlock(&waiting->world->lock);
    *out = queue;
    return 0;
}

static void free_queue(struct weft_queue *queue)
{
    close(queue->fd);
    pthread_mutex_destroy(&queue->level_lock);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* Frees the queue with its last reference: the descriptor must stay open, and its number must not be given to another
 * file, while a thread is about to write to it. */
static void release(struct weft_queue *queue)
{
    if (atomic_fetch_sub(&queue->references, 1) == 1)
        free_queue(queue);
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
    pthread_mutex_lock(&queue->lock); /* waits until the thread that pushed the last request has let go of the queue */
    pthread_mutex_unlock(&queue->lock);
    pthread_mutex_lock(&waiting->lock);
    wf_link_remove(&queue->signal_link);
    pthread_mutex_unlock(&waiting->lock);
    release(queue);
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
    struct weft_queue *queue = request->queue;
    struct wf_waiting *waiting = queue->waiting;
    pthread_mutex_lock(&queue->lock);
    bool signal = queue->watched && wf_list_empty(&queue->ended);
    wf_list_push_back(&queue->ended, &request->link);
    if (signal) {
        pthread_mutex_lock(&waiting->lock);
        if (!wf_link_in_list(&queue->signal_link))
            wf_list_push_back(&waiting->signals, &queue->signal_link);
        pthread_mutex_unlock(&waiting->lock);
    }
    pthread_mutex_unlock(&queue->lock);
    return signal;
}

/* --- the descriptor --- */

/*
 * Makes the descriptor readable if the queue is watched and `ended` is not empty, else not. Each thread that made
 * `ended` empty, or not empty any more, calls this afterwards. level_lock lets one thread in at a time, so the last
 * call sets the right level.
 */
static void show_level(struct weft_queue *queue)
{
    pthread_mutex_lock(&queue->level_lock);
    pthread_mutex_lock(&queue->lock);
    bool level = queue->watched && !wf_list_empty(&queue->ended);
    pthread_mutex_unlock(&queue->lock);
    if (level != queue->level) {
        uint64_t count = 1;
        ssize_t done;
        do
            done = level ? write(queue->fd, &count, sizeof count) : read(queue->fd, &count, sizeof count);
        while (done < 0 && errno == EINTR);
        queue->level = level;
    }
    pthread_mutex_unlock(&queue->level_lock);
}

void wf_queue_hold(struct weft_queue *queue)
{
    atomic_fetch_add(&queue->references, 1);
}

void wf_queue_signal(struct weft_queue *queue)
{
    show_level(queue);
    release(queue);
}

int weft_completion_fd(struct weft_queue *queue)
{
    if (WF_IS_NULL(wf_refusal(), queue))
        return -EINVAL;
    pthread_mutex_lock(&queue->lock);
    queue->watched = true;
    pthread_mutex_unlock(&queue->lock);
    show_level(queue);
    return queue->fd;
}

/* --- requests go --- */

/* Takes up to `max` ended requests. */
static int take(struct weft_queue *queue, struct weft_completion *completions, int max, bool *watched)
{
    struct wf_list taken;
    int count = 0;
    wf_list_init(&taken);
    pthread_mutex_lock(&queue->lock);
    struct wf_link *link;
    while (count < max && (link = wf_list_pop_front(&queue->ended))) {
        wf_list_push_back(&taken, link);
        count += 1;
    }
    *watched = queue->watched;
    bool emptied = count > 0 && wf_list_empty(&queue->ended);
    pthread_mutex_unlock(&queue->lock);
    if (emptied && *watched)
        show_level(queue);
    atomic_fetch_sub(&queue->attached, (uint32_t)count);
    for (int i = 0; i < count; i++) {
        link = wf_list_pop_front(&taken);
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

int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max)
{
    if (WF_IS_NULL(wf_refusal(), queue) || WF_IS_NULL(wf_refusal(), completions))
        return -EINVAL;
    if (max < 1) {
        wf_fail(wf_refusal(), -EINVAL, "max is %d: give the number of completions that there is room for", max);
        return wf_refused(__func__, -EINVAL);
    }
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
