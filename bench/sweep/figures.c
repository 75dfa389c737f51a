#include "figures.h"

#include <math.h>
#include <stdlib.h>

static int by_value(const void *one, const void *other)
{
    double a = *(const double *)one, b = *(const double *)other;

    return (a > b) - (a < b);
}

double bench_figures_median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Mean and standard deviation of a sample. */
static void moments(const double *values, size_t count, double *mean, double *deviation)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < count; i++)
        sum += values[i];
    *mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - *mean) * (values[i] - *mean);
    *deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
}

double bench_figures_cv(const double *values, size_t count)
{
    double mean, deviation;

    if (count < 2)
        return -1;
    moments(values, count, &mean, &deviation);
    return mean > 0 ? deviation / mean : -1;
}

/* The 97.5 % point of Student's t, as tables have it. */
static double student(size_t freedom)
{
    static const double points[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
    size_t count = sizeof points / sizeof points[0];

    if (freedom <= count)
        return points[freedom - 1];
    return freedom < 60 ? points[count - 1] : 2.0; /* the larger of the neighbours: the interval is rather too wide */
}

void bench_figures_compare(const double *ours, const double *theirs, size_t pairs, struct bench_comparison *out)
{
    double *logs = calloc(pairs + 1, sizeof *logs), mean, deviation;

    *out = (struct bench_comparison){0};
    if (!logs || pairs == 0) {
        free(logs);
        return;
    }
    for (size_t i = 0; i < pairs; i++)
        logs[i] = log(ours[i] / theirs[i]);
    moments(logs, pairs, &mean, &deviation);
    free(logs);
    double half = pairs > 1 ? student(pairs - 1) * deviation / sqrt((double)pairs) : INFINITY;
    *out = (struct bench_comparison){pairs, exp(mean), exp(mean - half), exp(mean + half)};
}
