/*
 * judge.h: what a profile comes to: the model of its links, whether the criteria are met, and both for people.
 */
#ifndef WF_BENCH_PROFILE_JUDGE_H
#define WF_BENCH_PROFILE_JUDGE_H

#include "parts.h"

/* Fits, writes the model to `path`, and keeps the criteria. `traces`: ranks whose trace was written. */
int profile_judge(struct profile *profile, uint32_t traces, const char *path, struct wf_status *status);

/* For people, once all files are in their places. */
void profile_tell(const struct profile *profile);

#endif
