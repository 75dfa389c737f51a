/*
 * report_nodes.h: the lines of the report that name slow nodes, links between nodes, rails and endpoints of a mesh of
 * more than two nodes (slow.h): each once, whether it is slow isolated, loaded or both.
 */
#ifndef WF_BENCH_REPORT_NODES_H
#define WF_BENCH_REPORT_NODES_H

#include <stdio.h>

#include "result.h"

void bench_report_nodes(const struct bench_result *result, FILE *out);

#endif
