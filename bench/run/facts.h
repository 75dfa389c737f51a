/*
 * facts.h: what a node tells of itself: once when the nodes meet, and again whenever they tell each other how far they
 * are. All are new references.
 */
#ifndef WF_BENCH_FACTS_H
#define WF_BENCH_FACTS_H

#include <jansson.h>
#include <stdint.h>

#include "bench/nodes/link.h"

/* Its entry in `host` of a result, for so many endpoints. */
json_t *bench_host_facts(const struct bench_link *link, uint32_t endpoints);

/* Its rails, and what they have carried so far; why something faster is not in use, in lines. */
json_t *bench_rail_facts(const struct bench_link *link);
json_t *bench_fallback_facts(const struct bench_link *link);

/* Both, what faults were injected here, and its footprint, for bench_result_keep_totals(). */
json_t *bench_totals(const struct bench_link *link);

#endif
