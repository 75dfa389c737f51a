#include "affinity/show/show.h"

#include <string.h>

#include "affinity/show/device_show.h"
#include "affinity/show/fold.h"
#include "affinity/show/words.h"

void wf_show_gather(struct wf_show *show, int64_t zero_copy_bytes, wf_show_ask_device *ask, void *data)
{
    for (int i = 0; i < WF_GPUS_MAX; i++)
        show->gpu_ways[i].dmabuf = -1;
    if (show->machine->foreign)
        return;
    wf_path_system_read(show->machine, zero_copy_bytes, &show->system);
    for (int i = 0; i < show->plan->rail_count; i++) {
        int nic = wf_machine_nic(show->machine, show->plan->rails[i].device);
        if (nic < 0)
            continue;
        wf_rail_path_read(&show->machine->nics[nic], &show->paths[i]);
        if (ask)
            ask(data, show->machine->nics[nic].name, &show->paths[i].device);
        show->obstacle_counts[i] =
            wf_rail_obstacles(&show->system, &show->machine->nics[nic], &show->paths[i], show->obstacles[i]);
    }
}

/* --- the machine --- */

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void put_machine(FILE *out, const struct wf_machine *machine)
{
    char line[WF_SHOW_TEXT], cpus[512];
    struct wf_cpus offline = machine->present;
    int packages = wf_show_packages(machine), cores = wf_show_cores(machine, WF_NO_NODE);

    snprintf(line, sizeof line, "machine %s: %d package%s, %d node%s, %d core%s, %d processor%s, %d GPU%s, %d NIC%s",
             machine->name, packages, plural(packages), machine->node_count, plural(machine->node_count), cores,
             plural(cores), machine->cpu_count, plural(machine->cpu_count), machine->gpu_count,
             plural(machine->gpu_count), machine->nic_count, plural(machine->nic_count));
    wf_show_wrapped(out, 0, 2, line);
    wf_cpus_subtract(&offline, &machine->online);
    if (wf_cpus_count(&offline)) {
        snprintf(line, sizeof line, "offline: processors %s", wf_cpus_text(&offline, cpus, sizeof cpus));
        wf_show_wrapped(out, 0, 2, line);
    }
    if (!wf_cpus_equal(&machine->allowed, &machine->online)) {
        snprintf(line, sizeof line, "this process may use processors %s only",
                 wf_cpus_text(&machine->allowed, cpus, sizeof cpus));
        wf_show_wrapped(out, 0, 2, line);
    }
    wf_show_tree(out, machine);
}

/* --- distances and rails of endpoints --- */

/* What two devices have in common, in a word: a machine has many rails. */
static const char *step_word(enum wf_step step)
{
    static const char *const words[] = {
        [WF_STEP_SWITCH] = "switch", [WF_STEP_ROOT_PORT] = "port", [WF_STEP_BRIDGE] = "bridge",
        [WF_STEP_NODE] = "node",     [WF_STEP_OTHER] = "other",    [WF_STEP_UNKNOWN] = "?",
    };
    return words[step];
}

enum wf_step wf_show_step_to(const struct wf_plan *plan, const struct wf_plan_endpoint *endpoint, int rail)
{
    for (int k = 0; k < plan->rail_count; k++)
        if (endpoint->rails[k] == rail)
            return endpoint->steps[k];
    return WF_STEP_UNKNOWN;
}

/* The columns of the rails from `first` to before `end`. */
static void put_distance_block(FILE *out, const struct wf_plan *plan, int first, int end, int width)
{
    struct wf_show_folded folded = {.out = out, .column = 2};
    fprintf(out, "  %-*s", WF_SHOW_NAMES, "endpoint");
    for (int rail = first; rail < end; rail++)
        fprintf(out, "  %-*s", rail + 1 < end ? width : 0, plan->rails[rail].name);
    fprintf(out, "\n");
    for (int i = 0; i < plan->endpoint_count; i++) {
        char body[WF_SHOW_TEXT] = "";
        for (int rail = first; rail < end; rail++) {
            size_t used = strlen(body);
            snprintf(body + used, sizeof body - used, "%s%-*s", rail > first ? "  " : "", rail + 1 < end ? width : 0,
                     step_word(wf_show_step_to(plan, &plan->endpoints[i], rail)));
        }
        wf_show_fold(&folded, plan->endpoints[i].name, body);
    }
    wf_show_unfold(&folded);
}

static void put_distances(FILE *out, const struct wf_plan *plan)
{
    int width = (int)strlen("switch"), room = WF_SHOW_COLUMNS - WF_SHOW_NAMES - 2;
    for (int i = 0; i < plan->rail_count; i++)
        if ((int)strlen(plan->rails[i].name) > width)
            width = (int)strlen(plan->rails[i].name);
    int columns = room / (width + 2);
    if (plan->endpoint_count == 0 || plan->rail_count == 0)
        return;
    fprintf(out, "\ndistances (the nearest in common: switch, root port, host bridge, node; else another node)\n");
    for (int first = 0; first < plan->rail_count; first += columns)
        put_distance_block(out, plan, first, first + columns < plan->rail_count ? first + columns : plan->rail_count,
                           width);
}

/* "node 0  eth1 (else eth2, eth3)" */
static void describe_endpoint(const struct wf_plan *plan, const struct wf_plan_endpoint *endpoint, char *text,
                              size_t room)
{
    size_t used = 0;
    if (endpoint->node != WF_NO_NODE)
        used += (size_t)snprintf(text, room, "node %-3d ", endpoint->node);
    for (int k = 0; k < plan->rail_count && used < room; k++)
        used += (size_t)snprintf(text + used, room - used, "%s%s",
                                 k == endpoint->rail_count ? " (else "
                                 : k                       ? ", "
                                                           : "",
                                 plan->rails[endpoint->rails[k]].name);
    if (used < room)
        snprintf(text + used, room - used, "%s", endpoint->rail_count < plan->rail_count ? ")" : "");
}

/* --- the plan --- */

static void put_plan_rail(FILE *out, const struct wf_plan_rail *rail)
{
    char line[4 * WF_SHOW_TEXT], tx[WF_SHOW_TEXT], rx[WF_SHOW_TEXT], node[24] = "";
    bool pinned = wf_cpus_count(&rail->tx) + wf_cpus_count(&rail->rx) > 0;
    if (rail->node != WF_NO_NODE)
        snprintf(node, sizeof node, "node %-3d ", rail->node);
    if (pinned)
        snprintf(line, sizeof line, "%-*s  %sTX %s%s; RX %s%s%s%s", WF_SHOW_NAMES, rail->name, node,
                 wf_cpus_text(&rail->tx, tx, sizeof tx), rail->tx_given ? " as given" : "",
                 wf_cpus_text(&rail->rx, rx, sizeof rx), rail->rx_given ? " as given" : "",
                 rail->shares ? "; TX and RX share" : "", rail->others ? "; with other rails" : "");
    else
        snprintf(line, sizeof line, "%-*s  %snot pinned", WF_SHOW_NAMES, rail->name, node);
    wf_show_wrapped(out, 2, WF_SHOW_NAMES + 2, line);
}

static void put_notes(FILE *out, const char *notes)
{
    for (const char *at = notes; *at;) {
        char line[WF_PLAN_NOTES];
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "note: %.*s", (int)length, at);
        wf_show_wrapped(out, 2, 2, line);
        at += length + (at[length] == '\n');
    }
}

static void put_plan(FILE *out, const struct wf_plan *plan)
{
    static const char *const pins[] = {"off", "auto", "require"}, *const policies[] = {"auto", "near", "node", "all"};
    struct wf_show_folded folded = {.out = out, .column = 2};
    fprintf(out, "\nplan (pin %s, rail_policy %s)\n", pins[plan->pin], policies[plan->rail_policy]);
    for (int i = 0; i < plan->endpoint_count; i++) {
        char text[WF_SHOW_TEXT] = "";
        describe_endpoint(plan, &plan->endpoints[i], text, sizeof text);
        wf_show_fold(&folded, plan->endpoints[i].name, text);
    }
    wf_show_unfold(&folded);
    for (int i = 0; i < plan->rail_count; i++)
        put_plan_rail(out, &plan->rails[i]);
    put_notes(out, plan->notes);
}

/* --- the rails --- */

static const char *on_off_text(int value)
{
    return value < 0 ? "unknown" : value ? "on" : "off";
}

static void put_obstacle(FILE *out, const struct wf_obstacle *obstacle)
{
    char line[WF_SHOW_TEXT];
    snprintf(line, sizeof line, "%s: %s", obstacle->path, obstacle->why);
    wf_show_remedy(out, 4, line, obstacle->change);
}

static void put_rail(FILE *out, const struct wf_show *show, int index)
{
    const struct wf_plan_rail *rail = &show->plan->rails[index];
    const struct wf_rail_path *path = &show->paths[index];
    int at = wf_machine_nic(show->machine, rail->device);
    char line[WF_SHOW_TEXT], speed[32], irq[256];

    if (at < 0) {
        snprintf(line, sizeof line, "%s: its interface %s is not here", rail->name, rail->device);
        wf_show_wrapped(out, 2, 2, line);
        return;
    }
    const struct wf_nic *nic = &show->machine->nics[at];
    snprintf(line, sizeof line, "%s%s%s: %s, MTU %d, %s, %d queue%s, interrupts on %s, TSO %s, GRO %s", rail->name,
             strcmp(rail->name, nic->name) ? " on " : "", strcmp(rail->name, nic->name) ? nic->name : "",
             wf_show_speed(nic->speed_mbit, speed, sizeof speed), nic->mtu, nic->driver[0] ? nic->driver : "no driver",
             nic->queues < 0 ? 0 : nic->queues, plural(nic->queues), wf_cpus_text(&nic->irq, irq, sizeof irq),
             on_off_text(path->tso), on_off_text(path->gro));
    wf_show_wrapped(out, 2, 2, line);
    for (int i = 0; i < show->obstacle_counts[index]; i++)
        put_obstacle(out, &show->obstacles[index][i]);
    if (show->obstacle_counts[index] == 0)
        fprintf(out, "    nothing that is known is in the way of a faster path\n");
}

/* A remedy is to be copied: it stays on one line. */
static void put_left_out(FILE *out, const struct wf_left_out *one)
{
    char line[WF_SHOW_TEXT];

    snprintf(line, sizeof line, "%s%s%s%s: %s", one->interface, one->address[0] ? " (" : "", one->address,
             one->address[0] ? ")" : "", one->why);
    wf_show_wrapped(out, 2, 2, line);
    if (one->remedy[0])
        fprintf(out, "      %s\n", one->remedy);
}

void wf_show_text(FILE *out, const struct wf_show *show)
{
    put_machine(out, show->machine);
    put_distances(out, show->plan);
    put_plan(out, show->plan);
    fprintf(out, "\npaths\n");
    wf_show_wrapped(out, 2, 2, show->gpu_path);
    if (show->machine->foreign)
        fprintf(out, "  How its NICs send and receive cannot be asked of another machine.\n");
    for (int i = 0; i < show->plan->rail_count && !show->machine->foreign; i++)
        put_rail(out, show, i);
    wf_show_device_text(out, show);
    if (show->left_count)
        fprintf(out, "\nno rails, and what would make them such\n");
    for (int i = 0; i < show->left_count; i++)
        put_left_out(out, &show->left_out[i]);
}
