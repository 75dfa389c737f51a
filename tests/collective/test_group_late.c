/* test_group_late.c: who does not enter a barrier in time is named at every member, wherever it stands in the tree. */
#include "group_clock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SIZE = 9, WAIT_MS = 1200 * LOOP_SLOWER };

/* The late ones enter when the test says so: when all others have ended. `number`: a bit for each of them. */
static int enter(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result;
    if (process->number & 1u << process->rank) {
        loop_tell(process->out, 1);
        loop_hear(process->in);
        return weft_group_barrier(group, WAIT_MS, err);
    }
    group_clock_start(process, WAIT_MS, ~process->number & ((1u << SIZE) - 1), &process->world->shared->told);
    result = weft_group_barrier(group, WAIT_MS, err);
    group_clock_stop();
    return result;
}

static int some_are_late(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result = group_pass(process, group, GROUP_MS, err);
    return result < 0 ? result : enter(process, group, err);
}

/* The same, behind an operation that has much more time: the barrier's is over first. */
static int late_behind_another(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    static float one = 1, sum;
    int result = group_pass(process, group, GROUP_MS, err);
    if (result == 0 && !(process->number & 1u << process->rank))
        result = weft_group_all_reduce_start(group, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, 600000, NULL, err);
    return result < 0 ? result : enter(process, group, err);
}

static void late(uint64_t who, const char *names,
                 int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    struct group_world world;
    loop_note("%s", names);
    group_world_create(&world, SIZE, body);
    for (int i = 0; i < SIZE; i++)
        world.process[i].number = who;
    group_start_all(&world);
    group_join_late(&world, who);
    group_check_all(&world, -1, -ETIMEDOUT, names);
    group_check_all(&world, -1, -ETIMEDOUT, "did not enter it within");
    group_world_destroy(&world);
}

static void one(void)
{
    late(1u << 8, "barrier 2: rank 8 (", some_are_late);
    late(1u << 1, "barrier 2: rank 1 (", some_are_late);
    late(1u << 0, "barrier 2: rank 0 (", some_are_late);
}

static void several(void)
{
    late(1u << 1 | 1u << 3, "barrier 2: ranks 1, 3 did", some_are_late); /* one below the other */
    late(1u << 0 | 1u << 2 | 1u << 6, "barrier 2: ranks 0, 2, 6 did",
         some_are_late); /* and with rank 0, who keeps the board */
    late(0x1fe, "barrier 2: ranks 1-8 did", some_are_late);
}

static void behind_another(void)
{
    late(1u << 8, "barrier 2: rank 8 (", late_behind_another);
}

/* In time, though some have waited so long that they told the board. */
static int nearly(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result = group_pass(process, group, GROUP_MS, err);
    for (int i = 0; i < 3 && result == 0; i++) {
        if (process->rank == (uint32_t)i)
            loop_sleep_ms(300); /* is late, and no more */
        group_clock_start_early(1000 * LOOP_SLOWER);
        result = group_pass(process, group, 1000 * LOOP_SLOWER, err);
        group_clock_stop();
    }
    return result;
}

static void nearly_late(void)
{
    group_run_all(SIZE, nearly);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(one, 40),
        LOOP_CASE(several, 40),
        LOOP_CASE(behind_another, 20),
        LOOP_CASE(nearly_late, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
