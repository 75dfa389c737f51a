/*
 * end.h: how a command that starts ranks ends, and the beginning of its result file.
 */
#ifndef WF_BENCH_COLLECTIVE_END_H
#define WF_BENCH_COLLECTIVE_END_H

#include <jansson.h>
#include <stdio.h>

#include "bench/plan/options.h"
#include "work.h"

/* How it ended. */
struct coll_end {
    struct coll_time time;
    char error[320]; /* why it ended early; "": it did not */
    int error_code;
    int exit_status;
};

/* The first failure is kept. */
void coll_end_keep(struct coll_end *end, const struct wf_status *status);

/* The exit status of a run of which something has failed. */
int coll_failed(const struct coll_end *end);

/* Where a signal has come, that is the reason. */
void coll_end_note_signal(struct coll_end *end);

/* Adds what is missing, and why, to a list: {what, reason}, each once. */
void coll_reason_add(json_t *list, const char *why, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "# n/a: gloo: ..." of each entry. */
void coll_reasons_put(FILE *out, const json_t *list, const char *word);

/* The first members of a result: schema, command, version, when, how it ended, host, settings. A new reference. */
json_t *coll_head_to_json(const char *schema, const struct bench_options *options, const struct coll_end *end);

/* Writes a result as --json and as `name` in the folder --out, where these are asked for; takes the reference. */
int coll_write_result(json_t *root, const char *name, const struct bench_options *options, struct wf_status *status);

#endif
