/* From control messages to gather lists and back to tokens: written-down cases, and random streams that are compared
 * byte by byte. Argument: the seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intake_fixture.h"

static uint64_t seed = 20261125;

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(draw(state) % limit);
}

/* --- placing --- */

static void fragments_in_order_fill_their_chunk(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    assert_int_equal(world_tell(world, 16 * WORLD_SLOT, 100), 0);
    world_take_full(world, 8);
    assert_true(world_place(world));
    assert_int_equal(world->batch.gather_count, 8);
    assert_int_equal(world->batch.copy_count, 0);
    assert_int_equal(world->batch.number, 1);
    assert_int_equal(world->batch.position, 8 * WORLD_SLOT);
    assert_int_equal(world->gathers[1].to - world->gathers[0].to, WORLD_SLOT);
    assert_false(world_place(world));
    world_take_full(world, 8);
    assert_int_equal(wf_devmem_intake_counts(world->intake).device_bytes, 16 * WORLD_SLOT);
    world_drain(world);
    world_destroy(world);
}

static void fragments_may_come_before_their_header(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    world_take_full(world, 3);
    assert_false(world_place(world));
    assert_int_equal(wf_devmem_intake_held(world->intake), 3);
    assert_int_equal(world_tell(world, WORLD_SLOT + 1, 5), 0);
    assert_true(world_place(world));
    assert_int_equal(world->batch.gather_count, 2);
    assert_int_equal(world->batch.position, WORLD_SLOT + 1);
    assert_int_equal(world_tell(world, 2 * WORLD_SLOT - 1, WORLD_SLOT * 4), 0);
    world_drain(world);
    world_destroy(world);
}

static void headers_may_come_before_their_fragments(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(world_tell(world, 1000, (7 - i) * 2000), 0);
    assert_int_equal(world_tell(world, 1000, 50000), -ENOBUFS);
    assert_false(world_place(world));
    world_take_full(world, 1);
    assert_true(world_place(world));
    assert_int_equal(world->batch.gather_count, 5); /* four chunks, and the start of the fifth */
    assert_int_equal(world_tell(world, 1000, 50000), 0);
    world_fragment(world, WORLD_SLOT);
    world_fragment(world, 9 * 1000 - 2 * WORLD_SLOT);
    assert_int_equal(world_take(world, 0), 0);
    world_drain(world);
    world_destroy(world);
}

/* Eight messages whose chunks take turns, in an order of their own. */
static void chunks_of_eight_messages_may_be_shuffled(void **state)
{
    struct world *world = world_create(1024, 64);
    uint32_t next[8] = {0};
    uint64_t random = seed;

    (void)state;
    for (int i = 0; i < 200; i++) {
        uint32_t message = below(&random, 8);
        uint32_t bytes = 3 * WORLD_SLOT + below(&random, WORLD_SLOT);
        assert_int_equal(world_tell(world, bytes, message * (512 << 10) + next[message]), 0);
        next[message] += bytes;
        for (uint32_t left = bytes; left > 0;) {
            uint32_t part = left < WORLD_SLOT ? left : WORLD_SLOT;
            world_fragment(world, part);
            left -= part;
        }
        assert_int_equal(world_take(world, 0), 0);
        if (i % 8 == 7)
            world_drain(world);
    }
    world_drain(world);
    world_destroy(world);
}

static void parts_in_host_memory_keep_their_place_in_the_stream(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    assert_int_equal(world_tell(world, 100000, 64), 0);
    world_linear(world, 100);
    world_fragment(world, WORLD_SLOT);
    world_linear(world, 1);
    world_linear(world, 7);
    world_fragment(world, 3);
    assert_int_equal(world_take(world, 0), 0);
    assert_int_equal(world_take(world, 5000), 0); /* an ordinary packet */
    assert_true(world_place(world));
    assert_int_equal(world->batch.gather_count, 2);
    assert_int_equal(world->batch.copy_count, 4);
    assert_ptr_equal(world->copies[1].from, (const uint8_t *)world->copies[0].from + 100);
    assert_int_equal(wf_devmem_intake_counts(world->intake).host_bytes, 5108);
    assert_int_equal(wf_devmem_intake_held(world->intake), 2);
    world_drain(world);
    world_destroy(world);
}

static void what_nobody_wants_is_dropped_and_goes_back(void **state)
{
    struct world *world = world_create(64, 8);
    uint32_t ranges;

    (void)state;
    assert_int_equal(world_tell(world, 2 * WORLD_SLOT, -1), 0);
    world_take_full(world, 2);
    assert_true(world_place(world));
    assert_int_equal(world->batch.gather_count + world->batch.copy_count, 0);
    assert_int_equal(world_give_back(world, &ranges), 0);
    assert_int_equal(wf_devmem_intake_done(world->intake, 1), 0);
    assert_int_equal(world_give_back(world, &ranges), 2);
    world_destroy(world);
}

static void a_batch_ends_where_a_list_does(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    world->batch.gathers_max = 3;
    world->batch.copies_max = 1;
    assert_int_equal(world_tell(world, 7 * WORLD_SLOT + 20, 0), 0);
    world_take_full(world, 7);
    world_linear(world, 10);
    world_linear(world, 10);
    assert_int_equal(world_take(world, 0), 0);
    for (int i = 1; i <= 4; i++) {
        assert_true(world_place(world));
        assert_int_equal(world->batch.number, i);
    }
    assert_false(world_place(world));
    assert_int_equal(world->batch.position, 7 * WORLD_SLOT + 20);
    assert_int_equal(wf_devmem_intake_done(world->intake, 4), 0);
    world_drain(world);
    world_destroy(world);
}

/* --- tokens --- */

static void a_token_waits_for_the_batch_of_its_last_byte(void **state)
{
    struct world *world = world_create(64, 8);
    uint32_t ranges;

    (void)state;
    assert_int_equal(world_tell(world, WORLD_SLOT + 1, 0), 0);
    world_take_full(world, 3);
    assert_true(world_place(world));
    assert_int_equal(world_give_back(world, &ranges), 0);
    assert_int_equal(wf_devmem_intake_done(world->intake, 1), 0);
    assert_int_equal(world_give_back(world, &ranges), 1); /* of the second one a byte was placed */
    assert_int_equal(world_tell(world, 2 * WORLD_SLOT - 1, WORLD_SLOT + 1), 0);
    assert_true(world_place(world));
    assert_int_equal(world_give_back(world, &ranges), 0);
    assert_int_equal(wf_devmem_intake_done(world->intake, 3), -EINVAL);
    assert_int_equal(wf_devmem_intake_done(world->intake, 0), -EINVAL);
    assert_int_equal(wf_devmem_intake_done(world->intake, 2), 0);
    assert_int_equal(wf_devmem_intake_done(world->intake, 1), 0); /* takes nothing back */
    assert_int_equal(world_give_back(world, &ranges), 2);
    assert_int_equal(ranges, 1);
    world_destroy(world);
}

/* Fragments come, are placed and done, in messages of up to `message`. */
static struct world *world_with(uint32_t fragments, uint32_t message)
{
    struct world *world = world_create(fragments, 8);

    assert_int_equal(world_tell(world, (uint64_t)fragments * 1000, 0), 0);
    for (uint32_t i = 0; i < fragments;) {
        for (uint32_t k = 0; k < message && i < fragments; k++, i++)
            world_fragment(world, 1000);
        assert_int_equal(world_take(world, 0), 0);
    }
    while (world_place(world))
        assert_int_equal(wf_devmem_intake_done(world->intake, world->batch.number), 0);
    return world;
}

/* The kernel would keep the 1025th, and not say so. */
static void no_call_gives_more_than_1024_fragments(void **state)
{
    struct world *world = world_with(1025, 50);
    uint32_t ranges;

    (void)state;
    assert_int_equal(wf_devmem_intake_held(world->intake), 1025);
    assert_int_equal(wf_devmem_intake_room(world->intake), 0);
    assert_int_equal(world_give_back(world, &ranges), 1024);
    assert_int_equal(ranges, 1);
    assert_int_equal(wf_devmem_intake_room(world->intake), 1024);
    assert_int_equal(world_give_back(world, &ranges), 1);
    assert_int_equal(ranges, 1);
    assert_int_equal(world_give_back(world, &ranges), 0);
    assert_int_equal(ranges, 0);
    world_destroy(world);
}

/* Every second token, so that none can join another. */
static void no_call_gives_more_than_128_ranges(void **state)
{
    struct world *world = world_create(1000, 8);
    uint32_t ranges;

    (void)state;
    assert_int_equal(world_tell(world, 129, 0), 0);
    for (int i = 0; i < 129; i++) {
        world->next_token = (uint32_t)(i * 2 % 129); /* up, and then the ones in between */
        world_fragment(world, 1);
        if (i % 43 == 42)
            assert_int_equal(world_take(world, 0), 0);
    }
    assert_true(world_place(world));
    assert_int_equal(wf_devmem_intake_done(world->intake, 1), 0);
    assert_int_equal(world_give_back(world, &ranges), 128);
    assert_int_equal(ranges, 128);
    assert_int_equal(world_give_back(world, &ranges), 1);
    assert_int_equal(ranges, 1);
    world_destroy(world);
}

/* Batches are small, and ranges need not be. */
static void ranges_join_across_batches(void **state)
{
    struct world *world = world_create(512, 8);
    uint32_t ranges;

    (void)state;
    assert_int_equal(world_tell(world, 100 * WORLD_SLOT, 0), 0);
    for (int i = 0; i < 100; i++) {
        world_take_full(world, 1);
        assert_true(world_place(world));
    }
    assert_int_equal(wf_devmem_intake_done(world->intake, 60), 0);
    assert_int_equal(world_give_back(world, &ranges), 60);
    assert_int_equal(ranges, 1);
    assert_int_equal(wf_devmem_intake_held(world->intake), 40);
    world_drain(world);
    world_destroy(world);
}

/* Tokens are numbers of 32 bits, and what comes behind the last is no neighbour of it. */
static void the_last_number_of_a_token_ends_a_range(void **state)
{
    struct world *world = world_create(8, 8);
    struct wf_devmem_tokens tokens[WF_DEVMEM_RANGES_MAX];
    uint32_t fragments;

    (void)state;
    assert_int_equal(world_tell(world, 4, -1), 0);
    for (uint32_t i = 0; i < 4; i++) {
        struct wf_devmem_cmsg data = {.bytes = 1, .token = UINT32_MAX - 1 + i, .dmabuf = WORLD_DMABUF};
        world_control(world, SOL_SOCKET, 79, &data, sizeof data);
    }
    world->received = 4;
    assert_int_equal(world_take(world, 0), 0);
    assert_true(world_place(world));
    assert_int_equal(wf_devmem_intake_done(world->intake, 1), 0);
    assert_int_equal(wf_devmem_intake_give_back(world->intake, tokens, &fragments), 2);
    assert_int_equal(fragments, 4);
    assert_true(tokens[0].start == UINT32_MAX - 1 && tokens[0].count == 2);
    assert_true(tokens[1].start == 0 && tokens[1].count == 2);
    world_destroy(world);
}

/* --- random streams --- */

static void take_random(struct world *world, uint64_t *random)
{
    uint32_t room = wf_devmem_intake_room(world->intake), parts = 1 + below(random, 12);

    if (room == 0)
        return;
    if (below(random, 10) == 0) {
        assert_int_equal(world_take(world, 1 + below(random, 9000)), 0);
        return;
    }
    for (uint32_t i = 0; i < parts && i < room; i++)
        if (below(random, 5) == 0)
            world_linear(world, 1 + below(random, 300));
        else
            world_fragment(world, below(random, 3) ? WORLD_SLOT : 1 + below(random, WORLD_SLOT));
    assert_int_equal(world_take(world, 0), 0);
}

/* The GPU ends batches late, in order, and the kernel gets back what it may have. */
static void step(struct world *world, uint64_t *random, uint32_t *to, uint64_t *done)
{
    uint32_t bytes = 1 + below(random, 3 * WORLD_SLOT), ranges;

    switch (below(random, 5)) {
    case 0:
    case 1:
        if (world->told >= world->position + 40 * WORLD_SLOT || *to + bytes > WORLD_MEMORY ||
            world->chunk_count == WORLD_CHUNKS)
            break;
        if (world_tell(world, bytes, below(random, 20) ? (int64_t)*to : -1) == 0)
            *to += bytes + below(random, 2);
        break;
    case 2:
        if (world->position < world->told + 20 * WORLD_SLOT)
            take_random(world, random);
        break;
    case 3:
        world->batch.gathers_max = 1 + below(random, 30);
        world->batch.copies_max = 1 + below(random, 5);
        world_place(world);
        break;
    default:
        *done += below(random, 3);
        *done = *done < world->batch.number ? *done : world->batch.number;
        assert_int_equal(wf_devmem_intake_done(world->intake, *done), *done ? 0 : -EINVAL);
        world_give_back(world, &ranges);
    }
}

/* Host memory is used again after 1 MiB: bytes that wait must not be that old. */
static void random_streams_land_where_they_belong(void **state)
{
    (void)state;
    for (int run = 0; run < 30; run++) {
        uint64_t random = seed + (uint64_t)run, done = 0;
        uint32_t to = 0;
        struct world *world = world_create(1 + below(&random, 400), 1 + below(&random, 60));
        for (int i = 0; i < 4000; i++)
            step(world, &random, &to, &done);
        world->batch.gathers_max = world->batch.copies_max = WORLD_LIST;
        while (world_place(world))
            continue;
        if (world->told < world->position) /* all chunks are placed, so there is room for one */
            assert_int_equal(world_tell(world, world->position - world->told, -1), 0);
        world_drain(world);
        world_destroy(world);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fragments_in_order_fill_their_chunk),
        cmocka_unit_test(fragments_may_come_before_their_header),
        cmocka_unit_test(headers_may_come_before_their_fragments),
        cmocka_unit_test(chunks_of_eight_messages_may_be_shuffled),
        cmocka_unit_test(parts_in_host_memory_keep_their_place_in_the_stream),
        cmocka_unit_test(what_nobody_wants_is_dropped_and_goes_back),
        cmocka_unit_test(a_batch_ends_where_a_list_does),
        cmocka_unit_test(a_token_waits_for_the_batch_of_its_last_byte),
        cmocka_unit_test(no_call_gives_more_than_1024_fragments),
        cmocka_unit_test(no_call_gives_more_than_128_ranges),
        cmocka_unit_test(ranges_join_across_batches),
        cmocka_unit_test(the_last_number_of_a_token_ends_a_range),
        cmocka_unit_test(random_streams_land_where_they_belong),
    };
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    printf("seed %llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
