/* The epoll engine's muted descriptors: the kernel is not asked about them any more, and they are read all the same. */
#include "hot_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 100  /* receives: more than it takes to mute a descriptor */
#define PIECES 64 /* of a large message: more than there are polls until epoll is asked */

/* So many messages that the descriptor is read without asking the kernel. A receive is posted. */
static void mute(struct fixture *fixture, bool urgent)
{
    struct wf_op *finished[4];
    receive(fixture, urgent);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(write(fixture->small[1], "x", 1), 1);
        assert_int_equal(poll_until_ended(fixture, finished), 1);
        post_receive(fixture, urgent);
    }
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(epoll_forgot, fixture->small[0]);
}

/* What comes next ends the posted receive. */
static void expect_byte(struct fixture *fixture)
{
    struct wf_op *finished[4];
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(poll_until_ended(fixture, finished), 1);
    assert_int_equal(fixture->recv.result, 1);
    assert_int_equal(fixture->bytes[0], 'y');
}

static void what_is_muted_is_read(void **state)
{
    mute(*state, true);
    expect_byte(*state);
    assert_int_equal(epoll_forgot, ((struct fixture *)*state)->small[0]);
}

/* A large message that is on its way as long as somebody reads it, so that the engine is never without work. */
static void post_large(struct fixture *fixture, struct iovec pieces[PIECES])
{
    for (int i = 0; i < PIECES; i++)
        pieces[i] = (struct iovec){fixture->data, LARGE};
    fixture->send = (struct wf_op){.kind = WF_OP_SEND, .fd = fixture->large[0], .iov = pieces, .iov_count = PIECES};
    fixture->engine->ops->post(fixture->engine, &fixture->send);
}

static int read_and_poll(struct fixture *fixture, struct wf_op *finished[4])
{
    static uint8_t sink[LARGE];
    while (read(fixture->large[1], sink, sizeof(sink)) > 0)
        continue;
    return fixture->engine->ops->poll(fixture->engine, finished, 4, 0);
}

/* Comes while the large message is under way. */
static void expect_byte_beside(struct fixture *fixture)
{
    struct wf_op *finished[4];
    int count = 0;
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    for (int polls = 0; count == 0 && polls < PIECES / 2; polls++)
        count = read_and_poll(fixture, finished);
    assert_int_equal(count, 1);
    assert_ptr_equal(finished[0], &fixture->recv);
    assert_int_equal(fixture->recv.result, 1);
    assert_false(fixture->send.finished);
}

static void what_is_muted_is_read_beside_a_large_message(void **state)
{
    struct iovec pieces[PIECES];
    for (int urgent = 0; urgent < 2; urgent++) {
        mute(*state, urgent);
        post_large(*state, pieces);
        expect_byte_beside(*state);
        tear_down(state);
        set_up(state);
    }
}

/* Where it has nothing, that is found out once. */
static void it_is_tried_once_in_a_poll(void **state)
{
    struct fixture *fixture = *state;
    struct iovec pieces[PIECES];
    struct wf_op *finished[4];
    mute(fixture, true);
    post_large(fixture, pieces);
    for (int polls = 0; polls < PIECES / 2; polls++) {
        recv_calls = 0;
        assert_int_equal(read_and_poll(fixture, finished), 0);
        assert_in_range(recv_calls, 0, 1);
    }
    fixture->engine->ops->cancel(fixture->engine, &fixture->send);
}

/* What was interrupted is tried again, and goes once. */
static void an_interrupted_call_is_repeated(void **state)
{
    struct fixture *fixture = *state;
    struct iovec pieces[PIECES];
    mute(fixture, true);
    post_large(fixture, pieces);
    for (int i = 0; i < 3; i++) {
        recv_interrupts = i;
        expect_byte_beside(fixture);
        post_receive(fixture, true);
    }
    fixture->engine->ops->cancel(fixture->engine, &fixture->send);
}

/* Does the thread that runs the tests sleep in the kernel? */
static bool tests_sleep(void)
{
    char path[64], state = '?';
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
    FILE *file = fopen(path, "r");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    if (file)
        fclose(file);
    return state == 'S';
}

static void *write_late(void *argument)
{
    struct fixture *fixture = argument;
    int64_t end = wf_clock_now(&wf_clock_monotonic) + PATIENCE_NS;
    while (!tests_sleep() && wf_clock_now(&wf_clock_monotonic) < end)
        continue;
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    return NULL;
}

static void sleep_ends_for_what_was_muted(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    pthread_t thread;
    mute(fixture, true);
    assert_int_equal(pthread_create(&thread, NULL, write_late, fixture), 0);
    int count = fixture->engine->ops->poll(fixture->engine, finished, 4, PATIENCE_NS);
    for (int i = 0; count == 0 && i < 5; i++) /* a signal ends it early */
        count = fixture->engine->ops->poll(fixture->engine, finished, 4, PATIENCE_NS);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(count, 1);
    assert_int_equal(fixture->recv.result, 1);
    assert_int_equal(epoll_forgot, NO_FD);
}

static void sleep_does_not_begin_when_it_has_come(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    int64_t begin = wf_clock_now(&wf_clock_monotonic);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 60 * WF_NS_PER_S), 1);
    assert_true(wf_clock_now(&wf_clock_monotonic) - begin < 30 * WF_NS_PER_S);
}

/* Posted while the engine already knew it as muted. */
static void a_receive_posted_late_ends_sleep(void **state)
{
    struct fixture *fixture = *state;
    struct wf_engine *engine = fixture->engine;
    struct wf_op *finished[4];
    mute(fixture, true);
    engine->ops->cancel(engine, &fixture->recv);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 1);
    assert_int_equal(engine->ops->poll(engine, finished, 4, WF_NS_PER_MS), 0);
    post_receive(fixture, true);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 60 * WF_NS_PER_S), 1);
    assert_int_equal(fixture->recv.result, 1);
}

static void what_cools_is_muted_no_more(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(epoll_forgot, NO_FD);
    expect_byte(fixture);
}

/* Where others are read as well it is not worth a look in vain. */
static void what_is_not_urgent_any_more_is_muted_no_more(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    int other[2];
    make_pair(fixture, other);
    mute(fixture, true);
    expect_byte(fixture);
    post_receive(fixture, false);
    for (int i = 0; i < 4; i++)
        assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(epoll_forgot, NO_FD);
    expect_byte(fixture);
    end_pair(fixture, other);
}

static void what_is_not_urgent_is_muted_as_well(void **state)
{
    struct fixture *fixture = *state;
    mute(fixture, false);
    assert_int_equal(send_large(fixture), CALL);
    expect_byte(fixture);
}

static void beside_others_it_is_not(void **state)
{
    struct fixture *fixture = *state;
    int other[2];
    make_pair(fixture, other);
    for (int i = 0; i < MANY; i++) {
        receive(fixture, false);
        expect_byte(fixture);
    }
    assert_int_equal(epoll_forgot, NO_FD);
    end_pair(fixture, other);
}

/* The kernel may have no memory for it by then: nobody is to wait for ever. */
static void a_refusal_ends_the_receive(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    epoll_refuses = ENOSPC;
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 60 * WF_NS_PER_S), 1);
    epoll_refuses = 0;
    assert_int_equal(fixture->recv.result, -ENOSPC);
    post_receive(fixture, true);
    expect_byte(fixture);
}

static void the_end_is_seen_of_what_is_muted(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    assert_int_equal(shutdown(fixture->small[1], SHUT_WR), 0);
    assert_int_equal(poll_until_ended(fixture, finished), 1);
    assert_int_equal(fixture->recv.result, 0);
}

/* A send of what is muted that finds no room. */
static void post_send_without_room(struct fixture *fixture)
{
    struct wf_op *finished[4];
    while (write(fixture->small[0], fixture->data, LARGE) > 0)
        continue;
    fixture->large_piece = (struct iovec){fixture->data, LARGE};
    fixture->send =
        (struct wf_op){.kind = WF_OP_SEND, .fd = fixture->small[0], .iov = &fixture->large_piece, .iov_count = 1};
    fixture->engine->ops->post(fixture->engine, &fixture->send);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(epoll_forgot, NO_FD);
}

/* Until it has gone. */
static void make_room(struct fixture *fixture)
{
    struct wf_op *finished[4];
    static uint8_t sink[LARGE];
    int64_t end = wf_clock_now(&wf_clock_monotonic) + PATIENCE_NS;
    int count = 0;
    while (count == 0 && wf_clock_now(&wf_clock_monotonic) < end) {
        while (read(fixture->small[1], sink, sizeof(sink)) > 0)
            continue;
        count = fixture->engine->ops->poll(fixture->engine, finished, 4, 0);
    }
    assert_int_equal(count, 1);
    assert_ptr_equal(finished[0], &fixture->send);
}

static void a_send_that_waits_is_told_of_room(void **state)
{
    mute(*state, true);
    post_send_without_room(*state);
    make_room(*state);
    expect_byte(*state);
}

/* Muted again it would not be. */
static void nothing_is_muted_while_a_send_waits(void **state)
{
    struct fixture *fixture = *state;
    mute(fixture, true);
    post_send_without_room(fixture);
    for (int i = 0; i < MANY; i++) {
        expect_byte(fixture);
        post_receive(fixture, true);
    }
    assert_int_equal(epoll_forgot, NO_FD);
    make_room(fixture);
}

/* Both directions wait, and both are told of. */
static void what_a_send_unmuted_ends_sleep(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    mute(fixture, true);
    post_send_without_room(fixture);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, WF_NS_PER_MS), 0);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, PATIENCE_NS), 1);
    assert_ptr_equal(finished[0], &fixture->recv);
    make_room(fixture);
}

/* Or each answer that has to wait would cost two calls more. */
static void after_that_it_is_not_muted_at_once(void **state)
{
    struct fixture *fixture = *state;
    mute(fixture, true);
    post_send_without_room(fixture);
    make_room(fixture);
    int before = epoll_forgets;
    expect_byte(fixture);
    post_receive(fixture, true);
    expect_byte(fixture);
    assert_int_equal(epoll_forgets, before);
}

/* Others become hot, as many as there may be. */
static void displace(struct fixture *fixture, int others[2][2])
{
    struct wf_op *finished[4];
    uint8_t bytes[2];
    for (int i = 0; i < 2; i++) {
        make_pair(fixture, others[i]);
        struct iovec piece = {bytes, sizeof(bytes)};
        struct wf_op op = {.kind = WF_OP_RECV, .fd = others[i][0], .iov = &piece, .iov_count = 1, .urgent = true};
        assert_int_equal(write(others[i][1], "z", 1), 1);
        fixture->engine->ops->post(fixture->engine, &op);
        assert_int_equal(poll_until_ended(fixture, finished), 1);
        assert_ptr_equal(finished[0], &op);
    }
}

static void what_is_displaced_ends_sleep(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    int others[2][2];
    mute(fixture, true);
    displace(fixture, others);
    assert_int_equal(epoll_forgot, NO_FD);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, PATIENCE_NS), 1);
    assert_ptr_equal(finished[0], &fixture->recv);
    end_pair(fixture, others[0]);
    end_pair(fixture, others[1]);
}

static void what_was_displaced_ends_sleep_later(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    int others[2][2];
    mute(fixture, true);
    fixture->engine->ops->cancel(fixture->engine, &fixture->recv);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 1);
    displace(fixture, others);
    post_receive(fixture, true);
    assert_int_equal(write(fixture->small[1], "y", 1), 1);
    assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, PATIENCE_NS), 1);
    assert_ptr_equal(finished[0], &fixture->recv);
    end_pair(fixture, others[0]);
    end_pair(fixture, others[1]);
}

/* Places of descriptors that are gone are taken again, and two of two are muted. */
static void places_are_taken_again(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    int others[2][2];
    displace(fixture, others);
    end_pair(fixture, others[1]);
    mute(fixture, true);
    end_pair(fixture, others[0]);
    struct iovec piece = {fixture->data, 2};
    for (int i = 0; i < MANY; i++) {
        struct wf_op op = {.kind = WF_OP_RECV, .fd = fixture->large[0], .iov = &piece, .iov_count = 1};
        piece = (struct iovec){fixture->data, 2};
        assert_int_equal(write(fixture->large[1], "z", 1), 1);
        fixture->engine->ops->post(fixture->engine, &op);
        assert_int_equal(poll_until_ended(fixture, finished), 1);
        assert_ptr_equal(finished[0], &op);
        expect_byte(fixture);
        post_receive(fixture, true);
    }
    assert_int_equal(epoll_forgot, fixture->large[0]); /* both are muted: the small one was before */
    expect_byte(fixture);
}

/* Somebody who is told of by events is not forgotten beside one who is read without. */
static void others_get_their_turn(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4], op;
    struct iovec piece = {fixture->data, 2};
    int other[2];
    make_pair(fixture, other);
    mute(fixture, true);
    op = (struct wf_op){.kind = WF_OP_RECV, .fd = other[0], .iov = &piece, .iov_count = 1};
    fixture->engine->ops->post(fixture->engine, &op);
    assert_int_equal(write(other[1], "z", 1), 1);
    bool came = false;
    for (int polls = 0; !came && polls < MANY; polls++) {
        assert_int_equal(write(fixture->small[1], "y", 1), 1);
        int count = poll_until_ended(fixture, finished);
        for (int i = 0; i < count; i++) {
            came |= finished[i] == &op;
            if (finished[i] == &fixture->recv)
                post_receive(fixture, true);
        }
    }
    assert_true(came);
    end_pair(fixture, other);
}

static void what_is_muted_is_forgotten_at_detach(void **state)
{
    struct fixture *fixture = *state;
    struct wf_engine *engine = fixture->engine;
    struct wf_op *finished[4];
    mute(fixture, true);
    assert_int_equal(engine->ops->attach(engine, fixture->small[0]), -EEXIST);
    engine->ops->cancel(engine, &fixture->recv);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 1);
    engine->ops->detach(engine, fixture->small[0]);
    assert_int_equal(engine->ops->attach(engine, fixture->small[0]), 0);
    post_receive(fixture, false);
    expect_byte(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_muted_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_muted_is_read_beside_a_large_message, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_tried_once_in_a_poll, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_interrupted_call_is_repeated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sleep_ends_for_what_was_muted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sleep_does_not_begin_when_it_has_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_receive_posted_late_ends_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cools_is_muted_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_urgent_any_more_is_muted_no_more, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_urgent_is_muted_as_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(beside_others_it_is_not, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_ends_the_receive, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_is_seen_of_what_is_muted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_send_that_waits_is_told_of_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_is_muted_while_a_send_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_a_send_unmuted_ends_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(after_that_it_is_not_muted_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_displaced_ends_sleep, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_displaced_ends_sleep_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(places_are_taken_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_get_their_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_muted_is_forgotten_at_detach, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
