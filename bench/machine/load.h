/*
 * load.h: what was busy on this machine while messages were timed: its processors, by whoever used them, and the time
 * in which somebody waited for memory. From /proc/stat and /proc/pressure/memory; only processors count on which this
 * process may run.
 */
#ifndef WF_BENCH_LOAD_H
#define WF_BENCH_LOAD_H

#include <jansson.h>
#include <stdint.h>

#define BENCH_CPUS_MAX 1024 /* as many as a cpu_set_t has */

/* What a node had busy, on the average of the measured time. A number of processors, 1.5 of 2 say. */
struct bench_busy {
    double seconds; /* that were looked at; 0: nothing is known */
    double cpus;    /* processors there are for this process */
    double busy;    /* of these, by everybody */
    double own;     /* by this process */
    double busiest; /* the one that was busy most, as a share of its time */
    double stalled; /* share of the time in which somebody waited for memory; negative: not known */
};

/* Adds up spans of time. All zero: nothing yet. */
struct bench_load {
    int64_t elapsed_ns, begun_ns;
    uint64_t own_ns;
    uint64_t stalled_us, stalled_before;                    /* UINT64_MAX: the system does not say */
    uint64_t ticks[BENCH_CPUS_MAX], before[BENCH_CPUS_MAX]; /* of work; a processor that is not there has none */
};

/* The start and the end of a span in which this process itself used `own_ns` of processor time. */
void bench_load_begin(struct bench_load *load);
void bench_load_end(struct bench_load *load, uint64_t own_ns);

void bench_load_sum(const struct bench_load *load, struct bench_busy *busy);

/* As it stands in a result, and travels to the other node; a new reference. What is not a number there counts as not
 * known. */
json_t *bench_busy_to_json(const struct bench_busy *busy);
void bench_busy_from_json(const json_t *json, struct bench_busy *busy);

/* Reads the "cpuN ..." lines of a file like /proc/stat: ticks that were not idle. */
void bench_load_read(const char *path, uint64_t ticks[BENCH_CPUS_MAX]);

#endif
