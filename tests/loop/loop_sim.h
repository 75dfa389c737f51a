/*
 * loop_sim.h: what tests of the simulated world alone may ask of it.
 */
#ifndef LOOP_SIM_H
#define LOOP_SIM_H

#include "sim_memory.h"

/* The devices of this world: made with the first call, for contexts from then on. */
struct wf_sim_memory *loop_sim_memory(void);

#endif
