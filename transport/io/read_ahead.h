/*
 * read_ahead.h: reads payload that no cache holds right before the call that sends it.
 *
 * On many machines the kernel copies out of memory more slowly than a loop reads. Then it takes less time to read a
 * slice that fits into the second-level cache and to send it than to send it alone. To learn whether this machine is
 * like that, the engine does both now and then, some MiB each (docs/decisions/0016-read-ahead.md).
 *
 *     bytes read <= bytes of the operation;    bytes read and not yet sent <= slice + 64 KiB
 */
#ifndef WF_IO_READ_AHEAD_H
#define WF_IO_READ_AHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "io/engine.h"

enum wf_trial_phase {
    WF_TRIAL_FIRST,  /* the first way of a pair */
    WF_TRIAL_SECOND, /* the second way of the pair */
    WF_TRIAL_PAUSE,  /* between two pairs: the way that seems faster */
};

/*
 * Finds the way that takes less time for a byte: sending alone, or reading first. Pure: computes from wf_trial_tell().
 *
 * In a pair, some MiB go one way and then as many the other way. After a pause, also counted in bytes, the next pair
 * starts. A pair of single calls would be misleading: each call depends on the caches and queues left by the last call.
 */
struct wf_trial {
    enum wf_trial_phase phase;
    uint64_t left;  /* bytes to the end of the phase */
    uint64_t pause; /* bytes of the next pause */
    uint32_t pairs;
    uint32_t judged;          /* pairs that could be compared; at most one less than `gain` is smoothed over */
    uint32_t settled;         /* pairs in a row that did not change the way taken */
    uint64_t bytes[2], ns[2]; /* counted in the present pair, [0] without and [1] with reading */
    int64_t gain; /* (without - with) / (without + with), smoothed, in 1/16384: interruptions of both weigh the same */
};

/* Starts as if one pair had shown that reading is faster. */
void wf_trial_init(struct wf_trial *trial);
/* True: the next call reads first. */
bool wf_trial_reads(const struct wf_trial *trial);
/* True: the next call belongs to a pair; it may differ from the pair's other calls only in reading first. */
bool wf_trial_compares(const struct wf_trial *trial);
/* Records a call that moved `moved` bytes in `ns`; `ns` 0: its time cannot be compared, and only `left` changes. */
void wf_trial_tell(struct wf_trial *trial, uint64_t moved, int64_t ns);

/* Owner: the thread that drives the engine. */
struct wf_read_ahead {
    enum wf_read_ahead_when when;
    const struct wf_clock *clock;
    size_t slice;     /* bytes to read at a time, if so many are left; 0: never reads */
    int64_t clock_ns; /* time that one look at the clock takes */
    int64_t began_ns; /* start of the present call, before its reading */
    size_t told;      /* bytes that the present call must move to be compared; 0: it is not compared */
    bool goes_on;     /* the present call sends the rest of a slice; the trial counts its bytes, too */
    struct wf_trial trial;
};

void wf_read_ahead_init(struct wf_read_ahead *ahead, enum wf_read_ahead_when when, const struct wf_clock *clock);

/* Before a call that sends the front of `op`: reads a slice if that saves time. Returns the most bytes for the call: 1
 * to `limit`. */
size_t wf_read_ahead_before(struct wf_read_ahead *ahead, struct wf_op *op, size_t limit);

/* After that call: `moved` bytes, or -errno. */
void wf_read_ahead_after(struct wf_read_ahead *ahead, ssize_t moved);

#endif
