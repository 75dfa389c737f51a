/* Users' memory: the processor's, or a device's that it cannot touch. The test looks at it from outside. */
#include <stdlib.h>

#include "model.h"

uint64_t model_bits(const struct model_world *world, uint64_t salt)
{
    uint64_t mixed = (world->seed + salt) * 0x9e3779b97f4a7c15;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 32;
}

void model_devices_open(struct model_world *world)
{
    uint64_t kind = model_bits(world, 7000) % 8;
    if (kind < 4)
        return;
    struct wf_sim_memory_options options = {.seed = world->seed, .devices = 2};
    if (kind == 7) /* slower than any network here */
        options.copy_max_ns = 5 * WF_NS_PER_MS;
    world->devices = wf_sim_memory_create(&options);
    MODEL_CHECK(world->devices, 0);
    wf_sim_memory_join(world->devices, world->sim);
    world->failing = kind == 6;
    for (int i = 0; i < options.devices && world->failing; i++)
        wf_sim_memory_fail_percent(world->devices, i, 3);
}

void model_devices_mend(struct model_world *world)
{
    for (int i = 0; i < 2 && world->failing; i++)
        wf_sim_memory_fail_percent(world->devices, i, 0);
}

void model_devices_close(struct model_world *world)
{
    wf_sim_memory_destroy(world->devices);
    world->devices = NULL;
}

void *model_memory_take(struct model_world *world, int node, uint64_t bytes, uint8_t **view)
{
    uint64_t bits = model_bits(world, 9000 + world->buffers++);
    struct weft_registration *registration;
    if (!world->devices || bits % 2) {
        *view = malloc(bytes);
        MODEL_CHECK(*view, bytes);
        return *view;
    }
    void *memory = wf_sim_memory_take(world->devices, (int)(bits / 2 % 2), bytes);
    MODEL_CHECK(memory, bytes);
    *view = wf_sim_memory_view(world->devices, memory, bytes);
    /* For as long as the context is there. */
    if (world->nodes[node].context)
        MODEL_CHECK(weft_register(world->nodes[node].context, memory, bytes, &registration, NULL) == 0, bytes);
    return memory;
}

void model_memory_give(struct model_world *world, void *memory)
{
    if (world->devices && wf_sim_memory_device(world->devices, memory) != WF_NO_DEVICE)
        wf_sim_memory_give(world->devices, memory);
    else
        free(memory);
}
