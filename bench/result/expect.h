/*
 * expect.h: the setting `expect`, a share of the rails' line rate that has to be reached: a network that has become
 * slow is found by a status.
 */
#ifndef WF_BENCH_RESULT_EXPECT_H
#define WF_BENCH_RESULT_EXPECT_H

#include "result.h"

/* The share; 0: nothing is expected. -EINVAL: it is no number above 0 and up to 1, or what is planned has no rate. */
int bench_expect_read(const struct bench_options *options, double *share, struct wf_status *status);

/* Before anything is measured, once the nodes have met: -EINVAL where there is no line rate to compare with,
 * or nothing to compare with it. */
int bench_expect_ready(const struct bench_result *result, struct wf_status *status);

/* Whether each direction that has pairs in the plan reached the share with the largest size, loaded if that was
 * measured; false where one has no figure. What was reached in words: `text`, "" where nothing is expected. */
bool bench_expect_met(const struct bench_result *result, char *text, size_t room);

#endif
