#include "vigil.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"

#define LOOK_NS 20000000

/* The measuring thread is where it cannot be told. Once it is not any more, it finds out by itself. */
static void end_run(struct bench_ending *ending, struct wf_status *status)
{
    pthread_mutex_lock(&ending->lock);
    if (!ending->alone) {
        pthread_mutex_unlock(&ending->lock);
        return;
    }
    int exit_status = bench_ending_give_up(ending, status, true);
    bench_child_kill(ending->child);
    fflush(stdout);
    _exit(exit_status);
}

/* Sleeps until the next look. False: the vigil is over. */
static bool sleeps(struct bench_vigil *vigil)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&vigil->lock);
    if (!vigil->over)
        pthread_cond_timedwait(&vigil->wake, &vigil->lock, &until);
    bool over = vigil->over;
    pthread_mutex_unlock(&vigil->lock);
    return !over;
}

static void *keep_vigil(void *context)
{
    struct bench_vigil *vigil = context;
    struct wf_status status = {0};

    while (sleeps(vigil))
        if (bench_child_check(vigil->ending->child, &status) != 0) {
            end_run(vigil->ending, &status);
            break;
        }
    return NULL;
}

int bench_vigil_start(struct bench_vigil *vigil, struct bench_ending *ending, struct wf_status *status)
{
    pthread_condattr_t monotonic;
    char remedy[160];

    vigil->ending = ending;
    vigil->over = false;
    pthread_mutex_init(&vigil->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&vigil->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int result = pthread_create(&vigil->thread, NULL, keep_vigil, vigil);
    if (result)
        return wf_fail(status, -result, "cannot start the thread that looks after the other nodes: %s; %s",
                       wf_strerror(result), wf_thread_remedy(remedy, sizeof remedy));
    return 0;
}

void bench_vigil_stop(struct bench_vigil *vigil)
{
    pthread_mutex_lock(&vigil->lock);
    vigil->over = true;
    pthread_cond_signal(&vigil->wake);
    pthread_mutex_unlock(&vigil->lock);
    pthread_join(vigil->thread, NULL);
    pthread_cond_destroy(&vigil->wake);
    pthread_mutex_destroy(&vigil->lock);
}
