/* test_group.c: processes come together, all know all, and barriers are in order. */
#include "group_support.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BARRIERS = 20 };

/* Stands before the C library's: each process is told at its third question that the name is 127.0.1.1. The real one is
 * not needed: addresses are not looked up. */
__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints, struct addrinfo **out)
{
    static _Atomic int asked;
    static struct sockaddr_in address = {.sin_family = AF_INET};
    static struct addrinfo found = {
        .ai_family = AF_INET, .ai_addrlen = sizeof address, .ai_addr = (struct sockaddr *)&address};
    (void)node;
    (void)service;
    (void)hints;
    if (++asked < 3)
        return EAI_NONAME;
    inet_pton(AF_INET, "127.0.1.1", &address.sin_addr);
    *out = &found;
    return 0;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *found)
{
    (void)found;
}

static void check_times(const struct weft_group *group)
{
    struct weft_group_times times;
    weft_group_times(group, &times);
    LOOP_CHECK(
        times.opened_ns > 0 && times.found_ns >= times.opened_ns && times.connected_ns >= times.found_ns &&
            times.met_ns >= times.connected_ns && times.made_ns >= times.met_ns && times.made_ns < GROUP_MS * 1000000LL,
        "opened after %lld ns, found %lld, connected %lld, met %lld, made %lld", (long long)times.opened_ns,
        (long long)times.found_ns, (long long)times.connected_ns, (long long)times.met_ns, (long long)times.made_ns);
    /* who had to dial rank 0 did not find and connect in no time */
    LOOP_CHECK(weft_group_size(group) == 1 || (times.found_ns > times.opened_ns && times.connected_ns > times.found_ns),
               "rank %u took no time", weft_group_rank(group));
}

static int pass_many(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    LOOP_CHECK(weft_group_rank(group) == process->rank && weft_group_size(group) == process->size, "rank %u of %u",
               weft_group_rank(group), weft_group_size(group));
    LOOP_CHECK(weft_group_local_rank(group) == process->rank, "all are on one host, and rank %u is number %u",
               process->rank, weft_group_local_rank(group));
    for (uint32_t i = 0; i < process->size; i++) {
        char start[32];
        snprintf(start, sizeof start, "rank %u (", i);
        LOOP_CHECK(strncmp(weft_group_member_name(group, i), start, strlen(start)) == 0, "'%s'",
                   weft_group_member_name(group, i));
    }
    check_times(group);
    int result = 0;
    for (int i = 0; i < BARRIERS && result == 0; i++)
        result = group_pass(process, group, GROUP_MS, err);
    return result;
}

static void come_together(uint32_t size)
{
    struct group_world world;
    loop_note("%u processes", size);
    group_world_create(&world, size, pass_many);
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    char words[64];
    snprintf(words, sizeof words, "rank 1 of %u by options, meeting at file:", size);
    LOOP_CHECK(strncmp(world.shared->source[1], words, strlen(words)) == 0, "'%s'", world.shared->source[1]);
    group_world_destroy(&world);
}

static void two_to_sixteen(void)
{
    static const uint32_t sizes[] = {2, 3, 4, 5, 7, 8, 11, 16};
    for (size_t i = 0; i < (size_t)LOOP_COUNT(8, 4); i++)
        come_together(sizes[i]);
}

static int alone_body(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    return group_pass(process, group, 1000, err);
}

static void alone(void)
{
    group_run_all(1, alone_body);
}

/* Rank 0 listens where all know it beforehand. */
static void meet_at(const char *host)
{
    struct group_world world;
    int port, held = loop_hold_port(&port);
    group_world_create(&world, 4, pass_many);
    snprintf(world.rendezvous, sizeof world.rendezvous, "%s:%d", host, port);
    for (int i = world.count - 1; i >= 0; i--)
        group_start(&world.process[i]);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
    close(held);
}

static void at_an_address(void)
{
    meet_at("127.0.1.1");
}

/* As a pod of Kubernetes, whose name comes after its process has started. */
static void at_a_name_that_comes_late(void)
{
    meet_at("rank-0.late");
}

/* --- barriers that are begun and polled --- */

static int poll_barriers(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_completion completions[4];
    int marks[8], polled = 0;
    (void)process;
    for (int i = 0; i < 8; i++) {
        int result = weft_group_barrier_start(group, GROUP_MS, &marks[i], err);
        if (result < 0)
            return result;
    }
    while (polled < 8) {
        int count = weft_group_poll(group, completions, 4);
        LOOP_CHECK(count >= 0, "weft_group_poll: %d", count);
        for (int i = 0; i < count; i++, polled++)
            LOOP_CHECK(completions[i].status == 0 && completions[i].user_data == &marks[polled], "barrier %d: %d, '%s'",
                       polled, completions[i].status, completions[i].text);
        if (count == 0)
            LOOP_CHECK(loop_readable(weft_group_fd(group), GROUP_MS), "nothing happens after %d barriers", polled);
    }
    LOOP_CHECK(weft_group_wait(group, 0, completions, 4) == -ETIMEDOUT, "more barriers than were begun");
    return group_pass(process, group, GROUP_MS, err);
}

static void begun_and_polled(void)
{
    group_run_all(5, poll_barriers);
}

/* --- addresses of the caller's own --- */

static char *own_addresses[8];

static int from_body(int in, int out, void *arg)
{
    const struct group_process *process = arg;
    struct weft_group *group;
    struct weft_error err = {0};
    (void)in, (void)out;
    struct weft_context *context = loop_context(NULL, 1);
    LOOP_CALL(weft_group_create_from(context, (const char *const *)own_addresses, process->size, process->rank, "own",
                                     GROUP_MS, &group, &err),
              &err);
    for (int i = 0; i < BARRIERS; i++)
        LOOP_CALL(weft_group_barrier(group, GROUP_MS, &err), &err);
    weft_group_destroy(group);
    loop_context_end(context);
    return 0;
}

static void from_addresses(void)
{
    struct group_world world;
    int held[6], port;
    group_world_create(&world, 6, NULL);
    for (int i = 0; i < 6; i++) {
        held[i] = loop_hold_port(&port);
        LOOP_CHECK(asprintf(&own_addresses[i], "127.0.1.1:%d", port) > 0, "no memory");
    }
    for (int i = 0; i < 6; i++)
        loop_child_start(&world.process[i].child, from_body, &world.process[i]);
    group_join_all(&world);
    for (int i = 0; i < 6; i++) {
        close(held[i]);
        free(own_addresses[i]);
    }
    group_world_destroy(&world);
}

/* --- one group after the other --- */

struct again {
    char meeting[64];
    uint32_t rank;
};

/* Rank 0 is told when the other one has left, and asks for the next group. */
static int again_body(int in, int out, void *arg)
{
    const struct again *again = arg;
    struct weft_group_options options = {.size = 2, .rank = again->rank, .rendezvous = again->meeting};
    struct weft_context *context = loop_context(NULL, 1);
    for (int turn = 0; turn < 3; turn++) {
        struct weft_group *group = NULL;
        struct weft_error err = {0};
        LOOP_CALL(weft_group_create(context, &options, GROUP_MS, &group, &err), &err);
        LOOP_CALL(weft_group_barrier(group, GROUP_MS, &err), &err);
        if (again->rank == 0)
            loop_hear(in);
        weft_group_destroy(group);
        if (again->rank == 1)
            loop_tell(out, (uint64_t)turn);
    }
    loop_context_end(context);
    return 0;
}

/* The next group of a context meets where the last one did, which a slower member has not left yet. */
static void the_next_one_at_the_same_place(void)
{
    struct again again[2] = {{.rank = 0}, {.rank = 1}};
    struct loop_child child[2];
    int port, held = loop_hold_port(&port);
    for (int i = 0; i < 2; i++) {
        snprintf(again[i].meeting, sizeof again[i].meeting, "127.0.1.1:%d", port);
        loop_child_start(&child[i], again_body, &again[i]);
    }
    for (uint64_t turn = 0; turn < 3; turn++) {
        LOOP_CHECK(loop_hear(child[1].in) == turn, "turn %d", (int)turn);
        loop_sleep_ms(200); /* it calls: that it has is nowhere to be seen but in the failure of this test */
        loop_tell(child[0].out, 1);
    }
    for (int i = 0; i < 2; i++)
        loop_child_join(&child[i]);
    close(held);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(two_to_sixteen, 60),
        LOOP_CASE(alone, 10),
        LOOP_CASE(at_a_name_that_comes_late, 60),
        LOOP_CASE(at_an_address, 20),
        LOOP_CASE(begun_and_polled, 20),
        LOOP_CASE(from_addresses, 20),
        LOOP_CASE(the_next_one_at_the_same_place, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
