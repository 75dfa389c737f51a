/* test_queue.c: requests that end in a queue, and the descriptor of it: each request comes out once, in the order of
 * the ends, and whoever sleeps on the descriptor is never left asleep. Nobody here drives but the library's own threads
 * and weft_queue_poll(). */
#include "loop_support.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define AT_ONCE 16
#define LARGE (300 * 1024 + 7)

static struct loop_pair pair;
#define LEFT (pair.node[0].connection)
#define RIGHT (pair.node[1].connection)

/* ------------------------------------------------------------------------------------------- helpers */

static struct weft_queue *queue_of(int side)
{
    struct weft_queue *queue = NULL;
    struct weft_error err = {0};

    LOOP_CALL(weft_queue_create(pair.node[side].context, &queue, &err), &err);
    return queue;
}

static struct weft_request *post(struct weft_connection *connection, struct weft_queue *queue, bool send, void *data,
                                 size_t size, uint64_t tag, void *user_data)
{
    struct weft_options options = {.queue = queue, .user_data = user_data};
    struct weft_request *request = NULL;
    int rc = send ? weft_send(connection, data, size, tag, &options, &request)
                  : weft_recv(connection, data, size, tag, &options, &request);

    LOOP_CHECK(rc == 0, "posting %zu bytes, tag %llu: %s", size, (unsigned long long)tag, strerror(-rc));
    return request;
}

static void check_completion(const struct weft_completion *completion)
{
    LOOP_CHECK(completion->status <= 0 && completion->reserved == 0, "status %d", completion->status);
    LOOP_CHECK((completion->status == 0) == (completion->text[0] == '\0'), "status %d has the text '%s'",
               completion->status, completion->text);
}

/* Sleeps on the descriptor and takes what is there, until `count` have come: all of status `status`. */
static void take_all(struct weft_queue *queue, int count, int status)
{
    struct weft_completion completions[AT_ONCE];
    int fd = weft_completion_fd(queue);

    for (int taken = 0; taken < count;) {
        loop_note("%d of %d taken", taken, count);
        LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "nothing ends any more");
        int now = weft_queue_poll(queue, completions, AT_ONCE);
        LOOP_CHECK(now >= 0, "weft_queue_poll: %s", strerror(-now));
        for (int i = 0; i < now; i++) {
            check_completion(&completions[i]);
            LOOP_CHECK(completions[i].status == status, "status %d (%s), expected %d", completions[i].status,
                       completions[i].text, status);
        }
        taken += now;
    }
    LOOP_CHECK(weft_queue_poll(queue, completions, AT_ONCE) == 0, "more has ended than was posted");
}

/* ------------------------------------------------------------------------------------------- an event loop */

#define ROUND 500

struct flight {
    struct loop_message message;
    size_t size;
    int sent, received;
};

static struct flight flights[ROUND];

static size_t size_of(int i)
{
    return i % 50 == 7 ? LARGE : i % 10 == 3 ? 70000 : (size_t)(i % 977);
}

/* One thread, two contexts, one epoll set: 2 * ROUND requests under way at once. */
static void run_round(struct weft_queue *queue[2], int set)
{
    struct weft_completion completions[AT_ONCE];
    int64_t last_ns[2] = {0, 0};

    for (int i = 0; i < ROUND; i++) {
        struct flight *flight = &flights[i];
        *flight = (struct flight){.size = size_of(i)};
        loop_message_create(&flight->message, flight->size, (uint64_t)i);
        post(RIGHT, queue[1], false, flight->message.sink.data, flight->size, (uint64_t)i, flight);
    }
    for (int i = ROUND - 1; i >= 0;
         i--) /* tag by tag the other way round: the order of the ends is not that of posting */
        post(LEFT, queue[0], true, flights[i].message.source.data, flights[i].size, (uint64_t)i, &flights[i]);
    for (int left = 2 * ROUND; left > 0;) {
        struct epoll_event events[2];
        loop_note("%d requests left", left);
        int ready = epoll_wait(set, events, 2, LOOP_WAIT_MS);
        if (ready < 0 && errno == EINTR) /* as in loop_readable() */
            continue;
        LOOP_CHECK(ready > 0, "the loop sleeps with %d requests under way", left);
        for (int e = 0; e < ready; e++) {
            int side = (int)events[e].data.u32, count;
            while ((count = weft_queue_poll(queue[side], completions, AT_ONCE)) > 0) {
                for (int i = 0; i < count; i++) {
                    struct flight *flight = completions[i].user_data;
                    check_completion(&completions[i]);
                    LOOP_CHECK(completions[i].status == 0, "status %d: %s", completions[i].status, completions[i].text);
                    LOOP_CHECK(completions[i].bytes == flight->size, "%llu bytes",
                               (unsigned long long)completions[i].bytes);
                    LOOP_CHECK(completions[i].tag == (uint64_t)(flight - flights), "another one's tag");
                    LOOP_CHECK(completions[i].completed_ns >= last_ns[side], "not in the order of the ends");
                    last_ns[side] = completions[i].completed_ns;
                    *(side ? &flight->received : &flight->sent) += 1;
                }
                left -= count;
            }
            LOOP_CHECK(count == 0, "weft_queue_poll: %s", strerror(-count));
        }
    }
    for (int i = 0; i < ROUND; i++) {
        LOOP_CHECK(flights[i].sent == 1 && flights[i].received == 1, "message %d came out %d and %d times", i,
                   flights[i].sent, flights[i].received);
        loop_message_verify(&flights[i].message);
        loop_message_destroy(&flights[i].message);
    }
}

static void event_loop(void)
{
    struct weft_queue *queue[2];
    int set = epoll_create1(EPOLL_CLOEXEC);

    loop_pair_create(&pair, NULL, NULL, 2);
    LOOP_CHECK(set >= 0, "epoll_create1: %s", strerror(errno));
    for (uint32_t side = 0; side < 2; side++) {
        queue[side] = queue_of((int)side);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = side};
        int rc = epoll_ctl(set, EPOLL_CTL_ADD, weft_completion_fd(queue[side]), &event);
        LOOP_CHECK(rc == 0, "epoll_ctl: %s", strerror(errno));
    }
    for (int round = 0; round < LOOP_COUNT(6, 2); round++)
        run_round(queue, set);
    LOOP_CHECK(!loop_readable(weft_completion_fd(queue[0]), 0) && !loop_readable(weft_completion_fd(queue[1]), 0),
               "an empty queue is readable");
    close(set);
    for (int side = 0; side < 2; side++)
        LOOP_CHECK(weft_queue_destroy(queue[side]) == 0, "the queue is not given up");
    loop_exchange(LEFT, RIGHT, LARGE, 1); /* waiting for single requests goes on beside it */
    loop_pair_destroy(&pair);
}

/* ------------------------------------------------------------------------------------------- the descriptor */

/* The descriptor of an empty queue may tell of work that is no request's, such as acknowledgements. A poll does that
 * work, so there is an end to it. */
static void falls_silent(struct weft_queue *queue)
{
    struct weft_completion completion;
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;

    while (loop_readable(weft_completion_fd(queue), 0)) {
        LOOP_CHECK(weft_queue_poll(queue, &completion, 1) == 0, "an empty queue holds a request");
        LOOP_CHECK(loop_now_ms() < limit, "an empty queue stays readable");
    }
}

/* Readable as long as something is in the queue, whenever the descriptor was asked for. */
static void level(void)
{
    struct weft_completion completions[4];
    char data[3] = {1, 2, 3}, sink[3];
    struct weft_request *recv[3];

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_queue *queue = queue_of(0), *watched = queue_of(0);
    int fd = weft_completion_fd(watched);
    for (int i = 0; i < 3; i++) {
        recv[i] = loop_recv(RIGHT, &sink[i], 1, 1);
        post(LEFT, watched, true, &data[i], 1, 1, &data[i]);
    }
    LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "three have ended, nothing is readable");
    for (int i = 0; i < 3; i++) {
        LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "%d are left, nothing is readable", 3 - i);
        LOOP_CHECK(weft_queue_poll(watched, completions, 1) == 1, "the %d. does not come out", i + 1);
        LOOP_CHECK(completions[0].user_data == &data[i], "not in their order");
        loop_done(recv[i], 0, 1);
    }
    falls_silent(queue);
    LOOP_CHECK(weft_queue_poll(watched, completions, 4) == 0, "a completion too many");
    falls_silent(queue);

    recv[0] = loop_recv(RIGHT, sink, 1, 1);
    post(LEFT, queue, true, data, 1, 1, NULL);
    loop_done(recv[0], 0, 1);
    LOOP_CHECK(loop_readable(weft_completion_fd(queue), LOOP_WAIT_MS), "what had ended before is not readable");
    LOOP_CHECK(weft_completion_fd(queue) != fd, "two queues share a descriptor");
    LOOP_CHECK(!loop_readable(fd, 0), "it is readable on the other queue as well");
    LOOP_CHECK(weft_queue_poll(queue, completions, 4) == 1 && !completions[0].user_data, "nothing comes out");
    LOOP_CHECK(weft_queue_destroy(queue) == 0 && weft_queue_destroy(watched) == 0, "destroying empty queues");
    loop_pair_destroy(&pair);
}

/* A queue without a descriptor is polled, and that makes the progress. */
static void polled(void)
{
    struct weft_completion completions[AT_ONCE];
    struct loop_message message;

    loop_pair_create(&pair, NULL, NULL, 2);
    struct weft_queue *queue[2] = {queue_of(0), queue_of(1)};
    for (uint64_t round = 0; round < 50; round++) {
        loop_message_create(&message, LARGE, round);
        post(RIGHT, queue[1], false, message.sink.data, LARGE, round, NULL);
        post(LEFT, queue[0], true, message.source.data, LARGE, round, NULL);
        int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
        for (int ended[2] = {0, 0}; !ended[0] || !ended[1];) {
            LOOP_CHECK(loop_now_ms() < limit, "round %llu does not end", (unsigned long long)round);
            for (int side = 0; side < 2; side++)
                ended[side] += weft_queue_poll(queue[side], completions, AT_ONCE);
        }
        loop_message_verify(&message);
        loop_message_destroy(&message);
    }
    LOOP_CHECK(weft_queue_destroy(queue[0]) == 0 && weft_queue_destroy(queue[1]) == 0, "destroying empty queues");
    loop_pair_destroy(&pair);
}

/* The owner of a descriptor computes and does not look: the library's own threads bring large messages all the same. */
static void nobody_looks(void)
{
    struct weft_completion completions[AT_ONCE];
    struct loop_message message;

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_queue *queue = queue_of(1);
    int fd = weft_completion_fd(queue);
    for (uint64_t round = 0; round < 20; round++) {
        loop_message_create(&message, 8 * LARGE, round);
        post(RIGHT, queue, false, message.sink.data, 8 * LARGE, round, &message);
        /* The send ends when the other side has taken all of it. */
        loop_done(loop_send(LEFT, message.source.data, 8 * LARGE, round), 0, 8 * LARGE);
        LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "a receive has ended, nothing is readable");
        int count;
        do
            count = weft_queue_poll(queue, completions, AT_ONCE);
        while (count == 0 && loop_readable(fd, LOOP_WAIT_MS));
        LOOP_CHECK(count == 1 && completions[0].user_data == &message, "%d came out", count);
        loop_message_verify(&message);
        loop_message_destroy(&message);
    }
    falls_silent(queue);
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "destroying an empty queue");
    loop_pair_destroy(&pair);
}

/* A loop that takes one completion for each time it wakes, and posts in between: also a send that ends as it is posted
 * is told by the descriptor, at once or soon. */
static void looks_only_once(void)
{
    enum { COUNT = 300 };
    struct weft_completion completion;
    static char data[COUNT], sink[COUNT];

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_queue *queue = queue_of(0);
    int fd = weft_completion_fd(queue);
    for (int i = 0; i < COUNT; i++) {
        data[i] = (char)i;
        struct weft_request *recv = loop_recv(RIGHT, &sink[i], 1, 1);
        post(LEFT, queue, true, &data[i], 1, 1, &data[i]);
        int count;
        do {
            LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "send %d has ended, nothing is readable", i);
            count = weft_queue_poll(queue, &completion, 1);
        } while (count == 0);
        LOOP_CHECK(completion.user_data == &data[i], "another one than send %d comes out", i);
        loop_done(recv, 0, 1);
    }
    LOOP_CHECK(memcmp(data, sink, COUNT) == 0, "wrong bytes");
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "destroying an empty queue");
    loop_pair_destroy(&pair);
}

/* How many descriptors the set behind `fd` has; 0: it is no set. */
static int members(int fd)
{
    char name[64], line[256];
    int count = 0;

    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(name, "r");
    LOOP_CHECK(file, "%s: %s", name, strerror(errno));
    while (fgets(line, sizeof line, file))
        count += strncmp(line, "tfd:", 4) == 0;
    fclose(file);
    return count;
}

/* The only queue that is watched has the engine's descriptor beside its own, however the workers are. Io_uring, which
 * LOOP_ENGINE names, has none; where the library chooses, callers get one that has. */
static void lent_to_the_only_one(void)
{
    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_queue *first = queue_of(0), *second = queue_of(0);
    int lent = getenv("LOOP_ENGINE") ? 0 : 2;
    int fd = weft_completion_fd(first);
    LOOP_CHECK(members(fd) == lent, "%d descriptors in the set of the only one, not %d", members(fd), lent);
    LOOP_CHECK(members(weft_completion_fd(second)) == lent / 2 && members(fd) == lent / 2,
               "the engine is lent, though two are watched");
    LOOP_CHECK(weft_queue_destroy(second) == 0, "destroying an empty queue");
    LOOP_CHECK(members(fd) == lent, "not lent again");
    LOOP_CHECK(weft_queue_destroy(first) == 0, "destroying an empty queue");
    loop_pair_destroy(&pair);
}

/* Descriptors come and go: with one the sleeper drives, with two the library's threads do, and none misses anything. */
static void one_descriptor_or_two(void)
{
    struct weft_completion completion;
    char data = 'd', sink;

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_queue *first = queue_of(1);
    int fd = weft_completion_fd(first);
    for (int round = 0; round < 50; round++) {
        struct weft_queue *second = round % 2 ? queue_of(1) : NULL, *used = round % 4 == 3 ? second : first;
        if (second)
            (void)weft_completion_fd(second);
        LOOP_CHECK(weft_completion_fd(first) == fd, "the descriptor of a queue changes");
        sink = 0;
        post(RIGHT, used, false, &sink, 1, 1, &sink);
        loop_done(loop_send(LEFT, &data, 1, 1), 0, 1);
        int count;
        do {
            LOOP_CHECK(loop_readable(weft_completion_fd(used), LOOP_WAIT_MS), "round %d: nothing is readable", round);
            count = weft_queue_poll(used, &completion, 1);
        } while (count == 0);
        LOOP_CHECK(completion.user_data == &sink && sink == data, "round %d: a wrong byte", round);
        if (second)
            LOOP_CHECK(weft_queue_destroy(second) == 0, "destroying an empty queue");
    }
    falls_silent(first);
    LOOP_CHECK(weft_queue_destroy(first) == 0, "destroying an empty queue");
    loop_pair_destroy(&pair);
}

/* ------------------------------------------------------------------------------------------- lost wake-ups */

/* Threads that sleep on one descriptor and take one completion at a time. */
struct sleepers {
    struct weft_queue *queue;
    int count; /* to be taken by all of them together */
    atomic_int taken;
    atomic_uchar *seen; /* by message */
    char *base;         /* user_data of message 0 */
};

static void *sleeper(void *arg)
{
    struct sleepers *sleepers = arg;
    struct weft_completion completion;
    int fd = weft_completion_fd(sleepers->queue);

    while (atomic_load(&sleepers->taken) < sleepers->count) {
        /* The limit is how the others learn that the last one has been taken. A wake-up that was lost is not made up
         * for: nothing is taken unless the descriptor says so. */
        if (!loop_readable(fd, 200))
            continue;
        int count = weft_queue_poll(sleepers->queue, &completion, 1);
        LOOP_CHECK(count >= 0, "weft_queue_poll: %s", strerror(-count));
        if (count == 0)
            continue; /* another thread was faster */
        check_completion(&completion);
        LOOP_CHECK(completion.status == 0, "status %d: %s", completion.status, completion.text);
        ptrdiff_t index = (char *)completion.user_data - sleepers->base;
        LOOP_CHECK(atomic_fetch_add(&sleepers->seen[index], 1) == 0, "%td came out twice", index);
        atomic_fetch_add(&sleepers->taken, 1);
    }
    return NULL;
}

/* A completion comes just when a sleeper has found the queue empty and is about to sleep: each time the next message is
 * sent as soon as the one before has been taken. `ahead` more are on their way. */
static void trickle(int threads, int ahead, int count)
{
    static atomic_uchar seen[2][8192];
    static char data[8192], sink[8192];
    struct sleepers sleepers[2];
    pthread_t thread[2][4];

    loop_note("%d threads, %d ahead", threads, ahead);
    memset(seen, 0, sizeof(seen));
    for (int side = 0; side < 2; side++) {
        sleepers[side] = (struct sleepers){.queue = queue_of(side), .count = count, .seen = seen[side]};
        sleepers[side].base = side ? sink : data;
        for (int i = 0; i < threads; i++)
            LOOP_CHECK(pthread_create(&thread[side][i], NULL, sleeper, &sleepers[side]) == 0, "no thread");
    }
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    for (int i = 0; i < count; i++) {
        data[i] = (char)i;
        post(RIGHT, sleepers[1].queue, false, &sink[i], 1, 1, &sink[i]);
        post(LEFT, sleepers[0].queue, true, &data[i], 1, 1, &data[i]);
        for (int side = 0; side < 2; side++)
            while (atomic_load(&sleepers[side].taken) < i - ahead)
                LOOP_CHECK(loop_now_ms() < limit, "side %d sleeps with %d of %d taken", side,
                           atomic_load(&sleepers[side].taken), i);
    }
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < threads; i++)
            pthread_join(thread[side][i], NULL);
        LOOP_CHECK(atomic_load(&sleepers[side].taken) == count, "%d taken", atomic_load(&sleepers[side].taken));
        falls_silent(sleepers[side].queue);
        LOOP_CHECK(weft_queue_destroy(sleepers[side].queue) == 0, "the queue is not given up");
    }
    LOOP_CHECK(memcmp(data, sink, (size_t)count) == 0, "wrong bytes");
}

static void nobody_is_left_asleep(void)
{
    loop_pair_create(&pair, NULL, NULL, 1);
    trickle(1, 0, LOOP_COUNT(3000, 300));
    trickle(1, 3, LOOP_COUNT(5000, 500));
    trickle(3, 0, LOOP_COUNT(1000, 200));
    trickle(4, 20, LOOP_COUNT(5000, 500));
    loop_pair_destroy(&pair);
}

/* Threads that wait for their own requests, and one that sleeps on a queue, of the same contexts. */
static void *waiter(void *arg)
{
    for (int i = 0; i < LOOP_COUNT(1000, 200); i++) {
        uint64_t tag = 1000 + (uint64_t)(uintptr_t)arg;
        char out = (char)i, in = 0;
        struct weft_request *recv = loop_recv(RIGHT, &in, 1, tag);
        loop_done(loop_send(LEFT, &out, 1, tag), 0, 1);
        loop_done(recv, 0, 1);
        LOOP_CHECK(in == out, "wrong byte");
    }
    return NULL;
}

static void beside_waiting_threads(void)
{
    pthread_t thread[3];

    loop_pair_create(&pair, NULL, NULL, 1);
    for (uintptr_t i = 0; i < 3; i++)
        LOOP_CHECK(pthread_create(&thread[i], NULL, waiter, (void *)i) == 0, "no thread");
    trickle(1, 1, LOOP_COUNT(2000, 300));
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    loop_pair_destroy(&pair);
}

/* ------------------------------------------------------------------------------------------- ends of other kinds */

static void misuse(void)
{
    struct weft_completion completion;
    struct weft_request *request = NULL;
    char byte = 0;

    loop_pair_create(&pair, NULL, NULL, 1);
    struct weft_queue *queue = queue_of(0), *other = queue_of(1);
    struct weft_options foreign = {.queue = other};
    LOOP_CHECK(weft_recv(LEFT, &byte, 1, 1, &foreign, &request) == -EINVAL, "the queue of another context");
    request = post(LEFT, queue, false, &byte, 1, 1, NULL);
    struct weft_request *both[2] = {NULL, request};
    int index;
    LOOP_CHECK(weft_test(request, &completion) == -EINVAL, "weft_test");
    LOOP_CHECK(weft_wait(request, -1, &completion) == -EINVAL, "weft_wait");
    LOOP_CHECK(weft_wait_any(both, 2, -1, &index, &completion) == -EINVAL, "weft_wait_any");
    LOOP_CHECK(weft_queue_poll(queue, &completion, 0) == -EINVAL, "no room");
    LOOP_CHECK(weft_queue_poll(queue, NULL, 1) == -EINVAL, "nowhere to put it");
    LOOP_CHECK(weft_queue_destroy(queue) == -EBUSY, "destroyed with a request under way");
    weft_cancel(request);
    LOOP_CHECK(weft_queue_destroy(queue) == -EBUSY, "destroyed with a request in it");
    take_all(queue, 1, -ECANCELED);
    struct weft_options wrong = {.queue = queue, .flags = 1u << 31};
    LOOP_CHECK(weft_recv(LEFT, &byte, 1, 1, &wrong, &request) == -EINVAL, "an unknown flag");
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "what was refused is still counted");
    LOOP_CHECK(weft_queue_destroy(other) == 0, "the other one");
    loop_exchange(LEFT, RIGHT, 100, 1);
    loop_pair_destroy(&pair);
}

/* Nobody drives and nothing arrives: deadlines come out of the queue all the same. */
static void deadlines_and_cancels(void)
{
    enum { COUNT = 20 };
    struct weft_request *request[COUNT];
    struct loop_buffer sink;

    loop_pair_create(&pair, NULL, NULL, 2);
    struct weft_queue *queue = queue_of(1);
    loop_buffer_create(&sink, LOOP_FAR, LARGE);
    struct weft_options options = {.queue = queue, .timeout_ms = 30, .user_data = &sink};
    weft_completion_fd(queue);
    for (uint64_t i = 0; i < COUNT; i++)
        LOOP_CHECK(weft_recv(RIGHT, sink.data, LARGE, i, &options, &request[i]) == 0, "posting");
    take_all(queue, COUNT, -ETIMEDOUT);
    for (uint64_t i = 0; i < COUNT; i++)
        request[i] = post(RIGHT, queue, false, sink.data, LARGE, i, NULL);
    for (int i = 0; i < COUNT; i++)
        weft_cancel(request[i]);
    take_all(queue, COUNT, -ECANCELED);
    loop_buffer_unmap(&sink);
    loop_exchange(LEFT, RIGHT, LARGE, 1);
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "the queue is not given up");
    loop_pair_destroy(&pair);
}

static void closing(void)
{
    char sink[8];

    loop_pair_create(&pair, NULL, NULL, 2);
    struct weft_queue *queue[2] = {queue_of(0), queue_of(1)};
    for (uint64_t i = 0; i < 8; i++) {
        post(LEFT, queue[0], false, &sink[i], 1, i, NULL);
        post(RIGHT, queue[1], false, &sink[i], 1, i, NULL);
    }
    struct weft_error err = {0};
    LOOP_CALL(weft_connection_close(LEFT, LOOP_WAIT_MS, &err), &err);
    LEFT = NULL;
    take_all(queue[0], 8, -ECANCELED);
    take_all(queue[1], 8, -ESHUTDOWN);
    LOOP_CALL(weft_connection_close(RIGHT, LOOP_WAIT_MS, &err), &err);
    loop_node_open(&pair.node[0]);
    loop_node_take(&pair.node[1]);
    for (uint64_t i = 0; i < 8; i++)
        post(RIGHT, queue[1], false, &sink[i], 1, i, NULL);
    LOOP_CALL(weft_peer_close(pair.node[0].peer, LOOP_WAIT_MS, &err), &err);
    pair.node[0].peer = NULL;
    LEFT = NULL;
    take_all(queue[1], 8, -ESHUTDOWN);
    LOOP_CHECK(weft_queue_destroy(queue[0]) == 0 && weft_queue_destroy(queue[1]) == 0, "destroying empty queues");
    loop_pair_destroy(&pair);
}

/* A context goes with requests under way, requests that nobody polled, and the queue. */
static void context_destroyed_around_it(void)
{
    struct loop_message own[4], other;
    char byte[4] = {0};

    int fds = loop_fds();
    for (int round = 0; round < 4; round++) {
        loop_note("round %d", round);
        loop_pair_create(&pair, "channels=1 chunk=64K window=4", NULL, 2);
        struct loop_node *leaver = &pair.node[round % 2], *stayer = &pair.node[!(round % 2)];
        struct weft_queue *queue = queue_of(round % 2), *rest = queue_of(!(round % 2));
        if (round < 2)
            weft_completion_fd(queue);
        for (uint64_t i = 0; i < 4; i++) {
            loop_message_create(&own[i], LARGE, i);
            post(leaver->connection, queue, i % 2, i % 2 ? own[i].source.data : own[i].sink.data, LARGE, i, NULL);
            post(leaver->connection, queue, true, &byte[i], 1, 1000, NULL);
        }
        loop_message_create(&other, LARGE, 9);
        post(stayer->connection, rest, false, other.sink.data, LARGE, 1, NULL);
        post(stayer->connection, rest, false, other.sink.data, LARGE, 77, NULL);
        loop_context_end(leaver->context);
        *leaver = (struct loop_node){0};
        for (int i = 0; i < 4; i++)
            loop_message_destroy(&own[i]);
        struct weft_completion completions[2];
        for (int taken = 0; taken < 2;) {
            LOOP_CHECK(loop_readable(weft_completion_fd(rest), LOOP_WAIT_MS), "%d of 2 have ended", taken);
            taken += weft_queue_poll(rest, completions, 2);
        }
        loop_message_destroy(&other);
        if (round % 2)
            LOOP_CHECK(weft_queue_destroy(rest) == 0, "the queue is not given up");
        loop_node_stop(stayer);
        LOOP_CHECK(loop_fds() == fds, "%d descriptors, %d before", loop_fds(), fds);
    }
}

/* ------------------------------------------------------------------------------------------- a killed peer */

static int victim(int in, int out, void *arg)
{
    struct loop_node node;
    struct loop_buffer source;

    (void)arg;
    loop_node_start(&node, "timeout=3", 2);
    loop_tell(out, (uint64_t)loop_node_listen(&node));
    loop_node_accept(&node);
    loop_node_take(&node);
    loop_buffer_create(&source, LOOP_NEAR, LARGE);
    for (uint64_t i = 0; i < 8; i++)
        loop_send(node.connection, source.data, LARGE, i);
    loop_tell(out, 1);
    loop_hear(in); /* killed here */
    return 1;
}

static void peer_killed(void)
{
    enum { COUNT = 40 };
    struct loop_child child;
    struct loop_node node;
    struct loop_buffer sink[COUNT];
    struct weft_queue *queue = NULL;
    struct weft_error err = {0};
    struct weft_completion completions[AT_ONCE];

    loop_child_start(&child, victim, NULL);
    int port = (int)loop_hear(child.in);
    loop_node_start(&node, "timeout=3", 2);
    loop_node_connect(&node, port);
    loop_node_open(&node);
    LOOP_CALL(weft_queue_create(node.context, &queue, &err), &err);
    int fd = weft_completion_fd(queue), whole = 0, failed = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        loop_buffer_create(&sink[i], LOOP_FAR, LARGE);
        post(node.connection, queue, false, sink[i].data, LARGE, i, &sink[i]);
    }
    loop_hear(child.in);
    loop_child_kill(&child);
    while (whole + failed < COUNT) {
        LOOP_CHECK(loop_readable(fd, LOOP_WAIT_MS), "%d of %d have ended", whole + failed, COUNT);
        int count = weft_queue_poll(queue, completions, AT_ONCE);
        for (int i = 0; i < count; i++) {
            check_completion(&completions[i]);
            loop_buffer_unmap(completions[i].user_data);
            whole += completions[i].status == 0;
            failed += completions[i].status < 0;
        }
    }
    LOOP_CHECK(whole <= 8, "%d messages came, 8 were sent", whole);
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "the queue is not given up");
    loop_node_stop(&node);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(event_loop, 30),
        LOOP_CASE(level, 20),
        LOOP_CASE(polled, 20),
        LOOP_CASE(nobody_looks, 20),
        LOOP_CASE(looks_only_once, 20),
        LOOP_CASE(lent_to_the_only_one, 10),
        LOOP_CASE(one_descriptor_or_two, 20),
        LOOP_CASE(nobody_is_left_asleep, 40),
        LOOP_CASE(beside_waiting_threads, 30),
        LOOP_CASE(misuse, 20),
        LOOP_CASE(deadlines_and_cancels, 20),
        LOOP_CASE(closing, 20),
        LOOP_CASE(context_destroyed_around_it, 20),
        LOOP_CASE(peer_killed, 30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
