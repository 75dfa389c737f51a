/* discover_device.h: GPUs and NICs as hwloc knows them, and where they hang. Part of discovery. */
#ifndef WF_AFFINITY_DISCOVER_DEVICE_H
#define WF_AFFINITY_DISCOVER_DEVICE_H

#include <hwloc.h>

#include "affinity/machine.h"

/* Fills machine->gpus. Of a foreign machine also the NICs; of this one, node and path of the NICs that are listed
 * already. Nodes and processors are filled. */
void wf_discover_devices(hwloc_topology_t topology, struct wf_machine *machine);

#endif
