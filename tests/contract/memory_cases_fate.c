/* The clauses of mem/memory.h about the user's streams, and about copies and devices that fail. */
#include "memory_contract.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LOOKS 2000 /* at something that must not happen */

/* As long as something could happen by itself, nothing of this copy does. */
static void expect_waiting(struct memory_world *world, struct wf_copy *copy)
{
    for (int i = 0; i < LOOKS; i++) {
        assert_int_equal(world->ops->copy_done(world->memory, copy), 0);
        if (world->kind->pass)
            world->kind->pass(world->host);
    }
}

void marks_what_a_stream_has(struct memory_world *world)
{
    enum { SIZE = 50000 };
    uint8_t *here = host_take(2 * SIZE), *there = device_take(world, world->other, SIZE);
    void *stream = world->kind->stream_create(world->host, world->other);
    struct wf_copy mark = {
        .device = world->other, .way = WF_COPY_MARK, .stream = world->kind->stream_handle(world->host, stream)};
    struct wf_copy none = {.device = world->other, .way = WF_COPY_MARK};

    assert_int_equal(world->ops->pin(world->memory, 0, here, 2 * SIZE, NULL), 0);
    pattern_fill(here, SIZE, 8);
    /* An idle stream has nothing, and neither has the default one. */
    assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
    assert_int_equal(world->ops->copy_start(world->memory, &none, NULL, 0, false), 0);
    assert_int_equal(copy_await(world, &mark), 1);
    assert_int_equal(copy_await(world, &none), 1);

    /* What comes after the mark does not matter, what came before has been done: a copy sees it. */
    world->kind->stream_block(world->host, stream);
    world->kind->stream_write(world->host, stream, there, here, SIZE);
    assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
    world->kind->stream_block(world->host, stream);
    expect_waiting(world, &mark);
    /* Copies of ours do not wait for the user's streams. */
    assert_int_equal(copy_once(world, world->other, WF_COPY_OUT, here + SIZE, there, SIZE), 1);
    world->kind->stream_release(world->host, stream);
    assert_int_equal(copy_await(world, &mark), 1);
    assert_int_equal(copy_once(world, world->other, WF_COPY_OUT, here + SIZE, there, SIZE), 1);
    assert_memory_equal(here, here + SIZE, SIZE);

    world->kind->stream_release(world->host, stream);
    assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
    assert_int_equal(copy_await(world, &mark), 1);
    world->kind->stream_destroy(world->host, stream);
    world->ops->unpin(world->memory, 0, here);
    device_give(world, world->other, there);
    host_give(here, 2 * SIZE);
}

void holds_a_stream(struct memory_world *world)
{
    uint8_t *here = host_take(4096);
    uint32_t *flag = (uint32_t *)(void *)(here + 64);
    void *stream = world->kind->stream_create(world->host, 0);
    void *handle = world->kind->stream_handle(world->host, stream);
    struct wf_copy mark = {.device = 0, .way = WF_COPY_MARK, .stream = handle};
    int result;

    assert_int_equal(world->ops->pin(world->memory, 0, here, 4096, NULL), 0);
    __atomic_store_n(flag, UINT32_MAX - 1, __ATOMIC_RELEASE);
    result = world->ops->hold(world->memory, 0, handle, flag, UINT32_MAX);
    if (result) {
        assert_int_equal(result, -ENOTSUP);
    } else {
        assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
        expect_waiting(world, &mark);
        __atomic_store_n(flag, UINT32_MAX, __ATOMIC_RELEASE);
        assert_int_equal(copy_await(world, &mark), 1);
        /* Past its target is as good; counting goes round. */
        assert_int_equal(world->ops->hold(world->memory, 0, handle, flag, UINT32_MAX - 1), 0);
        assert_int_equal(world->ops->hold(world->memory, 0, handle, flag, 2), 0);
        assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
        expect_waiting(world, &mark);
        __atomic_store_n(flag, 2, __ATOMIC_RELEASE);
        assert_int_equal(copy_await(world, &mark), 1);
    }
    world->kind->stream_destroy(world->host, stream);
    world->ops->unpin(world->memory, 0, here);
    host_give(here, 4096);
}

/* There is nothing wrong with a device. */
static void expect_sound(struct memory_world *world, int device)
{
    enum { SIZE = 10000 };
    uint8_t *here = host_take(2 * SIZE), *there = device_take(world, device, SIZE);

    pattern_fill(here, SIZE, 77);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(copy_once(world, device, WF_COPY_IN, there, here, SIZE), 1);
        memset(here + SIZE, 0, SIZE);
        assert_int_equal(copy_once(world, device, WF_COPY_OUT, here + SIZE, there, SIZE), 1);
        assert_memory_equal(here, here + SIZE, SIZE);
    }
    device_give(world, device, there);
    host_give(here, 2 * SIZE);
}

void survives_a_copy_that_fails(struct memory_world *world)
{
    if (!world->kind->fail_copy)
        return;
    enum { SIZE = 40000, COPIES = 9 };
    uint8_t *here = host_take(COPIES * SIZE), *there = device_take(world, 0, COPIES * SIZE);

    assert_int_equal(world->ops->pin(world->memory, 0, here, COPIES * SIZE, NULL), 0);
    for (int way = WF_COPY_OUT; way <= WF_COPY_PEER; way++) {
        struct wf_copy copies[COPIES] = {0};
        int failed = 0;
        world->kind->fail_copy(world->host, 0, (enum wf_copy_way)way);
        for (int i = 0; i < COPIES; i++) {
            uint8_t *near = here + i * SIZE, *far = there + i * SIZE;
            struct wf_copy_piece piece = {
                .to = way == WF_COPY_OUT ? near : far, .from = way == WF_COPY_IN ? near : far, .bytes = SIZE / 2};
            if (way == WF_COPY_PEER)
                piece.from = far + SIZE / 2;
            copies[i] = (struct wf_copy){.device = 0, .to_device = 0, .way = (enum wf_copy_way)way};
            int result = world->ops->copy_start(world->memory, &copies[i], &piece, 1, false);
            if (!result)
                result = copy_await(world, &copies[i]);
            assert_true(result == 1 || result == -EIO);
            failed += result == -EIO;
        }
        assert_int_equal(failed, 1);
        assert_true(world->ops->why(world->memory, 0)[0]);
        expect_sound(world, 0);
    }
    assert_non_null(strchr(world->ops->why(world->memory, 0), '(')); /* the driver's words and number */
    world->ops->unpin(world->memory, 0, here);
    device_give(world, 0, there);
    host_give(here, COPIES * SIZE);
}

/* However many pieces were taken before: the copy fails once, and then nothing of it is under way. */
void survives_a_piece_that_is_refused(struct memory_world *world)
{
    enum { SIZE = 1000, PIECES = 40 };
    uint8_t *here = host_take(PIECES * SIZE), *there = device_take(world, world->other, PIECES * SIZE);

    for (int at = 1; at <= PIECES && world->kind->refuse_piece; at += at < 4 ? 1 : 9) {
        for (int calls = 1; calls <= 4; calls *= 4) {
            struct wf_copy copy = {.device = world->other, .way = WF_COPY_IN};
            int result = 0, each = PIECES / calls;
            pattern_fill(here, PIECES * SIZE, (uint64_t)at);
            world->kind->refuse_piece(world->host, world->other, WF_COPY_IN, at);
            for (int from = 0; from < PIECES && result == 0; from += each) {
                struct wf_copy_piece pieces[PIECES];
                for (int i = 0; i < each; i++)
                    pieces[i] = (struct wf_copy_piece){
                        .to = there + (from + i) * SIZE, .from = here + (from + i) * SIZE, .bytes = SIZE};
                result = world->ops->copy_start(world->memory, &copy, pieces, each, from + each < PIECES);
            }
            if (result == 0)
                result = copy_await(world, &copy);
            assert_int_equal(result, -EIO);
            /* Whoever reads it now would show in what is copied next. */
            memset(here, 0, PIECES * SIZE);
            assert_true(world->ops->why(world->memory, world->other)[0]);
        }
        expect_sound(world, world->other);
    }
    device_give(world, world->other, there);
    host_give(here, PIECES * SIZE);
}

/* Starts many copies and loses the device under them; each ends, once. */
static void lose_under_copies(struct memory_world *world, int device, uint8_t *here, uint8_t *there, uint64_t size)
{
    enum { COPIES = 40 };
    struct wf_copy copies[COPIES] = {0};
    int lost = 0;

    for (int i = 0; i < COPIES; i++) {
        struct wf_copy_piece piece = {.to = i % 2 ? here : there, .from = i % 2 ? there : here, .bytes = size};
        copies[i] = (struct wf_copy){.device = device, .way = i % 2 ? WF_COPY_OUT : WF_COPY_IN};
        assert_int_equal(world->ops->copy_start(world->memory, &copies[i], &piece, 1, false), 0);
    }
    world->kind->lose(world->host, device);
    for (int i = 0; i < COPIES; i++) {
        int result = copy_await(world, &copies[i]);
        assert_true(result == 1 || result == -ENODEV);
        lost += result == -ENODEV;
        if (result == -ENODEV)
            assert_true(world->ops->why(world->memory, device)[0]);
    }
    assert_true(lost > 0);
}

void loses_a_device(struct memory_world *world)
{
    if (!world->kind->lose)
        return;
    enum { SIZE = 1 << 20 };
    uint8_t *here = host_take(SIZE), *there = device_take(world, 0, SIZE),
            *other = device_take(world, world->other, SIZE);
    struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
    struct wf_copy mark = {.device = 0, .way = WF_COPY_MARK};
    struct wf_copy peer = {.device = world->other, .to_device = 0, .way = WF_COPY_PEER};
    struct wf_copy_piece piece = {.to = here, .from = there, .bytes = SIZE};
    struct wf_copy_piece across = {.to = there, .from = other, .bytes = SIZE};
    struct wf_status status = {0};
    void *untouched = NULL;

    assert_int_equal(world->ops->pin(world->memory, 0, here, SIZE, NULL), 0);
    lose_under_copies(world, 0, here, there, SIZE);
    pattern_fill(here, SIZE, 6); /* nobody writes it any more */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(world->ops->copy_start(world->memory, &copy, &piece, 1, false), -ENODEV);
        assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), -ENODEV);
        assert_int_equal(world->ops->copy_start(world->memory, &peer, &across, 1, false), -ENODEV);
        assert_int_equal(world->ops->use(world->memory, 0, &status), -ENODEV);
        assert_true(status.text[0]);
        assert_int_equal(world->ops->alloc(world->memory, 0, SIZE, &untouched, &status), -ENODEV);
        assert_int_equal(world->ops->copy_now(world->memory, here, there, SIZE, &status), -ENODEV);
    }
    assert_null(untouched);
    expect_sound(world, world->other);
    uint8_t *expected = malloc(SIZE);
    pattern_fill(expected, SIZE, 6);
    assert_memory_equal(here, expected, SIZE);
    free(expected);
    world->ops->unpin(world->memory, 0, here);
    device_give(world, 0, there);
    device_give(world, world->other, other);
    host_give(here, SIZE);
}

void closes_after_a_loss(struct memory_world *world)
{
    if (!world->kind->lose)
        return;
    uint8_t *here = host_take(8192);

    device_give(world, world->other, device_take(world, world->other, 1000));
    assert_int_equal(world->ops->pin(world->memory, 0, here, 8192, NULL), 0);
    for (int i = 0; i < world->devices; i++)
        world->kind->lose(world->host, i);
    for (int i = 0; i < world->devices; i++) {
        struct wf_copy mark = {.device = i, .way = WF_COPY_MARK};
        int result = world->ops->copy_start(world->memory, &mark, NULL, 0, false);
        if (result == 0)
            result = copy_await(world, &mark);
        assert_int_equal(result, -ENODEV);
    }
    world->ops->unpin(world->memory, 0, here);
    host_give(here, 8192);
}
