/* What was started here and has not been taken: the list, deadlines, and the bell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collective/group/group.h"

#define CROWDED_NS 1000000 /* until posts are tried again that found the setting `requests` exhausted */

/* The place of the first operation from `at` on that is the group's; NULL is in it: there is none. */
static struct wf_coll_operation **of_group(struct wf_coll_operation **at, const struct weft_group *group)
{
    while (*at && (*at)->group != group)
        at = &(*at)->next;
    return at;
}

struct wf_coll_operation *wf_coll_operation_add(struct weft_group *group, int timeout_ms, bool waited, void *user_data)
{
    struct wf_coll_operation *operation = calloc(1, sizeof *operation);
    if (!operation)
        return NULL;
    int64_t now_ns = wf_coll_now_ns(), time_ns = timeout_ms * 1000000LL;
    *operation = (struct wf_coll_operation){
        .group = group,
        .order = ++group->ordered,
        .waited = waited,
        .user_data = user_data,
        .started_ns = now_ns,
        .present_ns = timeout_ms < 0 ? WF_COLL_NEVER : now_ns + time_ns / 4,
        .ask_ns = timeout_ms < 0 ? WF_COLL_NEVER : now_ns + time_ns - time_ns / 12,
        .deadline_ns = timeout_ms < 0 ? WF_COLL_NEVER : now_ns + time_ns,
    };
    struct wf_coll_operation **at = &group->hub->operations;
    while (*at)
        at = &(*at)->next;
    *at = operation;
    wf_coll_board_began(group);
    return operation;
}

/* The bell is for the user's event loop. */
static void ring_bell(struct wf_coll_hub *hub)
{
    bool ring = false;
    for (const struct wf_coll_operation *at = hub->operations; at && !ring; at = at->next)
        ring = at->ended && !at->waited;
    uint64_t one = 1;
    if (ring == hub->rung)
        return;
    ssize_t moved = ring ? write(hub->bell, &one, sizeof one) : read(hub->bell, &one, sizeof one);
    hub->rung = moved == sizeof one ? ring : hub->rung;
}

void wf_coll_unlock(struct wf_coll_hub *hub)
{
    ring_bell(hub);
    pthread_mutex_unlock(&hub->lock);
}

void wf_coll_operation_end(struct wf_coll_operation *operation, int status, uint64_t bytes)
{
    if (operation->ended)
        return;
    operation->ended = true;
    operation->group->hub->finished++;
    wf_coll_wake(operation->group->hub);
    operation->completion = (struct weft_completion){
        .status = status,
        .bytes = status == 0 ? bytes : 0,
        .completed_ns = wf_coll_now_ns(),
        .user_data = operation->user_data,
    };
    snprintf(operation->completion.text, sizeof operation->completion.text, "%s",
             status < 0 ? operation->group->text : "");
}

void wf_coll_operations_end(struct weft_group *group)
{
    wf_coll_collectives_stop(group);
    for (struct wf_coll_operation *at = group->hub->operations; at; at = at->next)
        if (at->group == group && (!at->op || wf_op_idle(at->op)))
            wf_coll_operation_end(at, group->status, 0);
}

static void operation_free(struct wf_coll_operation *operation)
{
    if (!operation->op || wf_op_idle(operation->op)) { /* else the library may still write to it */
        wf_op_destroy(operation->op);
        wf_coll_stage_end(operation->group->hub, operation->stage);
    }
    free(operation);
}

void wf_coll_operations_free(struct weft_group *group)
{
    struct wf_coll_operation **at = of_group(&group->hub->operations, group);
    while (*at) {
        struct wf_coll_operation *operation = *at;
        *at = operation->next;
        operation_free(operation);
        at = of_group(at, group);
    }
}

static void take_out(struct wf_coll_operation *operation)
{
    struct wf_coll_operation **at = &operation->group->hub->operations;
    while (*at != operation)
        at = &(*at)->next;
    *at = operation->next;
    operation_free(operation);
}

void wf_coll_operation_undo(struct wf_coll_operation *operation)
{
    operation->group->ordered--;
    take_out(operation);
}

int wf_coll_await(struct wf_coll_operation *operation, struct weft_error *err)
{
    struct wf_coll_hub *hub = operation->group->hub;
    while (!operation->ended) {
        wf_coll_drive(hub);
        if (!operation->ended)
            wf_coll_rest(hub, WF_COLL_NEVER);
    }
    int result = operation->completion.status;
    if (result < 0)
        wf_coll_refuse(err, result, "%s", operation->completion.text);
    take_out(operation);
    return result;
}

int wf_coll_take_ended(struct weft_group *group, struct weft_completion *completions, int max)
{
    int count = 0;
    struct wf_coll_operation **at = of_group(&group->hub->operations, group);
    for (; *at && count < max; at = of_group(at, group)) {
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

uint64_t wf_coll_operations_done(const struct weft_group *group)
{
    const struct wf_coll_operation *at = group->hub->operations;
    while (at && (at->group != group || at->ended))
        at = at->next;
    return at ? at->order : group->ordered + 1;
}

/* --- time --- */

/* From `at` on, the first operation that is the oldest of its group with a deadline, in this round. */
static struct wf_coll_operation *oldest(struct wf_coll_operation *at, uint64_t round)
{
    while (at && (at->ended || at->deadline_ns == WF_COLL_NEVER || at->group->status < 0 || at->group->leaving ||
                  at->group->tended == round))
        at = at->next;
    if (at)
        at->group->tended = round;
    return at;
}

static void tend(const struct wf_coll_operation *operation, int64_t now_ns)
{
    if (now_ns >= operation->present_ns)
        wf_coll_board_present(operation->group, operation->order);
    if (now_ns >= operation->ask_ns)
        wf_coll_board_ask(operation->group, operation->order);
    if (now_ns >= operation->deadline_ns)
        wf_coll_board_judge(operation);
}

void wf_coll_operations_tend(struct wf_coll_hub *hub, int64_t now_ns)
{
    uint64_t round = ++hub->rounds;
    struct wf_coll_operation *operation = oldest(hub->operations, round);
    for (; operation; operation = oldest(operation->next, round))
        tend(operation, now_ns);
}

int64_t wf_coll_operations_next_ns(struct wf_coll_hub *hub)
{
    int64_t next_ns = WF_COLL_NEVER, now_ns = wf_coll_now_ns();
    uint64_t round = ++hub->rounds;
    struct wf_coll_operation *operation = oldest(hub->operations, round);
    for (; operation; operation = oldest(operation->next, round)) {
        int64_t at_ns = operation->present_ns > now_ns ? operation->present_ns
                        : operation->ask_ns > now_ns   ? operation->ask_ns
                                                       : operation->deadline_ns;
        next_ns = at_ns < next_ns ? at_ns : next_ns;
    }
    return hub->crowded && now_ns + CROWDED_NS < next_ns ? now_ns + CROWDED_NS : next_ns;
}
