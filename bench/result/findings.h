/*
 * findings.h: what is slow in a run of more than two nodes (slow.h), each once, whether it is so isolated, loaded or
 * both, with what is known about it (cause.h). The terminal and the page say the same.
 */
#ifndef WF_BENCH_FINDINGS_H
#define WF_BENCH_FINDINGS_H

#include <jansson.h>

#include "slow.h"

#define BENCH_FINDINGS_MAX 64

struct bench_finding {
    struct bench_slow slow;
    uint32_t backend;
    bool in_loaded;  /* and not in isolated */
    double loaded;   /* of its peers in loaded, where it is so in both; else NaN */
    char rail[64];   /* its name; "": all of them */
    char cause[256]; /* "": nothing is known */
};

struct bench_findings {
    struct bench_finding list[BENCH_FINDINGS_MAX];
    size_t count, more; /* that the list has no room for */
};

/* What a result has of its nodes and rails, and the names of the rails that readings count. */
struct bench_known_nodes {
    const json_t *hosts, *rails; /* lists, as they stand in a result */
    const char *const *names;
};

/* Adds what is found in the readings of a backend and mode: those of isolated first. Rails are judged in isolated
 * alone. 0 or -ENOMEM. */
int bench_findings_look(struct bench_findings *findings, struct bench_readings *readings,
                        const struct bench_known_nodes *nodes, uint32_t backend, bool loaded);

/* "Slow", "Asymmetric", "Slow rail"; "Straggler": a node that is slow in loaded, and not in isolated. */
const char *bench_finding_word(const struct bench_finding *finding);

/* "node2 sends and receives 1.02 GB/s a pair, 85 % of its peers (weft, isolated; loaded: 86 %)"; `backend` may be "".
 * Returns `text`. */
const char *bench_finding_text(const struct bench_finding *finding, const char *backend, char *text, size_t room);

/* Line rates, [node * count + rail] as readings take them; NULL: one of them is not known. The caller frees them. */
double *bench_rail_lines(const json_t *rails, const char *const *names, uint32_t count, uint32_t nodes);

#endif
