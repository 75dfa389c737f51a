/*
 * raw.h: the command `raw`: what plain TCP sockets give, driven by one thread at each side. No protocol, no check of
 * the data:
 *
 *     bytes on the wire = messages x size  +  one byte back per `batch` messages, where `inflight` limits them
 *
 * What Weft adds to this is its cost, so nothing may be able to do much better with the same calls.
 *
 * The client connects, decides what is measured, and sends; the server receives, and reports its processor time.
 */
#ifndef WF_BENCH_RAW_H
#define WF_BENCH_RAW_H

#include "bench/plan/help.h"

/* The command, with argv[0] its name. Returns an exit status. */
int bench_raw(int argc, char **argv);

/* Its options as the help shows them; returns their number. `shown` has room for BENCH_SHOWN_MAX. */
int raw_options_shown(struct bench_shown *shown);

#endif
