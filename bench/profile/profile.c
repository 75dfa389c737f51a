#include "profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "bench/machine/clock_lock.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "parts.h"

/* --- one profile in memory --- */

static int init(struct profile *profile, const struct bench_profile_site *site, struct wf_status *status)
{
    const struct wf_config *config = site->options->config;

    profile->site = site;
    profile->folder_lock = -1;
    profile->plan = site->bed->plan;
    profile->windows =
        wf_config_number(config, WF_SET_DRIFT_S) ? (int)wf_config_number(config, WF_SET_DRIFT_WINDOWS) : 0;
    int result = profile_order(profile, status);
    if (result)
        return result;
    profile->sums = calloc(profile->config_count, sizeof *profile->sums);
    for (int node = 0; node < 2; node++)
        profile->marks[node] = calloc(profile->row_count, sizeof *profile->marks[node]);
    profile->start = calloc((size_t)profile->windows + 1, sizeof *profile->start);
    profile->end = calloc((size_t)profile->windows + 1, sizeof *profile->end);
    if (!profile->sums || !profile->marks[0] || !profile->marks[1] || !profile->start || !profile->end)
        return wf_fail(status, -ENOMEM, "no memory for %zu messages: use fewer repetitions, sizes or endpoints",
                       profile->row_count);
    return 0;
}

static void fini(struct profile *profile)
{
    for (size_t i = 0; profile->sums && i < profile->config_count; i++)
        free(profile->sums[i].rail_bytes);
    free(profile->sums);
    for (int node = 0; node < 2; node++) {
        free(profile->marks[node]);
        json_decref(profile->about[node]);
    }
    bench_track_fini(&profile->track);
    bench_sense_destroy(profile->sense);
    json_decref(profile->before);
    json_decref(profile->criteria);
    json_decref(profile->sensed);
    free(profile->configs);
    free(profile->spans);
    free(profile->rows);
    free(profile->start);
    free(profile->end);
}

/* --- clocks of GPUs --- */

void bench_profile_lock(struct bench_profile_lock *lock, const struct bench_options *options,
                        const struct bench_gpus *gpus, uint32_t endpoints, FILE *news)
{
    struct wf_status why = {0};

    if (!wf_config_number(options->config, WF_SET_LOCK_CLOCKS)) {
        bench_copy_text(lock->text, sizeof lock->text, "not locked: nobody asked for it");
        return;
    }
    if (gpus->count && options->child) {
        bench_copy_text(lock->text, sizeof lock->text, "left to node0, which is on the same machine");
        return;
    }
    if (gpus->count == 0)
        wf_fail(&why, -ENODEV, "there is no GPU");
    else
        lock->locked = bench_clocks_lock(&lock->lock, gpus, endpoints, 0, NULL, &why) == 0;
    if (lock->locked)
        bench_copy_text(lock->text, sizeof lock->text, "locked at the highest frequency");
    else
        snprintf(lock->text, sizeof lock->text, "not locked: %.180s", why.text);
    bench_heard_plain(lock->text); /* it may have been cut within a character */
    if (news)
        fprintf(news, "GPU clocks: %s\n", lock->text);
}

void bench_profile_unlock(struct bench_profile_lock *lock)
{
    struct wf_status status = {0};

    if (lock->locked && bench_clocks_unlock(&lock->lock, &status))
        fprintf(stderr, "weft: %s: use weft profile --unlock-clocks\n", status.text);
    lock->locked = false;
}

int bench_profile_undo_locks(void)
{
    struct wf_status status = {0};
    int undone = 0;

    if (bench_clocks_undo(NULL, stdout, &undone, &status)) {
        fprintf(stderr, "weft: %s\n", status.text);
        return BENCH_FAILED;
    }
    if (undone == 0)
        printf("no run has left clocks locked\n");
    return BENCH_PASSED;
}

/* --- the run --- */

/* At once: what comes next takes a while. */
static void tell(const struct profile *profile, const char *what, const char *text)
{
    FILE *news = profile->site->news;

    bench_progress_wipe(profile->site->progress);
    if (!news)
        return;
    fprintf(news, "%s: %s\n", what, text);
    fflush(news);
}

static int measure_all(struct profile *profile, struct wf_status *status)
{
    const struct wf_config *config = profile->site->options->config;
    int warm_to = (int)wf_config_number(config, WF_SET_WARM_TO);
    struct timespec now;
    int result = profile_watch(profile, status);

    if (result == 0 && warm_to)
        tell(profile, "temperature", "warming up");
    if (warm_to == 0)
        bench_copy_text(profile->warmed, sizeof profile->warmed, "not warmed up: nobody asked for it");
    else if (result == 0)
        result = profile_warm(profile, warm_to, (int)wf_config_number(config, WF_SET_WARM_S), status);
    if (result == 0 && warm_to)
        tell(profile, "temperature", profile->warmed);
    if (result == 0 && profile->windows)
        tell(profile, "clocks", "comparing them, at both nodes");
    if (result == 0)
        result = profile_compare(profile, profile->start, status);
    clock_gettime(CLOCK_REALTIME, &now);
    profile->base_ns = wf_clock_now(&wf_clock_monotonic);
    profile->base_unix_ns = (int64_t)now.tv_sec * WF_NS_PER_S + now.tv_nsec;
    if (result == 0)
        result = profile_passes(profile, status);
    if (result == 0)
        result = profile_compare(profile, profile->end, status);
    if (result == 0)
        profile_watched(profile);
    return result;
}

static int conclude(struct profile *profile, struct wf_status *status)
{
    int node = profile->site->bed->node;

    profile->about[node] = profile_about(profile);
    bench_progress_begin(profile->site->progress, "putting both nodes' messages together", 0);
    int result = profile->about[node] ? profile_gather(profile, status)
                                      : wf_fail(status, -ENOMEM, "no memory for what is known of this node");
    if (result == 0 && node == 0)
        result = profile_conclude(profile, status);
    if (result == 0)
        result = profile_share_samples(profile, status);
    bench_progress_wipe(profile->site->progress);
    if (result == 0 && node == 1)
        bench_progress_end(profile->site->progress);
    if (result == 0 && node == 1 && profile->site->news)
        fprintf(profile->site->news, "node0 writes the traces and all other files, of both nodes\n");
    bench_progress_begin(profile->site->progress, "writing the traces", 0);
    if (result == 0 && node == 0)
        result = profile_write(profile, status);
    bench_progress_wipe(profile->site->progress);
    return result;
}

int bench_profile(const struct bench_profile_site *site, struct wf_status *status)
{
    struct profile *profile = calloc(1, sizeof *profile);

    if (!profile)
        return wf_fail(status, -ENOMEM, "no memory for a profile");
    int result = init(profile, site, status);
    if (result == 0)
        result = profile_folder(profile, status);
    if (result == 0)
        result = measure_all(profile, status);
    if (result == 0)
        result = conclude(profile, status);
    profile_folder_clean(profile);
    fini(profile);
    free(profile);
    return result;
}
