/*
 * Barriers, by the tree: UP when all below have entered, DOWN when all have. Both carry the barrier's number, and
 * numbers only grow, so three of them are the whole state, and several barriers may be under way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/group/words.h"

static uint32_t child(const struct weft_group *group, int i)
{
    return 2 * group->rank + 1 + (uint32_t)i;
}

bool wf_coll_is_near(const struct weft_group *group, uint32_t rank)
{
    return (group->rank > 0 && rank == (group->rank - 1) / 2) || (rank > 0 && (rank - 1) / 2 == group->rank);
}

void wf_coll_ring(struct weft_group *group)
{
    bool ring = false;
    for (const struct wf_coll_operation *at = group->operations; at && !ring; at = at->next)
        ring = at->ended;
    uint64_t one = 1;
    if (ring == group->rung)
        return;
    ssize_t moved = ring ? write(group->bell, &one, sizeof one) : read(group->bell, &one, sizeof one);
    group->rung = moved == sizeof one ? ring : group->rung;
}

static void end(struct weft_group *group, struct wf_coll_operation *operation, int status, const char *text)
{
    operation->ended = true;
    operation->completion =
        (struct weft_completion){.status = status, .completed_ns = wf_coll_now_ns(), .user_data = operation->user_data};
    snprintf(operation->completion.text, sizeof operation->completion.text, "%s", text);
    (void)group;
}

static void end_done(struct weft_group *group)
{
    for (struct wf_coll_operation *at = group->operations; at && at->number <= group->done; at = at->next)
        if (!at->ended)
            end(group, at, 0, "");
    wf_coll_ring(group);
}

void wf_coll_operations_end(struct weft_group *group)
{
    for (struct wf_coll_operation *at = group->operations; at; at = at->next)
        if (!at->ended)
            end(group, at, group->status, group->text);
    wf_coll_ring(group);
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
    struct wf_coll_operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return -ENOMEM;
    int64_t now_ns = wf_coll_now_ns(), time_ns = timeout_ms * 1000000LL;
    *operation = (struct wf_coll_operation){
        .number = ++group->entered,
        .waited = waited,
        .user_data = user_data,
        .started_ns = now_ns,
        .present_ns = timeout_ms < 0 ? WF_COLL_NEVER : now_ns + time_ns / 4,
        .ask_ns = timeout_ms < 0 ? WF_COLL_NEVER : now_ns + time_ns - time_ns / 12,
        .deadline_ns = timeout_ms < 0 ? WF_COLL_NEVER : now_ns + time_ns,
    };
    struct wf_coll_operation **at = &group->operations;
    while (*at)
        at = &(*at)->next;
    *at = operation;
    *out = operation;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (group->members[rank].left && wf_coll_is_near(group, rank))
            wf_coll_left(group, rank);
    wf_coll_advance(group);
    return 0;
}

/* --- time --- */

static const struct wf_coll_operation *oldest(const struct weft_group *group)
{
    const struct wf_coll_operation *at = group->operations;
    while (at && (at->ended || at->deadline_ns == WF_COLL_NEVER))
        at = at->next;
    return at;
}

void wf_coll_barriers_tend(struct weft_group *group, int64_t now_ns)
{
    const struct wf_coll_operation *operation = oldest(group);
    if (!operation || group->status < 0)
        return;
    if (now_ns >= operation->present_ns)
        wf_coll_board_present(group, operation->number);
    if (now_ns >= operation->ask_ns)
        wf_coll_board_ask(group, operation->number);
    if (now_ns >= operation->deadline_ns)
        wf_coll_board_judge(group, operation);
}

int64_t wf_coll_barriers_next_ns(const struct weft_group *group)
{
    const struct wf_coll_operation *operation = oldest(group);
    if (!operation || group->status < 0)
        return WF_COLL_NEVER;
    int64_t now_ns = wf_coll_now_ns();
    return operation->present_ns > now_ns ? operation->present_ns
           : operation->ask_ns > now_ns   ? operation->ask_ns
                                          : operation->deadline_ns;
}
