/*
 * finished.h: which message numbers of one direction have ended. Numbers are dense from 1 and never reused; the set is
 * `all below floor` and a few intervals above it: at most one more than there are unfinished numbers between.
 */
#ifndef WF_WIRE_FINISHED_H
#define WF_WIRE_FINISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/range.h"

struct wf_finished {
    uint64_t floor;          /* every number below it is finished; 1 at first */
    uint32_t count, capacity;
    struct wf_range *above;  /* intervals above floor, rising; grown with realloc, NULL at first */
};

void wf_finished_init(struct wf_finished *set);
void wf_finished_fini(struct wf_finished *set);

/* 0; -EEXIST if it was finished already; -ENOMEM (nothing changed). */
int wf_finished_add(struct wf_finished *set, uint64_t number);
bool wf_finished_has(const struct wf_finished *set, uint64_t number);

#endif
