/*
 * bandwidth.h: the two figures that NCCL's own benchmark gives for an operation of `ranks` ranks that takes some
 * time, so that ours can be laid beside them:
 *
 *     algorithm bandwidth = bytes / time                  what the caller sees
 *     bus bandwidth       = algorithm bandwidth x factor  what the busiest link of a rank must carry at least
 *
 * `bytes` is the larger of what a rank hands in and what it gets. The factors follow from the best that any algorithm
 * can do (PERFORMANCE.md of NVIDIA/nccl-tests):
 *
 *     all-reduce 2(n-1)/n   all-gather, reduce-scatter, all-to-all (n-1)/n   broadcast, send and receive 1
 */
#ifndef WF_BENCH_BANDWIDTH_H
#define WF_BENCH_BANDWIDTH_H

#include <stdint.h>

enum bench_collective {
    BENCH_ALL_REDUCE,
    BENCH_ALL_GATHER,
    BENCH_REDUCE_SCATTER,
    BENCH_BROADCAST,
    BENCH_ALL_TO_ALL,
    BENCH_SEND_RECEIVE,
};

/* 0 for less than one rank. Of one rank alone no link carries anything, but a copy is a broadcast all the same. */
double bench_bus_factor(enum bench_collective kind, uint32_t ranks);

/* What `bytes` of the definition above are, where each rank hands in `bytes_in` bytes. */
uint64_t bench_collective_bytes(enum bench_collective kind, uint32_t ranks, uint64_t bytes_in);

/* GB/s (10^9 bytes); negative where no time has passed. */
double bench_algorithm_bandwidth(uint64_t bytes, double time_us);
double bench_bus_bandwidth(enum bench_collective kind, uint32_t ranks, uint64_t bytes, double time_us);

#endif
