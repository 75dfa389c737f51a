/*
 * What of device memory can be tried without a network card that writes to it: operations that speak of it, on
 * ordinary streams. Nothing is asked of engines that encrypt, whose bytes must be in host memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "engine_contract.h"

#define NO_BINDING 0x7ffffff1u
#define BYTES 100000u

/* Bytes in host memory come as in any receive, and no word of fragments with them. */
void receives_ordinary_bytes_with_control(const struct implementation *of)
{
    if (of->keyed)
        return;
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    static uint8_t sent[BYTES], got[BYTES];
    uint8_t room[256];
    struct wf_control control = {.bytes = room, .room = sizeof room, .length = 77};
    struct task receive = {0}, send = {0};
    pattern_fill(sent, sizeof sent, 1, 0);
    receive.op.control = &control;
    task_buffer(&receive, got, sizeof got);
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(&world);
    assert_int_equal(receive.returned, 0);
    task_buffer(&send, sent, sizeof sent);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    for (size_t total = 0; total < sizeof got;) {
        int64_t n = world_await(&world, &receive);
        assert_in_range(n, 1, sizeof got - total);
        assert_int_equal(control.length, 0);
        total += (size_t)n;
        if (total == sizeof got)
            break;
        task_buffer(&receive, got + total, sizeof got - total);
        task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    }
    assert_int_equal(world_await(&world, &send), sizeof sent);
    pattern_check(got, sizeof got, 1, 0);
    task_buffer(&receive, got, sizeof got);
    task_post(&world, 0, &receive, WF_OP_RECV, pair.server);
    world_idle(&world);
    world.engines[0]->ops->cancel(world.engines[0], &receive.op);
    assert_int_equal(world_await(&world, &receive), -ECANCELED);
    pair_close(&world, &pair);
    world_close(&world);
}

/* A few bytes still come through. The receive waits for them: a simulated stream goes on with a shortened send only
 * when somebody reads. */
static void carries_on(struct world *world, const struct pair *pair)
{
    struct task send = {0}, receive = {0};
    char got[4] = "";
    task_buffer(&receive, got, 3);
    task_post(world, 0, &receive, WF_OP_RECV, pair->server);
    task_buffer(&send, "abc", 3);
    task_post(world, 0, &send, WF_OP_SEND, pair->client);
    for (size_t total = (size_t)world_await(world, &receive); total < 3;)
        total += (size_t)task_run(world, &receive, WF_OP_RECV, pair->server, got + total, 3 - total);
    assert_int_equal(world_await(world, &send), 3);
    assert_string_equal(got, "abc");
}

/* The kernel knows no such memory: an error, and the stream carries on. */
void refuses_an_unknown_binding(const struct implementation *of)
{
    if (of->keyed)
        return;
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    struct task send = {0};
    send.op.binding = NO_BINDING;
    task_buffer(&send, NULL, 4096); /* an offset */
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    assert_in_range(-world_await(&world, &send), 1, 4095);
    assert_int_equal(send.op.lent, 0);
    carries_on(&world, &pair);
    pair_close(&world, &pair);
    world_close(&world);
}

/* Tokens that the stream never had change nothing for it. */
void gives_back_what_it_never_had(const struct implementation *of)
{
    if (of->keyed)
        return;
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair pair = pair_open(&world, 0);
    const struct wf_tokens ranges[] = {{0, 4}, {100, 1}};
    assert_non_null(world.ops->give_back);
    int result = world.ops->give_back(world.host, pair.server, ranges, 2);
    assert_true(result <= 0); /* a kernel without device memory refuses the call */
    carries_on(&world, &pair);
    pair_close(&world, &pair);
    world_close(&world);
}
