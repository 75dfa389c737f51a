/*
 * cpus.h: a set of logical processors (hardware threads), by the numbers that the kernel gives them.
 *
 * Plain data: copied by assignment, no heap. A number from WF_CPUS_MAX on is never in a set.
 */
#ifndef WF_AFFINITY_CPUS_H
#define WF_AFFINITY_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_CPUS_MAX 2048
#define WF_CPUS_WORDS (WF_CPUS_MAX / 64)

struct wf_cpus {
    uint64_t words[WF_CPUS_WORDS];
};

static inline bool wf_cpus_has(const struct wf_cpus *set, int cpu)
{
    return cpu >= 0 && cpu < WF_CPUS_MAX && (set->words[cpu / 64] >> (cpu % 64) & 1);
}

static inline void wf_cpus_add(struct wf_cpus *set, int cpu)
{
    if (cpu >= 0 && cpu < WF_CPUS_MAX)
        set->words[cpu / 64] |= UINT64_C(1) << (cpu % 64);
}

/* set |= other; set &= other; set &= ~other. */
void wf_cpus_unite(struct wf_cpus *set, const struct wf_cpus *other);
void wf_cpus_intersect(struct wf_cpus *set, const struct wf_cpus *other);
void wf_cpus_subtract(struct wf_cpus *set, const struct wf_cpus *other);

int wf_cpus_count(const struct wf_cpus *set);
bool wf_cpus_equal(const struct wf_cpus *a, const struct wf_cpus *b);
bool wf_cpus_within(const struct wf_cpus *inner, const struct wf_cpus *outer);

/* The first number in the set from `from` on, or -1. */
int wf_cpus_next(const struct wf_cpus *set, int from);

/* One item of a list of numbers (of processors, of GPUs): "8" or "8-21", before a comma or the end. Moves `*at`
 * there. False, and `*at` stays: it is none, goes backwards, or is larger than any number. */
bool wf_cpus_range(const char **at, long *first, long *last);

/*
 * "8-21,112-125": the list format of the kernel (Documentation/core-api/printk-formats, "%*pbl") and of taskset -c.
 * parse: 0, or -EINVAL with a sentence that quotes what was not understood; an empty text is an error. A range may not
 * go backwards. text: always terminated; a set that does not fit ends in "…". Empty set: "none".
 */
int wf_cpus_parse(const char *text, struct wf_cpus *out, char *why, size_t why_room);
const char *wf_cpus_text(const struct wf_cpus *set, char *text, size_t room);

#endif
