/*
 * Processor time that others used on our processors. That of this process (and its companion) is known as a whole, and
 * that of its threads one by one, with the processor where each ran last. Of a thread that ended meanwhile only the
 * first is left, so both limit the answer:
 *
 *     others = min(tasks on our processors - our threads there, tasks anywhere - this process)
 */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "sense_parts.h"

#define PART_TICKS 2.0 /* how coarse the system counts, for each processor that worked */

void bench_sense_own_init(struct bench_sense_own *own, const char *root, pid_t companion)
{
    *own = (struct bench_sense_own){.root = root, .companion = companion};
}

void bench_sense_own_fini(struct bench_sense_own *own)
{
    free(own->threads);
    own->threads = NULL;
}

/* This process and its companion. */
static int64_t process_ns(const struct bench_sense_own *own)
{
    struct bench_sense_task task;
    struct rusage usage;
    int64_t theirs = 0;

    if (own->companion && bench_sense_read_task(&task, own->root, "/proc/%d/stat", (int)own->companion))
        theirs = (int64_t)task.ticks * WF_NS_PER_S / sysconf(_SC_CLK_TCK);

    getrusage(RUSAGE_SELF, &usage);
    return theirs + (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * WF_NS_PER_S +
           (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * WF_NS_PER_US;
}

/* What a thread used since the sample before; a new one, all that it used. */
static uint64_t since_before(struct bench_sense_own *own, pid_t tid, uint64_t ticks)
{
    for (int i = 0; i < own->count; i++)
        if (own->threads[i].tid == tid) {
            uint64_t before = own->threads[i].ticks;
            own->threads[i].ticks = ticks;
            return ticks > before ? ticks - before : 0;
        }
    if (own->count == own->room) {
        int room = own->room ? 2 * own->room : 64;
        struct bench_sense_thread *threads = realloc(own->threads, (size_t)room * sizeof *threads);
        if (!threads)
            return ticks;
        own->threads = threads;
        own->room = room;
    }
    own->threads[own->count++] = (struct bench_sense_thread){tid, ticks};
    return ticks;
}

/* `process`: "self", or a number. */
static uint64_t threads_on_ours(struct bench_sense_own *own, const char *process, const cpu_set_t *ours)
{
    char path[512];
    struct dirent *entry;
    struct bench_sense_task task;
    uint64_t sum = 0;

    snprintf(path, sizeof path, "%s/proc/%s/task", own->root, process);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.' ||
            !bench_sense_read_task(&task, own->root, "/proc/%s/task/%.20s/stat", process, entry->d_name))
            continue;
        uint64_t more = since_before(own, (pid_t)atoi(entry->d_name), task.ticks);
        if (task.cpu >= 0 && task.cpu < BENCH_CPUS_MAX && CPU_ISSET(task.cpu, ours))
            sum += more;
    }
    if (folder)
        closedir(folder);
    return sum;
}

float bench_sense_own_others(struct bench_sense_own *own, const struct bench_sense_cpu *cpu, int64_t now_ns)
{
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK), seconds = (double)(now_ns - own->at_ns) / WF_NS_PER_S;
    double threads = (double)threads_on_ours(own, "self", &cpu->ours);
    char companion[16];
    int64_t process = process_ns(own);
    double used_s = (double)(process - own->process_ns) / WF_NS_PER_S;
    bool known = own->at_ns && cpu->ticked && seconds > 0;

    snprintf(companion, sizeof companion, "%d", (int)own->companion);
    if (own->companion)
        threads += (double)threads_on_ours(own, companion, &cpu->ours);
    own->at_ns = now_ns;
    own->process_ns = process;
    if (!known)
        return -1;
    double here_s = ((double)cpu->tasks_on_ours - threads) * tick_s;
    double anywhere_s = (double)cpu->tasks_anywhere * tick_s - used_s;
    double least_s = here_s < anywhere_s ? here_s : anywhere_s;
    least_s -= PART_TICKS * sqrt(cpu->busy_ours) * tick_s;
    return least_s > 0 ? (float)(least_s / seconds) : 0;
}
