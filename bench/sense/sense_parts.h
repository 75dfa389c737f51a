/*
 * sense_parts.h: the parts of a sampler, for the files of this room. A sample is read into `now`, compared with the one
 * before, and added to the store. Only the thread (or, before the start and after the stop, its owner) reads; what
 * others ask for is under the lock.
 */
#ifndef WF_BENCH_SENSE_PARTS_H
#define WF_BENCH_SENSE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "bench/machine/load.h"
#include "mem/nvml.h"
#include "sense.h"

#define BENCH_SENSE_WATCHED_MAX 32    /* processors whose clocks and throttle counters are read */
#define BENCH_SENSE_SAMPLES_MAX 32768 /* nine hours of seconds; even */
#define BENCH_SENSE_REASONS_MAX 64    /* different texts of a GPU */
#define BENCH_SENSE_CHIPS_MAX 8       /* sensors or domains of processor packages */
#define BENCH_SENSE_LEVEL_READINGS 31 /* whose median a clock is compared with */
#define BENCH_SENSE_COUNT_UNKNOWN UINT64_MAX
#define BENCH_SENSE_BUSY_UNKNOWN UINT16_MAX
#define BENCH_SENSE_BUSY_ALL 1000

/* --- one sample --- */

/* `seen`, `grown`: bits of bench_sense_trouble, states and counters. */
struct bench_sense_gpu {
    int celsius, sm_mhz, memory_mhz, power_mw; /* or BENCH_SENSE_UNKNOWN */
    int16_t reason;                            /* place in the table of texts; -1: unknown */
    uint8_t seen, grown;
};

enum bench_sense_nic_count {
    BENCH_SENSE_RX_BYTES,
    BENCH_SENSE_TX_BYTES,
    BENCH_SENSE_RX_ERRORS,
    BENCH_SENSE_TX_ERRORS,
    BENCH_SENSE_RX_DROPPED,
    BENCH_SENSE_TX_DROPPED,
    BENCH_SENSE_NIC_COUNTS
};

struct bench_sense_nic {
    uint64_t counts[BENCH_SENSE_NIC_COUNTS]; /* or BENCH_SENSE_COUNT_UNKNOWN */
};

/* A watched processor. */
struct bench_sense_core {
    int mhz;
    uint64_t throttled; /* its own events and its package's; or BENCH_SENSE_COUNT_UNKNOWN */
};

struct bench_sense_sample {
    int64_t at_ns;
    uint8_t seen, grown;
    int celsius, mhz, power_mw; /* of the processor; mhz: mean of our busy ones */
    uint64_t retransmits;       /* or BENCH_SENSE_COUNT_UNKNOWN */
    float others;               /* processors that others used on ours; negative: unknown */
};

/* Where the parts of one sample are. */
struct bench_sense_reading {
    struct bench_sense_sample *sample;
    struct bench_sense_gpu *gpus;
    struct bench_sense_nic *nics;
    struct bench_sense_core *cores; /* watched */
    uint16_t *busy;                 /* of every processor, in thousandths; or BENCH_SENSE_BUSY_UNKNOWN */
};

/* Samples one behind another. When there are `most`, each two neighbours become one: the later one's values at the
 * later one's time, and the troubles of both. No trouble is lost so, but it then marks a longer span. */
struct bench_sense_store {
    int gpu_count, nic_count, core_count, cpu_count;
    size_t count, room, most;
    int64_t begun_ns; /* of the first sample ever: where the first span begins */
    struct bench_sense_sample *samples;
    struct bench_sense_gpu *gpus;
    struct bench_sense_nic *nics;
    struct bench_sense_core *cores;
    uint16_t *busy;
};

int bench_sense_store_init(struct bench_sense_store *store, size_t room);
/* All memory that it will ever have, now. */
int bench_sense_store_fill(struct bench_sense_store *store, size_t room);
void bench_sense_store_fini(struct bench_sense_store *store);
struct bench_sense_reading bench_sense_store_at(const struct bench_sense_store *store, size_t index);
/* Copies a sample to the end; neighbours are merged as well where there is no memory for more. */
void bench_sense_store_add(struct bench_sense_store *store, const struct bench_sense_reading *reading);

/* --- files --- */

/* The descriptor of the file at `root` and the path that the format says; -1: none. */
int bench_sense_open(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));
void bench_sense_close(int *fd);
/* Its text from the start on, without the last end of line. Returns the length; negative: unknown. */
ssize_t bench_sense_text(int fd, char *text, size_t room);
bool bench_sense_number(int fd, int64_t *number);
uint64_t bench_sense_count(int fd); /* or BENCH_SENSE_COUNT_UNKNOWN */
/* Opens, reads and closes. */
bool bench_sense_read(const char *root, char *text, size_t room, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A thread or a process, as its file `stat` has it. */
struct bench_sense_task {
    char name[32], state; /* 'R': it runs, or would */
    bool kernel;          /* a thread of the kernel's */
    uint64_t ticks;
    int cpu; /* where it ran last */
};
bool bench_sense_read_task(struct bench_sense_task *task, const char *root, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- the processor (read_cpu.c) --- */

/* Ticks of one processor. */
struct bench_sense_ticks {
    uint64_t work;  /* everything that is not idle */
    uint64_t tasks; /* of that: without interrupts */
    uint64_t all;
};

struct bench_sense_watched {
    int cpu, clock_fd, core_fd, package_fd;
};

struct bench_sense_cpu {
    cpu_set_t ours;
    int cpu_count; /* the highest number and one */
    int watched_count;
    struct bench_sense_watched watched[BENCH_SENSE_WATCHED_MAX];
    int chip_count, sensors[BENCH_SENSE_CHIPS_MAX];
    int domain_count, domains[BENCH_SENSE_CHIPS_MAX];
    int64_t energy_uj[BENCH_SENSE_CHIPS_MAX], energy_range_uj[BENCH_SENSE_CHIPS_MAX], energy_at_ns;
    int stat_fd;
    char *stat;                                     /* text of /proc/stat */
    struct bench_sense_ticks ticks[BENCH_CPUS_MAX]; /* of the sample before; all is 0: none yet */
    /* What went by since the sample before: ticks of tasks, on our processors and on all; our busy ones. */
    uint64_t tasks_on_ours, tasks_anywhere;
    int busy_ours;
    bool ticked; /* these say something */
    char governor[32];
};

int bench_sense_cpu_init(struct bench_sense_cpu *cpu, const char *root, const cpu_set_t *bound);
void bench_sense_cpu_fini(struct bench_sense_cpu *cpu);
void bench_sense_cpu_read(struct bench_sense_cpu *cpu, int64_t now_ns, struct bench_sense_reading *now);
/* `bound`, or, if that is NULL or empty, where this process may run. */
cpu_set_t bench_sense_cpu_ours(const cpu_set_t *bound);

/* --- our own threads (read_own.c) --- */

struct bench_sense_thread {
    pid_t tid;
    uint64_t ticks;
};

struct bench_sense_own {
    const char *root;
    pid_t companion;           /* whose threads count as ours; 0: none */
    int64_t process_ns, at_ns; /* of the sample before; at_ns 0: none yet */
    int count, room;
    struct bench_sense_thread *threads;
};

void bench_sense_own_init(struct bench_sense_own *own, const char *root, pid_t companion);
void bench_sense_own_fini(struct bench_sense_own *own);
/* Processors that others used on ours since the sample before; negative: unknown. After bench_sense_cpu_read(). */
float bench_sense_own_others(struct bench_sense_own *own, const struct bench_sense_cpu *cpu, int64_t now_ns);

/* --- GPUs (read_gpu.c) --- */

/* A clock and where it usually is. All zero: nothing is known yet. */
struct bench_sense_level {
    int readings[BENCH_SENSE_LEVEL_READINGS];
    int count, next, highest;
};

/* Is this reading off the median by more than `tolerance`? Then it is added. */
bool bench_sense_level_off(struct bench_sense_level *level, int mhz, double tolerance);

struct bench_sense_gpus {
    struct wf_nvml *nvml; /* NULL: nothing is known */
    int (*read)(struct wf_nvml *nvml, const char *pci, struct wf_nvml_state *out, struct wf_status *status);
    int count;
    char pci[BENCH_SENSE_GPUS_MAX][32];
    int reason_count;
    char reasons[BENCH_SENSE_REASONS_MAX][160];
};

void bench_sense_gpus_init(struct bench_sense_gpus *gpus, const char *const *pci, int count);
void bench_sense_gpus_fini(struct bench_sense_gpus *gpus);
/* Asks for one GPU. `state`: as NVML gave it; false: it gave nothing. Touches no text that others may read. */
bool bench_sense_gpus_ask(struct bench_sense_gpus *gpus, int gpu, struct wf_nvml_state *state);
/* Under the lock: the state (NULL: unknown) as a part of a sample. */
void bench_sense_gpus_take(struct bench_sense_gpus *gpus, const struct wf_nvml_state *state,
                           struct bench_sense_gpu *out);

/* --- the network (read_net.c) --- */

struct bench_sense_interface {
    char name[32];
    int fds[BENCH_SENSE_NIC_COUNTS];
};

struct bench_sense_net {
    int count, snmp_fd;
    struct bench_sense_interface interfaces[BENCH_SENSE_INTERFACES_MAX];
};

void bench_sense_net_init(struct bench_sense_net *net, const char *root, const char *const *names, int count);
void bench_sense_net_fini(struct bench_sense_net *net);
void bench_sense_net_read(struct bench_sense_net *net, struct bench_sense_reading *now);

/* --- memory (memory.c) --- */

#define BENCH_SENSE_HELD_ROOM 16384  /* four hours of seconds, then each second sample is dropped; even */
#define BENCH_SENSE_SHORT_STORE 2048 /* samples of everything else, where memory is what is watched; even */

/* Taken and touched as a whole at the start: a sampler that grows would find itself. */
struct bench_sense_ledger {
    bench_sense_ask_held *held;
    void *context;
    int series; /* BENCH_SENSE_SERIES and one for each GPU; 0: nothing is watched */
    size_t count;
    unsigned skip, skipped;          /* of so many samples one is kept; since the last that was */
    int64_t now[BENCH_SENSE_SERIES]; /* as last read */
    int64_t *at_ns, *values;         /* values: of all series, a sample behind the other */
};

int bench_sense_ledger_init(struct bench_sense_ledger *ledger, const struct bench_sense_want *want);
void bench_sense_ledger_fini(struct bench_sense_ledger *ledger);
/* `there[i]`: the state of GPU i is known. Under the lock. */
void bench_sense_ledger_add(struct bench_sense_ledger *ledger, int64_t now_ns, const struct wf_nvml_state *gpus,
                            const bool *there);
/* What this process holds now; before the lock is taken. */
void bench_sense_ledger_read(struct bench_sense_ledger *ledger);

/* --- the whole --- */

/* Welford's sums: mean, and the sum of squared distances from it. */
struct bench_sense_tally {
    uint64_t count;
    double mean, squares, min, max;
};

struct bench_sense_device {
    struct bench_sense_tally celsius, watts, mhz;
    uint64_t held_back, told;
    struct bench_sense_level level;
    int last_celsius;
};

struct bench_sense {
    char *root;
    int64_t interval_ns;
    struct bench_sense_cpu cpu;
    struct bench_sense_own own;
    struct bench_sense_gpus gpus;
    struct bench_sense_net net;
    bool bound_given;             /* the caller has named our processors */
    struct bench_sense_store now; /* room for one sample: the one being read */

    pthread_mutex_t lock; /* from here to own_cpu_ns, and the texts of `gpus` */
    struct bench_sense_store store;
    struct bench_sense_store first; /* the first sample ever, whose counters a summary starts from */
    struct bench_sense_device devices[BENCH_SENSE_GPUS_MAX + 1]; /* the last one: the processor */
    struct bench_sense_tally others;
    struct bench_sense_ledger ledger;
    int64_t own_cpu_ns;

    pthread_t thread;
    bool running;
    atomic_bool ending;
    int wake_fd; /* eventfd: a sample is wanted */
};

/* bench_sense_start() without its thread and its first sample, and one sample, said to be taken at `now_ns`. */
int bench_sense_create(const struct bench_sense_want *want, struct bench_sense **out, struct wf_status *status);
void bench_sense_take(struct bench_sense *sense, int64_t now_ns);

/* Sets the troubles of a sample, `before` being the one before it (NULL: it is the first). Under the lock. (trouble.c)
 */
void bench_sense_judge(struct bench_sense *sense, const struct bench_sense_reading *before,
                       struct bench_sense_reading *now);
void bench_sense_tally_add(struct bench_sense_tally *tally, double value);

#endif
