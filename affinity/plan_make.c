#include "affinity/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "affinity/discover.h"

int wf_plan_here(const struct wf_plan_request *request, struct wf_plan *out, char *why, size_t why_room)
{
    struct wf_machine *machine = calloc(1, sizeof(*machine)); /* too large for a stack */
    if (!machine) {
        snprintf(why, why_room, "no memory for the description of this machine");
        return -ENOMEM;
    }
    int status = wf_machine_discover(NULL, machine, why, why_room);
    if (status == 0)
        status = wf_plan_make(machine, request, out, why, why_room);
    free(machine);
    return status;
}
