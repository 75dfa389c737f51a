/* Is there room for results and logs where they go? */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "bench/words/folder.h"
#include "bench/words/words.h"
#include "parts.h"

#define LEAST_BYTES (16u << 20)

/* Some file systems refuse files whatever the permissions say, such as /proc. */
static int try_file(const char *folder)
{
    int fd = bench_probe_folder(folder);

    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

/* Of the folder, or the nearest one above it that is there. Otherwise why no file can be made in it: -ENOTDIR, -EACCES,
 * -EROFS, -ENOSPC and the like. */
static int look(const char *path, struct statvfs *system)
{
    char folder[WF_VALUE_MAX];

    bench_copy_text(folder, sizeof folder, path);
    while (statvfs(folder, system) != 0) {
        char *slash = strrchr(folder, '/');
        if (errno != ENOENT)
            return -errno;
        if (!slash)
            bench_copy_text(folder, sizeof folder, ".");
        else
            slash[slash == folder] = '\0';
    }
    struct stat file;
    if (stat(folder, &file) == 0 && !S_ISDIR(file.st_mode))
        return -ENOTDIR;
    return access(folder, W_OK | X_OK) == 0 ? try_file(folder) : -errno;
}

static void check_folder(struct doctor *doctor, const char *what, const char *path)
{
    struct statvfs system;
    char free_bytes[32], remedy[160];

    int code = look(path, &system);
    bool full = code == -ENOSPC || code == -EDQUOT;
    if (code < 0 && !full) {
        snprintf(remedy, sizeof remedy, "name a folder that you may write to (%s)", what);
        doctor_fault(doctor, "disk", remedy, "no file can be made in %.200s: %s", path, strerror(-code));
        return;
    }
    uint64_t bytes = (uint64_t)system.f_bavail * system.f_frsize;
    snprintf(remedy, sizeof remedy, "delete something there, or name a folder elsewhere (%s)", what);
    bench_human_bytes(bytes, free_bytes, sizeof free_bytes);
    if (system.f_blocks > 0 && bytes < LEAST_BYTES)
        doctor_fault(doctor, "disk", remedy, "the file system of %.200s is full: %s are left", path, free_bytes);
    else if (system.f_files > 0 && system.f_favail == 0)
        doctor_fault(doctor, "disk", remedy, "the file system of %.200s has no inode left for another file", path);
    else if (full)
        doctor_fault(doctor, "disk", remedy, "no file can be made in %.200s: %s", path, strerror(-code));
    else if (system.f_blocks == 0) /* as of tmpfs without a limit */
        doctor_good(doctor, "disk", "a file can be made in %.200s, and the file system says no limit", path);
    else
        doctor_good(doctor, "disk", "%s are free at %.200s", free_bytes, path);
}

void doctor_check_disk(struct doctor *doctor)
{
    static const struct {
        enum wf_setting_id id;
        const char *option;
    } folders[] = {{WF_SET_OUT, "--out"}, {WF_SET_LOG_DIR, "--log-dir"}};
    bool named = false;

    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        const char *path = wf_config_text(doctor->options->config, folders[i].id);
        if (path[0])
            check_folder(doctor, folders[i].option, path);
        named |= path[0] != '\0';
    }
    if (!named && access(".", W_OK | X_OK) == 0) /* else a run that writes needs one of them, and others need none */
        check_folder(doctor, "--out", ".");
}
