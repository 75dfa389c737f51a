/*
 * Which processors the threads of each rail get.
 *
 * The rails of a node share one TX set and one RX set, which together are all of the node that this process may use:
 * the lower half of the physical cores for TX, the upper for RX, hyper-threads with their core. Interrupts may take
 * cores away from both (avoid), or say which of them are RX (use).
 */
#include "affinity/assign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* As many physical cores must be left for threads to be kept away from interrupts: one for TX and one for RX. */
#define CORES_ENOUGH 2

/* The rails of one node, or the rails of unknown node. */
struct group {
    const struct wf_machine *machine;
    struct wf_plan *plan;
    int node;
    struct wf_cpus whole;  /* every online processor of the node */
    struct wf_cpus usable; /* of `whole`, what threads may have; never empty */
};

/* --- physical cores --- */

/* ranks[i]: of machine->cpus[i], the number of its core among the cores of the set, by their first processors; -1: not
 * in the set. Returns how many cores there are. */
static int rank_cores(const struct wf_machine *machine, const struct wf_cpus *set, int *ranks)
{
    int cores[WF_CPUS_MAX], count = 0;
    for (int i = 0; i < machine->cpu_count; i++) {
        ranks[i] = -1;
        if (!wf_cpus_has(set, machine->cpus[i].id))
            continue;
        int rank = 0;
        while (rank < count && cores[rank] != machine->cpus[i].core)
            rank += 1;
        if (rank == count)
            cores[count++] = machine->cpus[i].core;
        ranks[i] = rank;
    }
    return count;
}

static int count_cores(const struct wf_machine *machine, const struct wf_cpus *set)
{
    int ranks[WF_CPUS_MAX];
    return rank_cores(machine, set, ranks);
}

/* The processors of `within` whose core has one in the set. */
static struct wf_cpus with_siblings(const struct wf_machine *machine, const struct wf_cpus *set,
                                    const struct wf_cpus *within)
{
    int ranks[WF_CPUS_MAX];
    bool taken[WF_CPUS_MAX] = {false};
    struct wf_cpus siblings = {0};
    rank_cores(machine, within, ranks);
    for (int i = 0; i < machine->cpu_count; i++)
        if (ranks[i] >= 0 && wf_cpus_has(set, machine->cpus[i].id))
            taken[ranks[i]] = true;
    for (int i = 0; i < machine->cpu_count; i++)
        if (ranks[i] >= 0 && taken[ranks[i]])
            wf_cpus_add(&siblings, machine->cpus[i].id);
    return siblings;
}

/* Halves of the cores, else of the hyper-threads of one, else both the same. An odd one goes to RX. */
static void halve(const struct wf_machine *machine, const struct wf_cpus *set, struct wf_cpus *tx, struct wf_cpus *rx)
{
    int ranks[WF_CPUS_MAX], cores = rank_cores(machine, set, ranks), threads = wf_cpus_count(set), seen = 0;
    *tx = *rx = (struct wf_cpus){0};
    if (threads < 2) {
        *tx = *rx = *set;
        return;
    }
    for (int i = 0; i < machine->cpu_count; i++) {
        if (ranks[i] < 0)
            continue;
        bool lower = cores >= 2 ? ranks[i] < cores / 2 : seen < threads / 2;
        wf_cpus_add(lower ? tx : rx, machine->cpus[i].id);
        seen += 1;
    }
}

/* --- words for notes --- */

static const char *rails_of(const struct group *group, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < group->plan->rail_count && used < room; i++)
        if (group->plan->rails[i].node == group->node)
            used += (size_t)snprintf(text + used, room - used, "%s%s", used ? ", " : "", group->plan->rails[i].name);
    return text;
}

/* --- interrupts --- */

/* Where the interrupts of a rail's NIC go, of the processors of the group. A set with the whole node
 * means that the interrupts were never bound. */
static struct wf_cpus interrupts(const struct group *group, const struct wf_plan_rail *rail)
{
    int nic = wf_machine_nic(group->machine, rail->device);
    struct wf_cpus irq = {0};
    if (nic >= 0 && !wf_cpus_within(&group->whole, &group->machine->nics[nic].irq))
        irq = group->machine->nics[nic].irq;
    wf_cpus_intersect(&irq, &group->usable);
    return irq;
}

/* Of all rails: a rail of another node may interrupt here too. */
static void avoid(struct group *group)
{
    struct wf_cpus busy = {0}, rest = group->usable;
    char names[256];
    for (int i = 0; i < group->plan->rail_count; i++) {
        struct wf_cpus irq = interrupts(group, &group->plan->rails[i]);
        wf_cpus_unite(&busy, &irq);
    }
    busy = with_siblings(group->machine, &busy, &group->usable);
    wf_cpus_subtract(&rest, &busy);
    if (count_cores(group->machine, &rest) >= CORES_ENOUGH)
        group->usable = rest;
    else if (wf_cpus_next(&busy, 0) >= 0)
        wf_plan_note(group->plan,
                     "Too few cores are free of NIC interrupts: the threads of %s also run where these go.",
                     rails_of(group, names, sizeof names));
}

/* RX where the interrupts of each NIC go, TX on the rest, which RX of NICs of which nothing is known shares by halves.
 * False: the interrupts say nothing, or leave nothing for TX. */
static bool use(struct group *group)
{
    struct wf_cpus all = {0}, rest = group->usable, other_rx, irq[WF_PLAN_RAILS];
    struct wf_plan *plan = group->plan;
    bool other = false;
    for (int i = 0; i < plan->rail_count; i++) {
        irq[i] = (struct wf_cpus){0};
        if (plan->rails[i].node != group->node)
            continue;
        irq[i] = interrupts(group, &plan->rails[i]);
        irq[i] = with_siblings(group->machine, &irq[i], &group->usable);
        wf_cpus_unite(&all, &irq[i]);
        other |= wf_cpus_next(&irq[i], 0) < 0;
    }
    wf_cpus_subtract(&rest, &all);
    if (wf_cpus_next(&all, 0) < 0 || count_cores(group->machine, &rest) < (other ? CORES_ENOUGH : 1))
        return false;
    struct wf_cpus tx = rest;
    if (other)
        halve(group->machine, &rest, &tx, &other_rx);
    for (int i = 0; i < plan->rail_count; i++)
        if (plan->rails[i].node == group->node) {
            plan->rails[i].tx = tx;
            plan->rails[i].rx = wf_cpus_next(&irq[i], 0) < 0 ? other_rx : irq[i];
        }
    return true;
}

/* --- a node --- */

/* What the threads of the node may have: never empty, though not always of the node. */
static void gather(struct group *group, const struct wf_cpus *allowed)
{
    int node = group->node == WF_NO_NODE ? -1 : wf_machine_node(group->machine, group->node);
    char names[256];
    group->whole = node >= 0 ? group->machine->nodes[node].cpus : group->machine->online;
    group->usable = group->whole;
    wf_cpus_intersect(&group->usable, allowed);
    if (node < 0 && group->machine->node_count > 1)
        wf_plan_note(group->plan, "The NUMA node of %s is not known: the threads may run on all nodes.",
                     rails_of(group, names, sizeof names));
    if (wf_cpus_next(&group->usable, 0) >= 0)
        return;
    if (node >= 0)
        wf_plan_note(group->plan,
                     "Node %d has no processor that this process may use: the threads of %s run elsewhere.",
                     group->node, rails_of(group, names, sizeof names));
    group->whole = group->machine->online;
    group->usable = *allowed;
}

static void split(struct group *group, enum wf_irq_policy policy)
{
    struct wf_cpus tx, rx;
    char names[256];
    if (policy == WF_IRQ_AVOID)
        avoid(group);
    if (policy == WF_IRQ_USE) {
        if (use(group))
            return;
        wf_plan_note(group->plan, "The NIC interrupts do not say which cores RX of %s should have: half of them.",
                     rails_of(group, names, sizeof names));
    }
    halve(group->machine, &group->usable, &tx, &rx);
    if (wf_cpus_equal(&tx, &rx))
        wf_plan_note(group->plan, "One processor is all there is for TX and RX of %s: they share it.",
                     rails_of(group, names, sizeof names));
    for (int i = 0; i < group->plan->rail_count; i++)
        if (group->plan->rails[i].node == group->node) {
            group->plan->rails[i].tx = tx;
            group->plan->rails[i].rx = rx;
        }
}

static bool first_of_node(const struct wf_plan *plan, int rail)
{
    for (int i = 0; i < rail; i++)
        if (plan->rails[i].node == plan->rails[rail].node)
            return false;
    return true;
}

int wf_assign_cores(const struct wf_machine *machine, enum wf_irq_policy policy, struct wf_plan *plan, char *why,
                    size_t why_room)
{
    struct wf_cpus known = {0}, allowed = machine->allowed;
    for (int i = 0; i < machine->cpu_count; i++)
        wf_cpus_add(&known, machine->cpus[i].id);
    wf_cpus_intersect(&allowed, &known);
    if (plan->rail_count && wf_cpus_next(&allowed, 0) < 0) {
        snprintf(why, why_room, "this process may use none of the processors that are online: set pin to off");
        return -EINVAL;
    }
    for (int i = 0; i < plan->rail_count; i++) {
        struct group group = {.machine = machine, .plan = plan, .node = plan->rails[i].node};
        if (!first_of_node(plan, i))
            continue;
        gather(&group, &allowed);
        split(&group, policy);
    }
    return 0;
}
