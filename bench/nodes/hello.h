/*
 * hello.h: the first words between two nodes, by which a node knows which command of weft the other one runs.
 */
#ifndef WF_BENCH_HELLO_H
#define WF_BENCH_HELLO_H

#include <jansson.h>

#include "base/status.h"

#define BENCH_HELLO "weft.bench/6"       /* mesh and pair say it first, with their "command" */
#define BENCH_HELLO_PEERS "weft peers 1" /* weft peers says it first */
#define BENCH_HELLO_SWEEP "weft sweep 1" /* and so does weft sweep */
#define BENCH_HELLO_DOCTOR "weft doctor 1"

/* -ENOEXEC where `hello`, the first words of the other node, are those of another command than `own`. `node` is this
 * one. Words of no command that is known here pass: they are for the caller to refuse. */
int bench_same_command(const json_t *hello, const char *own, int node, struct wf_status *status);

#endif
