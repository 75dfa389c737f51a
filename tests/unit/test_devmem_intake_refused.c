/* Control messages and chunks that make no sense are refused, in words, and change nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "intake_fixture.h"

/* Refused, and nothing has changed: what makes sense goes on. */
static void expect_refused(struct world *world, int error, const char *words)
{
    uint32_t room = wf_devmem_intake_room(world->intake), held = wf_devmem_intake_held(world->intake);

    assert_int_equal(world_take(world, 0), error);
    if (!strstr(world->status.text, words))
        fail_msg("'%s' is not in: %s", words, world->status.text);
    assert_int_equal(wf_devmem_intake_room(world->intake), room);
    assert_int_equal(wf_devmem_intake_held(world->intake), held);
}

static void a_fragment_that_makes_no_sense_is_refused(void **state)
{
    static const struct {
        struct wf_devmem_cmsg data;
        const char *words;
    } table[] = {
        {{.bytes = 1, .dmabuf = 8}, "dma-buf 8, not of 7"},
        {{.bytes = 0, .dmabuf = 7}, "a fragment of 0 bytes"},
        {{.bytes = 1, .offset = WORLD_POOL, .dmabuf = 7}, "a fragment of 1 bytes at"},
        {{.bytes = 2, .offset = WORLD_POOL - 1, .dmabuf = 7}, "a fragment of 2 bytes at"},
        {{.bytes = 2, .offset = UINT64_MAX, .dmabuf = 7}, "a fragment of 2 bytes at"},
        {{.bytes = UINT32_MAX, .offset = 0, .dmabuf = 7}, "a fragment of 4294967295 bytes at"},
    };
    struct world *world = world_create(64, 8);

    (void)state;
    assert_int_equal(world_tell(world, WORLD_SLOT + 2, 0), 0);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wf_devmem_cmsg good = {.bytes = 1, .dmabuf = 7};
        world_control(world, SOL_SOCKET, 79, &good, sizeof good);
        world_control(world, SOL_SOCKET, 79, &table[i].data, sizeof table[i].data);
        world->received = 1 + table[i].data.bytes;
        expect_refused(world, -EBADMSG, table[i].words);
    }
    world_control(world, SOL_SOCKET, 78, &(struct wf_devmem_cmsg){.bytes = 0}, sizeof(struct wf_devmem_cmsg));
    expect_refused(world, -EBADMSG, "a part of 0 bytes in host memory");
    world_take_full(world, 1);
    world_fragment(world, 2);
    assert_int_equal(world_take(world, 0), 0);
    world_drain(world);
    world_destroy(world);
}

static void sums_that_do_not_add_up_are_refused(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    expect_refused(world, -EBADMSG, "a part of 0 bytes"); /* nothing at all */
    for (int more = -1; more <= 1; more += 2) {
        struct wf_devmem_cmsg data = {.bytes = 100, .dmabuf = WORLD_DMABUF};
        world_control(world, SOL_SOCKET, 79, &data, sizeof data);
        world->received = (size_t)(100 + more);
        expect_refused(world, -EBADMSG, "fragments of 100 bytes");
    }
    for (int i = 0; i < 3; i++) /* 12 GiB that the kernel cannot have written to one MiB */
        world_control(world, SOL_SOCKET, 78, &(struct wf_devmem_cmsg){.bytes = UINT32_MAX},
                      sizeof(struct wf_devmem_cmsg));
    world->received = 3 * (size_t)UINT32_MAX;
    expect_refused(world, -EBADMSG, "in host memory");
    world->received = (size_t)1 << 33;
    expect_refused(world, -EBADMSG, "a part of 8589934592 bytes");
    world->received = WORLD_HOST + 1;
    expect_refused(world, -EBADMSG, "1048577 of them in host memory");
    world_destroy(world);
}

static void control_messages_that_are_cut_off_are_refused(void **state)
{
    struct world *world = world_create(64, 8);
    struct wf_devmem_cmsg data = {.bytes = 1, .dmabuf = WORLD_DMABUF};

    (void)state;
    for (size_t cut = 1; cut < CMSG_SPACE(sizeof data); cut++) {
        world_control(world, SOL_SOCKET, 79, &data, sizeof data);
        world->control_bytes = cut;
        world->received = 1;
        expect_refused(world, -EBADMSG, "control message");
    }
    for (size_t bytes = 0; bytes < sizeof data; bytes++) {
        world_control(world, SOL_SOCKET, 79, &data, bytes);
        world->received = 1;
        expect_refused(world, -EBADMSG, "a fragment's control message of");
    }
    for (size_t length = 0; length < CMSG_LEN(0); length++) {
        world_control(world, SOL_SOCKET, 79, &data, sizeof data);
        memcpy(world->control, &length, sizeof length);
        world->received = 1;
        expect_refused(world, -EBADMSG, "a control message of");
    }
    world_control(world, SOL_SOCKET, 79, &data, sizeof data);
    memset(world->control, 0xff, sizeof(size_t));
    world->received = 1;
    expect_refused(world, -EBADMSG, "a control message of");
    world_control(world, SOL_SOCKET, 79, &data, sizeof data);
    world->received = 1;
    world->flags = MSG_CTRUNC;
    expect_refused(world, -EBADMSG, "cut off");
    world_destroy(world);
}

static void control_messages_of_others_are_passed_over(void **state)
{
    struct world *world = world_create(64, 8);

    (void)state;
    assert_int_equal(world_tell(world, 2 * WORLD_SLOT + 3, 9), 0);
    world_control(world, SOL_SOCKET, 1, "abc", 3);
    world_fragment(world, WORLD_SLOT);
    world_control(world, 41, 79, "abcde", 5);
    world_fragment(world, WORLD_SLOT);
    assert_int_equal(world_take(world, 0), 0);
    world_control(world, SOL_SOCKET, 37, "", 0);
    assert_int_equal(world_take(world, 3), 0);
    world_drain(world);
    assert_int_equal(world->batch.position, 2 * WORLD_SLOT + 3);
    world_destroy(world);
}

static void more_than_there_is_room_for_is_refused(void **state)
{
    struct world *world = world_create(4, 1);

    (void)state;
    world_take_full(world, 3);
    assert_int_equal(wf_devmem_intake_room(world->intake), 1);
    for (int i = 0; i < 2; i++)
        world_control(world, SOL_SOCKET, 79, &(struct wf_devmem_cmsg){.bytes = 1, .dmabuf = WORLD_DMABUF},
                      sizeof(struct wf_devmem_cmsg));
    world->received = 2;
    expect_refused(world, -ENOBUFS, "3 of 4 are in use");
    assert_int_equal(world_take(world, 1), 0);
    world->received = 1;
    expect_refused(world, -ENOBUFS, "4 of 4 are in use");
    assert_int_equal(world_tell(world, 3 * WORLD_SLOT + 1, 0), 0);
    world_drain(world);
    assert_int_equal(wf_devmem_intake_room(world->intake), 4);
    world_destroy(world);
}

static void a_chunk_that_makes_no_sense_is_refused(void **state)
{
    static const struct wf_devmem_chunk table[] = {
        {.position = 1, .bytes = 1, .to = 1},
        {.position = 0, .bytes = 0, .to = 1},
        {.position = 0, .bytes = 2, .to = UINT64_MAX},
        {.position = UINT64_MAX, .bytes = 2, .to = 1},
    };
    struct world *world = world_create(4, 4);

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_int_equal(wf_devmem_intake_expect(world->intake, &table[i], &world->status), -EBADMSG);
    struct wf_devmem_chunk all = {.bytes = UINT64_MAX};
    assert_int_equal(wf_devmem_intake_expect(world->intake, &all, &world->status), 0);
    struct wf_devmem_chunk beyond = {.position = UINT64_MAX, .bytes = 1};
    assert_int_equal(wf_devmem_intake_expect(world->intake, &beyond, &world->status), -EBADMSG);
    world_destroy(world);
}

static void an_intake_of_nothing_or_too_much_is_refused(void **state)
{
    static const uint32_t table[][2] = {{0, 1}, {1, 0}, {(1 << 24) + 1, 1}, {1, (1 << 24) + 1}, {UINT32_MAX, 1}};
    struct wf_devmem_intake *intake;
    struct wf_status status;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct wf_devmem_intake_setup setup = {.fragments_max = table[i][0], .chunks_max = table[i][1]};
        assert_int_equal(wf_devmem_intake_create(&setup, &intake, &status), -EINVAL);
    }
    wf_devmem_intake_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fragment_that_makes_no_sense_is_refused),
        cmocka_unit_test(sums_that_do_not_add_up_are_refused),
        cmocka_unit_test(control_messages_that_are_cut_off_are_refused),
        cmocka_unit_test(control_messages_of_others_are_passed_over),
        cmocka_unit_test(more_than_there_is_room_for_is_refused),
        cmocka_unit_test(a_chunk_that_makes_no_sense_is_refused),
        cmocka_unit_test(an_intake_of_nothing_or_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
