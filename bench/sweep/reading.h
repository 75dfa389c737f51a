/*
 * reading.h: what a run of a sweep has printed, in one figure.
 */
#ifndef WF_BENCH_READING_H
#define WF_BENCH_READING_H

#include <jansson.h>
#include <stdbool.h>

#include "base/status.h"

/* What a run has come to. */
struct bench_reading {
    double value;        /* GB/s, or us of half a round trip: the geometric mean over its sets; 0: it failed */
    double cpu_s_per_gb; /* likewise; negative: not told */
    json_t *sets;        /* {"mode", "size_bytes", "value"} each; NULL where it failed. Owned */
    char error[300];     /* why it failed; "": it did not */
};

/* Of a result of weft mesh or weft pair. -EPROTO: it is none, or has no figures. Can be given to fini either way. */
int bench_reading_from_json(const char *text, bool latency, struct bench_reading *reading, struct wf_status *status);

/* Whether it has the sets of the first good run, `sets` of which may be NULL: the mean over others, which gave way to
 * memory, compares with nothing. -EPROTO: in what they differ. */
int bench_reading_check(const struct bench_reading *reading, const json_t *first, struct wf_status *status);
void bench_reading_fini(struct bench_reading *reading);

#endif
