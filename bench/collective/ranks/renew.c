/*
 * What set-up costs. An iteration is one operation, with or without set-up before it:
 *
 *     cold: open, operation     kept: operation     anew: renew, operation       by the clock of the slowest rank
 *
 * All begin behind a barrier; what a rank does before it is ready for that is of the iteration before.
 */
#include "measure.h"

#define NUMBERS RANK_TOLD_MOST /* the whole, the operation, the steps */
#define STEPS_MOST (NUMBERS - 2)

/* Of the rank that took longest, as rank 0 writes it. Rank 0 is another one, unless it is alone: it waits for all that
 * the others do. */
static void say(const struct rank_world *world, const char *what, const struct rank_step *steps, uint64_t turn)
{
    const double *slowest = world->all + (world->ranks > 1 ? NUMBERS : 0);

    for (uint32_t i = 2; i < world->ranks; i++)
        if (world->all[i * NUMBERS] > slowest[0])
            slowest = world->all + i * NUMBERS;
    printf("{\"what\": \"%s\", \"turn\": %llu, \"us\": %.3f, \"operation_us\": %.3f, \"steps_us\": {", what,
           (unsigned long long)turn, slowest[0], slowest[1]);
    for (int i = 0; steps && steps[i].name && i < STEPS_MOST; i++)
        printf("%s\"%s\": %.3f", i ? ", " : "", steps[i].name, slowest[2 + i]);
    printf("}}\n");
    fflush(stdout);
}

static int tell(struct rank_world *world, const char *what, double set_up_us, double operation_us,
                const struct rank_step *steps, uint64_t turn, struct wf_status *status)
{
    double numbers[NUMBERS] = {set_up_us + operation_us, operation_us};

    for (int i = 0; steps && steps[i].name && i < STEPS_MOST; i++)
        numbers[2 + i] = steps[i].us;
    int result = world->backend->gather(numbers, NUMBERS, world->all, status);
    if (result == 0 && world->rank == 0)
        say(world, what, steps, turn);
    return result;
}

static int operate(struct rank_world *world, double *us, struct wf_status *status)
{
    struct rank_call call;
    double begun_us = rank_now_us();

    rank_first_call(world, &call);
    int result = world->backend->run(&call, status);
    *us = rank_now_us() - begun_us;
    return result;
}

/* One iteration. `which` -1: nothing is made anew. */
static int iterate(struct rank_world *world, int which, uint64_t turn, struct wf_status *status)
{
    const struct rank_backend *backend = world->backend;
    double set_up_us = 0, operation_us;
    int result = backend->barrier(status);
    double begun_us = rank_now_us();

    if (result == 0 && which >= 0) {
        result = backend->renew(world->asked, which, turn, status);
        set_up_us = rank_now_us() - begun_us;
    }
    if (result == 0)
        result = operate(world, &operation_us, status);
    const struct rank_step *steps = result == 0 && which >= 0 && backend->steps ? backend->steps() : NULL;
    return result ? result
                  : tell(world, which < 0 ? "kept" : backend->renewals[which], set_up_us, operation_us, steps, turn,
                         status);
}

/* One iteration of each kind. In turns, what else the machine does meets all of them. */
static int take_turns(struct rank_world *world, uint64_t *turn, struct wf_status *status)
{
    const char *const *renewals = world->backend->renewals;
    int result = iterate(world, -1, *turn, status);

    for (int which = 0; renewals && renewals[which] && result == 0; which++)
        result = iterate(world, which, ++*turn, status);
    return result;
}

int rank_renew(struct rank_world *world, struct wf_status *status)
{
    const struct rank_backend *backend = world->backend;
    double operation_us;
    uint64_t turn = 0;
    int result = operate(world, &operation_us, status);

    if (result == 0)
        result = tell(world, "cold", world->open_us, operation_us, backend->steps ? backend->steps() : NULL, 0, status);
    for (uint64_t i = 0; i < world->asked->renew && result == 0; i++)
        result = take_turns(world, &turn, status);
    return result;
}
