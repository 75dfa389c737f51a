/*
 * mps.h: whether CUDA programs of this machine go through an MPS server. Two processes that use one GPU without it take
 * turns: while a kernel of one runs, the other's stands still, and the speed of either says little.
 */
#ifndef WF_BENCH_MPS_H
#define WF_BENCH_MPS_H

#include <stddef.h>

enum bench_mps {
    BENCH_MPS_OFF, /* no control daemon has its pipe where CUDA looks for it */
    BENCH_MPS_ON,  /* one answers there: a program that starts now is its client */
    BENCH_MPS_DEAD /* there is a pipe with nobody behind it: CUDA programs fail until it is removed */
};

/* Looks in CUDA_MPS_PIPE_DIRECTORY, or where CUDA does without it. `folder`: where that is. Disturbs nobody. */
enum bench_mps bench_mps_look(char *folder, size_t room);

/* "off", "on", "dead". */
const char *bench_mps_name(enum bench_mps mps);

#endif
