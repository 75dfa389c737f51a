/* test_gpu_direct.c: a context that has connected to itself: what goes from GPU to GPU is copied once, and whatever
 * happens meanwhile, neither side ends before that copy has. */
#include "gpu.h"

#include <errno.h>

#include "core/session/session.h"
#include "loop_world.h"

#define LARGE (2 * 1024 * 1024 + 3)
#define SETTINGS "chunk=64K"

static struct wf_sim_memory *devices;

static uint64_t peer_copies(void)
{
    return wf_sim_memory_counts(devices, 0).copies[WF_COPY_PEER] +
           wf_sim_memory_counts(devices, 1).copies[WF_COPY_PEER];
}

/* What the context says of GPU `index`. */
static struct weft_gpu_stats stats_of(int index)
{
    struct weft_gpu_stats stats[8];
    int count = weft_context_gpu_stats(astray_pair.node[0].context, stats, 8);
    for (int i = 0; i < count && i < 8; i++)
        if (stats[i].index == index)
            return stats[i];
    LOOP_CHECK(false, "GPU %d is not among the %d in use", index, count);
    return stats[0];
}

static void one_copy_for_each_message(void)
{
    gpu_self_create(SETTINGS);
    uint64_t before = peer_copies(), carried = loop_received(astray_pair.node[1].peer);
    gpu_exchange(0, 1, LARGE, 1);
    gpu_exchange(1, 0, LARGE, 2);
    gpu_exchange(1, 1, LARGE, 3);
    LOOP_CHECK(peer_copies() == before + 3, "%d copies from GPU to GPU", (int)(peer_copies() - before));
    LOOP_CHECK(loop_received(astray_pair.node[1].peer) == carried, "the rails carried some of it");
    LOOP_CHECK(stats_of(1).direct_bytes == 2 * LARGE, "%d bytes copied to GPU 1", (int)stats_of(1).direct_bytes);
    LOOP_CHECK(stats_of(1).copying_ns > 0, "no time was spent on it");
    gpu_check_clean();
    gpu_self_destroy();
}

/* What is not from GPU to GPU, or small, takes the way that it takes to others. */
static void others_take_the_channels(void)
{
    gpu_self_create(SETTINGS);
    uint64_t before = peer_copies();
    gpu_exchange(HOST, 1, LARGE, 1);
    gpu_exchange(0, HOST, LARGE, 2);
    gpu_exchange(HOST, HOST, LARGE, 3);
    gpu_exchange(0, 1, 1, 4);
    gpu_exchange(0, 1, 5000, 5);
    LOOP_CHECK(peer_copies() == before, "%d copies from GPU to GPU", (int)(peer_copies() - before));
    LOOP_CHECK(stats_of(0).out_bytes == LARGE + 5001, "%d bytes copied out of GPU 0", (int)stats_of(0).out_bytes);
    LOOP_CHECK(stats_of(1).in_bytes == LARGE + 5001, "%d bytes copied to GPU 1", (int)stats_of(1).in_bytes);
    gpu_check_clean();
    gpu_self_destroy();
}

/* One copy would be of one place to one place. `from`, `to`: whether the sender's or the receiver's memory is a vector.
 */
static void vector_exchange(bool from, bool to)
{
    enum { HALF = 1024 * 1024, REST = LARGE - HALF };
    struct loop_buffer source, sink;
    struct weft_request *send, *receive;
    loop_buffer_create_on(&source, 0, LARGE + 8);
    loop_buffer_create_on(&sink, 1, LARGE + 8);
    unsigned char *out[2] = {source.data, source.data + HALF}, *in[2] = {sink.data, sink.data + HALF};
    if (from) {
        out[0] = source.data + REST + 8;
        out[1] = source.data;
    }
    if (to) {
        in[0] = sink.data + REST + 8;
        in[1] = sink.data;
    }
    struct iovec there[2] = {{out[0], HALF}, {out[1], REST}}, here[2] = {{in[0], HALF}, {in[1], REST}};
    loop_fill(out[0], HALF, 1);
    loop_fill(out[1], REST, 2);
    LOOP_CHECK(
        (to ? weft_recvv(RIGHT, here, 2, 1, NULL, &receive) : weft_recv(RIGHT, in[0], LARGE, 1, NULL, &receive)) == 0,
        "%s", weft_last_error());
    LOOP_CHECK((from ? weft_sendv(LEFT, there, 2, 1, NULL, &send) : weft_send(LEFT, out[0], LARGE, 1, NULL, &send)) ==
                   0,
               "%s", weft_last_error());
    loop_done(receive, 0, LARGE);
    loop_done(send, 0, LARGE);
    LOOP_CHECK(loop_wrong(in[0], HALF, 1) < 0 && loop_wrong(in[1], REST, 2) < 0, "wrong bytes");
    loop_buffer_unmap(&source);
    loop_buffer_unmap(&sink);
}

static void vectors_take_the_channels(void)
{
    gpu_self_create(SETTINGS);
    uint64_t before = peer_copies();
    vector_exchange(true, false);
    vector_exchange(false, true);
    vector_exchange(true, true);
    LOOP_CHECK(peer_copies() == before, "%d copies from GPU to GPU", (int)(peer_copies() - before));
    gpu_check_clean();
    vector_exchange(false, false);
    LOOP_CHECK(peer_copies() == before + 1, "%d copies from GPU to GPU", (int)(peer_copies() - before));
    gpu_self_destroy();
}

/* Drives until the copy runs, and stands still. */
static void post_and_hold(struct loop_message *message)
{
    uint64_t before = peer_copies();

    wf_sim_memory_freeze(devices, 0, true);
    gpu_message_post(message, 0, 1, LARGE, 1);
    ASTRAY_UNTIL(peer_copies() > before, "no copy from GPU to GPU");
}

static void cancelled_under_way(bool by_sender)
{
    struct loop_message message;
    struct weft_completion completion;

    gpu_self_create(SETTINGS);
    post_and_hold(&message);
    struct weft_request *cancelled = by_sender ? message.send : message.recv;
    struct weft_request *other = by_sender ? message.recv : message.send;
    weft_cancel(cancelled);
    LOOP_CHECK(weft_wait(message.send, 50, &completion) == -ETIMEDOUT, "the sender ended under the copy");
    LOOP_CHECK(weft_wait(message.recv, 50, &completion) == -ETIMEDOUT, "the receiver ended under the copy");
    wf_sim_memory_freeze(devices, 0, false);
    completion = loop_end(cancelled);
    LOOP_CHECK(completion.status == -ECANCELED || completion.status == 0, "status %d", completion.status);
    completion = loop_end(other);
    LOOP_CHECK(completion.status <= 0, "status %d", completion.status);
    loop_message_destroy(&message);
    gpu_exchange(0, 1, LARGE, 2);
    gpu_check_clean();
    gpu_self_destroy();
}

static void cancelled_by_the_sender(void)
{
    cancelled_under_way(true);
}

static void cancelled_by_the_receiver(void)
{
    cancelled_under_way(false);
}

static void a_copy_that_fails_ends_both(void)
{
    for (int at_start = 0; at_start < 2; at_start++) {
        struct loop_message message;
        gpu_self_create(SETTINGS);
        wf_sim_memory_fail_copy(devices, 0, WF_COPY_PEER, 1, at_start);
        gpu_message_post(&message, 0, 1, LARGE, 1);
        gpu_ends_badly(message.send, -EIO, 1);
        gpu_ends_badly(message.recv, -EIO, 1);
        loop_message_destroy(&message);
        gpu_exchange(0, 1, LARGE, 2);
        gpu_check_clean();
        gpu_self_destroy();
    }
}

/* The channels only carry what is said about it. */
static void lost_channels_do_not_matter(void)
{
    struct loop_message message;

    gpu_self_create(SETTINGS);
    post_and_hold(&message);
    astray_cut_all();
    wf_sim_memory_freeze(devices, 0, false);
    gpu_message_finish(&message);
    gpu_check_clean();
    gpu_self_destroy();
}

/* The memory is the user's again with the end of the requests, which wait for the copy. */
static void a_session_ends_under_the_copy(bool receiver)
{
    struct loop_message message;
    struct weft_completion completion;
    struct wf_session *session;

    gpu_self_create(SETTINGS);
    post_and_hold(&message);
    session = astray_session(receiver);
    wf_session_lock(session);
    wf_guard_fail(&session->guard, -ECONNRESET, "the test ends it");
    wf_session_unlock(session);
    LOOP_CHECK(weft_wait(message.recv, 50, &completion) == -ETIMEDOUT, "the receiver ended under the copy");
    LOOP_CHECK(weft_wait(message.send, 50, &completion) == -ETIMEDOUT, "the sender ended under the copy");
    wf_sim_memory_freeze(devices, 0, false);
    loop_end(message.send); /* in an error, or well: all of it has landed */
    loop_end(message.recv);
    loop_message_destroy(&message);
    gpu_self_destroy();
}

static void the_sender_s_session_ends(void)
{
    a_session_ends_under_the_copy(false);
}

static void the_receiver_s_session_ends(void)
{
    a_session_ends_under_the_copy(true);
}

/* A peer that passes for this context, and says another size than the message has that it names: nothing is copied. */
static void another_size_than_the_sender_s(void)
{
    struct loop_buffer source, sink;

    gpu_self_create(SETTINGS);
    uint64_t before = peer_copies();
    loop_buffer_create_on(&source, 0, LARGE);
    loop_buffer_create_on(&sink, 1, 2 * LARGE);
    struct weft_request *send = loop_send(LEFT, source.data, LARGE, 1);
    ASTRAY_UNTIL(astray_inbound(1, 1), "the message is not introduced");
    ((struct wf_inbound *)(uintptr_t)astray_inbound(1, 1))->total = 2 * LARGE;
    struct weft_request *recv = loop_recv(RIGHT, sink.data, 2 * LARGE, 1);
    LOOP_CHECK(astray_status(recv) < 0, "the receive has ended well");
    LOOP_CHECK(astray_status(send) < 0, "the send has ended well");
    LOOP_CHECK(peer_copies() == before, "something was copied");
    loop_buffer_unmap(&source);
    loop_buffer_unmap(&sink);
    gpu_self_destroy();
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    devices = loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(one_copy_for_each_message, 20),      LOOP_CASE(others_take_the_channels, 20),
        LOOP_CASE(cancelled_by_the_sender, 20),        LOOP_CASE(cancelled_by_the_receiver, 20),
        LOOP_CASE(a_copy_that_fails_ends_both, 20),    LOOP_CASE(lost_channels_do_not_matter, 20),
        LOOP_CASE(the_sender_s_session_ends, 60),      LOOP_CASE(the_receiver_s_session_ends, 60),
        LOOP_CASE(another_size_than_the_sender_s, 20), LOOP_CASE(vectors_take_the_channels, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
