/*
 * gpu_clock.h: the clock of a GPU beside that of the processor, and heat before a measurement.
 *
 *     before_ns <= the moment at which the GPU's clock showed gpu_ns <= after_ns     (CLOCK_MONOTONIC)
 *
 * Two readings that lie apart tell how much faster one clock is than the other, to within the width of both brackets.
 */
#ifndef WF_MEM_GPU_CLOCK_H
#define WF_MEM_GPU_CLOCK_H

#include <stdint.h>

#include "base/status.h"

#define WF_GPU_CLOCK_STEP_NS 500 /* the driver's times go in steps of about this */

struct wf_gpu_clock; /* Owner: the caller of the open; one thread at a time */

/* A clock of the GPU at PCI address `pci` ("0000:19:00.0"), which is 0 then. Takes the primary context of the GPU, and
 * a stream of its own; after each call the thread has the context that it had before. -ENODEV: no driver, or no such
 * GPU; -EOPNOTSUPP: the driver tells no times. */
int wf_gpu_clock_open(const char *pci, struct wf_gpu_clock **out, struct wf_status *status);
/* NULL is allowed. */
void wf_gpu_clock_close(struct wf_gpu_clock *clock);

/* At least every 4 s: longer times are told in coarser steps. Waits for the GPU, with a busy processor: some us where
 * it has nothing else to do. -EIO: it failed, or says nothing for seconds. */
int wf_gpu_clock_read(struct wf_gpu_clock *clock, int64_t *before_ns, int64_t *after_ns, double *gpu_ns,
                      struct wf_status *status);

/* Keeps the GPU busy for this time, and a moment more, by copies within its memory: a quarter of what is free, and at
 * most 1 GiB, which it has only meanwhile. Somebody who may be interrupted heats in small portions. -ENOMEM: too little
 * is free; -EIO: the GPU failed. */
int wf_gpu_heat(struct wf_gpu_clock *clock, int64_t for_ns, struct wf_status *status);

#endif
