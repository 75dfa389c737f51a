/*
 * slow.h: which nodes of a mesh are slow, which links between two nodes, and which rails. The rule is odd.h's, on
 * tables whose rows and columns are nodes:
 *
 *     rate(from, to, size)        = median over the pairs of endpoints
 *     part(rail, from, to, size)  = bytes over the rail / its line rate
 *     beside(rail, ...)           = part(rail, ...) / median of the parts of the other rails there
 *
 *     a node, what it sends or receives, or a link is slow  where  it is odd among the rates
 *     a rail is slow at a node or between two               where  that is odd among what is beside(rail)
 *     a rail is slow at all nodes                           where  its row is odd in the table of parts, rail by link
 *
 * A rail that slows all of a node's rails alike is the node, for only what is beside the others counts of a rail: so
 * whatever slows a measurement as a whole makes no rail slow. Of fewer than 3 nodes nothing is named.
 *
 * In simulated meshes of 4 and 8 nodes with 3 sizes, nothing was named in 20 of 20 healthy ones with a noise of up to
 * 10 %, and what was slow was named in 20 of 20 at 86 % with a noise of 3 % at each pair, size and share of a rail.
 * `test_bench_slow figures` has more of them.
 */
#ifndef WF_BENCH_SLOW_H
#define WF_BENCH_SLOW_H

#include <stdint.h>

#include "odd.h"

/* Of these, rates and rails of every pair of nodes at every size, there is no more room than this. */
#define BENCH_SLOW_CELLS_MOST (16u << 20)

#define BENCH_EVERY_NODE SIZE_MAX
#define BENCH_EVERY_RAIL UINT32_MAX

struct bench_carried {
    uint32_t rail; /* of the run's rails: the same number at all nodes where the name is the same */
    double bytes;
};

/* One pair of endpoints at one size. */
struct bench_reading {
    uint32_t src_node, dst_node;
    uint32_t src, dst; /* endpoints, counted over all nodes */
    uint32_t size;     /* which of the sizes */
    double rate;       /* GB/s; what is not above 0 is passed over */
    double retransmits, failures;
    const struct bench_carried *carried; /* the caller's */
    uint32_t carried_count;
};

/* Of one backend and mode. Owner: the caller. */
struct bench_readings {
    struct bench_reading *list; /* bench_slow_find() puts them in order */
    size_t count;
    uint32_t nodes, endpoints, sizes, rails; /* endpoints: of all nodes together */
    const double *bytes;                     /* of each size, ascending */
    const double *lines;                     /* [node * rails + rail], line rates; NULL: not all are known */
    bool rails_compare; /* every rail was to serve every pair: else what they carried says who sent */
};

struct bench_slow {
    struct bench_odd odd; /* its `src` and `dst` are nodes; BENCH_EVERY_NODE: a rail at all of them */
    uint32_t rail;        /* BENCH_EVERY_RAIL: the rates of all together */
};

/* Finds up to `most`: rails, then nodes, then links, of each the slowest first. Returns how many there are, or -ENOMEM;
 * -E2BIG: more than BENCH_SLOW_CELLS_MOST. */
int bench_slow_find(struct bench_readings *readings, struct bench_slow *found, size_t most);

/* The same of endpoints and pairs of endpoints: `src` and `dst` are endpoints. A rate counts beside those of its link,
 * so that a slow node or link is no slow endpoint. */
int bench_slow_endpoints(struct bench_readings *readings, struct bench_odd *found, size_t most);

/* What is judged: the rates of the links, [(size * nodes + from) * nodes + to], or what one rail carried of them; NaN:
 * there is none. The caller frees them. */
int bench_slow_table(struct bench_readings *readings, uint32_t rail, double **rates);

/* Whether two are about the same; whether the first is a part of what the second says. */
bool bench_slow_same(const struct bench_slow *one, const struct bench_slow *other);
bool bench_slow_within(const struct bench_slow *one, const struct bench_slow *other);

/* Whether it is a rail that carried nothing. */
bool bench_slow_nothing(const struct bench_slow *slow);

/* "node2 sends and receives 1.02 GB/s a link, 85 % of its peers"; of a rail with its name. Returns `text`. */
const char *bench_slow_text(const struct bench_slow *slow, const char *rail, char *text, size_t room);

#endif
