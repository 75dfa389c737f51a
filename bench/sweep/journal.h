/*
 * journal.h: the runs of a sweep as they end, in the folder of --out, so that one which was cut goes on where it was:
 *
 *     sweep.jsonl     {"schema": "weft.sweep-journal/1", "sweep": {...}}, then a JSON object for each run, a line each
 *
 * A sweep goes on only from a journal of the same sweep: same points, seed, settings and version.
 */
#ifndef WF_BENCH_JOURNAL_H
#define WF_BENCH_JOURNAL_H

#include <jansson.h>
#include <stddef.h>

#include "base/status.h"

struct bench_journal {
    int fd; /* -1: no journal is kept */
    char path[1100];
    json_t *runs; /* those that were there already */
    size_t next;
};

/* `folder` "": none is kept. `sweep` says what is swept. -EEXIST: the journal there is another sweep's, and `status`
 * says in what they differ. A line that a cut left unfinished is removed. Can be given to close whatever the result. */
int bench_journal_open(struct bench_journal *journal, const char *folder, const json_t *sweep,
                       struct wf_status *status);
void bench_journal_close(struct bench_journal *journal);

/* The next run that was there already; NULL: there are no more. */
const json_t *bench_journal_next(struct bench_journal *journal);

/* Adds a run that was made now. */
int bench_journal_add(struct bench_journal *journal, const json_t *run, struct wf_status *status);

#endif
