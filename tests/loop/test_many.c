/* test_many.c: many contexts, threads, requests, endpoints and connections at once; the number of threads the library
 * starts depends on none of them. */
#include "loop_support.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static struct loop_pair pair;

static void contexts_in_one_process(void)
{
    enum { NODES = 4 };
    struct loop_node node[NODES][NODES]; /* [i][j]: i's end towards j; context and endpoint stand in [i][i] */
    int port[NODES];
    struct weft_error err = {0};

    memset(node, 0, sizeof(node));
    for (int i = 0; i < NODES; i++) {
        loop_node_start(&node[i][i], i % 2 ? "channels=2" : "chunk=16K window=3", 2);
        port[i] = loop_node_listen(&node[i][i]);
    }
    for (int i = 0; i < NODES; i++) {
        for (int j = i + 1; j < NODES; j++) {
            loop_note("node %d to node %d", i, j);
            node[i][j] = (struct loop_node){.context = node[i][i].context, .endpoint = node[i][i].endpoint};
            node[j][i] = (struct loop_node){.context = node[j][j].context, .endpoint = node[j][j].endpoint};
            loop_node_connect(&node[i][j], port[j]);
            loop_node_accept(&node[j][i]);
            loop_node_open(&node[i][j]);
            loop_node_take(&node[j][i]);
        }
    }
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < NODES; i++)
            for (int j = i + 1; j < NODES; j++)
                loop_exchange(node[i][j].connection, node[j][i].connection, 300001, (uint64_t)round);
    }
    for (int i = 0; i < NODES; i++) {
        for (int j = 0; j < NODES; j++)
            if (i != j)
                LOOP_CALL(weft_connection_close(node[i][j].connection, LOOP_WAIT_MS, &err), &err);
    }
    for (int i = 0; i < NODES; i++)
        loop_node_stop(&node[i][i]);
}

/* One thread that posts and waits on both ends of its connection, with its own tags. */
struct load {
    pthread_t thread;
    struct weft_connection *end[2];
    uint64_t tag;
    int rounds;
};

static struct weft_completion end_by_testing(struct weft_request *request)
{
    struct weft_completion completion;
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;

    while (!weft_test(request, &completion))
        LOOP_CHECK(loop_now_ms() < limit, "testing does not end");
    return completion;
}

/* A message each way; each side waits for whichever of its two requests ends first. */
static void load_both_ways(struct load *load, int round, size_t size)
{
    struct loop_message message[2];
    struct weft_request *own[2][2]; /* by side: what it receives, what it sends */
    struct weft_completion completion;

    for (int side = 0; side < 2; side++) {
        loop_message_create(&message[side], size, load->tag * 100000 + (uint64_t)round + (uint64_t)side * 7);
        own[side][0] = loop_recv(load->end[side], message[side].sink.data, size, load->tag);
    }
    struct weft_request *mixed[2] = {own[0][0], own[1][0]}; /* nothing has been sent: neither has ended */
    LOOP_CHECK(weft_wait_any(mixed, 2, 0, NULL, &completion) == -EINVAL, "a wait for requests of two contexts");
    for (int side = 0; side < 2; side++)
        own[side][1] = loop_send(load->end[side], message[!side].source.data, size, load->tag);
    for (int left = 4; left > 0; left--) {
        int side = left % 2, index = -1;
        LOOP_CHECK(weft_wait_any(own[side], 2, LOOP_WAIT_MS, &index, &completion) == 0, "weft_wait_any");
        LOOP_CHECK(completion.status == 0, "%s", completion.text);
        own[side][index] = NULL;
    }
    for (int side = 0; side < 2; side++) {
        loop_message_verify(&message[side]);
        loop_message_destroy(&message[side]);
    }
}

static void load_round(struct load *load, int round)
{
    static const size_t sizes[] = {8, 1500, 9000, 70000, 0, 400000, 33};
    size_t size = sizes[((size_t)round + load->tag) % 7];
    int from = round % 2;
    struct loop_message message;
    struct weft_request *both[2];
    struct weft_completion completion;

    if (round % 3 == 2) {
        load_both_ways(load, round, size);
        return;
    }
    loop_message_create(&message, size, load->tag * 100000 + (uint64_t)round);
    both[0] = loop_recv(load->end[!from], message.sink.data, size, load->tag);
    both[1] = loop_send(load->end[from], message.source.data, size, load->tag);
    if (round % 3 == 1) {
        completion = end_by_testing(both[0]);
        LOOP_CHECK(completion.status == 0 && completion.tag == load->tag, "%s", completion.text);
        both[0] = NULL;
    }
    loop_done(both[1], 0, size);
    if (both[0])
        loop_done(both[0], 0, size);
    loop_message_verify(&message);
    loop_message_destroy(&message);
}

static void *run_load(void *arg)
{
    struct load *load = arg;

    for (int round = 0; round < load->rounds; round++)
        load_round(load, round);
    return NULL;
}

static void run_threads(const char *settings, bool same_connection)
{
    enum { THREADS = 8 };
    struct load load[THREADS];
    struct weft_connection *ends[THREADS][2];

    loop_note("%s, %s", settings, same_connection ? "one connection" : "a connection each");
    loop_pair_create(&pair, settings, NULL, 2);
    for (int i = 0; i < THREADS; i++) {
        if (i == 0 || !same_connection)
            loop_connection(&pair, i % 2, ends[i]);
        struct weft_connection **end = ends[same_connection ? 0 : i];
        load[i] = (struct load){.end = {end[0], end[1]}, .tag = (uint64_t)i, .rounds = LOOP_COUNT(300, 40)};
    }
    for (int i = 0; i < THREADS; i++)
        LOOP_CHECK(pthread_create(&load[i].thread, NULL, run_load, &load[i]) == 0, "pthread_create");
    for (int i = 0; i < THREADS; i++)
        pthread_join(load[i].thread, NULL);
    for (int i = 0; i < (same_connection ? 1 : THREADS); i++)
        loop_connection_end(ends[i]);
    loop_pair_destroy(&pair);
}

static void threads_with_a_connection_each(void)
{
    loop_needs_kernel("threads");
    run_threads("channels=2 chunk=64K", false);
    run_threads("channels=1 requests=64 small_pool=64K unexpected=64K", false);
    run_threads("workers=split spin_us=0", false);
}

static void threads_on_one_connection(void)
{
    loop_needs_kernel("threads");
    run_threads("channels=2 chunk=64K", true);
    run_threads("channels=1 introductions=8 spin_us=1000", true);
}

/* A thread sleeps in a wait; another one's progress must wake it, and the workers alone must suffice. */
static void *sleep_in_wait(void *request)
{
    loop_done(request, 0, 100);
    return NULL;
}

static void waits_are_woken(void)
{
    enum { THREADS = 6 };
    pthread_t thread[THREADS];
    struct loop_message message[THREADS];

    loop_needs_kernel("threads");
    loop_pair_create(&pair, NULL, NULL, 1);
    for (int round = 0; round < LOOP_COUNT(50, 10); round++) {
        for (uint64_t i = 0; i < THREADS; i++) {
            loop_message_create(&message[i], 100, i);
            message[i].recv = loop_recv(pair.node[1].connection, message[i].sink.data, 100, i);
            LOOP_CHECK(pthread_create(&thread[i], NULL, sleep_in_wait, message[i].recv) == 0, "pthread_create");
        }
        loop_sleep_ms(round % 5);
        for (uint64_t i = THREADS; i-- > 0;)
            message[i].send = loop_send(pair.node[0].connection, message[i].source.data, 100, i);
        for (uint64_t i = 0; i < THREADS; i++) {
            pthread_join(thread[i], NULL);
            loop_done(message[i].send, 0, 100);
            loop_message_verify(&message[i]);
            loop_message_destroy(&message[i]);
        }
    }
    loop_pair_destroy(&pair);
}

static void ten_thousand_requests(bool receives_first)
{
    enum { MANY = LOOP_COUNT(10000, 2500), SIZE = 120 };
    static unsigned char source[MANY][SIZE], sink[MANY][SIZE];
    static struct weft_request *send[MANY], *recv[MANY];

    loop_note("receives %s", receives_first ? "first" : "last");
    loop_pair_create(&pair, NULL, NULL, 2);
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < MANY; i++) {
            if ((pass == 0) == receives_first) {
                recv[i] = loop_recv(pair.node[1].connection, sink[i], SIZE, i % 100);
            } else {
                loop_fill(source[i], SIZE, i);
                send[i] = loop_send(pair.node[0].connection, source[i], SIZE, i % 100);
            }
        }
    }
    for (int i = MANY; i-- > 0;)
        loop_done(recv[i], 0, SIZE);
    for (uint64_t i = 0; i < MANY; i++) {
        loop_done(send[i], 0, SIZE);
        LOOP_CHECK(loop_wrong(sink[i], SIZE, i) < 0, "message %llu is wrong", (unsigned long long)i);
    }
    loop_pair_destroy(&pair);
}

static void ten_thousand_outstanding(void)
{
    ten_thousand_requests(true);
    ten_thousand_requests(false);
}

/* At the limit a post says -EAGAIN and changes nothing: what was posted completes, what was refused can be tried again.
 */
static void requests_run_out(void)
{
    enum { LIMIT = 64 };
    struct loop_message message[LIMIT + 1];
    struct weft_request *request = NULL;

    loop_pair_create(&pair, "requests=64", "requests=1000", 2);
    for (int round = 0; round < 3; round++) {
        int posted = 0, rc = 0;
        for (uint64_t i = 0; i <= LIMIT && rc == 0; i++) {
            struct loop_message *next = &message[i];
            loop_message_create(next, i % 3 ? 500 : 200000, i);
            rc = weft_recv(pair.node[0].connection, next->sink.data, next->sink.size, i, NULL, &next->recv);
            posted += rc == 0;
        }
        LOOP_CHECK(rc == -EAGAIN && posted == LIMIT, "%d posted, then %d", posted, rc);
        rc = weft_send(pair.node[0].connection, "x", 1, 0, NULL, &request);
        LOOP_CHECK(rc == -EAGAIN && request == NULL, "a send beyond the limit: %d", rc);
        for (uint64_t i = 0; i < LIMIT; i++)
            message[i].send = loop_send(pair.node[1].connection, message[i].source.data, message[i].source.size, i);
        for (int i = 0; i < LIMIT; i++) {
            loop_done(message[i].recv, 0, message[i].sink.size);
            loop_done(message[i].send, 0, message[i].sink.size);
            loop_message_verify(&message[i]);
        }
        for (int i = 0; i <= LIMIT; i++)
            loop_message_destroy(&message[i]);
    }
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 5);
    loop_pair_destroy(&pair);
}

/* Every endpoint of one node is connected with every endpoint of the other. */
static void threads_do_not_grow_with_endpoints(void)
{
    enum { WIDE = LOOP_COUNT(64, 16) };
    static struct weft_endpoint *endpoint[2][WIDE];
    static struct weft_connection *ends[WIDE * WIDE][2];
    struct weft_error err = {0};

    loop_pair_create(&pair, "channels=2", NULL, 2);
    struct loop_node *node = pair.node;
    int threads = loop_threads(), fds = loop_fds();
    for (int side = 0; side < 2; side++)
        for (uint32_t i = 0; i < WIDE; i++)
            LOOP_CALL(weft_endpoint_create(node[side].context, i + 1, &endpoint[side][i], &err), &err);
    for (uint32_t i = 0; i < WIDE * WIDE; i++) {
        struct weft_endpoint *from = endpoint[0][i / WIDE], *to = endpoint[1][i % WIDE];
        loop_note("connection %u", i);
        LOOP_CALL(weft_connection_open(from, node[0].peer, i % WIDE + 1, LOOP_WAIT_MS, &ends[i][0], &err), &err);
        LOOP_CALL(weft_connection_accept(to, node[1].peer, i / WIDE + 1, LOOP_WAIT_MS, &ends[i][1], &err), &err);
    }
    for (uint32_t i = 0; i < WIDE * WIDE; i += 7) {
        loop_note("exchange on connection %u", i);
        loop_exchange(ends[i][0], ends[i][1], i % 2 ? 100 : 9000, i);
    }
    LOOP_CHECK(loop_threads() == threads, "%d threads, %d before the connections", loop_threads(), threads);
    LOOP_CHECK(loop_fds() == fds, "%d descriptors, %d before the connections", loop_fds(), fds);
    for (uint32_t i = 0; i < WIDE * WIDE; i += 16) /* the end of the session closes the others */
        loop_connection_end(ends[i]);
    loop_pair_destroy(&pair);
}

/* However long the array was in the last call, each request is found once, also behind NULLs and the end of a ring. */
static void waits_for_any_of_some(void)
{
    enum { COUNT = 9 };
    struct weft_request *requests[COUNT];
    struct weft_completion completion;
    char bytes[COUNT];
    int left = COUNT, index;

    loop_pair_create(&pair, NULL, NULL, 1);
    for (int i = 0; i < COUNT; i++)
        requests[i] = loop_recv(pair.node[1].connection, &bytes[i], 1, (uint64_t)i);
    for (int i = 0; i < COUNT; i++)
        loop_done(loop_send(pair.node[0].connection, "x", 1, (uint64_t)i), 0, 1);
    for (int round = 0; left > 0; round++) {
        int count = 1 + round * 4 % COUNT;
        int rc = weft_wait_any(requests, count, LOOP_WAIT_MS, &index, &completion);
        if (rc == -ENOENT)
            continue;
        LOOP_CHECK(rc == 0 && index >= 0 && index < count && requests[index], "round %d: %d, %d of %d", round, rc,
                   index, count);
        LOOP_CHECK(completion.status == 0 && completion.tag == (uint64_t)index, "%d has tag %llu", index,
                   (unsigned long long)completion.tag);
        requests[index] = NULL;
        left--;
    }
    LOOP_CHECK(weft_wait_any(requests, COUNT, 0, &index, &completion) == -ENOENT, "all have been taken");
    LOOP_CHECK(weft_wait_any(requests, 0, 0, &index, &completion) == -ENOENT, "of none");
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(contexts_in_one_process, 20),   LOOP_CASE(threads_with_a_connection_each, 60),
        LOOP_CASE(threads_on_one_connection, 60), LOOP_CASE(waits_are_woken, 20),
        LOOP_CASE(waits_for_any_of_some, 20),     LOOP_CASE(ten_thousand_outstanding, 40),
        LOOP_CASE(requests_run_out, 20),          LOOP_CASE(threads_do_not_grow_with_endpoints, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
