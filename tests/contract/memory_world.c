/* What every case of the suite begins and ends with. */
#include "memory_contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_S 60 /* for what ends by itself; only a broken implementation takes that long */

void memory_world_open(struct memory_world *world, const struct memory_kind *kind, uint64_t seed)
{
    struct wf_status status = {0};

    *world = (struct memory_world){.kind = kind, .ops = kind->ops, .random_state = seed * 2 + 1};
    world->host = kind->create ? kind->create(seed) : NULL;
    if (world->ops->open(world->host, &world->memory, &status))
        fail_msg("%s: %s", kind->name, status.text);
    world->devices = world->ops->devices(world->memory, NULL, 0);
    if (world->devices > DEVICES)
        world->devices = DEVICES;
    world->other = world->devices - 1;
    for (int i = 0; i < world->devices; i++)
        if (world->ops->use(world->memory, i, &status))
            fail_msg("%s: %s", kind->name, status.text);
}

void memory_world_close(struct memory_world *world)
{
    world->ops->close(world->memory);
    if (world->kind->destroy)
        world->kind->destroy(world->host);
}

/* splitmix64 (Steele, Lea, Flood). */
static uint64_t mix(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t memory_random(struct memory_world *world, uint64_t below)
{
    return mix(&world->random_state) % below;
}

uint8_t *device_take(struct memory_world *world, int device, uint64_t bytes)
{
    struct wf_status status = {0};
    void *base = NULL;

    if (world->ops->alloc(world->memory, device, bytes, &base, &status))
        fail_msg("%s", status.text);
    assert_non_null(base);
    return base;
}

void device_give(struct memory_world *world, int device, void *base)
{
    world->ops->free(world->memory, device, base);
}

void device_fill(struct memory_world *world, void *base, const void *content, uint64_t bytes)
{
    struct wf_status status = {0};

    if (world->ops->copy_now(world->memory, base, content, bytes, &status))
        fail_msg("%s", status.text);
}

void device_expect(struct memory_world *world, const void *base, const void *content, uint64_t bytes)
{
    struct wf_status status = {0};
    uint8_t *here = malloc(bytes);

    assert_non_null(here);
    memset(here, 0x5C, bytes);
    if (world->ops->copy_now(world->memory, here, base, bytes, &status))
        fail_msg("%s", status.text);
    assert_memory_equal(here, content, bytes);
    free(here);
}

uint8_t *host_take(uint64_t bytes)
{
    uint8_t *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(base != MAP_FAILED);
    return base;
}

void host_give(uint8_t *base, uint64_t bytes)
{
    assert_int_equal(munmap(base, bytes), 0);
}

void pattern_fill(uint8_t *base, uint64_t bytes, uint64_t seed)
{
    uint64_t state = seed;

    for (uint64_t at = 0; at < bytes; at += 8) {
        uint64_t word = mix(&state);
        memcpy(base + at, &word, bytes - at < 8 ? bytes - at : 8);
    }
}

int copy_await(struct memory_world *world, struct wf_copy *copy)
{
    struct timespec begin, now;
    int result;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    while ((result = world->ops->copy_done(world->memory, copy)) == 0) {
        if (world->kind->pass)
            world->kind->pass(world->host);
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - begin.tv_sec > PATIENCE_S)
            fail_msg("a copy does not end");
    }
    return result;
}

int copy_once(struct memory_world *world, int device, enum wf_copy_way way, void *to, const void *from, uint64_t bytes)
{
    struct wf_copy_piece piece = {.to = to, .from = from, .bytes = bytes};
    struct wf_copy copy = {.device = device, .to_device = device, .way = way};
    int result = world->ops->copy_start(world->memory, &copy, &piece, 1, false);

    return result ? result : copy_await(world, &copy);
}
