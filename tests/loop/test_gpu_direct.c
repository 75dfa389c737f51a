/* test_gpu_direct.c: a context that has connected to itself copies between its GPUs, and nothing else of a message is
 * different: order, tags, errors, cancels. */
#include "gpu.h"

#include <errno.h>
#include <string.h>

#define SMALL 1000
#define LARGE (2 * 1024 * 1024 + 7)
#define SETTINGS "chunk=64K staging=256K log=error"

static struct wf_sim_memory *devices;
static const size_t sizes[] = {1, SMALL, 40000, LARGE};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

/* Both ends of astray_pair are of one context. */
static void self_create(void)
{
    struct loop_node *node = astray_pair.node;
    struct weft_error err = {0};
    memset(&astray_pair, 0, sizeof astray_pair);
    loop_node_start(&node[0], SETTINGS, 2);
    node[1].context = node[0].context;
    LOOP_CALL(weft_endpoint_create(node[0].context, 1, &node[1].endpoint, &err), &err);
    loop_node_connect(&node[0], loop_node_listen(&node[0]));
    loop_node_accept(&node[1]);
    LOOP_CALL(weft_connection_open(node[0].endpoint, node[0].peer, 1, LOOP_WAIT_MS, &node[0].connection, &err), &err);
    LOOP_CALL(weft_connection_accept(node[1].endpoint, node[1].peer, 0, LOOP_WAIT_MS, &node[1].connection, &err), &err);
}

static void self_destroy(void)
{
    struct loop_node *node = astray_pair.node;
    for (int i = 0; i < 2; i++)
        if (node[i].connection)
            weft_connection_close(node[i].connection, 2000, NULL);
    for (int i = 0; i < 2; i++)
        if (node[i].peer)
            weft_peer_close(node[i].peer, 2000, NULL);
    for (int i = 0; i < 2; i++)
        weft_endpoint_destroy(node[i].endpoint);
    loop_context_end(node[0].context);
    memset(&astray_pair, 0, sizeof astray_pair);
}

static uint64_t peer_copies(void)
{
    uint64_t copies = 0;
    for (int i = 0; i < 3; i++)
        copies += wf_sim_memory_counts(devices, i).copies[WF_COPY_PEER];
    return copies;
}

static void all_sizes_and_places(void)
{
    static const int places[][2] = {{0, 1}, {1, 0}, {2, 2}, {0, HOST}, {HOST, 1}, {HOST, HOST}};
    self_create();
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (size_t p = 0; p < 6; p++) {
            uint64_t before = peer_copies();
            loop_note("%zu bytes from %d to %d", sizes[i], places[p][0], places[p][1]);
            gpu_exchange(places[p][0], places[p][1], sizes[i], p);
            bool direct = peer_copies() > before, possible = places[p][0] != HOST && places[p][1] != HOST;
            LOOP_CHECK(!direct || possible, "host memory was copied from device to device");
            LOOP_CHECK(direct || !possible || sizes[i] < LARGE, "the way over the channels was taken");
        }
    }
    gpu_check_clean();
    self_destroy();
}

/* Many at once, of one tag: they are matched in their order. */
static void many_in_order(void)
{
    enum { COUNT = 30 };
    static struct loop_message message[COUNT];
    self_create();
    for (uint64_t i = 0; i < COUNT; i++) {
        size_t size = sizes[i % SIZE_COUNT];
        message[i] = (struct loop_message){.seed = i};
        loop_buffer_create_on(&message[i].source, i % 5 ? (int)(i % 3) : HOST, size);
        loop_buffer_create_on(&message[i].sink, i % 7 ? (int)(i / 3 % 3) : HOST, size);
        loop_fill(message[i].source.data, size, i);
        message[i].send = loop_send(LEFT, message[i].source.data, size, 1);
    }
    for (int i = 0; i < COUNT; i++)
        message[i].recv = loop_recv(RIGHT, message[i].sink.data, message[i].sink.size, 1);
    for (int i = 0; i < COUNT; i++)
        gpu_message_finish(&message[i]);
    gpu_check_clean();
    self_destroy();
}

/* A copy that fails ends both sides; nothing else suffers. */
static void a_copy_fails(void)
{
    self_create();
    for (int at_start = 0; at_start < 2; at_start++) {
        struct loop_message victim, beside;
        gpu_message_post(&beside, HOST, HOST, LARGE, 1);
        wf_sim_memory_fail_copy(devices, 0, WF_COPY_PEER, 1, at_start);
        gpu_message_post(&victim, 0, 1, LARGE, 2);
        struct weft_completion received = loop_end(victim.recv), sent = loop_end(victim.send);
        LOOP_CHECK(received.status == -EIO && strstr(received.text, "GPU") && strstr(received.text, "719"), "%d %s",
                   received.status, received.text);
        LOOP_CHECK(sent.status < 0, "the sender was told that its message arrived");
        loop_message_destroy(&victim);
        gpu_message_finish(&beside);
        gpu_exchange(0, 1, LARGE, 3);
    }
    gpu_check_clean();
    self_destroy();
}

/* Cancelled while the copy runs: neither side's memory is touched once that side has ended. */
static void cancelled_under_the_copy(void)
{
    self_create();
    for (int round = 0; round < 8; round++) {
        struct loop_message message;
        loop_note("round %d", round);
        wf_sim_memory_slow(devices, 0, 5 * WF_NS_PER_MS, 9 * WF_NS_PER_MS);
        gpu_message_post(&message, 0, 1, LARGE, 1);
        loop_sleep_ms(round);
        bool receiver = round % 2;
        weft_cancel(receiver ? message.recv : message.send);
        struct weft_completion first = loop_end(receiver ? message.recv : message.send);
        loop_buffer_unmap(receiver ? &message.sink : &message.source);
        struct weft_request *other = receiver ? message.send : message.recv;
        struct weft_completion second;
        if (weft_wait(other, 200, &second) != 0) { /* it was never heard of */
            weft_cancel(other);
            second = loop_end(other);
        }
        if (!receiver && second.status == 0)
            LOOP_CHECK(loop_wrong(message.sink.data, LARGE, message.seed) < 0, "the receive is not whole");
        LOOP_CHECK(first.status == 0 || first.status == -ECANCELED, "%s", first.text);
        loop_message_destroy(&message);
        wf_sim_memory_slow(devices, 0, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
        gpu_exchange(0, 1, LARGE, 2);
    }
    gpu_check_clean();
    self_destroy();
}

static void a_device_is_lost(void)
{
    int failed = 0;
    for (int round = 0; round < 8; round++) {
        struct loop_message lost, kept;
        loop_note("round %d", round);
        self_create();
        wf_sim_memory_slow(devices, 0, 2 * WF_NS_PER_MS, 3 * WF_NS_PER_MS);
        gpu_message_post(&lost, round % 2 ? 0 : 1, round % 2 ? 1 : 0, LARGE, 1);
        gpu_message_post(&kept, 1, 2, LARGE, 2);
        loop_sleep_ms(round / 2);
        wf_sim_memory_lose(devices, 0);
        struct weft_completion received = loop_end(lost.recv), sent = loop_end(lost.send);
        bool before = received.status == 0 && sent.status == 0; /* the copy was done */
        LOOP_CHECK(before || (received.status < 0 && sent.status < 0), "%d and %d", received.status, sent.status);
        failed += !before;
        loop_message_destroy(&lost);
        gpu_message_finish(&kept);
        gpu_check_clean();
        self_destroy();
        wf_sim_memory_mend(devices, 0);
        wf_sim_memory_slow(devices, 0, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
    }
    LOOP_CHECK(failed > 0, "it was lost too late each time: nothing was tested");
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    devices = loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(all_sizes_and_places, 20),     LOOP_CASE(many_in_order, 20),    LOOP_CASE(a_copy_fails, 20),
        LOOP_CASE(cancelled_under_the_copy, 20), LOOP_CASE(a_device_is_lost, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
