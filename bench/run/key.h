/*
 * key.h: `weft key`, which makes a key file. A key is only ever printed by `weft key`, and only the one that it has
 * just made.
 */
#ifndef WF_BENCH_KEY_H
#define WF_BENCH_KEY_H

#include "bench/plan/options.h"

/* `weft key`: exit status. */
int bench_key(struct bench_options *options);

#endif
