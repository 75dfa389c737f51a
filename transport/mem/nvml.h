/*
 * nvml.h: what the driver's management library says about a GPU: for people and for results, nothing depends on it.
 * Everything is optional: what this library or this GPU does not tell is unknown, and never an error.
 */
#ifndef WF_MEM_NVML_H
#define WF_MEM_NVML_H

#include "base/status.h"

struct wf_nvml; /* Owner: the caller of the open; one thread at a time */

#define WF_NVML_UNKNOWN (-1)

/* One GPU, at the moment of asking. */
struct wf_nvml_state {
    char name[96]; /* "": unknown */
    int celsius;   /* WF_NVML_UNKNOWN is possible, as for the fields below */
    int sm_mhz;
    int memory_mhz;
    int power_mw;
    char throttling[160]; /* why its clocks are below their best: "power cap, thermal"; "none"; "": unknown */
};

/* -ENODEV: there is none, and `status` says why. */
int wf_nvml_open(struct wf_nvml **out, struct wf_status *status);
/* NULL is fine. */
void wf_nvml_close(struct wf_nvml *nvml);

/* "580.65.06"; "": unknown. */
const char *wf_nvml_driver(const struct wf_nvml *nvml);

/* The GPU at PCI address `pci` ("0000:19:00.0"). -ENODEV: no such GPU. Fills `out` with what is known. */
int wf_nvml_read(struct wf_nvml *nvml, const char *pci, struct wf_nvml_state *out, struct wf_status *status);

/* The words for a set of reasons as the library gives it. */
void wf_nvml_throttle_words(unsigned long long reasons, char *text, unsigned long size);

#endif
