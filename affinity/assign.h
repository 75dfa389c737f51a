/*
 * assign.h: the parts of wf_plan_make(), each a pure function of what it is given. They run in this order, on a plan
 * that starts as all zeros; a plan is of use only when all have returned 0.
 */
#ifndef WF_AFFINITY_ASSIGN_H
#define WF_AFFINITY_ASSIGN_H

#include <stddef.h>

#include "affinity/bindings.h"
#include "affinity/machine.h"
#include "affinity/plan.h"

/* The rails: the requested ones, or all that are there. assign.c */
int wf_assign_rails(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                    char *why, size_t why_room);

/* The endpoints, their nodes, and the rails of each. assign_endpoints.c */
int wf_assign_endpoints(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                        char *why, size_t why_room);

/* The processors of each rail, as if the user had given none. assign_cores.c */
int wf_assign_cores(const struct wf_machine *machine, enum wf_irq_policy policy, struct wf_plan *plan, char *why,
                    size_t why_room);

/* Puts the user's processors in place of them; then sets which rails share. assign_given.c */
int wf_assign_given(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                    char *why, size_t why_room);

/* Adds a sentence to the plan's notes, or leaves it out where there is no room for all of it. */
void wf_plan_note(struct wf_plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The node of a device that says `node`: on a machine with one node that one; WF_NO_NODE if there is no such node. */
int wf_assign_node(const struct wf_machine *machine, int node);

#endif
