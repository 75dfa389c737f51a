#include "outputs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/words/folder.h"
#include "bench/words/words.h"

#define PROBES_MAX 8
#define SAMPLE_JSON 1536ull /* bytes of a sample in the file, rather more than less */
#define SAMPLE_CSV 512ull
#define HEAD_BYTES (64ull << 10) /* of the file: hosts, settings, rails, sums */
#define LOG_BYTES 4096ull
#define LINE_BYTES 128ull
#define USUAL_SAMPLES 128ull /* where there is no plan */

/* Files that take up the room until the last place has been tried. */
struct probes {
    int fds[PROBES_MAX];
    int count;
};

/* --- how much there will be --- */

static uint64_t json_bytes(const struct bench_plan *plan)
{
    return HEAD_BYTES + SAMPLE_JSON * (plan ? bench_plan_samples(plan) : USUAL_SAMPLES);
}

static uint64_t csv_bytes(const struct bench_plan *plan)
{
    return LOG_BYTES + SAMPLE_CSV * (plan ? bench_plan_samples(plan) : USUAL_SAMPLES);
}

static uint64_t log_bytes(const struct bench_plan *plan)
{
    if (!plan)
        return LOG_BYTES;
    uint64_t sets = (uint64_t)plan->size_count * (uint64_t)plan->backend_count * BENCH_MODES;
    return plan->endpoints * (LOG_BYTES + LINE_BYTES * sets);
}

/* --- room --- */

static int write_much(int fd, uint64_t bytes)
{
    char block[16384];

    memset(block, 'w', sizeof block); /* some file systems keep no zeros */
    while (bytes > 0) {
        size_t length = bytes < sizeof block ? (size_t)bytes : sizeof block;
        ssize_t written = write(fd, block, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return written < 0 ? -errno : -ENOSPC;
        bytes -= (uint64_t)written;
    }
    return 0;
}

static int no_room(const char *option, const char *path, uint64_t bytes, int code, struct wf_status *status)
{
    char size[32];

    if (code == -EFBIG)
        return bench_cannot_write(path, code, status);
    return wf_fail(status, code,
                   "--%s %.150s: no room for about %s of results: %s: make room there, or name another place", option,
                   path, bench_human_bytes(bytes, size, sizeof size), wf_strerror(code));
}

/* Takes the room up in `folder`, for what `option` says shall be at `path`. */
static int probe(struct probes *probes, const char *folder, uint64_t bytes, const char *option, const char *path,
                 struct wf_status *status)
{
    int fd = bench_probe_folder(folder);

    if (fd == -ENOSPC || fd == -EDQUOT)
        return no_room(option, path, bytes, fd, status);
    if (fd < 0)
        return wf_fail(status, fd, "--%s %.150s: cannot write there: %s", option, path, wf_strerror(fd));
    probes->fds[probes->count++] = fd;
    int result = write_much(fd, bytes);
    return result ? no_room(option, path, bytes, result, status) : 0;
}

/* Network file systems tell of some errors here. */
static void probes_end(struct probes *probes)
{
    for (int i = 0; i < probes->count; i++)
        close(probes->fds[i]);
}

/* --- places --- */

/* The folder that `path` is in. Returns `folder`. */
static char *folder_of(const char *path, char *folder, size_t room)
{
    if (folder != path)
        bench_copy_text(folder, room, path);
    char *slash = strrchr(folder, '/');
    if (!slash)
        bench_copy_text(folder, room, ".");
    else
        slash[slash == folder] = '\0';
    return folder;
}

/* A file that is to be at `path`, because of what `option` says. */
static int check_file(struct probes *probes, const char *path, uint64_t bytes, const char *option, const char *said,
                      struct wf_status *status)
{
    char folder[WF_VALUE_MAX + 32];
    struct stat there;

    if (stat(path, &there) == 0 && S_ISDIR(there.st_mode))
        return wf_fail(status, -EISDIR, "--%s %.150s: that is a folder: name a file, or use --out", option, path);
    folder_of(path, folder, sizeof folder);
    /* A device, a pipe and what a link leads to are written to, a file is replaced. */
    bool stays = lstat(path, &there) == 0 && !S_ISREG(there.st_mode);
    if (stays && access(path, F_OK) != 0)
        return 0; /* a link that leads to what is not there yet */
    if (access(stays ? path : folder, W_OK) != 0)
        return wf_fail(status, -errno, "--%s %.150s: cannot write there: %s", option, said, wf_strerror(errno));
    return stays ? 0 : probe(probes, folder, bytes, option, said, status);
}

int bench_output_check(const char *option, const char *path, struct wf_status *status)
{
    struct probes probes = {.count = 0};
    int result = check_file(&probes, path, LOG_BYTES, option, path, status);

    probes_end(&probes);
    return result;
}

/* DIR/mesh.json and DIR/mesh.csv. */
static int check_out(struct probes *probes, const struct bench_options *options, const struct bench_plan *plan,
                     struct wf_status *status)
{
    const char *out = wf_config_text(options->config, WF_SET_OUT), *command = bench_command_name(options->command);
    char path[WF_VALUE_MAX + 32];

    if (!out[0])
        return 0;
    snprintf(path, sizeof path, "%s/%s.json", out, command);
    int result = check_file(probes, path, json_bytes(plan), "out", out, status);
    snprintf(path, sizeof path, "%s/%s.csv", out, command);
    return result ? result : check_file(probes, path, csv_bytes(plan), "out", out, status);
}

static int check_named(struct probes *probes, const struct bench_options *options, enum wf_setting_id id,
                       const char *option, uint64_t bytes, struct wf_status *status)
{
    const char *path = wf_config_text(options->config, id);

    if (!path[0] || strcmp(path, "-") == 0 || !(wf_setting(id)->uses & options->command))
        return 0;
    return check_file(probes, path, bytes, option, path, status);
}

static int check_logs(struct probes *probes, const struct bench_options *options, const struct bench_plan *plan,
                      struct wf_status *status)
{
    const char *folder = wf_config_text(options->config, WF_SET_LOG_DIR);

    char there[WF_VALUE_MAX];

    if (!folder[0] || options->command != BENCH_MESH)
        return 0;
    /* It is made once there is something to put into it. */
    bench_copy_text(there, sizeof there, folder);
    while (access(there, F_OK) != 0 && errno == ENOENT && strcmp(there, ".") != 0)
        folder_of(there, there, sizeof there);
    return probe(probes, there, log_bytes(plan), "log-dir", folder, status);
}

/* The link takes the place of another link, never that of a file or folder. */
static int check_latest(const struct bench_options *options, struct wf_status *status)
{
    char folder[sizeof options->latest];
    struct stat there;

    if (!options->latest[0])
        return 0;
    if (lstat(options->latest, &there) == 0 && !S_ISLNK(there.st_mode))
        return wf_fail(status, -EEXIST, "--latest %.150s: that is no link: name one that may be replaced",
                       options->latest);
    if (access(folder_of(options->latest, folder, sizeof folder), W_OK) != 0)
        return wf_fail(status, -errno, "--latest %.150s: cannot write there: %s", options->latest, wf_strerror(errno));
    return 0;
}

int bench_outputs_check(const struct bench_options *options, const struct bench_plan *plan, struct wf_status *status)
{
    struct probes probes = {.count = 0};
    int result = check_latest(options, status);

    if (result == 0)
        result = check_out(&probes, options, plan, status);
    if (result == 0)
        result = check_named(&probes, options, WF_SET_JSON, "json", json_bytes(plan), status);
    if (result == 0)
        result = check_named(&probes, options, WF_SET_CSV, "csv", csv_bytes(plan), status);
    if (result == 0)
        result = check_named(&probes, options, WF_SET_JSON_STREAM, "json-stream", json_bytes(plan), status);
    if (result == 0)
        result = check_logs(&probes, options, plan, status);
    probes_end(&probes);
    return result;
}
