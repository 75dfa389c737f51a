/*
 * discover_nic.h: what the kernel says of the interfaces of this machine, from /sys and /proc. Part of discovery.
 *
 * Interfaces come and go, and containers hide files: what cannot be read is unknown, never an error.
 */
#ifndef WF_AFFINITY_DISCOVER_NIC_H
#define WF_AFFINITY_DISCOVER_NIC_H

#include "affinity/machine.h"

/* eth2 before eth10: digits by their value. As strcmp. */
int wf_nic_order(const char *a, const char *b);

/* Fills machine->nics, in order, all but node and path. Where there are too many, NICs with a device stay. `sys` and
 * `proc` are where the two are mounted. */
void wf_nics_read(struct wf_machine *machine, const char *sys, const char *proc);

/* Asks the kernel for the drivers of NICs without a device: veth, bonds. Of this machine. */
void wf_nics_ask_drivers(struct wf_machine *machine);

/* A bond, VLAN or bridge gets node and path of its first lower device that has them. */
void wf_nics_inherit(struct wf_machine *machine, const char *sys);

#endif
