/*
 * path.h: which way the messages of a sample went between memory and network, at either end.
 */
#ifndef WF_BENCH_PATH_H
#define WF_BENCH_PATH_H

#include <stdint.h>

#include "bench/plan/schedule.h"

enum bench_path {
    BENCH_PATH_UNKNOWN, /* the backend does not tell */
    BENCH_PATH_HOST,    /* the messages lie in host memory */
    BENCH_PATH_STAGED,  /* copied between GPU memory and host memory */
    BENCH_PATH_DEVMEM,  /* network cards read or write GPU memory */
    BENCH_PATHS
};

/* By what happened: of `all` bytes network cards have read or written `direct` in GPU memory themselves. With fewer
 * than 95 % it is the slower way that decides about the time. */
enum bench_path bench_path_of(enum bench_memory memory, uint64_t direct, uint64_t all);

/* "devmem"; NULL: unknown. */
const char *bench_path_name(enum bench_path path);
/* The other way, also of NULL. */
enum bench_path bench_path_named(const char *name);

#endif
