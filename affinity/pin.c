/* Threads: where they may run, and where they did. Memory is in place.c. */
#include "affinity/pin.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- binding --- */

static void explain_cpus_refusal(int status, const struct wf_cpus *cpus, char *why, size_t why_room)
{
    char list[128];
    wf_cpus_text(cpus, list, sizeof list);
    if (status == -EINVAL)
        snprintf(why, why_room, "sched_setaffinity: this process may use none of the processors %s", list);
    else if (status == -EPERM || status == -ENOSYS)
        snprintf(why, why_room,
                 "sched_setaffinity: not permitted (a container's filter; --security-opt seccomp=... or --cap-add "
                 "SYS_NICE)");
    else
        snprintf(why, why_room, "sched_setaffinity to the processors %s: %s", list, strerror(-status));
}

int wf_pin_thread(const struct wf_cpus *cpus, char *why, size_t why_room)
{
    /* cpu_set_t ends at 1024. */
    size_t size = CPU_ALLOC_SIZE(WF_CPUS_MAX);
    if (wf_cpus_next(cpus, 0) < 0) {
        snprintf(why, why_room, "a thread cannot be bound to no processor at all");
        return -EINVAL;
    }
    cpu_set_t *set = CPU_ALLOC(WF_CPUS_MAX);
    if (!set) {
        snprintf(why, why_room, "no memory for a set of processors");
        return -ENOMEM;
    }
    CPU_ZERO_S(size, set);
    for (int cpu = wf_cpus_next(cpus, 0); cpu >= 0; cpu = wf_cpus_next(cpus, cpu + 1))
        CPU_SET_S((size_t)cpu, size, set);
    int status = sched_setaffinity(0, size, set) ? -errno : 0;
    CPU_FREE(set);
    if (status)
        explain_cpus_refusal(status, cpus, why, why_room);
    return status;
}

/* --- reading back --- */

/* The kernel's directory of a processor has a link to that of its node. */
static int node_of_cpu(int cpu)
{
    char path[64];
    int node = -1;
    if (cpu < 0)
        return -1;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *directory = opendir(path);
    if (!directory)
        return -1;
    for (struct dirent *entry = readdir(directory); entry && node < 0; entry = readdir(directory))
        if (sscanf(entry->d_name, "node%d", &node) != 1)
            node = -1;
    closedir(directory);
    return node;
}

/* "/proc/PID/task" of a process; 0: this one. */
static char *task_folder(pid_t process, char *path, size_t room)
{
    if (process)
        snprintf(path, room, "/proc/%d/task", (int)process);
    else
        snprintf(path, room, "/proc/self/task");
    return path;
}

static FILE *open_of_task(pid_t process, pid_t tid, const char *name)
{
    char folder[40], path[80];
    snprintf(path, sizeof path, "%s/%d/%s", task_folder(process, folder, sizeof folder), (int)tid, name);
    return fopen(path, "re");
}

/* "Cpus_allowed_list:\t0-3,8" */
static int read_allowed_of(pid_t process, pid_t tid, struct wf_cpus *out)
{
    static const char key[] = "Cpus_allowed_list:";
    FILE *file = open_of_task(process, tid, "status");
    char *line = NULL, why[160];
    size_t room = 0;
    int status = -EIO;
    if (!file)
        return -errno;
    while (status == -EIO && getline(&line, &room, file) >= 0) {
        if (strncmp(line, key, sizeof key - 1) != 0)
            continue;
        char *list = line + sizeof key - 1;
        list += strspn(list, " \t");
        list[strcspn(list, "\n")] = '\0';
        status = wf_cpus_parse(list, out, why, sizeof why) ? -EINVAL : 0;
    }
    free(line);
    fclose(file);
    return status;
}

/* "TID (name) S …", where the name may contain anything, and the 39th field is the processor. */
static int read_stat(pid_t process, pid_t tid, struct wf_thread_place *place)
{
    char text[2048];
    FILE *file = open_of_task(process, tid, "stat");
    if (!file)
        return -errno;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    char *name = strchr(text, '('), *at = strrchr(text, ')');
    if (!name || !at || at < name)
        return length ? -EIO : -ESRCH;
    snprintf(place->name, sizeof place->name, "%.*s", (int)(at - name - 1), name + 1);
    for (int field = 2; at && field < 39; field++)
        at = strchr(at + 1, ' ');
    place->last_cpu = at ? atoi(at + 1) : -1;
    place->node = node_of_cpu(place->last_cpu);
    return 0;
}

static int read_thread(pid_t process, pid_t tid, struct wf_thread_place *out)
{
    struct wf_thread_place place = {.tid = tid, .last_cpu = -1, .node = -1};
    int status = read_allowed_of(process, tid, &place.allowed);
    if (status == 0)
        status = read_stat(process, tid, &place);
    if (status == 0)
        *out = place;
    return status == -ENOENT ? -ESRCH : status;
}

int wf_pin_read(pid_t tid, struct wf_thread_place *out)
{
    return read_thread(0, tid, out);
}

static int by_number(const void *a, const void *b)
{
    pid_t left = *(const pid_t *)a, right = *(const pid_t *)b;
    return (left > right) - (left < right);
}

/* All tids, which the caller frees; how many, or negative errno. */
static int list_tids(pid_t process, pid_t **out)
{
    char folder[40];
    pid_t *tids = NULL;
    int count = 0, room = 0, status = 0;
    DIR *directory = opendir(task_folder(process, folder, sizeof folder));
    if (!directory)
        return -errno;
    for (struct dirent *entry = readdir(directory); entry && status == 0; entry = readdir(directory)) {
        pid_t tid = (pid_t)atoi(entry->d_name);
        if (tid <= 0)
            continue;
        if (count == room) {
            room = room ? room * 2 : 64;
            pid_t *more = realloc(tids, (size_t)room * sizeof *tids);
            status = more ? 0 : -ENOMEM;
            tids = more ? more : tids;
        }
        if (status == 0)
            tids[count++] = tid;
    }
    closedir(directory);
    if (status)
        free(tids);
    else
        *out = tids;
    return status ? status : count;
}

int wf_pin_threads_of(pid_t process, struct wf_thread_place *places, int max)
{
    pid_t *tids = NULL;
    int listed = list_tids(process, &tids), there = 0, status = 0;
    if (listed > 0)
        qsort(tids, (size_t)listed, sizeof *tids, by_number);
    for (int i = 0; i < listed && status == 0; i++) {
        struct wf_thread_place place;
        status = read_thread(process, tids[i], &place);
        if (status == 0 && there < max)
            places[there] = place;
        there += status == 0;
        if (status == -ESRCH) /* it ended meanwhile */
            status = 0;
    }
    if (listed >= 0)
        free(tids);
    return listed < 0 ? listed : status ? status : there;
}
