/*
 * sense.h: what this machine does while messages are timed. A thread reads temperatures, clocks and counters once a
 * second, and says afterwards which spans of time something disturbed.
 *
 * Sample k is taken at t(k), when its reading begins. What it tells is of two kinds:
 *
 *     a counter that grew between samples k-1 and k       counts for the span  [t(k-1), t(k)]
 *     a state that sample k found, such as a held clock   counts for the spans [t(k-1), t(k)] and [t(k), t(k+1)]
 *
 * A state is seen at one moment: it may have begun right after the sample before, and may last until right before the
 * next one. Before the first sample nothing is known, so nothing is marked.
 *
 * Every value is optional: what the system does not tell is unknown, and never an error. All counters are totals as the
 * system keeps them. Times are those of wf_clock_monotonic.
 */
#ifndef WF_BENCH_SENSE_H
#define WF_BENCH_SENSE_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/status.h"
#include "bench/sense/memory.h"

#define BENCH_SENSE_UNKNOWN INT_MIN
#define BENCH_SENSE_NO_GPU (-1)
#define BENCH_SENSE_GPUS_MAX 64
#define BENCH_SENSE_INTERFACES_MAX 64
#define BENCH_SENSE_ROW_MAX 512 /* bytes of a row, with its end of line */

struct bench_sense; /* Owner: the caller of the start; any thread may ask while it runs */

/* What is looked at. Copied. All zero: this machine without GPUs and interfaces, once a second. */
struct bench_sense_want {
    const char *root;              /* stands before /sys and /proc; NULL or "": the machine itself */
    const char *const *gpu_pci;    /* PCI addresses; GPU g of all calls is the one at place g */
    int gpu_count;                 /* at most BENCH_SENSE_GPUS_MAX */
    const char *const *interfaces; /* network interfaces */
    int interface_count;           /* at most BENCH_SENSE_INTERFACES_MAX */
    const cpu_set_t *bound;        /* where threads of ours are bound: "our processors"; NULL or empty: the process's */
    pid_t companion;               /* another process that is no stranger: the other node; 0: none */
    int64_t interval_ns;           /* between samples; 0: a second */
    bench_sense_ask_held *held; /* memory is sampled, too (memory.h), and this is asked what it adds; NULL: it is not */
    void *held_context;
};

/* What may disturb a measurement: bits. */
enum bench_sense_trouble {
    /* A state: NVML gave a reason for reduced clocks, other than that somebody set them. */
    BENCH_SENSE_GPU_THROTTLED = 1 << 0,
    /* A state: the SM clock is more than 2 % off the median of this GPU's last 31 readings under load, of which there
     * are at least 3. Under load: at least half of the highest clock so far, for an idle GPU rests far below that.
     * Where a clock stays elsewhere, the median follows it within 16 samples. */
    BENCH_SENSE_GPU_CLOCK = 1 << 1,
    /* A counter: thermal throttling of one of our processors or its package. */
    BENCH_SENSE_CPU_THROTTLED = 1 << 2,
    /* A state: as for a GPU, of the mean clock of those of our processors that were busy for at least half of the time,
     * with 5 %, as these clocks are never quite still. */
    BENCH_SENSE_CPU_CLOCK = 1 << 3,
    /* A counter: TCP sent segments again; the machine counts them, not a connection. */
    BENCH_SENSE_RETRANSMITS = 1 << 4,
    /* A counter: others used more than a tenth of a processor on our processors: time of tasks and time stolen by a
     * hypervisor, less that of our threads. Interrupts count for nobody, as most of them carry our messages. Two ticks
     * times the root of the number of busy processors do not count either: the system's figures are that coarse. */
    BENCH_SENSE_OTHERS = 1 << 5,
    /* A counter: errors, or packets dropped before they were sent. Received packets that were dropped do not count:
     * those of protocols that nobody here speaks are among them. */
    BENCH_SENSE_NIC_ERRORS = 1 << 6,
};

/* Opens what there is to read, takes the first sample, and starts the thread. Loads NVML where GPUs are named, which
 * takes up to a second. -EINVAL: too many GPUs or interfaces; -ENOMEM; what the system says of a thread. */
int bench_sense_start(const struct bench_sense_want *want, struct bench_sense **out, struct wf_status *status);
/* Takes a last sample and joins the thread. What was found can still be asked. Again: nothing happens. */
void bench_sense_stop(struct bench_sense *sense);
/* Stops first. NULL is allowed. */
void bench_sense_destroy(struct bench_sense *sense);

/* Has the thread take a sample now, such as at the start and the end of a phase; the next one is an interval later.
 * Does not wait; any thread, and signal handlers. */
void bench_sense_poke(struct bench_sense *sense);

/* The troubles of [start_ns, end_ns], by the rule above; a span that only borders on another does not touch it, and one
 * that ends where it starts lasts a nanosecond. Behind the last sample its states go on. Of GPUs only those of `gpu_a`
 * and `gpu_b` count (BENCH_SENSE_NO_GPU: none). */
unsigned bench_sense_between(struct bench_sense *sense, int64_t start_ns, int64_t end_ns, int gpu_a, int gpu_b);

/* As last read, in degrees Celsius, or BENCH_SENSE_UNKNOWN. Of several processor packages the hottest. */
int bench_sense_gpu_celsius(struct bench_sense *sense, int gpu);
int bench_sense_cpu_celsius(struct bench_sense *sense);

/* Processor time of the sampling itself. */
struct bench_sense_cost {
    int64_t own_cpu_ns;
    int64_t elapsed_ns; /* from the first sample to the last */
    double share;       /* own_cpu_ns / elapsed_ns, of one processor; 0: nothing has elapsed */
};
void bench_sense_cost(struct bench_sense *sense, struct bench_sense_cost *cost);

/* --- summary --- */

/* Over all readings, also those of samples that were merged. */
struct bench_sense_figure {
    uint64_t count; /* readings; 0: the rest says nothing */
    double mean, sd, min, max;
};

struct bench_sense_summary {
    char device[24]; /* "gpu0", "cpu" */
    struct bench_sense_figure celsius, watts, mhz;
    uint64_t held_back; /* samples in which its clocks were held back, or a throttle counter had grown, */
    uint64_t told;      /* of these, in which it was known whether they were */
};

/* Every GPU, then the processor. Writes at most `max`; returns how many there are. */
int bench_sense_summarize(struct bench_sense *sense, struct bench_sense_summary *all, int max);
/* The same for people, with the traffic of others and what sampling cost. */
void bench_sense_put_summary(struct bench_sense *sense, FILE *out, int columns);

/* --- rows --- */

/* The line of names, with its end of line:
 * timestamp_ns,node,device,temperature_c,power_w,clock_mhz,memory_clock_mhz,throttling,throttle_count,busy,bound,
 * rx_bytes,tx_bytes,rx_errors,tx_errors,rx_dropped,tx_dropped,retransmits
 *
 * A row is of one sample and one device: gpu0, cpu, core12, nic:eth0, tcp. An empty field does not apply or is unknown.
 * `busy` is a share of the time since the sample before, 0 to 1; that of cpu is the mean of our processors. Cores are
 * there where they are bound (1) or were busy for at least a hundredth of the time; only the first 32 bound ones have
 * a clock and a throttle count. */
extern const char bench_sense_csv_header[];

/* Renders rows as whole lines into `text`, from row `*next` (0: the first) on, as many as `room` has place for, and
 * moves `*next` behind them. `room` is at least BENCH_SENSE_ROW_MAX. Returns the length, without the terminating zero;
 * 0: there are no more. After the stop: merging renumbers rows. */
size_t bench_sense_rows(struct bench_sense *sense, int node, uint64_t *next, char *text, size_t room);

/* The header and all rows. 0, or a negative errno. After the stop. */
int bench_sense_write_csv(struct bench_sense *sense, FILE *file, int node);

#endif
