/*
 * read_ahead.h: payload that no cache holds is read right before the call that sends it.
 *
 * The kernel copies out of memory more slowly than a loop reads it. Where that is so, reading a slice that fits into
 * the second-level cache and then sending it takes less time than sending it. Whether it is so here is found by doing
 * both now and then, some MiB each, one after the other (docs/decisions/0016-read-ahead.md).
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
    WF_TRIAL_SECOND, /* the other way of it */
    WF_TRIAL_PAUSE,  /* the way that is believed to be faster */
};

/*
 * Which of two ways takes less time for a byte: sending alone, or reading first. Pure arithmetic on wf_trial_tell().
 *
 * A pair: some MiB go one way and then as many the other. After a pause, also measured in bytes, comes the next pair. A
 * pair of single calls would not do: each finds the caches and queues as the call before it has left them.
 */
struct wf_trial {
    enum wf_trial_phase phase;
    uint64_t left;  /* bytes to the end of the phase */
    uint64_t pause; /* bytes of the next one */
    uint32_t pairs;
    uint32_t judged;          /* pairs that could be compared, up to one less than the gain is smoothed over */
    uint32_t settled;         /* pairs in a row that did not change which way is taken */
    uint64_t bytes[2], ns[2]; /* counted in the pair under way, without and with reading */
    int64_t gain; /* (without - with) / (without + with), smoothed, in 1/16384: interruptions of both weigh the same */
};

/* Reading is believed to pay, as much as one pair would say, until the first pairs have been tried. */
void wf_trial_init(struct wf_trial *trial);
/* Whether the next call is to read first. */
bool wf_trial_reads(const struct wf_trial *trial);
/* Whether the next call belongs to a pair, and must be like the other calls of the pair in all else. */
bool wf_trial_compares(const struct wf_trial *trial);
/* That call moved `moved` bytes in `ns`; `ns` 0: its time cannot be compared, and it counts for the length of the phase
 * alone. */
void wf_trial_tell(struct wf_trial *trial, uint64_t moved, int64_t ns);

/* Owner: the thread that drives the engine. */
struct wf_read_ahead {
    enum wf_read_ahead_when when;
    const struct wf_clock *clock;
    size_t slice;     /* bytes to read at a time, where so many are left; 0: nothing is ever read */
    int64_t clock_ns; /* what asking for the time takes */
    int64_t began_ns; /* of the call under way, its reading included */
    size_t told;      /* bytes that this call has to move to be compared; 0: it cannot be */
    bool goes_on;     /* it sends what is left of a slice, of which the trial is told, too */
    struct wf_trial trial;
};

void wf_read_ahead_init(struct wf_read_ahead *ahead, enum wf_read_ahead_when when, const struct wf_clock *clock);

/* Before a call that sends the front of `op`: reads what pays. Returns the most that the call is to take, at most
 * `limit` and at least 1 where that is. */
size_t wf_read_ahead_before(struct wf_read_ahead *ahead, struct wf_op *op, size_t limit);

/* After it, with what it moved, or -errno. */
void wf_read_ahead_after(struct wf_read_ahead *ahead, ssize_t moved);

#endif
