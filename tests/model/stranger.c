/* A stranger who knows the protocol talks to a listening context on the simulated network, at the worst moments. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/message/connection.h"
#include "core/message/inbound.h"
#include "stranger.h"

/* The session's patience ends between CHALLENGE and PROOF: nothing of it may be touched by the PROOF. */
static void proof_after_the_end(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup proof;
    open_scene(&scene, NULL);
    introduce(&scene, &hello);
    pass(&scene, JOIN_DEADLINE - 2 * WF_NS_PER_S);
    int fd = join(&scene, &hello, 2, &proof);
    pass(&scene, 2 * WF_NS_PER_S);
    assert_int_equal(scene.host->sessions.count, 0);
    say(&scene, fd, &proof);
    pass(&scene, WF_NS_PER_S);
    assert_int_equal(scene.host->sessions.count, 0);
    hang_up(&scene, fd);
    close_scene(&scene);
}

/* Complete sessions that go before anybody accepts them leave nothing behind. */
static void come_and_go(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, NULL);
    int before = wf_sim_open_descriptors(scene.sim);
    for (int round = 0; round < 20; round++) {
        struct wf_hello hello;
        struct wf_setup proof;
        introduce(&scene, &hello);
        int fd = join(&scene, &hello, 1, &proof);
        say(&scene, fd, &proof);
        pass(&scene, WF_NS_PER_S / 10);
        assert_int_equal(scene.host->sessions.count, 1);
        hang_up(&scene, fd);
        pass(&scene, 3 * WF_NS_PER_S); /* it might have come back: rail_timeout_ms */
        assert_int_equal(scene.host->sessions.count, 0);
    }
    assert_int_equal(wf_sim_open_descriptors(scene.sim), before);
    close_scene(&scene);
}

/* A wrong proof, or one for another role, lets nobody in. */
static void wrong_proofs(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    open_scene(&scene, NULL);
    introduce(&scene, &hello);
    for (int bit = 0; bit < 8; bit++) {
        struct wf_setup proof;
        int fd = join(&scene, &hello, 1, &proof);
        proof.proof.proof[bit * 4] ^= (uint8_t)(1 << bit);
        say(&scene, fd, &proof);
        struct wf_setup answer;
        hear(&scene, fd, &answer);
        assert_int_equal(answer.type, WF_SETUP_DENY);
        assert_int_equal(answer.deny.reason, WF_DENY_PROOF);
        hang_up(&scene, fd);
    }
    pass(&scene, JOIN_DEADLINE);
    assert_int_equal(scene.host->sessions.count, 0);
    close_scene(&scene);
}

/* Whoever has seen a session's number can say JOIN. How many channels there will be is believed of a peer alone. */
static void a_join_without_proof(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup proof;
    struct weft_peer *peer;
    open_scene(&scene, NULL);
    introduce(&scene, &hello);
    int early[] = {join(&scene, &hello, 9, &proof), join(&scene, &hello, 3, &proof)};
    int fd = join(&scene, &hello, 1, &proof);
    say(&scene, fd, &proof);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), 0);
    assert_int_equal(weft_peer_status(peer, NULL), 0);
    assert_int_equal(peer->session->lines.channel_count, 1);
    for (int i = 0; i < 2; i++)
        hang_up(&scene, early[i]);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* Of two that have proved themselves and say different things of the session, the second is shown out. */
static void joins_that_contradict(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_hello hello;
    struct wf_setup proofs[2];
    uint8_t byte;
    open_scene(&scene, NULL);
    introduce(&scene, &hello);
    int first = join(&scene, &hello, 2, &proofs[0]), second = join(&scene, &hello, 9, &proofs[1]);
    say(&scene, first, &proofs[0]);
    pass(&scene, WF_NS_PER_S / 10);
    say(&scene, second, &proofs[1]);
    assert_int_equal(receive_bytes(&scene, second, &byte, 1), 0);
    hang_up(&scene, second);
    hang_up(&scene, first);
    pass(&scene, JOIN_DEADLINE);
    assert_int_equal(scene.host->sessions.count, 0);
    close_scene(&scene);
}

/* --- a peer that lies --- */

#define REGION 4096

/* Frames after a good handshake: the first `count` of `frames`, then 64 bytes of payload. */
struct lie {
    const char *what;
    int count;
    struct wf_frame frames[3];
};

#define OPENING                                                                                                        \
    {                                                                                                                  \
        .type = WF_OPEN, .conn = 1, .offset = 1024                                                                     \
    }
#define FAR (3 * 65536)

/* What they say of the region is right: key 0 stands for its key. */
static const struct lie lies[] = {
    {"bytes for a READ, far outside of what it may read",
     3,
     {OPENING,
      {.type = WF_READ, .conn = 1, .msg = 1, .total = 100},
      {.type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .offset = FAR, .total = FAR + 64, .length = 64}}},
    {"a size that nothing has",
     2,
     {OPENING, {.type = WF_OFFER, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .total = UINT64_MAX}}},
    {"a write that grows",
     3,
     {OPENING,
      {.type = WF_DATA, .flags = WF_FLAG_WRITE, .conn = 1, .msg = 1, .total = 1, .length = 0, .base = 0},
      {.type = WF_DATA, .flags = WF_FLAG_WRITE, .conn = 1, .msg = 1, .offset = FAR, .total = FAR + 64, .length = 64}}},
    {"a reply that nobody asked for",
     2,
     {OPENING,
      {.type = WF_DATA, .flags = WF_FLAG_READ_REPLY | WF_FLAG_PEER, .conn = 1, .msg = 1, .total = 64, .length = 64}}},
    {"a notification of what comes later",
     2,
     {OPENING, {.type = WF_DATA, .flags = WF_FLAG_NOTIFY, .conn = 1, .msg = 1, .base = 1, .total = 64, .length = 64}}},
    {"a list of pieces and a half",
     2,
     {OPENING, {.type = WF_DATA, .flags = WF_FLAG_LIST, .conn = 1, .msg = 1, .total = 36, .length = 36}}},
    {"a grant for what was never sent",
     2,
     {OPENING, {.type = WF_GRANT, .flags = WF_FLAG_PEER, .conn = 1, .msg = 1, .offset = 64}}},
    {"a READ beyond the limit of introductions",
     2,
     {OPENING, {.type = WF_READ, .conn = 1, .msg = 1 << 20, .total = 100}}},
};

static void tell(struct scene *scene, int fd, const struct lie *lie, uint64_t key)
{
    uint8_t bytes[3 * WF_FRAME_BYTES + 64];
    for (int i = 0; i < lie->count; i++) {
        struct wf_frame frame = lie->frames[i];
        frame.data_off = WF_FRAME_BYTES;
        if (frame.type == WF_READ || frame.flags & WF_FLAG_WRITE)
            frame.key = key;
        wf_frame_encode(&frame, bytes + i * WF_FRAME_BYTES);
    }
    size_t length = (size_t)lie->count * WF_FRAME_BYTES + 64;
    memset(bytes + length - 64, 0xEE, 64);
    send_bytes(scene, fd, bytes, length);
}

/* Each ends the session, and none writes a byte that it may not. */
static void lies_end_the_session(void **state)
{
    (void)state;
    static uint8_t memory[FAR + 65536];
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        struct scene scene;
        struct wf_hello hello;
        struct wf_setup proof;
        struct weft_endpoint *endpoint;
        struct weft_registration *registration;
        struct weft_peer *peer;
        print_message("%s\n", lies[i].what);
        open_scene(&scene, NULL);
        assert_int_equal(weft_endpoint_create(scene.host, 0, &endpoint, NULL), 0);
        assert_int_equal(weft_register(scene.host, memory, REGION, &registration, NULL), 0);
        introduce(&scene, &hello);
        int fd = join(&scene, &hello, 1, &proof);
        say(&scene, fd, &proof);
        pass(&scene, WF_NS_PER_S / 10);
        assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), 0);
        assert_int_equal(weft_peer_status(peer, NULL), 0);
        tell(&scene, fd, &lies[i], weft_registration_key(registration));
        pass(&scene, WF_NS_PER_S / 10);
        assert_int_equal(weft_peer_status(peer, NULL), -EPROTO);
        for (size_t at = 0; at < sizeof memory; at++)
            assert_int_equal(memory[at], 0);
        hang_up(&scene, fd);
        weft_deregister(registration);
        weft_peer_close(peer, 0, NULL);
        close_scene(&scene);
    }
}

/* --- a peer that does not lie, and asks too much --- */

/* A receive waits for work in a stream: until that is done there is room for what comes unasked, and for nothing else.
 * The sender is not told to go on, and one that does all the same ends its session. */
static void not_asked_to_go_on(void **state)
{
    (void)state;
    struct scene scene;
    struct weft_peer *peer;
    struct weft_endpoint *endpoint;
    struct weft_connection *connection;
    struct weft_registration *registration;
    struct weft_request *request;
    struct weft_completion completion;
    open_scene_with(&scene, NULL, true, NULL);
    void *memory = wf_sim_memory_take(scene.memory, 0, FAR);
    struct wf_sim_stream *stream = wf_sim_stream_create(scene.memory, 0);
    struct weft_options options = {.flags = WEFT_ON_STREAM, .stream = stream};
    assert_true(memory && stream);
    assert_int_equal(weft_endpoint_create(scene.host, 0, &endpoint, NULL), 0);
    assert_int_equal(weft_register(scene.host, memory, FAR, &registration, NULL), 0);
    int fd = come_in(&scene, &peer);
    say_frame(&scene, fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_connection_accept(endpoint, peer, WEFT_ANY_ENDPOINT, 0, &connection, NULL), 0);
    wf_sim_stream_work(stream, WF_NEVER);
    assert_int_equal(weft_recv(connection, memory, FAR, 1, &options, &request), 0);
    say_frame(&scene, fd,
              (struct wf_frame){.type = WF_OFFER, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .total = FAR, .key = 1},
              0);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_peer_status(peer, NULL), 0);
    say_frame(&scene, fd,
              (struct wf_frame){
                  .type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .length = 64, .total = FAR, .key = 1},
              64);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_peer_status(peer, NULL), -EPROTO);
    wf_sim_stream_release(stream);
    pass(&scene, WF_NS_PER_S / 10);
    assert_true(weft_test(request, &completion));
    assert_int_equal(completion.status, -EPROTO);
    hang_up(&scene, fd);
    weft_deregister(registration);
    weft_peer_close(peer, 0, NULL);
    pass(&scene, WF_NS_PER_S / 10);
    wf_sim_stream_destroy(stream);
    wf_sim_memory_give(scene.memory, memory);
    close_scene(&scene);
}

/* Writes whose confirmation the peer gives no window to send: they end at its limit, not at that of memory. */
static void writes_without_end(void **state)
{
    (void)state;
    enum { LIMIT = 16, WRITES = 500 };
    static uint8_t memory[REGION];
    struct scene scene;
    struct weft_peer *peer;
    struct weft_endpoint *endpoint;
    struct weft_registration *registration;
    open_scene_with(&scene, NULL, false, "introductions=16");
    assert_int_equal(weft_endpoint_create(scene.host, 0, &endpoint, NULL), 0);
    assert_int_equal(weft_register(scene.host, memory, REGION, &registration, NULL), 0);
    int fd = come_in(&scene, &peer);
    struct wf_session *session = peer->session;
    say_frame(&scene, fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    pass(&scene, WF_NS_PER_S / 10);
    session->lines.channels[0]->tx.window.granted_frames = 0; /* as it would be, had it granted none from the start */
    for (uint64_t number = 1; number <= WRITES && weft_peer_status(peer, NULL) == 0; number++) {
        say_frame(&scene, fd,
                  (struct wf_frame){.type = WF_DATA,
                                    .flags = WF_FLAG_WRITE,
                                    .conn = 1,
                                    .msg = number,
                                    .length = 1,
                                    .total = 1,
                                    .key = weft_registration_key(registration)},
                  1);
        pass(&scene, WF_NS_PER_S / 100);
        assert_in_range(session->desk.inbound_pool.taken, 0, LIMIT);
    }
    assert_int_equal(weft_peer_status(peer, NULL), -EPROTO);
    hang_up(&scene, fd);
    weft_deregister(registration);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* Notifications each of which names the one before it: the end of the first is that of no other, however many they
 * are. */
static void notifications_of_notifications(void **state)
{
    (void)state;
    enum { CHAIN = 10 };
    struct scene scene;
    struct weft_peer *peer;
    struct weft_endpoint *endpoint;
    open_scene(&scene, NULL);
    assert_int_equal(weft_endpoint_create(scene.host, 0, &endpoint, NULL), 0);
    int fd = come_in(&scene, &peer);
    say_frame(&scene, fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    for (uint64_t number = 2; number < CHAIN; number++)
        say_frame(
            &scene, fd,
            (struct wf_frame){
                .type = WF_OFFER, .flags = WF_FLAG_NOTIFY, .conn = 1, .msg = number, .base = number - 1, .total = 8},
            0);
    /* A write to nowhere, which is refused with the notification that belongs to it. */
    say_frame(&scene, fd,
              (struct wf_frame){.type = WF_DATA,
                                .flags = WF_FLAG_WRITE | WF_FLAG_NOTIFY,
                                .conn = 1,
                                .msg = 1,
                                .length = 1,
                                .total = 1,
                                .key = 1},
              1);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_peer_status(peer, NULL), 0);
    assert_int_equal(weft_peer_denied(peer), 1);
    struct weft_connection *connection = wf_connection_find(&peer->session->desk, 1);
    assert_int_equal(wf_inbound_find(connection, 2)->state, WF_INBOUND_DRAINING);
    for (uint64_t number = 3; number < CHAIN; number++)
        assert_int_not_equal(wf_inbound_find(connection, number)->state, WF_INBOUND_DRAINING);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* A peer that opens and closes every other number: what is remembered of closed ones has an end, too. */
static void numbers_with_gaps(void **state)
{
    (void)state;
    struct scene scene;
    struct weft_peer *peer;
    open_scene(&scene, NULL);
    int fd = come_in(&scene, &peer);
    struct wf_session *session = peer->session;
    for (uint64_t gap = 1; gap <= 2 * WF_CONNECTIONS_MAX; gap++)
        assert_int_equal(wf_finished_add(&session->desk.closed_numbers[1], 2 * gap), 0);
    say_frame(&scene, fd, (struct wf_frame){.type = WF_OPEN, .conn = 8 * WF_CONNECTIONS_MAX + 1, .offset = 1024}, 0);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(session->desk.connection_count, 0);
    assert_false(session->lines.channels[0]->up);
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* A context that is being destroyed closes the connection of who calls, without a word: then it tries again. */
static void nobody_is_taken_at_the_end(void **state)
{
    (void)state;
    struct scene scene;
    struct wf_setup setup = {.type = WF_SETUP_HELLO};
    uint8_t byte;
    open_scene(&scene, NULL);
    wf_session_hello(&scene.host->sessions, NULL, &setup.hello);
    atomic_store(&scene.host->sessions.ending, true);
    int fd = call(&scene);
    say(&scene, fd, &setup);
    assert_int_equal(receive_bytes(&scene, fd, &byte, 1), 0);
    assert_int_equal(scene.host->sessions.count, 0);
    hang_up(&scene, fd);
    close_scene(&scene);
}

/* OPENs that cross, when one more connection is allowed: each side counts what it knows. But there is a limit to what a
 * peer opens. */
static void the_last_connection_from_both_sides(void **state)
{
    (void)state;
    struct scene scene;
    struct weft_peer *peer;
    open_scene(&scene, NULL);
    int fd = come_in(&scene, &peer);
    struct wf_session *session = peer->session;
    session->desk.connection_count = session->desk.peers_connections = 2 * WF_CONNECTIONS_MAX - 1;
    say_frame(&scene, fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(session->desk.connection_count, 2 * WF_CONNECTIONS_MAX);
    assert_true(session->lines.channels[0]->up);
    say_frame(&scene, fd, (struct wf_frame){.type = WF_OPEN, .conn = 3, .offset = 1024}, 0);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(session->desk.connection_count, 2 * WF_CONNECTIONS_MAX);
    assert_false(session->lines.channels[0]->up);
    session->desk.connection_count = session->desk.peers_connections = 1;
    hang_up(&scene, fd);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* --- sessions that nobody wants --- */

/* Complete ones that lose their only channel at once are held for a while, for they might come back; but not more of
 * them than peers there may be. */
static void come_and_go_fast(void **state)
{
    (void)state;
    enum { ROUNDS = 40, PEERS = 8 };
    struct scene scene;
    int busy = 0;
    open_scene_with(&scene, NULL, false, "peers=8");
    for (int round = 0; round < ROUNDS; round++) {
        struct wf_setup setup = {.type = WF_SETUP_HELLO}, proof;
        int fd = call(&scene);
        wf_session_hello(&scene.host->sessions, NULL, &setup.hello);
        say(&scene, fd, &setup);
        hear(&scene, fd, &setup);
        if (setup.type == WF_SETUP_HELLO)
            greet(&scene, fd);
        hang_up(&scene, fd);
        if (setup.type == WF_SETUP_HELLO) {
            fd = join(&scene, &setup.hello, 1, &proof);
            say(&scene, fd, &proof);
            pass(&scene, 10 * WF_NS_PER_MS);
            hang_up(&scene, fd);
        } else {
            assert_int_equal(setup.deny.reason, WF_DENY_BUSY);
            busy += 1;
        }
        assert_in_range(scene.host->sessions.count, 0, PEERS);
    }
    assert_true(busy > 0);
    pass(&scene, 10 * WF_NS_PER_S);
    assert_int_equal(scene.host->sessions.count, 0);
    close_scene(&scene);
}

/* A crowd comes while a channel that has proved itself waits for its older incarnation to let go: it keeps its place.
 */
static void a_crowd_at_the_door(void **state)
{
    (void)state;
    enum { CROWD = WF_VISITORS_MAX + 40 };
    struct scene scene;
    struct weft_peer *peer;
    struct wf_op ops[CROWD];
    int fds[CROWD];
    open_scene(&scene, NULL);
    struct wf_hello hello;
    struct wf_setup proof;
    introduce(&scene, &hello);
    int first = join(&scene, &hello, 1, &proof);
    say(&scene, first, &proof);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_accept(scene.host, 0, &peer, NULL), 0);
    int second = join_as(&scene, &hello, 1, 2, &proof);
    uint8_t bytes[WF_SETUP_MAX];
    struct iovec iov = {bytes, (size_t)wf_setup_encode(&proof, bytes, sizeof bytes)};
    struct wf_op saying = {.kind = WF_OP_SEND, .fd = second, .iov = &iov, .iov_count = 1};
    wf_link_init(&saying.link);
    scene.engine->ops->post(scene.engine, &saying);
    for (int i = 0; i < CROWD; i++) { /* only the door goes on meanwhile: the older channel's worker is slow */
        struct wf_op *done[16];
        ops[i] = (struct wf_op){.kind = WF_OP_CONNECT, .address = &scene.address};
        wf_link_init(&ops[i].link);
        fds[i] = ops[i].fd = wf_engine_sim.socket(scene.sim, AF_INET, &(struct wf_socket_options){0}, NULL);
        assert_true(fds[i] >= 0);
        assert_int_equal(scene.engine->ops->attach(scene.engine, fds[i]), 0);
        scene.engine->ops->post(scene.engine, &ops[i]);
        wf_sim_advance(scene.sim, wf_sim_now(scene.sim) + WF_NS_PER_MS);
        while (scene.engine->ops->poll(scene.engine, done, 16, 0) > 0)
            ;
        wf_door_drive(scene.host->door, 0);
    }
    assert_int_equal(peer->session->lines.channels[0]->incarnation, 1);
    pass(&scene, WF_NS_PER_S / 10);
    assert_int_equal(peer->session->lines.channels[0]->incarnation, 2);
    assert_true(peer->session->lines.channels[0]->up);
    for (int i = 0; i < CROWD; i++)
        hang_up(&scene, fds[i]);
    hang_up(&scene, first);
    hang_up(&scene, second);
    weft_peer_close(peer, 0, NULL);
    close_scene(&scene);
}

/* A peer whose version takes 16 rails gets 16, and the host says so; another one gets them all. */
static void as_many_rails_as_the_peer_takes(void **state)
{
    enum { RAILS = 20 };
    struct scene scene;
    char setting[32 * RAILS] = "rails=";
    for (int i = 1; i <= RAILS; i++)
        snprintf(setting + strlen(setting), sizeof setting - strlen(setting), "%s127.0.%d.1", i > 1 ? "," : "", i);
    (void)state;
    open_scene_with(&scene, NULL, false, setting);
    for (int round = 0; round < 3; round++) {
        bool few = round == 1;
        struct wf_setup setup = {.type = WF_SETUP_HELLO};
        int fd = call(&scene);
        wf_session_hello(&scene.host->sessions, NULL, &setup.hello);
        assert_in_range(setup.hello.rail_count, 1, WF_RAILS_FEW); /* the called side may know no more */
        setup.hello.features = few ? 0 : setup.hello.features;
        say(&scene, fd, &setup);
        hear(&scene, fd, &setup);
        assert_int_equal(setup.type, WF_SETUP_HELLO);
        assert_int_equal(setup.hello.rail_count, few ? WF_RAILS_FEW : RAILS);
        bool said = strstr(weft_context_fallbacks(scene.host), "rails: 16 of 20 are used with") != NULL;
        assert_int_equal(said, round > 0);
        hang_up(&scene, fd);
    }
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_asked_to_go_on),
        cmocka_unit_test(writes_without_end),
        cmocka_unit_test(notifications_of_notifications),
        cmocka_unit_test(numbers_with_gaps),
        cmocka_unit_test(the_last_connection_from_both_sides),
        cmocka_unit_test(nobody_is_taken_at_the_end),
        cmocka_unit_test(come_and_go_fast),
        cmocka_unit_test(a_crowd_at_the_door),
        cmocka_unit_test(lies_end_the_session),
        cmocka_unit_test(proof_after_the_end),
        cmocka_unit_test(come_and_go),
        cmocka_unit_test(wrong_proofs),
        cmocka_unit_test(a_join_without_proof),
        cmocka_unit_test(joins_that_contradict),
        cmocka_unit_test(as_many_rails_as_the_peer_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
