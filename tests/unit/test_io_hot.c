/* The epoll engine's hot descriptors: what makes one, what it does to large calls, and that it is forgotten. */
#include "hot_fixture.h"

#include <unistd.h>

#include "io/hot.h"

#define CUT (128u * 1024)

static void what_is_not_urgent_cuts_nothing(void **state)
{
    receive(*state, false);
    assert_int_equal(send_large(*state), CALL);
}

static void what_is_urgent_cuts_large_calls(void **state)
{
    receive(*state, true);
    assert_int_equal(send_large(*state), CUT);
}

/* Its poster will not poll: all that the kernel takes goes to it in the call that posts it, also what is more than the
 * calls of others take. */
static void an_urgent_send_waits_for_no_turn(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    uint8_t sink[CUT + 64];
    for (int urgent = 0; urgent < 2; urgent++) {
        receive(fixture, true);
        fixture->large_piece = (struct iovec){fixture->data, sizeof sink};
        fixture->send = (struct wf_op){.kind = WF_OP_SEND,
                                       .fd = fixture->large[0],
                                       .iov = &fixture->large_piece,
                                       .iov_count = 1,
                                       .urgent = urgent};
        fixture->engine->ops->post(fixture->engine, &fixture->send);
        assert_int_equal(fixture->send.finished, urgent);
        assert_int_equal(fixture->send.moved, urgent ? sizeof sink : 0);
        assert_int_equal(poll_until_ended(fixture, finished), 1);
        assert_int_equal(read(fixture->large[1], sink, sizeof sink), sizeof sink);
        fixture->engine->ops->cancel(fixture->engine, &fixture->recv);
        while (fixture->engine->ops->poll(fixture->engine, finished, 4, 0) > 0)
            continue;
    }
}

/* Nothing more comes: after some looks in vain large calls are whole again. */
static void it_cools(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    receive(fixture, true);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(fixture->engine->ops->poll(fixture->engine, finished, 4, 0), 0);
    assert_int_equal(send_large(fixture), CALL);
}

/* Nothing comes between large calls: they are not cut for it for ever, but again as soon as something has come. */
static void it_cuts_so_many_bytes(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    receive(fixture, true);
    for (int again = 0; again < 2; again++) {
        for (size_t sent = 0; sent < WF_HOT_BYTES; sent += LARGE)
            assert_int_equal(send_large(fixture), CUT);
        assert_int_equal(send_large(fixture), CALL);
        assert_int_equal(write(fixture->small[1], "x", 1), 1);
        assert_int_equal(poll_until_ended(fixture, finished), 1);
        post_receive(fixture, true);
    }
}

/* The number may be another's next: nothing of it may stay behind. */
static void it_is_forgotten_at_detach(void **state)
{
    struct fixture *fixture = *state;
    struct wf_op *finished[4];
    struct wf_engine *engine = fixture->engine;
    receive(fixture, true);
    engine->ops->cancel(engine, &fixture->recv);
    assert_int_equal(engine->ops->poll(engine, finished, 4, 0), 1);
    engine->ops->detach(engine, fixture->small[0]);
    assert_int_equal(send_large(fixture), CALL);
    assert_int_equal(engine->ops->attach(engine, fixture->small[0]), 0);
    assert_int_equal(send_large(fixture), CALL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_not_urgent_cuts_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_urgent_cuts_large_calls, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_urgent_send_waits_for_no_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_cools, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_cuts_so_many_bytes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_is_forgotten_at_detach, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
