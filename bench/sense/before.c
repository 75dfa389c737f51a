#include "before.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/words/columns.h"
#include "sense_parts.h"

#define NAMED_MOST 5 /* processes that a finding names */
#define SYSTEM_CPU "/sys/devices/system/cpu"

struct look {
    const char *root;
    cpu_set_t ours;
    pid_t companion;
    json_t *findings; /* NULL: no memory was left for one */
};

static void find(struct look *look, const char *name, const char *means, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

static void find(struct look *look, const char *name, const char *means, const char *remedy, const char *format, ...)
{
    char found[400];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(found, sizeof found, format, arguments);
    va_end(arguments);
    /* Names of processes may be no UTF-8. */
    wf_text_plain(found);
    for (char *at = found; *at; at++)
        *at = isascii((unsigned char)*at) ? *at : '?';
    json_t *finding = json_pack("{s:s, s:s, s:s, s:s}", "name", name, "found", found, "means", means, "remedy", remedy);
    if (json_array_append_new(look->findings, finding) != 0) {
        json_decref(look->findings);
        look->findings = NULL;
    }
}

/* --- others on this machine --- */

/* Processors of the machine, by the files of the system. */
static int count_processors(const char *root)
{
    static const char *const file = SYSTEM_CPU "/online";
    char text[512];
    const char *at = text;
    int count = 0;

    if (!bench_sense_read(root, text, sizeof text, "%s", file))
        return 0;
    while (isdigit((unsigned char)*at)) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        count += last >= first ? (int)(last - first + 1) : 0;
        at = *end == ',' ? end + 1 : end;
    }
    return count;
}

static void look_at_load(struct look *look)
{
    char text[64];
    double load;
    int processors = count_processors(look->root);

    if (!bench_sense_read(look->root, text, sizeof text, "/proc/loadavg") || sscanf(text, "%lf", &load) != 1 ||
        processors == 0 || load <= processors / 2.0)
        return;
    find(look, "load", "Others want more than half of this machine: messages wait for processors and memory.",
         "Wait until it is idle, or stop what runs (top names it).",
         "the load average of the last minute is %.2f on %d processors", load, processors);
}

struct runners {
    int count;
    char names[256];
};

static void name_runner(struct runners *runners, const struct bench_sense_task *task, int process)
{
    size_t used = strlen(runners->names);

    runners->count++;
    if (runners->count <= NAMED_MOST && used < sizeof runners->names)
        snprintf(runners->names + used, sizeof runners->names - used, "%s%s (%d) on %d", used ? ", " : "", task->name,
                 process, task->cpu);
}

/* Threads of the kernel come and go with everybody's work, also ours. */
static void look_at_process(const struct look *look, int process, struct runners *runners)
{
    char path[512];
    struct dirent *entry;
    struct bench_sense_task task;

    snprintf(path, sizeof path, "%s/proc/%d/task", look->root, process);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.' &&
            bench_sense_read_task(&task, look->root, "/proc/%d/task/%.20s/stat", process, entry->d_name) &&
            task.state == 'R' && !task.kernel && task.cpu < BENCH_CPUS_MAX && CPU_ISSET(task.cpu, &look->ours))
            name_runner(runners, &task, process);
    if (folder)
        closedir(folder);
}

static void look_at_runners(struct look *look)
{
    struct runners runners = {0};
    char path[512];
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/proc", look->root);
    DIR *folder = opendir(path);
    while (folder && (entry = readdir(folder)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && atoi(entry->d_name) != getpid() &&
            atoi(entry->d_name) != look->companion)
            look_at_process(look, atoi(entry->d_name), &runners);
    if (folder)
        closedir(folder);
    if (runners.count)
        find(look, "processes", "They take turns with our threads, and their memory traffic slows ours.",
             "Stop them, or keep them off these processors (taskset, cpusets).",
             "%d thread%s of others ran on our processors a moment ago: %s%s", runners.count,
             runners.count == 1 ? "" : "s", runners.names, runners.count > NAMED_MOST ? " and others" : "");
}

static void look_at_gpus(struct look *look, const struct bench_sense_want *want,
                         const struct bench_sense_gpu_users *users)
{
    for (int i = 0; users && i < want->gpu_count; i++) {
        int count = users->count(users->context, want->gpu_pci[i]);
        if (count > 0)
            find(look, "gpu_processes",
                 "Two processes take turns on a GPU, and share its copy engines and its power limit.",
                 "Stop them (nvidia-smi names them), or choose another GPU with --gpus.",
                 "%d other process%s compute%s on gpu%d (%s)", count, count == 1 ? "" : "es", count == 1 ? "s" : "", i,
                 want->gpu_pci[i]);
    }
}

/* --- how processors are set --- */

static void look_at_governors(struct look *look)
{
    char text[64], first[64] = "";
    int count = 0;

    for (int cpu = 0; cpu < BENCH_CPUS_MAX; cpu++) {
        if (!CPU_ISSET(cpu, &look->ours) ||
            !bench_sense_read(look->root, text, sizeof text, SYSTEM_CPU "/cpu%d/cpufreq/scaling_governor", cpu) ||
            strcmp(text, "performance") == 0)
            continue;
        if (count++ == 0)
            snprintf(first, sizeof first, "%s", text);
    }
    if (count)
        find(look, "governor", "Clocks follow the load with a delay: the first messages of a phase are slower.",
             "cpupower frequency-set -g performance",
             "the clocks of %d of our processors are governed by \"%s\" and not by \"performance\"", count, first);
}

static bool is_number(const struct look *look, const char *file, int wanted)
{
    char text[16];

    return bench_sense_read(look->root, text, sizeof text, SYSTEM_CPU "%s", file) && isdigit((unsigned char)text[0]) &&
           atoi(text) == wanted;
}

static void look_at_boost(struct look *look)
{
    static const char *const means =
        "Processors run above their base clock while heat and power allow it: figures fall as the machine warms up.";
    static const char *const found = "turbo is on";

    if (is_number(look, "/intel_pstate/no_turbo", 0))
        find(look, "turbo", means,
             "For figures that repeat: echo 1 > " SYSTEM_CPU
             "/intel_pstate/no_turbo; for the highest ones leave it and warm up.",
             "%s", found);
    else if (is_number(look, "/cpufreq/boost", 1))
        find(look, "turbo", means,
             "For figures that repeat: echo 0 > " SYSTEM_CPU
             "/cpufreq/boost; for the highest ones leave it and warm up.",
             "%s", found);
}

static void look_at_smt(struct look *look)
{
    if (is_number(look, "/smt/active", 1))
        find(look, "smt", "Two threads on one core share its units: who runs on the other half slows ours.",
             "Keep both halves of our cores for ours, or echo off > " SYSTEM_CPU "/smt/control.",
             "cores have two hardware threads (SMT)");
}

/* --- calls --- */

int bench_sense_before(const struct bench_sense_want *want, const struct bench_sense_gpu_users *users, json_t **out)
{
    struct look look = {
        .root = want->root ? want->root : "",
        .ours = bench_sense_cpu_ours(want->bound),
        .companion = want->companion,
        .findings = json_array(),
    };

    look_at_load(&look);
    look_at_runners(&look);
    look_at_gpus(&look, want, users);
    look_at_governors(&look);
    look_at_boost(&look);
    look_at_smt(&look);
    if (!look.findings)
        return -ENOMEM;
    *out = look.findings;
    return 0;
}

static const char *text_of(const json_t *finding, const char *key)
{
    const char *text = json_string_value(json_object_get(finding, key));

    return text ? text : "";
}

void bench_sense_put_before(const json_t *findings, FILE *out, int columns)
{
    size_t i;
    json_t *finding;

    json_array_foreach(findings, i, finding)
    {
        bench_wrapped(out, columns, 2, "note: %s. %s", text_of(finding, "found"), text_of(finding, "means"));
        fputs("  ", out);
        bench_wrapped(out, columns - 2, 4, "%s", text_of(finding, "remedy"));
    }
}
