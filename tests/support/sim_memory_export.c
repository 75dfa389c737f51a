/* Which allocation an address is in, and dma-bufs that are none. */
#include "sim_memory_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>

#define PAGE 4096

int sim_extent(struct wf_memory *memory, const void *address, struct wf_memory_extent *out, struct wf_status *status)
{
    const struct sim_allocation *allocation = sim_allocation_of(memory->host, address);
    if (!allocation)
        return wf_fail(status, -EINVAL, "%p is no memory of a simulated GPU", address);
    *out = (struct wf_memory_extent){.device = allocation->device,
                                     .base = (const void *)(uintptr_t)allocation->base,
                                     .bytes = allocation->bytes,
                                     .id = allocation->id};
    return 0;
}

int sim_exports(struct wf_memory *memory, int device, struct wf_status *status)
{
    if (device < 0 || device >= memory->host->options.devices)
        return wf_fail(status, -ENODEV, "there is no simulated GPU %d", device);
    if (!memory->host->options.exports)
        return wf_fail(status, -ENOTSUP, "simulated GPU %d exports no memory", device);
    return 0;
}

int sim_export_dmabuf(struct wf_memory *memory, int device, const void *base, uint64_t bytes, int *fd, uint64_t *offset,
                      struct wf_status *status)
{
    int result = sim_exports(memory, device, status);
    if (result < 0)
        return result;
    const struct sim_allocation *allocation = sim_allocation_of(memory->host, base);
    if (!allocation || allocation->device != device ||
        bytes > allocation->bytes - ((uint64_t)(uintptr_t)base - allocation->base))
        sim_violation("%" PRIu64 " bytes at %p are exported, and are not of one allocation of device %d", bytes, base,
                      device);
    int made = memfd_create("dma-buf", MFD_CLOEXEC);
    if (made < 0)
        return wf_fail(status, -errno, "simulated GPU %d: no file for a dma-buf", device);
    *fd = made;
    *offset = (uintptr_t)base % PAGE;
    return 0;
}
