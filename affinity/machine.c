#include "affinity/machine.h"

#include <string.h>

int wf_machine_nic(const struct wf_machine *machine, const char *name)
{
    for (int i = 0; i < machine->nic_count; i++)
        if (strcmp(machine->nics[i].name, name) == 0)
            return i;
    return -1;
}

int wf_machine_node(const struct wf_machine *machine, int id)
{
    for (int i = 0; i < machine->node_count; i++)
        if (machine->nodes[i].id == id)
            return i;
    return -1;
}

/* How many steps two paths have in common, from the host bridge on. */
static int common_steps(const struct wf_path *a, const struct wf_path *b)
{
    int depth = a->depth < b->depth ? a->depth : b->depth;
    for (int i = 0; i < depth; i++)
        if (strcmp(a->step[i], b->step[i]) != 0)
            return i;
    return depth;
}

enum wf_step wf_step_between(const struct wf_path *a, int node_a, const struct wf_path *b, int node_b)
{
    static const enum wf_step nearest[] = {WF_STEP_UNKNOWN, WF_STEP_BRIDGE, WF_STEP_ROOT_PORT, WF_STEP_SWITCH};
    int common = common_steps(a, b);

    if (common > 0)
        return nearest[common < 3 ? common : 3];
    if (node_a < 0 || node_b < 0)
        return WF_STEP_UNKNOWN;
    return node_a == node_b ? WF_STEP_NODE : WF_STEP_OTHER;
}

const char *wf_step_text(enum wf_step step)
{
    static const char *const texts[] = {
        [WF_STEP_SWITCH] = "same switch", [WF_STEP_ROOT_PORT] = "same root port", [WF_STEP_BRIDGE] = "same bridge",
        [WF_STEP_NODE] = "same node",     [WF_STEP_OTHER] = "other node",         [WF_STEP_UNKNOWN] = "unknown",
    };

    return (size_t)step < sizeof texts / sizeof texts[0] ? texts[step] : "unknown";
}
