/* The calls of weft_coll.h on a group that is up. */
#include <errno.h>

#include "collective/group/group.h"

static int enter(struct weft_group *group, int timeout_ms, bool waited, void *user_data, struct wf_coll_operation **out,
                 struct weft_error *err)
{
    if (group->status < 0)
        return wf_coll_refuse(err, group->status, "%s", group->text);
    int result = group == &group->hub->whole ? wf_coll_enter(group->hub, timeout_ms, waited, user_data, out)
                                             : wf_coll_pass(group, timeout_ms, waited, user_data, out);
    return result < 0 ? wf_coll_refuse(err, result, "no memory for a barrier") : 0;
}

int weft_group_barrier(struct weft_group *group, int timeout_ms, struct weft_error *err)
{
    struct weft_error unused = {0};
    struct wf_coll_operation *operation;
    err = err ? err : &unused;
    if (!group)
        return wf_coll_refuse(err, -EINVAL, "weft_group_barrier: group is NULL");
    pthread_mutex_lock(&group->hub->lock);
    wf_coll_drive(group->hub);
    int result = enter(group, timeout_ms, true, NULL, &operation, err);
    if (result == 0)
        result = wf_coll_await(operation, err);
    wf_coll_unlock(group->hub);
    return result;
}

int weft_group_barrier_start(struct weft_group *group, int timeout_ms, void *user_data, struct weft_error *err)
{
    struct weft_error unused = {0};
    struct wf_coll_operation *operation;
    err = err ? err : &unused;
    if (!group || timeout_ms < 0)
        return wf_coll_refuse(err, -EINVAL, "weft_group_barrier_start: %s",
                              group ? "timeout_ms is below 0" : "group is NULL");
    pthread_mutex_lock(&group->hub->lock);
    wf_coll_drive(group->hub);
    int result = enter(group, timeout_ms > 0 ? timeout_ms : -1, false, user_data, &operation, err);
    wf_coll_drive(group->hub);
    wf_coll_unlock(group->hub);
    return result;
}

int weft_group_wait(struct weft_group *group, int timeout_ms, struct weft_completion *completions, int max)
{
    if (!group || !completions || max < 1)
        return -EINVAL;
    int64_t until_ns = timeout_ms < 0 ? WF_COLL_NEVER : wf_coll_now_ns() + timeout_ms * 1000000LL;
    int count;
    pthread_mutex_lock(&group->hub->lock);
    for (;;) {
        wf_coll_drive(group->hub);
        count = wf_coll_take_ended(group, completions, max);
        if (count > 0 || (until_ns != WF_COLL_NEVER && wf_coll_now_ns() >= until_ns))
            break;
        wf_coll_rest(group->hub, until_ns);
    }
    wf_coll_unlock(group->hub);
    return count > 0 ? count : -ETIMEDOUT;
}

int weft_group_poll(struct weft_group *group, struct weft_completion *completions, int max)
{
    int count = weft_group_wait(group, 0, completions, max);
    return count == -ETIMEDOUT ? 0 : count;
}

int weft_group_fd(struct weft_group *group)
{
    return group ? group->hub->set : -EINVAL;
}

static struct wf_coll_session *session_with(const struct weft_group *group, uint32_t rank)
{
    return group->hub->members[group->places[rank].member].session;
}

/* Of the attempts to connect to it that go on; "": none has failed. */
static const char *last_failure(const struct weft_group *group, uint32_t rank)
{
    const struct wf_coll_session *dial = group->hub->members[group->places[rank].member].dial;
    return dial ? dial->text : "";
}

int weft_group_connection(struct weft_group *group, uint32_t rank, int timeout_ms, struct weft_connection **out,
                          struct weft_error *err)
{
    struct weft_error unused = {0};
    err = err ? err : &unused;
    if (!group || !out || rank >= group->size || rank == group->rank)
        return wf_coll_refuse(err, -EINVAL, "weft_group_connection: %s",
                              !group ? "group is NULL"
                              : !out ? "out is NULL"
                                     : "no such rank, or the own one");
    int64_t until_ns = timeout_ms < 0 ? WF_COLL_NEVER : wf_coll_now_ns() + timeout_ms * 1000000LL;
    pthread_mutex_lock(&group->hub->lock);
    int result;
    group->places[rank].waiters += 1;
    for (;;) {
        wf_coll_drive(group->hub);
        result = wf_coll_reach(group, rank, WF_COLL_USER, until_ns, err);
        if (result != 0)
            break;
        if (until_ns != WF_COLL_NEVER && wf_coll_now_ns() >= until_ns) {
            const char *why = last_failure(group, rank);
            if (timeout_ms > 0 && group->places[rank].waiters == 1)
                group->places[rank].awaited[WF_COLL_USER] = false; /* who only looks in hears it the next time */
            result = wf_coll_refuse(err, -ETIMEDOUT, "%s did not answer within %d ms%s%s", group->places[rank].name,
                                    timeout_ms, why[0] ? ": " : "", why);
            break;
        }
        wf_coll_rest(group->hub, until_ns);
    }
    group->places[rank].waiters -= 1;
    if (result == 1) {
        struct wf_coll_session *session = session_with(group, rank);
        session->wanted = true;
        session->used = ++group->hub->uses;
        *out = session->data;
    }
    wf_coll_unlock(group->hub);
    return result == 1 ? 0 : result;
}

struct weft_peer *weft_group_peer(struct weft_group *group, uint32_t rank)
{
    if (!group || rank >= group->size)
        return NULL;
    pthread_mutex_lock(&group->hub->lock);
    const struct wf_coll_session *session = session_with(group, rank);
    struct weft_peer *peer = session && session->wanted ? session->peer : NULL;
    pthread_mutex_unlock(&group->hub->lock);
    return peer;
}

void weft_group_release(struct weft_group *group, uint32_t rank)
{
    if (!group || rank >= group->size)
        return;
    pthread_mutex_lock(&group->hub->lock);
    struct wf_coll_session *session = session_with(group, rank);
    if (session)
        wf_coll_done_with(group->hub, session);
    wf_coll_unlock(group->hub);
}

uint32_t weft_group_sessions(struct weft_group *group)
{
    uint32_t count = 0;
    if (!group)
        return 0;
    pthread_mutex_lock(&group->hub->lock);
    wf_coll_drive(group->hub);
    for (const struct wf_coll_session *session = group->hub->sessions; session; session = session->next)
        count += session->state == WF_COLL_OPEN || session->state == WF_COLL_PARTED;
    wf_coll_unlock(group->hub);
    return count;
}
