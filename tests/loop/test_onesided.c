/* test_onesided.c: writes and reads of a peer's registration, lists of pieces, notifications, and everything that can
 * be wrong with them. */
#include "loop_support.h"
#include "loop_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loop_pair pair;
#define ASKER (pair.node[0].connection)
#define OWNER (pair.node[1].connection)

/* Memory of the owner, registered. */
struct region {
    struct loop_buffer buffer;
    struct weft_registration *registration;
    uint64_t key;
};

static void region_create(struct region *region, size_t size)
{
    struct weft_error err;
    loop_buffer_create(&region->buffer, LOOP_FAR, size);
    loop_set(region->buffer.data, size, LOOP_POISON);
    LOOP_CALL(weft_register(pair.node[1].context, region->buffer.data, size, &region->registration, &err), &err);
    region->key = weft_registration_key(region->registration);
}

static void region_destroy(struct region *region)
{
    loop_world_deregister(region->registration);
    loop_buffer_unmap(&region->buffer);
}

/* The owner's memory is touched by a thread of its library, and nothing in this process tells that thread of us, or us
 * of it, but a socket: a lock that both have held orders the two, as a message does in a program of two processes. */
static void meet_the_owner(void)
{
    struct weft_error err;
    LOOP_CALL(weft_peer_status(pair.node[1].peer, &err), &err);
}

static struct weft_request *write_to(const struct region *region, const void *data, size_t size, uint64_t offset,
                                     const struct weft_options *options)
{
    struct weft_request *request = NULL;
    meet_the_owner();
    int rc = weft_write(ASKER, data, size, region->key, offset, options, &request);
    LOOP_CHECK(rc == 0 && request, "weft_write: %s", strerror(-rc));
    return request;
}

static struct weft_request *read_from(const struct region *region, void *data, size_t size, uint64_t offset,
                                      const struct weft_options *options)
{
    struct weft_request *request = NULL;
    meet_the_owner();
    int rc = weft_read(ASKER, data, size, region->key, offset, options, &request);
    LOOP_CHECK(rc == 0 && request, "weft_read: %s", strerror(-rc));
    return request;
}

static struct weft_request *receive_note(void *data, size_t capacity)
{
    struct weft_request *request = NULL;
    int rc = weft_recv_notification(OWNER, data, capacity, NULL, &request);
    LOOP_CHECK(rc == 0 && request, "weft_recv_notification: %s", strerror(-rc));
    return request;
}

/* --- every size, there and back --- */

static const size_t sizes[] = {0, 1, 63, 4096, 8192, 8193, 65537, 3 * (1 << 20) + 5};

static void there_and_back(const char *settings, int rails)
{
    loop_note("%s, %d rails", settings ? settings : "defaults", rails);
    loop_pair_create(&pair, settings, NULL, rails);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        size_t size = sizes[i], place = 13 * i;
        struct region region;
        struct loop_buffer source, sink;
        region_create(&region, size + place + 7);
        loop_buffer_create(&source, LOOP_NEAR, size);
        loop_buffer_create(&sink, LOOP_NEAR, size);
        loop_fill(source.data, size, i);
        loop_done(write_to(&region, source.data, size, place, NULL), 0, size);
        meet_the_owner();
        LOOP_CHECK(loop_wrong(region.buffer.data + place, size, i) < 0, "%zu bytes written wrong", size);
        LOOP_CHECK(loop_differs(region.buffer.data, place, LOOP_POISON) < 0, "wrote before the place");
        LOOP_CHECK(loop_differs(region.buffer.data + place + size, 7, LOOP_POISON) < 0, "wrote behind the end");
        loop_fill(source.data, size, 99); /* a write that completed does not read it any more */
        loop_done(read_from(&region, sink.data, size, place, NULL), 0, size);
        LOOP_CHECK(loop_wrong(sink.data, size, i) < 0, "%zu bytes read wrong", size);
        region_destroy(&region);
        loop_buffer_unmap(&source);
        loop_buffer_unmap(&sink);
    }
    loop_pair_destroy(&pair);
}

static void sizes_there_and_back(void)
{
    there_and_back(NULL, 2);
    there_and_back("channels=1 window=1 chunk=4K eager=0", 1);
    there_and_back("channels=4 window=2 chunk=100K introductions=2 header_pad=64", 3);
}

/* Many at once, among messages of the same connection, both ways. */
static void many_among_messages(void)
{
    enum { COUNT = 200, SIZE = 30011 };
    struct region region;
    struct loop_buffer source;
    static struct weft_request *writes[COUNT], *reads[COUNT], *sends[COUNT], *receives[COUNT];
    static unsigned char small[COUNT][64], landed[COUNT][64];

    loop_pair_create(&pair, "introductions=16", NULL, 2);
    region_create(&region, (size_t)COUNT * SIZE);
    loop_buffer_create(&source, LOOP_NEAR, (size_t)COUNT * SIZE);
    loop_fill(source.data, source.size, 5);
    for (size_t i = 0; i < COUNT; i++) {
        loop_fill(small[i], sizeof small[i], i);
        writes[i] = write_to(&region, source.data + i * SIZE, SIZE, i * SIZE, NULL);
        sends[i] = loop_send(ASKER, small[i], sizeof small[i], 7);
        receives[i] = loop_recv(OWNER, landed[i], sizeof landed[i], 7);
    }
    for (size_t i = 0; i < COUNT; i++) {
        loop_done(receives[i], 0, 64);
        loop_done(sends[i], 0, 64);
        LOOP_CHECK(loop_wrong(landed[i], 64, i) < 0, "message %zu is wrong", i);
        loop_done(writes[i], 0, SIZE);
    }
    meet_the_owner();
    LOOP_CHECK(loop_wrong(region.buffer.data, region.buffer.size, 5) < 0, "the writes are wrong");
    loop_set(source.data, source.size, LOOP_POISON);
    for (size_t i = 0; i < COUNT; i++)
        reads[i] = read_from(&region, source.data + i * SIZE, SIZE, i * SIZE, NULL);
    for (size_t i = 0; i < COUNT; i++)
        loop_done(reads[i], 0, SIZE);
    LOOP_CHECK(loop_wrong(source.data, source.size, 5) < 0, "the reads are wrong");
    region_destroy(&region);
    loop_buffer_unmap(&source);
    loop_pair_destroy(&pair);
}

/* --- notifications --- */

static void notifications_follow_their_data(void)
{
    enum { COUNT = 40, SIZE = 70001 };
    struct region region;
    struct loop_buffer source;
    static struct weft_request *writes[COUNT], *notes[COUNT];
    static char text[COUNT][32], landed[COUNT][32];
    bool seen[COUNT] = {false};

    loop_pair_create(&pair, NULL, NULL, 3);
    region_create(&region, (size_t)COUNT * SIZE);
    loop_buffer_create(&source, LOOP_NEAR, (size_t)COUNT * SIZE);
    loop_fill(source.data, source.size, 3);
    for (size_t i = 0; i < COUNT; i++) {
        if (i % 2)
            notes[i] = receive_note(landed[i], sizeof landed[i]);
        snprintf(text[i], sizeof text[i], "written: %zu", i);
        struct weft_options options = {
            .flags = WEFT_NOTIFY, .notify_tag = i, .notify_data = text[i], .notify_length = sizeof text[i]};
        writes[i] = write_to(&region, source.data + i * SIZE, SIZE, i * SIZE, &options);
    }
    for (size_t i = 0; i < COUNT; i += 2)
        notes[i] = receive_note(landed[i], sizeof landed[i]);
    for (size_t i = 0; i < COUNT; i++) {
        struct weft_completion completion = loop_end(notes[i]);
        LOOP_CHECK(completion.status == 0 && completion.bytes == sizeof text[i], "%s", completion.text);
        LOOP_CHECK(completion.tag < COUNT && !seen[completion.tag], "notification %llu came twice",
                   (unsigned long long)completion.tag);
        seen[completion.tag] = true;
        LOOP_CHECK(memcmp(landed[i], text[completion.tag], sizeof text[i]) == 0, "the wrong text: %s", landed[i]);
        size_t at = completion.tag * SIZE;
        LOOP_CHECK(loop_same(region.buffer.data + at, source.data + at, SIZE), "it came before its data");
    }
    for (size_t i = 0; i < COUNT; i++)
        loop_done(writes[i], 0, SIZE);
    region_destroy(&region);
    loop_buffer_unmap(&source);
    loop_pair_destroy(&pair);
}

/* The longest, an empty one, one that is too long for its receive, and one that announces a read. */
static void notifications_of_all_kinds(void)
{
    struct region region;
    static unsigned char longest[WEFT_NOTIFICATION_MAX + 1], landed[WEFT_NOTIFICATION_MAX];
    unsigned char data[100] = {1};
    struct weft_request *request = NULL;
    struct weft_options options = {
        .flags = WEFT_NOTIFY, .notify_tag = 1, .notify_data = longest, .notify_length = WEFT_NOTIFICATION_MAX};

    loop_pair_create(&pair, "unexpected=32K", NULL, 2);
    region_create(&region, 100);
    loop_fill(longest, sizeof longest, 8);
    struct weft_request *write = write_to(&region, data, sizeof data, 0, &options);
    struct weft_request *note = receive_note(landed, sizeof landed);
    loop_done(note, 0, WEFT_NOTIFICATION_MAX);
    LOOP_CHECK(loop_wrong(landed, sizeof landed, 8) < 0, "the longest notification is wrong");
    loop_done(write, 0, sizeof data);

    options.notify_length = WEFT_NOTIFICATION_MAX + 1;
    LOOP_CHECK(weft_write(ASKER, data, 1, region.key, 0, &options, &request) == -EMSGSIZE, "one byte too long");
    options = (struct weft_options){.flags = WEFT_NOTIFY, .notify_tag = 77};
    write = read_from(&region, data, sizeof data, 0, &options);
    note = receive_note(NULL, 0);
    loop_done(write, 0, sizeof data);
    struct weft_completion completion = loop_end(note);
    LOOP_CHECK(completion.status == 0 && completion.bytes == 0 && completion.tag == 77, "%s", completion.text);

    options = (struct weft_options){.flags = WEFT_NOTIFY, .notify_data = longest, .notify_length = 50};
    note = receive_note(landed, 49);
    write = write_to(&region, data, sizeof data, 0, &options);
    loop_done(note, -EMSGSIZE, 50);
    loop_done(receive_note(landed, sizeof landed), 0, 50); /* it has been kept */
    loop_done(write, 0, sizeof data);
    region_destroy(&region);
    loop_pair_destroy(&pair);
}

/* Who reads may close once the reads are done. Their end comes to the owner later than the close, and the notifications
 * after it, which receives wait for. Every other time the session is closed with the last connection. */
static void notifications_before_the_close(void)
{
    enum { SIZE = 70001, NOTES = 2 };
    struct region region;
    struct weft_connection *ends[2];
    struct weft_error err;
    static unsigned char data[NOTES][SIZE];

    for (int i = 0; i < LOOP_COUNT(20, 5); i++) {
        loop_pair_create(&pair, NULL, NULL, 2);
        region_create(&region, SIZE);
        for (int k = 0; k < 20; k++) {
            loop_connection(&pair, 0, ends);
            struct weft_request *notes[NOTES + 1] = {NULL}, *reads[NOTES] = {NULL}, *closing = NULL;
            size_t size = k % 2 ? SIZE : 100;
            int rc = 0;
            for (int n = 0; n <= NOTES && rc == 0; n++)
                rc = weft_recv_notification(ends[1], NULL, 0, NULL, &notes[n]);
            LOOP_CHECK(rc == 0, "weft_recv_notification: %s", strerror(-rc));
            meet_the_owner();
            for (uint64_t n = 0; n < NOTES && rc == 0; n++) {
                struct weft_options options = {.flags = WEFT_NOTIFY, .notify_tag = n};
                rc = weft_read(ends[0], data[n], size, region.key, 0, &options, &reads[n]);
            }
            LOOP_CHECK(rc == 0, "weft_read: %s", strerror(-rc));
            for (int n = 0; n < NOTES; n++)
                loop_done(reads[n], 0, size);
            bool all = k == 19 && i % 2;
            if (all) {
                LOOP_CALL(weft_connection_close_start(ends[0], NULL, &closing, &err), &err);
                LOOP_CALL(weft_peer_close(pair.node[0].peer, LOOP_WAIT_MS, &err), &err);
                loop_end(closing);
                pair.node[0] = (struct loop_node){.context = pair.node[0].context, .endpoint = pair.node[0].endpoint};
            } else {
                LOOP_CALL(weft_connection_close(ends[0], LOOP_WAIT_MS, &err), &err);
            }
            uint64_t seen = 0;
            for (int n = 0; n < NOTES; n++) {
                struct weft_completion completion = loop_end(notes[n]);
                LOOP_CHECK(completion.status == 0, "round %d of %d: %s", k, i, completion.text);
                seen |= UINT64_C(1) << completion.tag;
            }
            LOOP_CHECK(seen == (1 << NOTES) - 1, "notifications 0x%llx", (unsigned long long)seen);
            struct weft_completion completion = loop_end(notes[NOTES]);
            LOOP_CHECK(completion.status == -ESHUTDOWN, "nothing can come: %s", completion.text);
            LOOP_CALL(weft_connection_close(ends[1], LOOP_WAIT_MS, &err), &err);
        }
        region_destroy(&region);
        loop_pair_destroy(&pair);
    }
}

/* --- lists --- */

/* Pieces in an order of their own on either side, none aligned, some empty, some that touch. */
static void scatter(struct weft_piece *pieces, uint64_t count, uint64_t length, uint64_t *local, uint64_t *remote)
{
    *local = *remote = 3;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t at = i * 7919 % count; /* a prime: every index once */
        pieces[at] = (struct weft_piece){.local = 0, .remote = *remote, .length = i % 11 ? length + i % 5 : 0};
        *remote += pieces[at].length + (i % 3 ? 1 : 0);
    }
    for (uint64_t i = 0; i < count; i++) {
        pieces[i].local = *local;
        *local += pieces[i].length + (i % 4 ? 2 : 0);
    }
}

static void list_there_and_back(uint64_t count, uint64_t length, const char *settings, int rails)
{
    struct weft_piece *pieces = calloc(count, sizeof *pieces);
    struct loop_buffer source, sink;
    struct region region;
    struct weft_request *request = NULL;
    uint64_t local, remote, total = 0;

    loop_note("%llu pieces of %llu, %s", (unsigned long long)count, (unsigned long long)length,
              settings ? settings : "defaults");
    LOOP_CHECK(pieces, "memory");
    loop_pair_create(&pair, settings, NULL, rails);
    scatter(pieces, count, length, &local, &remote);
    region_create(&region, remote);
    loop_buffer_create(&source, LOOP_NEAR, local);
    loop_buffer_create(&sink, LOOP_NEAR, local);
    loop_fill(source.data, local, 21);
    loop_set(sink.data, local, LOOP_POISON);
    for (uint64_t i = 0; i < count; i++)
        total += pieces[i].length;
    int rc = weft_write_list(ASKER, source.data, pieces, count, region.key, NULL, &request);
    LOOP_CHECK(rc == 0, "weft_write_list: %s", strerror(-rc));
    loop_done(request, 0, total);
    meet_the_owner();
    for (uint64_t i = 0; i < count; i++) {
        const struct weft_piece *piece = &pieces[i];
        LOOP_CHECK(loop_same(region.buffer.data + piece->remote, source.data + piece->local, piece->length),
                   "piece %llu is wrong", (unsigned long long)i);
    }
    rc = weft_read_list(ASKER, sink.data, pieces, count, region.key, NULL, &request);
    LOOP_CHECK(rc == 0, "weft_read_list: %s", strerror(-rc));
    loop_done(request, 0, total);
    for (uint64_t i = 0; i < count; i++) {
        const struct weft_piece *piece = &pieces[i];
        LOOP_CHECK(loop_same(sink.data + piece->local, source.data + piece->local, piece->length),
                   "piece %llu came back wrong", (unsigned long long)i);
        uint64_t gap = i % 4 ? 2 : 0;
        LOOP_CHECK(loop_differs(sink.data + piece->local + piece->length, gap, LOOP_POISON) < 0, "wrote into a gap");
    }
    region_destroy(&region);
    loop_buffer_unmap(&source);
    loop_buffer_unmap(&sink);
    loop_pair_destroy(&pair);
    free(pieces);
}

static void lists_there_and_back(void)
{
    list_there_and_back(1, 5, NULL, 1);
    list_there_and_back(2, 1, NULL, 2);
    list_there_and_back(5000, 1, "channels=2 chunk=4K", 2);
    list_there_and_back(1000, 4095, NULL, 3);
    list_there_and_back(30, 300000, "channels=1 window=1 chunk=64K", 1);
    list_there_and_back(20000, 40, "channels=4 eager=0 first_burst=0 unexpected=64K", 2);
}

static void list_of_a_hundred_thousand(void)
{
    list_there_and_back(100000, LOOP_SLOW_SANITIZER ? 64 : 1024, NULL, 1);
}

/* Several under way: each has its own list. */
static void lists_at_once(void)
{
    enum { COUNT = 12, PIECES = 300, LENGTH = 500 };
    static struct weft_piece pieces[PIECES];
    static struct weft_request *requests[COUNT];
    struct region region;
    struct loop_buffer source;
    const size_t each = (size_t)PIECES * LENGTH;

    loop_pair_create(&pair, NULL, NULL, 2);
    region_create(&region, COUNT * each);
    loop_buffer_create(&source, LOOP_NEAR, COUNT * each);
    loop_fill(source.data, source.size, 4);
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t p = 0; p < PIECES; p++) {
            size_t at = (p * 7 % PIECES) * LENGTH;
            pieces[p] = (struct weft_piece){.local = at, .remote = i * each + at, .length = LENGTH};
        }
        int rc = weft_write_list(ASKER, source.data + i * each, pieces, PIECES, region.key, NULL, &requests[i]);
        LOOP_CHECK(rc == 0, "weft_write_list: %s", strerror(-rc));
        memset(pieces, 0xff, sizeof pieces); /* the library has its own copy */
    }
    for (size_t i = 0; i < COUNT; i++)
        loop_done(requests[i], 0, each);
    meet_the_owner();
    LOOP_CHECK(loop_wrong(region.buffer.data, region.buffer.size, 4) < 0, "the lists are mixed up");
    region_destroy(&region);
    loop_buffer_unmap(&source);
    loop_pair_destroy(&pair);
}

/* Writes and reads end in a queue as messages do. */
static void ends_in_a_queue(void)
{
    enum { COUNT = 50, SIZE = 20000 };
    struct region region;
    static unsigned char data[COUNT * SIZE];
    struct weft_queue *queue;
    struct weft_error err;
    struct weft_completion completion;
    bool seen[COUNT] = {false};

    loop_pair_create(&pair, NULL, NULL, 2);
    region_create(&region, sizeof data);
    loop_fill(region.buffer.data, sizeof data, 6);
    LOOP_CALL(weft_queue_create(pair.node[0].context, &queue, &err), &err);
    for (size_t i = 0; i < COUNT; i++) {
        struct weft_options options = {.queue = queue, .user_data = data + i * SIZE};
        read_from(&region, data + i * SIZE, SIZE, i * SIZE, &options);
    }
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    for (int left = COUNT; left > 0;) {
        LOOP_CHECK(loop_now_ms() < limit, "%d of %d never end", left, COUNT);
        if (weft_queue_poll(queue, &completion, 1) == 0) {
            loop_world_sleep_ns(1000); /* in the simulated world this is where it goes on */
            continue;
        }
        size_t index = (size_t)((unsigned char *)completion.user_data - data) / SIZE;
        LOOP_CHECK(index < COUNT && !seen[index] && completion.status == 0, "%s", completion.text);
        seen[index] = true;
        left -= 1;
    }
    LOOP_CHECK(loop_wrong(data, sizeof data, 6) < 0, "wrong bytes were read");
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "the queue is busy");
    region_destroy(&region);
    loop_pair_destroy(&pair);
}

/* --- what is wrong --- */

static void refused(int rc, int expected, const char *what)
{
    LOOP_CHECK(rc == expected, "%s: %d, expected %d", what, rc, expected);
}

static void bad_arguments(void)
{
    struct region region;
    unsigned char data[10] = {0};
    struct weft_request *request = NULL;
    struct weft_piece far = {.local = UINT64_MAX - 1, .remote = 0, .length = 10};
    struct weft_options options = {.flags = WEFT_NOTIFY, .notify_length = 5};

    loop_pair_create(&pair, NULL, NULL, 1);
    region_create(&region, 100);
    refused(weft_write(ASKER, NULL, 1, region.key, 0, NULL, &request), -EINVAL, "no memory to write from");
    refused(weft_read(ASKER, data, UINT64_MAX, region.key, 0, NULL, &request), -EINVAL, "a length that wraps");
    refused(weft_write(ASKER, data, 1, region.key, UINT64_MAX, NULL, &request), -EINVAL, "a place that wraps");
    refused(weft_write(ASKER, data, 1, region.key, 0, &options, &request), -EINVAL, "a notification of nothing");
    options.flags = WEFT_ANY_TAG;
    refused(weft_read(ASKER, data, 1, region.key, 0, &options, &request), -EINVAL, "a flag that means nothing here");
    refused(weft_write_list(ASKER, data, &far, 1, region.key, NULL, &request), -EINVAL, "a piece that wraps");
    refused(weft_write_list(ASKER, data, NULL, 1, region.key, NULL, &request), -EINVAL, "no pieces");
    refused(weft_read_list(ASKER, data, &far, (uint64_t)1 << 40, region.key, NULL, &request), -E2BIG, "too many");
    LOOP_CHECK(weft_read_list(ASKER, NULL, NULL, 0, region.key, NULL, &request) == 0, "an empty list is allowed");
    loop_done(request, 0, 0);
    region_destroy(&region);
    loop_pair_destroy(&pair);
}

/* Memory that peers may only read, only write, or not touch: the rest is refused, and counted; nothing is written. */
static void no_more_than_allowed(void)
{
    /* The second half is written and the first one read: a write may land while the owner's thread, whose bytes have
     * been read long ago, is still about to take the lock by which we meet it. */
    enum { LENGTH = 200000 };
    const struct weft_piece to[2] = {{0, LENGTH, 100}, {100, LENGTH + 1000, 100}};
    const struct weft_piece from[2] = {{0, 0, 100}, {100, 1000, 100}};
    struct loop_buffer data;
    struct weft_error err;

    loop_pair_create(&pair, NULL, NULL, 2);
    loop_buffer_create(&data, LOOP_NEAR, LENGTH);
    for (uint32_t access = 0; access < 4; access++) {
        int write = access & WEFT_REMOTE_WRITE ? 0 : -EACCES, read = access & WEFT_REMOTE_READ ? 0 : -EACCES;
        uint64_t before = weft_peer_denied(pair.node[1].peer);
        struct weft_request *request = NULL;
        struct region region = {0};
        loop_note("access %u", access);
        loop_buffer_create(&region.buffer, LOOP_FAR, 2 * LENGTH);
        loop_set(region.buffer.data, 2 * LENGTH, LOOP_POISON);
        loop_set(data.data, LENGTH, 7);
        LOOP_CALL(
            weft_register_for(pair.node[1].context, region.buffer.data, 2 * LENGTH, access, &region.registration, &err),
            &err);
        region.key = weft_registration_key(region.registration);
        for (int i = 0; i < 2; i++) {
            uint64_t size = i == 0 ? 100 : LENGTH;
            loop_done(read_from(&region, data.data, size, 0, NULL), read, read == 0 ? size : 0);
            loop_done(write_to(&region, data.data, size, LENGTH, NULL), write, write == 0 ? size : 0);
        }
        LOOP_CHECK(weft_write_list(ASKER, data.data, to, 2, region.key, NULL, &request) == 0, "list");
        loop_done(request, write, write == 0 ? 200 : 0);
        LOOP_CHECK(weft_read_list(ASKER, data.data, from, 2, region.key, NULL, &request) == 0, "list");
        loop_done(request, read, read == 0 ? 200 : 0);
        loop_done(write_to(&region, data.data, 0, 0, NULL), access ? 0 : -EACCES, 0);
        loop_done(read_from(&region, data.data, 0, 0, NULL), access ? 0 : -EACCES, 0);
        meet_the_owner();
        if (write < 0)
            LOOP_CHECK(loop_differs(region.buffer.data, 2 * LENGTH, LOOP_POISON) < 0, "something was written");
        uint64_t denied = (write < 0 ? 3u : 0u) + (read < 0 ? 3u : 0u) + (access ? 0u : 2u);
        LOOP_CHECK(weft_peer_denied(pair.node[1].peer) == before + denied, "%d refusals were counted, not %d",
                   (int)(weft_peer_denied(pair.node[1].peer) - before), (int)denied);
        region_destroy(&region);
    }
    struct weft_registration *none = NULL;
    LOOP_CHECK(weft_register_for(pair.node[1].context, &err, 1, 4, &none, &err) == -EINVAL && !none, "access 4");
    loop_buffer_unmap(&data);
    loop_pair_destroy(&pair);
}

/* Its text names what was asked for. */
static void ends_saying(struct weft_request *request, int status, const char *words, uint64_t key)
{
    struct weft_completion completion = loop_end(request);
    char text[32];
    snprintf(text, sizeof text, " 0x%llx,", (unsigned long long)key);
    LOOP_CHECK(completion.status == status && strstr(completion.text, words) && strstr(completion.text, text), "%d: %s",
               completion.status, completion.text);
}

/* A wrong key or place writes nothing, reads nothing, and notifies nobody; what follows works. */
static void wrong_keys_and_places(void)
{
    struct region region;
    struct loop_buffer data;
    char note[8];
    struct weft_options options = {.flags = WEFT_NOTIFY, .notify_tag = 9, .notify_data = "no", .notify_length = 2};
    struct weft_piece pieces[2] = {{0, 0, 100}, {100, 300000, 100}};
    struct weft_request *request = NULL;

    loop_pair_create(&pair, NULL, NULL, 2);
    region_create(&region, 300000);
    loop_buffer_create(&data, LOOP_NEAR, 300001);
    loop_set(data.data, data.size, LOOP_POISON);
    struct weft_request *never = receive_note(note, sizeof note);
    loop_done(write_to(&region, data.data, 300001, 0, &options), -ERANGE, 0);
    loop_done(write_to(&region, data.data, 1, 300000, &options), -ERANGE, 0);
    ends_saying(read_from(&region, data.data, 300000, 1, &options), -ERANGE,
                "read of 300000 bytes from offset 1 of key", region.key);
    region.key += 1;
    ends_saying(write_to(&region, data.data, 3, 7, &options), -EACCES, "write of 3 bytes to offset 7 of key",
                region.key);
    loop_done(write_to(&region, data.data, 300000, 0, &options), -EACCES, 0);
    loop_done(read_from(&region, data.data, 10, 0, &options), -EACCES, 0);
    loop_done(write_to(&region, data.data, 0, 0, &options), -EACCES, 0);
    region.key -= 1;
    LOOP_CHECK(weft_write_list(ASKER, data.data, pieces, 2, region.key, &options, &request) == 0, "list");
    ends_saying(request, -ERANGE, "write of 200 bytes in 2 pieces to key", region.key);
    meet_the_owner();
    LOOP_CHECK(loop_differs(region.buffer.data, region.buffer.size, LOOP_POISON) < 0, "something was written");
    LOOP_CHECK(loop_differs(data.data, data.size, LOOP_POISON) < 0, "something was read");
    struct weft_completion completion;
    LOOP_CHECK(weft_test(never, &completion) == 0, "a notification came of what failed: %s", completion.text);
    options.notify_tag = 10;
    loop_done(write_to(&region, data.data, 10, 0, &options), 0, 10);
    completion = loop_end(never);
    LOOP_CHECK(completion.status == 0 && completion.tag == 10, "the wrong notification");
    LOOP_CHECK(weft_peer_denied(pair.node[1].peer) == 8, "%d refusals were counted",
               (int)weft_peer_denied(pair.node[1].peer));
    LOOP_CHECK(weft_peer_denied(pair.node[0].peer) == 0, "refusals were counted at the asker");
    region_destroy(&region);
    loop_buffer_unmap(&data);
    loop_pair_destroy(&pair);
}

/* Ends with one of them; what it ends with is told. */
static int ended(struct weft_request *request, int a, int b)
{
    struct weft_completion completion = loop_end(request);
    LOOP_CHECK(completion.status == a || completion.status == b, "status %d (%s)", completion.status, completion.text);
    return completion.status;
}

/* The owner takes the memory away while it is being written and read: afterwards nobody touches it. */
static void registration_ends_under_way(void)
{
    enum { SIZE = 2 << 20, COUNT = 6 };
    struct loop_buffer source;
    struct weft_request *requests[COUNT];

    loop_buffer_create(&source, LOOP_NEAR, (size_t)COUNT * SIZE);
    for (int round = 0; round < 6; round++) {
        struct region region;
        loop_pair_create(&pair, round % 2 ? "channels=4" : "channels=1 chunk=64K", NULL, 2);
        region_create(&region, (size_t)COUNT * SIZE);
        for (size_t i = 0; i < COUNT; i++) {
            size_t at = i * SIZE; /* each has bytes of its own on both sides */
            requests[i] = i % 2 ? read_from(&region, source.data + at, SIZE, at, NULL)
                                : write_to(&region, source.data + at, SIZE, at, NULL);
        }
        int first = round / 2; /* that many have ended before */
        for (int i = 0; i < first; i++)
            loop_done(requests[i], 0, SIZE);
        region_destroy(&region); /* and unmapped: a late touch ends the process */
        for (int i = first; i < COUNT; i++)
            ended(requests[i], 0, -EACCES);
        loop_exchange(ASKER, OWNER, 100000, 1);
        loop_pair_destroy(&pair);
    }
    loop_buffer_unmap(&source);
}

static void cancelled_under_way(void)
{
    enum { SIZE = 2 << 20, COUNT = 12 };
    struct region region;
    struct loop_buffer memory[COUNT];
    struct weft_request *requests[COUNT];
    char note[32];

    loop_pair_create(&pair, "channels=2 chunk=64K", NULL, 2);
    region_create(&region, (size_t)COUNT * SIZE);
    struct weft_options options = {.flags = WEFT_NOTIFY, .notify_data = "done", .notify_length = 4};
    for (int i = 0; i < COUNT; i++) {
        loop_buffer_create(&memory[i], LOOP_NEAR, SIZE);
        size_t at = (size_t)i * SIZE;
        requests[i] = i % 2 ? read_from(&region, memory[i].data, SIZE, at, i % 3 ? &options : NULL)
                            : write_to(&region, memory[i].data, SIZE, at, i % 3 ? &options : NULL);
    }
    for (int i = COUNT; i-- > 0;) {
        weft_cancel(requests[i]);
        ended(requests[i], 0, -ECANCELED);
        loop_buffer_unmap(&memory[i]); /* a late touch ends the process */
    }
    struct weft_request *request = receive_note(note, sizeof note);
    loop_done(write_to(&region, note, sizeof note, 0, &(struct weft_options){.timeout_ms = 10000}), 0, sizeof note);
    weft_cancel(request);
    ended(request, 0, -ECANCELED);
    loop_exchange(ASKER, OWNER, 100000, 1);
    region_destroy(&region);
    loop_pair_destroy(&pair);
}

/* The owner closes the connection while operations are under way, or before they are asked for. */
static void closed_under_way(void)
{
    enum { SIZE = 4 << 20 };
    struct region region;
    struct loop_buffer memory;
    struct weft_error err;

    for (int round = 0; round < 4; round++) {
        struct weft_connection *ends[2];
        loop_pair_create(&pair, "channels=2 chunk=64K", NULL, 2);
        region_create(&region, (size_t)3 * SIZE);
        loop_buffer_create(&memory, LOOP_NEAR, (size_t)3 * SIZE);
        loop_connection(&pair, 0, ends);
        struct weft_request *requests[3] = {NULL};
        struct weft_piece piece[2] = {{2 * SIZE, 2 * SIZE, 10}, {2 * SIZE + 20, 2 * SIZE + 30, 1000000}};
        LOOP_CHECK(weft_write(ends[0], memory.data, SIZE, region.key, 0, NULL, &requests[0]) == 0, "write");
        LOOP_CHECK(weft_read(ends[0], memory.data + SIZE, SIZE, region.key, SIZE, NULL, &requests[1]) == 0, "read");
        LOOP_CHECK(weft_write_list(ends[0], memory.data, piece, 2, region.key, NULL, &requests[2]) == 0, "list");
        int first = round % 2;
        LOOP_CALL(weft_connection_close(ends[first], 20000, &err), &err);
        for (int i = 0; i < 3; i++)
            ended(requests[i], 0, first == 1 ? -ESHUTDOWN : 0);
        LOOP_CALL(weft_connection_close(ends[!first], 20000, &err), &err);
        region_destroy(&region);
        loop_buffer_unmap(&memory);
        loop_pair_destroy(&pair);
    }
}

/* The peer is gone in the middle: every request ends, its memory is free. `closer`: 0 asks, 1 owns the memory. */
static void close_peer_under_way(int closer)
{
    enum { SIZE = 2 << 20, COUNT = 6 };
    struct region region;
    struct loop_buffer memory;
    struct weft_request *requests[COUNT];
    struct weft_error err;

    loop_pair_create(&pair, "channels=2 chunk=64K", NULL, 2);
    region_create(&region, (size_t)COUNT * SIZE);
    loop_buffer_create(&memory, LOOP_NEAR, (size_t)COUNT * SIZE);
    for (size_t i = 0; i < COUNT; i++) {
        size_t at = i * SIZE; /* each has bytes of its own on both sides */
        requests[i] = i % 2 ? read_from(&region, memory.data + at, SIZE, at, NULL)
                            : write_to(&region, memory.data + at, SIZE, at, NULL);
    }
    LOOP_CALL(weft_peer_close(pair.node[closer].peer, 20000, &err), &err);
    pair.node[closer].peer = NULL;
    pair.node[closer].connection = NULL;
    for (int i = 0; i < COUNT; i++)
        ended(requests[i], 0, -ESHUTDOWN);
    loop_buffer_unmap(&memory);
    region_destroy(&region);
    loop_pair_destroy(&pair);
}

static void peer_closed_under_way(void)
{
    close_peer_under_way(0);
}

static void owner_closes_under_way(void)
{
    close_peer_under_way(1);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(sizes_there_and_back, 20),
        LOOP_CASE(many_among_messages, 20),
        LOOP_CASE(notifications_follow_their_data, 20),
        LOOP_CASE(notifications_of_all_kinds, 20),
        LOOP_CASE(notifications_before_the_close, 40),
        LOOP_CASE(lists_there_and_back, 30),
        LOOP_CASE(list_of_a_hundred_thousand, 30),
        LOOP_CASE(lists_at_once, 20),
        LOOP_CASE(ends_in_a_queue, 20),
        LOOP_CASE(bad_arguments, 20),
        LOOP_CASE(no_more_than_allowed, 30),
        LOOP_CASE(wrong_keys_and_places, 20),
        LOOP_CASE(registration_ends_under_way, 30),
        LOOP_CASE(cancelled_under_way, 20),
        LOOP_CASE(closed_under_way, 30),
        LOOP_CASE(peer_closed_under_way, 20),
        LOOP_CASE(owner_closes_under_way, 20),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
