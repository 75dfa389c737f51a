/*
 * test_group_taken.c: a completion that has been polled, by this thread or by another one, and what the others that
 * have something to do with it make of that. The calls of libweft that polls pass by stand before libweft's here.
 */
#include "group_support.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { REQUESTS = 256, BATCH = 16, FAR = 3 };

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    LOOP_CHECK(found, "%s: %s", name, dlerror());
    return found;
}

/* --- requests, and their completions --- */

/* A message that libweft_coll has posted; under the lock of its hub. */
struct posted {
    void *user_data;
    struct weft_request *request;
    bool live, receives;
};

static struct posted posted[REQUESTS];
static struct weft_completion kept[BATCH];
static int kept_count;
static bool holds;      /* polls find nothing: it is kept */
static int until_posts; /* holds until so many sends, and so many receives, are kept; 0: until `holds` is false */
static bool loses;      /* the next message of control */
static void *control;

static struct posted *of(const void *user_data)
{
    for (int i = 0; i < REQUESTS; i++)
        if (posted[i].live && posted[i].user_data == user_data)
            return &posted[i];
    return NULL;
}

static void note(const struct weft_options *options, struct weft_request *request, bool receives)
{
    int i = 0;
    while (i < REQUESTS && posted[i].live)
        i++;
    LOOP_CHECK(i < REQUESTS, "too many requests");
    posted[i] = (struct posted){options->user_data, request, true, receives};
}

int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    int (*send)(struct weft_connection *, const void *, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = real("weft_send");
    int result = send(connection, buffer, length, tag, options, out);
    if (result == 0)
        note(options, *out, false);
    return result;
}

int weft_recv(struct weft_connection *connection, void *buffer, uint64_t capacity, uint64_t tag,
              const struct weft_options *options, struct weft_request **out)
{
    int (*recv)(struct weft_connection *, void *, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = real("weft_recv");
    int result = recv(connection, buffer, capacity, tag, options, out);
    if (result == 0)
        note(options, *out, true);
    return result;
}

int weft_endpoint_recv(struct weft_endpoint *endpoint, void *buffer, uint64_t capacity, uint64_t tag,
                       const struct weft_options *options, struct weft_request **out)
{
    int (*recv)(struct weft_endpoint *, void *, uint64_t, uint64_t, const struct weft_options *,
                struct weft_request **) = real("weft_endpoint_recv");
    control = options->user_data;
    return recv(endpoint, buffer, capacity, tag, options, out);
}

void weft_cancel(struct weft_request *request)
{
    void (*cancel)(struct weft_request *) = real("weft_cancel");
    int i = 0;
    while (i < REQUESTS && !(posted[i].live && posted[i].request == request))
        i++;
    LOOP_CHECK(i < REQUESTS, "a cancel of a request that was polled");
    cancel(request);
}

/* Enough to be let go of? */
static bool enough(void)
{
    int sends = 0, receives = 0;
    for (int i = 0; i < kept_count; i++) {
        const struct posted *at = of(kept[i].user_data);
        sends += at && !at->receives;
        receives += at && at->receives;
    }
    return until_posts > 0 && sends >= until_posts && receives >= until_posts;
}

int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max)
{
    int (*poll_queue)(struct weft_queue *, struct weft_completion *, int) = real("weft_queue_poll");
    LOOP_CHECK(max == BATCH, "%d completions at once", max);
    if (kept_count < BATCH) {
        int count = poll_queue(queue, kept + kept_count, BATCH - kept_count);
        kept_count += count > 0 ? count : 0;
    }
    if (holds && kept_count < BATCH && !enough())
        return 0;
    holds = false;
    int count = kept_count;
    for (int i = 0; i < count; i++) {
        struct posted *at = of(kept[i].user_data);
        if (at)
            at->live = false;
        if (loses && kept[i].user_data == control && kept[i].connection) { /* as when its sender has cancelled it */
            kept[i].status = -ECANCELED;
            kept[i].bytes = 0;
            loses = false;
        }
        completions[i] = kept[i];
    }
    kept_count = 0;
    return count;
}

/* --- threads --- */

static _Thread_local bool parks_in_yield, parks_in_poll; /* the next call of this thread */
static int parked, released;                             /* a thread is; it may go on */

static void park(bool *here)
{
    if (!*here)
        return;
    *here = false;
    __atomic_store_n(&parked, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&released, __ATOMIC_SEQ_CST))
        loop_sleep_ms(1);
}

__attribute__((visibility("default"))) int sched_yield(void)
{
    int (*yield)(void) = real("sched_yield");
    park(&parks_in_yield);
    return yield();
}

__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    int (*poll_all)(struct pollfd *, nfds_t, int) = real("poll");
    park(&parks_in_poll);
    return poll_all(fds, count, timeout_ms);
}

static void await(const int *flag, int limit_ms, const char *what)
{
    int64_t limit = loop_now_ms() + limit_ms;
    while (!__atomic_load_n(flag, __ATOMIC_SEQ_CST)) {
        LOOP_CHECK(loop_now_ms() < limit, "%s", what);
        loop_sleep_ms(1);
    }
}

/* --- between processes --- */

static void say(struct group_process *process, int place)
{
    __atomic_store_n(&process->world->shared->value[place], 1, __ATOMIC_SEQ_CST);
}

static bool said(struct group_process *process, int place)
{
    return __atomic_load_n(&process->world->shared->value[place], __ATOMIC_SEQ_CST) != 0;
}

static void hear(struct group_process *process, int place)
{
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (!said(process, place)) {
        LOOP_CHECK(loop_now_ms() < limit, "the other one does not come so far");
        loop_sleep_ms(1);
    }
}

static void with(uint32_t size, int (*body)(struct group_process *, struct weft_group *, struct weft_error *))
{
    struct group_world world;
    group_world_create(&world, size, body);
    for (int i = 0; i < world.count; i++)
        world.process[i].settings = "timeout=300"; /* the library, too, looks after its sessions: seldom */
    group_start_all(&world);
    group_join_all(&world);
    group_check_all(&world, -1, 0, NULL);
    group_world_destroy(&world);
}

/* --- a batch --- */

/* Two collectives, of which the first one ends the group: all of their messages end in one batch. */
static int differ(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    float in[2][64] = {{0}}, out[2][64];
    struct weft_completion completion;
    int result = group_pass(process, group, GROUP_MS, err);
    until_posts = 2;
    holds = true;
    for (int i = 0; i < 2 && result == 0; i++)
        result = weft_group_all_reduce_start(group, in[i], out[i], i == 0 && process->rank == 1 ? 10 : 64, WEFT_FLOAT32,
                                             WEFT_SUM, 0, NULL, err);
    for (int i = 0; i < 2 && result == 0; i++) {
        LOOP_CHECK(weft_group_wait(group, GROUP_MS, &completion, 1) == 1, "no completion");
        LOOP_CHECK(completion.status == -EPROTO, "%d '%s'", completion.status, completion.text);
    }
    LOOP_CHECK(!holds, "the messages have not come");
    return result;
}

static void cancels_no_polled_request(void)
{
    with(2, differ);
}

/* --- control --- */

static int lose_a_message(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_group *pair;
    LOOP_CALL(weft_group_split(group, 0, 0, GROUP_MS, &pair, err), err);
    if (process->rank == 0) {
        struct weft_completion none;
        loses = true;
        say(process, 8);
        int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
        while (loses) { /* rank 1's word that it leaves the pair */
            LOOP_CHECK(loop_now_ms() < limit, "no message of control");
            weft_group_wait(group, 10, &none, 1);
        }
    } else {
        hear(process, 8);
        weft_group_destroy(pair);
    }
    int result = group_pass(process, group, GROUP_MS, err);
    if (process->rank == 0)
        weft_group_destroy(pair);
    return result;
}

static void hears_after_a_cancelled_message(void)
{
    with(2, lose_a_message);
}

/* --- the descriptor --- */

/* Rank 0 destroys the pair while it is not told of its transfers' ends, and with an operation whose end it has not
 * taken.
 */
static int abandon(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    char byte = 0, sum;
    struct weft_group *pair;
    LOOP_CALL(weft_group_split(group, 0, 0, GROUP_MS, &pair, err), err);
    int result = group_pass(process, group, GROUP_MS, err);
    if (process->rank == 0) {
        struct pollfd ready = {.fd = weft_group_fd(group), .events = POLLIN};
        holds = true;
        for (uint64_t count = 0; count < 2; count++) /* that of nothing ends at once */
            LOOP_CALL(weft_group_all_reduce_start(pair, &byte, &sum, count, WEFT_UINT8, WEFT_SUM, 0, NULL, err), err);
        LOOP_CHECK(poll(&ready, 1, 0) == 1, "no sign of the operation that has ended");
        weft_group_destroy(pair);
        holds = false;
        int64_t limit = loop_now_ms() + LOOP_WAIT_MS / 4;
        do {
            LOOP_CHECK(loop_now_ms() < limit, "readable for ever, of an operation that nobody can take");
            LOOP_CALL(weft_group_status(group, err), err);
        } while (poll(&ready, 1, 100) != 0);
        say(process, 8);
    } else {
        hear(process, 8);
        weft_group_destroy(pair);
    }
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void is_silent_after_a_group_was_abandoned(void)
{
    with(2, abandon);
}

/* --- two threads --- */

struct caller {
    struct weft_group *group;
    int done;
};

static void *reduce(void *argument)
{
    struct caller *caller = argument;
    struct weft_error err = {0};
    float one = 1, sum = 0;
    parks_in_yield = parks_in_poll = true; /* on a busy machine it has no time for a second look before it sleeps */
    LOOP_CALL(weft_group_all_reduce(caller->group, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, -1, &err), &err);
    LOOP_CHECK(sum == 2, "the sum is %g", (double)sum);
    __atomic_store_n(&caller->done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *connect_far(void *argument)
{
    struct caller *caller = argument;
    struct weft_error err = {0};
    struct weft_connection *connection;
    parks_in_poll = true;
    LOOP_CALL(weft_group_connection(caller->group, FAR, -1, &connection, &err), &err);
    __atomic_store_n(&caller->done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void start(struct caller *caller, pthread_t *thread, void *(*body)(void *))
{
    LOOP_CHECK(pthread_create(thread, NULL, body, caller) == 0, "no thread");
    await(&parked, LOOP_WAIT_MS, "the thread does not wait");
}

/* Takes all that comes, until a look at the time is due no more, either: nothing else wakes the thread. */
static void go_on(struct weft_group *group)
{
    enum { PRESENT_MS = 2000 }; /* an operation that has begun sets the timer to that */
    int64_t until = loop_now_ms() + PRESENT_MS + 500;
    while (loop_now_ms() < until) {
        weft_group_sessions(group);
        loop_sleep_ms(5);
    }
}

/* What it waits for has come meanwhile. */
static void end(struct caller *caller, pthread_t thread)
{
    __atomic_store_n(&released, 1, __ATOMIC_SEQ_CST);
    await(&caller->done, 10000 * LOOP_SLOWER, "the thread has slept through what another one has taken");
    pthread_join(thread, NULL);
}

/* A thread looks for completions before it sleeps, and this one takes them between two looks. */
static int take_between(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct caller caller = {.group = group};
    pthread_t thread;
    float one = 1, sum;
    if (process->rank == 0) {
        start(&caller, &thread, reduce);
        say(process, 8);
        hear(process, 9);
        go_on(group);
        end(&caller, thread);
        say(process, 10);
    } else {
        hear(process, 8);
        LOOP_CALL(weft_group_all_reduce(group, &one, &sum, 1, WEFT_FLOAT32, WEFT_SUM, -1, err), err);
        say(process, 9);
        hear(process, 10); /* a message would wake it */
    }
    return group_pass(process, group, GROUP_MS, err);
}

static void wakes_who_looks(void)
{
    with(2, take_between);
}

/* A thread that waits for a session is about to sleep, and this one takes the WELCOME. */
static int welcome(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct caller caller = {.group = group};
    struct weft_completion none;
    pthread_t thread;
    int result = group_pass(process, group, GROUP_MS, err);
    if (process->rank == FAR - 1) {
        uint32_t before = weft_group_sessions(group);
        start(&caller, &thread, connect_far);
        int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
        while (weft_group_sessions(group) == before) {
            LOOP_CHECK(loop_now_ms() < limit, "no session");
            loop_sleep_ms(1);
        }
        go_on(group);
        end(&caller, thread);
        say(process, 8);
    }
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (!said(process, 8) && loop_now_ms() < limit)
        weft_group_wait(group, 5, &none, 1);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void wakes_who_waits_for_a_session(void)
{
    with(FAR + 1, welcome);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(cancels_no_polled_request, 30),
        LOOP_CASE(hears_after_a_cancelled_message, 60),
        LOOP_CASE(is_silent_after_a_group_was_abandoned, 60),
        LOOP_CASE(wakes_who_looks, 60),
        LOOP_CASE(wakes_who_waits_for_a_session, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
