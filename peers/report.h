/*
 * report.h: a comparison for people, before, while and after it is measured, and as JSON.
 */
#ifndef WF_PEERS_REPORT_H
#define WF_PEERS_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "foresee.h"
#include "peers.h"

/* Where a report for people goes. */
struct peers_page {
    FILE *out;
    int width; /* columns; no line is wider */
};

/* Before the first case: what will run, what is not here, how long it takes; after each case: its table; at the end. */
void peers_report_head(const struct peers_plan *plan, const struct peers_forecast *forecast,
                       const struct peers_page *page);
void peers_report_case(const struct peers_result *result, int index, const struct peers_page *page);
void peers_report_end(const struct peers_result *result, const struct peers_page *page);

/* Another tool was measured in the same rounds as Weft: there is a comparison. Of a result with nothing but zeroes,
 * too. */
bool peers_compared(const struct peers_result *result);

/* "40 s", "12 minutes", "2 h 5 min". Returns `text`. */
char *peers_duration(double seconds, char *text, size_t room);

/* {"runs", "seconds", "tools": [{"name", "installed", "version", "cases", "reason", "package"}]}; a new reference. */
json_t *peers_forecast_to_json(const struct peers_plan *plan, const struct peers_forecast *forecast);

/* The samples of the result, one for each tool in each case; a new reference. */
json_t *peers_samples(const struct peers_result *result);

/* "bandwidth", "latency", "rate". */
const char *peers_metric_name(enum peer_metric metric);

#endif
