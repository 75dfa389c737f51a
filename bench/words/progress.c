#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define REDRAW_NS (100 * WF_NS_PER_MS)

void bench_progress_start(struct bench_progress *progress, bool wanted, uint64_t total, uint64_t total_bytes)
{
    memset(progress, 0, sizeof *progress);
    progress->shown = wanted && isatty(STDERR_FILENO);
    progress->total = total;
    progress->total_bytes = total_bytes;
    progress->start_ns = wf_clock_now(&wf_clock_monotonic);
}

void bench_progress_step(struct bench_progress *progress, uint64_t samples, uint64_t bytes, const char *doing)
{
    int64_t now = wf_clock_now(&wf_clock_monotonic);
    double seconds = (double)(now - progress->start_ns) / 1e9;

    progress->done += samples;
    progress->done_bytes += bytes;
    if (!progress->shown || now < progress->next_ns || progress->done_bytes == 0)
        return;
    progress->next_ns = now + REDRAW_NS;
    double left = seconds * ((double)progress->total_bytes / (double)progress->done_bytes - 1);
    fprintf(stderr, "\r\033[K%" PRIu64 "/%" PRIu64 "  %s  %.2f GB/s  %.0f s left", progress->done, progress->total,
            doing, (double)progress->done_bytes / seconds / 1e9, left > 0 ? left : 0);
    fflush(stderr);
}

void bench_progress_end(struct bench_progress *progress)
{
    if (progress->shown && progress->next_ns)
        fputs("\r\033[K", stderr);
    progress->shown = false;
}
