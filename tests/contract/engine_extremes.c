/* More than a ring has room for, and memory that is lent for as long as a peer pleases. */
#include "engine_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

#ifdef __SANITIZE_THREAD__ /* it takes long over the buffers of encrypted pairs */
#define KEYED_PAIRS 30
#else
#define KEYED_PAIRS 300
#endif

/* Hundreds of descriptors wait at once, get something at once, and are cancelled at once. */
void serves_hundreds_at_once(const struct implementation *of)
{
    int count = of->keyed ? KEYED_PAIRS : 300;
    struct world world;
    world_open(&world, of, 1, 0);
    struct pair *pairs = calloc((size_t)count, sizeof(*pairs));
    struct task *receives = calloc((size_t)count, sizeof(*receives)), send = {0};
    uint8_t *got = calloc((size_t)count, 1);
    for (int i = 0; i < count; i++) {
        pairs[i] = pair_open(&world, 0);
        task_buffer(&receives[i], &got[i], 1);
        task_post(&world, 0, &receives[i], WF_OP_RECV, pairs[i].server);
    }
    world_idle(&world);
    for (int i = 0; i < count; i++) {
        uint8_t byte = pattern(7, (uint64_t)i);
        assert_int_equal(receives[i].returned, 0);
        assert_int_equal(task_run(&world, &send, WF_OP_SEND, pairs[i].client, &byte, 1), 1);
    }
    for (int i = 0; i < count; i++) {
        assert_int_equal(world_await(&world, &receives[i]), 1);
        pattern_check(&got[i], 1, 7, (uint64_t)i);
        task_buffer(&receives[i], &got[i], 1);
        task_post(&world, 0, &receives[i], WF_OP_RECV, pairs[i].server);
    }
    world_idle(&world);
    for (int i = 0; i < count; i++)
        world.ops->cancel(world.engines[0], &receives[i].op);
    for (int i = 0; i < count; i++) {
        assert_int_equal(world_await(&world, &receives[i]), -ECANCELED);
        pair_close(&world, &pairs[i]);
    }
    free(got);
    free(receives);
    free(pairs);
    world_close(&world);
}

/* Reads up to the end of the stream, or until the send is back. */
static uint64_t read_pattern(struct world *world, int fd, uint64_t total, const struct task *send)
{
    static uint8_t got[4096];
    struct task receive = {0};
    while (!send || !send->returned) {
        int64_t n = task_run(world, &receive, WF_OP_RECV, fd, got, sizeof(got));
        if (!n)
            break;
        assert_true(n > 0);
        pattern_check(got, (size_t)n, 6, total);
        total += (uint64_t)n;
    }
    return total;
}

static void lend(const struct implementation *of, bool kill)
{
    enum { BULK = 4 << 20 };
    struct world world;
    world_open(&world, of, 1, 16 * 1024);
    struct pair pair = pair_open(&world, 8192);
    uint8_t *bytes = malloc(BULK);
    pattern_fill(bytes, BULK, 6, 0);
    struct task send = {0};
    task_buffer(&send, bytes, BULK);
    task_post(&world, 0, &send, WF_OP_SEND, pair.client);
    world_idle(&world);
    world.ops->cancel(world.engines[0], &send.op);
    world_idle(&world);
    assert_int_equal(send.returned, 0); /* nobody has read: the kernel still will */
    if (kill)
        world.ops->kill(world.host, pair.client);
    uint64_t total = kill ? 0 : read_pattern(&world, pair.server, 0, &send);
    assert_int_equal(world_await(&world, &send), -ECANCELED);
    memset(bytes, 0, BULK); /* it is ours again: what the peer has not read yet must not change */
    if (!kill) {
        world.ops->shutdown(world.host, pair.client);
        assert_int_equal(read_pattern(&world, pair.server, total, NULL), send.op.moved);
    }
    free(bytes);
    pair_close(&world, &pair);
    world_close(&world);
}

void holds_a_send_while_its_memory_is_lent(const struct implementation *of)
{
    if (!of->zero_copy) {
        print_message("skipped: this engine copies\n");
        skip();
    }
    lend(of, false);
    lend(of, true);
}

static bool kernel_tells_of_copies(void)
{
    struct utsname name;
    int major, minor;
    return uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2 &&
           (major > 6 || (major == 6 && minor >= 2));
}

/* Loopback copies what was lent as it delivers it. Once that has been told often enough, nothing is lent any more: a
 * send that nobody reads is back as soon as the kernel has taken it. */
void stops_lending_what_is_copied(const struct implementation *of)
{
    enum { PIECE = 16 * 1024, ENOUGH = 32 };
    if (!of->zero_copy || !kernel_tells_of_copies()) {
        print_message("skipped: this engine copies, or the kernel does not tell\n");
        skip();
    }
    struct world world;
    world_open(&world, of, 1, PIECE);
    struct pair pair = pair_open(&world, 0);
    static uint8_t bytes[PIECE], got[PIECE];
    pattern_fill(bytes, PIECE, 6, 0);
    for (int i = 0; i <= ENOUGH; i++) {
        struct task send = {0}, receive = {0};
        task_buffer(&send, bytes, PIECE);
        task_post(&world, 0, &send, WF_OP_SEND, pair.client);
        if (i < ENOUGH)
            for (int64_t total = 0; total < PIECE;)
                total += task_run(&world, &receive, WF_OP_RECV, pair.server, got, sizeof(got));
        else
            world_idle(&world);
        if (i == ENOUGH)
            assert_int_equal(send.returned, 1);
        assert_int_equal(world_await(&world, &send), PIECE);
    }
    pair_close(&world, &pair);
    world_close(&world);
}
