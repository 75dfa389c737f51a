/* An operation's life without a session: taken, ended, collected or dropped; deadlines, parts, texts, waiters, queues.
 */
#include "core_scene.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/ground/holders.h"
#include "core/request/book.h"
#include "core/request/lobby.h"
#include "core/request/queue.h"
#include "core/request/wait.h"

#define MS WF_NS_PER_MS

/* What makes the requests of these tests: it ends them where it is asked to, or keeps them. */
static struct {
    int calls;  /* of cancel() */
    int status; /* that the last one brought */
    bool keeps; /* their memory is still in use: they end later */
} maker;

static void maker_cancel(struct weft_request *request, int status)
{
    maker.calls += 1;
    maker.status = status;
    if (!maker.keeps)
        wf_request_complete(request, status, 0);
}

static const struct wf_request_ops maker_ops = {.cancel = maker_cancel};

static int set_up(void **state)
{
    memset(&maker, 0, sizeof maker);
    return scene_set_up(state);
}

/* The calls as a room makes them: with the lock held. */
static struct weft_request *take(struct scene *scene, enum wf_request_kind kind)
{
    wf_guard_lock(&scene->guard);
    struct weft_request *request = wf_request_take(&scene->book, kind, &maker_ops);
    wf_guard_unlock(&scene->guard);
    return request;
}

static void complete(struct scene *scene, struct weft_request *request, int status, uint64_t bytes)
{
    wf_guard_lock(&scene->guard);
    wf_request_complete(request, status, bytes);
    wf_guard_unlock(&scene->guard);
}

static void drop(struct scene *scene, struct weft_request *request)
{
    wf_guard_lock(&scene->guard);
    wf_request_drop(request);
    wf_guard_unlock(&scene->guard);
}

static void arm(struct scene *scene, struct weft_request *request, int timeout_ms)
{
    wf_guard_lock(&scene->guard);
    wf_request_arm(request, timeout_ms);
    wf_guard_unlock(&scene->guard);
}

static int64_t expire(struct scene *scene, bool *expired)
{
    wf_guard_lock(&scene->guard);
    int64_t next = wf_requests_expire(&scene->book, scene->now_ns, expired);
    wf_guard_unlock(&scene->guard);
    return next;
}

static bool is_done(const struct weft_request *request)
{
    return atomic_load(&request->done) != 0;
}

/* --- life --- */

static void test_life(void **state)
{
    struct scene *scene = *state;
    struct weft_completion got;
    int user;
    struct weft_request *request = take(scene, WF_REQUEST_RECV);
    assert_non_null(request);
    assert_int_equal(atomic_load(&scene->waiting.requests_out), 1);
    assert_int_equal(scene->guard.references, 2); /* the scene's own, and the request's */
    assert_ptr_equal(wf_list_first(&scene->book.requests), &request->link);
    assert_false(wf_request_collect(request, &got));

    request->tag = 7;
    request->user_data = &user;
    scene->now_ns += 5;
    complete(scene, request, 0, 100);
    assert_true(is_done(request));
    assert_true(wf_list_empty(&scene->book.requests));
    assert_int_equal(scene->guard.references, 2);
    scene->now_ns += 5; /* when its user asks does not matter */
    assert_true(wf_request_collect(request, &got));
    assert_int_equal(got.status, 0);
    assert_int_equal(got.bytes, 100);
    assert_int_equal(got.tag, 7);
    assert_int_equal(got.completed_ns, SCENE_START_NS + 5);
    assert_ptr_equal(got.user_data, &user);
    assert_string_equal(got.text, "");
    assert_int_equal(atomic_load(&scene->waiting.requests_out), 0);
    assert_int_equal(scene->guard.references, 1);

    struct weft_request *next = take(scene, WF_REQUEST_SEND);
    assert_ptr_equal(next, request); /* the same memory, with nothing left of what it was */
    assert_false(is_done(next));
    assert_int_equal(next->tag, 0);
    complete(scene, next, -EIO, 100);
    assert_true(wf_request_collect(next, &got));
    assert_int_equal(got.bytes, 0); /* a failed operation has moved none that anybody may count on */
}

/* Which connection an operation belongs to, and how large a message was that its receive has no room for. */
static void test_what_a_completion_tells(void **state)
{
    static const struct {
        enum wf_request_kind kind;
        int status;
        uint64_t bytes;
        bool connection;
    } rows[] = {
        {WF_REQUEST_SEND, 0, 100, true},         {WF_REQUEST_SEND, -EMSGSIZE, 0, true},
        {WF_REQUEST_RECV, 0, 100, true},         {WF_REQUEST_RECV, -EMSGSIZE, 100, true},
        {WF_REQUEST_RECV, -ECANCELED, 0, true},  {WF_REQUEST_NOTE, 0, 100, true},
        {WF_REQUEST_NOTE, -EMSGSIZE, 100, true}, {WF_REQUEST_WRITE, 0, 100, true},
        {WF_REQUEST_WRITE, -EMSGSIZE, 0, true},  {WF_REQUEST_READ, 0, 100, true},
        {WF_REQUEST_CLOSE, 0, 100, false},       {WF_REQUEST_PEER_CLOSE, 0, 100, false},
    };
    struct scene *scene = *state;
    struct weft_connection *connection = (struct weft_connection *)(void *)scene;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weft_completion got;
        memset(&got, 0xff, sizeof got);
        struct weft_request *request = take(scene, rows[i].kind);
        request->connection = connection;
        complete(scene, request, rows[i].status, 100);
        assert_true(wf_request_collect(request, &got));
        assert_int_equal(got.status, rows[i].status);
        assert_int_equal(got.bytes, rows[i].bytes);
        assert_ptr_equal(got.connection, rows[i].connection ? connection : NULL);
        assert_null(got.peer);
        assert_int_equal(got.reserved, 0);
    }
}

/* All that one receive has ended has the time at which its bytes came. */
static void test_time_of_a_batch(void **state)
{
    struct scene *scene = *state;
    struct weft_completion got;
    struct weft_request *request = take(scene, WF_REQUEST_RECV), *copied = take(scene, WF_REQUEST_SEND);
    wf_guard_batch(&scene->guard, SCENE_START_NS - 9);
    complete(scene, request, 0, 0);
    copied->done_early = true;
    complete(scene, copied, 0, 0);
    wf_guard_batch(&scene->guard, 0);
    wf_request_collect(request, &got);
    assert_int_equal(got.completed_ns, SCENE_START_NS - 9);
    scene->now_ns += 3;
    wf_request_collect(copied, &got); /* its user has had the memory since the post: the time is that of the question */
    assert_int_equal(got.completed_ns, SCENE_START_NS + 3);
}

static void test_drop_leaves_nothing(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_RECV);
    struct wf_list posted;
    bool expired;
    wf_list_init(&posted);
    wf_list_push_back(&posted, &request->match_link);
    arm(scene, request, 1);
    request->length = SCENE_EAGER + 1;
    wf_request_count_large(request);
    drop(scene, request);
    assert_true(wf_list_empty(&scene->book.requests));
    assert_true(wf_list_empty(&scene->book.deadlines));
    assert_true(wf_list_empty(&posted));
    assert_int_equal(scene->guard.references, 1);
    assert_int_equal(atomic_load(&scene->waiting.requests_out), 0);
    assert_int_equal(atomic_load(&scene->crew.large_out), 0);
    scene->now_ns += 2 * MS;
    assert_int_equal(expire(scene, &expired), WF_NEVER);
    assert_int_equal(maker.calls, 0);
}

static void test_an_end_takes_it_off_every_list(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_RECV);
    struct weft_registration registration = {.uses = 1};
    struct wf_list posted;
    wf_list_init(&posted);
    wf_list_push_back(&posted, &request->match_link);
    arm(scene, request, 1);
    request->registration = &registration;
    complete(scene, request, 0, 0);
    assert_true(wf_list_empty(&posted));
    assert_true(wf_list_empty(&scene->book.deadlines));
    assert_int_equal(atomic_load(&registration.uses), 0); /* its memory may be deregistered from now on */
    assert_true(wf_request_collect(request, NULL));
}

static void test_limit(void **state)
{
    struct scene *scene = *state;
    static const enum wf_request_kind users[] = {WF_REQUEST_SEND, WF_REQUEST_RECV, WF_REQUEST_WRITE, WF_REQUEST_READ,
                                                 WF_REQUEST_NOTE};
    static const enum wf_request_kind own[] = {WF_REQUEST_OPEN, WF_REQUEST_ACCEPT, WF_REQUEST_CLOSE,
                                               WF_REQUEST_PEER_CLOSE};
    struct weft_request *requests[SCENE_REQUESTS];
    for (unsigned i = 0; i < SCENE_REQUESTS; i++)
        assert_non_null(requests[i] = take(scene, users[i]));
    for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
        assert_null(take(scene, users[i]));
    assert_int_equal(atomic_load(&scene->waiting.requests_out), SCENE_REQUESTS);
    assert_int_equal(scene->guard.references, 1 + SCENE_REQUESTS);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) { /* without these no user could give back what he has */
        struct weft_request *request = take(scene, own[i]);
        assert_non_null(request);
        drop(scene, request);
    }
    complete(scene, requests[1], 0, 0);
    assert_null(take(scene, WF_REQUEST_SEND)); /* ended is not enough */
    wf_request_collect(requests[1], NULL);
    assert_non_null(take(scene, WF_REQUEST_SEND));
    assert_null(take(scene, WF_REQUEST_SEND));
}

static void test_large_operations_are_counted(void **state)
{
    struct scene *scene = *state;
    struct weft_request *small = take(scene, WF_REQUEST_SEND), *large = take(scene, WF_REQUEST_SEND),
                        *other = take(scene, WF_REQUEST_RECV);
    small->length = SCENE_EAGER;
    large->length = SCENE_EAGER + 1;
    other->length = UINT64_C(1) << 40;
    wf_request_count_large(small);
    assert_int_equal(atomic_load(&scene->crew.large_out), 0);
    wf_request_count_large(large);
    wf_request_count_large(other);
    assert_int_equal(atomic_load(&scene->crew.large_out), 2);
    complete(scene, small, 0, 0);
    assert_int_equal(atomic_load(&scene->crew.large_out), 2);
    complete(scene, large, -EIO, 0);
    assert_int_equal(atomic_load(&scene->crew.large_out), 1);
    wf_request_collect(large, NULL);
    drop(scene, other);
    assert_int_equal(atomic_load(&scene->crew.large_out), 0);
}

/* --- the guard --- */

static void test_the_last_reference_rings_the_door(void **state)
{
    struct scene *scene = *state;
    struct weft_request *first = take(scene, WF_REQUEST_SEND), *last = take(scene, WF_REQUEST_SEND);
    complete(scene, first, -ESHUTDOWN, 0);
    complete(scene, last, -ESHUTDOWN, 0);
    wf_guard_lock(&scene->guard);
    wf_guard_enter(&scene->guard, WF_SESSION_DEAD);
    wf_guard_unlock_and_release(&scene->guard); /* the scene's own */
    assert_int_equal(scene->door.wakes, 0);
    wf_request_collect(first, NULL);
    assert_int_equal(scene->door.wakes, 0);
    wf_request_collect(last, NULL);
    assert_int_equal(scene->door.wakes, 1);
    assert_int_equal(atomic_load(&scene->world.alarm.due_ns), 0);
}

static void test_a_session_that_lives_rings_nobody(void **state)
{
    struct scene *scene = *state;
    wf_guard_lock(&scene->guard);
    wf_guard_unlock_and_release(&scene->guard);
    assert_int_equal(scene->guard.references, 0);
    assert_int_equal(scene->door.wakes, 0);
}

static void test_only_the_first_failure_counts(void **state)
{
    struct scene *scene = *state;
    struct wf_guard *guard = &scene->guard;
    wf_guard_lock(guard);
    wf_guard_fail(guard, -EPROTO, "frame %d", 1);
    wf_guard_fail(guard, -ETIMEDOUT, "frame %d", 2);
    assert_int_equal(scene->failures, 1);
    assert_int_equal(guard->error.code, -EPROTO);
    assert_string_equal(guard->error.text, "frame 1");
    wf_guard_unlock(guard);
}

static void test_over_when_nobody_holds_it(void **state)
{
    static const struct {
        enum wf_session_state state;
        int unheld;
    } cases[] = {{WF_SESSION_JOINING, 0},
                 {WF_SESSION_UP, 0},
                 {WF_SESSION_CLOSING, 1},
                 {WF_SESSION_FAILED, 1},
                 {WF_SESSION_DEAD, 0}};
    struct scene *scene = *state;
    struct wf_guard *guard = &scene->guard;
    wf_guard_lock(guard);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene->unheld = 0;
        wf_guard_enter(guard, cases[i].state);
        wf_guard_hold(guard);
        wf_guard_hold(guard);
        wf_guard_let_go(guard);
        assert_int_equal(scene->unheld, 0);
        wf_guard_let_go(guard);
        assert_int_equal(scene->unheld, cases[i].unheld);
    }
    wf_guard_unlock(guard);
}

/* --- deadlines --- */

static void test_arm_sets_the_alarm(void **state)
{
    struct scene *scene = *state;
    struct weft_request *never = take(scene, WF_REQUEST_RECV), *late = take(scene, WF_REQUEST_RECV),
                        *early = take(scene, WF_REQUEST_RECV), *between = take(scene, WF_REQUEST_RECV);
    arm(scene, never, 0);
    arm(scene, never, -1);
    assert_int_equal(never->deadline_ns, WF_NEVER);
    assert_int_equal(scene->door.wakes, 0);
    arm(scene, late, 30);
    assert_int_equal(scene->door.wakes, 1);
    assert_int_equal(atomic_load(&scene->world.alarm.due_ns), SCENE_START_NS + 30 * MS);
    arm(scene, early, 10);
    assert_int_equal(scene->door.wakes, 2);
    assert_int_equal(atomic_load(&scene->world.alarm.due_ns), SCENE_START_NS + 10 * MS);
    arm(scene, between, 20); /* the door comes earlier anyway */
    assert_int_equal(scene->door.wakes, 2);
    assert_int_equal(atomic_load(&scene->world.alarm.due_ns), SCENE_START_NS + 10 * MS);
}

static void test_expire(void **state)
{
    struct scene *scene = *state;
    struct weft_request *late = take(scene, WF_REQUEST_RECV), *early = take(scene, WF_REQUEST_RECV),
                        *later = take(scene, WF_REQUEST_RECV), *never = take(scene, WF_REQUEST_RECV);
    bool expired = true;
    arm(scene, late, 20);
    arm(scene, early, 10);
    arm(scene, later, 30);
    assert_int_equal(expire(scene, &expired), SCENE_START_NS + 10 * MS);
    assert_false(expired);
    scene->now_ns += 10 * MS - 1;
    assert_int_equal(expire(scene, &expired), SCENE_START_NS + 10 * MS);
    assert_int_equal(maker.calls, 0);
    scene->now_ns += 1;
    assert_int_equal(expire(scene, &expired), SCENE_START_NS + 20 * MS);
    assert_true(expired);
    assert_int_equal(maker.calls, 1);
    assert_int_equal(maker.status, -ETIMEDOUT);
    assert_true(is_done(early));
    assert_int_equal(early->status, -ETIMEDOUT);
    assert_false(is_done(late));
    scene->now_ns += 40 * MS;
    assert_int_equal(expire(scene, &expired), WF_NEVER);
    assert_true(expired);
    assert_int_equal(maker.calls, 3);
    assert_false(is_done(never));
    assert_int_equal(expire(scene, &expired), WF_NEVER);
    assert_false(expired);
}

/* Its memory is still in use: it has been told, and ends when that is over. */
static void test_expires_once(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_RECV);
    bool expired;
    maker.keeps = true;
    arm(scene, request, 10);
    scene->now_ns += 20 * MS;
    assert_int_equal(expire(scene, &expired), WF_NEVER);
    assert_int_equal(expire(scene, &expired), WF_NEVER);
    assert_false(expired);
    assert_int_equal(maker.calls, 1);
    assert_false(is_done(request));
}

/* --- cancelling --- */

static void test_cancel(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_SEND);
    struct weft_completion got;
    arm(scene, request, 10);
    weft_cancel(request);
    assert_int_equal(maker.calls, 1);
    assert_int_equal(maker.status, -ECANCELED);
    assert_true(wf_list_empty(&scene->book.deadlines));
    assert_int_equal(scene->pushed, 1);             /* the peer may have to hear of it */
    assert_int_equal(scene->references_at_push, 3); /* the call's own: another thread may collect the request by then */
    assert_int_equal(scene->guard.references, 2);
    weft_cancel(request);
    assert_int_equal(maker.calls, 1);
    assert_true(wf_request_collect(request, &got));
    assert_int_equal(got.status, -ECANCELED);
}

static void test_cancel_after_the_end(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_SEND);
    struct weft_completion got;
    complete(scene, request, 0, 5);
    weft_cancel(request);
    assert_int_equal(maker.calls, 0);
    assert_true(wf_request_collect(request, &got));
    assert_int_equal(got.status, 0);
    assert_int_equal(got.bytes, 5);
}

static void test_plain_requests_end_at_once(void **state)
{
    struct scene *scene = *state;
    wf_guard_lock(&scene->guard);
    struct weft_request *request = wf_request_take(&scene->book, WF_REQUEST_ACCEPT, &wf_request_plain_ops);
    wf_guard_unlock(&scene->guard);
    weft_cancel(request);
    assert_true(is_done(request));
    assert_int_equal(request->status, -ECANCELED);
}

static void test_finish_waits_then_cancels(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_SEND);
    scene->step_ns = MS / 4;
    assert_int_equal(wf_request_finish(request, 5, NULL), -ETIMEDOUT);
    assert_in_range(scene->now_ns, SCENE_START_NS + 5 * MS, SCENE_START_NS + 7 * MS);
    assert_int_equal(maker.status, -ETIMEDOUT);
    assert_int_equal(scene->pushed, 1);
    assert_int_equal(scene->guard.references, 1); /* it has been collected, too */

    request = take(scene, WF_REQUEST_SEND);
    complete(scene, request, -EPIPE, 0);
    assert_int_equal(wf_request_finish(request, 5, NULL), -EPIPE);
    assert_int_equal(maker.calls, 1);
}

/* --- an operation and its notification --- */

static void test_parts(void **state)
{
    static const struct {
        enum wf_request_kind kind;
        int parts, first, second, status;
        uint64_t bytes; /* of the completion */
    } cases[] = {
        {WF_REQUEST_SEND, 0, 0, 0, 0, 11},
        {WF_REQUEST_SEND, 0, -EPIPE, 0, -EPIPE, 0},
        {WF_REQUEST_WRITE, 1, 0, 0, 0, 64}, /* of a write as many as were asked for */
        {WF_REQUEST_WRITE, 2, 0, 0, 0, 64},
        {WF_REQUEST_READ, 2, 0, -EACCES, -EACCES, 0},
        {WF_REQUEST_READ, 2, -EACCES, 0, -EACCES, 0},
        {WF_REQUEST_WRITE, 2, -EACCES, -ESHUTDOWN, -EACCES, 0}, /* the second failed because of the first */
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_request *request = take(scene, cases[i].kind);
        struct weft_completion got;
        print_message("case %zu\n", i);
        request->parts = cases[i].parts;
        request->length = 64;
        wf_guard_lock(&scene->guard);
        wf_request_part_done(request, cases[i].first, 11);
        assert_int_equal(is_done(request), cases[i].parts < 2);
        if (cases[i].parts == 2)
            wf_request_part_done(request, cases[i].second, 22);
        wf_guard_unlock(&scene->guard);
        assert_true(wf_request_collect(request, &got));
        assert_int_equal(got.status, cases[i].status);
        assert_int_equal(got.bytes, cases[i].bytes);
    }
}

/* --- what a completion says --- */

static const struct wf_mishap no_mishap = {.device = WF_NO_DEVICE};
static const struct wf_mishap out_mishap = {3, WF_COPY_OUT, 100, 200, "it is gone"};
static const struct wf_mishap in_mishap = {3, WF_COPY_IN, 100, 200, "it is gone"};
static const struct wf_mishap mark_mishap = {3, WF_COPY_MARK, 0, 0, "it is gone"};

static void test_texts(void **state)
{
    static const struct {
        enum wf_request_kind kind;
        int status;
        const struct wf_mishap *mishap;
        int failed; /* the session's error, "the peer is gone", or 0 */
        const char *text;
    } cases[] = {
        {WF_REQUEST_SEND, 0, &no_mishap, 0, ""},
        {WF_REQUEST_SEND, -ECANCELED, &no_mishap, 0, "send of 64 bytes, tag 9, endpoint 5 of peer: Operation canceled"},
        {WF_REQUEST_NOTE, -ECANCELED, &no_mishap, 0,
         "receive of a notification of 64 bytes, tag 9, endpoint 5 of peer: Operation canceled"},
        {WF_REQUEST_PEER_CLOSE, -ECANCELED, &no_mishap, 0, "close of a peer, endpoint 5 of peer: Operation canceled"},
        {WF_REQUEST_RECV, -ETIMEDOUT, &no_mishap, -ETIMEDOUT,
         "receive of 64 bytes, tag 9, endpoint 5 of peer: the peer is gone"},
        {WF_REQUEST_RECV, -ECANCELED, &no_mishap, -ETIMEDOUT,
         "receive of 64 bytes, tag 9, endpoint 5 of peer: Operation canceled"},
        {WF_REQUEST_RECV, -EMSGSIZE, &no_mishap, 0,
         "receive with tag 9: the message has 77 bytes, the buffer 64; post a larger one"},
        {WF_REQUEST_SEND, -EMSGSIZE, &no_mishap, 0, "send of 64 bytes, tag 9, endpoint 5 of peer: Message too long"},
        {WF_REQUEST_WRITE, -EACCES, &no_mishap, 0,
         "write of 64 bytes to offset 4096 of key 0xabc, endpoint 5 of peer: the peer knows no registration with this "
         "key, has ended it, or does not allow this"},
        {WF_REQUEST_READ, -ERANGE, &no_mishap, 0,
         "read of 64 bytes from offset 4096 of key 0xabc, endpoint 5 of peer: some of it lies outside the peer's "
         "registration"},
        {WF_REQUEST_SEND, -EIO, &no_mishap, 0,
         "send of 64 bytes, tag 9, endpoint 5 of peer: a GPU failed at the peer, whose own messages name it and the "
         "bytes"},
        {WF_REQUEST_SEND, -EIO, &no_mishap, -EIO, "send of 64 bytes, tag 9, endpoint 5 of peer: the peer is gone"},
        {WF_REQUEST_SEND, -ENODEV, &out_mishap, 0,
         "send of 64 bytes, tag 9, endpoint 5 of peer: GPU 3 failed to copy bytes 100 to 200 out of its memory: it is "
         "gone"},
        {WF_REQUEST_RECV, -EIO, &in_mishap, 0,
         "receive of 64 bytes, tag 9, endpoint 5 of peer: GPU 3 failed to copy bytes 100 to 200 into its memory: it is "
         "gone"},
        {WF_REQUEST_RECV, -EIO, &mark_mishap, 0,
         "receive of 64 bytes, tag 9, endpoint 5 of peer: GPU 3 failed before its stream came to this: it is gone"},
        {WF_REQUEST_RECV, -ECANCELED, &in_mishap, 0,
         "receive of 64 bytes, tag 9, endpoint 5 of peer: Operation canceled"},
    };
    struct scene *scene = *state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_request *request = take(scene, cases[i].kind);
        struct weft_completion got;
        request->length = 64;
        request->tag = 9;
        request->key = 0xabc;
        request->offset = 4096;
        request->remote_endpoint = 5;
        request->mishap = *cases[i].mishap;
        scene->guard.error = (struct wf_status){cases[i].failed, "the peer is gone"};
        complete(scene, request, cases[i].status, 77);
        assert_true(wf_request_collect(request, &got));
        assert_string_equal(got.text, cases[i].text);
    }
}

/* --- who waits --- */

static void test_waiters_are_woken_once(void **state)
{
    struct scene *scene = *state;
    struct weft_request *first = take(scene, WF_REQUEST_RECV), *second = take(scene, WF_REQUEST_RECV),
                        *alone = take(scene, WF_REQUEST_RECV);
    struct wf_waiter waiter = {.poked = 0};
    wf_link_init(&waiter.poked_link);
    atomic_store(&first->waiter, &waiter);
    atomic_store(&second->waiter, &waiter);
    wf_guard_lock(&scene->guard);
    wf_request_complete(alone, 0, 0);
    assert_false(scene->guard.wake_due); /* a system call for nobody */
    wf_request_complete(first, 0, 0);
    assert_true(scene->guard.wake_due);
    assert_int_equal(atomic_load(&waiter.poked), 1);
    assert_ptr_equal(wf_list_first(&scene->waiting.poked), &waiter.poked_link);
    wf_request_complete(second, 0, 0); /* whose waiter is on the list already */
    wf_guard_unlock(&scene->guard);
    assert_true(wf_list_empty(&scene->waiting.poked));
    assert_false(scene->guard.wake_due);
}

static void test_wait_any_takes_turns(void **state)
{
    struct scene *scene = *state;
    struct weft_request *requests[3];
    int index;
    for (int i = 0; i < 3; i++)
        requests[i] = take(scene, WF_REQUEST_RECV);
    assert_int_equal(weft_wait_any(requests, 3, 0, &index, NULL), -ETIMEDOUT);
    complete(scene, requests[2], 0, 0);
    assert_int_equal(weft_wait_any(requests, 3, 0, &index, NULL), 0);
    assert_int_equal(index, 2);
    requests[2] = NULL;
    complete(scene, requests[1], 0, 0);
    assert_int_equal(weft_wait_any(requests, 3, 0, &index, NULL), 0);
    assert_int_equal(index, 1);
    requests[1] = NULL;
    assert_int_equal(weft_test(requests[0], NULL), 0);
    complete(scene, requests[0], 0, 0);
    assert_int_equal(weft_test(requests[0], NULL), 1);
    requests[0] = NULL;
    assert_int_equal(weft_wait_any(requests, 3, 0, &index, NULL), -ENOENT);
}

/* --- queues --- */

static struct weft_queue *queue_of(struct scene *scene)
{
    struct wf_status status = {0};
    struct weft_queue *queue = NULL;
    assert_int_equal(wf_queue_create(&scene->waiting, &queue, &status), 0);
    return queue;
}

static struct weft_request *take_for(struct scene *scene, struct weft_queue *queue, uint64_t tag)
{
    struct weft_request *request = take(scene, WF_REQUEST_RECV);
    assert_non_null(request);
    request->tag = tag;
    wf_guard_lock(&scene->guard);
    wf_queue_attach(queue, request);
    wf_guard_unlock(&scene->guard);
    return request;
}

static bool is_readable(int fd)
{
    struct pollfd at = {.fd = fd, .events = POLLIN};
    int count = poll(&at, 1, 0);
    assert_true(count >= 0);
    return count == 1 && at.revents & POLLIN;
}

static void test_a_queue_hands_out_in_the_order_of_ends(void **state)
{
    struct scene *scene = *state;
    struct weft_queue *queue = queue_of(scene);
    struct weft_completion got[4];
    struct weft_request *requests[3];
    for (int i = 0; i < 3; i++)
        requests[i] = take_for(scene, queue, (uint64_t)i);
    assert_int_equal(weft_queue_poll(queue, got, 4), 0);
    assert_int_equal(weft_queue_poll(queue, got, 0), -EINVAL);
    assert_int_equal(weft_queue_poll(queue, NULL, 4), -EINVAL);
    complete(scene, requests[2], 0, 20);
    complete(scene, requests[0], -EPIPE, 0);
    complete(scene, requests[1], 0, 10);
    assert_int_equal(weft_test(requests[2], got), -EINVAL); /* it is the queue's */
    assert_int_equal(weft_queue_poll(queue, got, 2), 2);
    assert_int_equal(got[0].tag, 2);
    assert_int_equal(got[0].bytes, 20);
    assert_int_equal(got[1].tag, 0);
    assert_int_equal(got[1].status, -EPIPE);
    assert_int_equal(scene->guard.references, 2);
    assert_int_equal(weft_queue_destroy(queue), -EBUSY);
    assert_int_equal(weft_queue_poll(queue, got, 4), 1);
    assert_int_equal(got[0].tag, 1);
    assert_int_equal(weft_queue_poll(queue, got, 4), 0);
    assert_int_equal(scene->guard.references, 1);
    assert_int_equal(weft_queue_destroy(queue), 0);
}

static void test_a_queue_waits_for_what_is_attached(void **state)
{
    struct scene *scene = *state;
    struct weft_queue *queue = queue_of(scene);
    struct weft_request *request = take_for(scene, queue, 0);
    assert_int_equal(weft_queue_destroy(queue), -EBUSY);
    drop(scene, request); /* it was never posted */
    assert_int_equal(weft_queue_destroy(queue), 0);
}

/* Copied or not: several sessions' ends are in one queue, in the order of these times. */
static void test_a_queue_knows_every_time(void **state)
{
    struct scene *scene = *state;
    struct weft_queue *queue = queue_of(scene);
    struct weft_request *request = take_for(scene, queue, 0);
    struct weft_completion got;
    request->done_early = true;
    wf_guard_batch(&scene->guard, SCENE_START_NS - 9);
    complete(scene, request, 0, 0);
    scene->now_ns += 7;
    assert_int_equal(weft_queue_poll(queue, &got, 1), 1);
    assert_int_equal(got.completed_ns, SCENE_START_NS);
    assert_int_equal(weft_queue_destroy(queue), 0);
}

static void test_the_descriptor_shows_the_level(void **state)
{
    struct scene *scene = *state;
    struct weft_queue *queue = queue_of(scene);
    struct weft_completion got;
    struct weft_request *requests[2] = {take_for(scene, queue, 0), take_for(scene, queue, 1)};
    int fd = weft_completion_fd(queue);
    assert_false(is_readable(fd));
    wf_guard_lock(&scene->guard);
    wf_request_complete(requests[0], 0, 0);
    assert_false(is_readable(fd)); /* no system call under the lock */
    wf_guard_unlock(&scene->guard);
    assert_true(is_readable(fd));
    wf_guard_lock(&scene->guard);
    wf_request_complete(requests[1], 0, 0);
    assert_false(scene->guard.wake_due); /* it is readable already */
    wf_guard_unlock(&scene->guard);
    assert_int_equal(weft_queue_poll(queue, &got, 1), 1);
    assert_true(is_readable(fd));
    assert_int_equal(weft_queue_poll(queue, &got, 1), 1);
    assert_false(is_readable(fd));

    struct weft_request *again = take_for(scene, queue, 2);
    complete(scene, again, 0, 0);
    assert_true(is_readable(fd));
    assert_int_equal(weft_queue_poll(queue, &got, 1), 1);
    assert_false(is_readable(fd));
    assert_int_equal(weft_queue_destroy(queue), 0);
}

/* What has happened to somebody is in the tray once, however often it is told. */
static void test_a_tray_holds_each_once(void **state)
{
    struct scene *scene = *state;
    struct wf_tray *tray;
    struct wf_link links[3];
    struct wf_list taken;
    bool watched;
    assert_int_equal(wf_tray_create(&scene->waiting, &tray), 0);
    wf_list_init(&taken);
    for (int i = 0; i < 3; i++)
        wf_link_init(&links[i]);
    int fd = wf_tray_watch(tray);
    assert_true(wf_tray_put(tray, &links[0])); /* the descriptor is to change */
    assert_false(wf_tray_put(tray, &links[0]));
    assert_false(wf_tray_put(tray, &links[1]));
    assert_false(is_readable(fd));
    wf_wait_wake(&scene->waiting);
    assert_true(is_readable(fd));
    assert_int_equal(wf_tray_take(tray, &taken, 1, &watched), 1);
    assert_true(watched);
    assert_ptr_equal(wf_list_pop_front(&taken), &links[0]);
    assert_true(is_readable(fd));
    wf_tray_drop(tray, &links[2]); /* it is not there */
    assert_true(is_readable(fd));
    wf_tray_drop(tray, &links[1]);
    assert_false(is_readable(fd));
    assert_false(wf_tray_holds(tray));
    assert_int_equal(wf_tray_take(tray, &taken, 1, &watched), 0);
    wf_tray_destroy(tray);
}

/* The end of one operation may be that of others that are late, too. */
static struct weft_request *dragged;

static void cancel_two(struct weft_request *request, int status)
{
    if (dragged && dragged != request) {
        struct weft_request *other = dragged;
        dragged = NULL;
        wf_request_cancel(other, -EPIPE);
    }
    wf_request_complete(request, status, 0);
}

static void test_the_late_end_each_other(void **state)
{
    static const struct wf_request_ops ops = {.cancel = cancel_two};
    struct scene *scene = *state;
    struct weft_request *requests[3];
    struct weft_completion got;
    bool expired;
    wf_guard_lock(&scene->guard);
    for (int i = 0; i < 3; i++) {
        requests[i] = wf_request_take(&scene->book, WF_REQUEST_CLOSE, &ops);
        wf_request_arm(requests[i], 5);
    }
    dragged = requests[1]; /* stands behind the first */
    scene->now_ns += 6 * WF_NS_PER_MS;
    assert_int_equal(wf_requests_expire(&scene->book, scene->now_ns, &expired), WF_NEVER);
    assert_true(expired);
    wf_guard_unlock(&scene->guard);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weft_test(requests[i], &got), 1);
        assert_int_equal(got.status, i == 1 ? -EPIPE : -ETIMEDOUT);
    }
}

/* Requests of no session: deadlines, the order of those who wait, and what is left at the end. */
static void cancel_plain(struct weft_request *request, int status)
{
    wf_request_complete(request, status, 0);
}

static void test_the_lobby(void **state)
{
    static const struct wf_request_ops ops = {.cancel = cancel_plain};
    struct scene *scene = *state;
    struct wf_lobby lobby = {0};
    struct weft_request *requests[4];
    struct weft_completion got;
    struct weft_peer *peers[2] = {(void *)&requests[0], (void *)&requests[1]};
    wf_lobby_init(&lobby, &scene->waiting);
    assert_int_equal(wf_lobby_open(&lobby), 0);
    assert_false(wf_lobby_welcome(&lobby, peers[0]));
    wf_lobby_lock(&lobby);
    for (int i = 0; i < 4; i++) {
        requests[i] = wf_request_take(&lobby.book, WF_REQUEST_PEER_ACCEPT, &ops);
        wf_request_adopt(requests[i], &(struct weft_options){.timeout_ms = i == 1 ? 5 : 0, .user_data = &requests[i]});
        wf_list_push_back(&lobby.acceptors, &requests[i]->match_link);
    }
    wf_lobby_unlock(&lobby);
    scene->world.shared = true; /* a caller may sleep in the engine of the shared worker */
    const struct scene_engine *engine = (struct scene_engine *)scene->crew.workers[0]->engine;
    int wakes = engine->wakes;
    assert_true(wf_lobby_welcome(&lobby, peers[0]));
    assert_int_equal(engine->wakes, wakes + 1);
    assert_int_equal(wf_lobby_tick(&lobby, scene->now_ns), scene->now_ns + 5 * WF_NS_PER_MS);
    scene->now_ns += 5 * WF_NS_PER_MS;
    assert_int_equal(wf_lobby_tick(&lobby, scene->now_ns), WF_NEVER);
    assert_true(wf_lobby_welcome(&lobby, peers[1]));
    assert_int_equal(weft_test(requests[0], &got), 1);
    assert_true(got.status == 0 && got.peer == peers[0] && got.user_data == &requests[0]);
    assert_int_equal(weft_test(requests[1], &got), 1);
    assert_true(got.status == -ETIMEDOUT && !got.peer);
    assert_int_equal(weft_test(requests[2], &got), 1);
    assert_true(got.status == 0 && got.peer == peers[1]);
    assert_int_equal(weft_test(requests[3], &got), 0);
    wf_lobby_cancel(&lobby, -ESHUTDOWN);
    assert_int_equal(weft_test(requests[3], &got), 1);
    assert_int_equal(got.status, -ESHUTDOWN);
    wf_lobby_fini(&lobby);
}

static void test_the_descriptor_is_left_alone_until_asked_for(void **state)
{
    struct scene *scene = *state;
    struct weft_queue *queue = queue_of(scene);
    struct weft_completion got;
    struct weft_request *request = take_for(scene, queue, 0);
    wf_guard_lock(&scene->guard);
    wf_request_complete(request, 0, 0);
    assert_false(scene->guard.wake_due);
    wf_guard_unlock(&scene->guard);
    assert_false(is_readable(queue->ended->fd));
    assert_true(is_readable(weft_completion_fd(queue))); /* and tells then of what came before */
    assert_int_equal(weft_queue_poll(queue, &got, 1), 1);
    assert_false(is_readable(queue->ended->fd));
    assert_int_equal(weft_queue_destroy(queue), 0);
}

/* An operation of the engine's that ends a request. */
struct ending {
    struct wf_op op;
    struct wf_task task;
    struct scene *scene;
    struct weft_request *request;
};

static void end_request(struct wf_task *task)
{
    struct ending *ending = WF_CONTAINER(task, struct ending, task);
    complete(ending->scene, ending->request, 0, 3);
}

static void test_asking_a_queue_drives_a_shared_worker(void **state)
{
    struct scene *scene = *state;
    struct weft_queue *queue = queue_of(scene);
    struct wf_worker *worker = scene->crew.workers[0];
    struct ending ending = {.task = {end_request}, .scene = scene};
    struct weft_completion got[2];
    ending.op.context = &ending.task;
    scene->world.manual = false;
    scene->world.shared = true;

    ending.request = take_for(scene, queue, 0);
    scene_finish(scene, 0, &ending.op);
    assert_int_equal(weft_queue_poll(queue, got, 2), 1);
    assert_int_equal(got[0].bytes, 3);
    assert_int_equal(atomic_load(&worker->token), WF_TOKEN_FREE);
    assert_int_equal(atomic_load(&worker->caller_turns), 1);
    assert_int_equal(atomic_load(&worker->park), WF_PARK_REST);

    /* The one that has the descriptor sleeps on it: the thread is to drive, and is not told that callers do. */
    weft_completion_fd(queue);
    assert_int_equal(weft_queue_poll(queue, got, 2), 0);
    assert_int_equal(atomic_load(&worker->caller_turns), 1);
    assert_int_equal(atomic_load(&worker->park), WF_PARK_END);
    assert_int_equal(weft_queue_destroy(queue), 0);
}

/* A request that a thread of the rails ends while its waiter sleeps in the engine that it drives: the engine is woken,
 * and no futex. What the driver ends itself it sees. */
static void test_a_driver_that_sleeps_is_rung(void **state)
{
    struct scene *scene = *state;
    struct weft_request *request = take(scene, WF_REQUEST_RECV);
    pthread_t other;
    memset(&other, 0xff, sizeof other);
    struct wf_waiter waiter = {.drives = true, .thread = pthread_self()};
    atomic_store(&request->waiter, &waiter);
    assert_false(wf_wait_completed(&scene->waiting, request));
    assert_int_equal(atomic_load(&waiter.poked), 0);
    waiter.thread = other;
    assert_true(wf_wait_completed(&scene->waiting, request));
    assert_int_equal(atomic_load(&waiter.poked), 1);
    assert_true(scene->waiting.bell_due);
    assert_true(wf_list_empty(&scene->waiting.poked));
    assert_false(wf_wait_completed(&scene->waiting, request)); /* it was told */
    wf_wait_wake(&scene->waiting);
    assert_false(scene->waiting.bell_due);
    atomic_store(&request->waiter, NULL);
    complete(scene, request, 0, 0);
    assert_true(wf_request_collect(request, NULL));
}

struct seen {
    struct ending ending;
    bool waiter; /* the request had one as its task came */
};

static void look_and_end(struct wf_task *task)
{
    struct seen *seen = WF_CONTAINER(task, struct seen, ending.task);
    seen->waiter = atomic_load(&seen->ending.request->waiter) != NULL;
    end_request(task);
}

/* While it sleeps, other threads may end its request: here one that cancels, for no rail has a worker of its own. */
static void test_a_driver_of_a_shared_worker_can_be_told(void **state)
{
    struct scene *scene = *state;
    struct seen seen = {.ending = {.task = {look_and_end}, .scene = scene, .request = take(scene, WF_REQUEST_RECV)}};
    seen.ending.op.context = &seen.ending.task;
    scene->world.manual = false;
    scene->world.shared = true;
    scene->world.tuning.spin_ns = 0; /* it sleeps at once */
    scene->engines[0]->late = &seen.ending.op;
    assert_int_equal(weft_wait(seen.ending.request, 1000, NULL), 0);
    assert_true(seen.waiter);
    assert_int_equal(scene->engines[0]->wakes, 0); /* it has ended the request itself */
}

#define IN_SCENE(test) cmocka_unit_test_setup_teardown(test, set_up, scene_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCENE(test_life),
        IN_SCENE(test_what_a_completion_tells),
        IN_SCENE(test_time_of_a_batch),
        IN_SCENE(test_drop_leaves_nothing),
        IN_SCENE(test_an_end_takes_it_off_every_list),
        IN_SCENE(test_limit),
        IN_SCENE(test_large_operations_are_counted),
        IN_SCENE(test_the_last_reference_rings_the_door),
        IN_SCENE(test_a_session_that_lives_rings_nobody),
        IN_SCENE(test_only_the_first_failure_counts),
        IN_SCENE(test_over_when_nobody_holds_it),
        IN_SCENE(test_arm_sets_the_alarm),
        IN_SCENE(test_expire),
        IN_SCENE(test_expires_once),
        IN_SCENE(test_cancel),
        IN_SCENE(test_cancel_after_the_end),
        IN_SCENE(test_plain_requests_end_at_once),
        IN_SCENE(test_finish_waits_then_cancels),
        IN_SCENE(test_parts),
        IN_SCENE(test_texts),
        IN_SCENE(test_waiters_are_woken_once),
        IN_SCENE(test_wait_any_takes_turns),
        IN_SCENE(test_a_queue_hands_out_in_the_order_of_ends),
        IN_SCENE(test_a_queue_waits_for_what_is_attached),
        IN_SCENE(test_a_queue_knows_every_time),
        IN_SCENE(test_the_descriptor_shows_the_level),
        IN_SCENE(test_a_tray_holds_each_once),
        IN_SCENE(test_the_late_end_each_other),
        IN_SCENE(test_the_lobby),
        IN_SCENE(test_the_descriptor_is_left_alone_until_asked_for),
        IN_SCENE(test_asking_a_queue_drives_a_shared_worker),
        IN_SCENE(test_a_driver_that_sleeps_is_rung),
        IN_SCENE(test_a_driver_of_a_shared_worker_can_be_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
