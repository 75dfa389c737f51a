/* nic.h: the command `nic`: makes network cards ready for device-memory TCP, and puts back what was there before. */
#ifndef WF_BENCH_NIC_H
#define WF_BENCH_NIC_H

#include "bench/plan/options.h"

/* Returns an exit status. */
int bench_nic(struct bench_options *options);

#endif
