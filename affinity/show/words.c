#include "affinity/show/words.h"

#include <stdlib.h>
#include <string.h>

/* How much of the text goes on a line: up to the last blank or comma that fits; a word that is too long stays whole. */
static size_t part_that_fits(const char *text, size_t room)
{
    size_t fits = 0, at = 0;
    while (text[at]) {
        at += strcspn(text + at, " ,");
        at += text[at] == ','; /* a comma stays on its line, a blank need not */
        if (at <= room || fits == 0)
            fits = at;
        if (at > room)
            break;
        at += strspn(text + at, " ");
    }
    return fits;
}

void wf_show_wrapped(FILE *out, int column, int indent, const char *text)
{
    int start = column;
    while (*text) {
        size_t length = part_that_fits(text, start < WF_SHOW_COLUMNS ? (size_t)(WF_SHOW_COLUMNS - start) : 1);
        if (length == 0)
            length = strlen(text);
        fprintf(out, "%*s%.*s\n", start, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
        start = column + indent;
    }
}

void wf_show_remedy(FILE *out, int column, const char *why, const char *change)
{
    char line[WF_SHOW_TEXT];
    int length = snprintf(line, sizeof line, "%s", why);
    bool fits = column + length + 2 + (int)strlen(change) <= WF_SHOW_COLUMNS;
    if (fits && change[0])
        snprintf(line + length, sizeof line - (size_t)length, ": %s", change);
    wf_show_wrapped(out, column, 2, line);
    if (!fits && change[0])
        fprintf(out, "%*s%s\n", column + 2, "", change);
}

const char *wf_show_speed(int32_t mbit, char *text, size_t room)
{
    if (mbit < 0)
        snprintf(text, room, "speed unknown");
    else if (mbit < 1000)
        snprintf(text, room, "%d Mbit/s", mbit);
    else
        snprintf(text, room, "%g Gbit/s", mbit / 1000.0);
    return text;
}

const char *wf_show_nic(const struct wf_machine *machine, int index, char *text, size_t room)
{
    const struct wf_nic *nic = &machine->nics[index];
    char speed[32];
    snprintf(text, room, "%s  %s%s%s%s%s%s", nic->name, nic->pci, nic->pci[0] ? ", " : "", nic->driver,
             nic->driver[0] ? ", " : "", wf_show_speed(nic->speed_mbit, speed, sizeof speed), nic->up ? "" : ", down");
    return text;
}

const char *wf_show_gpu(const struct wf_machine *machine, int index, char *text, size_t room)
{
    const struct wf_gpu *gpu = &machine->gpus[index];
    snprintf(text, room, "gpu%d  %s%s%s", index, gpu->pci, gpu->pci[0] && gpu->name[0] ? ", " : "", gpu->name);
    return text;
}

int wf_show_cores(const struct wf_machine *machine, int node)
{
    struct wf_cpus cores = {0};
    for (int i = 0; i < machine->cpu_count; i++)
        if (node == WF_NO_NODE || machine->cpus[i].node == node)
            wf_cpus_add(&cores, machine->cpus[i].core);
    return wf_cpus_count(&cores);
}

int wf_show_packages(const struct wf_machine *machine)
{
    struct wf_cpus packages = {0};
    for (int i = 0; i < machine->cpu_count; i++)
        wf_cpus_add(&packages, machine->cpus[i].package);
    return wf_cpus_count(&packages);
}

static int by_place(const void *a, const void *b)
{
    const struct wf_show_device *one = a, *other = b;
    if (one->node != other->node)
        return one->node < other->node ? -1 : 1;
    for (int i = 0; i < one->path->depth && i < other->path->depth; i++) {
        int order = strcmp(one->path->step[i], other->path->step[i]);
        if (order)
            return order;
    }
    if (one->path->depth != other->path->depth)
        return one->path->depth - other->path->depth;
    if (one->is_gpu != other->is_gpu)
        return other->is_gpu - one->is_gpu;
    return one->index - other->index;
}

int wf_show_devices(const struct wf_machine *machine, struct wf_show_device devices[WF_SHOW_DEVICES])
{
    int count = 0;
    for (int i = 0; i < machine->gpu_count; i++)
        devices[count++] = (struct wf_show_device){true, i, machine->gpus[i].node, &machine->gpus[i].path};
    for (int i = 0; i < machine->nic_count; i++)
        devices[count++] = (struct wf_show_device){false, i, machine->nics[i].node, &machine->nics[i].path};
    qsort(devices, (size_t)count, sizeof devices[0], by_place);
    return count;
}
