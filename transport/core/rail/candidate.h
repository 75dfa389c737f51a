/*
 * candidate.h: every interface of this machine, and the rule that says whether it becomes a rail when the setting
 * `rails` names none. Reads the system, changes nothing.
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

/* Lists all interfaces in the order of the kernel's addresses, interfaces without an address last. `family`: AF_INET or
 * AF_INET6, the only one whose addresses count, or AF_UNSPEC. Returns how many, or -errno and NULL in `list`. The
 * caller frees `list`. */
int wf_candidates_list(int family, struct wf_candidate **list);

/* Can the interface carry traffic if the setting names it: is it up, with an address? */
static inline bool wf_candidate_usable(const struct wf_candidate *candidate)
{
    return candidate->rule <= WF_RULE_NO_CARRIER;
}

/* Do container engines, hypervisors and VPNs use such a name for the bridges, ports and tunnels that they make? */
bool wf_interface_is_virtual(const char *name);

/* Fills a rail on the interface `device` with this address. `by_address`: the address is its name, too. */
void wf_rail_fill(struct wf_rail *rail, const char *device, const struct sockaddr_storage *address, bool by_address);

#endif
