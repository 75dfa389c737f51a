/*
 * doctor.h: the command `doctor`: what is wrong with this machine, and with the path to another node. Each fault is one
 * line with its remedy.
 *
 *     weft doctor                 this machine
 *     weft doctor --listen        this machine, then it answers the node that connects
 *     weft doctor ADDR            this machine, the other one, and every pair of rails between them, both ways
 */
#ifndef WF_BENCH_DOCTOR_H
#define WF_BENCH_DOCTOR_H

#include "bench/plan/options.h"

/* Returns an exit status: BENCH_PASSED no fault, BENCH_FAILED at least one. */
int bench_doctor(struct bench_options *options);

#endif
