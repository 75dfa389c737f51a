/*
 * interrupt.h: SIGINT, SIGTERM and SIGHUP end a run in an orderly way within BENCH_LAST_WORDS_MS, and otherwise at
 * once; so does a second one. A thread of its own takes the signals, so that nothing which hangs can keep the process
 * alive:
 *
 *     signal -> heard() -> the orderly end, by the measuring thread            bench_interrupt_stop()
 *                       \-> patience over, or a second signal -> last_words()  exit status 1
 *
 * Signals within BENCH_SAME_SIGNAL_MS of the first are the same wish: a terminal and a script that passes signals on
 * may both send one.
 */
#ifndef WF_BENCH_INTERRUPT_H
#define WF_BENCH_INTERRUPT_H

#include <stdbool.h>

#include "base/status.h"

#define BENCH_LAST_WORDS_MS 1400
#define BENCH_SAME_SIGNAL_MS 200

/* Called from the signal thread, each at most once. */
struct bench_interrupt_ops {
    /* A signal has come. Returns how many milliseconds the orderly end may take: 0 to BENCH_LAST_WORDS_MS. */
    int (*heard)(void *context, int signal);
    /* The orderly end takes longer than a moment: the user may be told what a second signal does. */
    void (*waiting)(void *context, int signal);
    /* The end, now. `again`: a second signal asked for it. Afterwards the process ends with status 1. */
    void (*last_words)(void *context, bool again);
};

/* Before any other thread is started (they inherit the blocked signals). 0 or -errno. Again after a stop: the signals
 * that came meanwhile are taken then, and one that came before counts still. */
int bench_interrupt_start(const struct bench_interrupt_ops *ops, void *context, struct wf_status *status);

/* The run is over: nobody takes signals, which stay blocked. */
void bench_interrupt_stop(void);

/* The other node was interrupted: this one has to end within BENCH_LAST_WORDS_MS, too. */
void bench_interrupt_hurry(void);

/* Undoes the blocking in a child process before it executes something. */
void bench_interrupt_reset_child(void);

/* 0, or -EINTR with its text once a signal has come. Cheap; any thread. */
int bench_interrupted(struct wf_status *status);

/* The same, for whoever asks by a function with a context: it needs none. */
int bench_interrupted_stop(void *unused, struct wf_status *status);

/* The signal that came; 0: none. */
int bench_interrupt_signal(void);

/* "SIGTERM"; "a signal" for one that is not watched. */
const char *bench_signal_name(int signal);

#endif
