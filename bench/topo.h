/* topo.h: the command `topo`: a machine, its plan, and what is in the way of faster paths. */
#ifndef WF_BENCH_TOPO_H
#define WF_BENCH_TOPO_H

#include "affinity/machine.h"
#include "affinity/plan.h"
#include "options.h"

/* Prints them as the options ask: text, JSON or a drawing. Returns an exit status. */
int bench_topo(struct bench_options *options);

/* Where the threads and memory of a running process (its number) are, or of the nodes of a run (the file of its result)
 * were. Returns an exit status. topo_force.c */
int bench_topo_in_force(const struct bench_options *options);

/* The setting `rails` as rails of a plan: on this machine what the library would take, for another machine interfaces
 * that it has. rail_count stays 0 where the machine's own choice is to stand. topo_rails.c */
int bench_topo_rails(const struct wf_machine *machine, const char *setting, struct wf_plan_request *request,
                     struct wf_status *status);

/* A sentence about GPU memory. On this machine that loads the driver, where there is one. topo_gpus.c */
void bench_topo_gpus(const struct wf_machine *machine, const struct wf_config *config, char *text, size_t room);

#endif
