/*
 * key.h: `weft key`, which makes a key file, and the warning of who listens without one. A key is only ever printed by
 * `weft key`, and only the one that it has just made.
 */
#ifndef WF_BENCH_KEY_H
#define WF_BENCH_KEY_H

#include "link.h"
#include "options.h"

/* `weft key`: exit status. */
int bench_key(int argc, char **argv);

/* Whether the file of the setting key_file, if there is one, holds a key that may be used. -EINVAL whatever is wrong
 * with it, as for a value of any other setting; the library, which reads it again, tells -ENOENT and -EACCES apart. */
int bench_key_check(const struct wf_config *config, struct wf_status *status);

/* Where others than this machine's processes can reach a port that `address` and the link's rails listen on, and there
 * is no key: says so on standard error, once, with the commands that would change it. Silent with --quiet. */
void bench_key_warn(const struct bench_link *link, const struct bench_options *options, const char *address, int port);

#endif
