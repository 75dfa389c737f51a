/* The clocks of the nodes, and of each node's GPUs, compared while nothing else goes on. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "mem/gpu_clock.h"
#include "parts.h"

#define FIX_EXCHANGES 8                 /* of which the fastest counts */
#define FIX_WORK (64ull << 20)          /* between two fixes, as bytes */
#define FIX_MESSAGE (64ull << 10)       /* and each message counts as so many more */
#define EXCHANGE_NS (10 * WF_NS_PER_MS) /* from some exchanges to the next, while clocks are compared */
#define EXCHANGES 4                     /* each time */
#define EXCHANGES_PER_WATCH 10          /* for each reading of the GPUs' clocks */
#define PIECES 30                       /* of that time, and the best exchange of each counts */

static int exchange(struct profile *profile, struct bench_clock_reading *reading, struct bench_fix *fix,
                    struct wf_status *status)
{
    const struct bench_bed *bed = profile->site->bed;
    int result = bench_control_read_clocks(bed->control, reading, status);

    if (result == 0 && bed->node == 0)
        bench_fix_of(reading, fix);
    return result;
}

/* Several right after each other, of which the fastest counts: in the first one threads of both nodes have to wake up.
 */
static int exchange_some(struct profile *profile, int count, struct bench_clock_reading *reading,
                         struct bench_fix *best, struct wf_status *status)
{
    struct bench_fix fix = {.error_ns = INT64_MAX};
    int result = 0;

    *best = fix;
    for (int i = 0; result == 0 && i < count; i++) {
        result = exchange(profile, reading, &fix, status);
        if (fix.error_ns < best->error_ns)
            *best = fix;
    }
    return result;
}

int profile_fix(struct profile *profile, struct wf_status *status)
{
    struct bench_clock_reading reading;
    struct bench_fix best;
    int result = exchange_some(profile, FIX_EXCHANGES, &reading, &best, status);

    profile->unfixed = 0;
    if (result || profile->site->bed->node != 0)
        return result;
    return bench_track_add(&profile->track, &best) ? wf_fail(status, -ENOMEM, "no memory for readings of clocks") : 0;
}

int profile_fix_after(struct profile *profile, uint64_t bytes, struct wf_status *status)
{
    profile->unfixed += bytes + FIX_MESSAGE;
    return profile->unfixed < FIX_WORK ? 0 : profile_fix(profile, status);
}

int64_t profile_time(const struct profile *profile, int node, int64_t ns)
{
    return node == 0 || profile->track.count == 0 ? ns : bench_track_here(&profile->track, ns);
}

int64_t profile_time_error(const struct profile *profile, int node, int64_t ns)
{
    return node == 0 || profile->track.count == 0 ? 0 : bench_track_error(&profile->track, ns);
}

/* --- GPUs --- */

/* The clocks of this node's GPUs, each with what was read of it. */
struct watches {
    struct wf_gpu_clock *clocks[BENCH_GPUS_MAX];
    struct bench_track tracks[BENCH_GPUS_MAX];
    int count;
};

/* A GPU whose clock cannot be read has no drift, and that is no failure of the run. */
static void open_watches(struct watches *watches, const struct bench_gpus *gpus, uint32_t endpoints)
{
    struct wf_status ignored;

    for (uint32_t i = 0; i < gpus->count && i < endpoints; i++, watches->count++)
        if (wf_gpu_clock_open(gpus->infos[i].pci, &watches->clocks[i], &ignored))
            watches->clocks[i] = NULL;
}

static void read_watches(struct watches *watches)
{
    int64_t before = 0, after = 0;
    struct wf_status ignored;
    double gpu_ns = 0;

    for (int i = 0; i < watches->count; i++) {
        if (!watches->clocks[i] || wf_gpu_clock_read(watches->clocks[i], &before, &after, &gpu_ns, &ignored))
            continue;
        struct bench_fix fix = {before + (after - before) / 2, (int64_t)gpu_ns, (after - before + 1) / 2};
        bench_track_add(&watches->tracks[i], &fix);
    }
}

static void close_watches(struct watches *watches, struct profile_window *window)
{
    window->gpu_count = watches->count;
    for (int i = 0; i < watches->count; i++) {
        bench_drift_of(&watches->tracks[i], PIECES, &window->gpus[i]);
        bench_track_fini(&watches->tracks[i]);
        if (watches->clocks[i])
            wf_gpu_clock_close(watches->clocks[i]);
    }
}

/* --- a window --- */

/* Until the next exchange is due. node1 waits for node0's word instead. */
static int rest(const struct profile *profile, int64_t until_ns, struct wf_status *status)
{
    struct timespec until = {until_ns / WF_NS_PER_S, until_ns % WF_NS_PER_S};

    if (profile->site->bed->node == 0)
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return bench_control_check(profile->site->bed->control, status);
}

/* Of the first third and of the last one, the reading in which nobody was held up between two looks at clocks. */
static void keep_narrow(const struct bench_clock_reading *reading, bool first, struct bench_clock_reading *kept)
{
    if (first || reading->gap_ns[0] + reading->gap_ns[1] < kept->gap_ns[0] + kept->gap_ns[1])
        *kept = *reading;
}

/* What both nodes know: how many exchanges there are, so that neither has to say when it is over. */
static int watch_window(struct profile *profile, struct watches *watches, struct bench_track *track,
                        struct bench_clock_reading ends[2], struct wf_status *status)
{
    int64_t seconds = wf_config_number(profile->site->options->config, WF_SET_DRIFT_S);
    int64_t count = seconds * WF_NS_PER_S / EXCHANGE_NS, start = wf_clock_now(&wf_clock_monotonic);
    int result = 0;

    for (int64_t i = 0; result == 0 && i <= count; i++) {
        struct bench_clock_reading reading = {0};
        struct bench_fix fix;
        result = rest(profile, start + i * EXCHANGE_NS, status);
        if (result == 0)
            result = exchange_some(profile, EXCHANGES, &reading, &fix, status);
        if (i <= count / 3 || i >= count - count / 3)
            keep_narrow(&reading, i == 0 || i == count - count / 3, &ends[i > count / 2]);
        if (result == 0 && profile->site->bed->node == 0 && bench_track_add(track, &fix))
            result = wf_fail(status, -ENOMEM, "no memory for readings of clocks");
        if (i % EXCHANGES_PER_WATCH == 0)
            read_watches(watches);
    }
    return result;
}

static int compare_once(struct profile *profile, struct profile_window *window, struct wf_status *status)
{
    struct bench_clock_reading ends[2] = {{0}, {0}};
    struct watches watches = {.count = 0};
    struct bench_track track = {0};

    open_watches(&watches, &profile->site->link->gpus, profile->plan->endpoints);
    int result = watch_window(profile, &watches, &track, ends, status);
    close_watches(&watches, window);
    if (result == 0 && profile->site->bed->node == 0) {
        bench_drift_of(&track, PIECES, &window->nodes);
        for (int node = 0; node < 2; node++)
            window->steered_ppm[node] = bench_steered_ppm(&ends[0], &ends[1], node);
    }
    bench_track_fini(&track);
    return result;
}

static void tell_window(const struct profile *profile, const struct profile_window *window)
{
    const struct bench_drift *drift = &window->nodes;
    FILE *news = profile->site->news;

    bench_progress_wipe(profile->site->progress);
    if (!news || profile->site->bed->node != 0)
        return;
    if (drift->fixes < 3) {
        fprintf(news, "clocks: too few readings in %.1f s for a drift\n", drift->seconds);
        return;
    }
    fprintf(news, "clocks: node1 %+.3f ppm (+- %.3f) against node0, %+.3f ms (+- %.1f us) in %.0f s\n", drift->ppm,
            drift->ppm_error, (double)drift->offset_ns / 1e6, (double)drift->offset_error_ns / 1e3, drift->seconds);
    if (drift->ppm_error > 0.5)
        fprintf(news, "  more than 0.5 ppm: the fastest round trips differed by %.1f us (standard deviation)\n",
                drift->residual_ns / 1e3);
    if (drift->offset_error_ns > 20 * WF_NS_PER_US)
        fprintf(news,
                "  more than 20 us: %.1f us is half of the fastest round trip between the nodes, %.1f us the line's\n",
                (double)drift->half_trip_ns / 1e3, (double)(drift->offset_error_ns - drift->half_trip_ns) / 1e3);
    for (int i = 0; i < window->gpu_count; i++)
        if (window->gpus[i].fixes >= 3)
            fprintf(news, "clocks: gpu%d %+.3f ppm (+- %.3f) against its processor\n", i, window->gpus[i].ppm,
                    window->gpus[i].ppm_error);
    fflush(news);
}

int profile_compare(struct profile *profile, struct profile_window *windows, struct wf_status *status)
{
    int64_t seconds = wf_config_number(profile->site->options->config, WF_SET_DRIFT_S);
    int result = 0;

    for (int i = 0; result == 0 && i < profile->windows; i++) {
        bench_progress_begin(profile->site->progress, "comparing clocks",
                             (profile->windows - i) * seconds * WF_NS_PER_S);
        result = compare_once(profile, &windows[i], status);
        if (result == 0)
            tell_window(profile, &windows[i]);
    }
    return result ? result : profile_fix(profile, status);
}
