/*
 * nearness.h: whether the nodes are on one machine, and there in one network: then no figure is one of a network.
 */
#ifndef WF_BENCH_NEARNESS_H
#define WF_BENCH_NEARNESS_H

#include "bench/result/result.h"

/* The network that the sockets of this process are in, the same text for all who share it on a machine; "": not known.
 */
void bench_network_id(char *text, size_t room);

/* From the "boot_id" and "network" that both nodes tell of themselves. */
enum bench_nearness bench_nearness_of(const json_t *mine, const json_t *theirs);

#endif
