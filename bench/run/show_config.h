/* show_config.h: the command `config`. */
#ifndef WF_BENCH_SHOW_CONFIG_H
#define WF_BENCH_SHOW_CONFIG_H

#include "bench/plan/options.h"

/* Prints every setting as the options ask: text, JSON or the table of the documentation. Returns an exit status. */
int bench_show_config(const struct bench_options *options);

#endif
