/* Where the files of a profile go. They are written into a folder within, and moved to their places when all are there:
 * a run that fails, or is cut short, leaves those of the run before. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bench/words/folder.h"
#include "bench/words/words.h"
#include "mem/cuda_driver.h"
#include "mem/nvml.h"
#include "parts.h"
#include "pieces.h"

#define UNFINISHED ".unfinished"
/* What a message takes in the files: rows of the log and of stamps, and at each end its event and its part of the
 * graph; and each of its pieces that is drawn. */
#define ROW_BYTES 160ull
#define END_BYTES 4200ull
#define PIECE_BYTES 260ull
#define HEAD_BYTES (1ull << 20)

/* --- its name --- */

/* A part of a name: letters, digits, dots; all else is one dash. */
static void put_part(char *name, size_t room, const char *text)
{
    size_t used = strlen(name);

    for (const char *at = text; *at && used + 1 < room; at++) {
        if (isalnum((unsigned char)*at) || *at == '.')
            name[used++] = *at;
        else if (used > 0 && name[used - 1] != '-')
            name[used++] = '-';
    }
    while (used > 0 && name[used - 1] == '-')
        used--;
    name[used] = '\0';
}

/* "Intel Xeon Platinum 8481C", or the machine's architecture where the system names no model. */
static void read_processor(const char *machine, char *text, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];

    bench_copy_text(text, room, machine);
    while (file && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        colon[strcspn(colon, "\n")] = '\0';
        bench_copy_text(text, room, colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (file)
        fclose(file);
}

static void read_versions(char *driver, size_t room, char *cuda, size_t cuda_room)
{
    struct wf_cuda_driver library = {.library = NULL};
    struct wf_nvml *nvml = NULL;
    struct wf_status ignored;

    if (wf_nvml_open(&nvml, &ignored) == 0)
        bench_copy_text(driver, room, wf_nvml_driver(nvml));
    wf_nvml_close(nvml);
    if (wf_cuda_driver_open(&library, &ignored) == 0)
        snprintf(cuda, cuda_room, "%d.%d", library.version / 1000, library.version % 1000 / 10);
    wf_cuda_driver_close(&library);
}

static void name_folder(const struct profile *profile, char *name, size_t room)
{
    const struct bench_gpus *gpus = &profile->site->link->gpus;
    char first[128], second[80] = "unknown", third[80] = "unknown";
    struct utsname system;

    uname(&system);
    if (gpus->count) {
        bench_copy_text(first, sizeof first, gpus->infos[0].name);
        read_versions(second, sizeof second, third, sizeof third);
    } else {
        bench_copy_text(first, sizeof first, "host");
        read_processor(system.machine, second, sizeof second);
        bench_copy_text(third, sizeof third, system.release);
    }
    name[0] = '\0';
    const char *parts[] = {first, second, third};
    for (int i = 0; i < 3; i++) {
        if (i)
            snprintf(name + strlen(name), room - strlen(name), "-");
        put_part(name, room, parts[i]);
    }
}

/* --- room --- */

static uint64_t bytes_needed(const struct profile *profile)
{
    uint64_t sum = HEAD_BYTES, chunk = (uint64_t)wf_config_number(profile->site->options->config, WF_SET_CHUNK);

    for (size_t i = 0; i < profile->config_count; i++) {
        uint64_t pieces = 1 + profile->configs[i].size / (chunk ? chunk : 1);
        if (pieces > BENCH_PIECES_DRAWN)
            pieces = BENCH_PIECES_DRAWN;
        sum += (ROW_BYTES + 2 * (END_BYTES + pieces * PIECE_BYTES)) * profile->plan->iters;
    }
    return sum;
}

static int check_room(const struct profile *profile, struct wf_status *status)
{
    uint64_t need = bytes_needed(profile);
    char wanted[32], there[32];
    struct statvfs system;

    if (statvfs(profile->folder, &system) != 0 || (uint64_t)system.f_bavail * system.f_frsize >= need)
        return 0;
    return wf_fail(status, -ENOSPC,
                   "--traces: about %s of files, and %.150s has room for %s: make room there, name another "
                   "place, or use fewer repetitions, sizes or endpoints",
                   bench_human_bytes(need, wanted, sizeof wanted), profile->folder,
                   bench_human_bytes((uint64_t)system.f_bavail * system.f_frsize, there, sizeof there));
}

/* --- its files --- */

const char *profile_path(const struct profile *profile, const char *name, char *path, size_t room)
{
    snprintf(path, room, "%s/" UNFINISHED "/%s", profile->folder, name);
    return path;
}

/* Calls `use` with the paths of the files of `folder` that match one of these patterns. */
static int each_file(const char *folder, const char *const *patterns, size_t count,
                     int (*use)(const struct profile *profile, const char *name), const struct profile *profile)
{
    DIR *stream = opendir(folder);
    const struct dirent *entry;
    int result = 0;

    if (!stream)
        return -errno;
    while (result == 0 && (entry = readdir(stream)) != NULL)
        for (size_t i = 0; result == 0 && i < count; i++)
            if (fnmatch(patterns[i], entry->d_name, FNM_PERIOD) == 0)
                result = use(profile, entry->d_name);
    closedir(stream);
    return result;
}

static int remove_unfinished(const struct profile *profile, const char *name)
{
    char path[PROFILE_PATH];

    unlink(profile_path(profile, name, path, sizeof path));
    return 0;
}

static void remove_all_unfinished(const struct profile *profile)
{
    static const char *const all[] = {"*"};
    char path[PROFILE_PATH];

    each_file(profile_path(profile, "", path, sizeof path), all, 1, remove_unfinished, profile);
}

void profile_folder_clean(struct profile *profile)
{
    char path[PROFILE_PATH];

    if (profile->folder_lock < 0)
        return;
    remove_all_unfinished(profile);
    rmdir(profile_path(profile, "", path, sizeof path));
    rmdir(profile->folder); /* stays where there are files of another run */
    close(profile->folder_lock);
    profile->folder_lock = -1;
}

/* Every rank of this run has replaced the file of its own name. */
static int remove_stale(const struct profile *profile, const char *name)
{
    unsigned long rank = strtoul(name + strcspn(name, "0123456789"), NULL, 10);
    char path[PROFILE_PATH];

    if (rank < 2ul * profile->plan->endpoints)
        return 0;
    snprintf(path, sizeof path, "%s/%s", profile->folder, name);
    unlink(path);
    return 0;
}

static int move_in(const struct profile *profile, const char *name)
{
    char from[PROFILE_PATH], to[PROFILE_PATH];

    profile_path(profile, name, from, sizeof from);
    snprintf(to, sizeof to, "%s/%s", profile->folder, name);
    return rename(from, to) ? -errno : 0;
}

int profile_folder_publish(const struct profile *profile, struct wf_status *status)
{
    /* What a run with more ranks has left would pass for this one's. */
    static const char *const stale[] = {"rank_*.pt.trace.json", "rank_*_CPU_trace.json", "metadata_rank_*.yml"};
    static const char *const all[] = {"*"};
    char path[PROFILE_PATH];

    profile_path(profile, "", path, sizeof path);
    int result = each_file(path, all, 1, move_in, profile);
    if (result)
        return wf_fail(status, result, "cannot move the files of %.200s to their places: %s", path,
                       wf_strerror(result));
    /* Not before: where a file cannot be moved, the earlier run keeps those that have no successor. */
    each_file(profile->folder, stale, sizeof stale / sizeof stale[0], remove_stale, profile);
    rmdir(path);
    return 0;
}

/* --- before anything is measured --- */

/* Two runs that write at once would take each other's files. The lock ends with the process. */
static int lock_folder(struct profile *profile, const char *path, struct wf_status *status)
{
    profile->folder_lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (profile->folder_lock < 0)
        return wf_fail(status, -errno, "--traces: cannot open %.200s: %s", path, wf_strerror(errno));
    if (flock(profile->folder_lock, LOCK_EX | LOCK_NB) == 0)
        return 0;
    close(profile->folder_lock);
    profile->folder_lock = -1;
    return wf_fail(status, -EBUSY,
                   "--traces: another weft profile writes to %.200s: wait for it, or name another folder",
                   profile->folder);
}

int profile_folder(struct profile *profile, struct wf_status *status)
{
    const char *root = wf_config_text(profile->site->options->config, WF_SET_TRACES);
    char name[300], path[PROFILE_PATH];

    if (profile->site->bed->node != 0)
        return 0;
    if (!root[0])
        return wf_fail(status, -EINVAL, "--traces is empty: name the folder for the files");
    name_folder(profile, name, sizeof name);
    if ((size_t)snprintf(profile->folder, sizeof profile->folder, "%s/%s", root, name) >= sizeof profile->folder)
        return wf_fail(status, -ENAMETOOLONG, "--traces %.60s...: the name is too long", root);
    profile_path(profile, "", path, sizeof path);
    int result = bench_make_folder(path, status);
    if (result == 0)
        result = lock_folder(profile, path, status);
    if (result)
        return result;
    remove_all_unfinished(profile);
    return check_room(profile, status);
}
