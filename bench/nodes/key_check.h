/*
 * key_check.h: whether the key that is set can be used, and the warning of who listens without one.
 */
#ifndef WF_BENCH_KEY_CHECK_H
#define WF_BENCH_KEY_CHECK_H

#include "bench/plan/options.h"
#include "weft.h"

/* Whether the file of the setting key_file, if there is one, holds a key that may be used. -EINVAL whatever is wrong
 * with it, as for a value of any other setting; the library, which reads it again, tells -ENOENT and -EACCES apart. */
int bench_key_check(const struct wf_config *config, struct wf_status *status);

/* Where others than this machine's processes can reach a port that `address` and the context's rails listen on, and
 * there is no key: says so on standard error, once, with the commands that would change it. Silent with --quiet. */
void bench_key_warn(const struct weft_context *context, const struct bench_options *options, const char *address,
                    int port);

#endif
