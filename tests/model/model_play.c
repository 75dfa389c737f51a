/* What the users of both nodes do in the life of a session. */
#include "model.h"

/* What users do while the library is driven. */
static void play(struct model_world *world)
{
    uint64_t steps = 20 + model_pick(world, 300);
    for (uint64_t step = 0; step < steps && !model_is_lost(world); step++) {
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
