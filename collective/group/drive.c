/* What a group does when one of its calls is made: it takes what has ended and what has happened, and looks at the
 * time. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "collective/group/words.h"

#define BATCH 16
#define LOOK_NS 200000
#define FRUITLESS_MAX 64

static int watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int wf_coll_drive_open(struct wf_coll_hub *hub, struct weft_error *err)
{
    hub->set = epoll_create1(EPOLL_CLOEXEC);
    hub->inner = epoll_create1(EPOLL_CLOEXEC);
    hub->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    hub->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    hub->waker = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool open = hub->set >= 0 && hub->inner >= 0 && hub->timer >= 0 && hub->bell >= 0 && hub->waker >= 0;
    int result = open ? 0 : -errno;
    int fds[] = {hub->timer, hub->waker, weft_completion_fd(hub->queue), weft_event_fd(hub->context)};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0] && result == 0; i++)
        result = watch(hub->inner, fds[i]);
    if (result == 0)
        result = watch(hub->set, hub->inner);
    if (result == 0)
        result = watch(hub->set, hub->bell);
    return result == 0 ? 0 : wf_coll_refuse(err, result, "no descriptors for a group: %s", strerror(-result));
}

void wf_coll_drive_close(struct wf_coll_hub *hub)
{
    int fds[] = {hub->set, hub->inner, hub->timer, hub->bell, hub->waker};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* --- control --- */

int wf_coll_listen_for(struct wf_coll_hub *hub)
{
    struct weft_options options = {.flags = WEFT_ANY_TAG, .queue = hub->queue, .user_data = &hub->received};
    struct weft_request *request;
    int result = weft_endpoint_recv(hub->control, hub->message, WF_COLL_MESSAGE_BYTES, 0, &options, &request);
    hub->receiving = result == 0;
    return result;
}

static void of_stranger(struct wf_coll_hub *hub, struct wf_coll_session *session, uint64_t kind)
{
    if (kind == WF_COLL_HELLO)
        wf_coll_hello(hub, session, hub->message);
    else if (session->state == WF_COLL_STRANGER && kind == WF_COLL_PRESENT)
        return;
    else
        wf_coll_session_close(hub, session);
}

static void of_dialled(struct wf_coll_hub *hub, struct wf_coll_session *session, uint64_t kind)
{
    if (kind == WF_COLL_WELCOME)
        wf_coll_welcome(hub, session, hub->message);
    else if (kind == WF_COLL_REFUSED)
        wf_coll_refused(hub, session, hub->message);
    else if (kind == WF_COLL_CROSSED)
        wf_coll_crossed(hub, session);
}

static void of_member(struct wf_coll_hub *hub, struct wf_coll_session *session, uint64_t kind)
{
    const char *text = hub->message;
    switch (kind) {
    case WF_COLL_TABLE:
        wf_coll_table(hub, text);
        break;
    case WF_COLL_NOTES:
        snprintf(hub->refused, sizeof hub->refused, "%s", text);
        break;
    case WF_COLL_UP:
        wf_coll_up(hub, session, text);
        break;
    case WF_COLL_DOWN:
        wf_coll_down(hub, text);
        break;
    case WF_COLL_FAIL:
        wf_coll_told_failed(hub, session, text);
        break;
    case WF_COLL_GONE:
        wf_coll_told_gone(hub, text);
        break;
    case WF_COLL_LEAVE:
        wf_coll_told_left(hub, session, text);
        break;
    case WF_COLL_ASK:
        wf_coll_asked(hub, session, text);
        break;
    case WF_COLL_PART:
        wf_coll_asked_to_part(hub, session);
        break;
    case WF_COLL_MAY_PART:
    case WF_COLL_MAY_NOT_PART:
        wf_coll_may_part(hub, session, kind == WF_COLL_MAY_PART);
        break;
    case WF_COLL_DONE_WITH:
        session->kept = false;
        break;
    case WF_COLL_PRESENT:
        wf_coll_board_is_present(hub, session, text);
        break;
    case WF_COLL_HERE:
        wf_coll_board_here(hub, session, text);
        break;
    default:
        break;
    }
}

static void listen_again(struct wf_coll_hub *hub)
{
    if (hub->receiving || hub->ending)
        return;
    int result = wf_coll_listen_for(hub);
    if (result == -EAGAIN)
        hub->crowded = true;
    else if (result < 0)
        wf_coll_fail_all(hub, result, "%s", weft_last_error());
}

static void received(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)task;
    hub->receiving = false;
    struct wf_coll_session *session = completion->connection ? wf_coll_session_of(hub, completion->connection) : NULL;
    if (completion->status == -EMSGSIZE && session) {
        wf_coll_session_close(hub, session);
    } else if (completion->status == 0 && session) {
        hub->message[completion->bytes] = '\0';
        if (session->state == WF_COLL_STRANGER || session->state == WF_COLL_HELD)
            of_stranger(hub, session, completion->tag);
        else if (session->state == WF_COLL_KNOCKING)
            of_dialled(hub, session, completion->tag);
        else if (session->state == WF_COLL_OPEN)
            of_member(hub, session, completion->tag);
    }
    listen_again(hub); /* it also ends so when a session is closed, or a message cancelled, that was on its way */
}

/* --- the rounds --- */

/* The requests of all that a poll returns are gone. One of the completions may end a group, which cancels what it has
 * under way: not the requests of those behind it, whose handles may be other requests' by now. So this is with the lock
 * from the poll to the last of them. */
static int take_some(struct wf_coll_hub *hub)
{
    struct weft_completion ended[BATCH];
    int count = weft_queue_poll(hub->queue, ended, BATCH);
    hub->received.ended = received;
    for (int i = 0; i < count; i++) {
        struct wf_coll_task *task = ended[i].user_data;
        if (task)
            task->taken = true;
    }
    for (int i = 0; i < count; i++) {
        struct wf_coll_task *task = ended[i].user_data;
        if (!task)
            continue;
        task->taken = false;
        task->ended(hub, task, &ended[i]);
    }
    return count;
}

/* `all`: also after one of them has ended an operation. */
static int take_completions(struct wf_coll_hub *hub, bool all)
{
    uint64_t before = hub->finished;
    int count, sum = 0;
    while ((all || hub->finished == before) && (count = take_some(hub)) > 0)
        sum += count;
    return sum;
}

/* A loss comes after what was said before it: that is in the queue. */
static int take_events(struct wf_coll_hub *hub)
{
    struct weft_event event;
    if (hub->crowded && !hub->receiving && !hub->ending)
        return 0; /* what was said before cannot be taken yet; the next try is soon */
    int count = weft_event_poll(hub->context, &event, 1);
    if (count <= 0)
        return 0;
    switch (event.kind) {
    case WEFT_EVENT_PEER:
        wf_coll_came(hub, event.peer);
        break;
    case WEFT_EVENT_CONNECTION:
        wf_coll_connected(hub, event.peer, event.endpoint, event.connection);
        break;
    case WEFT_EVENT_LOST:
        take_completions(hub, true);
        wf_coll_lost(hub, &event);
        break;
    default:
        break;
    }
    return 1;
}

static void set_timer(struct wf_coll_hub *hub)
{
    int64_t next_ns = wf_coll_sessions_next_ns(hub), other_ns = wf_coll_operations_next_ns(hub);
    if (other_ns < next_ns)
        next_ns = other_ns;
    if (hub->room_ns > 0 && hub->room_ns < next_ns)
        next_ns = hub->room_ns;
    if (hub->phase != WF_COLL_MADE && hub->whole.status == 0) {
        if (hub->deadline_ns < next_ns)
            next_ns = hub->deadline_ns;
        if (hub->phase == WF_COLL_LOOKING && hub->look_ns < next_ns)
            next_ns = hub->look_ns;
        if (hub->knows_ns < next_ns && hub->knows_ns > wf_coll_now_ns())
            next_ns = hub->knows_ns;
    }
    if (hub->timer_ns <= next_ns && hub->timer_ns > wf_coll_now_ns())
        return; /* too early does no harm, and an operation that ends in time sets no timer */
    struct itimerspec at = {0};
    hub->timer_ns = next_ns;
    if (next_ns != WF_COLL_NEVER) {
        at.it_value.tv_sec = next_ns / 1000000000LL;
        at.it_value.tv_nsec = next_ns % 1000000000LL;
        at.it_value.tv_nsec += at.it_value.tv_sec == 0 && at.it_value.tv_nsec == 0;
    }
    timerfd_settime(hub->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* When an operation has ended, its caller goes on first: another look would find nothing yet, and to look in vain makes
 * the library acknowledge in frames of their own what the next message acknowledges by the way. */
void wf_coll_drive(struct wf_coll_hub *hub)
{
    uint64_t before = hub->finished;
    int count;
    if (hub->over)
        return;
    do {
        do {
            count = take_completions(hub, false);
            count += take_events(hub);
        } while (count > 0 && hub->finished == before);
        wf_coll_judge_trouble(hub);
        hub->crowded = false;
        listen_again(hub);
        wf_coll_say_again(hub);
        count = wf_coll_collectives_tend(hub);
    } while (count > 0 && hub->finished == before);
    int64_t now_ns = wf_coll_now_ns();
    wf_coll_sessions_tend(hub, now_ns);
    wf_coll_room_tend(hub, now_ns);
    wf_coll_making_tend(hub, now_ns);
    wf_coll_operations_tend(hub, now_ns);
    wf_coll_groups_free(hub);
    set_timer(hub);
}

/* Messages are expected: looks for them for a moment, and lets others run between two looks. While that does not pay,
 * it does so less and less often. False: sleep. True also after wf_coll_wake(): another thread may have taken
 * what this one waits for. */
static bool look_again(struct wf_coll_hub *hub)
{
    uint64_t before = hub->wakes;
    int64_t until_ns = wf_coll_now_ns() + LOOK_NS;
    int count;
    if (hub->looks_left > 0) {
        hub->looks_left--;
        return false;
    }
    hub->looking = true;
    while ((count = take_some(hub)) == 0 && wf_coll_now_ns() < until_ns) {
        wf_coll_unlock(hub);
        sched_yield();
        pthread_mutex_lock(&hub->lock);
        if (hub->wakes != before || hub->over) /* over: so is the queue */
            break;
    }
    bool found = count > 0 || hub->wakes != before;
    hub->looking = false;
    hub->fruitless = found ? 0 : hub->fruitless * 2 + 1 < FRUITLESS_MAX ? hub->fruitless * 2 + 1 : FRUITLESS_MAX;
    hub->looks_left = hub->fruitless;
    return found;
}

void wf_coll_wake(struct wf_coll_hub *hub)
{
    uint64_t one = 1;
    hub->wakes++;
    if (hub->sleepers == 0)
        return;
    if (hub->to_wake > 0 || write(hub->waker, &one, sizeof one) == sizeof one)
        hub->to_wake = hub->sleepers;
}

void wf_coll_one_less(struct weft_group *group)
{
    group->under_way--;
    if (group->leaving && group->under_way == 0)
        wf_coll_wake(group->hub);
}

/* One that slept when it was called to wake has done so: the last of them makes it silent. */
static void woken(struct wf_coll_hub *hub, uint64_t slept)
{
    uint64_t count;
    if (hub->wakes > slept && hub->to_wake > 0 && --hub->to_wake == 0 &&
        read(hub->waker, &count, sizeof count) != sizeof count)
        hub->to_wake = 1;
}

/* What has ended in another group, and was not taken, wakes nobody again and again. */
void wf_coll_rest(struct wf_coll_hub *hub, int64_t until_ns)
{
    if (hub->transfers > 0 && hub->sleepers == 0 && !hub->looking && look_again(hub))
        return;
    uint64_t slept = hub->wakes;
    hub->sleepers++;
    wf_coll_unlock(hub);
    wf_coll_sleep(hub, until_ns);
    pthread_mutex_lock(&hub->lock);
    hub->sleepers--;
    woken(hub, slept);
}

void wf_coll_sleep(struct wf_coll_hub *hub, int64_t until_ns)
{
    int64_t left_ms = until_ns == WF_COLL_NEVER ? -1 : (until_ns - wf_coll_now_ns() + 999999) / 1000000;
    struct pollfd ready = {.fd = hub->inner, .events = POLLIN};
    if (until_ns != WF_COLL_NEVER && left_ms <= 0)
        return;
    poll(&ready, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
}
