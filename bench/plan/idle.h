/* idle.h: settings that do nothing for what is measured. */
#ifndef WF_BENCH_PLAN_IDLE_H
#define WF_BENCH_PLAN_IDLE_H

#include "options.h"

/* Whether a setting does nothing for what is measured: of a ping-pong how many messages are in flight, and for how
 * long. */
bool bench_is_idle(const struct bench_options *options, enum wf_setting_id id);

/* Tells of such settings of the command line. From a file or the environment they may be meant for other runs. */
void bench_tell_idle(const struct bench_options *options);

#endif
