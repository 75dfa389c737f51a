#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "intake_fixture.h"

uint8_t intake_pattern(uint64_t position)
{
    return (uint8_t)(1 + (position * UINT64_C(0x9e3779b97f4a7c15) >> 56) % 255); /* never 0: that is untouched memory */
}

struct world *world_create(uint32_t fragments, uint32_t chunks)
{
    struct wf_devmem_intake_setup setup = {
        .dmabuf = WORLD_DMABUF, .dmabuf_bytes = WORLD_POOL, .fragments_max = fragments, .chunks_max = chunks};
    struct world *world = calloc(1, sizeof *world);

    assert_non_null(world);
    world->pool = calloc(1, WORLD_POOL);
    world->memory = calloc(1, WORLD_MEMORY);
    world->host = calloc(1, WORLD_HOST);
    assert_true(world->pool && world->memory && world->host);
    assert_int_equal(wf_devmem_intake_create(&setup, &world->intake, &world->status), 0);
    world->batch = (struct wf_devmem_batch){
        .gathers = world->gathers, .copies = world->copies, .gathers_max = WORLD_LIST, .copies_max = WORLD_LIST};
    return world;
}

/* Untouched memory is 0, so a second use of `memory` takes its bytes away again. */
static void check_memory(struct world *world)
{
    for (uint32_t i = 0; i < world->chunk_count; i++) {
        const struct wf_devmem_chunk *chunk = &world->chunk[i];
        uint8_t *at = (uint8_t *)(uintptr_t)chunk->to;
        for (uint64_t k = 0; at && k < chunk->bytes; k++) {
            bool come = chunk->position + k < world->batch.position;
            if (at[k] != (come ? intake_pattern(chunk->position + k) : 0))
                fail_msg("byte %llu of chunk %u is wrong", (unsigned long long)k, i);
            at[k] = 0;
        }
    }
    for (size_t i = 0; i < WORLD_MEMORY; i++)
        if (world->memory[i])
            fail_msg("byte %zu belongs to no chunk", i);
}

void world_destroy(struct world *world)
{
    check_memory(world);
    wf_devmem_intake_destroy(world->intake);
    free(world->pool);
    free(world->memory);
    free(world->host);
    free(world);
}

int world_tell(struct world *world, uint64_t bytes, int64_t to)
{
    struct wf_devmem_chunk chunk = {
        .position = world->told, .bytes = bytes, .to = to < 0 ? 0 : (uintptr_t)world->memory + (uint64_t)to};
    int result = wf_devmem_intake_expect(world->intake, &chunk, &world->status);

    assert_true(to < 0 || (uint64_t)to + bytes <= WORLD_MEMORY);
    if (result == 0) {
        world->chunk[world->chunk_count++] = chunk;
        world->told += bytes;
    }
    return result;
}

void world_control(struct world *world, int level, int type, const void *data, size_t data_bytes)
{
    struct cmsghdr header = {.cmsg_len = CMSG_LEN(data_bytes), .cmsg_level = level, .cmsg_type = type};

    assert_true(world->control_bytes + CMSG_SPACE(data_bytes) <= sizeof world->control);
    memcpy(world->control + world->control_bytes, &header, sizeof header);
    memcpy(world->control + world->control_bytes + CMSG_LEN(0), data, data_bytes);
    world->control_bytes += CMSG_SPACE(data_bytes);
}

/* A token is the number of its buffer, so that a buffer in use shows. */
void world_fragment(struct world *world, uint32_t bytes)
{
    uint32_t token = world->next_token;

    assert_true(bytes <= WORLD_SLOT);
    for (uint32_t tries = 0; world->token_is[token] == WORLD_OUT; tries++) {
        assert_true(tries < WORLD_SLOTS);
        token = (token + 1) % WORLD_SLOTS;
    }
    world->next_token = (token + 1) % WORLD_SLOTS;
    world->token_is[token] = WORLD_OUT;
    struct wf_devmem_cmsg data = {.offset = (uint64_t)token * WORLD_SLOT + (WORLD_SLOT - bytes) / 2,
                                  .bytes = bytes,
                                  .token = token,
                                  .dmabuf = WORLD_DMABUF};
    for (uint32_t i = 0; i < bytes; i++)
        world->pool[data.offset + i] = intake_pattern(world->position + world->received + i);
    world_control(world, SOL_SOCKET, 79, &data, sizeof data);
    world->received += bytes;
}

static void put_host(struct world *world, size_t bytes)
{
    if (world->host_used == 0 && world->host_at + WORLD_MESSAGE * WORLD_SLOT > WORLD_HOST)
        world->host_at = 0;
    assert_true(world->host_at + world->host_used + bytes <= WORLD_HOST);
    for (size_t i = 0; i < bytes; i++)
        world->host[world->host_at + world->host_used + i] = intake_pattern(world->position + world->received + i);
    world->host_used += bytes;
    world->received += bytes;
}

void world_linear(struct world *world, uint32_t bytes)
{
    struct wf_devmem_cmsg data = {.bytes = bytes};

    put_host(world, bytes);
    world_control(world, SOL_SOCKET, 78, &data, sizeof data);
}

int world_take(struct world *world, size_t plain)
{
    put_host(world, plain);
    struct iovec iov = {.iov_base = world->host + world->host_at, .iov_len = WORLD_HOST - world->host_at};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = world->control_bytes ? world->control : NULL,
                             .msg_controllen = world->control_bytes,
                             .msg_flags = world->flags};
    int result = wf_devmem_intake_take(world->intake, &message, world->received, &world->status);

    if (result == 0) {
        world->position += world->received;
        world->host_at += world->host_used;
    }
    world->control_bytes = world->received = world->host_used = 0;
    return result;
}

void world_take_full(struct world *world, int count)
{
    for (int i = 0; i < count; i++)
        world_fragment(world, WORLD_SLOT);
    assert_int_equal(world_take(world, 0), 0);
}

bool world_place(struct world *world)
{
    if (!wf_devmem_intake_place(world->intake, &world->batch))
        return false;
    for (uint32_t i = 0; i < world->batch.gather_count; i++) {
        const struct wf_devmem_gather *one = &world->gathers[i];
        assert_true(one->bytes > 0 && one->from + one->bytes <= WORLD_POOL);
        memcpy((void *)(uintptr_t)one->to, world->pool + one->from, one->bytes);
    }
    for (uint32_t i = 0; i < world->batch.copy_count; i++)
        memcpy((void *)(uintptr_t)world->copies[i].to, world->copies[i].from, world->copies[i].bytes);
    return true;
}

uint32_t world_give_back(struct world *world, uint32_t *ranges)
{
    struct wf_devmem_tokens tokens[WF_DEVMEM_RANGES_MAX];
    uint32_t fragments, sum = 0, held = wf_devmem_intake_held(world->intake);

    *ranges = wf_devmem_intake_give_back(world->intake, tokens, &fragments);
    assert_true(*ranges <= WF_DEVMEM_RANGES_MAX && fragments <= WF_DEVMEM_GIVEN_MAX);
    for (uint32_t i = 0; i < *ranges; i++) {
        assert_true(tokens[i].count > 0);
        for (uint32_t k = 0; k < tokens[i].count; k++) {
            assert_int_equal(world->token_is[tokens[i].start + k], WORLD_OUT);
            world->token_is[tokens[i].start + k] = WORLD_KERNEL;
        }
        sum += tokens[i].count;
    }
    assert_int_equal(sum, fragments);
    assert_int_equal(wf_devmem_intake_held(world->intake), held - fragments);
    return fragments;
}

void world_drain(struct world *world)
{
    uint32_t ranges;

    while (world_place(world))
        continue;
    if (world->batch.number)
        assert_int_equal(wf_devmem_intake_done(world->intake, world->batch.number), 0);
    while (world_give_back(world, &ranges))
        continue;
    assert_int_equal(wf_devmem_intake_held(world->intake), 0);
    for (uint32_t i = 0; i < WORLD_SLOTS; i++)
        assert_int_equal(world->token_is[i], WORLD_KERNEL);
}
