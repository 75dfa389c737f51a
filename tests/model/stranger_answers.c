/* The same stranger on the way of somebody who calls: what is said in the name of the peer, and what the peer has said
 * and is changed, is believed where it proves itself. What is not may cost an attempt, never a rail or a session. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stranger.h"

/* The host calls. The stranger has what the peer would have, and does what somebody on the way could do. */
struct called {
    struct scene scene;
    int listener;
    struct wf_dial dial;
    struct wf_hello hello;
};

static int take_call(struct called *called)
{
    struct wf_engine *engine = called->scene.engine;
    struct wf_op op = {.kind = WF_OP_ACCEPT, .fd = called->listener}, *done[1];
    wf_link_init(&op.link);
    engine->ops->post(engine, &op);
    for (int turn = 0; engine->ops->poll(engine, done, 1, 0) == 0; turn++) {
        assert_in_range(turn, 0, 1000);
        pass(&called->scene, 10 * WF_NS_PER_MS);
    }
    assert_true(op.result >= 0);
    assert_int_equal(engine->ops->attach(engine, (int)op.result), 0);
    return (int)op.result;
}

static void begin(struct called *called)
{
    struct scene *scene = &called->scene;
    struct wf_socket_options options = {0};
    struct wf_setup setup;
    struct wf_status status;
    memset(called, 0, sizeof *called);
    open_scene(scene, NULL);
    assert_int_equal(wf_address_parse("127.0.0.1:6000", 0, true, &options.local, &status), 0);
    called->listener = wf_engine_sim.listen(scene->sim, &options, 8);
    assert_true(called->listener >= 0);
    assert_int_equal(scene->engine->ops->attach(scene->engine, called->listener), 0);
    assert_int_equal(wf_dial_init(&called->dial, scene->host, "127.0.0.1:6000", 5000, &status), 0);
    wf_door_dial(scene->host->door, &called->dial);
    int fd = take_call(called);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_HELLO);
    setup.hello.boot_nonce += 1;
    setup.hello.session = 77;
    setup.hello.rail_count = 0; /* there where it has called */
    memset(setup.hello.secret, 5, sizeof setup.hello.secret);
    called->hello = setup.hello;
    say(scene, fd, &setup);
    hang_up(scene, fd);
}

static void end(struct called *called)
{
    struct scene *scene = &called->scene;
    hang_up(scene, called->listener);
    close_scene(scene);
}

/* The challenge that the peer would answer a JOIN with. */
static int hear_join(struct called *called, struct wf_join *join, struct wf_setup *challenge)
{
    struct wf_setup setup;
    int fd = take_call(called);
    hear(&called->scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_JOIN);
    *join = setup.join;
    *challenge = (struct wf_setup){.type = WF_SETUP_CHALLENGE,
                                   .challenge = {.nonce = {9}, .granted_frames = 64, .granted_bytes = 1 << 20}};
    assert_int_equal(
        wf_seal_prove(called->hello.secret, WF_ROLE_ACCEPTOR, join, &challenge->challenge, challenge->challenge.proof),
        0);
    return fd;
}

/* The credit in a CHALLENGE: with more than was granted a peer seems to break the protocol, which ends the session. */
static void credit_changed_on_the_way(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        struct called called;
        struct wf_join join;
        struct wf_setup challenge;
        begin(&called);
        int fd = hear_join(&called, &join, &challenge);
        *(what ? &challenge.challenge.granted_bytes : &challenge.challenge.granted_frames) += 1;
        say(&called.scene, fd, &challenge);
        pass(&called.scene, WF_NS_PER_S / 10);
        assert_true(called.dial.done);
        assert_int_equal(called.dial.status.code, -EACCES);
        hang_up(&called.scene, fd);
        end(&called);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_changed_on_the_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
