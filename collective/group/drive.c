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
#define LOOK_NS 50000
#define FRUITLESS_MAX 64

static int watch(int set, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int wf_coll_drive_open(struct weft_group *group, struct weft_error *err)
{
    group->set = epoll_create1(EPOLL_CLOEXEC);
    group->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    group->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result = group->set < 0 || group->timer < 0 || group->bell < 0 ? -errno : 0;
    int fds[] = {group->timer, group->bell, weft_completion_fd(group->queue), weft_event_fd(group->context)};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0] && result == 0; i++)
        result = watch(group->set, fds[i]);
    return result == 0 ? 0 : wf_coll_refuse(err, result, "no descriptors for a group: %s", strerror(-result));
}

void wf_coll_drive_close(struct weft_group *group)
{
    int fds[] = {group->set, group->timer, group->bell};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* --- control --- */

int wf_coll_listen_for(struct weft_group *group)
{
    struct weft_options options = {.flags = WEFT_ANY_TAG, .queue = group->queue, .user_data = &group->received};
    struct weft_request *request;
    int result = weft_endpoint_recv(group->control, group->message, WF_COLL_MESSAGE_BYTES, 0, &options, &request);
    group->receiving = result == 0;
    return result;
}

static void of_stranger(struct weft_group *group, struct wf_coll_session *session, uint64_t kind)
{
    if (kind == WF_COLL_HELLO)
        wf_coll_hello(group, session, group->message);
    else if (session->state == WF_COLL_STRANGER && kind == WF_COLL_PRESENT)
        return;
    else
        wf_coll_session_close(group, session);
}

static void of_dialled(struct weft_group *group, struct wf_coll_session *session, uint64_t kind)
{
    if (kind == WF_COLL_WELCOME)
        wf_coll_welcome(group, session, group->message);
    else if (kind == WF_COLL_REFUSED)
        wf_coll_refused(group, session, group->message);
    else if (kind == WF_COLL_CROSSED)
        wf_coll_crossed(group, session);
}

static void of_member(struct weft_group *group, struct wf_coll_session *session, uint64_t kind)
{
    const char *text = group->message, *rest = strchr(text, ' ');
    switch (kind) {
    case WF_COLL_TABLE:
        wf_coll_table(group, text);
        break;
    case WF_COLL_NOTES:
        snprintf(group->refused, sizeof group->refused, "%s", text);
        break;
    case WF_COLL_UP:
        wf_coll_up(group, session, text);
        break;
    case WF_COLL_DOWN:
        wf_coll_down(group, text);
        break;
    case WF_COLL_FAIL:
        wf_coll_fail(group, atoi(text) < 0 ? atoi(text) : -EPROTO, "%s", rest ? rest + 1 : "");
        break;
    case WF_COLL_LEAVE:
        wf_coll_left(group, (uint32_t)session->rank);
        break;
    case WF_COLL_PART:
        wf_coll_asked_to_part(group, session);
        break;
    case WF_COLL_MAY_PART:
    case WF_COLL_MAY_NOT_PART:
        wf_coll_may_part(group, session, kind == WF_COLL_MAY_PART);
        break;
    case WF_COLL_PRESENT:
        wf_coll_board_is_present(group, session, text);
        break;
    case WF_COLL_HERE:
        wf_coll_board_here(group, text);
        break;
    default:
        break;
    }
}

static void received(struct weft_group *group, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)task;
    group->receiving = false;
    struct wf_coll_session *session = completion->connection ? wf_coll_session_of(group, completion->connection) : NULL;
    if (completion->status == -EMSGSIZE && session) {
        wf_coll_session_close(group, session);
    } else if (completion->status == 0 && session) {
        group->message[completion->bytes] = '\0';
        if (session->state == WF_COLL_STRANGER || session->state == WF_COLL_HELD)
            of_stranger(group, session, completion->tag);
        else if (session->state == WF_COLL_KNOCKING)
            of_dialled(group, session, completion->tag);
        else if (session->state == WF_COLL_OPEN)
            of_member(group, session, completion->tag);
    }
    if (completion->status == -ECANCELED || group->ending)
        return;
    int result = wf_coll_listen_for(group);
    if (result < 0)
        wf_coll_fail(group, result, "%s", weft_last_error());
}

/* --- the rounds --- */

static void dispatch(struct weft_group *group, const struct weft_completion *ended, int count)
{
    group->received.ended = received;
    for (int i = 0; i < count; i++) {
        struct wf_coll_task *task = ended[i].user_data;
        if (task)
            task->ended(group, task, &ended[i]);
    }
}

/* `all`: also after one of them has ended an operation. */
static int take_completions(struct weft_group *group, bool all)
{
    struct weft_completion ended[BATCH];
    uint64_t before = group->finished;
    int count, sum = 0;
    while ((all || group->finished == before) && (count = weft_queue_poll(group->queue, ended, BATCH)) > 0) {
        dispatch(group, ended, count);
        sum += count;
    }
    return sum;
}

/* A loss comes after what was said before it: that is in the queue. */
static int take_events(struct weft_group *group)
{
    struct weft_event event;
    if (group->taking) /* what was said before a loss may be in that thread's hands */
        return 0;
    int count = weft_event_poll(group->context, &event, 1);
    if (count <= 0)
        return 0;
    switch (event.kind) {
    case WEFT_EVENT_PEER:
        wf_coll_came(group, event.peer);
        break;
    case WEFT_EVENT_CONNECTION:
        wf_coll_connected(group, event.peer, event.endpoint, event.connection);
        break;
    case WEFT_EVENT_LOST:
        take_completions(group, true);
        wf_coll_lost(group, &event);
        break;
    default:
        break;
    }
    return 1;
}

static void set_timer(struct weft_group *group)
{
    int64_t next_ns = wf_coll_sessions_next_ns(group), other_ns = wf_coll_operations_next_ns(group);
    if (other_ns < next_ns)
        next_ns = other_ns;
    if (group->phase != WF_COLL_MADE && group->status == 0) {
        if (group->deadline_ns < next_ns)
            next_ns = group->deadline_ns;
        if (group->phase == WF_COLL_LOOKING && group->look_ns < next_ns)
            next_ns = group->look_ns;
        if (group->knows_ns < next_ns && group->knows_ns > wf_coll_now_ns())
            next_ns = group->knows_ns;
    }
    if (group->timer_ns <= next_ns && group->timer_ns > wf_coll_now_ns())
        return; /* too early does no harm, and an operation that ends in time sets no timer */
    struct itimerspec at = {0};
    group->timer_ns = next_ns;
    if (next_ns != WF_COLL_NEVER) {
        at.it_value.tv_sec = next_ns / 1000000000LL;
        at.it_value.tv_nsec = next_ns % 1000000000LL;
        at.it_value.tv_nsec += at.it_value.tv_sec == 0 && at.it_value.tv_nsec == 0;
    }
    timerfd_settime(group->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* When an operation has ended, its caller goes on first: another look would find nothing yet, and to look in vain makes
 * the library acknowledge in frames of their own what the next message acknowledges by the way. */
void wf_coll_drive(struct weft_group *group)
{
    uint64_t before = group->finished;
    int count;
    do {
        do {
            count = take_completions(group, false);
            count += take_events(group);
        } while (count > 0 && group->finished == before);
        wf_coll_judge_trouble(group);
        count = wf_coll_collectives_tend(group);
    } while (count > 0 && group->finished == before);
    int64_t now_ns = wf_coll_now_ns();
    wf_coll_sessions_tend(group, now_ns);
    wf_coll_making_tend(group, now_ns);
    wf_coll_operations_tend(group, now_ns);
    set_timer(group);
}

/* Messages are expected: looks for them for a moment, and lets others run meanwhile. While that does not pay, it does
 * so less and less often. 0: sleep. */
static int look_again(struct weft_group *group)
{
    struct weft_completion ended[BATCH];
    int64_t until_ns = wf_coll_now_ns() + LOOK_NS;
    int count;
    if (group->looks_left > 0) {
        group->looks_left--;
        return 0;
    }
    group->taking = true;
    wf_coll_unlock(group);
    while ((count = weft_queue_poll(group->queue, ended, BATCH)) == 0 && wf_coll_now_ns() < until_ns)
        sched_yield();
    pthread_mutex_lock(&group->lock);
    group->taking = false;
    dispatch(group, ended, count);
    group->fruitless = count > 0                                  ? 0
                       : group->fruitless * 2 + 1 < FRUITLESS_MAX ? group->fruitless * 2 + 1
                                                                  : FRUITLESS_MAX;
    group->looks_left = group->fruitless;
    return count;
}

void wf_coll_rest(struct weft_group *group, int64_t until_ns)
{
    if (group->transfers > 0 && group->sleepers == 0 && !group->taking && look_again(group) > 0)
        return;
    group->sleepers++;
    wf_coll_unlock(group);
    wf_coll_sleep(group, until_ns);
    pthread_mutex_lock(&group->lock);
    group->sleepers--;
}

void wf_coll_sleep(struct weft_group *group, int64_t until_ns)
{
    int64_t left_ms = until_ns == WF_COLL_NEVER ? -1 : (until_ns - wf_coll_now_ns() + 999999) / 1000000;
    struct pollfd ready = {.fd = group->set, .events = POLLIN};
    if (until_ns != WF_COLL_NEVER && left_ms <= 0)
        return;
    poll(&ready, 1, left_ms > INT32_MAX ? INT32_MAX : (int)left_ms);
}
