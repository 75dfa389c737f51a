#include "meter.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS (4 * METER_LOCKS_MAX) /* of the table of locks: a power of two, and mostly empty */
#define BUCKETS 4096                /* of holds by length, */
#define BUCKET_NS 16.0              /* each so wide; the last one has all that are longer */
#define LOOKS 100000
#define CALIBRATION_NS 50000000
#define INTERRUPTED_NS 1e6

/* The linker's names: the functions of the C library. */
int __real_pthread_mutex_lock(pthread_mutex_t *lock);
int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_lock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

struct watched {
    const pthread_mutex_t *lock; /* NULL: the slot is empty */
    enum meter_side side;
};

struct holds {
    uint64_t count, ticks, longest;
    uint32_t buckets[BUCKETS];
};

static struct {
    double ns_per_tick;
    double look; /* ticks from one look to the next, with nothing in between */
    double buckets_per_tick;
    uint64_t interrupted; /* ticks of a call or hold that make it one that was interrupted */
    bool accounting;
    int64_t began_ns, began_running_ns; /* the pass */
    int side;                           /* whose time it is; METER_SIDES: nobody's */
    uint64_t since;
    uint64_t ticks[METER_SIDES + 1], turns[METER_SIDES + 1];
    uint64_t engine_ticks[METER_SIDES + 1], engine_calls[METER_SIDES + 1];
    struct holds holds[METER_SIDES];
    const struct watched *held; /* NULL: no watched lock is held */
    uint64_t held_since;
    struct watched table[SLOTS];
} meter;

/* --- the clock --- */

static int64_t read_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

/* How long this thread has had a processor. */
static int64_t running_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* The processor's own clock where it has one that programs can read: a look costs less. */
static inline uint64_t look(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return (uint64_t)now_ns();
#endif
}

/* The least of several tries: what disturbs a try only makes it longer. */
static double measure_look(void)
{
    double least = 1e9;
    for (int try = 0; try < 20; try++) {
        uint64_t start = look(), last = start;
        for (int i = 0; i < LOOKS; i++)
            last = look();
        double each = (double)(last - start) / LOOKS;
        least = each < least ? each : least;
    }
    return least;
}

void meter_init(void)
{
    int64_t start_ns = now_ns(), end_ns;
    uint64_t start = look();
    do
        end_ns = now_ns();
    while (end_ns - start_ns < CALIBRATION_NS);
    meter.ns_per_tick = (double)(end_ns - start_ns) / (double)(look() - start);
    meter.look = measure_look();
    meter.buckets_per_tick = meter.ns_per_tick / BUCKET_NS;
    meter.interrupted = (uint64_t)(INTERRUPTED_NS / meter.ns_per_tick);
    meter.side = METER_SIDES;
}

double meter_look_ns(void)
{
    return meter.look * meter.ns_per_tick;
}

/* --- sides --- */

void meter_begin(bool accounting)
{
    memset(meter.ticks, 0, sizeof meter.ticks);
    memset(meter.turns, 0, sizeof meter.turns);
    memset(meter.engine_ticks, 0, sizeof meter.engine_ticks);
    memset(meter.engine_calls, 0, sizeof meter.engine_calls);
    memset(meter.holds, 0, sizeof meter.holds);
    meter.accounting = accounting;
    meter.side = METER_SIDES;
    meter.began_ns = now_ns();
    meter.began_running_ns = running_ns();
    meter.since = look();
}

static void turn(int side)
{
    uint64_t now = look();
    meter.ticks[meter.side] += now - meter.since;
    meter.turns[meter.side] += 1;
    meter.side = side;
    meter.since = now;
}

void meter_turn(enum meter_side side)
{
    turn(side);
}

static double without_looks(uint64_t ticks, uint64_t looks)
{
    double left = (double)ticks - (double)looks * meter.look;
    return left > 0 ? left * meter.ns_per_tick : 0;
}

/* Holds are subtracted one look each; the buckets have them with it. */
static double p99_of(const struct holds *holds)
{
    uint64_t seen = 0;
    int bucket = 0;
    while (bucket < BUCKETS - 1 && (seen += holds->buckets[bucket]) * 100 < holds->count * 99)
        bucket += 1;
    double ns = (bucket + 1) * BUCKET_NS - meter_look_ns();
    return holds->count && ns > 0 ? ns : 0;
}

void meter_end(struct meter_reading readings[METER_SIDES])
{
    turn(METER_SIDES);
    meter.accounting = false;
    double share = (double)(running_ns() - meter.began_running_ns) / (double)(now_ns() - meter.began_ns);
    share = share < 1 ? share : 1;
    for (int side = 0; side < METER_SIDES; side++) {
        const struct holds *holds = &meter.holds[side];
        readings[side] = (struct meter_reading){
            .total_ns = share * without_looks(meter.ticks[side], meter.turns[side]),
            .engine_ns = without_looks(meter.engine_ticks[side], meter.engine_calls[side]),
            .held_ns = without_looks(holds->ticks, holds->count),
            .longest_ns = without_looks(holds->longest, 1),
            .p99_ns = p99_of(holds),
            .holds = holds->count,
            .share = share,
        };
    }
}

/* --- the engine --- */

bool meter_engine_begins(uint64_t *start)
{
    if (!meter.accounting)
        return false;
    *start = look();
    return true;
}

void meter_engine_ends(uint64_t start)
{
    uint64_t ticks = look() - start;
    if (ticks > meter.interrupted)
        return;
    meter.engine_ticks[meter.side] += ticks;
    meter.engine_calls[meter.side] += 1;
}

/* --- locks --- */

/* The slot of the lock, or the empty one where it would be. */
static struct watched *slot_of(const pthread_mutex_t *lock)
{
    uint64_t number = ((uint64_t)(uintptr_t)lock >> 4) * UINT64_C(0x9E3779B97F4A7C15);
    for (uint64_t at = number >> 32;; at++) {
        struct watched *slot = &meter.table[at % SLOTS];
        if (!slot->lock || slot->lock == lock)
            return slot;
    }
}

void meter_watch(pthread_mutex_t *lock, enum meter_side side)
{
    *slot_of(lock) = (struct watched){lock, side};
}

void meter_forget(void)
{
    memset(meter.table, 0, sizeof meter.table);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *lock)
{
    if (!meter.accounting || meter.held) /* no thread holds two sessions' locks */
        return __real_pthread_mutex_lock(lock);
    const struct watched *slot = slot_of(lock);
    int result = __real_pthread_mutex_lock(lock);
    if (slot->lock) {
        meter.held = slot;
        meter.held_since = look();
    }
    return result;
}

static void count_hold(struct holds *holds, uint64_t ticks)
{
    double bucket = (double)ticks * meter.buckets_per_tick;
    if (ticks > meter.interrupted)
        return;
    holds->count += 1;
    holds->ticks += ticks;
    holds->longest = ticks > holds->longest ? ticks : holds->longest;
    holds->buckets[bucket < BUCKETS - 1 ? (int)bucket : BUCKETS - 1] += 1;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    const struct watched *held = meter.held;
    if (!held || held->lock != lock)
        return __real_pthread_mutex_unlock(lock);
    uint64_t ticks = look() - meter.held_since;
    int result = __real_pthread_mutex_unlock(lock);
    meter.held = NULL;
    count_hold(&meter.holds[held->side], ticks);
    return result;
}
