#include "files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/words/folder.h"
#include "bench/words/words.h"
#include "csv.h"
#include "json.h"
#include "logs.h"
#include "stream.h"

int bench_files_prepare(const struct wf_config *config, bool *made, struct wf_status *status)
{
    const char *out = wf_config_text(config, WF_SET_OUT);
    const enum wf_setting_id files[] = {WF_SET_JSON, WF_SET_CSV};

    *made = out[0] && access(out, F_OK) != 0;
    int result = out[0] ? bench_make_folder(out, status) : 0;
    for (int i = 0; result == 0 && i < 2; i++) {
        const char *path = wf_config_text(config, files[i]);
        char folder[WF_VALUE_MAX];
        struct stat there;
        bench_copy_text(folder, sizeof folder, path);
        char *slash = strrchr(folder, '/');
        if (!path[0] || strcmp(path, "-") == 0)
            continue;
        if (slash == folder)
            slash[1] = '\0';
        else if (slash)
            *slash = '\0';
        bool device =
            stat(path, &there) == 0 && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode); /* is not replaced */
        if (access(device ? path : slash ? folder : ".", W_OK) != 0)
            result = wf_fail(status, -errno, "--%s %.150s: cannot write there: %s", wf_setting(files[i])->name, path,
                             wf_strerror(errno));
        else if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
            result = wf_fail(status, -EISDIR, "--%s %.150s: that is a folder: name a file, or use --out",
                             wf_setting(files[i])->name, path);
    }
    return result;
}

/* A folder beside the link is named without the way there, so that both may be moved together. */
static const char *neighbour(const char *link, const char *target)
{
    char folder[sizeof(((struct bench_options *)0)->latest)], real[PATH_MAX];
    const char *name = strrchr(target, '/');

    bench_copy_text(folder, sizeof folder, link);
    char *slash = strrchr(folder, '/');
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
    char temporary[sizeof result->options->latest + 16], target[PATH_MAX];
    struct stat there;

    if (!link[0] || result->sample_count == 0)
        return 0;
    if (lstat(link, &there) == 0 && !S_ISLNK(there.st_mode))
        return wf_fail(status, -EEXIST, "--latest %.150s: that is no link: name one that may be replaced", link);
    snprintf(temporary, sizeof temporary, "%s.%ld", link, (long)getpid());
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
static int first(int before, int result)
{
    return before ? before : result;
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

    if (!folder[0])
        return 0;
    int code = bench_make_folder(folder, status);
    if (code)
        return code;
    snprintf(path, sizeof path, "%s/%s.json", folder, command);
    code = bench_result_json(result, path, status);
    snprintf(path, sizeof path, "%s/%s.csv", folder, command);
    code = first(code, bench_result_csv(result, path, code ? &later : status));
    return code ? code : move_latest(result, folder, status);
}

static int write_all(struct bench_result *result, struct wf_status *status)
{
    const char *logs = wf_config_text(result->options->config, WF_SET_LOG_DIR);
    bool tables = result->options->command != BENCH_PEERS;
    struct wf_status later;
    int code = 0;

    if (!result->options->child) {
        if (result->begun || result->cut.by == BENCH_CUT_SIGNAL)
            code = write_out(result, status);
        code = first(code, write_named(result, WF_SET_JSON, bench_result_json, code ? &later : status));
        if (tables)
            code = first(code, write_named(result, WF_SET_CSV, bench_result_csv, code ? &later : status));
    }
    code = first(code, bench_stream_close(result, code ? &later : status));
    if (logs[0] && result->options->command == BENCH_MESH && (result->sample_count || result->host[0]))
        code = first(code, bench_result_logs(result, logs, code ? &later : status));
    return code;
}

int bench_result_write(struct bench_result *result, struct wf_status *status)
{
    int code = 0;

    pthread_mutex_lock(&result->lock);
    if (!result->written) {
        result->written = true;
        code = write_all(result, status);
        result->filed = code == 0;
    }
    pthread_mutex_unlock(&result->lock);
    return code;
}

void bench_result_refused(const struct bench_options *options, const struct wf_status *why, int exit_status)
{
    int node = options->place == BENCH_PLACE_CONNECT ? 1 : 0;
    struct bench_cut cut = {.by = BENCH_CUT_FAILURE, .node = node, .code = why->code, .exit_status = exit_status};
    struct bench_result result;
    struct wf_status status = {0};

    bench_result_init(&result, options, node);
    bench_result_cut(&result, &cut, why->text);
    int code = bench_result_write(&result, &status);
    if (code != 0 && code != why->code) /* else it has just been told */
        fprintf(stderr, "weft: %s\n", status.text);
    bench_result_fini(&result);
}
