/*
 * nvml.h: the state of a GPU from the driver's management library: for people and results, nothing depends on it. All
 * values are optional: a value that the library or the GPU does not give is unknown, and never an error.
 */
#ifndef WF_MEM_NVML_H
#define WF_MEM_NVML_H

#include "base/status.h"

struct wf_nvml; /* Owner: the caller of the open; one thread at a time */

#define WF_NVML_UNKNOWN (-1)

/* One GPU, at the moment of asking. */
struct wf_nvml_state {
    char name[96]; /* "": unknown */
    int celsius;   /* this and the next three: or WF_NVML_UNKNOWN */
    int sm_mhz;
    int memory_mhz;
    int power_mw;
    char throttling[160]; /* why its clocks are reduced: "power cap, thermal"; "none"; "": unknown */
};

/* Loads the library. -ENODEV: it cannot be used, `status` says why. */
int wf_nvml_open(struct wf_nvml **out, struct wf_status *status);
/* NULL is allowed. */
void wf_nvml_close(struct wf_nvml *nvml);

/* The version of the driver, "580.65.06"; "": unknown. */
const char *wf_nvml_driver(const struct wf_nvml *nvml);

/* Fills `out` with the known values of the GPU at PCI address `pci` ("0000:19:00.0"). -ENODEV: no such GPU. */
int wf_nvml_read(struct wf_nvml *nvml, const char *pci, struct wf_nvml_state *out, struct wf_status *status);

/* Writes the names of the library's `reasons` (bits) to `text`. */
void wf_nvml_throttle_words(unsigned long long reasons, char *text, unsigned long size);

#endif
