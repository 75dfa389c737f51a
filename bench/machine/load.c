#include "load.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define NOT_SAID UINT64_MAX

/* Time that the hypervisor gave to others was not there for anybody: it counts as used. */
static uint64_t work_of(const char *fields)
{
    uint64_t user, nice, system, idle, wait, irq, softirq, steal = 0;

    int count =
        sscanf(fields, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &user, &nice, &system, &idle, &wait, &irq, &softirq, &steal);
    return count < 7 ? 0 : user + nice + system + irq + softirq + steal;
}

void bench_load_read(const char *path, uint64_t ticks[BENCH_CPUS_MAX])
{
    FILE *file = fopen(path, "re");
    char line[512];

    memset(ticks, 0, BENCH_CPUS_MAX * sizeof ticks[0]);
    /* The lines of processors come first. */
    while (file && fgets(line, sizeof line, file) && strncmp(line, "cpu", 3) == 0) {
        unsigned cpu;
        int length;
        /* "cpu  1234 ..." is the sum of all. */
        if (line[3] != ' ' && sscanf(line, "cpu%u%n", &cpu, &length) == 1 && cpu < BENCH_CPUS_MAX)
            ticks[cpu] = work_of(line + length);
    }
    if (file)
        fclose(file);
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234", in microseconds. */
static uint64_t read_stalled(void)
{
    FILE *file = fopen("/proc/pressure/memory", "re");
    uint64_t total = NOT_SAID;

    if (file && fscanf(file, "some avg10=%*f avg60=%*f avg300=%*f total=%" SCNu64, &total) != 1)
        total = NOT_SAID;
    if (file)
        fclose(file);
    return total;
}

void bench_load_begin(struct bench_load *load)
{
    load->stalled_before = read_stalled();
    bench_load_read("/proc/stat", load->before);
    load->begun_ns = wf_clock_now(&wf_clock_monotonic);
}

void bench_load_end(struct bench_load *load, uint64_t own_ns)
{
    uint64_t now[BENCH_CPUS_MAX];
    int64_t end_ns = wf_clock_now(&wf_clock_monotonic);

    bench_load_read("/proc/stat", now);
    uint64_t stalled = read_stalled();
    for (int cpu = 0; cpu < BENCH_CPUS_MAX; cpu++)
        load->ticks[cpu] += now[cpu] > load->before[cpu] ? now[cpu] - load->before[cpu] : 0;
    if (stalled == NOT_SAID || load->stalled_before == NOT_SAID)
        load->stalled_us = NOT_SAID;
    else if (load->stalled_us != NOT_SAID && stalled > load->stalled_before)
        load->stalled_us += stalled - load->stalled_before;
    load->elapsed_ns += end_ns - load->begun_ns;
    load->own_ns += own_ns;
}

void bench_load_sum(const struct bench_load *load, struct bench_busy *busy)
{
    double tick_s = 1.0 / (double)sysconf(_SC_CLK_TCK), seconds = (double)load->elapsed_ns / WF_NS_PER_S;
    cpu_set_t allowed;

    *busy = (struct bench_busy){.stalled = -1};
    if (load->elapsed_ns <= 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    busy->seconds = seconds;
    busy->cpus = CPU_COUNT(&allowed);
    busy->own = (double)load->own_ns / (double)load->elapsed_ns;
    for (int cpu = 0; cpu < BENCH_CPUS_MAX; cpu++) {
        double share = (double)load->ticks[cpu] * tick_s / seconds;
        if (!CPU_ISSET(cpu, &allowed))
            continue;
        share = share > 1 ? 1 : share; /* ticks are coarse */
        busy->busy += share;
        busy->busiest = share > busy->busiest ? share : busy->busiest;
    }
    if (load->stalled_us != NOT_SAID)
        busy->stalled = (double)load->stalled_us / 1e6 / seconds;
}

json_t *bench_busy_to_json(const struct bench_busy *busy)
{
    if (busy->seconds <= 0)
        return json_null();
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o}", "measured_s", busy->seconds, "cpus", busy->cpus, "busy_cpus",
                     busy->busy, "own_cpus", busy->own, "busiest_cpu", busy->busiest, "memory_stall",
                     busy->stalled < 0 ? json_null() : json_real(busy->stalled));
}

static double number(const json_t *json, const char *name, double otherwise)
{
    const json_t *value = json_object_get(json, name);

    return json_is_number(value) ? json_number_value(value) : otherwise;
}

void bench_busy_from_json(const json_t *json, struct bench_busy *busy)
{
    *busy = (struct bench_busy){
        .seconds = number(json, "measured_s", 0),
        .cpus = number(json, "cpus", 0),
        .busy = number(json, "busy_cpus", 0),
        .own = number(json, "own_cpus", 0),
        .busiest = number(json, "busiest_cpu", 0),
        .stalled = number(json, "memory_stall", -1),
    };
}
