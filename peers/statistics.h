/*
 * statistics.h: what some rounds come to. A round without a value has a negative one, and is left out.
 */
#ifndef WF_PEERS_STATISTICS_H
#define WF_PEERS_STATISTICS_H

struct peer_figures {
    int count; /* values; 0: the rest is 0, too */
    double median, min, max;
    double spread; /* (max - min) / median; 0 where the median is 0 */
};

void peer_summarize(const double *values, int rounds, struct peer_figures *figures);

/* The median of `values`, negative ones left out; negative: there is none. */
double peer_median(const double *values, int rounds);

/* The median of ours[i] / theirs[i] over the rounds that have both: what disturbs a round disturbs both sides of its
 * ratio. Negative: no round has both. */
double peer_paired_ratio(const double *ours, const double *theirs, int rounds);

#endif
