/* The processors that the user gives to rails replace those of the plan. */
#include "affinity/assign.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "affinity/discover.h"

/* One direction of the bindings. */
struct given {
    const char *setting; /* its name */
    bool tx;
    bool lenient;                         /* the bindings may name what is not here */
    bool (*is_here)(const char *address); /* as in the request */
};

static struct wf_cpus *set_of(struct wf_plan_rail *rail, bool tx)
{
    return tx ? &rail->tx : &rail->rx;
}

static bool *mark_of(struct wf_plan_rail *rail, bool tx)
{
    return tx ? &rail->tx_given : &rail->rx_given;
}

static int refuse_rail(const struct wf_plan *plan, const struct given *given, const char *rail, char *why,
                       size_t why_room)
{
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; i < plan->rail_count && used < sizeof names; i++) {
        const struct wf_plan_rail *one = &plan->rails[i];
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", one->name);
        if (used < sizeof names && one->device[0] && strcmp(one->name, one->device) != 0)
            used += (size_t)snprintf(names + used, sizeof names - used, " (%s)", one->device);
    }
    snprintf(why, why_room, "%s: there is no rail '%s'; the rails are: %s", given->setting, rail,
             names[0] ? names : "none");
    return -EINVAL;
}

static int check(const struct wf_machine *machine, const struct given *given, const struct wf_binding *binding,
                 char *why, size_t why_room)
{
    char allowed[128];
    for (int cpu = wf_cpus_next(&binding->cpus, 0); cpu >= 0; cpu = wf_cpus_next(&binding->cpus, cpu + 1)) {
        const char *what = NULL;
        if (!wf_cpus_has(&machine->present, cpu) && !wf_cpus_has(&machine->online, cpu))
            what = "does not exist";
        else if (!wf_cpus_has(&machine->online, cpu))
            what = "is offline";
        else if (!wf_cpus_has(&machine->allowed, cpu))
            what = "is outside of what this process may use";
        if (!what)
            continue;
        snprintf(why, why_room, "%s: processor %d of rail '%s' %s; allowed are %s", given->setting, cpu, binding->rail,
                 what, wf_cpus_text(&machine->allowed, allowed, sizeof allowed));
        return -EINVAL;
    }
    return 0;
}

/* By its name or by its address, however that is spelt. */
static bool is_called(const struct wf_plan_rail *rail, const char *text)
{
    return strcmp(rail->name, text) == 0 || wf_address_same(rail->address, text);
}

/* The rails that a binding means: rails that are called so, else rails of that device. */
static bool means(const struct wf_plan *plan, const char *text, int rail)
{
    for (int i = 0; i < plan->rail_count; i++)
        if (is_called(&plan->rails[i], text))
            return is_called(&plan->rails[rail], text);
    return strcmp(plan->rails[rail].device, text) == 0;
}

/* The bindings of a machine serve runs on some of its rails, too; a card or address that is not there is a slip of the
 * pen, unless they are those of a whole cluster. */
static int pass_over(const struct wf_machine *machine, const struct given *given, const char *rail,
                     struct wf_plan *plan, char *why, size_t why_room)
{
    bool here = wf_machine_nic(machine, rail) >= 0 || (given->is_here && given->is_here(rail));
    if (!here && !given->lenient)
        return refuse_rail(plan, given, rail, why, why_room);
    wf_plan_note(plan, "%s: %s is not among the rails in use, so its processors are not either.", given->setting, rail);
    return 0;
}

static bool in_use(const struct wf_plan *plan, const char *text)
{
    for (int i = 0; i < plan->rail_count; i++)
        if (means(plan, text, i))
            return true;
    return false;
}

static int apply(const struct given *given, const struct wf_binding *binding, struct wf_plan *plan, char *why,
                 size_t why_room)
{
    for (int i = 0; i < plan->rail_count; i++) {
        struct wf_plan_rail *rail = &plan->rails[i];
        if (!means(plan, binding->rail, i))
            continue;
        if (*mark_of(rail, given->tx)) {
            snprintf(why, why_room, "%s: rail '%s' (%s) is given processors twice", given->setting, rail->name,
                     rail->device);
            return -EINVAL;
        }
        *set_of(rail, given->tx) = binding->cpus;
        *mark_of(rail, given->tx) = true;
    }
    return 0;
}

static int take(const struct wf_machine *machine, const struct given *given, const char *text, struct wf_plan *plan,
                char *why, size_t why_room)
{
    struct wf_bindings bindings;
    char reason[320];
    int status = wf_bindings_parse(text, &bindings, reason, sizeof reason);
    if (status)
        snprintf(why, why_room, "%s: %s", given->setting, reason);
    for (int i = 0; status == 0 && i < bindings.count; i++) {
        const struct wf_binding *binding = &bindings.of[i];
        if (!in_use(plan, binding->rail)) {
            status = pass_over(machine, given, binding->rail, plan, why, why_room);
            continue;
        }
        status = check(machine, given, binding, why, why_room);
        if (status == 0)
            status = apply(given, binding, plan, why, why_room);
    }
    return status;
}

static bool overlap(struct wf_cpus a, const struct wf_cpus *b)
{
    wf_cpus_intersect(&a, b);
    return wf_cpus_next(&a, 0) >= 0;
}

/* Where only one direction of a rail is given, the other one leaves it alone if anything is left then. */
static void step_aside(struct wf_plan_rail *rail)
{
    if (rail->tx_given == rail->rx_given)
        return;
    struct wf_cpus *planned = set_of(rail, rail->rx_given), rest = *planned;
    wf_cpus_subtract(&rest, set_of(rail, rail->tx_given));
    if (wf_cpus_next(&rest, 0) >= 0)
        *planned = rest;
}

static void say_who_shares(struct wf_plan *plan)
{
    struct wf_cpus all[WF_PLAN_RAILS];
    for (int i = 0; i < plan->rail_count; i++) {
        struct wf_plan_rail *rail = &plan->rails[i];
        step_aside(rail);
        all[i] = rail->tx;
        wf_cpus_unite(&all[i], &rail->rx);
        rail->shares = overlap(rail->tx, &rail->rx);
        if (rail->shares && (rail->tx_given || rail->rx_given))
            wf_plan_note(plan, "TX and RX of %s have processors in common, as the bindings say.", rail->name);
    }
    for (int i = 0; i < plan->rail_count; i++)
        for (int k = 0; k < plan->rail_count; k++)
            plan->rails[i].others |= i != k && overlap(all[i], &all[k]);
}

int wf_assign_given(const struct wf_machine *machine, const struct wf_plan_request *request, struct wf_plan *plan,
                    char *why, size_t why_room)
{
    const struct given tx = {"tx_bindings", true, request->tx_lenient, request->is_here},
                       rx = {"rx_bindings", false, request->rx_lenient, request->is_here};
    int status = take(machine, &tx, request->tx_bindings, plan, why, why_room);
    if (status == 0)
        status = take(machine, &rx, request->rx_bindings, plan, why, why_room);
    if (status == 0)
        say_who_shares(plan);
    return status;
}
