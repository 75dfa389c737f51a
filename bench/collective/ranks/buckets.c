#include "buckets.h"

uint32_t rank_buckets_cut(uint32_t layers, uint64_t layer_bytes, uint64_t bucket_bytes, struct rank_bucket *buckets)
{
    uint32_t count = 0;

    for (uint32_t layer = 0; layer < layers; layer++) {
        if (count == 0 || buckets[count - 1].count * layer_bytes >= bucket_bytes)
            buckets[count++] = (struct rank_bucket){layer, 0};
        buckets[count - 1].count++;
    }
    return count;
}
