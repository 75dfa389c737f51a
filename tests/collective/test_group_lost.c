/* test_group_lost.c: a member that dies, stops or leaves ends the others with its name. */
#include "group_support.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 7, TIMEOUT_S = 3 };

#define SETTINGS "timeout=3"

/* The victim waits for what comes; the others for the victim. */
static int wait_for_victim(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result = group_pass(process, group, GROUP_MS, err);
    if (result == 0 && process->number == process->rank) {
        loop_tell(process->out, 1);
        loop_hear(process->in);
        return 0; /* leaves */
    }
    return result < 0 ? result : weft_group_barrier(group, -1, err);
}

static void set_up(struct group_world *world, uint32_t victim)
{
    group_world_create(world, SIZE, wait_for_victim);
    for (int i = 0; i < SIZE; i++) {
        world->process[i].number = victim;
        world->process[i].settings = SETTINGS;
    }
    group_start_all(world);
    loop_hear(world->process[victim].child.in);
}

static void killed(void)
{
    static const uint32_t victims[] = {0, 1, 2, 6};
    for (size_t i = 0; i < (size_t)LOOP_COUNT(4, 2); i++) {
        struct group_world world;
        loop_note("rank %u is killed", victims[i]);
        set_up(&world, victims[i]);
        loop_child_kill(&world.process[victims[i]].child);
        int64_t began_ms = loop_now_ms();
        group_join_all(&world);
        LOOP_CHECK(loop_now_ms() - began_ms < (TIMEOUT_S + 2) * 1000 * LOOP_SLOWER, "it took %lld ms",
                   (long long)(loop_now_ms() - began_ms));
        group_check_named(&world, victims[i], "is lost");
        group_world_destroy(&world);
    }
}

static void stopped(void)
{
    static const uint32_t victims[] = {1, 0};
    for (size_t i = 0; i < 2; i++) {
        struct group_world world;
        loop_note("rank %u is stopped", victims[i]);
        set_up(&world, victims[i]);
        int64_t took_ms = group_stop_one(&world, victims[i]);
        LOOP_CHECK(took_ms < (TIMEOUT_S + 4) * 1000 * LOOP_SLOWER, "it took %lld ms", (long long)took_ms);
        group_check_named(&world, victims[i], "is lost");
        group_world_destroy(&world);
    }
}

static int join_and_wait(int in, int out, void *arg)
{
    struct group_world *world = arg;
    struct weft_group_options options = {.size = 2, .rank = 1, .rendezvous = world->rendezvous};
    struct weft_error err = {0};
    struct weft_group *group;
    struct weft_context *context = loop_context(SETTINGS, 1);
    LOOP_CALL(weft_group_create(context, &options, GROUP_MS, &group, &err), &err);
    loop_tell(out, 1);
    loop_hear(in);
    return 0;
}

/* It does not answer the goodbye either: nothing of its group is left in the context. */
static void another_group_after_one_stopped(void)
{
    struct group_world world;
    struct weft_error err = {0};
    struct weft_group *group;
    group_world_create(&world, 2, NULL);
    struct loop_child *child = &world.process[1].child;
    loop_child_start(child, join_and_wait, &world);
    struct weft_context *context = loop_context(SETTINGS, 1);
    struct weft_group_options options = {.size = 2, .rendezvous = world.rendezvous};
    LOOP_CALL(weft_group_create(context, &options, GROUP_MS, &group, &err), &err);
    loop_hear(child->in);
    loop_child_stop(child);
    weft_group_destroy(group);
    options = (struct weft_group_options){.size = 1};
    LOOP_CALL(weft_group_create(context, &options, GROUP_MS, &group, &err), &err);
    weft_group_destroy(group);
    loop_child_kill(child);
    loop_context_end(context);
    group_world_destroy(&world);
}

static void leaves(void)
{
    static const uint32_t victims[] = {0, 1, 5};
    for (size_t i = 0; i < 3; i++) {
        struct group_world world;
        loop_note("rank %u leaves", victims[i]);
        set_up(&world, victims[i]);
        loop_tell(world.process[victims[i]].child.out, 1);
        group_join_all(&world);
        group_check(&world, (int)victims[i], 0, NULL);
        group_check_named(&world, victims[i], "has left the group");
        group_world_destroy(&world);
    }
}

/* Dies before all have come: nobody waits for the rest of the time. */
static int play_and_die(int in, int out, void *arg)
{
    struct group_world *world = arg;
    char answer[512];
    struct weft_context *context = loop_context(SETTINGS, 1);
    int tag = group_play(world, context, GROUP_VERSION, 2, 4, answer);
    LOOP_CHECK(tag == 2, "answer %d '%s'", tag, answer);
    loop_tell(out, 1);
    loop_hear(in);
    return 0;
}

static void killed_while_others_come(void)
{
    struct group_world world;
    group_world_create(&world, 4, wait_for_victim);
    for (int i = 0; i < 4; i++) {
        world.process[i].settings = SETTINGS;
        world.process[i].timeout_ms = 60000 * LOOP_SLOWER;
    }
    group_start(&world.process[0]);
    group_start(&world.process[1]);
    loop_child_start(&world.process[2].child, play_and_die, &world);
    loop_hear(world.process[2].child.in);
    loop_child_kill(&world.process[2].child);
    group_join_all(&world);
    for (int i = 0; i < 2; i++) {
        LOOP_CHECK(world.shared->status[i] < 0, "rank %d did not fail", i);
        LOOP_CHECK(strncmp(world.shared->text[i], "rank 2 (played", 14) == 0 ||
                       (i == 1 && strstr(world.shared->text[i], "rank 0 did not take")),
                   "'%s'", world.shared->text[i]);
    }
    group_world_destroy(&world);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(killed, 60),
        LOOP_CASE(stopped, 60),
        LOOP_CASE(another_group_after_one_stopped, 20),
        LOOP_CASE(leaves, 40),
        LOOP_CASE(killed_while_others_come, 40),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
