#include "bandwidth.h"

double bench_bus_factor(enum bench_collective kind, uint32_t ranks)
{
    double n = ranks;

    if (ranks == 0)
        return 0;
    switch (kind) {
    case BENCH_ALL_REDUCE:
        return 2 * (n - 1) / n;
    case BENCH_ALL_GATHER:
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALL_TO_ALL:
        return (n - 1) / n;
    case BENCH_BROADCAST:
    case BENCH_SEND_RECEIVE:
        break;
    }
    return 1;
}

uint64_t bench_collective_bytes(enum bench_collective kind, uint32_t ranks, uint64_t bytes_in)
{
    return kind == BENCH_ALL_GATHER ? ranks * bytes_in : bytes_in;
}

double bench_algorithm_bandwidth(uint64_t bytes, double time_us)
{
    return time_us > 0 ? (double)bytes / (time_us * 1e3) : -1;
}

double bench_bus_bandwidth(enum bench_collective kind, uint32_t ranks, uint64_t bytes, double time_us)
{
    return time_us > 0 ? bench_algorithm_bandwidth(bytes, time_us) * bench_bus_factor(kind, ranks) : -1;
}
