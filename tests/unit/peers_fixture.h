/*
 * peers_fixture.h: tools that are shell scripts, for the tests of `weft peers`: each run of one leaves a line in a
 * file, the trace, and what it prints is its GB/s.
 */
#ifndef WEFT_TESTS_UNIT_PEERS_FIXTURE_H
#define WEFT_TESTS_UNIT_PEERS_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "peers/peers.h"

extern char trace_path[32]; /* /dev/null but in trace_rounds() */

/* Runs the plan; `text` is what the tools have left in the trace. */
void trace_rounds(const struct peers_plan *plan, struct peers_result *result, char *text, size_t room);

/* One case, with one tool alone. */
struct peers_plan plan_of(const struct peer_tool *tool, int rounds);

/* Leaves the line NAME and INDEX, and prints `value`. */
int echo(const char *name, int index, const char *value, struct peer_commands *out);

/* Functions of a tool. */
int one_variant(const struct peer_case *asked, const struct peer_place *place, char why[200]);
int read_value(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
               struct peer_reading *out, struct wf_status *status);

#endif
