/*
 * nvml_parts.h: shared by the files nvml*.c. No other file includes it.
 */
#ifndef WF_MEM_NVML_PARTS_H
#define WF_MEM_NVML_PARTS_H

#include "mem/nvml.h"
#include "mem/nvml_api.h"

struct wf_nvml {
    struct wf_nvml_api api;
    void *library;
    char driver[80];
};

/* What the library says of a result; never NULL. */
const char *wf_nvml_words(const struct wf_nvml *nvml, wf_nvml_result result);

/* The GPU at a PCI address. -ENODEV: no such GPU. */
int wf_nvml_find(const struct wf_nvml *nvml, const char *pci, wf_nvml_device *out, struct wf_status *status);

#endif
