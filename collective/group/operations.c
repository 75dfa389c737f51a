/* What was started here and has not been taken: the list, deadlines, and the bell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collective/group/group.h"

#define CROWDED_NS 1000000 /* until posts are tried again that found the setting `requests` exhausted */

struct wf_coll_operation *wf_coll_operation_add(struct weft_group *group, int timeout_ms, bool waited, void *user_data)
{
    struct wf_coll_operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    int64_t now_ns = wf_coll_now_ns(), time_ns = timeout_ms * 1000000LL;
    *operation = (struct wf_coll_operation){
        .order = ++group->ordered,
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
    return operation;
}

/* The bell is for who sleeps: the one that drives sees without it what it has ended. */
static void ring_bell(struct weft_group *group)
{
    bool ring = false;
    for (const struct wf_coll_operation *at = group->operations; at && !ring; at = at->next)
        ring = at->ended && (!at->waited || group->sleepers > 0);
    uint64_t one = 1;
    if (ring == group->rung)
        return;
    ssize_t moved = ring ? write(group->bell, &one, sizeof one) : read(group->bell, &one, sizeof one);
    group->rung = moved == sizeof one ? ring : group->rung;
}

void wf_coll_unlock(struct weft_group *group)
{
    ring_bell(group);
    pthread_mutex_unlock(&group->lock);
}

void wf_coll_operation_end(struct weft_group *group, struct wf_coll_operation *operation, int status, uint64_t bytes)
{
    if (operation->ended)
        return;
    operation->ended = true;
    group->finished++;
    operation->completion = (struct weft_completion){
        .status = status,
        .bytes = status == 0 ? bytes : 0,
        .completed_ns = wf_coll_now_ns(),
        .user_data = operation->user_data,
    };
    snprintf(operation->completion.text, sizeof operation->completion.text, "%s", status < 0 ? group->text : "");
}

void wf_coll_operations_end(struct weft_group *group)
{
    wf_coll_collectives_stop(group);
    for (struct wf_coll_operation *at = group->operations; at; at = at->next)
        if (!at->op || wf_op_idle(at->op))
            wf_coll_operation_end(group, at, group->status, 0);
}

static void operation_free(struct wf_coll_operation *operation)
{
    if (!operation->op || wf_op_idle(operation->op)) { /* else the library may still write to it */
        wf_op_destroy(operation->op);
        wf_coll_stage_destroy(operation->stage);
    }
    free(operation);
}

void wf_coll_operations_free(struct weft_group *group)
{
    while (group->operations) {
        struct wf_coll_operation *operation = group->operations;
        group->operations = operation->next;
        operation_free(operation);
    }
}

static void take_out(struct weft_group *group, struct wf_coll_operation *operation)
{
    struct wf_coll_operation **at = &group->operations;
    while (*at != operation)
        at = &(*at)->next;
    *at = operation->next;
    operation_free(operation);
}

int wf_coll_await(struct weft_group *group, struct wf_coll_operation *operation, struct weft_error *err)
{
    while (!operation->ended) {
        wf_coll_drive(group);
        if (!operation->ended)
            wf_coll_rest(group, WF_COLL_NEVER);
    }
    int result = operation->completion.status;
    if (result < 0)
        wf_coll_refuse(err, result, "%s", operation->completion.text);
    take_out(group, operation);
    return result;
}

int wf_coll_take_ended(struct weft_group *group, struct weft_completion *completions, int max)
{
    int count = 0;
    struct wf_coll_operation **at = &group->operations;
    while (*at && count < max) {
        struct wf_coll_operation *operation = *at;
        if (!operation->ended || operation->waited) {
            at = &operation->next;
            continue;
        }
        completions[count++] = operation->completion;
        *at = operation->next;
        operation_free(operation);
    }
    return count;
}

/* --- time --- */

static const struct wf_coll_operation *oldest(const struct weft_group *group)
{
    const struct wf_coll_operation *at = group->operations;
    while (at && (at->ended || at->deadline_ns == WF_COLL_NEVER))
        at = at->next;
    return at;
}

void wf_coll_operations_tend(struct weft_group *group, int64_t now_ns)
{
    const struct wf_coll_operation *operation = oldest(group);
    if (!operation || group->status < 0)
        return;
    if (now_ns >= operation->present_ns)
        wf_coll_board_present(group, operation->order);
    if (now_ns >= operation->ask_ns)
        wf_coll_board_ask(group, operation->order);
    if (now_ns >= operation->deadline_ns)
        wf_coll_board_judge(group, operation);
}

int64_t wf_coll_operations_next_ns(const struct weft_group *group)
{
    const struct wf_coll_operation *operation = oldest(group);
    int64_t next_ns = WF_COLL_NEVER;
    if (group->status < 0 || (!operation && !group->crowded))
        return next_ns;
    int64_t now_ns = wf_coll_now_ns();
    if (operation)
        next_ns = operation->present_ns > now_ns ? operation->present_ns
                  : operation->ask_ns > now_ns   ? operation->ask_ns
                                                 : operation->deadline_ns;
    return group->crowded && now_ns + CROWDED_NS < next_ns ? now_ns + CROWDED_NS : next_ns;
}
