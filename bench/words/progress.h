/*
 * progress.h: one line on a terminal, on standard error: done of total, what is done now, and the time left. Nothing
 * where that is no terminal.
 *
 *     left = expected - passed,      counted: passed since the start * (all work / work done - 1)
 *
 * A thread redraws it twice a second, so that a long call has a line, too. Once wiped it stays away until something is
 * begun or done: what is printed then is not torn.
 */
#ifndef WF_BENCH_PROGRESS_H
#define WF_BENCH_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Owner: the measuring thread, but for bench_progress_end(). All zero is one that shows nothing. */
struct bench_progress {
    bool shown;
    uint64_t total_work, done_work; /* in any unit: the time left goes by it; 0: nothing is counted */
    uint64_t total, done;           /* samples */
    int64_t start_ns, expected_ns;  /* of what is counted, or of what was begun; expected 0: nobody knows */
    int64_t left_ns, left_at_ns;    /* as the last step found */
    int64_t next_ns;                /* not redrawn before; 0: there is no line */
    char doing[96];                 /* "": nothing that is to be shown */
    pthread_mutex_t lock;
    pthread_cond_t bell;
    pthread_t thread;
    bool opened, running;
};

void bench_progress_open(struct bench_progress *progress, bool wanted);
void bench_progress_close(struct bench_progress *progress);

/* Something that is not counted begins, and may take a while: `expected_ns`, or 0, and then the line says how long it
 * has taken. */
void bench_progress_begin(struct bench_progress *progress, const char *doing, int64_t expected_ns);

/* From now on samples are counted. Until the first are done, `expected_ns` is what is known of the time. */
void bench_progress_start(struct bench_progress *progress, uint64_t total, uint64_t total_work, int64_t expected_ns);

/* What is measured now. */
void bench_progress_now(struct bench_progress *progress, const char *doing);

/* After some pairs of a size: moves on, and redraws at most ten times a second. */
void bench_progress_step(struct bench_progress *progress, uint64_t samples, uint64_t work, const char *doing);

/* Wipes the line, so that something else can be printed; the next of the above draws it again. */
void bench_progress_wipe(struct bench_progress *progress);

/* Wipes it for good. Any thread may call it. */
void bench_progress_end(struct bench_progress *progress);

#endif
