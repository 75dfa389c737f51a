/* The clauses of mem/memory.h about copies. */
#include "memory_contract.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 200
#define ROOM ((uint64_t)1 << 20)

void opens_and_describes(struct memory_world *world)
{
    struct wf_device_info infos[WF_DEVICES_MAX], one = {.index = -7};
    struct wf_status status = {0};
    int count = world->ops->devices(world->memory, infos, WF_DEVICES_MAX);

    assert_true(count >= world->devices && count <= WF_DEVICES_MAX);
    assert_string_equal(world->ops->kind, "cuda");
    assert_true(strncmp(world->ops->name(world->memory), "cuda", 4) == 0);
    /* What is no GPU says so. */
    assert_true(world->kind->real == (strcmp(world->ops->name(world->memory), "cuda") == 0));
    for (int i = 0; i < count; i++) {
        assert_int_equal(infos[i].index, i);
        assert_true(infos[i].name[0]);
        assert_true(infos[i].bytes >= DEVICE_BYTES);
        assert_int_equal(strlen(infos[i].pci), 12);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(infos[i].pci, infos[k].pci);
    }
    assert_int_equal(world->ops->devices(world->memory, &one, 0), count);
    assert_int_equal(one.index, -7);
    assert_int_equal(world->ops->devices(world->memory, &one, 1), count);
    assert_int_equal(one.index, 0);

    assert_int_equal(world->ops->use(world->memory, -1, &status), -ENODEV);
    assert_true(status.text[0]);
    assert_int_equal(world->ops->use(world->memory, count, &status), -ENODEV);
    assert_int_equal(world->ops->use(world->memory, world->other, &status), 0); /* once more does no harm */
    assert_true(world->ops->present(world->host));
    if (world->kind->retained) {
        /* A second one retains what it uses, and nothing when it opens. */
        struct wf_memory *other = NULL;
        int before = world->kind->retained(world->host, world->other);
        assert_true(before > 0);
        assert_int_equal(world->ops->open(world->host, &other, &status), 0);
        assert_int_equal(world->kind->retained(world->host, world->other), before);
        assert_int_equal(world->ops->use(other, world->other, &status), 0);
        assert_int_equal(world->kind->retained(world->host, world->other), before + 1);
        world->ops->close(other);
        assert_int_equal(world->kind->retained(world->host, world->other), before);
        for (int i = world->devices; i < count; i++)
            assert_int_equal(world->kind->retained(world->host, i), 0);
    }
}

/* There and back, with something else in between. */
static void there_and_back(struct memory_world *world, uint8_t *there, uint8_t *here, uint64_t bytes)
{
    uint8_t *expected = malloc(bytes + 2);

    assert_non_null(expected);
    pattern_fill(here, bytes + 2, bytes);
    memcpy(expected, here, bytes + 2);
    assert_int_equal(copy_once(world, 0, WF_COPY_IN, there, here + 1, bytes), 1);
    memset(here, 0xA1, bytes + 2);
    expected[0] = expected[bytes + 1] = 0xA1;
    assert_int_equal(copy_once(world, 0, WF_COPY_OUT, here + 1, there, bytes), 1);
    assert_memory_equal(here, expected, bytes + 2);
    free(expected);
}

void copies_all_sizes(struct memory_world *world)
{
    static const uint64_t sizes[] = {
        1,    2,    3,    4,     7,     8,     15,   16,    17,      255,           256,          257,
        4095, 4096, 4097, 65535, 65536, 65537, 1000, 99999, 1 << 20, (1 << 20) + 1, (3 << 20) + 5};
    uint64_t room = 4 << 20;
    uint8_t *here = host_take(room), *there = device_take(world, 0, room);

    /* Pinned in the second round. */
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
            there_and_back(world, there + memory_random(world, 64), here + memory_random(world, 64), sizes[i]);
        if (round == 0)
            assert_int_equal(world->ops->pin(world->memory, 0, here, room, NULL), 0);
    }
    world->ops->unpin(world->memory, 0, here);
    device_give(world, 0, there);
    host_give(here, room);
}

/* Cuts ROOM bytes into `count` pieces; on the device they lie in another order. Returns how many bytes they have. */
static uint64_t cut(struct memory_world *world, struct wf_copy_piece *pieces, int count, enum wf_copy_way way,
                    uint8_t *there, uint8_t *here)
{
    uint64_t share = ROOM / (uint64_t)count, at = 0;

    for (int i = 0; i < count; i++) {
        int place = (int)((uint64_t)i * 7 % (uint64_t)count); /* no count used here is a multiple of 7 */
        uint64_t bytes = 1 + memory_random(world, share / 2);
        uint8_t *side = there + (uint64_t)place * share + memory_random(world, share / 2);
        pieces[i] = (struct wf_copy_piece){
            .to = way == WF_COPY_IN ? side : here + at, .from = way == WF_COPY_IN ? here + at : side, .bytes = bytes};
        at += bytes;
    }
    return at;
}

void copies_many_pieces(struct memory_world *world)
{
    static const int counts[] = {2, 3, 8, 64, 65, 129, 512, 513, 1500};
    static struct wf_copy_piece pieces[1500];
    uint8_t *here = host_take(ROOM), *there = device_take(world, 0, ROOM);
    uint8_t *expected = malloc(ROOM), *image = malloc(ROOM);

    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
        pattern_fill(image, ROOM, i);
        device_fill(world, there, image, ROOM);
        memset(here, 0x11, ROOM);
        memset(expected, 0x11, ROOM);
        cut(world, pieces, counts[i], WF_COPY_OUT, there, here);
        for (int k = 0; k < counts[i]; k++)
            memcpy(expected + ((uint8_t *)pieces[k].to - here), image + ((const uint8_t *)pieces[k].from - there),
                   pieces[k].bytes);
        assert_int_equal(world->ops->copy_start(world->memory, &copy, pieces, counts[i], false), 0);
        assert_int_equal(copy_await(world, &copy), 1);
        assert_memory_equal(here, expected, ROOM);

        copy = (struct wf_copy){.device = 0, .way = WF_COPY_IN};
        pattern_fill(here, ROOM, 1000 + i);
        cut(world, pieces, counts[i], WF_COPY_IN, there, here);
        for (int k = 0; k < counts[i]; k++)
            memcpy(image + ((uint8_t *)pieces[k].to - there), pieces[k].from, pieces[k].bytes);
        assert_int_equal(world->ops->copy_start(world->memory, &copy, pieces, counts[i], false), 0);
        assert_int_equal(copy_await(world, &copy), 1);
        device_expect(world, there, image, ROOM);
    }
    free(expected);
    free(image);
    device_give(world, 0, there);
    host_give(here, ROOM);
}

void copies_in_several_calls(struct memory_world *world)
{
    static struct wf_copy_piece pieces[240];
    uint8_t *here = host_take(ROOM), *there = device_take(world, 0, ROOM), *image = malloc(ROOM);

    assert_int_equal(world->ops->pin(world->memory, 0, here, ROOM, NULL), 0);
    pattern_fill(image, ROOM, 3);
    device_fill(world, there, image, ROOM);
    for (int step = 1; step <= 240; step = step * 3 + 1) {
        struct wf_copy copy = {.device = 0, .way = WF_COPY_OUT};
        memset(here, 0, ROOM);
        cut(world, pieces, 240, WF_COPY_OUT, there, here);
        for (int at = 0; at < 240; at += step) {
            struct wf_copy_piece some[240];
            int count = 240 - at < step ? 240 - at : step;
            memcpy(some, pieces + at, (size_t)count * sizeof(*some));
            assert_int_equal(world->ops->copy_start(world->memory, &copy, some, count, at + count < 240), 0);
            memset(some, 0xFF, sizeof(some)); /* read during the call only */
        }
        assert_int_equal(copy_await(world, &copy), 1);
        for (int k = 0; k < 240; k++)
            assert_memory_equal(pieces[k].to, image + ((const uint8_t *)pieces[k].from - there), pieces[k].bytes);
    }
    free(image);
    world->ops->unpin(world->memory, 0, here);
    device_give(world, 0, there);
    host_give(here, ROOM);
}

void copies_between_devices(struct memory_world *world)
{
    uint8_t *of[DEVICES], *image = malloc(ROOM);

    for (int i = 0; i < world->devices; i++)
        of[i] = device_take(world, i, 2 * ROOM);
    for (int from = 0; from < world->devices; from++) {
        for (int to = 0; to < world->devices; to++) {
            struct wf_copy_piece pieces[2] = {{.to = of[to] + ROOM + 1, .from = of[from], .bytes = 1000},
                                              {.to = of[to] + ROOM + 1001, .from = of[from] + 1000, .bytes = 77777}};
            struct wf_copy copy = {.device = from, .to_device = to, .way = WF_COPY_PEER};
            pattern_fill(image, ROOM, (uint64_t)(from * 10 + to));
            device_fill(world, of[from], image, ROOM);
            assert_int_equal(world->ops->copy_start(world->memory, &copy, pieces, 2, false), 0);
            assert_int_equal(copy_await(world, &copy), 1);
            device_expect(world, of[to] + ROOM + 1, image, 78777);
        }
    }
    for (int i = 0; i < world->devices; i++)
        device_give(world, i, of[i]);
    free(image);
}

/* MANY copies under way, their order of ending anyone's: each is there when it says so, and each object may be used
 * again at once. */
static void juggle(struct memory_world *world, int rounds)
{
    enum { SIZE = 3000 };
    static struct wf_copy copies[MANY];
    static int left[MANY];
    uint8_t *here = host_take(2 * MANY * SIZE), *there = device_take(world, world->other, MANY * SIZE),
            *back = here + MANY * SIZE;
    int ended = 0;

    assert_int_equal(world->ops->pin(world->memory, 0, here, 2 * MANY * SIZE, NULL), 0);
    pattern_fill(here, MANY * SIZE, 5);
    for (int i = 0; i < MANY; i++) {
        struct wf_copy_piece piece = {.to = there + i * SIZE, .from = here + i * SIZE, .bytes = SIZE};
        copies[i] = (struct wf_copy){.device = world->other, .way = WF_COPY_IN};
        left[i] = 2 * rounds;
        assert_int_equal(world->ops->copy_start(world->memory, &copies[i], &piece, 1, false), 0);
    }
    for (int i = 0; ended < MANY; i = (int)memory_random(world, MANY)) {
        struct wf_copy_piece out = {.to = back + i * SIZE, .from = there + i * SIZE, .bytes = SIZE};
        struct wf_copy_piece in = {.to = there + i * SIZE, .from = here + i * SIZE, .bytes = SIZE};
        int result = left[i] ? world->ops->copy_done(world->memory, &copies[i]) : 0;
        if (world->kind->pass)
            world->kind->pass(world->host);
        if (result == 0)
            continue;
        assert_int_equal(result, 1);
        if (copies[i].way == WF_COPY_OUT)
            assert_memory_equal(back + i * SIZE, here + i * SIZE, SIZE);
        memset(back + i * SIZE, 0, SIZE);
        if (--left[i] == 0) {
            ended++;
            continue;
        }
        copies[i].way = copies[i].way == WF_COPY_IN ? WF_COPY_OUT : WF_COPY_IN;
        assert_int_equal(
            world->ops->copy_start(world->memory, &copies[i], copies[i].way == WF_COPY_IN ? &in : &out, 1, false), 0);
    }
    world->ops->unpin(world->memory, 0, here);
    device_give(world, world->other, there);
    host_give(here, 2 * MANY * SIZE);
}

void copies_many_at_once(struct memory_world *world)
{
    uint64_t before = world->kind->copies ? world->kind->copies(world->host, world->other) : 0;

    juggle(world, 3);
    if (world->kind->copies)
        assert_int_equal(world->kind->copies(world->host, world->other) - before, MANY * 6); /* exactly once */
}

struct juggler {
    struct memory_world *world;
    pthread_t thread;
    int number;
    bool right;
};

/* No assertion of cmocka's: it leaves only the thread that runs the tests. */
static void *copy_for_itself(void *argument)
{
    enum { SIZE = 20000, COPIES = 8 };
    struct juggler *juggler = argument;
    struct memory_world *world = juggler->world;
    struct wf_memory *memory = world->memory;
    int device = juggler->number % world->devices;
    uint8_t *here = malloc(2 * SIZE * COPIES), *back = here + SIZE * COPIES;
    void *there = NULL;
    bool right = here && world->ops->alloc(memory, device, SIZE * COPIES, &there, NULL) == 0;

    for (int round = 0; right && round < 20; round++) {
        pattern_fill(here, SIZE * COPIES, (uint64_t)(juggler->number * 100 + round));
        for (int way = WF_COPY_IN; right && way >= WF_COPY_OUT; way--) {
            struct wf_copy copies[COPIES] = {0};
            for (int i = 0; i < COPIES; i++) {
                uint8_t *far = (uint8_t *)there + i * SIZE;
                struct wf_copy_piece pieces[2] = {{.bytes = SIZE / 2}, {.bytes = SIZE / 2}};
                for (int k = 0; k < 2; k++) {
                    pieces[k].to = (way == WF_COPY_IN ? far : back + i * SIZE) + k * SIZE / 2;
                    pieces[k].from = (way == WF_COPY_IN ? here + i * SIZE : far) + k * SIZE / 2;
                }
                copies[i] = (struct wf_copy){.device = device, .way = (enum wf_copy_way)way};
                right &= world->ops->copy_start(memory, &copies[i], pieces, 2, false) == 0;
            }
            for (int i = 0; right && i < COPIES; i++) {
                int result;
                while ((result = world->ops->copy_done(memory, &copies[i])) == 0)
                    sched_yield();
                right = result == 1;
            }
        }
        right = right && memcmp(here, back, SIZE * COPIES) == 0;
    }
    world->ops->free(memory, device, there);
    free(here);
    juggler->right = right;
    return NULL;
}

void copies_by_many_threads(struct memory_world *world)
{
    struct juggler jugglers[6];

    if (!world->kind->threads)
        return;
    for (int i = 0; i < 6; i++) {
        jugglers[i] = (struct juggler){.world = world, .number = i};
        assert_int_equal(pthread_create(&jugglers[i].thread, NULL, copy_for_itself, &jugglers[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(jugglers[i].thread, NULL), 0);
        assert_true(jugglers[i].right);
    }
}

void keeps_the_threads_state(struct memory_world *world)
{
    uint8_t *here;

    if (!world->kind->current)
        return;
    here = host_take(8192);
    for (int own = 0; own < 2; own++) {
        struct wf_memory_place place;
        struct wf_copy mark = {.device = world->other, .way = WF_COPY_MARK};
        uint64_t offset;
        int fd;
        world->kind->set_current(world->host, own);
        void *before = world->kind->current(world->host);
        uint8_t *there = device_take(world, world->other, 8192);
        assert_ptr_equal(world->kind->current(world->host), before);
        assert_int_equal(world->ops->pin(world->memory, 0, here, 8192, NULL), 0);
        assert_int_equal(copy_once(world, world->other, WF_COPY_IN, there, here, 8192), 1);
        assert_int_equal(copy_once(world, world->other, WF_COPY_OUT, here, there, 8192), 1);
        assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
        assert_int_equal(copy_await(world, &mark), 1);
        assert_ptr_equal(world->kind->current(world->host), before);
        assert_int_equal(world->ops->locate(world->memory, there, 8192, &place, NULL), 0);
        assert_int_equal(world->ops->locate(world->memory, there, 1 << 30, &place, NULL), -EINVAL);
        device_fill(world, there, here, 100);
        if (world->ops->export_dmabuf(world->memory, world->other, there, 8192, &fd, &offset, NULL) == 0)
            close(fd);
        world->ops->unpin(world->memory, 0, here);
        device_give(world, world->other, there);
        assert_int_equal(world->ops->use(world->memory, 0, NULL), 0);
        assert_ptr_equal(world->kind->current(world->host), before);
    }
    world->kind->set_current(world->host, false);
    host_give(here, 8192);
}

void waits_for_no_device(struct memory_world *world)
{
    uint8_t *here, *there, *peer;
    uint64_t before;

    if (!world->kind->waits)
        return;
    here = host_take(ROOM);
    there = device_take(world, 0, ROOM);
    peer = device_take(world, world->other, ROOM);
    assert_int_equal(world->ops->pin(world->memory, 0, here, ROOM, NULL), 0);
    before = world->kind->waits(world->host);
    for (int i = 0; i < 50; i++) {
        struct wf_copy mark = {.device = 0, .way = WF_COPY_MARK};
        struct wf_copy copy = {.device = 0, .to_device = world->other, .way = WF_COPY_PEER};
        struct wf_copy_piece piece = {.to = peer, .from = there, .bytes = ROOM};
        assert_int_equal(copy_once(world, 0, WF_COPY_IN, there, here, ROOM), 1);
        assert_int_equal(copy_once(world, 0, WF_COPY_OUT, here, there, ROOM / 2), 1);
        assert_int_equal(world->ops->copy_start(world->memory, &copy, &piece, 1, false), 0);
        assert_int_equal(copy_await(world, &copy), 1);
        assert_int_equal(world->ops->copy_start(world->memory, &mark, NULL, 0, false), 0);
        assert_int_equal(copy_await(world, &mark), 1);
    }
    assert_int_equal(world->kind->waits(world->host), before);
    world->ops->unpin(world->memory, 0, here);
    device_give(world, 0, there);
    device_give(world, world->other, peer);
    host_give(here, ROOM);
}

void copies_now(struct memory_world *world)
{
    enum { SIZE = 100000 };
    uint8_t *here = host_take(2 * SIZE), *one = device_take(world, 0, SIZE),
            *other = device_take(world, world->other, SIZE);
    struct wf_status status = {0};

    pattern_fill(here, SIZE, 9);
    device_fill(world, one, here, SIZE);
    device_fill(world, other, one, SIZE); /* between devices */
    device_fill(world, here + SIZE, other, SIZE);
    assert_memory_equal(here, here + SIZE, SIZE);
    memset(here + SIZE, 0, SIZE);
    device_fill(world, here + SIZE, here, SIZE); /* and between two places of the host */
    assert_memory_equal(here, here + SIZE, SIZE);
    assert_int_equal(world->ops->copy_now(world->memory, here, one, 0, &status), 0);
    assert_int_equal(world->ops->copy_now(world->memory, here, one + SIZE / 2, SIZE, &status), -EINVAL);
    assert_true(status.text[0]);
    device_give(world, 0, one);
    device_give(world, world->other, other);
    host_give(here, 2 * SIZE);
}
