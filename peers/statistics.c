#include "statistics.h"

#include <stdlib.h>
#include <string.h>

#include "peers.h"

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* The values that count, sorted; how many. */
static int sorted(const double *values, int rounds, double *room)
{
    int count = 0;

    for (int i = 0; i < rounds && i < PEERS_ROUNDS_MAX; i++)
        if (values[i] >= 0)
            room[count++] = values[i];
    qsort(room, (size_t)count, sizeof *room, ascending);
    return count;
}

static double middle(const double *values, int count)
{
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void peer_summarize(const double *values, int rounds, struct peer_figures *figures)
{
    double room[PEERS_ROUNDS_MAX];
    int count = sorted(values, rounds, room);

    memset(figures, 0, sizeof *figures);
    if (count == 0)
        return;
    figures->count = count;
    figures->median = middle(room, count);
    figures->min = room[0];
    figures->max = room[count - 1];
    figures->spread = figures->median > 0 ? (figures->max - figures->min) / figures->median : 0;
}

double peer_median(const double *values, int rounds)
{
    struct peer_figures figures;

    peer_summarize(values, rounds, &figures);
    return figures.count ? figures.median : -1;
}

double peer_paired_ratio(const double *ours, const double *theirs, int rounds)
{
    double ratios[PEERS_ROUNDS_MAX];

    for (int i = 0; i < rounds && i < PEERS_ROUNDS_MAX; i++)
        ratios[i] = ours[i] >= 0 && theirs[i] > 0 ? ours[i] / theirs[i] : -1;
    return peer_median(ratios, rounds < PEERS_ROUNDS_MAX ? rounds : PEERS_ROUNDS_MAX);
}
