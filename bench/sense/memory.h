/*
 * memory.h: what a process holds, sampled once a second beside everything else, and whether it grows.
 *
 * A leak never gives back, and goes on. So what counts is the floor (the least value) of equal spans of time:
 *
 *     warm-up    the first minute, or the first tenth where that is longer, does not count
 *     floor(k)   the least value of span k, of BENCH_GROWTH_SPANS
 *     step(k)    floor(k+1) - floor(k), and the rise their sum
 *     it grows   where  no step is below 0, and none is more than half of the rise,
 *                       all but one are at least a quarter of their mean,
 *                and    the rise is at least BENCH_GROWTH_LEAST, and BENCH_GROWTH_LEAST_PER_MIN in a minute
 *
 * Noise changes no floor, memory that is taken once is one step, and a cache that fills up stops doing so. A leak of 64
 * KiB a minute raises each floor of a run of ten minutes by as much.
 */
#ifndef WF_BENCH_SENSE_MEMORY_H
#define WF_BENCH_SENSE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#define BENCH_GROWTH_SPANS 8
#define BENCH_GROWTH_LEAST (256 << 10)        /* bytes */
#define BENCH_GROWTH_LEAST_PER_MIN (16 << 10) /* slower, and it is a matter of days */
#define BENCH_GROWTH_LEAST_S 120              /* behind the warm-up: less is not judged */

/* The series of a sampler. Behind these one for each GPU: its free memory, by whomever it is used. */
enum {
    BENCH_SENSE_RSS,        /* resident: of the whole process */
    BENCH_SENSE_PINNED,     /* locked or pinned, as the kernel counts it, and the pools that the caller knows of */
    BENCH_SENSE_REGISTERED, /* as the caller tells */
    BENCH_SENSE_SERIES
};

/* What only the caller knows, in bytes. */
struct bench_sense_held {
    int64_t pinned, registered;
};

/* Called by the sampler's thread. */
typedef void bench_sense_ask_held(void *context, struct bench_sense_held *held);

enum bench_growth_verdict {
    BENCH_GROWTH_UNKNOWN, /* too short, or the system does not say */
    BENCH_GROWTH_NONE,
    BENCH_GROWTH_FOUND
};

struct bench_growth {
    enum bench_growth_verdict verdict;
    int64_t first, last;  /* floors of the first span and the last; while unknown, the first and the last value */
    double bytes_per_min; /* between these */
    double seconds;       /* that were judged: behind the warm-up */
};

/* The rule. `values` are `stride` places apart; a negative one is not known. */
void bench_growth_judge(const int64_t *at_ns, const int64_t *values, size_t stride, size_t count,
                        struct bench_growth *growth);

struct bench_sense_memory {
    char name[24]; /* "rss", "pinned", "registered", "gpu0 free": of this one `first` and `last` are free bytes, and it
                    * grows where they fall */
    struct bench_growth growth;
};

struct bench_sense;

/* All series. Writes at most `max`; returns how many there are; 0: memory is not watched. */
int bench_sense_memories(struct bench_sense *sense, struct bench_sense_memory *all, int max);

#endif
