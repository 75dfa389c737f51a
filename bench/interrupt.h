/*
 * interrupt.h: SIGINT, SIGTERM and SIGHUP end a run in an orderly way within BENCH_LAST_WORDS_MS, and otherwise at
 * once: a thread of its own takes the signals, so that nothing which hangs can keep the process alive.
 */
#ifndef WF_BENCH_INTERRUPT_H
#define WF_BENCH_INTERRUPT_H

#include <stdbool.h>

#include "base/status.h"

#define BENCH_LAST_WORDS_MS 1400

/* What is done when the orderly end did not come in time: called once, from the signal thread; then the process ends
 * with status 1. */
typedef void bench_last_words(void *context);

/* Before any other thread is started (they inherit the blocked signals). 0 or -errno. */
int bench_interrupt_start(bench_last_words *last_words, void *context, struct wf_status *status);

/* The run is over: signals end the process as usual from here on. */
void bench_interrupt_stop(void);

/* Undoes the blocking in a child process before it executes something. */
void bench_interrupt_reset_child(void);

/* 0, or -EINTR with its text once a signal has come. Cheap; any thread. */
int bench_interrupted(struct wf_status *status);

#endif
