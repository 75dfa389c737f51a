/*
 * histogram.h: statistics of a list of iteration times. Percentiles are exact: p90 is the smallest time that is not
 * less than 90 % of all times (nearest rank).
 */
#ifndef WF_BASE_HISTOGRAM_H
#define WF_BASE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

/* In microseconds, except `cv`: standard deviation divided by mean. All zero if there are no times. */
struct wf_times {
    double min, p10, p50, p90, p99, p999, max, mean, cv;
};

/* Sorts `times_ns` in place. The median of an even count is the mean of the two times in the middle. */
void wf_times_of(double *times_ns, size_t count, struct wf_times *out);

/* The median of `count` values; sorts them in place; 0 if there are none. */
double wf_median(double *values, size_t count);

#endif
