/*
 * compare.h: `weft peers`: the same pair on every tool of this machine. The tools and their rounds are in peers/; here
 * are the options, the signals and the files.
 */
#ifndef WF_BENCH_COMPARE_H
#define WF_BENCH_COMPARE_H

#include "bench/plan/options.h"
#include "peers/peers.h"

/* Runs the comparison; returns the exit status. */
int bench_compare(struct bench_options *options);

/* What the plan points into. Owner: the measuring thread. */
struct bench_compare_texts {
    char folder[1024];
    struct {
        char address[64], interface[32];
    } rails[PEER_RAILS_MAX];
    char settings[PEER_WORDS_MAX][128];
    char engine[16];      /* Weft's, with these settings */
    char fallbacks[4096]; /* a line each, as weft_context_fallbacks() */
};

/* The plan that the options ask for. -EINVAL: wrong usage. */
int bench_compare_plan(struct bench_options *options, struct bench_compare_texts *texts, struct peers_plan *plan,
                       struct wf_status *status);

#endif
