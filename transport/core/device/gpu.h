/*
 * gpu.h: the setting `gpus`.
 */
#ifndef WF_CORE_DEVICE_GPU_H
#define WF_CORE_DEVICE_GPU_H

#include <stdbool.h>

#include "base/status.h"
#include "mem/memory.h"

/* Marks the devices that a list names, of the `count` that there are: "all", or "0,2,5-7". 0, or -EINVAL: it cannot be
 * read, or names one that is not there. */
int wf_gpu_list_read(const char *list, const struct wf_device_info *infos, int count, bool wanted[WF_DEVICES_MAX],
                     struct wf_status *status);

#endif
