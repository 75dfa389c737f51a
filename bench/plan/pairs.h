/*
 * pairs.h: the parts of a plan's making that are about pairs.
 */
#ifndef WF_BENCH_PAIRS_H
#define WF_BENCH_PAIRS_H

#include "schedule.h"

/* Part of bench_plan_init(): fills in pairs, pattern and group, for endpoints and seed already set. In pairs.c. */
int bench_plan_pairs(struct bench_plan *plan, const struct bench_options *options, struct wf_status *status);

/* The same for a group of nodes: its pairs are those of node pairs, in the rounds of a tournament. In bouts.c. */
int bench_plan_bouts(struct bench_plan *plan, const char *scope, struct wf_status *status);

/* Parts of both: adds the pairs between two nodes, or within one, that the pattern has. */
int bench_plan_add_inter(struct bench_plan *plan, int low, int high, struct wf_status *status);
int bench_plan_add_intra(struct bench_plan *plan, int node, struct wf_status *status);
/* Puts `count` of the pairs from `first` on in another order. */
void bench_plan_shuffle(struct bench_plan *plan, uint32_t first, uint32_t count, uint64_t *state);
/* Whether the pattern has pairs from one node to another one. */
bool bench_plan_sends(const struct bench_plan *plan, int src_node, int dst_node);

#endif
