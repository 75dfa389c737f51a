/* conform_loss.c: cases in which the peer is killed or stopped. Process 0 is the one that notices. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conform.h"

#define REQUESTS 4
#define SIZE ((size_t)4 << 20)
#define TIMEOUT_S 2 /* setting `timeout` of these cases */

static struct {
    unsigned char *memory;
    void *mhandle[2];
    void *request[2 * REQUESTS]; /* receives, then sends */
    int signal;
    pid_t peer;
    int64_t limit_ms; /* from the signal to the errors of all receives */
} lost;

static void register_memory(void *arg)
{
    (void)arg;
    MUST(net_reg(links[0].send, lost.memory, 2 * REQUESTS * SIZE, NCCL_PTR_HOST, &lost.mhandle[0]));
    MUST(net_reg(links[1].recv, lost.memory, 2 * REQUESTS * SIZE, NCCL_PTR_HOST, &lost.mhandle[1]));
}

static void deregister_memory(void *arg)
{
    (void)arg;
    MUST(net_dereg(links[0].send, lost.mhandle[0]));
    MUST(net_dereg(links[1].recv, lost.mhandle[1]));
}

static void post(void)
{
    int tag = 1;
    for (int i = 0; i < REQUESTS; i++) {
        void *data = lost.memory + (size_t)i * SIZE;
        size_t size = SIZE;
        MUST(net_irecv(links[1].recv, 1, &data, &size, &tag, &lost.mhandle[1], &lost.request[i]));
        CHECK(lost.request[i], "receive %d would block", i);
        MUST(net_isend(links[0].send, lost.memory + (REQUESTS + i) * SIZE, SIZE, tag, lost.mhandle[0],
                       &lost.request[REQUESTS + i]));
    }
}

/* A send may have been done before, and one that is not even begun need not say anything: the receives count. */
static void await_errors(void)
{
    int64_t start = now_ms();
    int left = REQUESTS;
    enum nccl_result result = NCCL_SUCCESS;
    while (left) {
        left = 0;
        for (int i = 0; i < 2 * REQUESTS; i++) {
            bool done = false;
            if (!lost.request[i])
                continue;
            left += i < REQUESTS;
            enum nccl_result now = net_test(lost.request[i], &done, NULL);
            CHECK(!done || i >= REQUESTS, "receive %d is done, and nothing was sent", i);
            if (now != NCCL_SUCCESS || done)
                lost.request[i] = NULL;
            if (now != NCCL_SUCCESS && i < REQUESTS)
                result = now;
        }
        CHECK(!left || now_ms() - start < lost.limit_ms, "%d receives are no error %lld ms after the peer was lost",
              left, (long long)(now_ms() - start));
        sched_yield();
    }
    CHECK(result == NCCL_REMOTE_ERROR, "a lost peer is result %d, not ncclRemoteError", (int)result);
}

/* Nothing new gets anywhere, and nothing hangs: an error now, or soon. */
static void post_after(void)
{
    int64_t start = now_ms();
    for (int sending = 0; sending < 2; sending++) {
        enum nccl_result result = NCCL_SUCCESS;
        void *data = lost.memory, *request = NULL;
        while (result == NCCL_SUCCESS) {
            size_t size = SIZE;
            int tag = 1;
            bool done = false;
            if (!request && sending)
                result = net_isend(links[0].send, data, size, tag, lost.mhandle[0], &request);
            else if (!request)
                result = net_irecv(links[1].recv, 1, &data, &size, &tag, &lost.mhandle[1], &request);
            else
                result = net_test(request, &done, NULL);
            CHECK(!done, "a message to a lost peer is done");
            CHECK(now_ms() - start < lost.limit_ms, "after the peer was lost a new %s is no error",
                  sending ? "send" : "receive");
            sched_yield();
        }
    }
}

static void lose(void *arg)
{
    (void)arg;
    post();
    CHECK(!kill(lost.peer, lost.signal), "kill");
    await_errors();
    post_after();
}

static void lose_peer(int number, int64_t limit_ms)
{
    ranks_begin(1);
    links_add(0, 1, 0);
    links_add(1, 0, 0);
    for (int i = 2; i < conform.processes; i++) {
        links_add(0, i, 0);
        links_add(i, 0, 0);
    }
    links_open();
    flows_everywhere(&(struct flow){.messages = 4, .largest = 50000});
    if (conform.me == 1) {
        pid_t me = getpid();
        boot_send(0, &me, sizeof me);
        for (;;)
            pause();
    }
    if (conform.me == 0) {
        lost.signal = number;
        lost.limit_ms = limit_ms * CONFORM_SLOWER;
        lost.memory = calloc(2 * REQUESTS, SIZE);
        boot_receive(1, &lost.peer, sizeof lost.peer);
        worker_run(&ranks[0].service, register_memory, NULL);
        worker_run(&ranks[0].progress, lose, NULL);
        worker_run(&ranks[0].service, deregister_memory, NULL);
        CHECK(log_lines(NCCL_LOG_WARN) > 0, "a lost peer is no warning");
        CHECK(log_names_peer(NCCL_LOG_WARN), "no warning names the peer that was lost");
        CHECK(log_says(NCCL_LOG_WARN, "; rails: ") && log_says(NCCL_LOG_WARN, ", last heard "),
              "no warning has the rails and when the peer was last heard");
        link_close(&links[0]);
        link_close(&links[1]);
        free(lost.memory);
    }
    if (conform.me == 0) {
        for (int i = 2; i < conform.processes; i++)
            boot_send(i, &conform.me, sizeof conform.me);
    } else {
        int word;
        boot_receive(0, &word, sizeof word);
    }
    struct flow others[2 * CONFORM_PROCESSES_MAX];
    for (int i = 2; i < link_count; i++)
        others[i - 2] = (struct flow){.link = &links[i], .messages = 50, .largest = 50000};
    flows_run(others, link_count - 2);
    links_close();
    ranks_end();
    if (conform.me == 0)
        kill(lost.peer, SIGKILL);
}

static void killed_peer(void)
{
    lose_peer(SIGKILL, 2500);
}

static void set_timeout(void)
{
    char timeout[16];
    snprintf(timeout, sizeof timeout, "%d", TIMEOUT_S);
    setenv("WEFT_TIMEOUT", timeout, 1);
}

/* A peer that lives and has nothing to say is not lost, however long a receive waits. */
static void idle_peer(void)
{
    set_timeout();
    ranks_begin(1);
    links_add(0, 1, 0);
    links_open();
    struct flow flow = {.link = &links[0], .messages = 10, .largest = 50000};
    if (conform.me == 0)
        nanosleep(&(struct timespec){.tv_sec = TIMEOUT_S + 1, .tv_nsec = 500000000}, NULL);
    if (conform.me < 2)
        flows_run(&flow, 1);
    links_close();
    ranks_end();
}

static void stopped_peer(void)
{
    set_timeout();
    lose_peer(SIGSTOP, 1000 * TIMEOUT_S + 2000);
}

const struct conform_case conform_loss_cases[] = {
    {"killed_peer", "loss", "kill -9 of the peer: ncclRemoteError within 2 s, a warning names it", killed_peer, 0, 40,
     true},
    {"idle_peer", "loss", "a peer that is silent for longer than the timeout, and alive, is not lost", idle_peer, 0, 40,
     false},
    {"stopped_peer", "loss", "a stopped peer: ncclRemoteError within the setting timeout", stopped_peer, 0, 60, true},
    {0},
};
