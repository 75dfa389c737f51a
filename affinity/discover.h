/*
 * discover.h: from a real machine, or a description of one, to struct wf_machine. Uses hwloc.
 */
#ifndef WF_AFFINITY_DISCOVER_H
#define WF_AFFINITY_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "affinity/machine.h"

/*
 * Fills `out`. `source` NULL or "": this machine, with what the kernel says of its NICs (state, speed, MTU, driver,
 * queues, interrupts) and which processors this process may use. Otherwise "FILE.xml", as lstopo writes it, or
 * "synthetic:numa:2 core:4 pu:2" (hwloc's synthetic descriptions). A foreign machine allows what it has; its NICs are
 * up at the speed that the file says ("Speed" info of the device in Mbit/s; else -1).
 *
 * Interfaces without a PCI device (loopback, veth, bonds) are NICs too on this machine, with an unknown path; a bond or
 * VLAN takes the node and path of its first lower device that has one.
 *
 * 0; -ENOENT (no such file), -EINVAL (not a topology), -ENOMEM, -EIO; `why` says what was wrong with which value.
 * A description is read in a child process, as hwloc may break on a broken one.
 * No root needed. May take some 10 ms; reads /sys; any thread.
 */
int wf_machine_discover(const char *source, struct wf_machine *out, char *why, size_t why_room);

/* Is it an address of this machine, as "10.0.0.1" or "fe80::1%eth0"? Any thread. */
bool wf_address_is_here(const char *address);
/* Are both texts the same address? A link-local one may leave out its interface. Any thread. */
bool wf_address_same(const char *one, const char *other);

#endif
