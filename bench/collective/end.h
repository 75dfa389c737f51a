/*
 * end.h: how a command that starts ranks ends, whatever it measures: signals, reasons, the exit status, and what is the
 * same in all of their result files.
 */
#ifndef WF_BENCH_COLLECTIVE_END_H
#define WF_BENCH_COLLECTIVE_END_H

#include <jansson.h>
#include <stdio.h>

#include "bench/plan/options.h"

/* How it ended. */
struct coll_end {
    char started[32]; /* ISO 8601, UTC */
    char stamp[32];   /* the same for names of files: 20261126_120000 */
    char error[320];  /* why it ended early; "": it did not */
    int error_code;
    int exit_status;
};

/* It begins now. */
void coll_end_begin(struct coll_end *end);

/* The first failure is kept. */
void coll_end_keep(struct coll_end *end, const struct wf_status *status);

/* Where a signal has come, that is the reason. */
void coll_end_note_signal(struct coll_end *end);

/* Signals end the ranks from now on, until bench_interrupt_stop(). Before there is another thread. */
int coll_signals_start(struct wf_status *status);

/* Says why nothing was measured; returns the exit status. */
int coll_fail(struct wf_status *status);

/* Adds what is missing, and why, to a list: {what, reason}, each once. */
void coll_reason_add(json_t *list, const char *why, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "# n/a: gloo: ..." of each entry. */
void coll_reasons_put(FILE *out, const json_t *list, const char *word);

/* The first members of a result: schema, command, version, when, how it ended, host, settings. A new reference. */
json_t *coll_head_to_json(const char *schema, const struct bench_options *options, const struct coll_end *end);

#endif
