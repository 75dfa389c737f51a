/*
 * stream.h: samples as they are measured, a line of JSON each, for whoever wants to watch (setting json_stream).
 */
#ifndef WF_BENCH_RESULT_STREAM_H
#define WF_BENCH_RESULT_STREAM_H

#include "result.h"

/* Opens what the setting names, if it names something, and empties it. */
int bench_stream_open(struct bench_result *result, struct wf_status *status);

/* Adds a line, and hands it on at once. The caller holds the result's lock. What fails is told at the end. */
void bench_stream_add(struct bench_result *result, const struct bench_sample *sample);

/* 0, or why a line could not be written. */
int bench_stream_close(struct bench_result *result, struct wf_status *status);

#endif
