/* What the system lets this process have: memory that may be locked, descriptors, processors. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "parts.h"

#define MEMLOCK_LEAST (8u << 20) /* what one call may send without a copy, and what distributions set */
#define FILES_LEAST 256          /* channels to a few peers on several rails, engines, files of results */
#define CPUS_LEAST 2             /* the thread that moves data, and the program */
#define CAP_IPC_LOCK_BIT 14

/* May this process lock what it likes, whatever the limit is? */
static bool may_lock_all(void)
{
    char line[256];
    unsigned long long rights = 0;
    FILE *file = fopen("/proc/self/status", "re");

    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "CapEff:", 7) == 0)
            rights = strtoull(line + 7, NULL, 16);
    if (file)
        fclose(file);
    return rights >> CAP_IPC_LOCK_BIT & 1;
}

static void check_memlock(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= MEMLOCK_LEAST || may_lock_all()) {
        doctor_good(doctor, "memlock", "enough memory may be locked");
        return;
    }
    doctor_fault(doctor, "memlock",
                 "ulimit -l unlimited, or 'memlock unlimited' in /etc/security/limits.conf, LimitMEMLOCK=infinity of a "
                 "service, --ulimit memlock=-1 of a container",
                 "only %llu KiB of memory may be locked, so io_uring and sends without a copy may be refused",
                 (unsigned long long)limit.rlim_cur / 1024);
}

static void check_files(struct doctor *doctor)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_LEAST)
        doctor_fault(doctor, "files", "ulimit -n 4096",
                     "only %llu file descriptors may be open, and each channel is one",
                     (unsigned long long)limit.rlim_cur);
}

double doctor_quota(const char *text)
{
    double quota, period;

    return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : -1;
}

/* The tightest quota of the own group and those above it, as far as they are seen (version 2 of control groups). */
static double group_quota(void)
{
    char line[512] = "", path[640], text[64];
    double least = -1;
    FILE *file = fopen("/proc/self/cgroup", "re");

    while (file && fgets(line, sizeof line, file) && strncmp(line, "0::", 3) != 0)
        ;
    if (file)
        fclose(file);
    if (strncmp(line, "0::", 3) != 0)
        return -1;
    line[strcspn(line, "\n")] = '\0';
    for (char *end = line + strlen(line); end; end = strrchr(line + 3, '/')) {
        *end = '\0';
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", line + 3);
        file = fopen(path, "re");
        double quota = file && fgets(text, sizeof text, file) ? doctor_quota(text) : -1;
        if (file)
            fclose(file);
        if (quota >= 0 && (least < 0 || quota < least))
            least = quota;
    }
    return least;
}

static void check_processors(struct doctor *doctor)
{
    cpu_set_t allowed;
    double quota = group_quota();
    int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : CPUS_LEAST;

    if (count < CPUS_LEAST)
        doctor_fault(doctor, "cores",
                     "let it use more (taskset -c, cpuset of the control group, --cpuset-cpus of a container, "
                     "--cpus-per-task of Slurm)",
                     "this process may run on %d processor alone, which the thread that moves data and the program "
                     "share",
                     count);
    else if (quota >= 0 && quota < CPUS_LEAST)
        doctor_fault(
            doctor, "cores", "raise cpu.max of the control group (--cpus of a container, CPUQuota of a service)",
            "the control group leaves this process %.2f of a processor's time, and it needs %d", quota, CPUS_LEAST);
    else
        doctor_good(doctor, "cores", "%d processors may be used", count);
}

void doctor_check_limits(struct doctor *doctor)
{
    check_memlock(doctor);
    check_files(doctor);
    check_processors(doctor);
}
