/*
 * footprint.h: what a node is and uses beside the time of its messages: how long connecting took, its memory,
 * descriptors and threads.
 */
#ifndef WF_BENCH_FOOTPRINT_H
#define WF_BENCH_FOOTPRINT_H

#include <jansson.h>
#include <stdint.h>

/* What the measuring thread notes for it as the run goes on; atomic, for the signal thread may ask at any time. All
 * zero: nothing yet. */
struct bench_footprint {
    _Atomic int64_t session_ns;    /* from calling the other node to the control connection; 0: it called us */
    _Atomic int64_t pairs_ns;      /* opening the connections of all pairs, all backends together */
    _Atomic uint32_t sessions;     /* of a node of many, with others when everything was measured; 0: not known */
    _Atomic uint64_t buffer_bytes; /* messages and landings: the benchmark's own memory, resident from the start */
};

/* For the node's entry in `host` of a result; a new reference. What the system does not say is null. */
json_t *bench_footprint_to_json(const struct bench_footprint *footprint);

#endif
