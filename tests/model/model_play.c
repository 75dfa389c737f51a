/* What the users of both nodes do in the life of a session. */
#include "core/calls/context.h"
#include "model.h"

/* Nobody does anything for a while: the two only ask each other for signs of life. Often until one of them is about to
 * look at its deadlines. */
static void rest(struct model_world *world)
{
    int64_t until = wf_sim_now(world->sim) + (int64_t)model_pick(world, 2 * (uint64_t)world->timeout_ns);
    while (wf_sim_now(world->sim) < until && !model_is_lost(world))
        model_drive(world);
    const struct weft_context *context = world->nodes[model_pick(world, 2)].context;
    int64_t due = context ? wf_sim_timer(wf_seal_within(context->door->engine)) : 0, soon = 5 * WF_NS_PER_MS;
    while (due != WF_NEVER && wf_sim_now(world->sim) < due - soon && !model_is_lost(world)) {
        wf_sim_advance(world->sim, wf_sim_now(world->sim) + WF_NS_PER_MS);
        model_drive(world);
    }
}

/* What users do while the library is driven. */
static void play(struct model_world *world)
{
    uint64_t steps = 20 + model_pick(world, 300), rest_at = model_pick(world, 6 * steps);
    for (uint64_t step = 0; step < steps && !model_is_lost(world); step++) {
        if (step == rest_at)
            rest(world);
        if (model_pick(world, 100) < world->pressure) {
            model_act(world);
        } else {
            world->mortal = true;
            model_drive(world);
            world->mortal = false;
        }
        if (model_pick(world, 4) == 0)
            model_collect(world);
    }
}

/* Lets all that was posted end. */
static void drain(struct model_world *world)
{
    struct model_patience patience = {0};
    while (!model_is_lost(world) && !model_drain(world)) {
        world->mortal = true;
        for (int turn = 0; turn < 20; turn++)
            model_drive(world);
        world->mortal = false;
        model_collect(world);
        model_bear(world, &patience);
    }
}

void model_live(struct model_world *world)
{
    if (!model_join(world))
        return;
    play(world);
    if (!world->abrupt)
        drain(world);
}
