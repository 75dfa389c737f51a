/* The plan as a whole. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "affinity/assign.h"
#include "affinity/discover.h"

static bool any(const char *text)
{
    return text && text[0];
}

static int give_cores(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                      char *why, size_t why_room)
{
    if (request->pin == WF_PIN_OFF) {
        if (any(request->tx_bindings) || any(request->rx_bindings))
            wf_plan_note(plan, "Bindings are given, but pin is off: they are not used.");
        return 0;
    }
    int status = wf_assign_cores(machine, request->irq_policy, plan, why, why_room);
    return status ? status : wf_assign_given(machine, request, plan, why, why_room);
}

int wf_plan_make(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *out,
                 char *why, size_t why_room)
{
    struct wf_plan plan = {.pin = request->pin, .rail_policy = request->rail_policy};
    int status = wf_assign_rails(machine, request, &plan, why, why_room);
    if (status == 0)
        status = wf_assign_endpoints(machine, request, &plan, why, why_room);
    if (status == 0)
        status = give_cores(machine, request, &plan, why, why_room);
    if (status == 0)
        *out = plan;
    return status;
}

int wf_plan_here(const struct wf_plan_request *request, struct wf_plan *out, char *why, size_t why_room)
{
    struct wf_machine *machine = calloc(1, sizeof *machine); /* too large for a stack */
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
