/* test_gpu.c: devices fail, are lost, are slow, while messages from and to their memory are under way. */
#include "gpu.h"

#include <errno.h>
#include <string.h>

#define SMALL 1000
#define MIDDLE 40000
#define LARGE (3 * 1024 * 1024 + 5)
#define SETTINGS "chunk=64K"
#define TIGHT "chunk=64K staging=256K" /* four slots each way */

static struct wf_sim_memory *devices;

static const size_t sizes[] = {1, SMALL, MIDDLE, LARGE};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

/* --- a copy fails --- */

/* The n-th copy of a message fails; others, of the same devices and of the host, do not notice. */
static void one_copy_fails(enum wf_copy_way way, size_t size, uint64_t n, bool at_start)
{
    struct loop_message beside, victim, behind;
    bool out = way == WF_COPY_OUT;

    loop_note("copy %d %s of %zu bytes fails at its %s", (int)n, out ? "out" : "in", size, at_start ? "start" : "end");
    gpu_message_post(&beside, HOST, HOST, LARGE, 1);
    /* Only the victim has copies of device 1 in this way. */
    wf_sim_memory_fail_copy(devices, 1, way, n, at_start);
    gpu_message_post(&victim, out ? 1 : 0, out ? 0 : 1, size, 2);
    gpu_message_post(&behind, out ? 0 : HOST, out ? 1 : 0, LARGE, 3);
    struct weft_request *failing = out ? victim.send : victim.recv, *other = out ? victim.recv : victim.send;
    gpu_ends_badly(failing, -EIO, 1);
    loop_buffer_unmap(out ? &victim.source : &victim.sink);
    if (out)
        gpu_ends_somehow(other);
    else
        loop_end(other); /* its bytes may have arrived; only the landing failed */
    loop_message_destroy(&victim);
    gpu_message_finish(&beside);
    gpu_message_finish(&behind);
}

static void an_error_ends_one_request(enum wf_copy_way way)
{
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int at_start = 0; at_start < 2; at_start++) {
            one_copy_fails(way, sizes[i], 1, at_start);
            if (sizes[i] == LARGE)
                one_copy_fails(way, sizes[i], 7, at_start);
        }
    }
    for (size_t i = 0; i < SIZE_COUNT; i++)
        gpu_exchange(1, 1, sizes[i], 4);
    LOOP_CHECK(loop_failures(astray_pair.node[0].peer) == 0, "a channel was lost");
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

static void an_error_out_ends_one_request(void)
{
    an_error_ends_one_request(WF_COPY_OUT);
}

static void an_error_in_ends_one_request(void)
{
    an_error_ends_one_request(WF_COPY_IN);
}

/* Many errors on both ways, with four slots for all: none is lost. */
static void errors_leak_no_slot(void)
{
    enum { FLIGHT = 6 };
    struct loop_message message[FLIGHT];
    int failed = 0, well = 0;

    loop_pair_create(&astray_pair, TIGHT, NULL, 2);
    for (int round = 0; round < 40; round++) {
        loop_note("round %d", round);
        for (int device = 0; device < 2; device++)
            wf_sim_memory_fail_percent(devices, device, round % 2 ? 3 : 40);
        for (uint64_t i = 0; i < FLIGHT; i++)
            gpu_message_post(&message[i], i % 2 ? 1 : 0, i % 3 ? 0 : 1, sizes[((uint64_t)round + i) % SIZE_COUNT], i);
        for (int i = 0; i < FLIGHT; i++) {
            struct weft_completion sent, received;
            if (weft_wait(message[i].recv, 300, &received) != 0) {
                weft_cancel(message[i].recv);
                received = loop_end(message[i].recv);
            }
            sent = loop_end(message[i].send);
            failed += received.status < 0;
            well += received.status == 0;
            if (received.status == 0)
                loop_message_verify(&message[i]);
            else
                LOOP_CHECK(received.status == -EIO || received.status == -ECANCELED, "%s", received.text);
            LOOP_CHECK(sent.status == 0 || sent.status == -EIO || sent.status == -ECANCELED, "%s", sent.text);
            loop_message_destroy(&message[i]);
        }
    }
    LOOP_CHECK(failed > 20 && well > 20, "%d failed, %d did not: nothing was tested", failed, well);
    for (int device = 0; device < 2; device++)
        wf_sim_memory_fail_percent(devices, device, 0);
    gpu_check_clean();
    gpu_exchange(0, 1, 4 * LARGE, 5);
    gpu_exchange(1, 0, 4 * LARGE, 5);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* Memory for slots cannot be pinned: copies are slower, and that is all. */
static void slots_that_are_not_pinned(void)
{
    wf_sim_memory_fail_pin(devices, 2);
    loop_pair_create(&astray_pair, SETTINGS " log=error", NULL, 2);
    gpu_exchange(0, 0, LARGE, 1);
    struct loop_buffer source;
    struct weft_options options = {.flags = WEFT_ON_STREAM};
    struct weft_request *request = NULL;
    loop_buffer_create_on(&source, 0, SMALL);
    int rc = weft_send(LEFT, source.data, SMALL, 1, &options, &request);
    LOOP_CHECK(rc == -ENOTSUP, "a stream that cannot wait: %d", rc);
    loop_buffer_unmap(&source);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
    wf_sim_memory_fail_pin(devices, 0);
}

/* --- a device is lost --- */

/* One device is lost in the middle of transfers; those of others, and of the host, arrive. */
static void a_lost_device_loses_nothing_else(void)
{
    for (int round = 0; round < 12; round++) {
        struct loop_message lost[2], kept[3];
        struct weft_request *request = NULL;
        loop_note("round %d", round);
        loop_pair_create(&astray_pair, SETTINGS " log=error", NULL, 2);
        wf_sim_memory_slow(devices, 0, 300 * WF_NS_PER_US, 3 * WF_NS_PER_MS);
        gpu_message_post(&lost[0], 0, HOST, 4 * LARGE, 1);
        gpu_message_post(&lost[1], 1, 0, 4 * LARGE, 2);
        gpu_message_post(&kept[0], 1, 2, LARGE, 3);
        gpu_message_post(&kept[1], HOST, HOST, LARGE, 4);
        gpu_message_post(&kept[2], HOST, 1, LARGE, 5);
        loop_sleep_ms(round % 6);
        wf_sim_memory_lose(devices, 0);
        gpu_ends_badly(lost[0].send, -ENODEV, 0);
        gpu_ends_badly(lost[1].recv, -ENODEV, 0);
        gpu_ends_somehow(lost[0].recv);
        gpu_ends_somehow(lost[1].send);
        for (int i = 0; i < 3; i++)
            gpu_message_finish(&kept[i]);
        int rc = weft_send(LEFT, lost[0].source.data, 10, 6, NULL, &request);
        LOOP_CHECK(rc == -ENODEV, "a send from a lost GPU: %d", rc);
        rc = weft_recv(RIGHT, lost[1].sink.data, 10, 6, NULL, &request);
        LOOP_CHECK(rc == -ENODEV, "a receive into a lost GPU: %d", rc);
        for (int i = 0; i < 2; i++)
            loop_message_destroy(&lost[i]);
        gpu_exchange(1, 2, LARGE, 7);
        gpu_check_clean();
        loop_pair_destroy(&astray_pair);
        wf_sim_memory_mend(devices, 0);
    }
    wf_sim_memory_slow(devices, 0, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
}

/* --- ends while copies are under way --- */

enum ending { CANCEL_SEND, CANCEL_RECEIVE, DEADLINES, CLOSE, CLOSE_PEER, PEER_GONE, ENDINGS };

static void end_it(enum ending ending, struct loop_message *message, int count)
{
    struct weft_error err = {0};

    for (int i = 0; i < count; i++) {
        if (ending == CANCEL_SEND)
            weft_cancel(message[i].send);
        else if (ending == CANCEL_RECEIVE)
            weft_cancel(message[i].recv);
    }
    if (ending == CLOSE) {
        weft_connection_close(LEFT, 5, &err);
        LEFT = NULL;
    } else if (ending == CLOSE_PEER) {
        weft_peer_close(astray_pair.node[1].peer, 5, &err);
        astray_pair.node[1].peer = NULL;
        RIGHT = NULL;
    } else if (ending == PEER_GONE) {
        for (int rail = 1; rail <= 2; rail++)
            astray_set_rail(rail, &(struct wf_sim_rail){.down = true});
    }
}

/* A send that was complete when its receive was withdrawn: its message may still wait for one. */
static void take_leftover(uint64_t tag, size_t size)
{
    struct loop_buffer sink;
    struct weft_completion completion;
    loop_buffer_create_on(&sink, 1, size);
    struct weft_request *request = loop_recv(RIGHT, sink.data, size, tag);
    if (weft_wait(request, 100, &completion) != 0) {
        weft_cancel(request);
        loop_end(request);
    }
    loop_buffer_unmap(&sink);
}

/* Whatever ends a request, its memory is the user's again at once: here it is gone at that moment, and a copy that
 * still used it would end the process. */
static void ends_under_copies(enum ending ending, int out, int in, int after_ms)
{
    enum { COUNT = 4 };
    struct loop_message message[COUNT];
    bool sent_alone[COUNT];

    loop_note("ending %d, GPU %d slow to send, %d to receive, after %d ms", (int)ending, out, in, after_ms);
    loop_pair_create(&astray_pair, TIGHT " timeout=2 log=error", NULL, 2);
    for (int device = 0; device < 2; device++)
        wf_sim_memory_slow(devices, device, 2 * WF_NS_PER_MS, 9 * WF_NS_PER_MS);
    for (uint64_t i = 0; i < COUNT; i++) {
        struct weft_options soon = {.timeout_ms = ending == DEADLINES ? 1 + after_ms : 0};
        struct loop_message *one = &message[i];
        size_t size = sizes[i];
        *one = (struct loop_message){.seed = i};
        loop_buffer_create_on(&one->source, out, size);
        loop_buffer_create_on(&one->sink, in, size);
        loop_fill(one->source.data, size, i);
        LOOP_CHECK(weft_recv(RIGHT, one->sink.data, size, i, i % 2 ? &soon : NULL, &one->recv) == 0, "recv");
        LOOP_CHECK(weft_send(LEFT, one->source.data, size, i, i % 2 ? NULL : &soon, &one->send) == 0, "send");
    }
    loop_sleep_ms(after_ms);
    end_it(ending, message, COUNT);
    for (int i = 0; i < COUNT; i++) {
        struct weft_completion completion;
        if (ending == CANCEL_SEND || ending == CANCEL_RECEIVE || ending == DEADLINES)
            if (weft_wait(message[i].recv, 500, &completion) == 0)
                message[i].recv = NULL;
        if (message[i].recv) {
            weft_cancel(message[i].recv);
            completion = loop_end(message[i].recv);
        }
        if (completion.status == 0)
            LOOP_CHECK(loop_wrong(message[i].sink.data, message[i].sink.size, message[i].seed) < 0, "wrong bytes");
        loop_buffer_unmap(&message[i].sink);
        weft_cancel(message[i].send);
        sent_alone[i] = loop_end(message[i].send).status == 0 && completion.status != 0;
        loop_buffer_unmap(&message[i].source);
    }
    for (int device = 0; device < 2; device++)
        wf_sim_memory_slow(devices, device, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
    if (ending == CANCEL_SEND || ending == CANCEL_RECEIVE || ending == DEADLINES) {
        for (uint64_t i = 0; i < COUNT; i++)
            if (sent_alone[i])
                take_leftover(i, sizes[i]);
        gpu_exchange(0, 1, LARGE, 9);
        gpu_check_clean();
    }
    if (ending == PEER_GONE)
        for (int rail = 1; rail <= 2; rail++)
            astray_set_rail(rail, &(struct wf_sim_rail){0});
    loop_pair_destroy(&astray_pair);
}

static void ends_of_all_kinds(void)
{
    static const int moments[] = {0, 1, 4, 9, 30};
    for (int ending = 0; ending < ENDINGS; ending++) {
        for (int i = 0; i < 5; i++) {
            ends_under_copies((enum ending)ending, 0, HOST, moments[i]);
            ends_under_copies((enum ending)ending, HOST, 1, moments[i]);
            ends_under_copies((enum ending)ending, 0, 1, moments[i]);
        }
    }
}

/* A device that stands still: what is being copied cannot end, not even when it is told to. */
static void nothing_ends_under_a_copy(void)
{
    struct loop_message message;
    struct weft_completion completion;

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    for (int receiver = 0; receiver < 2; receiver++) {
        uint64_t copies = wf_sim_memory_counts(devices, receiver).copies[receiver ? WF_COPY_IN : WF_COPY_OUT];
        gpu_message_post(&message, receiver ? HOST : 0, receiver ? 1 : HOST, LARGE, 1);
        wf_sim_memory_freeze(devices, receiver, true);
        ASTRAY_UNTIL(wf_sim_memory_counts(devices, receiver).copies[receiver ? WF_COPY_IN : WF_COPY_OUT] > copies,
                     "no copy begins");
        struct weft_request *request = receiver ? message.recv : message.send;
        weft_cancel(request);
        LOOP_CHECK(weft_wait(request, 300, &completion) == -ETIMEDOUT, "ended under a copy, with %d",
                   completion.status);
        gpu_exchange(2, 2, MIDDLE, 2);
        wf_sim_memory_freeze(devices, receiver, false);
        LOOP_CHECK(loop_end(request).status == -ECANCELED, "a cancelled request");
        loop_buffer_unmap(receiver ? &message.sink : &message.source);
        gpu_ends_somehow(receiver ? message.send : message.recv);
        loop_message_destroy(&message);
        gpu_check_clean();
    }
    loop_pair_destroy(&astray_pair);
}

/* A message that has no slot yet when its session ends gets none after that: its memory is the user's again. */
static void nothing_is_copied_after_the_end(void)
{
    struct loop_message large, small;

    loop_pair_create(&astray_pair, TIGHT " timeout=1 log=error", NULL, 2);
    gpu_message_post(&large, 0, HOST, 4 * LARGE, 1);
    loop_sleep_ms(1);
    for (int rail = 1; rail <= 2; rail++)
        astray_set_rail(rail, &(struct wf_sim_rail){.down = true});
    gpu_message_post(&small, HOST, HOST, LARGE, 2);
    LOOP_CHECK(loop_end(large.send).status < 0, "sent to nobody");
    loop_buffer_unmap(&large.source); /* a copy from there would end the process */
    uint64_t copies = wf_sim_memory_counts(devices, 0).copies[WF_COPY_OUT];
    weft_cancel(small.send);
    loop_sleep_ms(10);
    LOOP_CHECK(wf_sim_memory_counts(devices, 0).copies[WF_COPY_OUT] == copies, "copied for a session that is over");
    LOOP_CHECK(loop_end(small.send).status < 0, "sent to nobody");
    weft_cancel(large.recv);
    loop_end(large.recv);
    weft_cancel(small.recv);
    loop_end(small.recv);
    loop_message_destroy(&large);
    loop_message_destroy(&small);
    for (int rail = 1; rail <= 2; rail++)
        astray_set_rail(rail, &(struct wf_sim_rail){0});
    loop_pair_destroy(&astray_pair);
}

/* What the sender has been told of is received, also when the session ends before the device has it. */
static void a_goodbye_waits_for_copies(void)
{
    struct loop_message message;
    struct weft_error err = {0};

    for (size_t i = 0; i < SIZE_COUNT; i++) {
        for (int early = 0; early < 2; early++) {
            loop_note("%zu bytes, its receive is posted %s", sizes[i], early ? "before" : "after");
            if (!early && sizes[i] > SMALL)
                continue;
            loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
            message = (struct loop_message){.seed = i};
            loop_buffer_create_on(&message.source, HOST, sizes[i]);
            loop_buffer_create_on(&message.sink, 1, sizes[i]);
            loop_fill(message.source.data, sizes[i], i);
            wf_sim_memory_slow(devices, 1, 40 * WF_NS_PER_MS, 50 * WF_NS_PER_MS);
            message.recv = early ? loop_recv(RIGHT, message.sink.data, sizes[i], 1) : NULL;
            message.send = loop_send(LEFT, message.source.data, sizes[i], 1);
            loop_done(message.send, 0, sizes[i]);
            if (!early) {
                loop_sleep_ms(5);
                message.recv = loop_recv(RIGHT, message.sink.data, sizes[i], 1);
            }
            LOOP_CALL(weft_peer_close(astray_pair.node[0].peer, 20, &err), &err);
            astray_pair.node[0].peer = NULL;
            LEFT = NULL;
            loop_done(message.recv, 0, sizes[i]);
            loop_message_verify(&message);
            loop_message_destroy(&message);
            wf_sim_memory_slow(devices, 1, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
            loop_pair_destroy(&astray_pair);
        }
    }
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    devices = loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(an_error_out_ends_one_request, 20),
        LOOP_CASE(an_error_in_ends_one_request, 20),
        LOOP_CASE(errors_leak_no_slot, 30),
        LOOP_CASE(slots_that_are_not_pinned, 10),
        LOOP_CASE(a_lost_device_loses_nothing_else, 20),
        LOOP_CASE(nothing_ends_under_a_copy, 20),
        LOOP_CASE(nothing_is_copied_after_the_end, 10),
        LOOP_CASE(a_goodbye_waits_for_copies, 20),
        LOOP_CASE(ends_of_all_kinds, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
