/*
 * cuda_driver.h: the CUDA driver of this machine, found at run time.
 *
 *     a driver that was opened has every REQUIRED function of cuda_api.h, is initialized, and has a device
 *
 * A failed open leaves nothing behind. This part retains no context of any device.
 */
#ifndef WF_MEM_CUDA_DRIVER_H
#define WF_MEM_CUDA_DRIVER_H

#include <stdbool.h>

#include "base/status.h"
#include "mem/cuda_api.h"

#define WF_CUDA_ERROR_TEXT 96

/* Owner: the caller of the open. Constant while open: any thread may read it. */
struct wf_cuda_driver {
    struct wf_cuda_api api;
    void *library; /* NULL: not open */
    int version;   /* version of CUDA that the driver offers: 13000 is 13.0 */
    int devices;   /* 1 and up */
    bool emulated; /* a library for tests: its results do not come from a GPU */
};

/* Has this process loaded the driver? If not, no pointer of this process can be a device pointer. */
bool wf_cuda_is_loaded(void);

/* Loads and initializes the driver; waits up to a second. -ENODEV: no usable driver; `status` says why in one line: no
 * library, too old (names the missing function), no device, or the error of cuInit. */
int wf_cuda_driver_open(struct wf_cuda_driver *out, struct wf_status *status);
/* The library stays loaded, because the driver may have started threads. Does nothing if `driver` is not open. */
void wf_cuda_driver_close(struct wf_cuda_driver *driver);

/* Writes "CUDA_ERROR_LAUNCH_FAILED (719)" to `text`, and returns `text`. */
const char *wf_cuda_error(const struct wf_cuda_api *api, wf_cu_result result, char text[WF_CUDA_ERROR_TEXT]);

/* The primary context of a device, which all of a process share: retains it, and makes it current until the caller pops
 * it. `context` is set once it is retained, also if it cannot be made current. */
wf_cu_result wf_cuda_context_enter(const struct wf_cuda_api *api, int ordinal, wf_cu_device *device,
                                   wf_cu_context *context);

#endif
