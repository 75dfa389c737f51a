/*
 * place.h: which node this is to be, as options say it.
 */
#ifndef WF_BENCH_PLACE_H
#define WF_BENCH_PLACE_H

#include "options.h"

/* --listen, --connect or --local. */
int bench_place_set(struct bench_options *options, enum bench_place place, const char *address,
                    struct wf_status *status);

/* A count or number of nodes, from `least` on. */
int bench_place_number(const char *option, const char *text, int least, int *number, struct wf_status *status);

/* Once all options are read: whether this is one of a group of nodes, and what contradicts that. */
int bench_place_check(struct bench_options *options, bool launched, struct wf_status *status);

#endif
