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

/* Where others than this machine's processes can reach a port that `address` and the link's rails listen on, and there
 * is no key: says so on standard error, once, with the commands that would change it. Silent with --quiet. */
void bench_key_warn(const struct bench_link *link, const struct bench_options *options, const char *address, int port);

#endif
