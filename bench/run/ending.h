/*
 * ending.h: how a run ends, and above all before its time: by a signal here or at the other node, by a failure, by the
 * loss of the other node. Whatever it was,
 *
 *     the other node is told why, the files and the terminal say what was measured and that the run was cut short,
 *     and the exit status is not 0. Files that --json and --csv name do so too where nothing was measured.
 */
#ifndef WF_BENCH_ENDING_H
#define WF_BENCH_ENDING_H

#include <pthread.h>
#include <stdbool.h>

#include "bench/nodes/control.h"
#include "bench/nodes/link.h"
#include "bench/result/result.h"
#include "bench/words/progress.h"
#include "local.h"

/* Owner: the measuring thread, but for what the lock guards: the signal thread uses that, too. */
struct bench_ending {
    struct bench_result *result;
    struct bench_progress *progress;
    struct bench_child *child;
    pthread_mutex_t lock;
    const struct bench_link *link; /* NULL as long as, and as soon as, the other node cannot be told */
    struct bench_control *control; /* as link */
    bool alone;                    /* connecting, where nothing wakes the measuring thread and nobody listens yet */
    bool reported;
};

void bench_ending_init(struct bench_ending *ending, struct bench_result *result, struct bench_progress *progress,
                       struct bench_child *child);
void bench_ending_fini(struct bench_ending *ending);

/* From now on signals end the run. Before any other thread is started. */
int bench_ending_watch(struct bench_ending *ending, struct wf_status *status);

/* Around a wait for the other node that nothing can interrupt. */
void bench_ending_set_alone(struct bench_ending *ending, bool alone);

/* The other node can be told through these; NULL before they go. */
void bench_ending_set_link(struct bench_ending *ending, const struct bench_link *link, struct bench_control *control);

/* Writes the files and prints the report, each once; what was printed stays also when a file cannot be written. */
int bench_ending_publish(struct bench_ending *ending, struct wf_status *status);

/* The run failed with `status`; before it was `prepared`, what is wrong may be what the user asked for. Returns the
 * exit status. */
int bench_ending_give_up(struct bench_ending *ending, struct wf_status *status, bool prepared);

#endif
