/*
 * names.h: what endpoints and their memory are called.
 */
#ifndef WF_BENCH_NAMES_H
#define WF_BENCH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schedule.h"

/* "host", "cuda", "cuda (emulated)". */
const char *bench_memory_name(enum bench_memory memory);
/* The kind of such a name; BENCH_MEMORIES: none. */
enum bench_memory bench_memory_named(const char *name);

/* "node0:host3", "node0:gpu3". Returns `buffer`. */
char *bench_endpoint_name(int node, uint32_t endpoint, enum bench_memory memory, char *buffer, size_t room);
char *bench_src_name(const struct bench_pair *pair, char *buffer, size_t room);
char *bench_dst_name(const struct bench_pair *pair, char *buffer, size_t room);

/* Whether any of it lies in what only passes for GPU memory. */
bool bench_plan_emulated(const struct bench_plan *plan);

/* "cuda", or "host/cuda" of source and destination where they differ. Returns `buffer`. */
char *bench_both_memories(enum bench_memory one, enum bench_memory other, char *buffer, size_t room);

/* Whether src or dst, as somebody has set them, name an endpoint of the node as of this kind: "host" or "gpu". */
bool bench_plan_names(const struct wf_config *config, int node, const char *kind);

#endif
