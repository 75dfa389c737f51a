/*
 * odd.h: which links of a mesh are odd: slower than their peers, by more than links usually are.
 *
 *     level(pair, size) = log(rate / median rate of its direction at that size)
 *     score(pair)       = median of its levels over the sizes that tell the bandwidth
 *     S(values)         = max(1.4826 * median |value|, 4/5 quantile of |value| / 1.2816, 0.01)
 *     sigma, noise      = S(scores), S(levels), of both directions together, or of its own if that is 1.4 times as much
 *
 * (of fewer than 8 pairs, S has no quantile, and is never of one direction alone)
 *
 *     odd = score < min(log 0.9, -5 sigma, -3.5 noise), and each level < min(log 0.95, -2.5 noise),
 *           and pairs * share(levels of others that are as low)^sizes < 0.01
 *
 * (of 64 pairs and more, -4 and -3 noise: among them, more can have bad luck)
 *
 * A pure rule: it knows neither sizes nor names, so a run at its end and files of any age are judged alike.
 */
#ifndef WF_BENCH_ODD_H
#define WF_BENCH_ODD_H

#include <stdbool.h>
#include <stddef.h>

/* The links of one direction, of a node within itself, or between all nodes: then `back` is `rates`. The sizes are in
 * ascending order. */
struct bench_links {
    size_t sources, targets, sizes;
    const double *rates; /* [(size * sources + src) * targets + dst]; NaN: there is none */
    const double *back;  /* the other direction, [(size * targets + dst) * sources + src]; NULL: there is none */
    const double *bytes; /* of each size; NULL: not known, and the rates alone say which sizes tell the bandwidth */
    bool nodes;          /* sources and targets are the same nodes: one may be slow in all that it sends and receives */
};

enum bench_odd_kind {
    BENCH_ODD_PAIR,
    BENCH_ODD_NODE,    /* most of what `src` sends and receives; `dst` is the same */
    BENCH_ODD_SENDER,  /* most of what `src` sends; `dst` says nothing */
    BENCH_ODD_RECEIVER /* most of what `dst` receives; `src` says nothing */
};

struct bench_odd {
    enum bench_odd_kind kind;
    size_t src, dst;
    double of_peers;         /* 0.8: it has 80 % of what its peers have */
    double sigmas;           /* and that is so many standard deviations below them */
    size_t sizes_seen;       /* at which it was slow */
    double rate, peers_rate; /* at the largest size; of an endpoint the median of its pairs */
    bool one_way;            /* the way back is as its peers are */
};

/* Finds up to `most`, the slowest beside its peers first; returns how many there are, or -ENOMEM.
 *
 * Sizes count whose median rate is at least half of that of the largest, and that are at least 1/16 of it: with smaller
 * ones latency rules. Of 5 and more, one in five may be as the peers': a disturbance there hides nothing. Of fewer than
 * 3 sizes chance can be all there is: 2 ask for 7 sigma, and 1 for 12 and for less than 0.6 of the peers.
 *
 * Endpoints come first. The effect of one is a difference of medians: its pairs, and the others of its direction.
 *
 *     error = max(1.2533 sigma / sqrt(its pairs), 1.4826 MAD of the effects of the others of its role)
 *     odd   = effect < min(log 0.9, -5 error), at each size < log 0.95, and the scores of its pairs are < log 0.95
 *
 * (sigma is that of what the effect leaves; with a single other of its role, the error is at least sigma. Of 5 pairs
 * and more, one in five may be as the peers'. Of 32 of its role and more, the others' median is that of all; of 8 nodes
 * and fewer, levels are measured from the others' median.) An odd endpoint is named once, and its effect is taken off
 * its pairs before these are judged; so is a node, before its sending and its receiving are. Half or more of the nodes,
 * senders, receivers or pairs of a direction are a group, of which none is odd; but one of two endpoints may be. Of
 * fewer than 4 pairs nothing is usual, and nothing is odd.
 *
 * In simulated meshes of 4x4 and 8x8 with 3 to 5 sizes and a noise of 2 to 10 % at each pair and size, normal or with
 * the tails of Student's t of 3 degrees, something was named in fewer than 1 of 1000. A pair at 80 % was named in 95 of
 * 100 and more with a noise of 4 %, and in 99 with 3 %; so were endpoints at 70 %. A pair that differs at all sizes
 * alike is no noise to this rule. */
int bench_odd_find(const struct bench_links *links, struct bench_odd *found, size_t most);

#endif
