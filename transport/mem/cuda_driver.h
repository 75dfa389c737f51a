/*
 * cuda_driver.h: the CUDA driver of this machine, found at run time.
 *
 *     a driver that was opened has every REQUIRED function of cuda_api.h, is initialized, and has a device
 *
 * and one that was not opened left nothing behind. No context is retained here, of any device.
 */
#ifndef WF_MEM_CUDA_DRIVER_H
#define WF_MEM_CUDA_DRIVER_H

#include <stdbool.h>

#include "base/status.h"
#include "mem/cuda_api.h"

#define WF_CUDA_ERROR_TEXT 96

/* Owner: the caller of the open. Does not change while it is open: any thread may read it. */
struct wf_cuda_driver {
    struct wf_cuda_api api;
    void *library; /* NULL: not open */
    int version;   /* of CUDA that the driver offers: 13000 is 13.0 */
    int devices;   /* 1 and up */
    bool emulated; /* a library for tests: no result of it is a GPU's */
};

/* Has this process loaded the driver? If not, no pointer of it can be a device pointer. */
bool wf_cuda_is_loaded(void);

/* Loads and initializes it; takes up to a second. -ENODEV: there is none that can be used, and `status` says why in one
 * line: no library, too old (names the function), no device, or what cuInit said. */
int wf_cuda_driver_open(struct wf_cuda_driver *out, struct wf_status *status);
/* The library itself stays in the process: drivers start threads of their own. Also fine when not open. */
void wf_cuda_driver_close(struct wf_cuda_driver *driver);

/* "CUDA_ERROR_LAUNCH_FAILED (719)", in `text`, which is also returned. */
const char *wf_cuda_error(const struct wf_cuda_api *api, wf_cu_result result, char text[WF_CUDA_ERROR_TEXT]);

#endif
