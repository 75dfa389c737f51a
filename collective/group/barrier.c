/*
 * Barriers of the whole, by the tree: UP when all below have entered, DOWN when all have. Both carry the barrier's
 * number, and numbers only grow, so three of them are the whole state, and several barriers may be under way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "collective/group/words.h"

static uint32_t child(const struct wf_coll_hub *hub, int i)
{
    return 2 * hub->rank + 1 + (uint32_t)i;
}

bool wf_coll_is_near(const struct wf_coll_hub *hub, uint32_t rank)
{
    return (hub->rank > 0 && rank == (hub->rank - 1) / 2) || (rank > 0 && (rank - 1) / 2 == hub->rank);
}

static void end_done(struct wf_coll_hub *hub)
{
    for (struct wf_coll_operation *at = hub->operations; at; at = at->next)
        if (at->group == &hub->whole && at->barrier > 0 && at->barrier <= hub->done)
            wf_coll_operation_end(at, 0, 0);
}

static void pass_down(struct wf_coll_hub *hub)
{
    for (int i = 0; i < 2; i++)
        if (child(hub, i) < hub->size && hub->members[child(hub, i)].session)
            wf_coll_say(hub, hub->members[child(hub, i)].session, WF_COLL_DOWN, "%llu %llu",
                        (unsigned long long)hub->done, (unsigned long long)hub->whole.board.key);
}

static bool below_have(const struct wf_coll_hub *hub, uint64_t number)
{
    for (int i = 0; i < 2; i++)
        if (child(hub, i) < hub->size && hub->child_sent[i] < number)
            return false;
    return true;
}

void wf_coll_advance(struct wf_coll_hub *hub)
{
    struct wf_coll_session *parent = hub->rank > 0 ? hub->members[(hub->rank - 1) / 2].session : NULL;
    if (hub->whole.status < 0 || (hub->rank > 0 && !parent))
        return;
    bool more = false;
    while (hub->sent < hub->entered && below_have(hub, hub->sent + 1)) {
        hub->sent++;
        more = true;
    }
    if (!more)
        return;
    if (hub->rank > 0) {
        wf_coll_say(hub, parent, WF_COLL_UP, "%llu", (unsigned long long)hub->sent);
        return;
    }
    hub->done = hub->sent;
    pass_down(hub);
    end_done(hub);
}

void wf_coll_up(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long number = strtoull(text, NULL, 10);
    for (int i = 0; i < 2; i++)
        if (session->rank == child(hub, i) && number > hub->child_sent[i])
            hub->child_sent[i] = number;
    wf_coll_advance(hub);
}

void wf_coll_down(struct wf_coll_hub *hub, const char *text)
{
    unsigned long long number, key;
    if (sscanf(text, "%llu %llu", &number, &key) != 2 || number > hub->sent || number <= hub->done)
        return;
    hub->done = number;
    hub->whole.board.key = key;
    pass_down(hub);
    end_done(hub);
}

int wf_coll_enter(struct wf_coll_hub *hub, int timeout_ms, bool waited, void *user_data, struct wf_coll_operation **out)
{
    struct wf_coll_operation *operation = wf_coll_operation_add(&hub->whole, timeout_ms, waited, user_data);
    if (!operation)
        return -ENOMEM;
    operation->barrier = ++hub->entered;
    *out = operation;
    wf_coll_judge_left(&hub->whole);
    wf_coll_advance(hub);
    return 0;
}
