#include "interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/limits.h"

/* Signals belong to the process, so this state does too. */
static struct {
    atomic_int signal;   /* the first one that came; 0: none */
    atomic_bool stopped; /* the run is over */
    atomic_bool hurried; /* it has to be, soon */
    bool running, blocked;
    pthread_t thread;
    sigset_t previous;
    const struct bench_interrupt_ops *ops;
    void *context;
} state;

#define WAKE_SIGNAL SIGUSR2  /* from ourselves: `stopped` or `hurried` has changed */
#define LAST_WORDS_US 400000 /* for the last words: they may hang too */

static void watched(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGHUP);
    sigaddset(set, WAKE_SIGNAL);
}

/* The next signal until `deadline`; 0: none came. */
static int next_signal(int64_t deadline)
{
    int64_t left = deadline - wf_clock_now(&wf_clock_monotonic);
    struct timespec wait = {left > 0 ? left / WF_NS_PER_S : 0, left > 0 ? left % WF_NS_PER_S : 0};
    sigset_t set;
    int number;

    watched(&set);
    do
        number = deadline == WF_NEVER ? sigwaitinfo(&set, NULL) : sigtimedwait(&set, NULL, &wait);
    while (number < 0 && errno == EINTR);
    return number < 0 ? 0 : number;
}

/* Until a signal or a reason to hurry comes, and how long the orderly end may take then. -1: the run is over. */
static int first_signal(void)
{
    for (;;) {
        int number = next_signal(WF_NEVER);
        if (atomic_load(&state.stopped))
            return -1;
        if (number == WAKE_SIGNAL && atomic_load(&state.hurried))
            return BENCH_LAST_WORDS_MS;
        if (number == WAKE_SIGNAL || number == 0)
            continue;
        atomic_store(&state.signal, number);
        return state.ops->heard(state.context, number);
    }
}

/* Until the orderly end, a signal (when `again` counts as one), or the deadline; true: the run is over. */
static bool outwait(int64_t deadline, bool again, int *number)
{
    do {
        *number = next_signal(deadline);
        if (atomic_load(&state.stopped))
            return true;
    } while (*number == WAKE_SIGNAL || (*number && !again));
    return false;
}

static void end_now(int number)
{
    (void)number;
    _exit(1);
}

static void *watch(void *unused)
{
    int patience_ms = first_signal(), number = 0;
    int64_t now = wf_clock_now(&wf_clock_monotonic), deadline = now + patience_ms * WF_NS_PER_MS;
    int64_t grace = now + BENCH_SAME_SIGNAL_MS * WF_NS_PER_MS;

    (void)unused;
    if (patience_ms < 0 || outwait(grace < deadline ? grace : deadline, false, &number))
        return NULL;
    if (grace < deadline) {
        if (bench_interrupt_signal())
            state.ops->waiting(state.context, bench_interrupt_signal());
        if (outwait(deadline, true, &number))
            return NULL;
    }
    signal(SIGALRM, end_now);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {0, LAST_WORDS_US}}, NULL);
    state.ops->last_words(state.context, number != 0);
    _exit(1);
}

int bench_interrupt_start(const struct bench_interrupt_ops *ops, void *context, struct wf_status *status)
{
    sigset_t set;

    state.ops = ops;
    state.context = context;
    atomic_store(&state.stopped, false);
    atomic_store(&state.hurried, false);
    watched(&set);
    pthread_sigmask(SIG_BLOCK, &set, state.blocked ? NULL : &state.previous);
    state.blocked = true;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe on standard output must not end the measurement of two nodes */
    int result = pthread_create(&state.thread, NULL, watch, NULL);
    char remedy[160];
    state.running = result == 0;
    if (result)
        return wf_fail(status, -result, "cannot start the thread that takes signals: %s; %s", wf_strerror(result),
                       wf_thread_remedy(remedy, sizeof remedy));
    return 0;
}

void bench_interrupt_stop(void)
{
    if (!state.running)
        return;
    atomic_store(&state.stopped, true);
    pthread_kill(state.thread, WAKE_SIGNAL);
    pthread_join(state.thread, NULL);
    state.running = false;
}

void bench_interrupt_hurry(void)
{
    if (!state.running || atomic_exchange(&state.hurried, true))
        return;
    pthread_kill(state.thread, WAKE_SIGNAL);
}

void bench_interrupt_reset_child(void)
{
    pthread_sigmask(SIG_SETMASK, &state.previous, NULL);
    signal(SIGPIPE, SIG_DFL);
}

int bench_interrupted_stop(void *unused, struct wf_status *status)
{
    (void)unused;
    return bench_interrupted(status);
}

int bench_interrupt_signal(void)
{
    return atomic_load_explicit(&state.signal, memory_order_relaxed);
}

const char *bench_signal_name(int signal)
{
    switch (signal) {
    case SIGINT:
        return "SIGINT";
    case SIGTERM:
        return "SIGTERM";
    case SIGHUP:
        return "SIGHUP";
    default:
        return "a signal";
    }
}

int bench_interrupted(struct wf_status *status)
{
    int number = bench_interrupt_signal();

    if (number == 0)
        return 0;
    return wf_fail(status, -EINTR, "interrupted by %s", bench_signal_name(number));
}
