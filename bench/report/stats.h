/*
 * stats.h: figures of a list of numbers.
 */
#ifndef WF_REPORT_STATS_H
#define WF_REPORT_STATS_H

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

/* The least value that `share` of all do not exceed; NaN of none. The list is sorted. */
static inline double report_quantile(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return count ? sorted[rank ? rank - 1 : 0] : NAN;
}

static inline int report_compare_numbers(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

static inline void report_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, report_compare_numbers);
}

/* Of a sorted list. */
static inline double report_median(const double *sorted, size_t count)
{
    if (!count)
        return NAN;
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* The standard deviation of a sample, and its mean; NaN of one value, and of none the mean, too. */
static inline double report_deviation(const double *values, size_t count, double *mean)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    *mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - *mean) * (values[i] - *mean);
    return count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
}

#endif
