/*
 * finished.h: the numbers of the messages of one direction that have ended. Numbers are dense from 1 and never reused.
 * The set is all numbers below `floor`, and the intervals `above`, which are separated by unfinished numbers.
 */
#ifndef WF_WIRE_FINISHED_H
#define WF_WIRE_FINISHED_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/range.h"

struct wf_finished {
    uint64_t floor;          /* every number below it is finished; 1 at first */
    uint32_t count, capacity;
    struct wf_range *above;  /* intervals above floor, in rising order; grown with realloc, NULL at first */
};

void wf_finished_init(struct wf_finished *set);
void wf_finished_fini(struct wf_finished *set);

/* 0; -EEXIST: `number` is already in the set; -ENOMEM (nothing changed). */
int wf_finished_add(struct wf_finished *set, uint64_t number);
bool wf_finished_has(const struct wf_finished *set, uint64_t number);

#endif
