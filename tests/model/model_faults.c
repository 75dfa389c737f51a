/* What goes wrong, and when. */
#include <stdio.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/rail/address.h"
#include "core/rail/watch.h"
#include "model_faults_parts.h"

/* How often each action is drawn: SPARED, CUTS, OUTAGE, FATAL. */
static const uint8_t weights[MODEL_ACTIONS][4] = {
    [MODEL_CUT] = {10, 14, 0, 8},       [MODEL_RESET] = {6, 6, 0, 4},        [MODEL_END] = {5, 6, 0, 4},
    [MODEL_DEAFEN] = {6, 4, 0, 5},      [MODEL_FREEZE] = {5, 3, 0, 4},       [MODEL_FLIP_SETUP] = {1, 2, 0, 1},
    [MODEL_FLIP_HEADER] = {4, 5, 0, 3}, [MODEL_FLIP_PAYLOAD] = {5, 6, 0, 3}, [MODEL_LIE] = {0, 0, 0, 3},
    [MODEL_CUT_PAIR] = {5, 5, 0, 3},    [MODEL_CUT_KIND] = {4, 4, 0, 3},     [MODEL_CUT_ALL] = {0, 4, 0, 4},
    [MODEL_RAIL_DOWN] = {8, 4, 0, 6},   [MODEL_RAIL_MUTE] = {6, 3, 0, 5},    [MODEL_RAIL_ROTS] = {4, 4, 0, 2},
    [MODEL_STOP] = {3, 0, 10, 4},       [MODEL_BLACKOUT] = {0, 0, 12, 6},    [MODEL_KILL] = {0, 0, 0, 3},
    [MODEL_WAIT] = {25, 25, 0, 20},     [MODEL_TEAR] = {0, 0, 0, 3},         [MODEL_RAIL_SHUT] = {5, 3, 0, 4},
};

/* --- what this schedule is --- */

static enum model_regime draw_regime(struct model_world *world)
{
    uint64_t drawn = model_pick(world, 100);
    if (!world->faulty)
        return MODEL_CALM;
    return drawn < 38 ? MODEL_SPARED : drawn < 65 ? MODEL_CUTS : drawn < 75 ? MODEL_OUTAGE : MODEL_FATAL;
}

void model_faults_draw(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    faults->regime = draw_regime(world);
    for (int node = 0; node < 2; node++)
        faults->rail_count[node] = 1 + (int)model_pick(world, MODEL_RAILS);
    if (faults->regime == MODEL_SPARED && faults->rail_count[0] == 1 && faults->rail_count[1] == 1)
        faults->rail_count[model_pick(world, 2)] = MODEL_RAILS;
    int longer = faults->rail_count[0] > faults->rail_count[1] ? faults->rail_count[0] : faults->rail_count[1];
    int spared = (int)model_pick(world, (uint64_t)longer); /* the pairs of rails are made like this */
    bool unequal = model_pick(world, 3) == 0;
    for (int node = 0; node < 2; node++) {
        faults->spared[node] = spared % faults->rail_count[node];
        for (int rail = 0; rail < MODEL_RAILS && unequal; rail++)
            faults->rails[node][rail] =
                (struct wf_sim_rail){.bytes_per_second = MODEL_ONE_OF(world, 0, 4000000, 10000000, 100000000),
                                     .delay_ns = (int64_t)MODEL_ONE_OF(world, 0, 0, WF_NS_PER_MS, 4 * WF_NS_PER_MS)};
    }
    faults->may_fail = faults->regime == MODEL_FATAL;
    faults->broad = model_pick(world, 2);
    faults->at_joining = model_pick(world, faults->regime == MODEL_FATAL ? 3 : 6) == 0;
    faults->at_closing = model_pick(world, 3) == 0;
    faults->budget = 1 + (int)model_pick(world, faults->regime == MODEL_OUTAGE ? 3 : 14);
    faults->period = MODEL_ONE_OF(world, 10, 50, 200, 1000, 4000);
    faults->active = faults->regime != MODEL_CALM && faults->at_joining;
    if (faults->regime == MODEL_FATAL && model_pick(world, 3) == 0)
        world->rail_timeout_ns = 20 * WF_NS_PER_MS;
    if (faults->regime == MODEL_CUTS) { /* time for pauses between attempts that are all cut */
        world->rail_timeout_ns = 4 * WF_NS_PER_S;
        world->timeout_ns = 36 * WF_NS_PER_S;
    }
}

static struct sockaddr_storage rail_address(int node, int rail)
{
    char text[32];
    struct sockaddr_storage address;
    snprintf(text, sizeof text, "127.0.%d.%d", rail + 1, node + 1);
    MODEL_CHECK(wf_address_numeric(text, &address) == 0, rail);
    return address;
}

void model_rail_list(char *text, size_t room, int node, int count)
{
    size_t used = 0;
    for (int rail = 0; rail < count; rail++)
        used += (size_t)snprintf(text + used, room - used, "%s127.0.%d.%d", rail ? "," : "", rail + 1, node + 1);
}

void model_apply_rail(struct model_world *world, int node, int rail)
{
    struct sockaddr_storage address = rail_address(node, rail);
    wf_sim_set_rail(world->sim, &address, &world->faults.rails[node][rail]);
}

void model_tell_rail(struct model_world *world, int node, int rail, enum wf_rail_trouble trouble)
{
    struct weft_context *context = world->nodes[node].context;
    if (!context || atomic_load(&context->rails.each[rail].trouble) == (int)trouble)
        return;
    atomic_store(&context->rails.each[rail].trouble, (int)trouble);
    atomic_store(&context->rails.each[rail].down, trouble != WF_RAIL_FINE);
    wf_door_rail_changed(context->door, rail);
}

void model_faults_open(struct model_world *world)
{
    for (int node = 0; node < 2; node++)
        for (int rail = 0; rail < world->faults.rail_count[node]; rail++)
            model_apply_rail(world, node, rail);
    model_wire_open(world);
}

void model_faults_close(struct model_world *world)
{
    model_wire_close(world);
}

/* --- what may be done --- */

bool model_is_silence(enum model_action action)
{
    return action == MODEL_DEAFEN || action == MODEL_FREEZE || action == MODEL_RAIL_DOWN || action == MODEL_RAIL_MUTE ||
           action == MODEL_RAIL_SHUT;
}

static bool is_damage(enum model_action action)
{
    return action == MODEL_FLIP_HEADER || action == MODEL_FLIP_PAYLOAD || action == MODEL_RAIL_ROTS;
}

bool model_faults_may(const struct model_world *world, enum model_action action, const int rails[2])
{
    const struct model_faults *faults = &world->faults;
    bool control = rails[0] == MODEL_CONTROL, spared = rails[0] == faults->spared[0] && rails[1] == faults->spared[1];
    switch (faults->regime) {
    case MODEL_SPARED:
        return !spared && !control;
    case MODEL_CUTS:
        if (model_is_silence(action))
            return !faults->broad && !spared && !control;
        return faults->broad || !spared || !is_damage(action);
    case MODEL_FATAL:
        return true;
    default:
        return false;
    }
}

/* --- when it happens --- */

static enum model_action draw_action(struct model_world *world)
{
    int regime = world->faults.regime - MODEL_SPARED;
    if (world->faults.regime == MODEL_FATAL && !world->nodes[1].session && model_pick(world, 2) == 0)
        return MODEL_LIE; /* while the two get to know each other */
    uint64_t sum = 0;
    for (int action = 0; action < MODEL_ACTIONS; action++)
        sum += weights[action][regime];
    uint64_t drawn = model_pick(world, sum);
    int action = 0;
    while (drawn >= weights[action][regime])
        drawn -= weights[action++][regime];
    return (enum model_action)action;
}

static void do_what_is_due(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    for (int i = 0; i < MODEL_TRIGGERS; i++) {
        struct model_due *due = &faults->due[i];
        if (due->turns == 0 || --due->turns > 0 || !model_is_there(world, due->fd, due->stream))
            continue;
        if (due->action < MODEL_CUT_PAIR)
            model_inject_one(world, due->fd, due->action);
        else
            model_inject(world, due->action);
        faults->injected[due->action] += 1;
    }
}

void model_faults_turn(struct model_world *world)
{
    struct model_faults *faults = &world->faults;
    if (faults->regime == MODEL_CALM)
        return;
    model_mend_due(world, wf_sim_now(world->sim));
    do_what_is_due(world);
    model_cut_devices(world);
    uint64_t period = world->nodes[1].session || faults->period < 20 ? faults->period : 20; /* joining is soon over */
    if (!faults->active || faults->budget == 0 || model_pick(world, period) != 0)
        return;
    enum model_action action = draw_action(world);
    if (!model_inject(world, action))
        return;
    faults->injected[action] += 1;
    faults->budget -= 1;
}

bool model_faults_damaged(const struct model_world *world)
{
    return world->faults.injected[MODEL_FLIP_PAYLOAD] > 0 || world->faults.injected[MODEL_RAIL_ROTS] > 0;
}
