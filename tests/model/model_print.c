/* What is told of a schedule that fails. */
#include <stdio.h>

#include "model.h"

static const char *const names[MODEL_ACTIONS] = {
    [MODEL_CUT] = "cut",
    [MODEL_RESET] = "reset",
    [MODEL_END] = "end",
    [MODEL_DEAFEN] = "deafen",
    [MODEL_FREEZE] = "freeze",
    [MODEL_FLIP_SETUP] = "flip set-up",
    [MODEL_FLIP_HEADER] = "flip header",
    [MODEL_FLIP_PAYLOAD] = "flip payload",
    [MODEL_LIE] = "lie",
    [MODEL_CUT_PAIR] = "cut pair",
    [MODEL_CUT_KIND] = "cut kind",
    [MODEL_CUT_ALL] = "cut all",
    [MODEL_TEAR] = "tear",
    [MODEL_RAIL_DOWN] = "rail down",
    [MODEL_RAIL_MUTE] = "rail mute",
    [MODEL_RAIL_SHUT] = "rail shut",
    [MODEL_RAIL_ROTS] = "rail rots",
    [MODEL_STOP] = "stop",
    [MODEL_BLACKOUT] = "blackout",
    [MODEL_KILL] = "kill",
    [MODEL_WAIT] = "wait",
};

static void print_faults(const struct model_world *world)
{
    static const char *const regimes[] = {"calm", "spared", "cuts", "outage", "fatal"};
    const struct model_faults *faults = &world->faults;
    fprintf(stderr, "model: %s%s%s%s, rails %d and %d, spared %d-%d, at %.3f s:", regimes[faults->regime],
            world->timed ? ", timed" : "", world->abrupt ? ", abrupt" : "", faults->broad ? " (broad)" : "",
            faults->rail_count[0], faults->rail_count[1], faults->spared[0] + 1, faults->spared[1] + 1,
            (double)wf_sim_now(world->sim) / (double)WF_NS_PER_S);
    for (int action = 0; action < MODEL_ACTIONS; action++)
        if (faults->injected[action])
            fprintf(stderr, " %llu %s,", (unsigned long long)faults->injected[action], names[action]);
    fprintf(stderr, "\n");
    for (int i = 0; i < 2; i++)
        if (world->nodes[i].session)
            fprintf(stderr, "model: node %d: session in state %d: %s\n", i, world->nodes[i].session->guard.state,
                    world->nodes[i].session->guard.error.text);
}

static void print_one_sided(const struct model_world *world, int connection, int from)
{
    const struct model_side *side = &world->sides[connection][from];
    for (int i = 0; i < side->op_count; i++)
        if (side->ops[i].request)
            fprintf(stderr, "model: open: %s %d of %llu bytes%s%s%s, on connection %d by node %d\n",
                    side->ops[i].reading ? "read" : "write", i, (unsigned long long)side->ops[i].size,
                    side->ops[i].listed ? ", listed" : "", side->ops[i].notifies ? ", notifies" : "",
                    side->ops[i].cancelled ? ", cancelled" : "", connection, from);
    for (int i = 0; i < side->receive_count; i++)
        if (side->receives[i].request)
            fprintf(stderr, "model: open: receive %d of a notification, on connection %d by node %d\n", i, connection,
                    1 - from);
}

static void print_open(const struct model_world *world)
{
    for (int connection = 0; connection < world->connection_count; connection++)
        for (int side = 0; side < 2; side++) {
            const struct model_lane *lane = &world->lanes[connection][side];
            for (int i = 0; i < lane->send_count; i++)
                if (lane->sends[i].request)
                    fprintf(stderr, "model: open: send %d of %u bytes, tag %llu, on connection %d by node %d\n", i,
                            lane->sends[i].size, (unsigned long long)lane->sends[i].tag, connection, side);
            for (int i = 0; i < lane->receive_count; i++)
                if (lane->receives[i].request)
                    fprintf(stderr, "model: open: receive %d of %u bytes, tag %llu%s, on connection %d by node %d\n", i,
                            lane->receives[i].capacity, (unsigned long long)lane->receives[i].tag,
                            lane->receives[i].mask == 0 ? " or any" : "", connection, 1 - side);
            print_one_sided(world, connection, side);
        }
}

void model_print(const struct model_world *world)
{
    print_faults(world);
    print_open(world);
}
