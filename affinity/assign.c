/* Which rails there are, and two functions that all parts of a plan use. */
#include "affinity/assign.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void wf_plan_note(struct wf_plan *plan, const char *format, ...)
{
    size_t used = strlen(plan->notes), room = sizeof plan->notes - used;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(plan->notes + used, room, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length + 2 > room)
        plan->notes[used] = '\0';
    else
        strcat(plan->notes, "\n");
}

int wf_assign_node(const struct wf_machine *machine, int node)
{
    if (machine->node_count == 1)
        return machine->nodes[0].id;
    return node != WF_NO_NODE && wf_machine_node(machine, node) >= 0 ? node : WF_NO_NODE;
}

/* --- the rails --- */

static bool may_be_rail(const struct wf_nic *nic)
{
    return nic->up && strcmp(nic->name, "lo") != 0;
}

static void add_rail(const struct wf_machine *machine, struct wf_plan *plan, const char *name, const char *device,
                     const char *address)
{
    struct wf_plan_rail *rail = &plan->rails[plan->rail_count++];
    int nic = wf_machine_nic(machine, device);
    snprintf(rail->name, sizeof rail->name, "%s", name);
    snprintf(rail->device, sizeof rail->device, "%s", device);
    snprintf(rail->address, sizeof rail->address, "%s", address);
    /* One node is all there is: to name it would say nothing. */
    rail->node = nic >= 0 && machine->node_count > 1 ? wf_assign_node(machine, machine->nics[nic].node) : WF_NO_NODE;
}

/* Virtual interfaces carry traffic for a NIC that is there anyway, unless there is nothing else. */
static void add_what_is_there(const struct wf_machine *machine, struct wf_plan *plan)
{
    bool real = false;
    int left_out = 0;
    for (int i = 0; i < machine->nic_count; i++)
        real |= may_be_rail(&machine->nics[i]) && machine->nics[i].pci[0];
    for (int i = 0; i < machine->nic_count; i++) {
        const struct wf_nic *nic = &machine->nics[i];
        if (!may_be_rail(nic) || (real && !nic->pci[0]))
            continue;
        if (plan->rail_count < WF_PLAN_RAILS)
            add_rail(machine, plan, nic->name, nic->name, "");
        else
            left_out += 1;
    }
    if (left_out)
        wf_plan_note(
            plan, "There are %d more NICs than the %d rails that a plan can have: the last ones by name are left out.",
            left_out, WF_PLAN_RAILS);
    if (plan->rail_count == 0)
        wf_plan_note(plan, "No NIC is up: there are no rails.");
}

int wf_assign_rails(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                    char *why, size_t why_room)
{
    if (request->rail_count < 0 || request->rail_count > WF_PLAN_RAILS) {
        snprintf(why, why_room, "%d rails cannot be planned: at most %d", request->rail_count, WF_PLAN_RAILS);
        return -EINVAL;
    }
    for (int i = 0; i < request->rail_count; i++)
        add_rail(machine, plan, request->rails[i].name, request->rails[i].device, request->rails[i].address);
    if (request->rail_count == 0)
        add_what_is_there(machine, plan);
    return 0;
}
