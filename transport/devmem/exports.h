/*
 * exports.h: device memory that cards send from: one dma-buf and one binding (bind-tx) for each allocation and card.
 *
 *     a binding exists as long as it is in use; all who use memory of one allocation on one card share it
 *
 * Nothing is kept beyond its last use: a dma-buf holds the memory of its GPU also after the program has freed it. What
 * cannot be exported or bound is remembered, so that it is not tried again, until its place is needed; a shortage of
 * memory or descriptors is not.
 *
 * An allocation is known by the driver's number for it, not by its address: what is allocated at the address of memory
 * that was freed gets a binding of its own, also while the old one is still in use.
 *
 * Any thread may call. Who finds a binding asks the driver once where the memory is, and takes one short lock; only who
 * has one made waits for driver and kernel, and for others who do. A binding costs one descriptor, its netlink socket,
 * for that is how the kernel takes one back.
 */
#ifndef WF_DEVMEM_EXPORTS_H
#define WF_DEVMEM_EXPORTS_H

#include <stdint.h>

#include "base/status.h"
#include "mem/memory.h"

struct wf_exports;
struct wf_devmem_kernel; /* devmem/kernel.h */

/* At most `most` bindings at a time, at least 1. `memory` stays the caller's and outlives the object; so does `kernel`
 * (NULL: that of this machine). -ENOMEM. */
int wf_exports_create(const struct wf_memory_ops *ops, struct wf_memory *memory, const struct wf_devmem_kernel *kernel,
                      int most, struct wf_exports **out, struct wf_status *status);
/* Ends all bindings that are left. NULL is allowed. */
void wf_exports_destroy(struct wf_exports *exports);

/* A use of a binding, for wf_exports_release(). */
struct wf_export {
    uint32_t binding; /* its number, for the control messages of sendmsg() */
    uint64_t offset;  /* of the address in the dma-buf, in bytes: what sendmsg() takes for an address */
    int place;        /* in the table */
};

/* Finds the binding of the memory at `address` for the card with this ifindex, or has it made: in the network namespace
 * of the calling thread, on a device that is in use. -EINVAL: it is no device memory, or `bytes` leave its allocation;
 * -ENOSPC: as many bindings as there may be are in use; -ENOMEM, -EMFILE, -ENFILE, -EAGAIN: not now; -ENOTSUP and what
 * else driver and kernel say: this memory cannot be exported, or not be bound to this card, and so it is from now on.
 */
int wf_exports_use(struct wf_exports *exports, int ifindex, const void *address, uint64_t bytes, struct wf_export *out,
                   struct wf_status *status);
/* No send from it may be under way. The last use ends the binding. */
void wf_exports_release(struct wf_exports *exports, const struct wf_export *use);

/* How many bindings there are now. */
int wf_exports_count(struct wf_exports *exports);

#endif
