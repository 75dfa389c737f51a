/* Whether network cards could reach the memory of GPUs, as their driver says. */
#include <stdio.h>

#include "bench/machine/gpus.h"
#include "bench/words/words.h"
#include "mem/memory.h"

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
        exports[i].able = wf_memory_cuda.exports(driver, devices[i].index, &why) == 0;
        bench_copy_text(exports[i].why, sizeof exports[i].why, exports[i].able ? "" : without_number(why.text));
    }
    wf_memory_cuda.close(driver);
    return count;
}
