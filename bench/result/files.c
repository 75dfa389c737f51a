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
#include "outputs.h"
#include "stream.h"

int bench_files_prepare(const struct bench_options *options, const struct bench_plan *plan, bool *made,
                        struct wf_status *status)
{
    const char *out = wf_config_text(options->config, WF_SET_OUT);

    *made |= out[0] && access(out, F_OK) != 0;
    int result = out[0] ? bench_make_folder(out, status) : 0;
    return result ? result : bench_outputs_check(options, plan, status);
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

/* Whether a setting names standard output. */
static bool is_standard(const char *path)
{
    return strcmp(path, "-") == 0;
}

/* A file that a setting names by itself, or with `standard` the results that go to standard output. */
static int write_named(const struct bench_result *result, enum wf_setting_id id, bool standard,
                       int (*write)(const struct bench_result *, const char *, struct wf_status *),
                       struct wf_status *status)
{
    const char *path = wf_config_text(result->options->config, id);

    return path[0] && is_standard(path) == standard ? write(result, path, status) : 0;
}

/* DIR/mesh.json, DIR/mesh.csv. Returns `path`. */
static char *in_out(const struct bench_result *result, const char *kind, char *path, size_t room)
{
    snprintf(path, room, "%s/%s.%s", wf_config_text(result->options->config, WF_SET_OUT),
             bench_command_name(result->options->command), kind);
    return path;
}

static int write_out(const struct bench_result *result, struct wf_status *status)
{
    const char *folder = wf_config_text(result->options->config, WF_SET_OUT);
    char path[WF_VALUE_MAX + 32];
    struct wf_status later;

    if (!folder[0])
        return 0;
    int code = bench_make_folder(folder, status);
    if (code)
        return code;
    code = bench_result_json(result, in_out(result, "json", path, sizeof path), status);
    code = first(code, bench_result_csv(result, in_out(result, "csv", path, sizeof path), code ? &later : status));
    return code ? code : move_latest(result, folder, status);
}

/* Whether there is something to tell in the folder of --out. */
static bool has_out(const struct bench_result *result)
{
    return result->begun || result->cut.by == BENCH_CUT_SIGNAL;
}

/* What goes by the settings --json and --csv. */
static int write_both(const struct bench_result *result, bool standard, struct wf_status *status)
{
    struct wf_status later;
    int code = write_named(result, WF_SET_JSON, standard, bench_result_json, status);

    if (result->options->command != BENCH_PEERS)
        code = first(code, write_named(result, WF_SET_CSV, standard, bench_result_csv, code ? &later : status));
    return code;
}

/* All but what goes to standard output. */
static int write_all(struct bench_result *result, struct wf_status *status)
{
    const char *logs = wf_config_text(result->options->config, WF_SET_LOG_DIR);
    struct wf_status later;
    int code = 0;

    if (!result->options->child) {
        if (has_out(result))
            code = write_out(result, status);
        code = first(code, write_both(result, false, code ? &later : status));
    }
    code = first(code, bench_stream_close(result, code ? &later : status));
    if (logs[0] && result->options->command == BENCH_MESH && (result->sample_count || result->host[0]))
        code = first(code, bench_result_logs(result, logs, code ? &later : status));
    return code;
}

/* What was written of a run that went well says so, and must not: something else could not be written. */
static void write_verdict_again(const struct bench_result *result)
{
    char path[WF_VALUE_MAX + 32];
    struct wf_status ignored;

    if (result->options->child)
        return;
    if (wf_config_text(result->options->config, WF_SET_OUT)[0] && has_out(result))
        bench_result_json(result, in_out(result, "json", path, sizeof path), &ignored);
    write_named(result, WF_SET_JSON, false, bench_result_json, &ignored);
}

int bench_result_write(struct bench_result *result, struct wf_status *status)
{
    struct wf_status later;
    int code = 0;

    pthread_mutex_lock(&result->lock);
    if (!result->written) {
        result->written = true;
        code = write_all(result, status);
        if (code && !result->error[0]) {
            bench_result_unwritten(result, status);
            write_verdict_again(result);
        }
        if (!result->options->child)
            code = first(code, write_both(result, true, code ? &later : status));
        if (code)
            bench_result_unwritten(result, status);
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
