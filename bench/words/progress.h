/*
 * progress.h: one line on a terminal (done of total, what is measured, time left); nothing where the output is no
 * terminal.
 */
#ifndef WF_BENCH_PROGRESS_H
#define WF_BENCH_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Owner: the measuring thread. */
struct bench_progress {
    bool shown;
    uint64_t total_work, done_work; /* in any unit: the time left goes by it */
    uint64_t total, done;           /* samples */
    int64_t start_ns, next_ns;
};

void bench_progress_start(struct bench_progress *progress, bool wanted, uint64_t total, uint64_t total_work);

/* After some pairs of a size: moves on, and redraws at most ten times a second. */
void bench_progress_step(struct bench_progress *progress, uint64_t samples, uint64_t work, const char *doing);

/* Wipes the line, so that something else can be printed; the next step draws it again. */
void bench_progress_wipe(struct bench_progress *progress);

/* Wipes it for good. */
void bench_progress_end(struct bench_progress *progress);

#endif
