/*
 * test_group_slow.c: a member whose program seldom makes a call of its group, or none any more. The time in which
 * nothing happens passes for libweft_coll alone.
 */
#include "group_support.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SIZE = 4, ANSWERS = 2, DIALS = 3 };               /* these two have no session at first */
enum { HAS_COME = 8, HAS_OPENED, HAS_LEFT, WAS_MISSED }; /* places in `value` */

#define PAUSE_NS (4 * 1000000000LL) /* between two calls of the one that dials; the other waits 5 s for it */

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    LOOP_CHECK(found, "%s: %s", name, dlerror());
    return found;
}

static int64_t ahead_ns;
static int peers, connections; /* that have come */
static bool hurries;           /* who opens a connection with a limit has a little time for it */
static bool one_batch, holds;  /* the polls after the next one that finds something find nothing; they do */

static bool is_of_group(void *caller)
{
    Dl_info info;
    return dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libweft_coll");
}

/* Stands before the C library's. */
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *out)
{
    int result = (int)syscall(SYS_clock_gettime, clock, out);
    if (clock == CLOCK_MONOTONIC && is_of_group(__builtin_return_address(0)))
        out->tv_sec += ahead_ns / 1000000000;
    return result;
}

/* These stand before libweft's. */
int weft_event_poll(struct weft_context *context, struct weft_event *events, int max)
{
    int (*poll_events)(struct weft_context *, struct weft_event *, int) = real("weft_event_poll");
    int count = poll_events(context, events, max);
    for (int i = 0; i < count; i++) {
        peers += events[i].kind == WEFT_EVENT_PEER;
        connections += events[i].kind == WEFT_EVENT_CONNECTION;
    }
    return count;
}

int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max)
{
    int (*poll_queue)(struct weft_queue *, struct weft_completion *, int) = real("weft_queue_poll");
    int count = holds ? 0 : poll_queue(queue, completions, max);
    holds |= one_batch && count > 0;
    return count;
}

int weft_connection_open_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t id,
                               const struct weft_options *options, struct weft_request **out, struct weft_error *err)
{
    int (*open)(struct weft_endpoint *, struct weft_peer *, uint32_t, const struct weft_options *,
                struct weft_request **, struct weft_error *) = real("weft_connection_open_start");
    struct weft_options changed = *options;
    if (hurries && changed.timeout_ms > 0)
        changed.timeout_ms = 100;
    return open(endpoint, peer, id, &changed, out, err);
}

static void say(struct group_process *process, int place)
{
    __atomic_store_n(&process->world->shared->value[place], 1, __ATOMIC_SEQ_CST);
}

static void hear(struct group_process *process, int place)
{
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (!__atomic_load_n(&process->world->shared->value[place], __ATOMIC_SEQ_CST)) {
        LOOP_CHECK(loop_now_ms() < limit, "the other one does not come so far");
        loop_sleep_ms(1);
    }
}

/* --- the one that dials --- */

static void call_once(struct weft_group *group)
{
    struct weft_connection *connection;
    struct weft_error err;
    int result = weft_group_connection(group, ANSWERS, 0, &connection, &err);
    LOOP_CHECK(result == -ETIMEDOUT, "%d '%s'", result, err.text);
}

static int dial(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    call_once(group);
    hear(process, HAS_COME);
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    for (one_batch = true; !holds; call_once(group)) /* takes that it is connected, and opens: no more */
        LOOP_CHECK(loop_now_ms() < limit, "not connected");
    hear(process, HAS_OPENED);
    one_batch = holds = false;
    return weft_group_connection(group, ANSWERS, GROUP_MS, &connection, err);
}

/* --- the one that answers --- */

static void await(struct weft_group *group, const int *count, int number)
{
    struct weft_completion none;
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    while (*count < number) {
        LOOP_CHECK(loop_now_ms() < limit, "%d of %d have come", *count, number);
        weft_group_wait(group, 5, &none, 1);
    }
}

static int answer(struct group_process *process, struct weft_group *group)
{
    struct weft_completion none;
    uint32_t before = weft_group_sessions(group);
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS;
    await(group, &peers, 1);
    ahead_ns += PAUSE_NS;
    weft_group_sessions(group); /* looks at the time */
    say(process, HAS_COME);
    await(group, &connections, 3);
    ahead_ns += PAUSE_NS;
    weft_group_sessions(group);
    say(process, HAS_OPENED);
    while (weft_group_sessions(group) == before) {
        LOOP_CHECK(loop_now_ms() < limit, "no session");
        weft_group_wait(group, 5, &none, 1);
    }
    LOOP_CHECK(peers == 1, "it was closed, and had to come again");
    return 0;
}

static int meet(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result = group_pass(process, group, GROUP_MS, err);
    peers = connections = 0;
    if (result == 0 && process->rank == DIALS)
        result = dial(process, group, err);
    else if (result == 0 && process->rank == ANSWERS)
        result = answer(process, group);
    return result < 0 ? result : group_pass(process, group, GROUP_MS, err);
}

static void has_time_for_each_step(void)
{
    group_run_all(SIZE, meet);
}

/* --- one that has left --- */

/* Its context is there, and lets others connect. Nobody opens connections for it. */
static void leave(struct group_process *process, struct weft_group *group)
{
    weft_group_destroy(group);
    say(process, HAS_LEFT);
    hear(process, WAS_MISSED);
    loop_context_end(process->context);
    process->world->shared->status[process->slot] = 0;
    _exit(0);
}

/* That it has left was told to others only. */
static void miss(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    struct weft_connection *connection;
    int64_t limit = loop_now_ms() + LOOP_WAIT_MS / 2;
    hear(process, HAS_LEFT);
    hurries = true;
    while (weft_group_connection(group, DIALS, 0, &connection, err) < 0 && !strstr(err->text, "cannot be reached: ")) {
        LOOP_CHECK(loop_now_ms() < limit, "it waits for ever: '%s'", err->text);
        loop_sleep_ms(5);
        ahead_ns += 1000000000;
    }
    LOOP_CHECK(strstr(err->text, "cannot be reached: "), "a connection with a member that has left");
    say(process, WAS_MISSED);
}

static int leave_unseen(struct group_process *process, struct weft_group *group, struct weft_error *err)
{
    int result = group_pass(process, group, GROUP_MS, err);
    if (result == 0 && process->rank == DIALS)
        leave(process, group);
    else if (result == 0 && process->rank == ANSWERS)
        miss(process, group, err);
    return result;
}

static void does_not_wait_for_one_that_has_left(void)
{
    group_run_all(SIZE, leave_unseen);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(has_time_for_each_step, 30),
        LOOP_CASE(does_not_wait_for_one_that_has_left, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
