/*
 * clocks.h: what node1's clock shows when node0's shows something: pure figures from readings of both, see
 * bench_control_read_clocks().
 *
 *     offset(t) = node1's clock - node0's clock            drift = d offset / dt
 *
 * A reading's offset is wrong by at most half of its round trip. That error is mostly the same in all readings of a
 * quiet path, so it does not spoil the drift: the interval of that comes from how far the readings are from a line. The
 * offset that the line gives has both errors, and that of the drift grows with the distance from the middle of the
 * line:
 *
 *     error of the offset(t) = half of the least round trip
 *                              + root of ((error of the middle)^2 + (error of the drift x (t - middle))^2)
 */
#ifndef WF_BENCH_PROFILE_CLOCKS_H
#define WF_BENCH_PROFILE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/nodes/control.h"

/* Two clocks at one moment. */
struct bench_fix {
    int64_t here_ns, there_ns; /* node0's clock and node1's; or the processor's and a GPU's */
    int64_t error_ns;          /* they may be apart in time by at most so much */
};

/* In order of time. All zero: none. Owner: the measuring thread. */
struct bench_track {
    struct bench_fix *fixes;
    size_t count, room;
};

void bench_track_fini(struct bench_track *track);
/* -ENOMEM. */
int bench_track_add(struct bench_track *track, const struct bench_fix *fix);

void bench_fix_of(const struct bench_clock_reading *reading, struct bench_fix *fix);

/* The time of here when it was `there_ns` there: between two fixes by a straight line, beyond the last by the line of
 * the last two that are a second apart. `track` has a fix. */
int64_t bench_track_here(const struct bench_track *track, int64_t there_ns);
/* By how much that may be wrong, ns. */
int64_t bench_track_error(const struct bench_track *track, int64_t there_ns);

/* A line through some fixes. */
struct bench_drift {
    size_t fixes;            /* that the line was drawn through; fewer than 3: nothing else counts */
    double seconds;          /* from the first to the last */
    double ppm, ppm_error;   /* how much faster the clock there is; half of the 95 % interval */
    int64_t at_ns;           /* the end, by the clock here */
    int64_t offset_ns;       /* there - here, at that moment */
    int64_t offset_error_ns; /* all of it at that moment, of which */
    int64_t half_trip_ns;    /* is half of the least round trip */
    double residual_ns;      /* standard deviation of the fixes from the line */
};

/* Of each of up to `pieces` equal spans of time, with three fixes or more in each, the fix with the least error counts;
 * not that of a span in which all took several times as long as elsewhere. */
void bench_drift_of(const struct bench_track *track, size_t pieces, struct bench_drift *drift);

/* By how many ppm CLOCK_MONOTONIC of a node ran faster than CLOCK_MONOTONIC_RAW between two readings: what disciplines
 * the one leaves the other alone. */
double bench_steered_ppm(const struct bench_clock_reading *first, const struct bench_clock_reading *last, int node);

#endif
