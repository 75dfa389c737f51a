#include "interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* Signals belong to the process, so this state does too. */
static struct {
    atomic_int signal;   /* the one that came; 0: none */
    atomic_bool stopped; /* the run is over */
    bool running;
    pthread_t thread;
    sigset_t previous;
    bench_last_words *last_words;
    void *context;
} state;

#define STOP_SIGNAL SIGUSR2  /* from ourselves: wakes the thread up */
#define LAST_WORDS_US 400000 /* for the last words: they may hang too */

static void watched(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, STOP_SIGNAL);
}

static void *watch(void *unused)
{
    struct timespec patience = {BENCH_LAST_WORDS_MS / 1000, BENCH_LAST_WORDS_MS % 1000 * 1000000L};
    sigset_t set, stop;
    int number;

    (void)unused;
    watched(&set);
    do
        sigwait(&set, &number);
    while (number == STOP_SIGNAL && !atomic_load(&state.stopped));
    if (atomic_load(&state.stopped))
        return NULL;
    atomic_store(&state.signal, number);
    sigemptyset(&stop);
    sigaddset(&stop, STOP_SIGNAL);
    if (sigtimedwait(&stop, NULL, &patience) == STOP_SIGNAL || atomic_load(&state.stopped))
        return NULL;
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, LAST_WORDS_US}}, NULL); /* SIGALRM ends the process */
    state.last_words(state.context);
    _exit(1);
}

int bench_interrupt_start(bench_last_words *last_words, void *context, struct wf_status *status)
{
    sigset_t set;
    int rc;

    state.last_words = last_words;
    state.context = context;
    watched(&set);
    pthread_sigmask(SIG_BLOCK, &set, &state.previous);
    signal(SIGPIPE, SIG_IGN); /* a closed pipe on standard output must not end the measurement of two nodes */
    rc = pthread_create(&state.thread, NULL, watch, NULL);
    state.running = rc == 0;
    if (rc)
        return wf_fail(status, -rc, "cannot start the thread that takes signals: %s%s", wf_strerror(rc),
                       rc == EAGAIN ? ": allow more processes (ulimit -u, or the pids limit of the control group)"
                                    : "");
    return 0;
}

void bench_interrupt_stop(void)
{
    if (!state.running)
        return;
    atomic_store(&state.stopped, true);
    pthread_kill(state.thread, STOP_SIGNAL);
    pthread_join(state.thread, NULL);
    state.running = false;
}

void bench_interrupt_reset_child(void)
{
    pthread_sigmask(SIG_SETMASK, &state.previous, NULL);
    signal(SIGPIPE, SIG_DFL);
}

int bench_interrupted(struct wf_status *status)
{
    int number = atomic_load_explicit(&state.signal, memory_order_relaxed);

    if (number == 0)
        return 0;
    return wf_fail(status, -EINTR, "interrupted by %s",
                   number == SIGINT    ? "SIGINT"
                   : number == SIGTERM ? "SIGTERM"
                                       : "SIGHUP");
}
