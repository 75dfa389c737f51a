/*
 * logs.h: one log per endpoint and role, as scripts that read the logs of earlier systems expect it: a line per size
 * and mode for what the endpoint received, the largest loaded size last. The time is that of one message from every
 * sender: isolated they come one after the other, loaded at once. The rate is all their bytes over that time.
 */
#ifndef WF_BENCH_LOGS_H
#define WF_BENCH_LOGS_H

#include "result.h"

/* Writes them into `folder`, which is made where it is not there. */
int bench_result_logs(const struct bench_result *result, const char *folder, struct wf_status *status);

/* The word for this node in their names: "server" or "client"; "node3" where there are more than two. Returns `role`.
 */
const char *bench_log_role(const struct bench_result *result, char *role, size_t room);

#endif
