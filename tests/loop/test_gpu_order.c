/* test_gpu_order.c: operations in the order of a stream's work. */
#include "gpu.h"

#include <errno.h>
#include <string.h>

#define SMALL 1000
#define LARGE (1024 * 1024 + 3)
#define SETTINGS "chunk=64K"

static struct wf_sim_memory *devices;
static const size_t sizes[] = {1, SMALL, 40000, LARGE};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

/* What a kernel in the stream does: looks at memory, then writes it. */
struct kernel {
    struct loop_buffer *buffer;
    uint64_t seed; /* what it writes; 0: nothing */
    bool ran;
    uint64_t expected; /* what it finds; 0: it does not look */
    bool poisoned;     /* it finds LOOP_POISON */
    bool wrong;
};

static void run_kernel(void *argument)
{
    struct kernel *kernel = argument;
    struct loop_buffer *buffer = kernel->buffer;
    kernel->ran = true;
    if (kernel->expected)
        kernel->wrong = loop_wrong(buffer->data, buffer->size, kernel->expected) >= 0;
    if (kernel->poisoned)
        kernel->wrong = loop_differs(buffer->data, buffer->size, LOOP_POISON) >= 0;
    if (kernel->seed)
        loop_fill(buffer->data, buffer->size, kernel->seed);
}

static struct weft_request *post(bool send, struct loop_buffer *buffer, struct wf_sim_stream *stream, uint64_t tag)
{
    struct weft_options options = {.flags = WEFT_ON_STREAM, .stream = stream};
    struct weft_request *request = NULL;
    int rc = send ? weft_send(LEFT, buffer->data, buffer->size, tag, &options, &request)
                  : weft_recv(RIGHT, buffer->data, buffer->size, tag, &options, &request);
    LOOP_CHECK(rc == 0 && request, "%s on a stream: %s", send ? "weft_send" : "weft_recv", strerror(-rc));
    return request;
}

static void until_idle(struct wf_sim_stream *stream)
{
    ASTRAY_UNTIL(wf_sim_stream_idle(stream), "the stream does not go on");
}

/* Work that writes the source is in the stream before the send, work that overwrites it after. */
static void sends_in_order(size_t size, bool own_stream)
{
    struct loop_message message = {.seed = 70};
    struct weft_completion completion;

    loop_note("a send of %zu bytes", size);
    loop_buffer_create_on(&message.source, 0, size);
    loop_buffer_create_on(&message.sink, HOST, size);
    loop_set(message.source.data, size, 0x77);
    struct kernel before = {.buffer = &message.source, .seed = 70}, after = {.buffer = &message.source, .seed = 71};
    struct wf_sim_stream *stream = own_stream ? wf_sim_stream_create(devices, 0) : wf_sim_stream_default(devices, 0);
    wf_sim_stream_work(stream, WF_NEVER);
    wf_sim_stream_call(stream, run_kernel, &before);
    message.recv = loop_recv(RIGHT, message.sink.data, size, 1);
    message.send = post(true, &message.source, own_stream ? stream : NULL, 1);
    wf_sim_stream_call(stream, run_kernel, &after);
    LOOP_CHECK(weft_wait(message.send, 50, &completion) == -ETIMEDOUT, "sent before its time");
    LOOP_CHECK(weft_wait(message.recv, 50, &completion) == -ETIMEDOUT, "received before its time");
    LOOP_CHECK(!before.ran && !after.ran, "the stream goes on by itself");
    wf_sim_stream_release(stream);
    loop_done(message.recv, 0, size);
    loop_done(message.send, 0, size);
    LOOP_CHECK(loop_wrong(message.sink.data, size, 70) < 0, "not what the stream had written before");
    until_idle(stream);
    LOOP_CHECK(after.ran, "work after the send was lost");
    if (own_stream)
        wf_sim_stream_destroy(stream);
    loop_message_destroy(&message);
}

static void sends_wait_for_their_stream(void)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (size_t i = 0; i < 2 * SIZE_COUNT; i++)
        sends_in_order(sizes[i / 2], i % 2);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* The landing is not touched before its time, and work after the receive sees the message. */
static void receives_in_order(size_t size, bool early)
{
    struct loop_message message = {.seed = 80};
    struct weft_completion completion;

    loop_note("a receive of %zu bytes, posted %s", size, early ? "before the send" : "after it");
    loop_buffer_create_on(&message.source, HOST, size);
    loop_buffer_create_on(&message.sink, 1, size);
    loop_fill(message.source.data, size, 80);
    loop_set(message.sink.data, size, LOOP_POISON);
    struct kernel before = {.buffer = &message.sink, .poisoned = true},
                  after = {.buffer = &message.sink, .expected = 80};
    struct wf_sim_stream *stream = wf_sim_stream_create(devices, 1);
    wf_sim_stream_work(stream, WF_NEVER);
    wf_sim_stream_call(stream, run_kernel, &before);
    if (!early)
        message.send = loop_send(LEFT, message.source.data, size, 2);
    loop_sleep_ms(early ? 0 : 10);
    message.recv = post(false, &message.sink, stream, 2);
    wf_sim_stream_call(stream, run_kernel, &after);
    if (early)
        message.send = loop_send(LEFT, message.source.data, size, 2);
    LOOP_CHECK(weft_wait(message.recv, 50, &completion) == -ETIMEDOUT, "received before its time");
    gpu_exchange(2, 2, LARGE, 3); /* nobody else waits for the stream */
    wf_sim_stream_release(stream);
    loop_done(message.recv, 0, size);
    loop_done(message.send, 0, size);
    until_idle(stream);
    LOOP_CHECK(before.ran && !before.wrong, "the landing was written before its time");
    LOOP_CHECK(after.ran && !after.wrong, "work after the receive did not find the message");
    loop_message_verify(&message);
    wf_sim_stream_destroy(stream);
    loop_message_destroy(&message);
}

static void receives_wait_for_their_stream(void)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (size_t i = 0; i < 2 * SIZE_COUNT; i++)
        receives_in_order(sizes[i / 2], i % 2);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* The sender, who has been told that all is well, says goodbye; the message is still there when it is its turn, unless
 * its receive is cancelled, or the dead session closed, before. */
static void a_goodbye_waits_for_the_stream(void)
{
    static const int statuses[] = {0, -ECANCELED, -ESHUTDOWN};
    struct weft_error err = {0};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        struct loop_message message = {.seed = 90};
        loop_note("%s", statuses[i] == 0 ? "its turn" : statuses[i] == -ECANCELED ? "a cancel" : "a close");
        loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
        loop_buffer_create_on(&message.source, HOST, SMALL);
        loop_buffer_create_on(&message.sink, 1, SMALL);
        loop_fill(message.source.data, SMALL, 90);
        struct wf_sim_stream *stream = wf_sim_stream_create(devices, 1);
        wf_sim_stream_work(stream, WF_NEVER);
        message.recv = post(false, &message.sink, stream, 2);
        message.send = loop_send(LEFT, message.source.data, SMALL, 2);
        loop_done(message.send, 0, SMALL);
        LOOP_CALL(weft_peer_close(astray_pair.node[0].peer, 1000, &err), &err);
        astray_pair.node[0].peer = NULL;
        LEFT = NULL;
        ASTRAY_UNTIL(weft_peer_status(astray_pair.node[1].peer, NULL) < 0, "the session does not end");
        if (statuses[i] == -ECANCELED) {
            weft_cancel(message.recv);
        } else if (statuses[i] == -ESHUTDOWN) {
            LOOP_CALL(weft_peer_close(astray_pair.node[1].peer, 1000, &err), &err);
            astray_pair.node[1].peer = NULL;
            RIGHT = NULL;
        } else {
            wf_sim_stream_release(stream);
        }
        loop_done(message.recv, statuses[i], SMALL);
        if (statuses[i] < 0)
            wf_sim_stream_release(stream);
        else
            loop_message_verify(&message);
        until_idle(stream);
        wf_sim_stream_destroy(stream);
        loop_message_destroy(&message);
        loop_pair_destroy(&astray_pair);
    }
}

/* The peer closes the connection: a write that waits for its stream ends with it, as one that waits for a slot does. */
static void a_close_ends_what_waits_for_the_stream(void)
{
    static unsigned char there[SMALL];
    struct weft_registration *registration = NULL;
    struct weft_request *request = NULL;
    struct weft_error err = {0};
    struct loop_buffer buffer;

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    LOOP_CALL(weft_register(astray_pair.node[1].context, there, SMALL, &registration, &err), &err);
    uint64_t key = weft_registration_key(registration);
    loop_buffer_create_on(&buffer, 0, SMALL);
    struct wf_sim_stream *stream = wf_sim_stream_create(devices, 0);
    wf_sim_stream_work(stream, WF_NEVER);
    struct weft_options options = {
        .flags = WEFT_ON_STREAM | WEFT_NOTIFY, .stream = stream, .notify_data = "x", .notify_length = 1};
    LOOP_CHECK(weft_write(LEFT, buffer.data, SMALL, key, 0, &options, &request) == 0, "a write on a stream");
    loop_sleep_ms(5);
    LOOP_CALL(weft_connection_close(RIGHT, 1000, &err), &err);
    RIGHT = NULL;
    loop_done(request, -ESHUTDOWN, 0);
    wf_sim_stream_release(stream);
    until_idle(stream);
    wf_sim_stream_destroy(stream);
    loop_buffer_unmap(&buffer);
    loop_world_deregister(registration);
    loop_pair_destroy(&astray_pair);
}

/* The context goes while work that was in the stream before its operations runs: what stands behind them goes on, and
 * reads no flag that is not there any more. */
static void a_context_ends_before_its_streams(void)
{
    for (int way = 0; way < 3; way++) {
        struct loop_buffer source, sink;
        struct weft_request *request = NULL, *other = NULL;
        loop_note("%s", way == 0 ? "a send" : way == 1 ? "a receive" : "a receive of what has come");
        loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
        loop_buffer_create_on(&source, 0, SMALL);
        loop_buffer_create_on(&sink, 1, SMALL);
        struct wf_sim_stream *stream = wf_sim_stream_create(devices, way ? 1 : 0);
        struct kernel after = {.buffer = way ? &sink : &source};
        wf_sim_stream_work(stream, 50 * WF_NS_PER_MS);
        request = post(way == 0, way ? &sink : &source, stream, 2);
        wf_sim_stream_call(stream, run_kernel, &after);
        if (way == 2) {
            other = loop_send(LEFT, source.data, SMALL, 2);
            loop_done(other, 0, SMALL);
            weft_peer_close(astray_pair.node[0].peer, 10, NULL);
            astray_pair.node[0].peer = NULL;
            LEFT = NULL;
        } else {
            weft_cancel(request);
            LOOP_CHECK(loop_end(request).status < 0, "it was cancelled");
        }
        loop_buffer_unmap(&source);
        if (way != 2)
            loop_buffer_unmap(&sink);
        struct loop_node node = astray_pair.node[way ? 1 : 0]; /* it ends first: the other one keeps the world */
        loop_context_end(node.context);
        LOOP_CHECK(wf_sim_stream_idle(stream) && after.ran, "work after the operation was lost");
        wf_sim_stream_destroy(stream);
        loop_context_end(astray_pair.node[way ? 0 : 1].context);
        loop_buffer_unmap(&sink);
    }
}

/* The peer has closed the session, and what it sent is here. Its receive still waits for its stream when the user
 * closes the connection: it gets the message all the same, and its endpoint is free at once. */
static void a_receive_outlives_its_connection(void)
{
    struct loop_buffer source, sink;
    struct weft_error err = {0};

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    loop_buffer_create_on(&source, HOST, SMALL);
    loop_buffer_create_on(&sink, 1, SMALL);
    loop_fill(source.data, SMALL, 90);
    struct wf_sim_stream *stream = wf_sim_stream_create(devices, 1);
    wf_sim_stream_work(stream, WF_NEVER);
    struct weft_request *request = post(false, &sink, stream, 2);
    loop_done(loop_send(LEFT, source.data, SMALL, 2), 0, SMALL);
    LOOP_CALL(weft_peer_close(astray_pair.node[0].peer, LOOP_WAIT_MS, &err), &err);
    astray_pair.node[0].peer = NULL;
    LEFT = NULL;
    ASTRAY_UNTIL(weft_peer_status(astray_pair.node[1].peer, NULL) < 0, "the session does not end");
    LOOP_CALL(weft_connection_close(RIGHT, LOOP_WAIT_MS, &err), &err);
    RIGHT = NULL;
    LOOP_CHECK(weft_endpoint_destroy(astray_pair.node[1].endpoint) == 0, "the endpoint is still busy");
    astray_pair.node[1].endpoint = NULL;
    wf_sim_stream_release(stream);
    loop_done(request, 0, SMALL);
    LOOP_CHECK(loop_wrong(sink.data, SMALL, 90) < 0, "not the message that was here");
    until_idle(stream);
    wf_sim_stream_destroy(stream);
    loop_buffer_unmap(&source);
    loop_buffer_unmap(&sink);
    loop_pair_destroy(&astray_pair);
}

/* However an operation ends, the stream goes on. */
static void streams_go_on_after_errors(void)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (size_t i = 0; i < 6 * SIZE_COUNT; i++) {
        size_t size = sizes[i / 6];
        bool send = i % 2, released = i % 6 / 2 != 1, fails = i % 6 / 2 == 2;
        struct loop_buffer buffer;
        loop_note("%s of %zu bytes, %s", send ? "send" : "receive", size,
                  fails      ? "fails"
                  : released ? "cancelled"
                             : "cancelled before its time");
        loop_buffer_create_on(&buffer, 0, size);
        struct kernel after = {.buffer = &buffer};
        struct wf_sim_stream *stream = wf_sim_stream_create(devices, 0);
        wf_sim_stream_work(stream, WF_NEVER);
        struct weft_request *request = post(send, &buffer, stream, 100 + i);
        wf_sim_stream_call(stream, run_kernel, &after);
        if (fails)
            wf_sim_memory_fail_copy(devices, 0, WF_COPY_MARK, 1, false);
        if (released)
            wf_sim_stream_release(stream);
        loop_sleep_ms(5);
        weft_cancel(request);
        struct weft_completion completion;
        if (!released) { /* it may have to wait for the mark that is in the stream */
            if (weft_wait(request, 50, &completion) == 0)
                request = NULL;
            LOOP_CHECK(!after.ran, "the stream goes on by itself");
            wf_sim_stream_release(stream);
        }
        if (request)
            completion = loop_end(request);
        LOOP_CHECK(completion.status < 0 || (send && size <= SMALL), "ended with %d", completion.status);
        until_idle(stream);
        LOOP_CHECK(after.ran, "work after the operation was lost");
        wf_sim_memory_fail_copy(devices, 0, WF_COPY_MARK, 0, false);
        wf_sim_stream_destroy(stream);
        loop_buffer_unmap(&buffer);
        struct loop_buffer sink; /* of a small send that was complete */
        loop_buffer_create_on(&sink, HOST, size);
        if (send && completion.status == 0)
            loop_done(loop_recv(RIGHT, sink.data, size, 100 + i), 0, size);
        loop_buffer_unmap(&sink);
    }
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* Writes and reads, plain and as lists: nothing is asked of the peer before the stream has come to them. */
static void one_sided_in_order(bool reads, bool list, size_t size)
{
    struct loop_buffer near, far;
    struct weft_registration *registration = NULL;
    struct weft_request *request = NULL;
    struct weft_completion completion;
    struct weft_error err = {0};
    struct weft_piece pieces[2] = {{0, 0, size / 2}, {size / 2, size / 2, size - size / 2}};

    loop_note("a %s of %zu bytes%s", reads ? "read" : "write", size, list ? " as a list" : "");
    loop_buffer_create_on(&near, 0, size);
    loop_buffer_create_on(&far, 1, size);
    LOOP_CALL(weft_register(astray_pair.node[1].context, far.data, size, &registration, &err), &err);
    uint64_t key = weft_registration_key(registration);
    loop_set(near.data, size, LOOP_POISON);
    loop_set(far.data, size, LOOP_POISON);
    if (reads)
        loop_fill(far.data, size, 31);
    struct kernel before = {.buffer = &near, .poisoned = true, .seed = reads ? 0 : 31};
    struct kernel after = {.buffer = &near, .expected = 31};
    struct wf_sim_stream *stream = wf_sim_stream_create(devices, 0);
    struct weft_options options = {.flags = WEFT_ON_STREAM, .stream = stream};
    wf_sim_stream_work(stream, WF_NEVER);
    wf_sim_stream_call(stream, run_kernel, &before);
    int rc = reads  ? list ? weft_read_list(LEFT, near.data, pieces, 2, key, &options, &request)
                           : weft_read(LEFT, near.data, size, key, 0, &options, &request)
              : list ? weft_write_list(LEFT, near.data, pieces, 2, key, &options, &request)
                    : weft_write(LEFT, near.data, size, key, 0, &options, &request);
    LOOP_CHECK(rc == 0, "on a stream: %s", strerror(-rc));
    wf_sim_stream_call(stream, run_kernel, &after);
    LOOP_CHECK(weft_wait(request, 50, &completion) == -ETIMEDOUT, "ended before its time");
    if (!reads)
        LOOP_CHECK(loop_differs(far.data, size, LOOP_POISON) < 0, "written before its time");
    wf_sim_stream_release(stream);
    loop_done(request, 0, size);
    LOOP_CHECK(loop_wrong(reads ? near.data : far.data, size, 31) < 0, "wrong bytes");
    until_idle(stream);
    LOOP_CHECK(before.ran && !before.wrong && after.ran && !after.wrong, "not in the order of the stream");
    wf_sim_stream_destroy(stream);
    loop_world_deregister(registration);
    loop_buffer_unmap(&near);
    loop_buffer_unmap(&far);
}

static void one_sided_waits_for_its_stream(void)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (size_t i = 0; i < 4 * SIZE_COUNT; i++)
        one_sided_in_order(i % 2, i / 2 % 2, sizes[i / 4]);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

enum ending { DEADLINE, CLOSE, PEER_CLOSE, DESTROY, ENDINGS };

/* Operations that still wait for their stream when their connection, peer or context ends: they end as others do, and
 * the stream goes on once its own work is done. */
static void waiting_ones_end(enum ending ending)
{
    enum { COUNT = 3 };
    struct loop_buffer buffers[COUNT];
    struct kernel after[COUNT];
    struct wf_sim_stream *streams[COUNT];
    struct weft_request *requests[COUNT] = {NULL};
    struct weft_error err = {0};
    uint64_t key = 0;

    loop_note("ending %d", (int)ending);
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (int i = 0; i < COUNT; i++) {
        loop_buffer_create_on(&buffers[i], 0, LARGE);
        streams[i] = wf_sim_stream_create(devices, 0);
        after[i] = (struct kernel){.buffer = &buffers[i]};
        struct weft_options options = {
            .flags = WEFT_ON_STREAM, .stream = streams[i], .timeout_ms = ending == DEADLINE ? 20 : 0};
        wf_sim_stream_work(streams[i], 40 * WF_NS_PER_MS);
        int rc = i == 0   ? weft_send(LEFT, buffers[i].data, LARGE, 1, &options, &requests[i])
                 : i == 1 ? weft_recv(LEFT, buffers[i].data, LARGE, 2, &options, &requests[i])
                          : weft_write(LEFT, buffers[i].data, LARGE, key, 0, &options, &requests[i]);
        LOOP_CHECK(rc == 0, "posting: %s", strerror(-rc));
        wf_sim_stream_call(streams[i], run_kernel, &after[i]);
    }
    struct loop_node *node = &astray_pair.node[0];
    if (ending == CLOSE) {
        weft_connection_close(LEFT, 10, &err);
        LEFT = NULL;
    } else if (ending == PEER_CLOSE) {
        weft_peer_close(node->peer, 10, &err);
        node->peer = NULL;
        LEFT = NULL;
    } else if (ending == DESTROY) {
        loop_context_end(node->context);
        *node = (struct loop_node){0};
    }
    for (int i = 0; i < COUNT && ending != DESTROY; i++)
        LOOP_CHECK(loop_end(requests[i]).status < 0, "operation %d ended well", i);
    for (int i = 0; i < COUNT; i++) {
        until_idle(streams[i]);
        LOOP_CHECK(after[i].ran, "work after operation %d was lost", i);
        wf_sim_stream_destroy(streams[i]);
        loop_buffer_unmap(&buffers[i]);
    }
    loop_pair_destroy(&astray_pair);
}

static void operations_end_before_their_turn(void)
{
    for (int ending = 0; ending < ENDINGS; ending++)
        waiting_ones_end((enum ending)ending);
}

/* A pipeline: each message is made by the work before it and used up by the work after. */
static void many_in_one_stream(void)
{
    enum { COUNT = 20 };
    struct loop_buffer source, sink;
    struct kernel make[COUNT], use[COUNT];
    struct weft_request *sends[COUNT], *receives[COUNT];

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (size_t s = 0; s < SIZE_COUNT; s++) {
        struct wf_sim_stream *from = wf_sim_stream_create(devices, 0), *to = wf_sim_stream_create(devices, 1);
        loop_note("%zu bytes", sizes[s]);
        loop_buffer_create_on(&source, 0, sizes[s]);
        loop_buffer_create_on(&sink, 1, sizes[s]);
        for (int i = 0; i < COUNT; i++) {
            make[i] = (struct kernel){.buffer = &source, .seed = 500 + (uint64_t)i};
            use[i] = (struct kernel){.buffer = &sink, .expected = 500 + (uint64_t)i};
            wf_sim_stream_work(from, 20 * WF_NS_PER_US);
            wf_sim_stream_call(from, run_kernel, &make[i]);
            sends[i] = post(true, &source, from, 4);
            receives[i] = post(false, &sink, to, 4);
            wf_sim_stream_call(to, run_kernel, &use[i]);
        }
        for (int i = 0; i < COUNT; i++) {
            loop_done(sends[i], 0, sizes[s]);
            loop_done(receives[i], 0, sizes[s]);
        }
        until_idle(from);
        until_idle(to);
        for (int i = 0; i < COUNT; i++)
            LOOP_CHECK(use[i].ran && !use[i].wrong, "message %d is not what stood in the stream before it", i);
        wf_sim_stream_destroy(from);
        wf_sim_stream_destroy(to);
        loop_buffer_unmap(&source);
        loop_buffer_unmap(&sink);
    }
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    devices = loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(sends_wait_for_their_stream, 20),
        LOOP_CASE(receives_wait_for_their_stream, 20),
        LOOP_CASE(streams_go_on_after_errors, 20),
        LOOP_CASE(many_in_one_stream, 20),
        LOOP_CASE(one_sided_waits_for_its_stream, 20),
        LOOP_CASE(operations_end_before_their_turn, 20),
        LOOP_CASE(a_goodbye_waits_for_the_stream, 10),
        LOOP_CASE(a_context_ends_before_its_streams, 10),
        LOOP_CASE(a_close_ends_what_waits_for_the_stream, 10),
        LOOP_CASE(a_receive_outlives_its_connection, 10),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
