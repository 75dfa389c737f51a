/* The tree: nodes, the bridges below them, and what hangs there. */
#include <string.h>

#include "affinity/show/words.h"

#define INDENT 2

struct tree {
    FILE *out;
    const struct wf_machine *machine;
    struct wf_show_device devices[WF_SHOW_DEVICES];
    int count;
};

static void put_device(const struct tree *tree, const struct wf_show_device *device, int depth, int column)
{
    char line[WF_SHOW_TEXT] = "", text[256];
    for (int i = depth; i < device->path->depth; i++) {
        strcat(line, device->path->step[i]);
        strcat(line, " > ");
    }
    strcat(line, device->is_gpu ? wf_show_gpu(tree->machine, device->index, text, sizeof text)
                                : wf_show_nic(tree->machine, device->index, text, sizeof text));
    wf_show_wrapped(tree->out, column, INDENT, line);
}

/* The devices from `first` to before `end` have `depth` steps in common, which are printed. */
static void put_branch(const struct tree *tree, int first, int end, int depth, int column)
{
    for (int at = first; at < end;) {
        const struct wf_path *path = tree->devices[at].path;
        int next = at + 1, common = depth;
        if (path->depth > depth) {
            while (next < end && tree->devices[next].path->depth > depth &&
                   strcmp(tree->devices[next].path->step[depth], path->step[depth]) == 0)
                next++;
        }
        if (next == at + 1) {
            put_device(tree, &tree->devices[at], depth, column);
            at = next;
            continue;
        }
        /* As they are sorted, what the first and the last have in common all have. */
        const struct wf_path *last = tree->devices[next - 1].path;
        char line[WF_SHOW_TEXT] = "";
        while (common < path->depth && common < last->depth && strcmp(path->step[common], last->step[common]) == 0) {
            strcat(line, common > depth ? " > " : "");
            strcat(line, path->step[common++]);
        }
        wf_show_wrapped(tree->out, column, INDENT, line);
        put_branch(tree, at, next, common, column + INDENT);
        at = next;
    }
}

static int package_of(const struct wf_machine *machine, int node)
{
    for (int i = 0; i < machine->cpu_count; i++)
        if (machine->cpus[i].node == node)
            return machine->cpus[i].package;
    return -1;
}

static void put_node_line(FILE *out, const struct wf_machine *machine, const struct wf_node *node)
{
    char line[WF_SHOW_TEXT], cpus[512], memory[32] = "memory unknown", where[32] = "";
    int package = package_of(machine, node->id), cores = wf_show_cores(machine, node->id);
    if (node->bytes)
        snprintf(memory, sizeof memory, "%.1f GiB", (double)node->bytes / (double)(1 << 30));
    if (package >= 0)
        snprintf(where, sizeof where, " of package %d", package);
    if (cores)
        snprintf(line, sizeof line, "node %d%s: %s, %d core%s, processors %s", node->id, where, memory, cores,
                 cores == 1 ? "" : "s", wf_cpus_text(&node->cpus, cpus, sizeof cpus));
    else
        snprintf(line, sizeof line, "node %d: %s, no processors", node->id, memory);
    wf_show_wrapped(out, 0, INDENT, line);
}

void wf_show_tree(FILE *out, const struct wf_machine *machine)
{
    struct tree tree = {.out = out, .machine = machine};
    int first = 0;

    tree.count = wf_show_devices(machine, tree.devices);
    while (first < tree.count && tree.devices[first].node == WF_NO_NODE)
        first++;
    int unplaced = first;
    for (int i = 0; i < machine->node_count; i++) {
        int end = first;
        put_node_line(out, machine, &machine->nodes[i]);
        while (end < tree.count && tree.devices[end].node == machine->nodes[i].id)
            end++;
        put_branch(&tree, first, end, 0, INDENT);
        first = end;
    }
    if (unplaced > 0)
        fprintf(out, "of no known node\n");
    put_branch(&tree, 0, unplaced, 0, INDENT);
}
