/* test_group_reach.c: connections on demand, between any two members, both at once, and no more than are allowed. */
#include "group_support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void exchange(struct group_process *process, struct weft_connection *connection, uint32_t with)
{
    uint64_t told = process->rank * 1000 + with, heard = 0;
    struct weft_request *receive = loop_recv(connection, &heard, sizeof heard, 5);
    struct weft_request *send = loop_send(connection, &told, sizeof told, 5);
    loop_done(receive, 0, sizeof heard);
    loop_done(send, 0, sizeof told);
    LOOP_CHECK(heard == with * 1000 + process->rank, "rank %u heard %llu from rank %u", process->rank,
               (unsigned long long)heard, with);
}

/* All dial all at the same time: every pair from both sides. */
static int each_with_each(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connections[GROUP_MAX] = {0}, *again;
    for (uint32_t i = 1; i < 8; i++) {
        uint32_t with = process->rank ^ i; /* the partner of this round has the same one */
        if (with >= process->size)
            continue;
        int result = weft_group_connection(group, with, GROUP_MS, &connections[with], err);
        if (result < 0)
            return result;
    }
    for (uint32_t with = 0; with < process->size; with++)
        if (with != process->rank) {
            LOOP_CALL(weft_group_connection(group, with, GROUP_MS, &again, err), err);
            LOOP_CHECK(again == connections[with], "rank %u: another connection to rank %u", process->rank, with);
        }
    int result = group_pass(process, group, GROUP_MS, err);
    for (uint32_t i = 1; i < 8 && result == 0; i++)
        if ((process->rank ^ i) < process->size)
            exchange(process, connections[process->rank ^ i], process->rank ^ i);
    LOOP_CHECK(weft_group_sessions(group) == process->size - 1, "%u sessions", weft_group_sessions(group));
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void all_pairs(void)
{
    static const uint32_t sizes[] = {4, 8, 7};
    for (size_t i = 0; i < (size_t)LOOP_COUNT(3, 1); i++)
        for (int round = 0; round < LOOP_COUNT(4, 1); round++) {
            struct group_world world;
            group_world_create(&world, sizes[i], each_with_each);
            group_start_all(&world);
            group_join_all(&world);
            group_check_all(&world, -1, 0, NULL);
            group_world_destroy(&world);
        }
}

/* After its making a member has the sessions of the tree, and soon no other. */
static int settle(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    uint32_t tree =
        (process->rank > 0) + (2 * process->rank + 1 < process->size) + (2 * process->rank + 2 < process->size);
    struct weft_completion completion;
    int64_t limit_ms = loop_now_ms() + GROUP_MS;
    while (weft_group_sessions(group) != tree) {
        LOOP_CHECK(loop_now_ms() < limit_ms, "rank %u keeps %u sessions, and the tree has %u", process->rank,
                   weft_group_sessions(group), tree);
        weft_group_wait(group, 20, &completion, 1);
    }
    return group_pass(process, group, GROUP_MS, err);
}

/* A tournament: one partner in each round, and never more than two sessions beside those of the tree. */
static int in_turns(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    uint32_t most = 0;
    int result = settle(process, group, err); /* rank 0 has had a session with each */
    for (uint32_t i = 1; i < process->size && result == 0; i++) {
        struct weft_connection *connection;
        uint32_t with = process->rank ^ i;
        result = weft_group_connection(group, with, GROUP_MS, &connection, err);
        if (result == 0) {
            exchange(process, connection, with);
            result = group_pass(process, group, GROUP_MS, err);
            uint32_t sessions = weft_group_sessions(group);
            most = sessions > most ? sessions : most;
            weft_group_release(group, with);
        }
        if (result == 0)
            result = group_pass(process, group, GROUP_MS, err);
    }
    process->world->shared->value[process->slot] = most;
    return result;
}

static void bounded(void)
{
    struct group_world world;
    group_world_create(&world, 16, in_turns);
    for (int i = 0; i < 16; i++)
        world.process[i].sessions = 1;
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    for (int i = 0; i < 16; i++)
        LOOP_CHECK(world.shared->value[i] < 12, "rank %d had %llu sessions", i,
                   (unsigned long long)world.shared->value[i]);
    group_world_destroy(&world);
}

static int too_many(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    int result = 0;
    if (process->rank == 7) {
        for (uint32_t i = 4; i < 6 && result == 0; i++)
            result = weft_group_connection(group, i, GROUP_MS, &connection, err);
        LOOP_CHECK(result == 0, "%s", err->text);
        LOOP_CHECK(weft_group_connection(group, 6, GROUP_MS, &connection, err) == -EMFILE &&
                       strstr(err->text, "release one"),
                   "'%s'", err->text);
        weft_group_release(group, 4);
        result = weft_group_connection(group, 6, GROUP_MS, &connection, err);
        LOOP_CHECK(weft_group_connection(group, 7, 0, &connection, err) == -EINVAL, "a connection to itself");
        LOOP_CHECK(weft_group_connection(group, 8, 0, &connection, err) == -EINVAL, "a connection to nobody");
    }
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void the_limit(void)
{
    struct group_world world;
    group_world_create(&world, 8, too_many);
    world.process[7].sessions = 2;
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

/* Rank 3 may have one session more, which a collective uses: that the user releases it does not end it. (Not rank 0:
 * whoever waits for long dials that one, so on a slow machine rank 4 may have a session with it.) */
static int release_a_partner(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    uint32_t partner = (process->rank + 3) % 6, told = process->rank, heard = 6;
    int result = process->rank == 3 ? weft_group_connection(group, partner, GROUP_MS, &connection, err) : 0;
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    for (int i = 0; i < 2 && result == 0; i++) {
        result = weft_group_shift(group, &told, &heard, 1, WEFT_INT32, 3, GROUP_MS, err);
        LOOP_CHECK(result < 0 || heard == partner, "%u", heard);
        weft_group_release(group, partner);
        if (result == 0)
            result = group_pass(process, group, GROUP_MS, err);
        if (process->rank == 3 && result == 0)
            LOOP_CHECK(weft_group_connection(group, 4, GROUP_MS, &connection, err) == -EMFILE, "'%s'", err->text);
    }
    if (result == 0)
        result = weft_group_shift(group, &told, &heard, 1, WEFT_INT32, 3, GROUP_MS, err);
    LOOP_CHECK(!weft_group_peer(group, partner), "the user has a session that is released");
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void released(void)
{
    struct group_world world;
    group_world_create(&world, 6, release_a_partner);
    world.process[3].sessions = 1;
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

/* Ranks 4 and 7 have asked for each other. When both have released the session, rank 7 can have another one instead. */
static int both_release(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    int result = 0;
    for (uint32_t first = 7; first >= 4 && result == 0; first -= 3) {
        if (process->rank == first)
            result = weft_group_connection(group, 11 - first, GROUP_MS, &connection, err);
        if (result == 0)
            result = group_pass(process, group, GROUP_MS, err);
    }
    if (process->rank == 7 && result == 0) {
        weft_group_release(group, 4);
        LOOP_CHECK(weft_group_connection(group, 5, GROUP_MS, &connection, err) == -EMFILE, "'%s'", err->text);
    }
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (process->rank == 4)
        weft_group_release(group, 7);
    int64_t limit_ms = loop_now_ms() + GROUP_MS;
    while (process->rank == 7 && (result = weft_group_connection(group, 5, GROUP_MS, &connection, err)) == -EMFILE)
        LOOP_CHECK(loop_now_ms() < limit_ms, "'%s'", err->text); /* until it is told */
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void released_by_both(void)
{
    struct group_world world;
    group_world_create(&world, 8, both_release);
    world.process[7].sessions = 1;
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

/* Ranks 1 and 5 need a session, and each has as many as it may: one with rank 7, that of rank 5 the older one of two.
 * Rank 7 computes and does not part, so rank 5 asks rank 6. `number`: the collective needs it, not the user. */
static int part_from_the_next(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    uint32_t told = process->rank, heard = 8;
    bool needs = process->rank % 4 == 1;
    int result = 0;
    for (uint32_t i = 7; needs && i > 7 - process->sessions && result == 0; i--) {
        result = weft_group_connection(group, i, GROUP_MS, &connection, err);
        weft_group_release(group, i);
    }
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (needs)
        loop_hear(process->in);
    if (result == 0 && process->number) /* that of rank 7 is with its parent */
        result = weft_group_shift(group, &told, &heard, 1, WEFT_INT32, 4, GROUP_MS, err);
    else if (result == 0 && process->rank == 5)
        result = weft_group_connection(group, 1, GROUP_MS, &connection, err);
    LOOP_CHECK(result < 0 || !process->number || heard == (process->rank + 4) % 8, "%u", heard);
    if (process->rank == 5 || process->rank == 7)
        loop_tell(process->out, 1);
    if (process->rank == 7)
        loop_hear(process->in);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void one_computes(void)
{
    for (uint64_t number = 0; number < 2; number++) {
        struct group_world world;
        loop_note(number ? "for a collective" : "for the user");
        group_world_create(&world, 8, part_from_the_next);
        for (int i = 0; i < 8; i++)
            world.process[i].number = number;
        world.process[1].sessions = 1;
        world.process[5].sessions = 2;
        group_start_all(&world);
        loop_hear(world.process[7].child.in);
        loop_tell(world.process[1].child.out, 1);
        loop_tell(world.process[5].child.out, 1);
        loop_hear(world.process[5].child.in);
        loop_tell(world.process[7].child.out, 1);
        group_join_all(&world);
        group_check_all(&world, -1, 0, NULL);
        group_world_destroy(&world);
    }
}

static void only_the_tree(void)
{
    group_run_all(12, settle);
}

/* Rank 3 computes, and rank 0 is in a hurry: that it has no connection in time is no matter of the group. */
static int in_a_hurry(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    struct weft_group *pair = NULL;
    float one = 1, sum = 0;
    int result = weft_group_split(group, process->rank % 3 == 0 ? 0 : -1, 0, GROUP_MS, &pair, err);
    if (result == 0 && process->rank == 0) {
        LOOP_CHECK(weft_group_connection(pair, 1, 0, &connection, err) == -ETIMEDOUT, "'%s'", err->text);
        loop_tell(process->out, 1);
    } else if (result == 0 && process->rank == 3) {
        loop_hear(process->in);
    }
    if (pair && result == 0)
        result = weft_group_all_reduce(pair, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, err);
    LOOP_CHECK(!pair || result < 0 || sum == 2, "%g", (double)sum);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    weft_group_destroy(pair);
    return result;
}

static void short_of_time(void)
{
    struct group_world world;
    group_world_create(&world, 6, in_a_hurry);
    group_start_all(&world);
    loop_hear(world.process[0].child.in);
    loop_tell(world.process[3].child.out, 1);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

/* Ranks 0 and 3 are a pair without a session, twice. All others leave, and rank 3 is killed: nobody tells rank 0 of it.
 * When that is known in one group, it is soon known in the other. */
static int needs_the_dead(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_group *pairs[2] = {NULL, NULL};
    float one = 1, sum = 0;
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++)
        result = weft_group_split(group, process->rank % 3 == 0 ? 0 : -1, 0, GROUP_MS, &pairs[i], err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (result < 0 || process->rank % 3 != 0)
        return result;
    loop_tell(process->out, 1);
    loop_hear(process->in);
    for (int i = 0; i < 2; i++) {
        int64_t began_ms = loop_now_ms();
        result = weft_group_all_reduce(pairs[i], &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, -1, err);
        LOOP_CHECK(result < 0 && strncmp(err->text, "rank 1 (", 8) == 0 && strstr(err->text, "cannot be reached: "),
                   "%d '%s'", result, err->text);
        LOOP_CHECK(i == 0 || loop_now_ms() - began_ms < 15000, "once more %lld ms",
                   (long long)(loop_now_ms() - began_ms));
    }
    for (int i = 0; i < 2; i++)
        weft_group_destroy(pairs[i]);
    return 0;
}

static void leave_rank_0_alone(struct group_world *world, int rails)
{
    group_world_create(world, 6, needs_the_dead);
    for (int i = 0; i < 6; i++)
        world->process[i].rails = rails;
    group_start_all(world);
    loop_hear(world->process[0].child.in);
    loop_hear(world->process[3].child.in);
    for (int i = 1; i < 6; i++)
        if (i != 3)
            loop_child_join(&world->process[i].child);
    loop_child_kill(&world->process[3].child);
    loop_tell(world->process[0].child.out, 1);
}

/* With one address of rank 3, and with two: both at the same time. */
static void nobody_tells(void)
{
    struct group_world worlds[2];
    for (int i = 0; i < 2; i++)
        leave_rank_0_alone(&worlds[i], 1 + i);
    for (int i = 0; i < 2; i++) {
        group_join_all(&worlds[i]);
        group_check_all(&worlds[i], 3, 0, NULL);
        group_world_destroy(&worlds[i]);
    }
}

int main(int argc, char **argv)
{
    bool unreached = argc > 1 && strcmp(argv[1], "nobody_tells") == 0;
    loop_begin(unreached ? 1 : argc, argv);
    const struct CMUnitTest half_a_minute[] = {
        LOOP_CASE(nobody_tells, 90),
    };
    const struct CMUnitTest tests[] = {
        LOOP_CASE(all_pairs, 60),        LOOP_CASE(bounded, 40),      LOOP_CASE(the_limit, 20),
        LOOP_CASE(only_the_tree, 20),    LOOP_CASE(released, 20),     LOOP_CASE(short_of_time, 20),
        LOOP_CASE(released_by_both, 20), LOOP_CASE(one_computes, 20),
    };
    return unreached ? cmocka_run_group_tests(half_a_minute, NULL, NULL) : cmocka_run_group_tests(tests, NULL, NULL);
}
