/* words.h: how the parts of a machine are written down. */
#ifndef WF_AFFINITY_SHOW_WORDS_H
#define WF_AFFINITY_SHOW_WORDS_H

#include <stdbool.h>
#include <stdio.h>

#include "affinity/machine.h"

#define WF_SHOW_COLUMNS 100
#define WF_SHOW_TEXT 1024 /* room for one item */

/* Prints `text`, broken at blanks and behind commas; lines after the first begin with `indent` blanks more than
 * `column`, where the first begins. */
void wf_show_wrapped(FILE *out, int column, int indent, const char *text);

/* Prints what is in the way and, if there is one, the command against it, which is to be copied: it stays on one line.
 */
void wf_show_remedy(FILE *out, int column, const char *why, const char *change);

/* "200 Gbit/s", "speed unknown". Returns `text`. */
const char *wf_show_speed(int32_t mbit, char *text, size_t room);

/* "eth1  0000:06:00.0, gve, 200 Gbit/s", "gpu0  0000:04:00.0, NVIDIA H100 80GB HBM3". Return `text`. */
const char *wf_show_nic(const struct wf_machine *machine, int index, char *text, size_t room);
const char *wf_show_gpu(const struct wf_machine *machine, int index, char *text, size_t room);

/* How many different cores, or packages, the machine has, or a node (an id; WF_NO_NODE: all nodes). */
int wf_show_cores(const struct wf_machine *machine, int node);
int wf_show_packages(const struct wf_machine *machine);

/* A GPU or a NIC. */
struct wf_show_device {
    bool is_gpu;
    int index, node;
    const struct wf_path *path;
};

#define WF_SHOW_DEVICES (WF_GPUS_MAX + WF_NICS_MAX)

/* All devices, by node (unknown nodes first), then by path, GPUs before NICs. Returns how many. */
int wf_show_devices(const struct wf_machine *machine, struct wf_show_device devices[WF_SHOW_DEVICES]);

/* The tree of nodes, bridges and devices. */
void wf_show_tree(FILE *out, const struct wf_machine *machine);

#endif
