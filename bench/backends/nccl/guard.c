#include "guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

#define SLICE_NS 20000000 /* how long a wait goes on before it looks at the other node */

/* Owner: both threads, under the lock; the last of them to leave frees it. */
struct guard {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    nccl_guarded *call;
    void *context;
    struct wf_status status;
    int result;
    bool done, abandoned;
};

static void destroy(struct guard *guard)
{
    pthread_cond_destroy(&guard->ended);
    pthread_mutex_destroy(&guard->lock);
    free(guard);
}

static void *run(void *argument)
{
    struct guard *guard = argument;
    int result = guard->call(guard->context, &guard->status);

    pthread_mutex_lock(&guard->lock);
    guard->result = result;
    guard->done = true;
    bool alone = guard->abandoned;
    pthread_cond_signal(&guard->ended);
    pthread_mutex_unlock(&guard->lock);
    if (alone)
        destroy(guard);
    return NULL;
}

/* Until the call has ended or is given up: 0, or why it is. */
static int await(struct guard *guard, const char *what, int timeout_ms, struct bench_control *control,
                 struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), timeout_ms);
    int result = 0;

    pthread_mutex_lock(&guard->lock);
    while (!guard->done && result == 0) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += SLICE_NS;
        until.tv_sec += until.tv_nsec / WF_NS_PER_S;
        until.tv_nsec %= WF_NS_PER_S;
        pthread_cond_timedwait(&guard->ended, &guard->lock, &until);
        if (guard->done)
            break;
        pthread_mutex_unlock(&guard->lock);
        result = control ? bench_control_check(control, status) : 0;
        if (result == 0 && wf_clock_now(&wf_clock_monotonic) >= deadline)
            result = wf_fail(status, -ETIMEDOUT, "%s: NCCL has not done it within %d s: see what NCCL_DEBUG=INFO tells",
                             what, timeout_ms / 1000);
        pthread_mutex_lock(&guard->lock);
    }
    if (guard->done)
        result = 0;
    guard->abandoned = result != 0;
    pthread_mutex_unlock(&guard->lock);
    return result;
}

int nccl_guard(nccl_guarded *call, void *context, const char *what, int timeout_ms, struct bench_control *control,
               bool *abandoned, struct wf_status *status)
{
    struct guard *guard = calloc(1, sizeof *guard);
    pthread_condattr_t attributes;
    pthread_t thread;

    if (!guard)
        return wf_fail(status, -ENOMEM, "%s: no memory", what);
    pthread_mutex_init(&guard->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    guard->call = call;
    guard->context = context;
    int result = pthread_create(&thread, NULL, run, guard);
    if (result) {
        destroy(guard);
        return wf_fail(status, -result, "%s: no thread: %s", what, wf_strerror(result));
    }
    result = await(guard, what, timeout_ms, control, status);
    if (result) {
        *abandoned = true;
        pthread_detach(thread);
        return result;
    }
    pthread_join(thread, NULL);
    result = guard->result;
    if (result && status)
        *status = guard->status;
    destroy(guard);
    return result;
}
