/* A drawing: a box for each node, in it one for each host bridge, in these the devices, with what the plan gives them.
 */
#include "affinity/show/show.h"

#include <string.h>

#include "affinity/show/words.h"

#define NODE_WIDTH 500
#define GAP 12
#define HEAD 50 /* the lines at the top of a node */
#define GROUP_HEAD 24
#define DEVICE_WIDTH 152
#define DEVICE_HEIGHT 58
#define DEVICES_A_ROW 3
#define LETTERS_A_DEVICE 22
#define LETTERS_A_NODE 66

/* The devices of one node below one host bridge: from `first` to before `end`. */
struct group {
    int first, end;
};

struct drawing {
    FILE *out;
    const struct wf_show *show;
    struct wf_show_device devices[WF_SHOW_DEVICES];
    int count;
};

/* `most` letters at the most, and nothing in them that XML would read. */
static void put_text(FILE *out, int x, int y, const char *style, int most, const char *text)
{
    fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, style);
    for (int i = 0; text[i] && i < most; i++) {
        unsigned char letter = (unsigned char)text[i];
        if (letter == '<' || letter == '>' || letter == '&' || letter == '"' || letter < ' ' || letter > '~')
            fprintf(out, letter < ' ' || letter > '~' ? "?" : "&#%d;", letter);
        else
            fputc(letter, out);
    }
    fprintf(out, "%s</text>\n", (int)strlen(text) > most ? "&#8230;" : "");
}

static void put_box(FILE *out, int x, int y, int width, int height, const char *style)
{
    fprintf(out, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\" class=\"%s\"/>\n", x, y, width, height,
            style);
}

/* --- devices --- */

/* What the plan has for it: the rails of a GPU, the processors of a NIC. */
static void describe_gpu(const struct wf_plan *plan, int gpu, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < plan->endpoint_count; i++)
        for (int k = 0; plan->endpoints[i].gpu == gpu && k < plan->endpoints[i].rail_count && used < room; k++)
            used += (size_t)snprintf(text + used, room - used, "%s%s", k ? ", " : "to ",
                                     plan->rails[plan->endpoints[i].rails[k]].name);
}

static const struct wf_plan_rail *rail_of(const struct wf_plan *plan, const char *device)
{
    for (int i = 0; i < plan->rail_count; i++)
        if (strcmp(plan->rails[i].device, device) == 0)
            return &plan->rails[i];
    return NULL;
}

static void put_gpu(const struct drawing *drawing, int index, int x, int y)
{
    char name[32], plan[128];
    snprintf(name, sizeof name, "gpu%d", index);
    describe_gpu(drawing->show->plan, index, plan, sizeof plan);
    put_box(drawing->out, x, y, DEVICE_WIDTH, DEVICE_HEIGHT, "gpu");
    put_text(drawing->out, x + 8, y + 17, "name", LETTERS_A_DEVICE, name);
    put_text(drawing->out, x + 8, y + 33, "small", LETTERS_A_DEVICE, drawing->show->machine->gpus[index].name);
    put_text(drawing->out, x + 8, y + 49, "small", LETTERS_A_DEVICE, plan);
}

static void put_nic(const struct drawing *drawing, int index, int x, int y)
{
    const struct wf_nic *nic = &drawing->show->machine->nics[index];
    const struct wf_plan_rail *rail = rail_of(drawing->show->plan, nic->name);
    char name[80], speed[32], cpus[64], line[80];
    snprintf(name, sizeof name, "%s, %s", nic->name,
             nic->up ? wf_show_speed(nic->speed_mbit, speed, sizeof speed) : "down");
    put_box(drawing->out, x, y, DEVICE_WIDTH, DEVICE_HEIGHT, rail ? "nic" : "idle");
    put_text(drawing->out, x + 8, y + 17, "name", LETTERS_A_DEVICE, name);
    if (!rail || wf_cpus_count(&rail->tx) == 0)
        return;
    snprintf(line, sizeof line, "TX %s", wf_cpus_text(&rail->tx, cpus, sizeof cpus));
    put_text(drawing->out, x + 8, y + 33, "small", LETTERS_A_DEVICE, line);
    snprintf(line, sizeof line, "RX %s", wf_cpus_text(&rail->rx, cpus, sizeof cpus));
    put_text(drawing->out, x + 8, y + 49, "small", LETTERS_A_DEVICE, line);
}

/* --- groups --- */

static int group_height(const struct group *group)
{
    int rows = (group->end - group->first + DEVICES_A_ROW - 1) / DEVICES_A_ROW;
    return GROUP_HEAD + rows * (DEVICE_HEIGHT + GAP / 2) + GAP / 2;
}

/* The next devices from `first` on that are of the node and below one host bridge; empty: there are none. */
static struct group next_group(const struct drawing *drawing, int first, int node)
{
    struct group group = {first, first};
    const struct wf_path *path = drawing->devices[first].path;
    while (group.end < drawing->count && drawing->devices[group.end].node == node) {
        const struct wf_path *other = drawing->devices[group.end].path;
        if ((path->depth == 0) != (other->depth == 0) || strcmp(path->step[0], other->step[0]) != 0)
            break;
        group.end += 1;
    }
    return group;
}

static void put_group_box(const struct drawing *drawing, const struct group *group, int x, int y)
{
    const struct wf_path *path = drawing->devices[group->first].path;
    put_box(drawing->out, x, y, NODE_WIDTH - 2 * GAP, group_height(group), "bridge");
    put_text(drawing->out, x + 8, y + 16, "small", LETTERS_A_NODE, path->depth ? path->step[0] : "no PCI device");
    for (int i = group->first; i < group->end; i++) {
        const struct wf_show_device *device = &drawing->devices[i];
        int at = i - group->first;
        int left = x + GAP / 2 + at % DEVICES_A_ROW * (DEVICE_WIDTH + GAP / 2);
        int top = y + GROUP_HEAD + at / DEVICES_A_ROW * (DEVICE_HEIGHT + GAP / 2);
        if (device->is_gpu)
            put_gpu(drawing, device->index, left, top);
        else
            put_nic(drawing, device->index, left, top);
    }
}

/* --- nodes --- */

static int first_of(const struct drawing *drawing, int node)
{
    int first = 0;
    while (first < drawing->count && drawing->devices[first].node != node)
        first++;
    return first;
}

static int node_height(const struct drawing *drawing, int node)
{
    int height = HEAD + GAP;
    for (int at = first_of(drawing, node); at < drawing->count;) {
        struct group group = next_group(drawing, at, node);
        if (group.end == at)
            break;
        height += group_height(&group) + GAP / 2;
        at = group.end;
    }
    return height;
}

static void put_node_box(const struct drawing *drawing, const struct wf_node *node, int x, int y, int height)
{
    char line[128], cpus[256];
    snprintf(line, sizeof line, "node %d: %d cores, %.1f GiB", node->id,
             wf_show_cores(drawing->show->machine, node->id), (double)node->bytes / (double)(1 << 30));
    put_box(drawing->out, x, y, NODE_WIDTH, height, "node");
    put_text(drawing->out, x + GAP, y + 20, "name", LETTERS_A_NODE, line);
    put_text(drawing->out, x + GAP, y + 38, "small", LETTERS_A_NODE, wf_cpus_text(&node->cpus, cpus, sizeof cpus));
    y += HEAD;
    for (int at = first_of(drawing, node->id); at < drawing->count;) {
        struct group group = next_group(drawing, at, node->id);
        if (group.end == at)
            break;
        put_group_box(drawing, &group, x + GAP, y);
        y += group_height(&group) + GAP / 2;
        at = group.end;
    }
}

static const char style[] = "<style>text{font-family:sans-serif;fill:#222}.title{font-size:16px;font-weight:bold}"
                            ".name{font-size:13px;font-weight:bold}.small{font-size:10.5px}"
                            "rect{stroke:#555;stroke-width:1}.node{fill:#f4f4f2}.bridge{fill:#fff;stroke:#999}"
                            ".gpu{fill:#d9ecd0}.nic{fill:#cfe2f5}.idle{fill:#eee;stroke-dasharray:4 3}</style>\n";

void wf_show_svg(FILE *out, const struct wf_show *show)
{
    struct drawing drawing = {.out = out, .show = show};
    const struct wf_machine *machine = show->machine;
    int columns = machine->node_count < 2 ? 1 : machine->node_count <= 4 ? 2 : 4, height = 40;
    int rows = (machine->node_count + columns - 1) / columns, tallest = 0;

    drawing.count = wf_show_devices(machine, drawing.devices);
    for (int i = 0; i < machine->node_count; i++) {
        int own = node_height(&drawing, machine->nodes[i].id);
        tallest = own > tallest ? own : tallest;
    }
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\">\n%s",
            columns * (NODE_WIDTH + GAP) + GAP, height + rows * (tallest + GAP), style);
    put_text(out, GAP, 26, "title", LETTERS_A_NODE, machine->name);
    for (int i = 0; i < machine->node_count; i++)
        put_node_box(&drawing, &machine->nodes[i], GAP + i % columns * (NODE_WIDTH + GAP),
                     height + i / columns * (tallest + GAP), tallest);
    fprintf(out, "</svg>\n");
}
