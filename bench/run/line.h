/*
 * line.h: the first words of the nodes, before they agree on anything. A server that stays may have other clients:
 *
 *     node1 -> node0   {"hello", "command"}   knocks
 *     node0 -> node1   {"hello", "before": N} N clients are before it, the one that has its turn too; again when N
 *                                             changes
 *     node0 -> node1   {"hello", "before": 0} it is its turn
 */
#ifndef WF_BENCH_LINE_H
#define WF_BENCH_LINE_H

#include <stdio.h>

#include "bench/nodes/control.h"

/* -ENOEXEC where `text`, which the other node said, is of another command than `own`; -EPROTO where it is not of this
 * conversation: another build. `node` is this one. */
int bench_check_hello(const json_t *text, const char *own, int node, struct wf_status *status);

/* node1: until it is its turn. Its place is told to `news` (NULL: nowhere), `address` being the server's. The server
 * has to speak within the time that is set, bench_control_expect_within(), but once it has said that others are before
 * it, it may take its time. */
int bench_line_wait(struct bench_control *control, const char *own, const char *address, FILE *news,
                    struct wf_status *status);

/* node0: to the one whose turn it is. */
int bench_line_call(struct bench_control *control, const char *own, struct wf_status *status);

#endif
