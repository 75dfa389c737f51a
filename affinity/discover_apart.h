/* discover_apart.h: reads a description of a machine in a process of its own. Part of discovery. */
#ifndef WF_AFFINITY_DISCOVER_APART_H
#define WF_AFFINITY_DISCOVER_APART_H

#include <stddef.h>

#include "affinity/machine.h"

typedef int (*wf_discover_fn)(const char *source, struct wf_machine *out, char *why, size_t why_room);

/*
 * Calls `discover` in a child process, and returns what it does there. hwloc believes what is in a file: one with the
 * wrong numbers in it makes it crash, or turn for ever. Then the result is -EINVAL, with `why`.
 */
int wf_discover_apart(wf_discover_fn discover, const char *source, struct wf_machine *out, char *why, size_t why_room);

#endif
