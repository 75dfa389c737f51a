/*
 * pin.h: puts threads and memory where a plan says, and reads back where they are. Uses hwloc and libnuma's calls.
 *
 * Nothing here fails a run by itself: every function says what went wrong, and the caller knows how much it matters.
 */
#ifndef WF_AFFINITY_PIN_H
#define WF_AFFINITY_PIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "affinity/cpus.h"

/* Binds the calling thread to the set. 0; -EPERM, -EINVAL (none of it may be used), …, with `why`. */
int wf_pin_thread(const struct wf_cpus *cpus, char *why, size_t why_room);

/* A thread of this process as the kernel has it. */
struct wf_thread_place {
    pid_t tid;
    char name[16];
    struct wf_cpus allowed;
    int last_cpu; /* where it ran last; -1: unknown */
    int node;     /* of last_cpu; -1: unknown */
};

/* Every thread of a process (0: this one) from /proc, ascending tids. Returns how many there are, which may be more
 * than `max`; -ENOENT where there is no such process, or another negative errno where /proc cannot be read. */
int wf_pin_threads_of(pid_t process, struct wf_thread_place *places, int max);
/* One of them. */
int wf_pin_read(pid_t tid, struct wf_thread_place *out);

/* Asks for the pages of [at, at + bytes) to be on a node: pages that are touched later are put there, present ones
 * moved. `at` page-aligned. 0; -EPERM or -ENOSYS (a container refuses), -EINVAL (no such node), …, with `why`. */
int wf_place_memory(void *at, size_t bytes, int node, char *why, size_t why_room);

/* Where the pages are, by move_pages, or by get_mempolicy where that is refused: counts[node] for nodes 0 .. max-1;
 * pages that are not there yet, or of unknown place, are not counted. Looks at no more than 1024 pages,
 * evenly spread. Returns how many it looked at, or -EPERM, -ENOSYS, …. */
int wf_place_where(const void *at, size_t bytes, int *counts, int max);

/* The NUMA node of a PCI device ("0000:19:00.0"), by the kernel's word; -1: unknown, or the machine has one. */
int wf_place_of_device(const char *pci);

/* Bytes of a process's own (anonymous) memory by node, from numa_maps: bytes[node] for nodes 0 .. max-1. 0; -ENOENT, a
 * kernel without NUMA, or no such process; -EACCES, a process of another user. */
int wf_place_of(pid_t process, uint64_t *bytes, int max);

#endif
