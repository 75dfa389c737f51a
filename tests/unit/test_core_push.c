/* Who sends what a caller has posted: the caller itself, on the first idle express channel, or on another one. */
#include "core_scene.h"

#include <stdlib.h>

#include "core/channel/state.h"
#include "core/message/outbound.h"
#include "core/message/ready.h"
#include "core/rail/rail.h"
#include "core/session/entry.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/spread_plan.h"

#define RAILS 2
#define CHANNELS (2 * RAILS) /* an express and a bulk channel for each pair of rails */
#define FIRST_FD 100         /* of channel 0; the others' follow */
#define SMALL 64u
#define BRIEF (60u * 1024)

/* A session with its channels, in the scene's context. */
struct stage {
    struct scene scene;
    struct wf_sessions sessions;
    struct wf_session *session;
    struct weft_connection *connection;
    int own; /* the worker that callers drive */
    uint8_t bytes[BRIEF];
};

static struct wf_worker *worker_of(struct stage *stage)
{
    return stage->scene.crew.workers[stage->own];
}

static void join(struct stage *stage, uint32_t id, enum wf_channel_kind kind, int rail)
{
    struct wf_join join = {
        .channel = id, .incarnation = 1, .channels = CHANNELS, .kind = (uint8_t)kind, .rail = (uint8_t)rail};
    wf_lines_rail(&stage->session->lines, rail);
    assert_int_equal(wf_session_join(stage->session, &join, 64, UINT32_MAX, FIRST_FD + (int)id), 0);
}

/* Ends every send that is posted; returns how many, and the descriptor of the last. */
static int end_sends(struct stage *stage, int *fd)
{
    struct scene_engine *engine = stage->scene.engines[stage->own];
    int sends = 0;
    for (int i = 0; i < engine->posted_count; i++) {
        struct wf_op *op = engine->posted[i];
        if (op->kind != WF_OP_SEND)
            continue;
        *fd = op->fd;
        op->result = 1;
        scene_finish(&stage->scene, stage->own, op);
        sends += 1;
    }
    engine->posted_count = 0;
    return sends;
}

/* The worker looks until nothing is left to be sent. */
static void settle(struct stage *stage)
{
    int fd;
    assert_true(wf_worker_try(worker_of(stage)));
    do
        wf_worker_drive(worker_of(stage), 0);
    while (end_sends(stage, &fd) > 0);
    wf_worker_leave(worker_of(stage));
}

static void open_session(struct stage *stage)
{
    static const uint8_t secret[WF_SECRET_BYTES];
    struct wf_tuning tuning = stage->scene.world.tuning;
    struct wf_hello peer = {
        .name = "peer",
        .limits = {.chunk = tuning.chunk, .eager = tuning.eager, .unsolicited = SCENE_POOL},
    };
    stage->session = wf_session_create(&stage->sessions, true, &peer, 1, secret);
    assert_non_null(stage->session);
    assert_int_equal(wf_session_expect(stage->session, CHANNELS), 0);
    for (uint32_t rail = 0; rail < RAILS; rail++) {
        join(stage, 2 * rail, WF_CHANNEL_EXPRESS, (int)rail);
        join(stage, 2 * rail + 1, WF_CHANNEL_BULK, (int)rail);
    }
    assert_int_equal(stage->session->guard.state, WF_SESSION_UP);
}

static int set_up_stage(void **state, bool shared)
{
    struct stage *stage = calloc(1, sizeof *stage);
    assert_non_null(stage);
    struct scene *scene = &stage->scene;
    scene_begin(scene, NULL);
    scene->world.shared = shared;
    scene->crew.express = stage->own = shared ? 0 : 1;
    scene->world.manual = false; /* callers drive */
    stage->sessions = (struct wf_sessions){.world = &scene->world,
                                           .crew = &scene->crew,
                                           .devices = &scene->devices,
                                           .registry = &scene->registry,
                                           .waiting = &scene->waiting,
                                           .endpoints = &scene->endpoints};
    wf_sessions_init(&stage->sessions);
    struct wf_status status;
    assert_int_equal(wf_sessions_open(&stage->sessions, &status), 0);
    open_session(stage);
    wf_session_lock(stage->session);
    stage->connection = wf_connection_create(&stage->session->desk, 1, true, 1, 2);
    struct wf_frame opened = {.type = WF_OPENED, .conn = 1, .offset = SCENE_INTRODUCTIONS};
    assert_int_equal(wf_connection_take_opened(&stage->session->desk, &opened), 0);
    wf_session_unlock(stage->session);
    settle(stage);
    *state = stage;
    return 0;
}

static int set_up(void **state)
{
    return set_up_stage(state, true);
}

/* Rails have workers of their own: worker 0 sends what is large. */
static int set_up_split(void **state)
{
    return set_up_stage(state, false);
}

static int tear_down(void **state)
{
    struct stage *stage = *state;
    pthread_mutex_lock(&stage->scene.world.lock);
    wf_session_destroy(stage->session);
    pthread_mutex_unlock(&stage->scene.world.lock);
    wf_sessions_fini(&stage->sessions);
    stage->scene.world.manual = true;
    scene_end(&stage->scene);
    free(stage);
    return 0;
}

/* The peer takes `bytes` more on the express channel of the rail, in many frames. */
static void leave_room(struct stage *stage, int rail, uint64_t bytes)
{
    struct wf_window *window = &stage->session->lines.channels[2 * rail]->tx.window;
    window->granted_bytes = window->spent_bytes + bytes;
}

/* A send of `length` bytes begins. Its message is in no queue. Session lock held. */
static struct wf_outbound *begin_send(struct stage *stage, uint64_t length, struct weft_request **request)
{
    *request = wf_request_take(&stage->session->book, WF_REQUEST_SEND, &wf_outgoing_ops);
    assert_non_null(*request);
    (*request)->connection = stage->connection;
    (*request)->buffer = stage->bytes;
    (*request)->length = length;
    struct wf_outbound *outbound = wf_outbound_begin(stage->connection, *request);
    assert_non_null(outbound);
    return outbound;
}

/* As weft_send() of a small message; `queued`: it is in line, as behind others. */
static void send_small(struct stage *stage, bool queued)
{
    struct weft_request *request;
    wf_session_lock(stage->session);
    struct wf_outbound *outbound = begin_send(stage, SMALL, &request);
    assert_true(request->done_early);
    if (queued)
        wf_outbound_queue(outbound);
    wf_session_unlock_and_push(stage->session, queued ? NULL : outbound);
    assert_true(wf_request_collect(request, NULL));
}

/* It is posted once, on the express channel of the rail. */
static void assert_sent_on(struct stage *stage, int rail)
{
    int fd = 0;
    assert_int_equal(end_sends(stage, &fd), 1);
    assert_int_equal(fd, FIRST_FD + 2 * rail);
    settle(stage);
}

static void test_the_first_idle_channel_takes_it(void **state)
{
    struct stage *stage = *state;
    for (int i = 0; i < 4; i++) {
        send_small(stage, i % 2 == 1);
        assert_sent_on(stage, 0);
    }
}

/* The first one is idle, but has no room for the message: then it goes on another one at once, and not when the peer
 * has told a larger window of the first. */
static void test_another_one_takes_what_the_first_has_no_room_for(void **state)
{
    struct stage *stage = *state;
    for (int i = 0; i < 4; i++) {
        leave_room(stage, 0, SMALL - 1);
        send_small(stage, i % 2 == 1);
        assert_sent_on(stage, 1);
    }
    leave_room(stage, 0, SMALL);
    send_small(stage, false);
    assert_sent_on(stage, 0);
}

static void test_it_waits_where_none_has_room(void **state)
{
    struct stage *stage = *state;
    int fd;
    leave_room(stage, 0, SMALL - 1);
    leave_room(stage, 1, SMALL - 1);
    send_small(stage, false);
    assert_int_equal(end_sends(stage, &fd), 0);
    assert_int_equal(stage->connection->small_pending, 1);
    leave_room(stage, 1, SMALL);
    wf_session_push(stage->session);
    assert_sent_on(stage, 1);
    assert_int_equal(stage->connection->small_pending, 0);
}

/* What the channel that sends leaves to one of another worker does not wait until somebody comes by: its worker is
 * told, and woken. */
static void test_another_worker_is_told_at_once(void **state)
{
    struct stage *stage = *state;
    struct wf_worker *other = stage->scene.crew.workers[0];
    assert_true(wf_worker_try(other));
    wf_worker_drive(other, 0); /* of what made the session */
    wf_worker_leave(other);
    int wakes = stage->scene.engines[0]->wakes;
    struct weft_request *request;
    wf_session_lock(stage->session);
    struct wf_outbound *outbound = begin_send(stage, SMALL, &request);
    wf_channel_tx_due(stage->session->lines.channels[1]);
    assert_false(atomic_load(&other->has_mail));
    wf_session_unlock_and_push(stage->session, outbound);
    assert_true(wf_request_collect(request, NULL));
    assert_true(atomic_load(&other->has_mail));
    assert_int_equal(stage->scene.engines[0]->wakes, wakes + 1);
    assert_sent_on(stage, 0);
}

/* --- brief messages --- */

/* As weft_send() of a brief message. Its request ends with the session. */
static void send_brief(struct stage *stage)
{
    struct weft_request *request;
    wf_session_lock(stage->session);
    struct wf_outbound *outbound = begin_send(stage, BRIEF, &request);
    assert_false(request->done_early);
    assert_true(wf_ready_is_brief(outbound));
    wf_session_unlock_and_push(stage->session, outbound);
}

static void assert_left_to_bulk(struct stage *stage)
{
    int fd;
    assert_int_equal(end_sends(stage, &fd), 0);
    assert_true(wf_link_in_list(&stage->connection->ready_link));
    assert_true(atomic_load(&stage->scene.crew.workers[0]->has_mail));
}

/* What the rate of the pair of rails makes it take for a brief message: longer than it may, or not. */
static void set_rate(struct stage *stage, int rail, uint64_t bytes_per_second)
{
    struct wf_lane_total *pair = &stage->session->loss.spreads[0]->pairs[rail];
    pair->known = 1;
    pair->rates = bytes_per_second;
}

static void test_the_caller_sends_a_brief_message(void **state)
{
    struct stage *stage = *state;
    send_brief(stage);
    struct wf_op *op = stage->scene.engines[1]->posted[0];
    assert_int_equal(op->kind, WF_OP_SEND);
    assert_ptr_equal(op->iov[op->iov_count - 1].iov_base, stage->bytes);
    assert_int_equal(op->iov[op->iov_count - 1].iov_len, BRIEF);
    assert_true(op->urgent);
    assert_sent_on(stage, 0);
    send_small(stage, false);
    assert_false(op->urgent);
    assert_sent_on(stage, 0);
}

/* The engine has not sent all of it, as where a socket's buffer is full, and its caller may compute now: the worker's
 * thread is called, as no engine goes on before its next poll. */
static void test_what_is_left_of_a_brief_message_is_left_to_the_thread(void **state)
{
    struct stage *stage = *state;
    struct wf_worker *worker = worker_of(stage);
    atomic_store(&worker->park, WF_PARK_REST);
    send_brief(stage);
    assert_int_equal(atomic_load(&worker->park), WF_PARK_END);
    assert_sent_on(stage, 0);
}

/* Behind 128 KiB that are not acknowledged, small messages would wait too long: the next channel takes it, and at last
 * bulk channels. */
static void test_brief_messages_do_not_pile_up(void **state)
{
    struct stage *stage = *state;
    for (int rail = 0; rail < RAILS; rail++) {
        struct wf_window *window = &stage->session->lines.channels[2 * rail]->tx.window;
        window->spent_bytes += 128 * 1024;
        window->granted_bytes += 128 * 1024;
    }
    for (int rail = 0; rail < RAILS; rail++) {
        send_brief(stage);
        assert_sent_on(stage, rail);
    }
    send_brief(stage);
    assert_left_to_bulk(stage);
}

static void test_a_slow_rail_takes_no_brief_message_alone(void **state)
{
    struct stage *stage = *state;
    set_rate(stage, 0, 1000000000); /* 61 us */
    send_brief(stage);
    assert_sent_on(stage, 1);
    set_rate(stage, 1, 1000000000);
    send_brief(stage);
    assert_left_to_bulk(stage);
}

/* What is measured decides; before that, the line rate. */
static void test_an_interface_tells_that_a_rail_is_slow(void **state)
{
    static struct wf_rails rails;
    struct stage *stage = *state;
    stage->sessions.rails = &rails;
    for (int rail = 0; rail < RAILS; rail++) {
        stage->session->lines.rails[rail].local = rail;
        rails.each[rail].speed_mbit = rail == 0 ? 8000 : 25000; /* 61 us, and 20 */
    }
    send_brief(stage);
    assert_sent_on(stage, 1);
    set_rate(stage, 0, UINT64_C(10000000000));
    send_brief(stage);
    assert_sent_on(stage, 0);
}

static void test_a_class_with_a_rate_has_no_brief_messages(void **state)
{
    struct stage *stage = *state;
    stage->session->lines.rate[0] = UINT64_C(100000000000);
    send_brief(stage);
    assert_left_to_bulk(stage);
}

/* The peer's credit does not allow it: it is only offered. */
static void test_a_brief_message_without_credit_is_offered(void **state)
{
    struct stage *stage = *state;
    struct wf_desk *desk = &stage->session->desk;
    desk->unsolicited_limit = desk->unsolicited_spent;
    send_brief(stage);
    const struct scene_engine *engine = stage->scene.engines[stage->own];
    assert_int_equal(engine->posted_count, 1);
    for (int i = 0; i < engine->posted[0]->iov_count; i++)
        assert_in_range(engine->posted[0]->iov[i].iov_len, 1, 2 * WF_FRAME_BYTES);
}

#define ON_STAGE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
#define ON_SPLIT_STAGE(test) cmocka_unit_test_setup_teardown(test, set_up_split, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_STAGE(test_the_first_idle_channel_takes_it),
        ON_STAGE(test_another_one_takes_what_the_first_has_no_room_for),
        ON_STAGE(test_it_waits_where_none_has_room),
        ON_SPLIT_STAGE(test_the_first_idle_channel_takes_it),
        ON_SPLIT_STAGE(test_another_worker_is_told_at_once),
        ON_SPLIT_STAGE(test_the_caller_sends_a_brief_message),
        ON_SPLIT_STAGE(test_brief_messages_do_not_pile_up),
        ON_SPLIT_STAGE(test_a_slow_rail_takes_no_brief_message_alone),
        ON_SPLIT_STAGE(test_what_is_left_of_a_brief_message_is_left_to_the_thread),
        ON_SPLIT_STAGE(test_an_interface_tells_that_a_rail_is_slow),
        ON_SPLIT_STAGE(test_a_class_with_a_rate_has_no_brief_messages),
        ON_SPLIT_STAGE(test_a_brief_message_without_credit_is_offered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
