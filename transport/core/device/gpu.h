/*
 * gpu.h: reads the setting `gpus`.
 */
#ifndef WF_CORE_DEVICE_GPU_H
#define WF_CORE_DEVICE_GPU_H

#include <stdbool.h>

#include "base/status.h"
#include "mem/memory.h"

/* Marks in `wanted` the devices that `list` names: "all", or "0,2,5-7"; `infos` has the `count` devices of this
 * machine. 0, or -EINVAL: the list cannot be read, or names a device that does not exist. */
int wf_gpu_list_read(const char *list, const struct wf_device_info *infos, int count, bool wanted[WF_DEVICES_MAX],
                     struct wf_status *status);

#endif
