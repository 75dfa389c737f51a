/* Whether network cards could reach the memory of GPUs: each is asked for a dma-buf of a page of it. */
#include <stdio.h>
#include <unistd.h>

#include "bench/machine/gpus.h"
#include "bench/words/words.h"
#include "mem/memory.h"

static int try_one(struct wf_memory *driver, int device, struct wf_status *status)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE), offset;
    void *memory;
    int fd, result = wf_memory_cuda.use(driver, device, status);

    if (result)
        return result;
    result = wf_memory_cuda.alloc(driver, device, bytes, &memory, status);
    if (result)
        return result;
    result = wf_memory_cuda.export_dmabuf(driver, device, memory, bytes, &fd, &offset, status);
    if (result == 0)
        close(fd);
    wf_memory_cuda.free(driver, device, memory);
    return result;
}

/* The same words for each GPU: the list has its number. */
static const char *without_number(const char *text)
{
    int end = 0;

    return sscanf(text, "GPU %*d: %n", &end) == 0 && end > 0 ? text + end : text;
}

int bench_gpus_exports(struct bench_gpu_export *exports, int max, struct wf_status *status)
{
    static struct wf_device_info devices[WF_DEVICES_MAX]; /* large; a command of one thread */
    struct wf_memory *driver;
    int result = wf_memory_cuda.open(NULL, &driver, status);

    if (result)
        return result;
    int count = wf_memory_cuda.devices(driver, devices, WF_DEVICES_MAX);
    count = count < max ? count : max;
    for (int i = 0; i < count; i++) {
        struct wf_status why = {0};
        exports[i].able = try_one(driver, devices[i].index, &why) == 0;
        bench_copy_text(exports[i].why, sizeof exports[i].why, exports[i].able ? "" : without_number(why.text));
    }
    wf_memory_cuda.close(driver);
    return count;
}
