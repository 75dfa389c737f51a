/* Users' memory: the processor's, or a device's that it cannot touch. The test looks at it from outside. */
#include <stdlib.h>
#include <string.h>

#include "core/calls/context.h"
#include "model.h"

uint64_t model_bits(const struct model_world *world, uint64_t salt)
{
    uint64_t mixed = (world->seed + salt) * 0x9e3779b97f4a7c15;
    return (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9 >> 32;
}

/* Some cards have no inlet for some devices. */
static bool has_inlet(void *context, const char *interface, int device)
{
    const struct model_world *world = context;
    (void)interface;
    return model_bits(world, 7110 + (uint64_t)device) % 4 > 0;
}

/* Some write wrong bytes. */
static bool is_wrong(void *context, const char *interface, int device)
{
    const struct model_world *world = context;
    uint64_t last = interface[0] ? (uint8_t)interface[strlen(interface) - 1] : 0;
    return world->faulty && model_bits(world, 7130 + last % 8 * 2 + (uint64_t)device % 2) % 8 == 0;
}

/* Some cards lead no single stream to a device. */
static bool is_by_port(void *context, const char *interface)
{
    const struct model_world *world = context;
    uint64_t last = interface[0] ? (uint8_t)interface[strlen(interface) - 1] : 0;
    return model_bits(world, 7120 + last % 8) % 3 == 0;
}

/* May a card that is made now bring so little, or so wrongly, that its inlet is left? All rails are on "lo". */
static bool may_bring_badly(struct model_world *world)
{
    bool in_host = model_bits(world, 7103) % 3 > 0 || model_bits(world, 7104) % 2; /* perhaps a whole pattern */
    return in_host || is_wrong(world, "lo", 0) || is_wrong(world, "lo", 1);
}

/* Cards that write to devices: small inlets, and much that does not come as they would have it. */
static void open_cards(struct model_world *world)
{
    bool limited = world->faulty && model_bits(world, 7106) % 3 > 0;
    world->card_rules = limited ? 1 + (int)model_bits(world, 7107) % 4 : 0;
    struct wf_sim_cards_options options = {.buffers = 8 + (uint32_t)model_bits(world, 7101) % 120,
                                           .buffer_bytes = model_bits(world, 7102) % 2 ? 4096 : 512,
                                           .host_percent = (uint32_t)(model_bits(world, 7103) % 3) * 30,
                                           .plain_percent = model_bits(world, 7104) % 2 ? 10 : 0,
                                           .no_loans_percent = model_bits(world, 7105) % 2 ? 50 : 0,
                                           .rules = world->card_rules,
                                           .wrong = is_wrong,
                                           .by_port = is_by_port,
                                           .has = has_inlet,
                                           .context = world};
    world->cards = wf_sim_cards_create(world->sim, world->devices, &options);
    MODEL_CHECK(world->cards, 0);
    world->leaves_cards = may_bring_badly(world);
}

bool model_may_leave_cards(const struct model_world *world)
{
    return world->cards && (world->leaves_cards || world->failing);
}

void model_judge_cards(struct model_world *world, struct weft_context *context)
{
    if (!world->cards || model_bits(world, 7106) % 2)
        return;
    context->cards.trial_bytes = 1 + model_bits(world, 7107) % 20000;
    world->leaves_cards = true;
}

bool model_has_cards(const struct model_world *world)
{
    bool encrypted = world->seed % (UINT64_C(1) << 40) % 4 == 3;
    return model_bits(world, 7100) % 3 == 0 && !encrypted;
}

void model_devices_open(struct model_world *world)
{
    uint64_t kind = model_bits(world, 7000) % 8;
    if (kind < 4 && !model_has_cards(world))
        return;
    struct wf_sim_memory_options options = {.seed = world->seed, .devices = 2};
    if (kind == 7) /* slower than any network here */
        options.copy_max_ns = 5 * WF_NS_PER_MS;
    world->devices = wf_sim_memory_create(&options);
    MODEL_CHECK(world->devices, 0);
    wf_sim_memory_join(world->devices, world->sim);
    if (model_has_cards(world))
        open_cards(world);
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
    wf_sim_cards_destroy(world->cards);
    world->cards = NULL;
    wf_sim_memory_destroy(world->devices);
    world->devices = NULL;
}

void *model_memory_of(struct model_world *world, int device, uint64_t bytes, uint8_t **view)
{
    void *memory = wf_sim_memory_take(world->devices, device, bytes);
    MODEL_CHECK(memory, bytes);
    *view = wf_sim_memory_view(world->devices, memory, bytes);
    return memory;
}

void *model_memory_take(struct model_world *world, int node, uint64_t bytes, uint8_t **view)
{
    uint64_t bits = model_bits(world, 9000 + world->buffers++);
    struct weft_registration *registration;
    uint64_t in_host = world->cards ? 8 : 2; /* one of so many */
    if (!world->devices || bits % in_host == 1) {
        *view = malloc(bytes);
        MODEL_CHECK(*view, bytes);
        return *view;
    }
    void *memory = model_memory_of(world, (int)(bits / 8 % 2), bytes, view);
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
