/*
 * team_work.h: a team goes through its plan. Isolated, node pairs meet in the rounds of the plan, so many of them at
 * once as is allowed, and all tell node0 what they found before the next do; loaded, everybody measures at once.
 */
#ifndef WF_BENCH_TEAM_WORK_H
#define WF_BENCH_TEAM_WORK_H

#include "bench/measure/measure.h"
#include "bench/nodes/team.h"
#include "bench/words/progress.h"

/* As bench_workload(); node0 gets the samples of all. `at_once`: as bench_team_agree() has it. */
int bench_team_work(struct bench_bed *bed, struct bench_team *team, uint32_t at_once, struct bench_link *link,
                    struct bench_result *result, struct bench_progress *progress, struct wf_status *status);

/* As bench_workload_finish(). */
int bench_team_finish(struct bench_bed *bed, struct bench_team *team, struct bench_link *link,
                      struct bench_result *result, bool *passed, struct wf_status *status);

#endif
