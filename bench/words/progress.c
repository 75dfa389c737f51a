#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define REDRAW_NS (100 * WF_NS_PER_MS)

void bench_progress_start(struct bench_progress *progress, bool wanted, uint64_t total, uint64_t total_work)
{
    memset(progress, 0, sizeof *progress);
    progress->shown = wanted && isatty(STDERR_FILENO);
    progress->total = total;
    progress->total_work = total_work;
    progress->start_ns = wf_clock_now(&wf_clock_monotonic);
}

void bench_progress_step(struct bench_progress *progress, uint64_t samples, uint64_t work, const char *doing)
{
    int64_t now = wf_clock_now(&wf_clock_monotonic);
    double seconds = (double)(now - progress->start_ns) / 1e9;

    progress->done += samples;
    progress->done_work += work;
    if (!progress->shown || now < progress->next_ns || progress->done_work == 0)
        return;
    progress->next_ns = now + REDRAW_NS;
    double left = seconds * ((double)progress->total_work / (double)progress->done_work - 1);
    fprintf(stderr, "\r\033[K%" PRIu64 "/%" PRIu64 "  %s  %.0f s left", progress->done, progress->total, doing,
            left > 0 ? left : 0);
    fflush(stderr);
}

void bench_progress_wipe(struct bench_progress *progress)
{
    if (progress->shown && progress->next_ns)
        fputs("\r\033[K", stderr);
    progress->next_ns = 0;
}

void bench_progress_end(struct bench_progress *progress)
{
    bench_progress_wipe(progress);
    progress->shown = false;
}
