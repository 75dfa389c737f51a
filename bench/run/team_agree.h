/*
 * team_agree.h: before a team measures anything: node0's settings are those of all, every node tells node0 about
 * itself, and node0 makes what nobody has said give way to its memory. Every node checks that the plan is its own and
 * fits.
 */
#ifndef WF_BENCH_TEAM_AGREE_H
#define WF_BENCH_TEAM_AGREE_H

#include "agree.h"
#include "bench/nodes/team.h"

/* As bench_agree(). `*at_once`: node pairs that measure at a time when isolated; 0: all of a round. */
int bench_team_agree(struct bench_agreement *agreement, struct bench_team *team, uint32_t *at_once,
                     struct wf_status *status);

#endif
