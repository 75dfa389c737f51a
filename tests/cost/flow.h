/*
 * flow.h: messages in a steady flow from one side of a world to the other. Every connection has the same number of
 * them under way all the time; a message is posted when an earlier one of its connection was received. Receives are
 * posted first, so no message comes unexpected.
 */
#ifndef TESTS_COST_FLOW_H
#define TESTS_COST_FLOW_H

#include "meter.h"
#include "world.h"

struct flow_plan {
    uint64_t bytes;    /* of a message */
    int depth;         /* messages under way on each connection */
    uint64_t messages; /* in all, at least; every connection has at least `depth` */
};

/* Sends the messages, takes the time of both sides, and returns how many were received. Aborts unless each was received
 * whole. */
uint64_t flow_run(struct cost_world *world, const struct flow_plan *plan, bool accounting,
                  struct meter_reading readings[METER_SIDES]);

#endif
