/*
 * asking.h: node1 asks and node0 answers, for commands whose measurements are programs of their own at both nodes:
 * node0 starts the servers, node1 the clients. Questions and answers are JSON objects; which ones is the command's
 * business:
 *
 *     node1: {"hello": HELLO, ...}, questions ..., {"bye"}       node0: an answer to each, {"error"} where it failed
 *
 * An error has "port_taken": true where another port may do.
 */
#ifndef WF_BENCH_ASKING_H
#define WF_BENCH_ASKING_H

#include <jansson.h>
#include <stdatomic.h>

#include "control.h"
#include "link.h"

/* All zero: there is no other node. Owner: the measuring thread, but for `alone`. */
struct bench_asking {
    struct bench_link link;
    struct bench_control *control;
    struct wf_status broken; /* why nothing can be said to the other node any more; code 0: it can */
    atomic_bool alone;       /* connecting: nobody would look at an interruption for a while */
};

/* node1: connects to the address that the options name. */
int bench_asking_connect(struct bench_asking *asking, const struct bench_options *options, struct wf_status *status);

/* Says hello as a node that runs `command`; `hello` is taken over. `*answer` is a new reference. -ENOEXEC: the other
 * node runs another command. */
int bench_asking_hello(struct bench_asking *asking, const char *command, json_t *hello, json_t **answer,
                       struct wf_status *status);

/* Asks; `question` is taken over, and `*answer` replaced by a new reference. What failed at the other node is an error
 * here: -EADDRINUSE where another port may do, else -ECHILD. */
int bench_asking_ask(struct bench_asking *asking, json_t *question, json_t **answer, struct wf_status *status);

/* As bench_control_check(), and the same every time once it failed. 0 where there is no other node. */
int bench_asking_check(struct bench_asking *asking, struct wf_status *status);

/* Says goodbye, or why not: `failed` is the reason, NULL where all went well. */
void bench_asking_close(struct bench_asking *asking, const char *failed);

#endif
