/* test_gpu_neighbours.c: who shares channels and slots with a device or peer that is slow is not held up by it. */
#include "gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 5000
#define LARGE (1024 * 1024 + 3)
#define BULK ((size_t)48 * 1024 * 1024)
#define SETTINGS "chunk=64K staging=1M"
#define SLOW_NS (5 * WF_NS_PER_MS) /* of a copy of 64 KiB: 13 MB/s where others have 20 GB/s */

static struct wf_sim_memory *devices;

/* While a large message goes slowly from or to device 0, others come and go. What waits to be copied to a slow device
 * fills the windows of its channels: a large message behind it waits for these, a small one does not. */
static void beside_a_slow_gpu(bool receiver)
{
    struct loop_message slow = {.seed = 5};
    struct weft_connection *ends[2];
    struct weft_completion completion;

    loop_note("the slow GPU %s", receiver ? "receives" : "sends");
    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    wf_sim_memory_slow(devices, 0, SLOW_NS, SLOW_NS + 1);
    loop_connection(&astray_pair, 0, ends);
    loop_buffer_create_on(&slow.source, receiver ? HOST : 0, BULK);
    loop_buffer_create_on(&slow.sink, receiver ? 0 : HOST, BULK);
    loop_fill(slow.source.data, BULK, slow.seed);
    slow.recv = loop_recv(ends[1], slow.sink.data, BULK, 1);
    slow.send = loop_send(ends[0], slow.source.data, BULK, 1);
    loop_sleep_ms(50);
    for (uint64_t i = 0; i < 24; i++) {
        bool large = i % 8 == 7;
        int64_t start_ms = loop_now_ms(), limit_ms = !large ? 30 : receiver ? 300 : 100;
        gpu_exchange(i % 3 == 0 ? HOST : 1, i % 3 == 1 ? HOST : 2, large ? LARGE : SMALL, 10 + i);
        int64_t took_ms = loop_now_ms() - start_ms;
        LOOP_CHECK(took_ms < limit_ms, "message %d took %lld ms", (int)i, (long long)took_ms);
    }
    LOOP_CHECK(!weft_test(receiver ? slow.recv : slow.send, &completion), "the slow GPU was not slow");
    wf_sim_memory_slow(devices, 0, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
    gpu_message_finish(&slow);
    loop_connection_end(ends);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

static void a_slow_sender_holds_up_nobody(void)
{
    beside_a_slow_gpu(false);
}

static void a_slow_receiver_holds_up_nobody(void)
{
    beside_a_slow_gpu(true);
}

static uint64_t sent_so_far(const struct weft_peer *peer)
{
    struct weft_rail_stats stats[2];
    int count = weft_peer_rails(peer, stats, 2);
    return stats[0].sent_bytes + (count > 1 ? stats[1].sent_bytes : 0);
}

/* A GPU stands still, while a message for it from a peer with these settings is under way. Returns the bytes of it that
 * were sent, once it is at least so many; others have gone past it. */
static uint64_t sent_to_still_gpu(const char *sender, const char *receiver, uint64_t least)
{
    struct loop_message stuck;
    loop_note("%s to %s", sender, receiver);
    loop_pair_create(&astray_pair, sender, receiver, 2);
    uint64_t copies = wf_sim_memory_counts(devices, 0).copies[WF_COPY_IN];
    wf_sim_memory_freeze(devices, 0, true);
    gpu_message_post(&stuck, HOST, 0, BULK, 1);
    ASTRAY_UNTIL(wf_sim_memory_counts(devices, 0).copies[WF_COPY_IN] > copies, "no copies begin");
    ASTRAY_UNTIL(sent_so_far(astray_pair.node[0].peer) >= least, "less is sent");
    loop_sleep_ms(50);
    uint64_t sent = sent_so_far(astray_pair.node[0].peer);
    gpu_exchange(HOST, HOST, LARGE, 2); /* the channels are free for others */
    gpu_exchange(HOST, 1, LARGE, 3);
    wf_sim_memory_freeze(devices, 0, false);
    gpu_message_finish(&stuck);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
    return sent;
}

/* No more is granted of a message than the slots take, also where the peer's chunks are smaller than our slots: each
 * takes one, whatever room there is left in it. */
static void what_is_granted_fits_into_slots(void)
{
    enum { CHUNK = 64 * 1024, SLOTS = 8 }; /* half of them: others want some, too */
    static const char *const receivers[] = {"chunk=64K staging=1M", "chunk=512K staging=8M"};
    for (int i = 0; i < 2; i++) {
        uint64_t sent = sent_to_still_gpu("chunk=64K first_burst=64K", receivers[i], 0);
        LOOP_CHECK(sent <= (uint64_t)SLOTS * CHUNK, "%llu bytes were sent for %d slots of a chunk each",
                   (unsigned long long)sent, SLOTS);
    }
}

/* What goes unasked needs no slots: it goes by the pool that it has paid for. */
static void what_is_unasked_needs_no_slots(void)
{
    enum { BURST = 1024 * 1024 };
    uint64_t sent = sent_to_still_gpu("chunk=64K first_burst=1M", "staging=256K", BURST);
    LOOP_CHECK(sent == BURST, "%llu bytes were sent, not %d", (unsigned long long)sent, BURST);
}

/* A write from GPU 1, timed. */
static int64_t time_of_write(struct loop_buffer *near, struct loop_buffer *far, struct weft_registration *target,
                             size_t size, uint64_t salt)
{
    struct weft_request *request = NULL;
    int64_t start_ms = loop_now_ms();
    loop_fill(near->data, size, salt);
    LOOP_CHECK(weft_write(LEFT, near->data, size, weft_registration_key(target), 0, NULL, &request) == 0, "a write");
    loop_done(request, 0, size);
    LOOP_CHECK(loop_wrong(far->data, size, salt) < 0, "written wrong");
    return loop_now_ms() - start_ms;
}

/* A GPU stands still, and a message from its memory has all slots that it may: those of other GPUs are still there. */
static void slots_of_another_gpu(void)
{
    enum { LENGTH = 4000 };
    static const size_t sizes[] = {LENGTH, LARGE};
    struct weft_registration *registration = NULL;
    struct loop_message stuck[3];
    struct loop_buffer far, near;
    struct weft_error err = {0};
    int64_t usual_ms[2];

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    loop_buffer_create_on(&far, HOST, LARGE);
    loop_buffer_create_on(&near, 1, LARGE);
    LOOP_CALL(weft_register(astray_pair.node[1].context, far.data, far.size, &registration, &err), &err);
    for (int i = 0; i < 2; i++)
        usual_ms[i] = time_of_write(&near, &far, registration, sizes[i], 5);
    uint64_t copies = wf_sim_memory_counts(devices, 0).copies[WF_COPY_OUT];
    wf_sim_memory_freeze(devices, 0, true);
    for (uint64_t i = 0; i < 3; i++)
        gpu_message_post(&stuck[i], 0, HOST, BULK, i);
    ASTRAY_UNTIL(wf_sim_memory_counts(devices, 0).copies[WF_COPY_OUT] == copies + 8, "copies do not begin");
    loop_sleep_ms(20);
    for (int i = 0; i < 2; i++) {
        int64_t took_ms = time_of_write(&near, &far, registration, sizes[i], 7);
        LOOP_CHECK(took_ms < usual_ms[i] + 20,
                   "a write of %zu bytes from GPU 1 waited for GPU 0: %lld ms, usually %lld", sizes[i],
                   (long long)took_ms, (long long)usual_ms[i]);
    }
    wf_sim_memory_freeze(devices, 0, false);
    for (int i = 0; i < 3; i++)
        gpu_message_finish(&stuck[i]);
    loop_world_deregister(registration);
    loop_buffer_unmap(&far);
    loop_buffer_unmap(&near);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* A GPU between two peers; one of them hears nothing any more. The other one goes on, in both directions. */
static void a_stopped_peer_keeps_no_slots(void)
{
    enum { COUNT = 6 };
    struct loop_node hub, hub_end, peer[2];
    struct loop_buffer stuck[COUNT], away[COUNT];
    struct weft_request *sends[COUNT], *receives[COUNT];

    loop_node_start(&hub, SETTINGS, 2);
    int port = loop_node_listen(&hub);
    loop_node_start(&peer[0], SETTINGS " rails=127.0.5.1", 1);
    loop_node_start(&peer[1], SETTINGS " rails=127.0.6.1", 1);
    hub_end = hub;
    for (int i = 0; i < 2; i++) {
        struct loop_node *end = i ? &hub_end : &hub;
        loop_node_connect(&peer[i], port);
        loop_node_accept(end);
        loop_node_open(&peer[i]);
        loop_node_take(end);
    }
    astray_pair.node[0] = peer[1]; /* its world, and the pair that goes on */
    astray_pair.node[1] = hub_end;
    for (uint64_t i = 0; i < COUNT; i++) {
        loop_buffer_create_on(&stuck[i], 0, 4 * LARGE);
        loop_buffer_create_on(&away[i], HOST, 4 * LARGE);
        receives[i] = loop_recv(peer[0].connection, away[i].data, 4 * LARGE, i);
        sends[i] = loop_send(hub.connection, stuck[i].data, 4 * LARGE, i);
    }
    loop_sleep_ms(2);
    astray_set_rail(5, &(struct wf_sim_rail){.down = true});
    loop_sleep_ms(100);
    for (uint64_t i = 0; i < 10; i++) {
        struct loop_message there;
        gpu_exchange(HOST, 0, 4 * LARGE, 50 + i);
        there = (struct loop_message){.seed = i};
        loop_buffer_create_on(&there.source, 0, 4 * LARGE);
        loop_buffer_create_on(&there.sink, HOST, 4 * LARGE);
        loop_fill(there.source.data, 4 * LARGE, i);
        there.recv = loop_recv(LEFT, there.sink.data, 4 * LARGE, 70 + i);
        there.send = loop_send(RIGHT, there.source.data, 4 * LARGE, 70 + i);
        gpu_message_finish(&there);
    }
    struct weft_completion completion;
    LOOP_CHECK(!weft_test(sends[COUNT - 1], &completion), "the peer was not stopped");
    astray_set_rail(5, &(struct wf_sim_rail){0});
    for (int i = 0; i < COUNT; i++) {
        loop_done(receives[i], 0, 4 * LARGE);
        loop_done(sends[i], 0, 4 * LARGE);
        loop_buffer_unmap(&stuck[i]);
        loop_buffer_unmap(&away[i]);
    }
    weft_connection_close(hub_end.connection, 2000, NULL);
    weft_peer_close(hub_end.peer, 2000, NULL);
    loop_node_stop(&hub);
    for (int i = 0; i < 2; i++)
        loop_node_stop(&peer[i]);
}

/* Write, read, list and notification between GPUs, with a registration of device memory at the far side. */
static void one_sided_between_gpus(void)
{
    enum { PIECES = 500, LENGTH = 777 };
    static struct weft_piece pieces[PIECES];
    struct weft_registration *registration = NULL;
    struct loop_buffer far, near, back;
    struct weft_request *request = NULL, *heard = NULL;
    struct weft_error err = {0};
    char note[16] = "";

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    loop_buffer_create_on(&far, 1, (size_t)PIECES * LENGTH);
    loop_buffer_create_on(&near, 0, far.size);
    loop_buffer_create_on(&back, 2, far.size);
    loop_fill(near.data, near.size, 9);
    LOOP_CALL(weft_register(astray_pair.node[1].context, far.data, far.size, &registration, &err), &err);
    uint64_t key = weft_registration_key(registration);
    struct weft_options tell = {.flags = WEFT_NOTIFY, .notify_tag = 4, .notify_data = "there", .notify_length = 6};
    wf_sim_memory_slow(devices, 1, 1 * WF_NS_PER_MS, 5 * WF_NS_PER_MS);
    LOOP_CHECK(weft_recv_notification(RIGHT, note, sizeof note, NULL, &heard) == 0, "a receive");
    LOOP_CHECK(weft_write(LEFT, near.data, near.size, key, 0, &tell, &request) == 0, "a write");
    struct weft_completion completion = loop_end(heard);
    LOOP_CHECK(completion.status == 0 && completion.tag == 4 && strcmp(note, "there") == 0, "%s", completion.text);
    LOOP_CHECK(loop_wrong(far.data, far.size, 9) < 0, "notified before the data was in its memory");
    loop_done(request, 0, near.size);
    wf_sim_memory_slow(devices, 1, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
    LOOP_CHECK(weft_read(LEFT, back.data, back.size, key, 0, NULL, &request) == 0, "a read");
    loop_done(request, 0, back.size);
    LOOP_CHECK(loop_wrong(back.data, back.size, 9) < 0, "read wrong");
    loop_set(far.data, far.size, LOOP_POISON);
    loop_set(back.data, back.size, LOOP_POISON);
    for (uint64_t i = 0; i < PIECES; i++) {
        uint64_t at = i * 7 % PIECES * LENGTH;
        pieces[i] = (struct weft_piece){.local = at, .remote = at, .length = LENGTH};
    }
    LOOP_CHECK(weft_write_list(LEFT, near.data, pieces, PIECES, key, NULL, &request) == 0, "a list");
    loop_done(request, 0, near.size);
    LOOP_CHECK(loop_wrong(far.data, far.size, 9) < 0, "a list was written wrong");
    LOOP_CHECK(weft_read_list(LEFT, back.data, pieces, PIECES, key, NULL, &request) == 0, "a list");
    loop_done(request, 0, back.size);
    LOOP_CHECK(loop_wrong(back.data, back.size, 9) < 0, "a list was read wrong");
    for (int way = 0; way < 4; way++) { /* at both sides, in both directions */
        bool reads = way % 2, near_fails = way / 2;
        wf_sim_memory_fail_copy(devices, near_fails ? 0 : 1, reads == near_fails ? WF_COPY_IN : WF_COPY_OUT, 2, false);
        int rc = reads ? weft_read(LEFT, near.data, near.size, key, 0, &tell, &request)
                       : weft_write(LEFT, near.data, near.size, key, 0, &tell, &request);
        LOOP_CHECK(rc == 0, "%d", rc);
        completion = loop_end(request);
        LOOP_CHECK(completion.status == -EIO, "%s with a copy that fails %s: %d %s", reads ? "read" : "write",
                   near_fails ? "here" : "there", completion.status, completion.text);
    }
    LOOP_CHECK(weft_recv_notification(RIGHT, note, sizeof note, NULL, &heard) == 0, "a receive");
    LOOP_CHECK(weft_wait(heard, 50, &completion) == -ETIMEDOUT, "a notification of what failed");
    weft_cancel(heard);
    loop_done(heard, -ECANCELED, 0);
    loop_world_deregister(registration);
    loop_buffer_unmap(&far);
    loop_buffer_unmap(&near);
    loop_buffer_unmap(&back);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

/* All bytes of the read are here, and the owner is done with it, when the copy to the device ends. */
static void a_read_is_announced_once_it_has_landed(void)
{
    enum { LENGTH = 1000 };
    static unsigned char far[LENGTH];
    struct weft_registration *registration = NULL;
    struct weft_request *request = NULL, *heard = NULL, *behind = NULL, *message = NULL;
    struct weft_completion completion;
    struct weft_error err = {0};
    struct loop_buffer near;
    unsigned char word = 0;
    char note[16] = "";

    loop_pair_create(&astray_pair, SETTINGS, NULL, 2);
    loop_buffer_create_on(&near, 0, LENGTH);
    loop_fill(far, LENGTH, 11);
    LOOP_CALL(weft_register(astray_pair.node[1].context, far, LENGTH, &registration, &err), &err);
    uint64_t key = weft_registration_key(registration);
    for (int fails = 0; fails < 2; fails++) {
        struct weft_options tell = {.flags = WEFT_NOTIFY, .notify_tag = 7, .notify_data = "read", .notify_length = 5};
        loop_note("the copy %s", fails ? "fails" : "is slow");
        wf_sim_memory_slow(devices, 0, 20 * WF_NS_PER_MS, 20 * WF_NS_PER_MS);
        if (fails)
            wf_sim_memory_fail_copy(devices, 0, WF_COPY_IN, 1, false);
        LOOP_CHECK(weft_recv_notification(RIGHT, note, sizeof note, NULL, &heard) == 0, "a receive");
        LOOP_CHECK(weft_read(LEFT, near.data, LENGTH, key, 0, &tell, &request) == 0, "a read");
        /* A message that was posted behind it does not wait. */
        behind = loop_send(LEFT, "x", 1, 3);
        message = loop_recv(RIGHT, &word, 1, 3);
        loop_done(message, 0, 1);
        loop_done(behind, 0, 1);
        if (!fails) {
            completion = loop_end(heard);
            LOOP_CHECK(completion.status == 0 && completion.tag == 7 && strcmp(note, "read") == 0, "%s",
                       completion.text);
            LOOP_CHECK(loop_wrong(near.data, LENGTH, 11) < 0, "told of a read that has not landed");
            loop_done(request, 0, LENGTH);
            continue;
        }
        loop_done(request, -EIO, LENGTH);
        LOOP_CHECK(weft_wait(heard, 100, &completion) == -ETIMEDOUT, "told of a read that failed");
        weft_cancel(heard);
        loop_done(heard, -ECANCELED, 0);
    }
    wf_sim_memory_slow(devices, 0, 2 * WF_NS_PER_US, 60 * WF_NS_PER_US);
    loop_world_deregister(registration);
    loop_buffer_unmap(&near);
    gpu_check_clean();
    loop_pair_destroy(&astray_pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    devices = loop_sim_memory();
    const struct CMUnitTest tests[] = {
        LOOP_CASE(a_slow_sender_holds_up_nobody, 20),
        LOOP_CASE(a_slow_receiver_holds_up_nobody, 20),
        LOOP_CASE(what_is_granted_fits_into_slots, 20),
        LOOP_CASE(what_is_unasked_needs_no_slots, 20),
        LOOP_CASE(slots_of_another_gpu, 20),
        LOOP_CASE(a_stopped_peer_keeps_no_slots, 30),
        LOOP_CASE(one_sided_between_gpus, 20),
        LOOP_CASE(a_read_is_announced_once_it_has_landed, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
