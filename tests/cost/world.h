/*
 * world.h: two contexts in this process that share sessions over the pipe engine: one sends, the other receives. No
 * thread of the library's runs: the program drives the workers. Aborts where anything goes wrong. Owner: one thread.
 */
#ifndef TESTS_COST_WORLD_H
#define TESTS_COST_WORLD_H

#include <stdint.h>

#include "core/calls/context.h"
#include "meter.h"
#include "pipe_engine.h"

#define COST_CHECK(condition) cost_check((condition), __FILE__, __LINE__, #condition)
void cost_check(bool holds, const char *file, int line, const char *condition);

/* How large. Channels: rails * channels, for bulk data, in each session. */
struct cost_size {
    int rails, channels; /* channels of each rail */
    int connections;     /* in all, at least one in each session */
    int sessions;
    int workers; /* of each context: 1, or two for each rail */
    int call;    /* as the setting, in KiB */
};

struct cost_world {
    struct cost_size size;
    struct pipe_net net;
    struct weft_context *contexts[METER_SIDES];
    struct weft_endpoint *endpoints[METER_SIDES];
    struct weft_queue *queues[METER_SIDES];
    struct weft_peer **peers[METER_SIDES];             /* by session: two of a number belong together */
    struct weft_connection **connections[METER_SIDES]; /* by number: two of a number belong together */
};

void cost_world_open(struct cost_world *world, const struct cost_size *size);
void cost_world_close(struct cost_world *world);

/* The locks of its sessions are watched, and no others. */
void cost_world_watch(const struct cost_world *world);

/* Every worker of a side once; returns how much they handled. */
int cost_world_drive(struct cost_world *world, enum meter_side side);

#endif
