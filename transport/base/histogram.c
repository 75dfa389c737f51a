#include "base/histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return left < right ? -1 : left > right;
}

static double ranked(const double *sorted, size_t count, double share)
{
    size_t rank = (size_t)ceil(share * (double)count);

    return sorted[rank ? rank - 1 : 0];
}

static double middle(const double *sorted, size_t count)
{
    return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

double wf_median(double *values, size_t count)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof(*values), compare);
    return middle(values, count);
}

void wf_times_of(double *times_ns, size_t count, struct wf_times *out)
{
    double sum = 0, squares = 0, mean;

    memset(out, 0, sizeof(*out));
    if (count == 0)
        return;
    qsort(times_ns, count, sizeof(*times_ns), compare);
    for (size_t i = 0; i < count; i++)
        sum += times_ns[i];
    mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (times_ns[i] - mean) * (times_ns[i] - mean);
    out->min = times_ns[0] / 1e3;
    out->p10 = ranked(times_ns, count, 0.10) / 1e3;
    out->p50 = middle(times_ns, count) / 1e3;
    out->p90 = ranked(times_ns, count, 0.90) / 1e3;
    out->p99 = ranked(times_ns, count, 0.99) / 1e3;
    out->p999 = ranked(times_ns, count, 0.999) / 1e3;
    out->max = times_ns[count - 1] / 1e3;
    out->mean = mean / 1e3;
    out->cv = mean > 0 ? sqrt(squares / (double)count) / mean : 0;
}
