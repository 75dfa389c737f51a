/*
 * invite.h: what is to be started on the other node, in words that can be copied.
 */
#ifndef WF_BENCH_INVITE_H
#define WF_BENCH_INVITE_H

#include <stdio.h>

#include "bench/nodes/link.h"
#include "bench/plan/options.h"

/* Says that node0 listens on `port` at `address` (as it was told), and unless the options say otherwise the command for
 * the other node: with the address that the default route leaves from, the addresses of the other rails after it. */
void bench_invite(const struct bench_link *link, const struct bench_options *options, const char *address, int port,
                  FILE *out);

#endif
