/*
 * nvml.h: the state of a GPU from the driver's management library: for people and results, nothing depends on it. All
 * values are optional: a value that the library or the GPU does not give is unknown, and never an error.
 */
#ifndef WF_MEM_NVML_H
#define WF_MEM_NVML_H

#include <stdbool.h>
#include <stdint.h>

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
    int64_t free_bytes;         /* of its memory, for whomever; or WF_NVML_UNKNOWN */
    char throttling[160];       /* why its clocks are reduced: "power cap, thermal"; "none"; "": unknown */
    unsigned long long reasons; /* the same as the library's bits */
    bool reasons_known;
    bool held_back; /* a reason that is known takes speed from it; neither idleness nor clocks that somebody has set */
};

/* The PCIe link of a GPU; each or WF_NVML_UNKNOWN. An idle GPU may have lowered its generation. */
struct wf_nvml_pcie {
    int generation;
    int lanes;
    int most_generation; /* that both its ends are capable of */
    int most_lanes;
};

/* What lies between two GPUs. */
struct wf_nvml_link {
    int nvlinks;        /* active NVLinks straight from one to the other; or WF_NVML_UNKNOWN */
    int switched;       /* active NVLinks of the first GPU that lead to a switch; or WF_NVML_UNKNOWN */
    int nvlink_version; /* of the first GPU's NVLinks: 4; or WF_NVML_UNKNOWN, also where none is active */
    char path[16];      /* "same board", "one switch", "switches", "host bridge", "NUMA node", "system"; "": unknown */
};

/* Loads the library. -ENODEV: it cannot be used, `status` says why. */
int wf_nvml_open(struct wf_nvml **out, struct wf_status *status);
/* NULL is allowed. */
void wf_nvml_close(struct wf_nvml *nvml);

/* The version of the driver, "580.65.06"; "": unknown. */
const char *wf_nvml_driver(const struct wf_nvml *nvml);

/* Fills `out` with the known values of the GPU at PCI address `pci` ("0000:19:00.0"). -ENODEV: no such GPU. */
int wf_nvml_read(struct wf_nvml *nvml, const char *pci, struct wf_nvml_state *out, struct wf_status *status);

/* Processes that have a compute context on the GPU, this one among them where it has one: how many there are; of these
 * at most `max` are written to `pids`. The numbers are those of the driver's view: in a container they may be other
 * ones than there. -ENODEV: no such GPU; -EOPNOTSUPP, -EPERM, -EIO: the library does not say. */
int wf_nvml_processes(struct wf_nvml *nvml, const char *pci, uint32_t *pids, int max);

/* --- nvml_links.c --- */

/* -ENODEV: no such GPU. */
int wf_nvml_pcie(struct wf_nvml *nvml, const char *pci, struct wf_nvml_pcie *out, struct wf_status *status);
/* From the GPU at `pci` to the one at `other`. -ENODEV: one of them is not there. */
int wf_nvml_link(struct wf_nvml *nvml, const char *pci, const char *other, struct wf_nvml_link *out,
                 struct wf_status *status);

/* --- nvml_clocks.c: -ENODEV: no such GPU; -EOPNOTSUPP: the GPU or the library cannot do it; -EPERM: root could;
 * -EIO: the driver failed --- */

/* The highest clock of the graphics processor. */
int wf_nvml_clock_range(struct wf_nvml *nvml, const char *pci, int *most_mhz, struct wf_status *status);
/* Keeps the clocks in this range until they are unlocked or the driver is loaded anew: they outlive this process. A
 * range that somebody has set before is forgotten. -EINVAL: a range that the GPU does not have. */
int wf_nvml_lock_clocks(struct wf_nvml *nvml, const char *pci, int least_mhz, int most_mhz, struct wf_status *status);
int wf_nvml_unlock_clocks(struct wf_nvml *nvml, const char *pci, struct wf_status *status);

/* Writes the names of the library's `reasons` (bits) to `text`. */
void wf_nvml_throttle_words(unsigned long long reasons, char *text, unsigned long size);

#endif
