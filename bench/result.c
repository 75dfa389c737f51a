#include "result.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend.h"
#include "folder.h"
#include "gpus.h"
#include "heard.h"
#include "interrupt.h"
#include "words.h"

void bench_result_init(struct bench_result *result, const struct bench_options *options, int node)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm utc;

    memset(result, 0, sizeof(*result));
    pthread_mutex_init(&result->lock, NULL);
    result->options = options;
    result->node = node;
    gmtime_r(&now, &utc);
    strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &utc);
    bench_result_stamp(result, stamp);
}

void bench_result_fini(struct bench_result *result)
{
    for (int node = 0; node < 2; node++) {
        json_decref(result->host[node]);
        json_decref(result->rail_totals[node]);
        json_decref(result->fallbacks[node]);
        json_decref(result->faults[node]);
    }
    free(result->samples);
    free(result->sets);
    pthread_mutex_destroy(&result->lock);
}

bool bench_is_stamp(const char *text)
{
    static const char digits[] = "0123456789";

    return strlen(text) == strlen("20250131T120000Z") && strspn(text, digits) == 8 && text[8] == 'T' &&
           strspn(text + 9, digits) == 6 && text[15] == 'Z';
}

void bench_result_stamp(struct bench_result *result, const char *stamp)
{
    bench_copy_text(result->stamp, sizeof(result->stamp), stamp);
    if (bench_is_stamp(stamp))
        snprintf(result->started, sizeof(result->started), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", stamp, stamp + 4,
                 stamp + 6, stamp + 9, stamp + 11, stamp + 13);
}

int bench_result_add(struct bench_result *result, const struct bench_sample *sample, struct wf_status *status)
{
    int rc = 0;

    pthread_mutex_lock(&result->lock);
    if (result->sample_count == result->sample_room) {
        size_t room = result->sample_room ? 2 * result->sample_room : 256;
        struct bench_sample *grown = realloc(result->samples, room * sizeof(*grown));
        if (grown) {
            result->samples = grown;
            result->sample_room = room;
        } else {
            rc = wf_fail(status, -ENOMEM, "no memory for %zu samples", room);
        }
    }
    if (rc == 0)
        result->samples[result->sample_count++] = *sample;
    pthread_mutex_unlock(&result->lock);
    return rc;
}

int bench_result_add_set(struct bench_result *result, const struct bench_set *set, struct wf_status *status)
{
    struct bench_set *grown;

    pthread_mutex_lock(&result->lock);
    grown = realloc(result->sets, ((size_t)result->set_count + 1) * sizeof(*grown));
    if (grown) {
        result->sets = grown;
        result->sets[result->set_count++] = *set;
    }
    pthread_mutex_unlock(&result->lock);
    return grown ? 0 : wf_fail(status, -ENOMEM, "no memory for a result");
}

/* A word of the command line that is repeated in it need not be UTF-8, as JSON has to be. */
static void keep_error(struct bench_result *result, const char *reason)
{
    json_t *text;

    snprintf(result->error, sizeof(result->error), "%s", reason);
    text = json_string(result->error);
    if (!text)
        bench_heard_plain(result->error);
    json_decref(text);
}

void bench_result_cut(struct bench_result *result, const struct bench_cut *cut, const char *reason)
{
    pthread_mutex_lock(&result->lock);
    if (!result->complete && !result->cut.by)
        result->cut = *cut;
    if (!result->error[0]) {
        keep_error(result, reason);
        result->error_code = cut->code;
        result->exit_status = cut->exit_status;
    }
    pthread_mutex_unlock(&result->lock);
}

static void keep(json_t **place, const json_t *totals, const char *name)
{
    json_decref(*place);
    *place = json_incref(json_object_get(totals, name));
}

/* What bench_footprint_to_json() tells, and nothing else: the other node may tell it as often as it likes. */
static void keep_footprint(json_t *host, const json_t *footprint)
{
    static const char *const names[] = {"session_s",    "connect_s",   "max_rss_bytes",
                                        "buffer_bytes", "descriptors", "threads"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (json_object_get(footprint, names[i]))
            json_object_set(host, names[i], json_object_get(footprint, names[i]));
}

static void keep_in_host(json_t *host, const json_t *totals)
{
    json_t *affinity = json_object_get(totals, "affinity"), *backends = json_object_get(totals, "backends");

    keep_footprint(host, json_object_get(totals, "footprint"));
    if (affinity)
        json_object_set(host, "affinity", affinity);
    if (backends)
        json_object_set(host, "backends", backends);
    if (json_array_size(json_object_get(totals, "gpu_copies")) > 0)
        json_object_set(host, "gpu_copies", json_object_get(totals, "gpu_copies"));
    bench_gpu_states_into(host, json_object_get(totals, "gpus"), "after");
}

void bench_result_keep_totals(struct bench_result *result, int node, const json_t *totals)
{
    pthread_mutex_lock(&result->lock);
    keep(&result->rail_totals[node], totals, "rails");
    keep(&result->faults[node], totals, "faults");
    if (json_object_get(totals, "fallbacks")) /* GPUs that were made ready may have added some */
        keep(&result->fallbacks[node], totals, "fallbacks");
    if (result->host[node])
        keep_in_host(result->host[node], totals);
    pthread_mutex_unlock(&result->lock);
}

char *bench_cut_text(const struct bench_result *result, char *buffer, size_t room)
{
    buffer[0] = '\0';
    if (result->cut.by == BENCH_CUT_SIGNAL)
        snprintf(buffer, room, "cut short by %s at node%d", bench_signal_name(result->cut.signal), result->cut.node);
    else if (result->cut.by)
        snprintf(buffer, room, "cut short: %s", result->error);
    return buffer;
}

uint64_t bench_result_wrong_bytes(const struct bench_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        sum += result->samples[i].wrong.bytes;
    return sum;
}

uint64_t bench_result_measured_bytes(const struct bench_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        sum += result->samples[i].checked ? bench_sample_measured_bytes(&result->samples[i]) : 0;
    return sum;
}

uint64_t bench_result_verified_bytes(const struct bench_result *result)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < result->sample_count; i++)
        sum += result->samples[i].verified_bytes;
    return sum;
}

bool bench_result_checked(const struct bench_result *result)
{
    for (size_t i = 0; i < result->sample_count; i++)
        if (result->samples[i].checked)
            return true;
    return false;
}

bool bench_result_passed(const struct bench_result *result)
{
    return result->complete && !result->error[0] && bench_result_wrong_bytes(result) == 0;
}

int bench_result_exit_status(const struct bench_result *result)
{
    if (bench_result_passed(result))
        return BENCH_PASSED;
    return result->exit_status ? result->exit_status : BENCH_FAILED;
}

bool bench_sample_in_set(const struct bench_sample *sample, const struct bench_set *set)
{
    return sample->backend == set->backend && sample->mode == set->mode && sample->size == set->size;
}

size_t bench_set_rates(const struct bench_result *result, const struct bench_set *set, double *rates)
{
    size_t count = 0;

    for (size_t i = 0; i < result->sample_count; i++) {
        double rate = bench_sample_in_set(&result->samples[i], set) ? bench_sample_rate(&result->samples[i]) : -1;
        if (rate >= 0)
            rates[count++] = rate;
    }
    return count;
}

double bench_set_aggregate(const struct bench_set *set)
{
    if (set->mode != BENCH_LOADED || !set->backend->moves_data || set->elapsed_ns <= 0)
        return -1;
    return (double)set->bytes / (double)set->elapsed_ns;
}

int bench_files_prepare(const struct wf_config *config, bool *made, struct wf_status *status)
{
    const char *out = wf_config_text(config, WF_SET_OUT);
    const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV};
    int rc;

    *made = out[0] && access(out, F_OK) != 0;
    rc = out[0] ? bench_make_folder(out, status) : 0;
    for (int i = 0; rc == 0 && i < 2; i++) {
        const char *path = wf_config_text(config, files[i]);
        char folder[WF_VALUE_MAX];
        struct stat there;
        bool device;
        char *slash;
        bench_copy_text(folder, sizeof(folder), path);
        slash = strrchr(folder, '/');
        if (!path[0] || strcmp(path, "-") == 0)
            continue;
        if (slash == folder)
            slash[1] = '\0';
        else if (slash)
            *slash = '\0';
        device = stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode); /* is not replaced */
        if (access(device ? path : slash ? folder : ".", W_OK) != 0)
            rc = wf_fail(status, -errno, "--%s %.150s: cannot write there: %s", wf_setting(files[i])->name, path,
                         wf_strerror(errno));
        else if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
            rc = wf_fail(status, -EISDIR, "--%s %.150s: that is a folder: name a file, or use --out",
                         wf_setting(files[i])->name, path);
    }
    return rc;
}

/* A folder beside the link is named without the way there, so that both may be moved together. */
static const char *neighbour(const char *link, const char *target)
{
    char folder[sizeof(((struct bench_options *)0)->latest)], real[PATH_MAX];
    const char *name = strrchr(target, '/');
    char *slash;

    bench_copy_text(folder, sizeof(folder), link);
    slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    if (!realpath(slash ? folder : ".", real) || strncmp(real, target, (size_t)(name - target)) != 0 ||
        real[name - target] != '\0')
        return target;
    return name + 1;
}

/* The link never leads nowhere: a new one takes its place at once. */
static int move_latest(const struct bench_result *result, const char *folder, struct wf_status *status)
{
    const char *link = result->options->latest;
    char temporary[sizeof(result->options->latest) + 16], target[PATH_MAX];

    if (!link[0] || result->sample_count == 0)
        return 0;
    snprintf(temporary, sizeof(temporary), "%s.%ld", link, (long)getpid());
    if (!realpath(folder, target) || symlink(neighbour(link, target), temporary) != 0)
        return wf_fail(status, -errno, "--latest %.150s: %s", link, wf_strerror(errno));
    if (rename(temporary, link) != 0) {
        wf_fail(status, -errno, "--latest %.150s: %s", link, wf_strerror(errno));
        unlink(temporary);
        return status->code;
    }
    return 0;
}

/* The first error is the one that is told. */
static int first(int before, int rc)
{
    return before ? before : rc;
}

/* A file that a setting names by itself. */
static int write_named(const struct bench_result *result, enum wf_setting_id id,
                       int (*write)(const struct bench_result *, const char *, struct wf_status *),
                       struct wf_status *status)
{
    const char *path = wf_config_text(result->options->config, id);

    return path[0] ? write(result, path, status) : 0;
}

/* DIR/mesh.json, DIR/mesh.csv. */
static int write_out(const struct bench_result *result, struct wf_status *status)
{
    const char *folder = wf_config_text(result->options->config, WF_SET_OUT);
    const char *command = bench_command_name(result->options->command);
    char path[WF_VALUE_MAX + 32];
    struct wf_status later;
    int rc;

    if (!folder[0])
        return 0;
    rc = bench_make_folder(folder, status);
    if (rc)
        return rc;
    snprintf(path, sizeof(path), "%s/%s.json", folder, command);
    rc = bench_result_json(result, path, status);
    snprintf(path, sizeof(path), "%s/%s.csv", folder, command);
    rc = first(rc, bench_result_csv(result, path, rc ? &later : status));
    return rc ? rc : move_latest(result, folder, status);
}

static int write_all(const struct bench_result *result, struct wf_status *status)
{
    const char *logs = wf_config_text(result->options->config, WF_SET_LOG_DIR);
    bool tables = result->options->command != BENCH_PEERS;
    struct wf_status later;
    int rc = 0;

    if (!result->options->child) {
        if (result->begun || result->cut.by == BENCH_CUT_SIGNAL)
            rc = write_out(result, status);
        rc = first(rc, write_named(result, WF_SET_JSON, bench_result_json, rc ? &later : status));
        if (tables)
            rc = first(rc, write_named(result, WF_SET_CSV, bench_result_csv, rc ? &later : status));
    }
    if (logs[0] && result->options->command == BENCH_MESH && (result->sample_count || result->host[0]))
        rc = first(rc, bench_result_logs(result, logs, rc ? &later : status));
    return rc;
}

int bench_result_write(struct bench_result *result, struct wf_status *status)
{
    int rc = 0;

    pthread_mutex_lock(&result->lock);
    if (!result->written) {
        result->written = true;
        rc = write_all(result, status);
        result->filed = rc == 0;
    }
    pthread_mutex_unlock(&result->lock);
    return rc;
}

void bench_result_refused(const struct bench_options *options, const struct wf_status *why, int exit_status)
{
    int node = options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    struct bench_cut cut = {.by = BENCH_CUT_FAILURE, .node = node, .code = why->code, .exit_status = exit_status};
    struct bench_result result;
    struct wf_status status = {0};

    bench_result_init(&result, options, node);
    bench_result_cut(&result, &cut, why->text);
    if (bench_result_write(&result, &status) != 0)
        fprintf(stderr, "weft: %s\n", status.text);
    bench_result_fini(&result);
}
