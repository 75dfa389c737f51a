/*
 * Barriers, by the tree: UP when all below have entered, DOWN when all have. Both carry the barrier's number, and
 * numbers only grow, so three of them are the whole state, and several barriers may be under way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "collective/group/words.h"

static uint32_t child(const struct weft_group *group, int i)
{
    return 2 * group->rank + 1 + (uint32_t)i;
}

bool wf_coll_is_near(const struct weft_group *group, uint32_t rank)
{
    return (group->rank > 0 && rank == (group->rank - 1) / 2) || (rank > 0 && (rank - 1) / 2 == group->rank);
}

static void end_done(struct weft_group *group)
{
    for (struct wf_coll_operation *at = group->operations; at; at = at->next)
        if (at->barrier > 0 && at->barrier <= group->done)
            wf_coll_operation_end(group, at, 0, 0);
}

static void pass_down(struct weft_group *group)
{
    for (int i = 0; i < 2; i++)
        if (child(group, i) < group->size && group->members[child(group, i)].session)
            wf_coll_say(group, group->members[child(group, i)].session, WF_COLL_DOWN, "%llu %llu",
                        (unsigned long long)group->done, (unsigned long long)group->board_key);
}

static bool below_have(const struct weft_group *group, uint64_t number)
{
    for (int i = 0; i < 2; i++)
        if (child(group, i) < group->size && group->child_sent[i] < number)
            return false;
    return true;
}

void wf_coll_advance(struct weft_group *group)
{
    struct wf_coll_session *parent = group->rank > 0 ? group->members[(group->rank - 1) / 2].session : NULL;
    if (group->status < 0 || (group->rank > 0 && !parent))
        return;
    bool more = false;
    while (group->sent < group->entered && below_have(group, group->sent + 1)) {
        group->sent++;
        more = true;
    }
    if (!more)
        return;
    if (group->rank > 0) {
        wf_coll_say(group, parent, WF_COLL_UP, "%llu", (unsigned long long)group->sent);
        return;
    }
    group->done = group->sent;
    pass_down(group);
    end_done(group);
}

void wf_coll_up(struct weft_group *group, struct wf_coll_session *session, const char *text)
{
    unsigned long long number = strtoull(text, NULL, 10);
    for (int i = 0; i < 2; i++)
        if (session->rank == child(group, i) && number > group->child_sent[i])
            group->child_sent[i] = number;
    wf_coll_advance(group);
}

void wf_coll_down(struct weft_group *group, const char *text)
{
    unsigned long long number, key;
    if (sscanf(text, "%llu %llu", &number, &key) != 2 || number > group->sent || number <= group->done)
        return;
    group->done = number;
    group->board_key = key;
    pass_down(group);
    end_done(group);
}

void wf_coll_left(struct weft_group *group, uint32_t rank)
{
    group->members[rank].left = true;
    if (group->entered > group->done && wf_coll_is_near(group, rank))
        wf_coll_fail(group, -ESHUTDOWN, "%s has left the group before barrier %llu", group->members[rank].name,
                     (unsigned long long)group->done);
}

int wf_coll_enter(struct weft_group *group, int timeout_ms, bool waited, void *user_data,
                  struct wf_coll_operation **out)
{
    struct wf_coll_operation *operation = wf_coll_operation_add(group, timeout_ms, waited, user_data);
    if (!operation)
        return -ENOMEM;
    operation->barrier = ++group->entered;
    *out = operation;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (group->members[rank].left && wf_coll_is_near(group, rank))
            wf_coll_left(group, rank);
    wf_coll_advance(group);
    return 0;
}
