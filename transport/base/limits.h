/*
 * limits.h: the limits of this process that explain why the system refuses memory or a thread. "No memory" alone sends
 * a user to the machine's memory, of which there may be plenty.
 */
#ifndef WF_BASE_LIMITS_H
#define WF_BASE_LIMITS_H

#include <stddef.h>

#include "base/status.h"

/* " (this process may have 400000 KiB of address space: ulimit -v)", the same of data (ulimit -d), or "". Returns
 * `buffer`. */
char *wf_memory_limit_text(char *buffer, size_t room);

/* Adds that text to a status that tells of a lack of memory (-ENOMEM) and does not have it yet. NULL is allowed. */
void wf_blame_memory_limit(struct wf_status *status);

/* What to do where a thread cannot be started: raise the limit of processes, or that of memory if there is one. */
char *wf_thread_remedy(char *buffer, size_t room);

#endif
