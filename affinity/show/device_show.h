/* device_show.h: what of a machine and its plan concerns device-memory TCP. No file outside of this room includes it.
 */
#ifndef WF_AFFINITY_DEVICE_SHOW_H
#define WF_AFFINITY_DEVICE_SHOW_H

#include "affinity/show/show.h"

/* What is first in the way of receiving on a rail of the plan into a GPU of the machine. NULL: nothing, as far as is
 * known. `room` is for it where it is the GPU's. */
const struct wf_obstacle *wf_show_first_obstacle(const struct wf_show *show, int rail, int gpu,
                                                 struct wf_obstacle *room);
/* The same of the rail alone. */
const struct wf_obstacle *wf_show_rail_obstacle(const struct wf_show *show, int rail);

/* The NIC of a rail; NULL: its interface is not here. */
const struct wf_nic *wf_show_nic_of(const struct wf_show *show, int rail);
/* How far they are apart: as the plan has it, or, of a GPU that it has no endpoint on, as the machine does. */
enum wf_step wf_show_step(const struct wf_show *show, int rail, int gpu);
/* show.c: as the plan has it. */
enum wf_step wf_show_step_to(const struct wf_plan *plan, const struct wf_plan_endpoint *endpoint, int rail);

/* Prints nothing where no rail could. */
void wf_show_device_text(FILE *out, const struct wf_show *show);
/* A new reference; null where nothing is known of the machine. */
json_t *wf_show_device_json(const struct wf_show *show);

#endif
