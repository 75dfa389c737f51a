/*
 * before.h: what may make figures uneven, found before a measurement: each with what it means and what can be done.
 */
#ifndef WF_BENCH_SENSE_BEFORE_H
#define WF_BENCH_SENSE_BEFORE_H

#include <jansson.h>
#include <stdio.h>

#include "sense.h"

/* How many processes other than this one compute on the GPU at PCI address `pci`; negative: unknown. */
struct bench_sense_gpu_users {
    int (*count)(void *context, const char *pci);
    void *context;
};

/* An array of {"name", "found", "means", "remedy"}. Nothing is refused for it. `users`: NULL, nobody is asked. Needs no
 * sampler and waits for nothing. A new reference; -ENOMEM. */
int bench_sense_before(const struct bench_sense_want *want, const struct bench_sense_gpu_users *users, json_t **out);
void bench_sense_put_before(const json_t *findings, FILE *out, int columns);

#endif
