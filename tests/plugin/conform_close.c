/* conform_close.c: cases of closing, also with requests under way. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "conform.h"

#define REQUESTS 8
#define SIZE ((size_t)1 << 20)
#define POISON 0x77

/* One side's requests that nobody awaits. */
static struct {
    struct link *link;
    bool sending;
    unsigned char *memory;
    void *mhandle;
    void *request[REQUESTS];
    int tests;      /* how often each is tested before the close */
    bool looked_at; /* each is tested once more after its memory was deregistered */
    bool awaited;   /* by the side that closes later, until each is done or an error */
    bool read_only; /* from then on: the plugin's own write is a fault */
} left;

static void *comm_of(void)
{
    return left.sending ? left.link->send : left.link->recv;
}

static void register_left(void *arg)
{
    (void)arg;
    MUST(net_reg(comm_of(), left.memory, REQUESTS * SIZE, NCCL_PTR_HOST, &left.mhandle));
}

static void post_left(void *arg)
{
    (void)arg;
    for (int i = 0; i < REQUESTS; i++) {
        void *data = left.memory + (size_t)i * SIZE;
        size_t size = SIZE;
        int tag = 1;
        enum nccl_result result = left.sending
                                      ? net_isend(comm_of(), data, size, tag, left.mhandle, &left.request[i])
                                      : net_irecv(comm_of(), 1, &data, &size, &tag, &left.mhandle, &left.request[i]);
        if (result != NCCL_SUCCESS) /* the other side may have closed already */
            return;
    }
    for (int turn = 0; turn < left.tests; turn++) {
        for (int i = 0; i < REQUESTS; i++) {
            bool done = false;
            if (left.request[i] && net_test(left.request[i], &done, NULL) != NCCL_SUCCESS)
                return;
            if (done)
                left.request[i] = NULL;
        }
    }
}

/* The memory is someone else's as soon as it is deregistered. */
static void deregister_left(void *arg)
{
    (void)arg;
    MUST(net_dereg(comm_of(), left.mhandle));
    memset(left.memory, POISON, REQUESTS * SIZE);
    if (left.read_only)
        mprotect(left.memory, REQUESTS * SIZE, PROT_READ);
}

/* What was not done is an error. */
static void look_at_left(void *arg)
{
    (void)arg;
    for (int i = 0; i < REQUESTS; i++) {
        bool done = false;
        if (left.request[i])
            CHECK(net_test(left.request[i], &done, NULL) != NCCL_SUCCESS || done,
                  "request %d is under way in memory that was deregistered", i);
    }
}

/* The other side has closed, perhaps in the middle of a message. */
static void await_left(void *arg)
{
    (void)arg;
    int64_t limit = now_ms() + CONFORM_LIMIT_MS;
    for (int i = 0; i < REQUESTS; i++) {
        bool done = !left.request[i];
        enum nccl_result result = NCCL_SUCCESS;
        while (!done && result == NCCL_SUCCESS) {
            result = net_test(left.request[i], &done, NULL);
            CHECK(now_ms() < limit, "the other side has closed, and request %d is neither done nor an error", i);
            sched_yield();
        }
        CHECK(done || result == NCCL_REMOTE_ERROR, "the other side has closed: result %d, not ncclRemoteError",
              (int)result);
        left.request[i] = NULL;
    }
}

static void close_left(void *arg)
{
    (void)arg;
    if (left.sending)
        MUST(net_close_send(left.link->send));
    else
        MUST(net_close_recv(left.link->recv));
    left.link->send = left.link->recv = NULL;
}

/* When NCCL aborts: memory first, then the comm; and between the two a moment for a write that comes late. */
static void abort_left(void)
{
    worker_run(&ranks[0].service, deregister_left, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    if (left.looked_at)
        worker_run(&ranks[0].progress, look_at_left, NULL);
    worker_run(&ranks[0].service, close_left, NULL);
}

/* `side` closes while requests of both sides are under way; the other one closes a while later. */
static void close_once(int side, int round)
{
    struct link *link = &links[mix(conform.seed, (uint64_t)round) % 2];
    if (link->from != conform.me && link->to != conform.me)
        return;
    left.link = link;
    left.sending = link->from == conform.me;
    left.tests = (int)(mix(conform.seed, (uint64_t)round + 1000) % 100);
    left.memory = mmap(NULL, REQUESTS * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(left.memory != MAP_FAILED, "no memory");
    left.read_only = round / 2 % 2; /* the kernel's write for it is seen below in the other rounds */
    memset(left.request, 0, sizeof left.request);
    int other = link->from == conform.me ? link->to : link->from;
    char word = 0;
    worker_run(&ranks[0].service, register_left, NULL);
    worker_run(&ranks[0].progress, post_left, NULL);
    if (side != conform.me)
        boot_receive(other, &word, 1);
    if (side != conform.me && left.awaited)
        worker_run(&ranks[0].progress, await_left, NULL);
    abort_left();
    if (side == conform.me) {
        boot_send(other, &word, 1);
        boot_receive(other, &word, 1);
    } else {
        boot_send(other, &word, 1);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* for a write that comes late */
    for (size_t i = 0; i < REQUESTS * SIZE; i++)
        CHECK(left.memory[i] == POISON, "byte %zu was written after its memory was deregistered", i);
    munmap(left.memory, REQUESTS * SIZE);
}

static void close_rounds(void)
{
    ranks_begin(1);
    for (int round = 0; round < conform.rounds / 5 + 2; round++) {
        links_add(0, 1, 0);
        links_add(1, 0, 0);
        links_add(0, 1, 0); /* goes on */
        links_add(1, 0, 0);
        links_open();
        close_once(round % 2, round);
        struct flow flows[2] = {{.link = &links[2], .messages = 20, .largest = 200000},
                                {.link = &links[3], .messages = 20, .largest = 200000}};
        if (conform.me < 2)
            flows_run(flows, 2);
        links_close();
    }
    ranks_end();
}

static void close_in_flight(void)
{
    left.looked_at = left.awaited = false;
    close_rounds();
}

static void deregister_in_flight(void)
{
    left.looked_at = true;
    left.awaited = false;
    close_rounds();
}

static void peer_closes(void)
{
    left.looked_at = false;
    left.awaited = true;
    close_rounds();
}

/* What the sender's tests have said to be done arrives, also when the sender closes before it is received. */
static void close_after_done(void)
{
    ranks_begin(1);
    for (int round = 0; round < conform.rounds / 5 + 2; round++) {
        links_ring(1);
        links_open();
        flows_everywhere(&(struct flow){.messages = 8, .largest = 300000, .seed = (uint64_t)round});
        links_close();
    }
    ranks_end();
}

/* A larger send than the receive is the receiver's error; the process goes on. */
static void larger_send(void)
{
    ranks_begin(1);
    links_add(0, 1, 0);
    links_add(0, 1, 0);
    links_open();
    struct link *link = &links[0];
    unsigned char data[256] = {0};
    void *pointer = data, *mhandle = NULL, *request = NULL;
    size_t size = 100;
    int tag = 5;
    bool done = false;
    enum nccl_result result = NCCL_SUCCESS;
    int64_t limit = now_ms() + 5000 * CONFORM_SLOWER;
    char word = 0;
    if (conform.me == 0) {
        MUST(net_reg(link->send, data, sizeof data, NCCL_PTR_HOST, &mhandle));
        while (!request)
            MUST(net_isend(link->send, data, 101, tag, mhandle, &request));
        while (result == NCCL_SUCCESS && !done && now_ms() < limit) {
            result = net_test(request, &done, NULL);
            sched_yield();
        }
        boot_receive(1, &word, 1);
        MUST(net_dereg(link->send, mhandle));
    } else if (conform.me == 1) {
        MUST(net_reg(link->recv, data, sizeof data, NCCL_PTR_HOST, &mhandle));
        while (!request)
            MUST(net_irecv(link->recv, 1, &pointer, &size, &tag, &mhandle, &request));
        while (result == NCCL_SUCCESS) {
            int reported = 0;
            result = net_test(request, &done, &reported);
            CHECK(!done, "101 bytes into 100 are no error: %d are reported", reported);
            CHECK(now_ms() < limit, "101 bytes into 100 are neither received nor an error");
            sched_yield();
        }
        for (int i = 100; i < 256; i++)
            CHECK(!data[i], "byte %d behind a receive of 100 is written", i);
        CHECK(log_lines(NCCL_LOG_WARN) > 0, "no word on why a receive failed");
        boot_send(0, &word, 1);
        MUST(net_dereg(link->recv, mhandle));
    }
    link_close(link);
    struct flow other = {.link = &links[1], .messages = 20, .largest = 10000};
    if (conform.me < 2)
        flows_run(&other, 1);
    links_close();
    ranks_end();
}

/* One side has closed its last comm to the other while that one opens the next: one direction at a time, no barrier. */
static void reopen(void)
{
    ranks_begin(1);
    for (int round = 0; round < conform.rounds; round++) {
        int from = (int)(mix(conform.seed, (uint64_t)round) % 2);
        for (int i = 0; i < 1 + round % 4; i++)
            links_add(from, 1 - from, 0);
        links_open();
        if (conform.me < 2)
            flows_everywhere(&(struct flow){.messages = 3, .largest = 5000});
        links_close();
    }
    ranks_end();
}

static void rounds(void)
{
    struct footprint before;
    ranks_begin(1);
    for (int round = -3; round < conform.rounds; round++) {
        if (round == 0)
            footprint_take(&before);
        links_ring(1);
        links_open();
        if (round % 8 == 0)
            flows_everywhere(&(struct flow){.messages = 4, .largest = 5000});
        links_close();
        boot_barrier();
    }
    footprint_check(&before, false, "after comms were opened and closed many times");
    ranks_end();
}

const struct conform_case conform_close_cases[] = {
    {"close_in_flight", "close",
     "deregMr, then close with requests under way: no hang, and memory is not touched after deregMr", close_in_flight,
     0, 90, false},
    {"deregister_in_flight", "close", "a request whose memory was deregistered is an error, or was done",
     deregister_in_flight, 0, 90, false},
    {"peer_closes", "close", "the other side closes with requests under way: done, or ncclRemoteError", peer_closes, 0,
     90, false},
    {"close_after_done", "close", "what test has said to be sent arrives though the comm is closed", close_after_done,
     0, 60, false},
    {"larger_send", "close", "a send that is larger than the receive is an error of the receiver", larger_send, 0, 30,
     false},
    {"reopen", "close", "a comm is opened while the other side still closes the last ones", reopen, 0, 60, false},
    {"rounds", "close", "many times opened and closed: threads and descriptors as before", rounds, 0, 300, false},
    {0},
};
