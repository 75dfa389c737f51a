/*
 * fit.h: what nobody has said, defaults and presets, gives way where memory does not suffice; what the user has said
 * never does. The largest plan is taken that fits:
 *
 *     first the sizes give way, but not below 1M;  then the endpoints, but not below 2;  then the sizes again.
 */
#ifndef WF_BENCH_FIT_H
#define WF_BENCH_FIT_H

#include <jansson.h>
#include <stdio.h>

#include "bench/buffers/memory.h"
#include "bench/plan/options.h"

/* 0, and plan and settings are what fits; what gave way goes to `options` (gave_way), and in a line to `news` (NULL:
 * nowhere). -ENOMEM with need, availability and a remedy: the plan is the smallest there is. */
int bench_fit(struct bench_options *options, struct bench_plan *plan, const struct bench_parties *parties, FILE *news,
              struct wf_status *status);

/* The same for what the other node has made of the settings of this one: what it says of `end` and `endpoints`, as far
 * as the user has not. */
int bench_fit_adopt(struct bench_options *options, struct bench_plan *plan, const json_t *settings,
                    struct wf_status *status);

/* What another node must know to make a plan fit here; a new reference. And what it makes of that: `gpus` has what
 * concerns memory, and may be all zero before. */
json_t *bench_party_to_json(const struct bench_party *party);
void bench_party_from_json(const json_t *about, struct bench_gpus *gpus, struct bench_limits *limits);

#endif
