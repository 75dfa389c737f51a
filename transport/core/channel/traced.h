/*
 * traced.h: the events of a channel's chunks for the trace (ground/trace.h). Only where the trace is on, or was on when
 * the chunk began; session lock held.
 */
#ifndef WF_CORE_CHANNEL_TRACED_H
#define WF_CORE_CHANNEL_TRACED_H

#include <stdint.h>

struct wf_channel;
struct wf_frame;

/* The chunks of the batch whose operation has ended well. Before their messages are let go of. */
void wf_traced_batch(struct wf_channel *channel);

/* A chunk that is in memory now; its header was parsed at `begin_ns`. */
void wf_traced_arrival(struct wf_channel *channel, const struct wf_frame *frame, int64_t begin_ns);

#endif
