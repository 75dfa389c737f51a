/*
 * buckets.h: which layers are synchronised together.
 *
 *     the layers of the buckets, in their order = all layers, in the order in which they are computed
 *
 * As DDP does it: layers are put into a bucket until it has its size, and a layer that is larger is one alone. So the
 * last bucket may be smaller, and others larger by less than a layer.
 */
#ifndef WF_BENCH_RANK_BUCKETS_H
#define WF_BENCH_RANK_BUCKETS_H

#include <stdint.h>

struct rank_bucket {
    uint32_t first, count; /* layers */
};

/* Writes the buckets, of which there is room for `layers`; returns how many they are. */
uint32_t rank_buckets_cut(uint32_t layers, uint64_t layer_bytes, uint64_t bucket_bytes, struct rank_bucket *buckets);

#endif
