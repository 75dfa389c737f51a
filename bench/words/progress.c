#include "progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define REDRAW_NS (100 * WF_NS_PER_MS)
#define TICK_NS (500 * WF_NS_PER_MS)
#define LINE_MOST 80 /* with its end: a line that a terminal breaks cannot be wiped */

/* All functions below are called with the lock held. */

static void put_time(const struct bench_progress *progress, int64_t now, char *text, size_t room)
{
    double passed = (double)(now - progress->start_ns) / WF_NS_PER_S;
    double left = progress->done_work     ? (double)(progress->left_ns - (now - progress->left_at_ns)) / WF_NS_PER_S
                  : progress->expected_ns ? (double)progress->expected_ns / WF_NS_PER_S - passed
                                          : -1;
    const char *words = " left";

    if (left < 0 && progress->done_work)
        left = 0;
    if (left < 0) {
        left = passed;
        words = "";
    }
    if (left < 90)
        snprintf(text, room, "%.0f s%s", left, words);
    else
        snprintf(text, room, "%.0f min%s", left / 60, words);
}

static void draw(struct bench_progress *progress, int64_t now)
{
    char line[LINE_MOST], count[48] = "", time[32];

    if (!progress->shown || !progress->doing[0] || now < progress->next_ns)
        return;
    progress->next_ns = now + REDRAW_NS;
    if (progress->total_work)
        snprintf(count, sizeof count, "%" PRIu64 "/%" PRIu64 "  ", progress->done, progress->total);
    put_time(progress, now, time, sizeof time);
    snprintf(line, sizeof line, "%s%.*s  %s", count, (int)(sizeof line - strlen(count) - strlen(time) - 3),
             progress->doing, time);
    fprintf(stderr, "\r\033[K%s", line);
    fflush(stderr);
}

static void wipe(struct bench_progress *progress)
{
    if (progress->shown && progress->next_ns)
        fputs("\r\033[K", stderr);
    progress->next_ns = 0;
    progress->doing[0] = '\0';
}

static void say(struct bench_progress *progress, const char *doing)
{
    snprintf(progress->doing, sizeof progress->doing, "%s", doing);
}

/* Until the line is wiped for good. */
static void *tick(void *context)
{
    struct bench_progress *progress = context;

    pthread_mutex_lock(&progress->lock);
    while (progress->shown) {
        int64_t next = wf_clock_now(&wf_clock_monotonic) + TICK_NS;
        struct timespec until = {next / WF_NS_PER_S, next % WF_NS_PER_S};
        pthread_cond_timedwait(&progress->bell, &progress->lock, &until);
        draw(progress, wf_clock_now(&wf_clock_monotonic));
    }
    pthread_mutex_unlock(&progress->lock);
    return NULL;
}

/* Signals are for the thread that takes them. */
static void start_ticking(struct bench_progress *progress)
{
    sigset_t all, previous;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &previous);
    progress->running = pthread_create(&progress->thread, NULL, tick, progress) == 0;
    pthread_sigmask(SIG_SETMASK, &previous, NULL);
}

/* --- for all --- */

void bench_progress_open(struct bench_progress *progress, bool wanted)
{
    pthread_condattr_t monotonic;

    memset(progress, 0, sizeof *progress);
    progress->shown = wanted && isatty(STDERR_FILENO);
    if (!progress->shown)
        return;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&progress->bell, &monotonic);
    pthread_condattr_destroy(&monotonic);
    progress->opened = true;
    start_ticking(progress);
}

void bench_progress_close(struct bench_progress *progress)
{
    if (!progress->opened)
        return;
    bench_progress_end(progress);
    if (progress->running)
        pthread_join(progress->thread, NULL);
    pthread_cond_destroy(&progress->bell);
    pthread_mutex_destroy(&progress->lock);
    progress->opened = false;
}

void bench_progress_begin(struct bench_progress *progress, const char *doing, int64_t expected_ns)
{
    if (!progress->opened)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->total = progress->done = progress->total_work = progress->done_work = 0;
    progress->start_ns = wf_clock_now(&wf_clock_monotonic);
    progress->expected_ns = expected_ns;
    say(progress, doing);
    pthread_mutex_unlock(&progress->lock);
}

void bench_progress_start(struct bench_progress *progress, uint64_t total, uint64_t total_work, int64_t expected_ns)
{
    if (!progress->opened)
        return;
    bench_progress_begin(progress, "", expected_ns);
    pthread_mutex_lock(&progress->lock);
    progress->total = total;
    progress->total_work = total_work;
    pthread_mutex_unlock(&progress->lock);
}

void bench_progress_now(struct bench_progress *progress, const char *doing)
{
    if (!progress->opened)
        return;
    pthread_mutex_lock(&progress->lock);
    say(progress, doing);
    pthread_mutex_unlock(&progress->lock);
}

void bench_progress_step(struct bench_progress *progress, uint64_t samples, uint64_t work, const char *doing)
{
    int64_t now;

    if (!progress->opened)
        return;
    pthread_mutex_lock(&progress->lock);
    now = wf_clock_now(&wf_clock_monotonic);
    progress->done += samples;
    progress->done_work += work;
    say(progress, doing);
    if (progress->done_work) {
        double rest = (double)progress->total_work / (double)progress->done_work - 1;
        progress->left_ns = rest > 0 ? (int64_t)((double)(now - progress->start_ns) * rest) : 0;
        progress->left_at_ns = now;
    }
    draw(progress, now);
    pthread_mutex_unlock(&progress->lock);
}

void bench_progress_wipe(struct bench_progress *progress)
{
    if (!progress->opened)
        return;
    pthread_mutex_lock(&progress->lock);
    wipe(progress);
    pthread_mutex_unlock(&progress->lock);
}

void bench_progress_end(struct bench_progress *progress)
{
    if (!progress->opened)
        return;
    pthread_mutex_lock(&progress->lock);
    wipe(progress);
    progress->shown = false;
    pthread_cond_signal(&progress->bell);
    pthread_mutex_unlock(&progress->lock);
}
