/*
 * answering.h: node0's side of asking.h: waits for the other node, and answers until it says goodbye.
 */
#ifndef WF_BENCH_ANSWERING_H
#define WF_BENCH_ANSWERING_H

#include "asking.h"

/* Waits for the other node. `runs` says what runs on which ports besides: "servers on the next 16"; the printed
 * line ends with it, and the next says what to type at the other node. */
int bench_asking_await(struct bench_asking *asking, const struct bench_options *options, const char *runs, int *port,
                       struct wf_status *status);

/* A new reference, or NULL: this is no question of the command's. */
typedef json_t *bench_answer(void *context, const json_t *question);

/* Answers until the other node says goodbye. */
int bench_asking_serve(struct bench_asking *asking, const char *command, bench_answer *answer, void *context,
                       struct wf_status *status);

/* {"error", "port_taken"}; a new reference. */
json_t *bench_asking_refuse(const struct wf_status *status);

#endif
