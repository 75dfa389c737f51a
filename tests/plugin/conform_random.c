/* conform_random.c: schedules by chance: comms, sizes, windows, slots and orders follow from the seed. */
#include "conform.h"

static uint64_t chance_state;

/* The same numbers in all processes. */
static int chance(int below)
{
    chance_state = mix(chance_state, 5);
    return (int)(chance_state % (unsigned)below);
}

static void choose_flow(struct flow *flow, struct link *link)
{
    static const size_t largest[] = {100, 5000, 70000, 600000};
    int max_recvs = ranks[0].properties.max_recvs, slots = 1;
    if (max_recvs > CONFORM_SLOTS_MAX)
        max_recvs = CONFORM_SLOTS_MAX;
    if (max_recvs > 1 && chance(3) == 0)
        slots = 1 + chance(max_recvs);
    int kind = chance(4);
    *flow = (struct flow){
        .link = link,
        .messages = 1 + chance(kind == 3 ? 12 : 60),
        .slots = slots,
        .window = 1 + chance(kind == 3 ? 8 : NCCL_NET_MAX_REQUESTS),
        .largest = largest[kind],
        .order = (enum order)chance(3),
        .exact = chance(2),
        .optional = slots == 1 && chance(4) == 0,
        .twins = chance(4) == 0,
        .all_posted = chance(4) == 0,
        .seed = chance_state,
    };
}

static void schedule(int number)
{
    struct flow flows[CONFORM_LINKS_MAX];
    chance_state = mix(conform.seed, (uint64_t)number);
    int comms = 1 + chance(12);
    for (int i = 0; i < comms; i++)
        links_add(chance(conform.processes), chance(conform.processes), chance(rank_count));
    links_open();
    for (int turns = 1 + chance(3); turns > 0; turns--) {
        for (int i = 0; i < link_count; i++)
            choose_flow(&flows[i], &links[i]);
        flows_run(flows, link_count);
    }
    links_close();
}

static void schedules(void)
{
    ranks_begin(3);
    for (int i = 0; i < conform.schedules; i++) {
        conform.number = i;
        schedule(i);
    }
    ranks_end();
}

const struct conform_case conform_random_cases[] = {
    {"schedules", "random", "comms, sizes, windows, slots and orders by chance", schedules, 0, 3600, false},
    {0},
};
