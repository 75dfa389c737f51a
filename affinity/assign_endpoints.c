/*
 * Which rails serve which endpoint.
 *
 * The rails of an endpoint are ordered by their distance: its nearest ones, its next ones, and so on. Rails at the same
 * distance are rotated: an endpoint starts one rail later than the last one before it that had exactly the same rails
 * as its nearest (its next, …). So eight GPUs that are equally near to four NICs start at each of them twice, and the
 * two GPUs of a switch with two NICs start at different ones. The order depends on nothing else.
 */
#include "affinity/assign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct wf_path no_path = {0};

#define STEPS (WF_STEP_UNKNOWN + 1)

/* The rails of an endpoint as bits: [0] its nearest, [1] the next, … */
struct choice {
    int count;
    uint64_t rails[STEPS];
    enum wf_step steps[STEPS]; /* how far these are */
};

/* --- which endpoints there are --- */

static int add_gpu(const struct wf_machine *machine, long index, struct wf_plan *plan, char *why, size_t why_room)
{
    if (index < 0 || index >= machine->gpu_count) {
        if (machine->gpu_count == 0)
            snprintf(why, why_room, "GPU %ld is not there: this machine has none", index);
        else
            snprintf(why, why_room, "GPU %ld is not there: this machine has GPUs 0 to %d", index,
                     machine->gpu_count - 1);
        return -EINVAL;
    }
    for (int i = 0; i < plan->endpoint_count; i++)
        if (plan->endpoints[i].gpu == index) {
            snprintf(why, why_room, "GPU %ld is asked for twice", index);
            return -EINVAL;
        }
    struct wf_plan_endpoint *endpoint = &plan->endpoints[plan->endpoint_count++];
    snprintf(endpoint->name, sizeof endpoint->name, "gpu%d", (int)index);
    endpoint->gpu = (int)index;
    endpoint->node = wf_assign_node(machine, machine->gpus[index].node);
    return 0;
}

/* "0,2,5-7": in the order of the list. */
static int add_gpus(const struct wf_machine *machine, const char *list, struct wf_plan *plan, char *why,
                    size_t why_room)
{
    for (const char *at = list;; at += 1) {
        long first, last;
        if (!wf_cpus_range(&at, &first, &last)) {
            snprintf(why, why_room, "'%.40s' is not a GPU by its number, as in 0,2,5-7", at);
            return -EINVAL;
        }
        int status = 0;
        for (long index = first; status == 0 && index <= last; index++)
            status = add_gpu(machine, index, plan, why, why_room);
        if (status || *at == '\0')
            return status;
    }
}

/* Endpoints that share a GPU share its place in the plan, too. */
static void take_in_turn(int endpoints, struct wf_plan *plan)
{
    int gpus = plan->endpoint_count;

    if (endpoints > 0 && endpoints < gpus)
        plan->endpoint_count = endpoints;
    else if (gpus > 0 && endpoints > gpus)
        wf_plan_note(plan, "%d endpoints on %d GPU%s%s: those of one GPU are one line.", endpoints, gpus,
                     gpus == 1 ? "" : "s", gpus == 1 ? "" : " in turn");
}

static bool has_rail(const struct wf_machine *machine, const struct wf_plan *plan, int node)
{
    for (int i = 0; i < plan->rail_count; i++) {
        int nic = wf_machine_nic(machine, plan->rails[i].device);
        if (nic >= 0 && wf_assign_node(machine, machine->nics[nic].node) == node)
            return true;
    }
    return false;
}

/* The nodes that have rails, in turn. */
static int add_hosts(const struct wf_machine *machine, int count, struct wf_plan *plan, char *why, size_t why_room)
{
    int nodes[WF_NODES_MAX], node_count = 0;
    if (count > WF_PLAN_ENDPOINTS) {
        snprintf(why, why_room, "%d endpoints cannot be planned: at most %d", count, WF_PLAN_ENDPOINTS);
        return -EINVAL;
    }
    for (int i = 0; i < machine->node_count; i++)
        if (has_rail(machine, plan, machine->nodes[i].id))
            nodes[node_count++] = machine->nodes[i].id;
    for (int i = 0; i < count; i++) {
        struct wf_plan_endpoint *endpoint = &plan->endpoints[plan->endpoint_count++];
        snprintf(endpoint->name, sizeof endpoint->name, "host%d", i);
        endpoint->gpu = -1;
        endpoint->node = node_count ? nodes[i % node_count] : wf_assign_node(machine, WF_NO_NODE);
    }
    return 0;
}

static int add_endpoints(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                         char *why, size_t why_room)
{
    int status = 0;
    if (request->host_endpoints > 0)
        return add_hosts(machine, request->host_endpoints, plan, why, why_room);
    if (request->gpus && request->gpus[0])
        status = add_gpus(machine, request->gpus, plan, why, why_room);
    else
        for (int i = 0; i < machine->gpu_count && status == 0; i++)
            status = add_gpu(machine, i, plan, why, why_room);
    if (status == 0)
        take_in_turn(request->gpu_endpoints, plan);
    return status;
}

/* --- their rails --- */

static enum wf_step step_to(const struct wf_machine *machine, const struct wf_plan_endpoint *endpoint,
                            const struct wf_plan_rail *rail)
{
    int nic = wf_machine_nic(machine, rail->device);
    if (nic < 0)
        return WF_STEP_UNKNOWN;
    const struct wf_path *path = endpoint->gpu >= 0 ? &machine->gpus[endpoint->gpu].path : &no_path;
    return wf_step_between(path, endpoint->node, &machine->nics[nic].path,
                           wf_assign_node(machine, machine->nics[nic].node));
}

static void choose(const struct wf_machine *machine, const struct wf_plan *plan,
                   const struct wf_plan_endpoint *endpoint, struct choice *out)
{
    uint64_t at[STEPS] = {0};
    for (int k = 0; k < plan->rail_count; k++)
        at[step_to(machine, endpoint, &plan->rails[k])] |= UINT64_C(1) << k;
    for (int step = 0; step < STEPS; step++)
        if (at[step]) {
            out->rails[out->count] = at[step];
            out->steps[out->count++] = (enum wf_step)step;
        }
}

/* How many endpoints before this one have the same rails as their nearest, next, … */
static int rotation(const struct choice *choices, int index, int place)
{
    int count = 0;
    for (int i = 0; i < index; i++)
        count += choices[i].rails[place] == choices[index].rails[place];
    return count;
}

static void order(const struct choice *choices, int index, struct wf_plan_endpoint *endpoint)
{
    int filled = 0;
    for (int place = 0; place < choices[index].count; place++) {
        int equal[WF_PLAN_RAILS], count = 0, first = rotation(choices, index, place);
        for (int k = 0; k < WF_PLAN_RAILS; k++)
            if (choices[index].rails[place] >> k & 1)
                equal[count++] = k;
        for (int k = 0; k < count; k++) {
            endpoint->rails[filled] = equal[(first + k) % count];
            endpoint->steps[filled++] = choices[index].steps[place];
        }
    }
}

static enum wf_rail_policy policy_of(const struct wf_plan *plan, const struct wf_plan_endpoint *endpoint)
{
    if (plan->rail_policy != WF_POLICY_AUTO)
        return plan->rail_policy;
    return endpoint->gpu >= 0 ? WF_POLICY_NEAR : WF_POLICY_ALL;
}

/* How many of the ordered rails carry traffic: all up to the last step that the policy admits. */
static int admitted(const struct wf_plan *plan, const struct wf_plan_endpoint *endpoint)
{
    enum wf_rail_policy policy = policy_of(plan, endpoint);
    enum wf_step last = WF_STEP_UNKNOWN;
    int count = 0;
    if (plan->rail_count == 0)
        return 0;
    if (policy == WF_POLICY_NEAR)
        last = endpoint->steps[0];
    else if (policy == WF_POLICY_NODE && endpoint->steps[0] <= WF_STEP_NODE)
        last = WF_STEP_NODE;
    while (count < plan->rail_count && endpoint->steps[count] <= last)
        count += 1;
    return count;
}

/* Where a policy asks for near rails and there are none. */
static void note_far(struct wf_plan *plan)
{
    char names[256] = "";
    size_t used = 0;
    for (int i = 0; i < plan->endpoint_count && plan->rail_count; i++) {
        const struct wf_plan_endpoint *endpoint = &plan->endpoints[i];
        if (policy_of(plan, endpoint) == WF_POLICY_ALL || endpoint->steps[0] <= WF_STEP_NODE)
            continue;
        int length = snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", endpoint->name);
        used += (size_t)length < sizeof names - used ? (size_t)length : strlen(names + used);
    }
    if (used)
        wf_plan_note(plan, "No rail is known to be near %s: rails further away carry the traffic.", names);
}

int wf_assign_endpoints(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                        char *why, size_t why_room)
{
    struct choice choices[WF_PLAN_ENDPOINTS] = {0};
    int status = add_endpoints(machine, request, plan, why, why_room);
    if (status)
        return status;
    for (int i = 0; i < plan->endpoint_count; i++) {
        struct wf_plan_endpoint *endpoint = &plan->endpoints[i];
        choose(machine, plan, endpoint, &choices[i]);
        order(choices, i, endpoint);
        endpoint->rail_count = admitted(plan, endpoint);
        /* One node is all there is: memory need not be sent there. */
        if (machine->node_count <= 1)
            endpoint->node = WF_NO_NODE;
    }
    note_far(plan);
    return 0;
}
