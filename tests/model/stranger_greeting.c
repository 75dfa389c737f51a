/* GREETING, as somebody says it who knows the protocol: in order, too late, never, twice, or of an older version. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/calls/context.h"
#include "stranger.h"

/* HELLO of a peer with these features, and the host's answer. The descriptor. */
static int say_hello(struct scene *scene, uint64_t features, struct wf_hello *answer)
{
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    int fd = call(scene);
    wf_session_hello(&scene->host->sessions, NULL, &setup.hello);
    setup.hello.features = features;
    say(scene, fd, &setup);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_HELLO);
    assert_true(setup.hello.features & WF_FEATURE_GREETING);
    *answer = setup.hello;
    return fd;
}

/* One channel, up to a peer that the host hands out. */
static struct weft_peer *come_up(struct scene *scene, const struct wf_hello *hello, int *fd)
{
    struct weft_peer *peer = NULL;
    struct wf_setup proof;
    *fd = join(scene, hello, 1, &proof);
    say(scene, *fd, &proof);
    pass(scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_accept(scene->host, 0, &peer, NULL), 0);
    return peer;
}

static void expect_greeting(const struct weft_peer *peer, const void *bytes, uint32_t length)
{
    uint32_t got = 12345;
    const char *greeting = weft_peer_greeting(peer, &got);
    assert_non_null(greeting);
    assert_int_equal(got, length);
    assert_memory_equal(greeting, bytes, length);
    assert_int_equal(greeting[length], '\0');
}

/* The session of a HELLO whose conversation has gone no further: it is gone after its deadline, and nobody was told. */
static void expect_no_peer(struct scene *scene)
{
    struct weft_peer *peer = NULL;
    pass(scene, JOIN_DEADLINE);
    assert_int_equal(weft_accept(scene->host, 0, &peer, NULL), -ETIMEDOUT);
    assert_int_equal(scene->host->sessions.count, 0);
    assert_int_equal(scene->host->door->visitors, 0);
}

/* --- the stranger calls --- */

static void both_have_the_others(void **state)
{
    (void)state;
    static const size_t lengths[] = {0, 1, 700, WF_GREETING_MAX};
    for (size_t i = 0; i < 4; i++) {
        struct scene scene;
        struct wf_hello hello;
        struct wf_setup setup = {.type = WF_SETUP_GREETING, .greeting = {.length = (uint16_t)lengths[i]}};
        uint8_t ours[WF_GREETING_MAX], theirs[WF_GREETING_MAX];
        int fd;
        open_scene(&scene, NULL);
        for (size_t at = 0; at < WF_GREETING_MAX; at++) {
            ours[at] = (uint8_t)(3 * at);
            theirs[at] = setup.greeting.bytes[at] = (uint8_t)(5 * at + 1);
        }
        assert_int_equal(weft_greeting_set(scene.host, ours, (uint32_t)lengths[3 - i], NULL), 0);
        int control = say_hello(&scene, WF_FEATURE_GREETING, &hello);
        say(&scene, control, &setup);
        hear(&scene, control, &setup);
        assert_int_equal(setup.type, WF_SETUP_GREETING);
        assert_int_equal(setup.greeting.length, lengths[3 - i]);
        assert_memory_equal(setup.greeting.bytes, ours, lengths[3 - i]);
        assert_int_equal(receive_bytes(&scene, control, ours, 1), 0); /* that was all */
        hang_up(&scene, control);
        struct weft_peer *peer = come_up(&scene, &hello, &fd);
        expect_greeting(peer, theirs, (uint32_t)lengths[i]);
        hang_up(&scene, fd);
        weft_peer_close(peer, 0, NULL);
        close_scene(&scene);
    }
}

/* A dialer of an older version neither says a GREETING nor hears one. */
static void an_older_dialer(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    uint8_t byte;
    int fd;
    open_scene(&scene, NULL);
    assert_int_equal(weft_greeting_set(scene.host, "host", 4, NULL), 0);
    int control = say_hello(&scene, WF_FEATURE_RAILS, &hello);
    assert_int_equal(receive_bytes(&scene, control, &byte, 1), 0);
    hang_up(&scene, control);
    struct weft_peer *peer = come_up(&scene, &hello, &fd);
    expect_greeting(peer, "", 0);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

static void a_conversation_that_breaks_off(void **state)
{
    (void)state;
    for (int half = 0; half < 3; half++) {
        struct scene scene;
        struct wf_hello hello;
        struct wf_setup greeting = {.type = WF_SETUP_GREETING, .greeting = {.length = 40}};
        uint8_t bytes[WF_SETUP_MAX];
        open_scene(&scene, NULL);
        int control = say_hello(&scene, WF_FEATURE_GREETING, &hello);
        int length = wf_setup_encode(&greeting, bytes, sizeof bytes);
        if (half == 1)
            send_bytes(&scene, control, bytes, (size_t)length / 2);
        if (half < 2) /* else it stays, and says nothing */
            hang_up(&scene, control);
        expect_no_peer(&scene);
        if (half == 2)
            hang_up(&scene, control);
        close_scene(&scene);
    }
}

static void expect_refused(struct scene *scene, int fd, enum wf_deny_reason reason, const char *words)
{
    struct wf_setup setup;
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_DENY);
    assert_int_equal(setup.deny.reason, reason);
    assert_non_null(strstr(setup.deny.text, words));
    hang_up(scene, fd);
}

/* Whoever owes a GREETING joins no channel, though it has the secret. */
static void a_channel_before_the_greeting(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup setup = {.type = WF_SETUP_JOIN};
    open_scene(&scene, NULL);
    int control = say_hello(&scene, WF_FEATURE_GREETING, &hello);
    setup.join = (struct wf_join){.session = hello.session,
                                  .incarnation = 1,
                                  .channels = 1,
                                  .kind = WF_CHANNEL_EXPRESS,
                                  .granted_frames = 64,
                                  .granted_bytes = 1 << 20};
    int fd = call(&scene);
    say(&scene, fd, &setup);
    expect_refused(&scene, fd, WF_DENY_LIMIT, "before the greeting");
    greet(&scene, control); /* then it may */
    hang_up(&scene, control);
    struct weft_peer *peer = come_up(&scene, &hello, &fd);
    expect_greeting(peer, "stranger", 8);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* In the place of GREETING, or of HELLO: anything else ends the conversation, and makes no second session. */
static void out_of_order(void **state)
{
    (void)state;
    for (int type = WF_SETUP_HELLO; type <= WF_SETUP_GREETING; type++) {
        struct scene scene;
        struct wf_hello hello;
        struct wf_setup setup = {.type = (enum wf_setup_type)type};
        uint8_t byte;
        open_scene(&scene, NULL);
        bool early = type == WF_SETUP_GREETING;
        int fd = early ? call(&scene) : say_hello(&scene, WF_FEATURE_GREETING, &hello);
        if (type == WF_SETUP_HELLO)
            wf_session_hello(&scene.host->sessions, NULL, &setup.hello);
        if (type == WF_SETUP_JOIN)
            setup.join =
                (struct wf_join){.session = hello.session, .incarnation = 1, .channels = 1, .kind = WF_CHANNEL_EXPRESS};
        say(&scene, fd, &setup);
        assert_int_equal(receive_bytes(&scene, fd, &byte, 1), 0);
        assert_int_equal(scene.host->sessions.count, early ? 0 : 1);
        hang_up(&scene, fd);
        expect_no_peer(&scene);
        close_scene(&scene);
    }
}

/* A damaged GREETING, and one that is longer than it may be. */
static void damaged_ones(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        struct scene scene;
        struct wf_hello hello;
        struct wf_setup greeting = {.type = WF_SETUP_GREETING, .greeting = {.length = 40}};
        uint8_t bytes[WF_SETUP_MAX], byte;
        open_scene(&scene, NULL);
        int fd = say_hello(&scene, WF_FEATURE_GREETING, &hello);
        int length = wf_setup_encode(&greeting, bytes, sizeof bytes);
        if (what == 0)
            bytes[WF_SETUP_PREFIX + 20] ^= 4;
        else if (what == 1) /* the length of the greeting */
            bytes[WF_SETUP_PREFIX] += 1;
        else /* the length of the message: one more than the longest */
            memcpy(bytes + 6, (uint8_t[]){(WF_GREETING_MAX + 3) & 0xff, (WF_GREETING_MAX + 3) >> 8}, 2);
        send_bytes(&scene, fd, bytes, what < 2 ? (size_t)length : WF_SETUP_PREFIX);
        assert_int_equal(receive_bytes(&scene, fd, &byte, 1), 0);
        hang_up(&scene, fd);
        expect_no_peer(&scene);
        close_scene(&scene);
    }
}

/* --- the host calls --- */

struct called {
    struct scene scene;
    int listener, control;
    struct wf_dial dial;
    struct wf_setup hello; /* the stranger's answer */
};

static void take_hello(struct called *called, uint64_t features)
{
    struct scene *scene = &called->scene;
    struct wf_status status;
    memset(called, 0, sizeof *called);
    open_scene(scene, NULL);
    assert_int_equal(weft_greeting_set(scene->host, "host", 4, NULL), 0);
    called->listener = listen_here(scene);
    assert_int_equal(wf_dial_init(&called->dial, &scene->host->world, STRANGER_ADDRESS, 5000, &status), 0);
    wf_door_dial(scene->host->door, &called->dial);
    called->control = take_call(scene, called->listener);
    hear(scene, called->control, &called->hello);
    assert_int_equal(called->hello.type, WF_SETUP_HELLO);
    assert_true(called->hello.hello.features & WF_FEATURE_GREETING);
    called->hello.hello.boot_nonce += 1;
    called->hello.hello.session = 77;
    called->hello.hello.features = features;
    called->hello.hello.rail_count = 0;
    say(scene, called->control, &called->hello);
}

static void end(struct called *called)
{
    hang_up(&called->scene, called->control);
    hang_up(&called->scene, called->listener);
    close_scene(&called->scene);
}

static void expect_failed(struct called *called, int code, const char *words)
{
    pass(&called->scene, JOIN_DEADLINE);
    assert_true(called->dial.done);
    assert_int_equal(called->dial.status.code, code);
    assert_non_null(strstr(called->dial.status.text, words));
    assert_non_null(strstr(called->dial.status.text, STRANGER_ADDRESS));
    assert_null(called->dial.session);
    assert_int_equal(called->scene.host->sessions.count, 0);
    end(called);
}

/* The channels of the session, of the one pair of rails. */
static void let_in(struct called *called, int fds[2])
{
    for (int i = 0; i < 2; i++) {
        struct wf_setup join, challenge = {.type = WF_SETUP_CHALLENGE,
                                           .challenge = {.nonce = {9}, .granted_frames = 64, .granted_bytes = 1 << 20}};
        fds[i] = take_call(&called->scene, called->listener);
        hear(&called->scene, fds[i], &join);
        assert_int_equal(join.type, WF_SETUP_JOIN);
        assert_int_equal(wf_seal_prove(called->hello.hello.secret, WF_ROLE_ACCEPTOR, &join.join, &challenge.challenge,
                                       challenge.challenge.proof),
                         0);
        say(&called->scene, fds[i], &challenge);
        hear(&called->scene, fds[i], &join);
        assert_int_equal(join.type, WF_SETUP_PROOF);
    }
    pass(&called->scene, WF_NS_PER_S / 10);
    assert_true(called->dial.done);
    assert_int_equal(called->dial.status.code, 0);
}

/* The channels are dialled behind the answer, and not before. */
static void the_dialer_has_it_first(void **state)
{
    (void)state;
    struct called called;
    struct wf_setup setup;
    int fds[2];
    take_hello(&called, WF_FEATURE_GREETING);
    hear(&called.scene, called.control, &setup);
    assert_int_equal(setup.type, WF_SETUP_GREETING);
    assert_int_equal(setup.greeting.length, 4);
    assert_memory_equal(setup.greeting.bytes, "host", 4);
    pass(&called.scene, WF_NS_PER_S);
    assert_int_equal(called.dial.joining, 0);
    setup.greeting = (struct wf_greeting){.length = 3, .bytes = "you"};
    say(&called.scene, called.control, &setup);
    let_in(&called, fds);
    struct weft_peer *peer = &called.dial.session->peer;
    expect_greeting(peer, "you", 3);
    hang_up(&called.scene, fds[0]);
    hang_up(&called.scene, fds[1]);
    weft_peer_close(peer, 0, NULL);
    end(&called);
}

static void an_older_acceptor(void **state)
{
    (void)state;
    struct called called;
    uint8_t byte;
    int fds[2];
    take_hello(&called, WF_FEATURE_RAILS);
    assert_int_equal(receive_bytes(&called.scene, called.control, &byte, 1), 0);
    let_in(&called, fds);
    struct weft_peer *peer = &called.dial.session->peer;
    expect_greeting(peer, "", 0);
    hang_up(&called.scene, fds[0]);
    hang_up(&called.scene, fds[1]);
    weft_peer_close(peer, 0, NULL);
    end(&called);
}

static void no_answer_to_the_greeting(void **state)
{
    (void)state;
    struct called called;
    struct wf_setup setup;
    take_hello(&called, WF_FEATURE_GREETING);
    expect_failed(&called, -ETIMEDOUT, "went on no further");

    take_hello(&called, WF_FEATURE_GREETING);
    hear(&called.scene, called.control, &setup); /* what is unread would make a reset of the end of the stream */
    wf_engine_sim.shutdown(called.scene.sim, called.control);
    expect_failed(&called, -ECONNRESET, "closed the connection before the set-up was complete");

    take_hello(&called, WF_FEATURE_GREETING);
    say(&called.scene, called.control, &called.hello); /* HELLO once more: one session, and no other */
    expect_failed(&called, -EPROTO, "out of order");

    take_hello(&called, WF_FEATURE_GREETING);
    setup = (struct wf_setup){.type = WF_SETUP_DENY, .deny = {.reason = WF_DENY_BUSY, .text = "not with that name"}};
    say(&called.scene, called.control, &setup);
    expect_failed(&called, -ECONNREFUSED, "not with that name");
}

/* --- the calls --- */

static void what_may_be_set(void **state)
{
    (void)state;
    struct scene scene;
    struct weft_error err = {0};
    uint8_t bytes[WF_GREETING_MAX + 1] = {0};
    open_scene(&scene, NULL);
    assert_int_equal(weft_greeting_set(scene.host, bytes, WEFT_GREETING_MAX, &err), 0);
    assert_int_equal(weft_greeting_set(scene.host, bytes, WEFT_GREETING_MAX + 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "4097"));
    assert_non_null(strstr(err.text, "4096"));
    assert_int_equal(weft_greeting_set(scene.host, NULL, 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "NULL"));
    assert_int_equal(weft_greeting_set(NULL, bytes, 1, &err), -EINVAL);
    assert_non_null(strstr(err.text, "context"));
    uint32_t length = 5;
    assert_string_equal(weft_peer_greeting(NULL, &length), "");
    assert_int_equal(length, 0);
    assert_int_equal(scene.host->sessions.greeting.length, WEFT_GREETING_MAX); /* as it was */
    assert_int_equal(weft_greeting_set(scene.host, NULL, 0, NULL), 0);
    assert_int_equal(scene.host->sessions.greeting.length, 0);
    close_scene(&scene);
}

static const struct wf_engine_ops *true_ops;
static int without_memory; /* so many attaches fail */

static int attach_at_last(struct wf_engine *engine, int fd)
{
    if (without_memory == 0)
        return true_ops->attach(engine, fd);
    without_memory -= 1;
    return -ENOMEM;
}

/* A dialer gives each channel up to four seconds: an acceptor with less time to connect waits for them, too. */
static void an_acceptor_of_little_patience(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    int fd;
    open_scene_with(&scene, NULL, false, "connect_timeout=1");
    introduce(&scene, &hello);
    pass(&scene, 4 * WF_NS_PER_S);
    struct weft_peer *peer = come_up(&scene, &hello, &fd);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* weft_listen() has returned 0, and the door's engine finds no memory for the listener: it asks again. */
static void a_listener_that_finds_no_memory(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_engine_ops ops;
    open_scene(&scene, NULL);
    struct wf_engine *engine = scene.host->door->engine;
    true_ops = engine->ops;
    ops = *true_ops;
    ops.attach = attach_at_last;
    without_memory = 3;
    engine->ops = &ops;
    pass(&scene, WF_NS_PER_S);
    assert_int_equal(without_memory, 0);
    engine->ops = true_ops;
    introduce(&scene, &hello);
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_that_finds_no_memory),
        cmocka_unit_test(both_have_the_others),
        cmocka_unit_test(an_older_dialer),
        cmocka_unit_test(an_acceptor_of_little_patience),
        cmocka_unit_test(a_conversation_that_breaks_off),
        cmocka_unit_test(a_channel_before_the_greeting),
        cmocka_unit_test(out_of_order),
        cmocka_unit_test(damaged_ones),
        cmocka_unit_test(the_dialer_has_it_first),
        cmocka_unit_test(an_older_acceptor),
        cmocka_unit_test(no_answer_to_the_greeting),
        cmocka_unit_test(what_may_be_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
