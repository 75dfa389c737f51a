/* Frames of somebody who knows the protocol that come while another thread of the host has dropped the session's lock
 * in the middle of something. There is one thread here: what the other one has counted is counted by hand. */
#include <errno.h>
#include <string.h>

#include "core/calls/context.h"
#include "core/message/connection_close.h"
#include "core/message/inbound.h"
#include "core/message/match.h"
#include "stranger.h"

#define HALF 64
#define TAG 7

struct raced {
    struct scene scene;
    int fd;
    struct weft_peer *peer;
    struct weft_endpoint *endpoint;
    struct weft_registration *registration;
    struct weft_connection *connection;
    uint8_t memory[2 * HALF];
};

/* A connection that the stranger has opened, and memory that it may write to. */
static void begin(struct raced *raced)
{
    struct scene *scene = &raced->scene;
    memset(raced->memory, 0, sizeof raced->memory);
    open_scene(scene, NULL);
    assert_int_equal(weft_endpoint_create(scene->host, 0, &raced->endpoint, NULL), 0);
    assert_int_equal(weft_register(scene->host, raced->memory, sizeof raced->memory, &raced->registration, NULL), 0);
    raced->fd = come_in(scene, &raced->peer);
    say_frame(scene, raced->fd, (struct wf_frame){.type = WF_OPEN, .conn = 1, .offset = 1024}, 0);
    pass(scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_connection_accept(raced->endpoint, raced->peer, 0, 0, &raced->connection, NULL), 0);
}

static void end(struct raced *raced)
{
    hang_up(&raced->scene, raced->fd);
    weft_deregister(raced->registration);
    weft_peer_close(raced->peer, 0, NULL);
    close_scene(&raced->scene);
}

/* A half of a write, `note`: that has a notification. */
static void write_half(struct raced *raced, int half, bool again, bool note)
{
    uint16_t flags = WF_FLAG_WRITE;
    flags |= again ? WF_FLAG_RESENT : 0;
    flags |= note ? WF_FLAG_NOTIFY : 0;
    say_frame(&raced->scene, raced->fd,
              (struct wf_frame){.type = WF_DATA,
                                .flags = flags,
                                .conn = 1,
                                .msg = 1,
                                .key = weft_registration_key(raced->registration),
                                .offset = (uint64_t)half * HALF,
                                .length = HALF,
                                .total = 2 * HALF},
              HALF);
    pass(&raced->scene, WF_NS_PER_S / 10);
}

static void say_close(struct raced *raced)
{
    say_frame(&raced->scene, raced->fd, (struct wf_frame){.type = WF_CLOSE, .conn = 1}, 0);
    pass(&raced->scene, WF_NS_PER_S / 10);
}

/* A thread that matches what comes behind a write has its claim while the last bytes come on another channel. Its own
 * copy of these bytes finds them there: then it ends the write. */
static void a_second_copy_ends_what_the_first_could_not(void **state)
{
    (void)state;
    struct raced raced;
    begin(&raced);
    write_half(&raced, 0, false, false);
    struct wf_inbound *inbound = wf_inbound_find(raced.connection, 1);
    assert_non_null(inbound);
    inbound->claims += 1;
    write_half(&raced, 1, false, false);
    assert_ptr_equal(wf_inbound_find(raced.connection, 1), inbound);
    inbound->claims -= 1;
    write_half(&raced, 1, true, false);
    assert_null(wf_inbound_find(raced.connection, 1));
    assert_int_equal(weft_peer_status(raced.peer, NULL), 0);
    for (size_t i = 0; i < sizeof raced.memory; i++)
        assert_int_equal(raced.memory[i], 0xEE);
    end(&raced);
}

/* CLOSE comes while messages that are here are being matched: their receives end when that is over. */
static void a_close_waits_for_the_matching(void **state)
{
    (void)state;
    struct raced raced;
    struct weft_request *receives[3];
    struct weft_completion completion;
    uint8_t places[3][HALF];
    begin(&raced);
    assert_int_equal(weft_recv(raced.connection, places[0], HALF, TAG, NULL, &receives[0]), 0);
    raced.connection->advancing += 1;
    say_close(&raced);
    assert_int_equal(weft_recv(raced.connection, places[1], HALF, TAG, NULL, &receives[1]), 0);
    assert_int_equal(weft_recv_notification(raced.connection, places[2], HALF, NULL, &receives[2]), 0);
    pass(&raced.scene, WF_NS_PER_S / 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(weft_test(receives[i], &completion), 0);
    raced.connection->advancing -= 1;
    wf_session_lock(raced.peer->session);
    wf_match_advance(raced.connection);
    wf_session_unlock(raced.peer->session);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft_test(receives[i], &completion), 1);
        assert_int_equal(completion.status, -ESHUTDOWN);
    }
    end(&raced);
}

/* The notification that a receive waits for after CLOSE is refused with its write: no other one will come. */
static void a_notification_that_never_comes(void **state)
{
    (void)state;
    struct raced raced;
    struct weft_request *receive;
    struct weft_completion completion;
    uint8_t place[HALF];
    begin(&raced);
    assert_int_equal(weft_recv_notification(raced.connection, place, sizeof place, NULL, &receive), 0);
    write_half(&raced, 0, false, true);
    say_frame(&raced.scene, raced.fd,
              (struct wf_frame){
                  .type = WF_DATA, .flags = WF_FLAG_NOTIFY, .conn = 1, .msg = 2, .base = 1, .length = 8, .total = 8},
              8);
    say_close(&raced);
    assert_int_equal(weft_test(receive, &completion), 0);
    weft_deregister(raced.registration);
    raced.registration = NULL;
    pass(&raced.scene, WF_NS_PER_S / 10);
    assert_int_equal(weft_test(receive, &completion), 1);
    assert_int_equal(completion.status, -ESHUTDOWN);
    end(&raced);
}

/* What another thread does as soon as message 1 is being copied to its receive: it takes the CLOSE of the connection.
 * The world is told of each release of the lock. */
static struct raced *closed;

static void close_at_the_copy(void *waiting)
{
    (void)waiting;
    struct wf_session *session = closed->peer->session;
    const struct wf_frame frame = {.type = WF_CLOSE, .conn = 1};
    bool now = closed->connection->next_match == 2 && !closed->connection->close_seen;
    if (now) {
        wf_session_lock(session);
        assert_non_null(wf_inbound_find(closed->connection, 1));
        assert_int_equal(wf_connection_take_close(&session->desk, &frame), 0);
    }
    session->guard.wake_due = !closed->connection->close_seen; /* the next time, too */
    if (now)
        wf_session_unlock(session);
}

/* Message 2 is here when CLOSE comes, and waits for message 1, which a receive of the endpoint takes. */
static void a_close_waits_for_what_a_copy_holds_up(void **state)
{
    (void)state;
    struct raced raced;
    struct weft_request *receives[2];
    struct weft_completion completion;
    uint8_t places[2][HALF];
    begin(&raced);
    struct wf_world *world = &raced.scene.host->world;
    void (*wake_all)(void *) = world->wake;
    assert_int_equal(weft_endpoint_recv(raced.endpoint, places[0], HALF, TAG, NULL, &receives[0]), 0);
    assert_int_equal(weft_recv(raced.connection, places[1], HALF, TAG + 1, NULL, &receives[1]), 0);
    for (uint64_t number = 2; number > 0; number--) {
        if (number == 1) {
            closed = &raced;
            world->wake = close_at_the_copy;
            raced.peer->session->guard.wake_due = true;
        }
        say_frame(&raced.scene, raced.fd,
                  (struct wf_frame){.type = WF_DATA,
                                    .flags = WF_FLAG_TAGGED,
                                    .conn = 1,
                                    .msg = number,
                                    .key = TAG + number - 1,
                                    .length = HALF,
                                    .total = HALF},
                  HALF);
        pass(&raced.scene, WF_NS_PER_S / 10);
    }
    assert_true(raced.connection->close_seen);
    world->wake = wake_all;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weft_test(receives[i], &completion), 1);
        assert_int_equal(completion.status, 0);
        assert_int_equal(completion.bytes, HALF);
    }
    end(&raced);
}

/* --- who is woken --- */

static struct {
    const struct wf_engine_ops *ops;
    struct wf_world *world;
    int wakes;
} spied;

static void wake(struct wf_engine *engine)
{
    spied.wakes += 1;
    assert_int_equal(pthread_mutex_trylock(&spied.world->lock), 0);
    pthread_mutex_unlock(&spied.world->lock);
    spied.ops->wake(engine);
}

/* A look at the messages that wait wakes no thread, which is a system call, while others want the locks. */
static void a_probe_wakes_nobody(void **state)
{
    (void)state;
    struct raced raced;
    struct weft_message message;
    begin(&raced);
    struct wf_engine *engine = raced.scene.host->crew.workers[0]->engine;
    struct wf_engine_ops ops = *engine->ops;
    spied.ops = engine->ops;
    spied.world = &raced.scene.host->world;
    spied.wakes = 0;
    ops.wake = wake;
    say_frame(&raced.scene, raced.fd,
              (struct wf_frame){
                  .type = WF_DATA, .flags = WF_FLAG_TAGGED, .conn = 1, .msg = 1, .key = TAG, .length = 8, .total = 8},
              8);
    pass(&raced.scene, WF_NS_PER_S / 10);
    engine->ops = &ops;
    assert_int_equal(weft_endpoint_probe(raced.endpoint, TAG, NULL, &message), 1);
    assert_int_equal(weft_endpoint_probe(raced.endpoint, TAG + 1, NULL, &message), 0);
    engine->ops = spied.ops;
    assert_int_equal(message.bytes, 8);
    assert_int_equal(spied.wakes, 0);
    end(&raced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_second_copy_ends_what_the_first_could_not),
        cmocka_unit_test(a_close_waits_for_the_matching),
        cmocka_unit_test(a_notification_that_never_comes),
        cmocka_unit_test(a_close_waits_for_what_a_copy_holds_up),
        cmocka_unit_test(a_probe_wakes_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
