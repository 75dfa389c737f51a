#include "core/drive/kick.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "core/drive/worker.h"

void wf_worker_kick(struct wf_kick *kick, struct wf_worker *self)
{
    struct wf_worker *worker = kick->worker;
    if (!worker)
        return;
    pthread_mutex_lock(&worker->mail_lock);
    bool fresh = !kick->queued;
    if (fresh) {
        kick->queued = true;
        wf_list_push_back(&worker->kicked, &kick->link);
        atomic_store_explicit(&worker->has_mail, true, memory_order_seq_cst);
    }
    pthread_mutex_unlock(&worker->mail_lock);
    if (!fresh || worker == self)
        return;
    if (self)
        wf_bells_add(&self->bells, worker->index); /* rung by wf_worker_ring_bells(), with no lock held */
    else
        worker->engine->ops->wake(worker->engine);
}

void wf_worker_ring_bells(struct wf_worker *worker)
{
    int index;
    while ((index = wf_bells_take(&worker->bells)) >= 0) {
        struct wf_worker *other = worker->crew->workers[index];
        other->engine->ops->wake(other->engine);
    }
}

static struct wf_kicks *next_kick(struct wf_worker *worker)
{
    pthread_mutex_lock(&worker->mail_lock);
    struct wf_link *link = wf_list_pop_front(&worker->kicked);
    struct wf_kicks *kicks = NULL;
    if (link) {
        struct wf_kick *kick = WF_CONTAINER(link, struct wf_kick, link);
        kick->queued = false;
        kicks = kick->kicks;
    } else {
        atomic_store_explicit(&worker->has_mail, false, memory_order_seq_cst);
    }
    worker->serving = kicks;
    pthread_mutex_unlock(&worker->mail_lock);
    return kicks;
}

int wf_worker_serve_kicks(struct wf_worker *worker)
{
    int handled = 0;
    struct wf_kicks *kicks;
    while (atomic_load_explicit(&worker->has_mail, memory_order_seq_cst) && (kicks = next_kick(worker))) {
        kicks->serve(kicks, worker);
        wf_worker_ring_bells(worker);
        handled += 1;
    }
    return handled;
}

static void forget(struct wf_kick *kick)
{
    struct wf_worker *worker = kick->worker;
    if (!worker)
        return;
    for (;;) {
        pthread_mutex_lock(&worker->mail_lock);
        wf_link_remove(&kick->link);
        kick->queued = false;
        bool busy = worker->serving == kick->kicks;
        pthread_mutex_unlock(&worker->mail_lock);
        if (!busy)
            return;
        sched_yield(); /* the worker still serves the notice of a dead session: that ends soon */
    }
}

int wf_kicks_init(struct wf_kicks *kicks, struct wf_crew *crew,
                  void (*serve)(struct wf_kicks *kicks, struct wf_worker *worker))
{
    kicks->each = calloc((size_t)crew->count, sizeof *kicks->each);
    if (!kicks->each)
        return -ENOMEM;
    kicks->serve = serve;
    kicks->count = crew->count;
    for (int i = 0; i < crew->count; i++) {
        kicks->each[i].kicks = kicks;
        kicks->each[i].worker = crew->workers[i];
        wf_link_init(&kicks->each[i].link);
    }
    return 0;
}

void wf_kicks_fini(struct wf_kicks *kicks)
{
    for (int i = 0; i < kicks->count; i++)
        forget(&kicks->each[i]);
    free(kicks->each);
    kicks->each = NULL;
    kicks->count = 0;
}

void wf_kicks_one(struct wf_kicks *kicks, int worker, struct wf_worker *self)
{
    wf_worker_kick(&kicks->each[worker], self);
}

void wf_kicks_all(struct wf_kicks *kicks, struct wf_worker *self)
{
    for (int i = 0; i < kicks->count; i++)
        wf_worker_kick(&kicks->each[i], self);
}
