#include "clock_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "clock_guard.h"
#include "clock_record.h"
#include "mem/nvml.h"

/* --- what is left of other runs --- */

/* Whether the record stands for a run that goes on; a guardian that outlives its run is about to undo it itself. */
static bool is_kept(const struct bench_clock_record *record, FILE *news)
{
    if (!bench_process_lives(&record->run) && !bench_process_lives(&record->guardian))
        return false;
    if (news)
        fprintf(news, "process %d keeps clocks locked: %s\n", (int)record->run.pid,
                bench_process_lives(&record->run) ? "it is running" : "it has ended, and its guardian has not");
    return true;
}

static int undo_one(int folder, const char *name, FILE *news, int *undone, struct wf_status *status)
{
    struct bench_clock_record record;
    int result = bench_clock_record_read(folder, name, &record);

    if (result == -EINVAL && news)
        fprintf(news, "%s is left alone: it is no record of locked clocks\n", name);
    if (result || is_kept(&record, news))
        return 0;
    result = bench_clock_record_undo(folder, name, news, status);
    *undone += result == 0;
    return result;
}

/* Guardians whose run has ended are at work. The folder is not held meanwhile: they need it. */
static void await_guardians(const char *path)
{
    char names[BENCH_CLOCK_RECORDS][BENCH_CLOCK_NAME];
    struct bench_clock_record record;
    int folder = bench_clock_hold(path, NULL);
    int count = folder < 0 ? 0 : bench_clock_record_list(folder, names, BENCH_CLOCK_RECORDS);

    for (int i = 0; i < count; i++) {
        bool at_work = bench_clock_record_read(folder, names[i], &record) == 0 && !bench_process_lives(&record.run);
        if (!at_work)
            continue;
        close(folder);
        bench_process_await(&record.guardian, BENCH_GUARDIAN_MS);
        folder = bench_clock_hold(path, NULL);
        if (folder < 0)
            return;
    }
    if (folder >= 0)
        close(folder);
}

static int undo_folder(const char *path, FILE *news, int *undone, struct wf_status *status)
{
    char names[BENCH_CLOCK_RECORDS][BENCH_CLOCK_NAME];
    int failed = 0;

    await_guardians(path);
    int folder = bench_clock_hold(path, status);
    if (folder < 0)
        return folder == -ENOENT ? 0 : folder;
    int count = bench_clock_record_list(folder, names, BENCH_CLOCK_RECORDS);
    for (int i = 0; i < count; i++) {
        struct wf_status why;
        int result = undo_one(folder, names[i], news, undone, &why);
        if (result && failed == 0)
            failed = wf_fail(status, result, "clocks stay locked (%s/%s): %s", path, names[i], why.text);
    }
    close(folder);
    return failed;
}

int bench_clocks_undo(const char *folder, FILE *news, int *undone, struct wf_status *status)
{
    const char *own = wf_environment_value("XDG_RUNTIME_DIR");
    char path[BENCH_CLOCK_FOLDER];
    int count = 0, result = undo_folder(folder ? folder : BENCH_CLOCK_USUAL, news, &count, status);

    if (!folder && own && snprintf(path, sizeof path, "%s/weft", own) < (int)sizeof path) {
        int other = undo_folder(path, news, &count, result ? NULL : status);
        result = result ? result : other;
    }
    if (undone)
        *undone = count;
    return result;
}

/* --- locking --- */

static int fill_record(struct bench_clock_record *record, const struct bench_gpus *gpus, uint32_t endpoints, int mhz,
                       struct wf_status *status)
{
    record->mhz = mhz;
    for (uint32_t i = 0; i < gpus->count && i < endpoints; i++) {
        if (!gpus->infos[i].pci[0])
            return wf_fail(status, -ENODEV, "GPU %d tells no PCI address: its clocks cannot be locked",
                           (int)gpus->infos[i].index);
        snprintf(record->pci[record->count++], sizeof record->pci[0], "%s", gpus->infos[i].pci);
    }
    return record->count ? 0 : wf_fail(status, -EINVAL, "no endpoint is a GPU: there are no clocks to lock");
}

/* Two runs cannot have one GPU at two clocks. */
static int check_others(int folder, const struct bench_clock_record *record, struct wf_status *status)
{
    struct bench_clock_record beside;
    char name[BENCH_CLOCK_NAME];

    bench_clock_record_name(record->run.pid, name);
    for (uint32_t i = 0; i < record->count; i++)
        if (bench_clock_record_beside(folder, name, record->pci[i], &beside) && beside.mhz != record->mhz)
            return wf_fail(status, -EBUSY, "process %d keeps the clocks of the GPU at %s at others: wait for its end",
                           (int)beside.run.pid, record->pci[i]);
    return 0;
}

/* The number of GPUs that are locked, all of them or until one failed, is lock->count. */
static int lock_all(struct bench_clock_lock *lock, const struct bench_clock_record *record, struct wf_status *status)
{
    struct wf_nvml *nvml = NULL;
    int result = wf_nvml_open(&nvml, status);

    for (uint32_t i = 0; result == 0 && i < record->count; i++) {
        lock->mhz[i] = record->mhz;
        if (record->mhz == 0)
            result = wf_nvml_clock_range(nvml, record->pci[i], &lock->mhz[i], status);
        if (result == 0)
            result = wf_nvml_lock_clocks(nvml, record->pci[i], lock->mhz[i], lock->mhz[i], status);
        lock->count += result == 0;
    }
    wf_nvml_close(nvml);
    return result;
}

/* With the guardian already there. A record of clocks none of which could be locked has nothing to undo. */
static int lock_by_record(struct bench_clock_lock *lock, struct bench_clock_record *record, struct wf_status *status)
{
    char name[BENCH_CLOCK_NAME];
    int folder = bench_clock_hold(lock->folder, status);

    if (folder < 0)
        return folder == -ENOENT ? wf_fail(status, folder, "%s has gone", lock->folder) : folder;
    int result = check_others(folder, record, status);
    if (result == 0)
        result = bench_clock_record_write(folder, record, status);
    if (result == 0) {
        result = lock_all(lock, record, status);
        if (lock->count == 0)
            unlinkat(folder, bench_clock_record_name(record->run.pid, name), 0);
    }
    close(folder);
    return result;
}

/* Before there is a guardian, which would take what has the record's name for its own. */
static int check_free(const char *path, pid_t run, struct wf_status *status)
{
    char name[BENCH_CLOCK_NAME];
    struct stat there;
    int folder = bench_clock_hold(path, status), result = 0;

    if (folder < 0)
        return folder == -ENOENT ? wf_fail(status, folder, "%s has gone", path) : folder;
    if (fstatat(folder, bench_clock_record_name(run, name), &there, AT_SYMLINK_NOFOLLOW) == 0)
        result = wf_fail(status, -EEXIST,
                         "%s/%s is in the place of the record of this run's clocks: remove it, unless this process "
                         "has locked clocks before",
                         path, name);
    close(folder);
    return result;
}

int bench_clocks_lock(struct bench_clock_lock *lock, const struct bench_gpus *gpus, uint32_t endpoints, int mhz,
                      const char *folder, struct wf_status *status)
{
    struct bench_clock_record record = {0};

    *lock = (struct bench_clock_lock){.guard = -1};
    int result = fill_record(&record, gpus, endpoints, mhz, status);
    if (result == 0)
        result = bench_clock_folder(folder, lock->folder, status);
    if (result == 0)
        result = bench_clocks_undo(folder, NULL, NULL, status);
    if (result == 0 && bench_process_find(getpid(), &record.run) != 0)
        result = wf_fail(status, -ENOENT, "/proc does not say when this process has started: no clocks are locked");
    if (result == 0)
        result = check_free(lock->folder, record.run.pid, status);
    if (result == 0)
        result = bench_clock_guard_start(lock, &record.guardian, status);
    if (result == 0)
        result = lock_by_record(lock, &record, status);
    if (result)
        bench_clocks_unlock(lock, NULL);
    return result;
}

/* --- the end --- */

/* Its guardian is gone: what the record says is undone here. */
static int undo_own(const struct bench_clock_lock *lock, struct wf_status *status)
{
    char name[BENCH_CLOCK_NAME];
    int folder = bench_clock_hold(lock->folder, status);

    if (folder < 0)
        return folder;
    int result = bench_clock_record_undo(folder, bench_clock_record_name(getpid(), name), NULL, status);
    close(folder);
    return result;
}

int bench_clocks_unlock(struct bench_clock_lock *lock, struct wf_status *status)
{
    struct wf_status answer = {0};

    if (lock->guard < 0)
        return 0;
    int result = bench_clock_guard_end(lock, &answer);
    if (result == -ECHILD)
        result = undo_own(lock, &answer);
    lock->count = 0;
    return result ? wf_fail(status, result, "the clocks of GPUs may still be locked: %s", answer.text) : 0;
}
