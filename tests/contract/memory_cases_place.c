/* The clauses of mem/memory.h about where memory is, and how much of it there is. */
#include "memory_contract.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGE 4096

static void expect_place(struct memory_world *world, const void *base, uint64_t length, int device, bool pinned)
{
    struct wf_memory_place place = {.device = -9};
    struct wf_status status = {0};

    if (world->ops->locate(world->memory, base, length, &place, &status))
        fail_msg("%s", status.text);
    assert_int_equal(place.device, device);
    assert_int_equal(place.pinned, pinned);
}

static void expect_refusal(struct memory_world *world, const void *base, uint64_t length, char *text)
{
    struct wf_memory_place place = {.device = -9};
    struct wf_status status = {0};

    assert_int_equal(world->ops->locate(world->memory, base, length, &place, &status), -EINVAL);
    assert_int_equal(place.device, -9);
    assert_true(status.text[0]);
    memcpy(text, status.text, sizeof(status.text));
}

void locates(struct memory_world *world)
{
    char text[WF_STATUS_TEXT];
    uint8_t *here = host_take(4 * PAGE), on_stack;

    for (int device = 0; device < world->devices; device++) {
        uint8_t *there = device_take(world, device, 100000);
        expect_place(world, there, 100000, device, false);
        expect_place(world, there, 1, device, false);
        expect_place(world, there, 0, device, false);
        expect_place(world, there + 99999, 1, device, false);
        expect_place(world, there + 500, 99500, device, false);
        expect_refusal(world, there + 50000, (uint64_t)1 << 40, text);
        assert_true(world->kind->real || strstr(text, "end in none")); /* a GPU may have something of its own there */
        device_give(world, device, there);
    }
    expect_place(world, &on_stack, 1, WF_NO_DEVICE, false);
    expect_place(world, here, 4 * PAGE, WF_NO_DEVICE, false);
    expect_place(world, NULL, 0, WF_NO_DEVICE, false);
    assert_int_equal(world->ops->pin(world->memory, 0, here + PAGE, 2 * PAGE, NULL), 0);
    expect_place(world, here + PAGE, 2 * PAGE, WF_NO_DEVICE, true);
    expect_place(world, here + 2 * PAGE + 5, 100, WF_NO_DEVICE, true);
    expect_place(world, here + PAGE - 1, 2, WF_NO_DEVICE, false); /* in part */
    expect_place(world, here + 3 * PAGE - 1, 2, WF_NO_DEVICE, false);
    world->ops->unpin(world->memory, 0, here + PAGE);
    expect_place(world, here + PAGE, 2 * PAGE, WF_NO_DEVICE, false);
    host_give(here, 4 * PAGE);
}

void refuses_a_range_over_two(struct memory_world *world)
{
    enum { COUNT = 24, SIZE = 8192 };
    char text[WF_STATUS_TEXT], address[24];
    uint8_t *taken[COUNT];
    int touching = 0;

    for (int i = 0; i < COUNT; i++)
        taken[i] = device_take(world, 0, SIZE);
    for (int i = 0; i < COUNT; i++) {
        for (int k = 0; k < COUNT; k++) {
            if (taken[k] != taken[i] + SIZE)
                continue;
            touching++;
            expect_refusal(world, taken[i] + SIZE / 2, SIZE, text);
            snprintf(address, sizeof(address), "0x%llx", (unsigned long long)(uintptr_t)taken[i]);
            assert_non_null(strstr(text, address));
            snprintf(address, sizeof(address), "0x%llx", (unsigned long long)(uintptr_t)taken[k]);
            assert_non_null(strstr(text, address));
            assert_non_null(strstr(text, "two allocations"));
            expect_place(world, taken[i] + SIZE / 2, SIZE / 2, 0, false);
        }
    }
    assert_true(touching > 0); /* each kind can be made to put some side by side */
    for (int i = 0; i < COUNT; i++)
        device_give(world, 0, taken[i]);
}

static struct wf_memory_extent extent_of(struct memory_world *world, const void *address)
{
    struct wf_memory_extent extent = {0};
    struct wf_status status = {0};

    if (world->ops->extent(world->memory, address, &extent, &status))
        fail_msg("%s", status.text);
    return extent;
}

/* Addresses of large ones come again soon, the numbers of allocations do not. */
void tells_allocations_apart(struct memory_world *world)
{
    enum { COUNT = 6 };
    const uint64_t size = DEVICE_BYTES / 2;
    struct wf_memory_extent extent = {.device = -9}, before[COUNT];
    struct wf_status status = {0};
    uint8_t on_stack;

    for (int i = 0; i < COUNT; i++) {
        uint8_t *there = device_take(world, world->other, size), *beside = device_take(world, 0, 1000);
        before[i] = extent_of(world, there);
        assert_int_equal(before[i].device, world->other);
        assert_ptr_equal(before[i].base, there);
        assert_true(before[i].bytes >= size);
        assert_true(before[i].id != 0);
        extent = extent_of(world, there + size - 1);
        assert_ptr_equal(extent.base, there);
        assert_true(extent.id == before[i].id);
        assert_true(extent_of(world, beside + 999).id != before[i].id);
        for (int k = 0; k < i; k++)
            assert_true(before[k].id != before[i].id);
        device_give(world, 0, beside);
        device_give(world, world->other, there);
    }
    extent.device = -9;
    assert_int_equal(world->ops->extent(world->memory, &on_stack, &extent, &status), -EINVAL);
    assert_int_equal(extent.device, -9);
    assert_true(status.text[0]);
}

void runs_out_of_memory(struct memory_world *world)
{
    enum { COUNT = 4096, SIZE = 4 << 20 };
    static uint8_t *taken[COUNT];
    struct wf_status status = {0};
    void *untouched = &status, *more = untouched;
    int count = 0, result = 0;

    for (int round = world->kind->real ? 2 : 0; round < 2; round++) { /* a GPU is not only ours */
        for (count = 0; count < COUNT; count++) {
            void *base;
            result = world->ops->alloc(world->memory, 0, SIZE, &base, &status);
            if (result)
                break;
            taken[count] = base;
        }
        assert_int_equal(result, -ENOMEM);
        assert_true(status.text[0]);
        assert_true(count > 1);
        assert_int_equal(world->ops->alloc(world->memory, 0, SIZE, &more, NULL), -ENOMEM);
        assert_ptr_equal(more, untouched);
        /* The other device has its own. */
        device_give(world, world->other, device_take(world, world->other, SIZE));
        while (count > 0)
            device_give(world, 0, taken[--count]);
    }
    assert_int_equal(world->ops->alloc(world->memory, 0, UINT64_MAX / 2, &more, &status), -ENOMEM);
    if (!world->kind->fail_alloc)
        return;
    world->kind->fail_alloc(world->host, 0);
    assert_int_equal(world->ops->alloc(world->memory, 0, 1000, &more, &status), -ENOMEM);
    device_give(world, 0, device_take(world, 0, 1000));
}

void pins(struct memory_world *world)
{
    uint8_t *here = host_take(64 * PAGE), *there = device_take(world, 0, PAGE);
    struct wf_status status = {0};

    pattern_fill(here, 64 * PAGE, 4);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(world->ops->pin(world->memory, 0, here, 32 * PAGE, &status), 0);
        status = (struct wf_status){0};
        assert_true(world->ops->pin(world->memory, 0, here, 32 * PAGE, &status) < 0);
        assert_true(status.text[0]);
        assert_int_equal(world->ops->pin(world->memory, 0, here + 32 * PAGE, 32 * PAGE, &status), 0);
        assert_int_equal(copy_once(world, 0, WF_COPY_IN, there, here + 31 * PAGE, PAGE), 1);
        device_expect(world, there, here + 31 * PAGE, PAGE);
        world->ops->unpin(world->memory, 0, here + 32 * PAGE);
        world->ops->unpin(world->memory, 0, here);
    }
    if (world->kind->fail_pin) {
        status = (struct wf_status){0};
        world->kind->fail_pin(world->host);
        assert_int_equal(world->ops->pin(world->memory, 0, here, 32 * PAGE, &status), -ENOMEM);
        assert_non_null(strstr(status.text, "pinned"));
        /* Copies work without. */
        assert_int_equal(copy_once(world, 0, WF_COPY_IN, there, here, PAGE), 1);
        device_expect(world, there, here, PAGE);
    }
    device_give(world, 0, there);
    host_give(here, 64 * PAGE);
}

void exports_or_says_why(struct memory_world *world)
{
    uint8_t *there = device_take(world, world->other, 4 * PAGE);
    struct wf_status status = {0}, why = {0};
    int able = world->ops->exports(world->memory, world->other, &why);
    uint64_t offset = 0;
    int fd = -1;
    int result = world->ops->export_dmabuf(world->memory, world->other, there + 100, 1000, &fd, &offset, &status);

    if (result == 0) {
        assert_true(fcntl(fd, F_GETFD) >= 0);
        assert_int_equal(offset, (uintptr_t)(there + 100) % PAGE);
        assert_int_equal(able, 0);
        close(fd);
    } else {
        assert_true(able == 0 || able == -ENOTSUP);
        assert_true(able == 0 || why.text[0]);
        assert_true(result == -ENOTSUP || (world->kind->real && result < 0)); /* not of any part of an allocation */
        assert_true(status.text[0]);
        assert_int_equal(fd, -1);
    }
    assert_int_equal(world->ops->exports(world->memory, WF_DEVICES_MAX, &why), -ENODEV);
    device_give(world, world->other, there);
}
