#include "clock_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.h"
#include "mem/nvml.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* the same number on all architectures */
#endif

#define PREFIX "clocks."
#define RECORD_BYTES 4096

/* --- processes --- */

/* The name of a program, the second word of the file, may hold anything: what follows is counted from its end. */
int bench_process_find(pid_t pid, struct bench_process *out)
{
    char path[32], text[1024], state;
    unsigned long long start;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = '\0';
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &state,
                       &start) != 2)
        return -ESRCH;
    if (state == 'Z' || state == 'X') /* it has ended, and its parent does not know yet */
        return -ESRCH;
    *out = (struct bench_process){.pid = pid, .start = start};
    return 0;
}

bool bench_process_lives(const struct bench_process *process)
{
    struct bench_process found;

    return bench_process_find(process->pid, &found) == 0 && found.start == process->start;
}

int bench_process_open(pid_t pid)
{
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

void bench_process_await(const struct bench_process *process, int timeout_ms)
{
    int fd = bench_process_open(process->pid);
    struct pollfd end = {.fd = fd, .events = POLLIN};

    if (fd >= 0 && bench_process_lives(process))
        poll(&end, 1, timeout_ms);
    if (fd >= 0)
        close(fd);
}

/* --- the folder --- */

static int make_folder(const char *path)
{
    if (mkdir(path, 0755) != 0 && errno != EEXIST)
        return -errno;
    return access(path, W_OK) == 0 ? 0 : -errno;
}

int bench_clock_folder(const char *given, char *path, struct wf_status *status)
{
    const char *own = wf_environment_value("XDG_RUNTIME_DIR");
    const char *tried = given ? given : BENCH_CLOCK_USUAL;
    int result = snprintf(path, BENCH_CLOCK_FOLDER, "%s", tried) < BENCH_CLOCK_FOLDER ? make_folder(path) : -E2BIG;

    if (result && !given && own && snprintf(path, BENCH_CLOCK_FOLDER, "%s/weft", own) < BENCH_CLOCK_FOLDER &&
        make_folder(path) == 0)
        return 0;
    if (result == 0)
        return 0;
    return wf_fail(
        status, result,
        "no clocks are locked without a record by which they are unlocked again, and %s cannot hold one: %s%s", tried,
        wf_strerror(result), given ? "" : "; XDG_RUNTIME_DIR names no folder that can");
}

int bench_clock_hold(const char *path, struct wf_status *status)
{
    struct stat there;
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), result = 0;

    if (folder < 0 && errno == ENOENT)
        return -ENOENT;
    if (folder < 0 || fstat(folder, &there) != 0)
        result = wf_fail(status, -errno, "cannot open %s for records of locked clocks: %s", path, wf_strerror(errno));
    else if (there.st_uid != geteuid() || (there.st_mode & (S_IWGRP | S_IWOTH)))
        result = wf_fail(status, -EPERM, "%s is no place for records of locked clocks: others can write there", path);
    while (result == 0 && flock(folder, LOCK_EX) != 0)
        if (errno != EINTR)
            result = wf_fail(status, -errno, "cannot hold %s: %s", path, wf_strerror(errno));
    if (result && folder >= 0)
        close(folder);
    return result ? result : folder;
}

/* --- one record --- */

char *bench_clock_record_name(pid_t run, char name[BENCH_CLOCK_NAME])
{
    snprintf(name, BENCH_CLOCK_NAME, PREFIX "%d", (int)run);
    return name;
}

static int cannot_write(const char *name, int error, struct wf_status *status)
{
    return wf_fail(status, -error, "cannot write %s, the record of locked clocks: %s", name, wf_strerror(error));
}

int bench_clock_record_write(int folder, const struct bench_clock_record *record, struct wf_status *status)
{
    char name[BENCH_CLOCK_NAME];
    int fd = openat(folder, bench_clock_record_name(record->run.pid, name),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0)
        return cannot_write(name, errno, status);
    int written = dprintf(fd, "run %d %llu\nguardian %d %llu\nmhz %d\n", (int)record->run.pid, record->run.start,
                          (int)record->guardian.pid, record->guardian.start, record->mhz);
    for (uint32_t i = 0; written > 0 && i < record->count; i++)
        written = dprintf(fd, "gpu %s\n", record->pci[i]);
    int error = written < 0 || fsync(fd) != 0 || fsync(folder) != 0 ? errno : 0;
    close(fd);
    if (error == 0)
        return 0;
    unlinkat(folder, name, 0);
    return cannot_write(name, error, status);
}

static bool is_whole(const struct bench_clock_record *record)
{
    return record->run.pid > 0 && record->guardian.pid > 0 && record->count > 0;
}

static void read_line(const char *line, struct bench_clock_record *out)
{
    int run, guardian;
    unsigned long long start;

    if (sscanf(line, "run %d %llu", &run, &start) == 2)
        out->run = (struct bench_process){.pid = run, .start = start};
    else if (sscanf(line, "guardian %d %llu", &guardian, &start) == 2)
        out->guardian = (struct bench_process){.pid = guardian, .start = start};
    else if (sscanf(line, "mhz %d", &out->mhz) != 1 && out->count < BENCH_GPUS_MAX)
        out->count += sscanf(line, "gpu %19s", out->pci[out->count]) == 1;
}

int bench_clock_record_read(int folder, const char *name, struct bench_clock_record *out)
{
    struct bench_clock_record record = {0};
    struct stat there;
    char text[RECORD_BYTES], *rest = text, *line;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return errno == ENOENT ? -ENOENT : -EINVAL;
    bool own = fstat(fd, &there) == 0 && S_ISREG(there.st_mode) && there.st_uid == geteuid();
    ssize_t length = own ? read(fd, text, sizeof text - 1) : -1;
    close(fd);
    if (length < 0)
        return -EINVAL;
    text[length] = '\0';
    while ((line = strsep(&rest, "\n")) != NULL)
        read_line(line, &record);
    if (!is_whole(&record))
        return -EINVAL;
    *out = record;
    return 0;
}

/* --- all of them --- */

int bench_clock_record_list(int folder, char (*names)[BENCH_CLOCK_NAME], int max)
{
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
    DIR *all = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry;

    while (all && count < max && (entry = readdir(all)) != NULL) {
        const char *number = entry->d_name + strlen(PREFIX);
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 && *number && strspn(number, "0123456789") < 16 &&
            strspn(number, "0123456789") == strlen(number))
            snprintf(names[count++], BENCH_CLOCK_NAME, "%.31s", entry->d_name);
    }
    if (all)
        closedir(all);
    else if (fd >= 0)
        close(fd);
    return count;
}

static bool has(const struct bench_clock_record *record, const char *pci)
{
    for (uint32_t i = 0; i < record->count; i++)
        if (strcmp(record->pci[i], pci) == 0)
            return true;
    return false;
}

bool bench_clock_record_beside(int folder, const char *name, const char *pci, struct bench_clock_record *out)
{
    char names[BENCH_CLOCK_RECORDS][BENCH_CLOCK_NAME];
    int count = bench_clock_record_list(folder, names, BENCH_CLOCK_RECORDS);

    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) != 0 && bench_clock_record_read(folder, names[i], out) == 0 && has(out, pci) &&
            (bench_process_lives(&out->run) || bench_process_lives(&out->guardian)))
            return true;
    return false;
}

/* A GPU that is gone has no clocks that are locked, nor has one that cannot be unlocked. */
static int undo_gpu(struct wf_nvml *nvml, const char *pci, pid_t run, FILE *news, struct wf_status *status)
{
    int result = wf_nvml_unlock_clocks(nvml, pci, status);

    if (result && result != -ENODEV && result != -EOPNOTSUPP)
        return result;
    if (news && result == 0)
        fprintf(news, "GPU at %s: its clocks, which process %d had left locked, are unlocked\n", pci, (int)run);
    else if (news)
        fprintf(news, "GPU at %s: process %d cannot have left its clocks locked: %s\n", pci, (int)run, status->text);
    return 0;
}

int bench_clock_record_undo(int folder, const char *name, FILE *news, struct wf_status *status)
{
    struct bench_clock_record record, beside;
    struct wf_nvml *nvml = NULL;
    int result = bench_clock_record_read(folder, name, &record), failed = 0;

    if (result == -ENOENT)
        return 0;
    if (result)
        return wf_fail(status, result, "%s is no record of locked clocks", name);
    result = wf_nvml_open(&nvml, status);
    for (uint32_t i = 0; result == 0 && i < record.count; i++) {
        struct wf_status why;
        int unlocked = 0;
        if (!bench_clock_record_beside(folder, name, record.pci[i], &beside))
            unlocked = undo_gpu(nvml, record.pci[i], record.run.pid, news, &why);
        if (unlocked && failed == 0)
            failed = wf_fail(status, unlocked, "%s", why.text);
    }
    wf_nvml_close(nvml);
    if (result == 0 && failed == 0)
        unlinkat(folder, name, 0);
    return result ? result : failed;
}
