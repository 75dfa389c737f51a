/* The same stranger on the way of somebody who calls: what is said in the name of the peer, and what the peer has said
 * and is changed, is believed where it proves itself. What is not may cost an attempt, never a rail or a session. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/calls/peer.h"
#include "core/join/redial.h"
#include "core/message/connection.h"
#include "core/rail/address.h"
#include "core/session/traffic.h"
#include "stranger.h"

#define CHANNELS 2 /* of the session: an express and a bulk one */
#define ATTEMPTS 6 /* at a lost channel that are refused */

/* The host calls. The stranger has what the peer would have, and does what somebody on the way could do. */
struct called {
    struct scene scene;
    int listener;
    struct wf_dial dial;
    struct wf_hello hello;
    int fds[CHANNELS];
};

/* The host, with these rails, calls; the stranger answers with as many of its own, and these features. */
static void begin_with(struct called *called, const char *rails, int theirs, uint64_t features)
{
    struct scene *scene = &called->scene;
    struct wf_setup setup;
    struct wf_status status;
    memset(called, 0, sizeof *called);
    if (features & WF_FEATURE_DEVICE)
        open_scene_with_cards(scene, 0);
    else
        open_scene_with(scene, NULL, false, rails);
    called->listener = listen_here(scene);
    assert_int_equal(wf_dial_init(&called->dial, &scene->host->world, STRANGER_ADDRESS, 5000, &status), 0);
    wf_door_dial(scene->host->door, &called->dial);
    int fd = take_call(&called->scene, called->listener);
    hear(scene, fd, &setup);
    assert_int_equal(setup.type, WF_SETUP_HELLO);
    setup.hello.boot_nonce += 1;
    setup.hello.session = 77;
    setup.hello.features = features;
    setup.hello.rail_count = (uint8_t)theirs;
    for (int i = 0; i < theirs; i++)
        setup.hello.rails[i] =
            (struct wf_wire_address){.family = 4, .bytes = {127, 0, (uint8_t)(i + 1), 1}, .port = 6000};
    memset(setup.hello.secret, 5, sizeof setup.hello.secret);
    called->hello = setup.hello;
    say(scene, fd, &setup);
    hang_up(scene, fd);
}

/* A stranger that lists no rails: it is there where the host has called. */
static void begin(struct called *called)
{
    begin_with(called, NULL, 0, WF_FEATURE_RAILS);
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
    int fd = take_call(&called->scene, called->listener);
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

/* All channels, as the peer would: the session is up. */
static struct wf_session *let_in(struct called *called)
{
    for (int i = 0; i < CHANNELS; i++) {
        struct wf_join join;
        struct wf_setup challenge, proof;
        int fd = hear_join(called, &join, &challenge);
        assert_int_equal(join.channels, CHANNELS);
        say(&called->scene, fd, &challenge);
        hear(&called->scene, fd, &proof);
        assert_int_equal(proof.type, WF_SETUP_PROOF);
        called->fds[join.channel] = fd;
    }
    pass(&called->scene, WF_NS_PER_S / 10);
    assert_true(called->dial.done);
    assert_int_equal(called->dial.status.code, 0);
    return called->dial.session;
}

/* Refuses one attempt at a lost channel, as the peer would or as anybody could. */
static void refuse(struct called *called, enum wf_deny_reason reason, bool proven)
{
    struct wf_join join;
    struct wf_setup challenge, deny = {.type = WF_SETUP_DENY, .deny = {.reason = (uint16_t)reason, .text = "no"}};
    int fd = hear_join(called, &join, &challenge);
    assert_true(join.incarnation > 1);
    if (proven)
        assert_int_equal(wf_seal_prove_refusal(called->hello.secret, &join, deny.deny.reason, deny.deny.proof), 0);
    say(&called->scene, fd, &deny);
    pass(&called->scene, WF_NS_PER_S / 50);
    hang_up(&called->scene, fd);
}

/* The credit in a CHALLENGE: with more than was granted a peer seems to break the protocol, which ends the session. No
 * channel is joined with it, and when that is done to all of them the dial fails. */
static void credit_changed_on_the_way(void **state)
{
    (void)state;
    for (int what = 0; what < 2; what++) {
        struct called called;
        begin(&called);
        for (int i = 0; i < CHANNELS; i++) {
            struct wf_join join;
            struct wf_setup challenge;
            int fd = hear_join(&called, &join, &challenge);
            assert_false(called.dial.done);
            *(what ? &challenge.challenge.granted_bytes : &challenge.challenge.granted_frames) += 1;
            say(&called.scene, fd, &challenge);
            pass(&called.scene, WF_NS_PER_S / 10);
            hang_up(&called.scene, fd);
        }
        assert_true(called.dial.done);
        assert_int_equal(called.dial.status.code, -EACCES);
        end(&called);
    }
}

/* A full acceptor closes connections before it has read a word on them: the dial calls again for each channel. */
static void shown_out_before_a_word(void **state)
{
    (void)state;
    struct called called;
    begin(&called);
    for (int i = 0; i < 3 * CHANNELS; i++) {
        hang_up(&called.scene, take_call(&called.scene, called.listener));
        pass(&called.scene, WF_NS_PER_S / 50);
        assert_false(called.dial.done);
    }
    struct wf_session *session = let_in(&called);
    for (int i = 0; i < CHANNELS; i++)
        hang_up(&called.scene, called.fds[i]);
    weft_peer_close(&session->peer, 0, NULL);
    end(&called);
}

/* A close waits until what was sent is acknowledged. That the peer is closing too ends the wait, as an orderly end:
 * whoever could say so in its name would have all that is under way forgotten, and nobody told. */
static void closing_in_the_peers_name(void **state)
{
    (void)state;
    struct called called;
    struct weft_endpoint *endpoint;
    struct weft_request *opening, *closing;
    struct weft_completion completion;
    begin(&called);
    struct wf_session *session = let_in(&called);
    assert_int_equal(weft_endpoint_create(called.scene.host, 0, &endpoint, NULL), 0);
    assert_int_equal(weft_connection_open_start(endpoint, &session->peer, 0, NULL, &opening, NULL), 0);
    pass(&called.scene, WF_NS_PER_S / 10); /* it is sent, and nobody acknowledges it */
    closing = wf_session_ask_to_close(session);
    assert_non_null(closing);
    for (int i = 0; i < CHANNELS; i++)
        hang_up(&called.scene, called.fds[i]);
    for (int i = 0; i < ATTEMPTS; i++) {
        refuse(&called, WF_DENY_CLOSING, false);
        assert_int_equal(weft_test(closing, &completion), 0);
        assert_int_equal(session->guard.state, WF_SESSION_UP);
    }
    refuse(&called, WF_DENY_CLOSING, true);
    pass(&called.scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_test(closing, &completion), 1);
    assert_int_equal(completion.status, 0);
    assert_int_equal(weft_test(opening, &completion), 1);
    assert_int_equal(completion.status, -ESHUTDOWN);
    wf_session_release(session);
    end(&called);
}

/* Nobody listens where the peer did. Once it is no proof that the peer is gone: it may be about to listen again, on an
 * interface that was made anew. Twice in a row it is, on the only rail. */
static void refused_by_nobody(void **state)
{
    (void)state;
    struct called called;
    begin(&called);
    struct wf_session *session = let_in(&called);
    const struct wf_redial *redial = &wf_route_of(session->lines.channels[0])->redial;
    for (int gone = 0; gone < 2; gone++) {
        uint32_t before = redial->incarnation;
        hang_up(&called.scene, called.listener);
        for (int i = 0; i < CHANNELS; i++)
            hang_up(&called.scene, called.fds[i]);
        while (redial->incarnation == before || redial->talking)
            pass(&called.scene, WF_NS_PER_MS);
        assert_int_equal(session->guard.state, WF_SESSION_UP);
        if (gone)
            break;
        called.listener = listen_here(&called.scene);
        let_in(&called);
        pass(&called.scene, 2 * WF_NS_PER_S); /* the channels last: they are dialled again at once */
    }
    pass(&called.scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_peer_status(&session->peer, NULL), -ECONNRESET);
    assert_non_null(strstr(session->guard.error.text, "nobody listens there any more"));
    weft_peer_close(&session->peer, 0, NULL);
    close_scene(&called.scene);
}

/* The peer alone gives up a rail for good. */
static void a_rail_retired_in_the_peers_name(void **state)
{
    (void)state;
    struct called called;
    begin(&called);
    struct wf_session *session = let_in(&called);
    hang_up(&called.scene, called.fds[1]);
    for (int i = 0; i < ATTEMPTS; i++) {
        refuse(&called, WF_DENY_RETIRED, false);
        assert_false(session->lines.rails[0].retired);
        assert_int_equal(session->lines.up_count, 1);
    }
    refuse(&called, WF_DENY_RETIRED, true);
    assert_true(session->lines.rails[0].retired);
    hang_up(&called.scene, called.fds[0]);
    weft_peer_close(&session->peer, 0, NULL);
    end(&called);
}

/* A device channel that the peer never takes: with its last attempt the payload stream that was to be its is closed. */
static void a_device_channel_given_up(void **state)
{
    (void)state;
    enum { BYTES = 4096 };
    struct called called;
    struct scene *scene = &called.scene;
    struct weft_registration *registration;
    struct wf_setup challenge, proof;
    struct wf_join join;
    begin_with(&called, NULL, 0, WF_FEATURE_RAILS | WF_FEATURE_DEVICE);
    void *memory = wf_sim_memory_take(scene->memory, 0, BYTES);
    assert_int_equal(weft_register(scene->host, memory, BYTES, &registration, NULL), 0);
    struct wf_session *session = let_in(&called);
    wf_session_lock(session);
    wf_session_use_strand(session, wf_strand_of(0, false));
    wf_session_unlock(session);
    wf_guard_visit(&session->guard, 0);
    int payload = hear_join(&called, &join, &challenge);
    assert_int_equal(join.kind, WF_CHANNEL_PAYLOAD);
    say(scene, payload, &challenge);
    hear(scene, payload, &proof);
    pass(scene, WF_NS_PER_S / 100);
    assert_int_equal(wf_sim_cards_counts(scene->cards).streams, 1);
    refuse(&called, WF_DENY_LIMIT, true);
    assert_int_equal(wf_sim_cards_counts(scene->cards).streams, 0);
    assert_int_equal(session->guard.state, WF_SESSION_UP);
    hang_up(scene, payload);
    for (int i = 0; i < CHANNELS; i++)
        hang_up(scene, called.fds[i]);
    weft_peer_close(&session->peer, 0, NULL);
    weft_deregister(registration);
    wf_sim_memory_give(scene->memory, memory);
    end(&called);
}

/* While as many redials are under way as there may be, a session waits for its turn: if it has a channel to dial. One
 * without would take the turn of another. */
static void a_turn_to_redial(void **state)
{
    (void)state;
    struct called called;
    struct wf_join join;
    struct wf_setup challenge;
    begin(&called);
    struct wf_session *session = let_in(&called);
    struct wf_door *door = called.scene.host->door;
    door->redials = WF_DIALS_AT_ONCE;
    wf_guard_visit(&session->guard, 0);
    pass(&called.scene, WF_NS_PER_S / 10);
    assert_false(wf_link_in_list(&session->redial_link));
    hang_up(&called.scene, called.fds[1]);
    pass(&called.scene, WF_NS_PER_S / 10);
    assert_true(wf_link_in_list(&session->redial_link));
    door->redials = 0;
    wf_guard_visit(&session->guard, 0);
    int fd = hear_join(&called, &join, &challenge);
    assert_int_equal(join.channel, 1);
    assert_int_equal(join.incarnation, 2);
    assert_false(wf_link_in_list(&session->redial_link)); /* nobody else needs the turn: it has taken its place out */
    hang_up(&called.scene, fd);
    hang_up(&called.scene, called.fds[0]);
    weft_peer_close(&session->peer, 0, NULL);
    end(&called);
}

/* It is the turn of a session that is over before it is visited: the next one has it. */
static void a_turn_that_is_passed_on(void **state)
{
    (void)state;
    struct called called;
    struct wf_talk over = {0};
    begin(&called);
    struct wf_session *session = let_in(&called);
    struct wf_door *door = over.door = called.scene.host->door;
    struct wf_session *gone =
        wf_session_create(&called.scene.host->sessions, true, &called.hello, 78, called.hello.secret);
    assert_non_null(gone);
    door->redials = WF_DIALS_AT_ONCE;
    wf_list_push_back(&door->redials_wait, &gone->redial_link);
    hang_up(&called.scene, called.fds[1]);
    pass(&called.scene, WF_NS_PER_S / 10);
    assert_true(wf_link_in_list(&session->redial_link));
    wf_session_lock(gone);
    wf_guard_fail(&gone->guard, -ECONNRESET, "it is over");
    wf_session_unlock(gone);
    wf_redial_over(&over);
    assert_false(wf_link_in_list(&gone->redial_link));
    wf_session_release(gone);
    pass(&called.scene, WF_NS_PER_S / 50);
    assert_false(wf_link_in_list(&session->redial_link));
    hang_up(&called.scene, take_call(&called.scene, called.listener));
    door->redials -= WF_DIALS_AT_ONCE - 1; /* that were none */
    hang_up(&called.scene, called.fds[0]);
    weft_peer_close(&session->peer, 0, NULL);
    end(&called);
}

/* Channels for 16 pairs of rails with a peer that takes no more, and the host says so; else for all. */
static void as_many_pairs_as_the_peer_takes(void **state)
{
    enum { RAILS = 20 };
    char setting[32 * RAILS] = "rails=";
    for (int i = 1; i <= RAILS; i++)
        snprintf(setting + strlen(setting), sizeof setting - strlen(setting), "%s127.0.%d.1", i > 1 ? "," : "", i);
    (void)state;
    for (int few = 0; few < 2; few++) {
        struct called called;
        struct wf_join join;
        struct wf_setup challenge;
        begin_with(&called, setting, few ? WF_RAILS_FEW : RAILS, few ? 0 : WF_FEATURE_RAILS);
        hang_up(&called.scene, hear_join(&called, &join, &challenge));
        assert_int_equal(join.channels, CHANNELS * (few ? WF_RAILS_FEW : RAILS));
        const char *fallbacks = weft_context_fallbacks(called.scene.host);
        assert_int_equal(strstr(fallbacks, "rails: 16 of 20 are used with") != NULL, few);
        end(&called);
    }
}

/* A peer whose HELLO lacks a bit gets nothing that it does not know, and all the rest. */
static void what_an_older_peer_does_not_know(void **state)
{
    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        struct called called;
        struct weft_endpoint *endpoint;
        struct weft_connection *connection;
        struct weft_request *opening, *request = NULL;
        struct weft_completion completion;
        struct weft_options sync = {.flags = WEFT_SYNC};
        begin_with(&called, NULL, 0, WF_FEATURE_RAILS | (knows ? WF_FEATURE_MATCHING : 0));
        struct wf_session *session = let_in(&called);
        assert_int_equal(weft_endpoint_create(called.scene.host, 0, &endpoint, NULL), 0);
        assert_int_equal(weft_connection_open_start(endpoint, &session->peer, 0, NULL, &opening, NULL), 0);
        connection = opening->connection;
        wf_session_lock(session);
        wf_connection_opened(connection);
        wf_session_unlock(session);
        assert_int_equal(weft_test(opening, &completion), 1);
        assert_int_equal(weft_send(connection, "x", 1, 0, &sync, &request), knows ? 0 : -ENOTSUP);
        assert_int_equal(weft_notify(connection, "x", 1, 0, NULL, &request), knows ? 0 : -ENOTSUP);
        assert_int_equal(request != NULL, knows);
        assert_int_equal(weft_send(connection, "x", 1, 0, NULL, &request), 0);
        assert_int_equal(weft_test(request, &completion), 1);
        assert_int_equal(completion.status, 0);
        for (int i = 0; i < CHANNELS; i++)
            hang_up(&called.scene, called.fds[i]);
        weft_peer_close(&session->peer, 0, NULL);
        end(&called);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(credit_changed_on_the_way),
        cmocka_unit_test(refused_by_nobody),
        cmocka_unit_test(shown_out_before_a_word),
        cmocka_unit_test(closing_in_the_peers_name),
        cmocka_unit_test(a_rail_retired_in_the_peers_name),
        cmocka_unit_test(a_device_channel_given_up),
        cmocka_unit_test(a_turn_to_redial),
        cmocka_unit_test(a_turn_that_is_passed_on),
        cmocka_unit_test(as_many_pairs_as_the_peer_takes),
        cmocka_unit_test(what_an_older_peer_does_not_know),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
