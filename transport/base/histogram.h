/*
 * histogram.h: what a list of iteration times says. Percentiles are exact: the smallest time that at least that share
 * of all times does not exceed (nearest rank).
 */
#ifndef WF_BASE_HISTOGRAM_H
#define WF_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* Microseconds, except cv: standard deviation over mean. All zero for no times. */
struct wf_times {
    double min, p50, p90, p99, p999, max, mean, cv;
};

/* Sorts `times_ns` in place. The median of an even count is the mean of the two in the middle. */
void wf_times_of(double *times_ns, size_t count, struct wf_times *out);

/* The median of `count` values; sorts in place; 0 for none. */
double wf_median(double *values, size_t count);

#endif
