#include "figures.h"

#include <math.h>
#include <stdlib.h>

#include "bench/words/student.h"

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
    double half = pairs > 1 ? bench_student(pairs - 1) * deviation / sqrt((double)pairs) : INFINITY;
    *out = (struct bench_comparison){pairs, exp(mean), exp(mean - half), exp(mean + half)};
}
