/* test_collectives_lost.c: a member that dies, stops, leaves or does not come to a collective is named at every other.
 */
#include "group_support.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 5, TIMEOUT_S = 3, WAIT_MS = LOOP_SANITIZED ? 7500 : 3600, ELEMENTS = 200003 };

#define SETTINGS "timeout=3"

static int all_reduce(struct weft_group *group, float *in, float *out, int timeout_ms, struct weft_error *err)
{
    return weft_group_all_reduce(group, in, out, ELEMENTS, WEFT_FLOAT32, WEFT_SUM, timeout_ms, err);
}

/* Waits for `count` completions, until one of them is an error; the memory of those after it may still be in use. */
static int take(struct weft_group *group, int *count, struct weft_error *err)
{
    struct weft_completion completion = {0};
    while (*count > 0 && completion.status == 0) {
        LOOP_CHECK(weft_group_wait(group, -1, &completion, 1) == 1, "no completion");
        *count -= 1;
    }
    if (completion.status < 0)
        snprintf(err->text, sizeof err->text, "%s", completion.text);
    return completion.status;
}

/* All-reduces, one after the other, and two more under way: until one fails. The victim tells when it is in them. */
static int for_ever(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float *in = calloc(6 * ELEMENTS, sizeof *in), *out = in + 3 * ELEMENTS;
    struct weft_error others;
    int result = group_pass(process, group, GROUP_MS, err), under_way = 0;
    for (int i = 0; result == 0; i++) {
        for (int j = 1; j <= 2 && result == 0; j++) {
            result = weft_group_all_reduce_start(group, in + j * ELEMENTS, out + j * ELEMENTS, ELEMENTS, WEFT_FLOAT32,
                                                 WEFT_SUM, 0, NULL, err);
            under_way += result == 0;
        }
        if (result == 0)
            result = all_reduce(group, in, out, -1, err);
        if (result == 0)
            result = take(group, &under_way, err);
        if (process->number == process->rank && i == 2)
            loop_tell(process->out, 1);
    }
    while (under_way > 0)
        take(group, &under_way, &others);
    free(in);
    return result;
}

static void set_up(struct group_world *world, uint32_t victim,
                   int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    group_world_create(world, SIZE, body);
    for (int i = 0; i < SIZE; i++) {
        world->process[i].number = victim;
        world->process[i].settings = SETTINGS;
    }
    group_start_all(world);
    loop_hear(world->process[victim].child.in);
}

static void killed(void)
{
    static const uint32_t victims[] = {0, 3, 1, 4};
    for (size_t i = 0; i < (size_t)LOOP_COUNT(4, 2); i++) {
        struct group_world world;
        loop_note("rank %u is killed", victims[i]);
        set_up(&world, victims[i], for_ever);
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
    static const uint32_t victims[] = {2, 0};
    for (size_t i = 0; i < 2; i++) {
        struct group_world world;
        loop_note("rank %u is stopped", victims[i]);
        set_up(&world, victims[i], for_ever);
        int64_t took_ms = group_stop_one(&world, victims[i]);
        LOOP_CHECK(took_ms < (TIMEOUT_S + 4) * 1000 * LOOP_SLOWER, "it took %lld ms", (long long)took_ms);
        group_check_named(&world, victims[i], "is lost");
        group_world_destroy(&world);
    }
}

/* The victim leaves instead of coming. */
static int leave(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float *in = calloc(2 * ELEMENTS, sizeof *in);
    int result = all_reduce(group, in, in + ELEMENTS, GROUP_MS, err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (result == 0 && process->number == process->rank)
        loop_tell(process->out, 1);
    else if (result == 0)
        result = all_reduce(group, in, in + ELEMENTS, -1, err);
    free(in);
    return result;
}

static void leaves(void)
{
    static const uint32_t victims[] = {4, 0};
    for (size_t i = 0; i < 2; i++) {
        struct group_world world;
        loop_note("rank %u leaves", victims[i]);
        set_up(&world, victims[i], leave);
        group_join_all(&world);
        group_check(&world, (int)victims[i], 0, NULL);
        group_check_named(&world, victims[i], "has left the group");
        group_world_destroy(&world);
    }
}

/* The victim has begun, and leaves all the same. */
static int begin_and_leave(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    static float in[3 * ELEMENTS], out[3 * ELEMENTS];
    int result = all_reduce(group, in, out, GROUP_MS, err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (result < 0 || process->number != process->rank)
        return result < 0 ? result : all_reduce(group, in, out, -1, err);
    for (int i = 0; i < 3 && result == 0; i++)
        result = weft_group_all_reduce_start(group, in + i * ELEMENTS, out + i * ELEMENTS, ELEMENTS, WEFT_FLOAT32,
                                             WEFT_SUM, 0, NULL, err);
    loop_tell(process->out, 1);
    return result;
}

static void leaves_in_the_middle(void)
{
    static const uint32_t victims[] = {2, 0};
    for (size_t i = 0; i < 2; i++) {
        struct group_world world;
        loop_note("rank %u begins and leaves", victims[i]);
        set_up(&world, victims[i], begin_and_leave);
        group_join_all(&world);
        group_check(&world, (int)victims[i], 0, NULL);
        group_check_named(&world, victims[i], "has left the group");
        group_world_destroy(&world);
    }
}

/* The victim does not begin, and rank 2 comes when all others have gone. `value`: in a group of all that is destroyed
 * after the whole; else in the whole. */
static int leave_early(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    static float in[ELEMENTS], out[ELEMENTS];
    int result = process->value ? weft_group_split(group, 0, 0, GROUP_MS, &process->kept, err) : 0;
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (process->rank == 2) {
        loop_tell(process->out, 1);
        loop_hear(process->in);
    }
    if (result < 0 || process->number == process->rank)
        return result;
    return all_reduce(process->value ? process->kept : group, in, out, -1, err);
}

static void leaves_and_one_is_late(void)
{
    for (uint64_t split = 0; split < 2; split++) {
        struct group_world world;
        loop_note(split ? "in a split" : "in the whole");
        group_world_create(&world, SIZE, leave_early);
        for (int i = 0; i < SIZE; i++)
            world.process[i].value = split;
        group_start_all(&world);
        group_join_late(&world, 1u << 2);
        group_check(&world, 0, 0, NULL);
        group_check_named(&world, 0, "has left the group");
        group_world_destroy(&world);
    }
}

/* --- late --- */

/* The late ones come when all others have ended. `number`: a bit for each of them; `value`: what all do. */
static int come_late(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float *in = calloc(2 * ELEMENTS, sizeof *in), *out = in + ELEMENTS;
    int result = all_reduce(group, in, out, GROUP_MS, err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    if (result == 0 && process->number & 1u << process->rank) {
        loop_tell(process->out, 1);
        loop_hear(process->in);
    }
    if (result == 0 && process->value == WEFT_ALL_REDUCE)
        result = all_reduce(group, in, out, WAIT_MS, err);
    else if (result == 0 && process->value == WEFT_BROADCAST)
        result = weft_group_broadcast(group, in, out, ELEMENTS, WEFT_FLOAT32, 1, WAIT_MS, err);
    else if (result == 0)
        result = weft_group_shift(group, in, out, ELEMENTS, WEFT_FLOAT32, 1, WAIT_MS, err);
    if (result == 0) /* who has done its part waits here */
        result = weft_group_barrier(group, GROUP_MS, err);
    free(in);
    return result;
}

static void late(enum weft_collective kind, uint64_t who, const char *names)
{
    struct group_world world;
    loop_note("%s", names);
    group_world_create(&world, SIZE, come_late);
    for (int i = 0; i < SIZE; i++) {
        world.process[i].number = who;
        world.process[i].value = (uint64_t)kind;
    }
    group_start_all(&world);
    group_join_late(&world, who);
    group_check_all(&world, -1, -ETIMEDOUT, names);
    group_check_all(&world, -1, -ETIMEDOUT, "did not start it within");
    group_world_destroy(&world);
}

static void late_members(void)
{
    late(WEFT_ALL_REDUCE, 1u << 3, "collective 2 (all-reduce): rank 3 (");
    late(WEFT_ALL_REDUCE, 1u << 0, "collective 2 (all-reduce): rank 0 (");
    late(WEFT_ALL_REDUCE, 1u << 1 | 1u << 4, "collective 2 (all-reduce): ranks 1, 4 did");
}

/* Rank 1 and rank 2 have done their part when rank 3 does not come: it is the late one all the same. */
static void late_in_a_chain(void)
{
    late(WEFT_BROADCAST, 1u << 3, "collective 2 (broadcast): rank 3 (");
    late(WEFT_SHIFT, 1u << 2, "collective 2 (shift): rank 2 (");
}

/* --- another operation --- */

/* Each is in its first operation: nobody is late. */
static int other_operations(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float in[64] = {0}, out[64];
    if (process->rank == 1)
        return weft_group_barrier(group, WAIT_MS, err);
    return weft_group_all_reduce(group, in, out, 64, WEFT_FLOAT32, WEFT_SUM, WAIT_MS, err);
}

static void another_operation(void)
{
    struct group_world world;
    group_world_create(&world, SIZE, other_operations);
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, -ETIMEDOUT, "though all members are in operations of that number");
    group_world_destroy(&world);
}

/* --- another count --- */

static int other_counts(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float in[64] = {0}, out[64];
    return weft_group_all_reduce(group, in, out, process->rank == 2 ? 63 : 64, WEFT_FLOAT32, WEFT_SUM, GROUP_MS, err);
}

static void another_count(void)
{
    struct group_world world;
    group_world_create(&world, SIZE, other_counts);
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, -EPROTO, "the same count");
    group_world_destroy(&world);
}

/* --- no memory --- */

static bool no_memory;

/* Stands before libweft's. The tags of collectives begin above 32 bits. */
int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    int (*real)(struct weft_connection *, const void *, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = dlsym(RTLD_NEXT, "weft_send");
    LOOP_CHECK(real, "weft_send: %s", dlerror());
    return no_memory && tag >> 32 ? -ENOMEM : real(connection, buffer, length, tag, options, out);
}

static int cannot_send(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    static float in[ELEMENTS], out[ELEMENTS];
    int result = all_reduce(group, in, out, GROUP_MS, err);
    if (result == 0)
        result = group_pass(process, group, GROUP_MS, err);
    no_memory = process->rank == 2;
    return result < 0 ? result : all_reduce(group, in, out, -1, err);
}

/* That member says so of itself, and not of the one that it sends to. */
static void one_without_memory(void)
{
    struct group_world world;
    group_world_create(&world, SIZE, cannot_send);
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, -ENOMEM, "rank 2 (");
    group_check_all(&world, -1, -ENOMEM, "could not post a message of a collective");
    group_world_destroy(&world);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(killed, 60),
        LOOP_CASE(stopped, 60),
        LOOP_CASE(leaves, 40),
        LOOP_CASE(leaves_in_the_middle, 40),
        LOOP_CASE(leaves_and_one_is_late, 40),
        LOOP_CASE(late_members, 60),
        LOOP_CASE(late_in_a_chain, 40),
        LOOP_CASE(another_operation, 30),
        LOOP_CASE(another_count, 20),
        LOOP_CASE(one_without_memory, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
