/* Device memory as dma-bufs, for network cards. */
#include "mem/memory_cuda.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

int wf_cuda_exports(struct wf_memory *memory, int index, struct wf_status *status)
{
    const struct wf_cuda_api *api = &memory->driver.api;
    int able = 0;

    if (index < 0 || index >= memory->count)
        return wf_fail(status, -ENODEV, "no GPU %d: this machine's are 0 to %d", index, memory->count - 1);
    if (!api->cuMemGetHandleForAddressRange ||
        api->cuDeviceGetAttribute(&able, WF_CU_DEVICE_DMA_BUF_SUPPORTED, memory->devices[index].handle) || !able)
        return wf_fail(
            status, -ENOTSUP,
            "GPU %d: its driver offers no dma-buf: NVIDIA's open kernel modules do, with Linux 5.12 or newer", index);
    return 0;
}

/* Reachable over PCIe, as a network card wants it, where the driver knows that word; else as the driver does it. */
static wf_cu_result export_range(const struct wf_cuda_api *api, uint64_t start, uint64_t bytes, int *fd)
{
    wf_cu_result result =
        api->cuMemGetHandleForAddressRange(fd, start, bytes, WF_CU_HANDLE_DMA_BUF_FD, WF_CU_RANGE_OVER_PCIE);

    if (result == WF_CU_INVALID_VALUE || result == WF_CU_NOT_SUPPORTED)
        result = api->cuMemGetHandleForAddressRange(fd, start, bytes, WF_CU_HANDLE_DMA_BUF_FD, 0);
    return result;
}

int wf_cuda_export_dmabuf(struct wf_memory *memory, int index, const void *base, uint64_t bytes, int *fd,
                          uint64_t *offset, struct wf_status *status)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t start = (uintptr_t)base / page * page;
    uint64_t end = ((uintptr_t)base + bytes + page - 1) / page * page;
    struct wf_cuda_visit visit;
    int code = 0, made = -1;
    struct wf_cuda_device *device = wf_cuda_enter_number(memory, index, &visit, &code, status);
    wf_cu_result result = WF_CU_SUCCESS;

    if (!device)
        return code;
    code = wf_cuda_exports(memory, index, status);
    if (!code)
        result = export_range(&memory->driver.api, start, end - start, &made);
    if (result == WF_CU_NOT_SUPPORTED)
        code = wf_fail(status, -ENOTSUP, "GPU %d: no dma-buf of this memory: %s", index, wf_cuda_words(memory, result));
    else if (result)
        code =
            wf_fail(status, wf_cuda_fault(memory, device, result), "GPU %d: a dma-buf of %" PRIu64 " bytes at %p: %s",
                    index, bytes, base, wf_cuda_words(memory, result));
    wf_cuda_leave(memory, &visit);
    if (code)
        return code;
    *fd = made;
    *offset = (uintptr_t)base - start;
    return 0;
}
