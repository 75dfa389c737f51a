/*
 * candidate.h: every interface of this machine, and what speaks against making a rail of it when the setting `rails`
 * names none. Reads the system, changes nothing.
 */
#ifndef WF_CORE_RAIL_CANDIDATE_H
#define WF_CORE_RAIL_CANDIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rail/rail.h"

struct wf_candidate {
    struct wf_rail rail; /* `name` is the interface's; without an address `text` is "" */
    enum wf_rail_rule rule;
};

/* All of them, in the order of the kernel's addresses, interfaces without one last. Returns how many, or -errno; the
 * caller frees `list`, which is NULL then. */
int wf_candidates_list(struct wf_candidate **list);

/* Can it carry traffic if it is named: is it up, with an address? */
static inline bool wf_candidate_usable(const struct wf_candidate *candidate)
{
    return candidate->rule <= WF_RULE_NO_CARRIER;
}

/* Is this what container engines, hypervisors and VPNs call the bridges, ports and tunnels that they make? */
bool wf_interface_is_virtual(const char *name);

/* A rail on the interface `device` with this address; `by_address`: it is named so. */
void wf_rail_fill(struct wf_rail *rail, const char *device, const struct sockaddr_storage *address, bool by_address);

#endif
