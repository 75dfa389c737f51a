/* What was started here and has not been taken: the list, deadlines, and the bell. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "collective/group/group.h"

#define CROWDED_NS 1000000            /* until posts are tried again that found the setting `requests` exhausted */
#define PRESENT_NS (2 * 1000000000LL) /* who waits for longer tells the board: others may have less patience */

/* The place of the first operation from `at` on that is the group's; NULL is in it: there is none. */
static struct wf_coll_operation **of_group(struct wf_coll_operation **at, const struct weft_group *group)
{
    while (*at && (*at)->group != group)
        at = &(*at)->next;
    return at;
}

struct wf_coll_operation *wf_coll_operation_of(const struct wf_coll_hub *hub, const struct wf_op *op)
{
    struct wf_coll_operation *at = hub->operations;
    while (at && at->op != op)
        at = at->next;
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
        .present_ns = now_ns + (timeout_ms < 0 || time_ns / 4 > PRESENT_NS ? PRESENT_NS : time_ns / 4),
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

/* The bell is for the user's event loop. Of a group that is being destroyed nobody takes what has ended. */
static void ring_bell(struct wf_coll_hub *hub)
{
    bool ring = false;
    for (const struct wf_coll_operation *at = hub->operations; at && !ring; at = at->next)
        ring = at->ended && !at->waited && !at->group->leaving;
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
    if (operation->op && !wf_op_idle(operation->op))
        return; /* the library may still write to it, and to a barrier's byte */
    wf_op_destroy(operation->op);
    wf_coll_stage_end(operation->group->hub, operation->stage);
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

static bool is_judged(const struct wf_coll_operation *operation)
{
    return !operation->ended && operation->group->status == 0 && !operation->group->leaving;
}

/* Notes in each group the newest operation for which it is time to tell the board, and to ask it: what is said of one
 * holds for all before it. And the one that is judged first of those to ask for: an answer for it is enough. */
static void note_due(struct wf_coll_hub *hub, int64_t now_ns)
{
    uint64_t round = ++hub->rounds;
    for (const struct wf_coll_operation *at = hub->operations; at; at = at->next) {
        struct weft_group *group = at->group;
        if (group->tended != round)
            group->present_due = group->ask_due = group->judged_next = 0;
        int64_t first_ns = group->judged_next ? group->judged_next_ns : WF_COLL_NEVER;
        group->tended = round;
        if (is_judged(at) && now_ns >= at->present_ns)
            group->present_due = at->order;
        if (!is_judged(at) || now_ns < at->ask_ns)
            continue;
        group->ask_due = at->order;
        if (at->deadline_ns < first_ns) {
            group->judged_next = at->order;
            group->judged_next_ns = at->deadline_ns;
        }
    }
}

static void tend(const struct wf_coll_operation *operation, int64_t now_ns)
{
    if (operation->order == operation->group->present_due)
        wf_coll_board_present(operation->group, operation->order);
    if (operation->order == operation->group->ask_due && operation->group->board.asked < operation->group->judged_next)
        wf_coll_board_ask(operation->group, operation->order);
    if (now_ns >= operation->deadline_ns)
        wf_coll_board_judge(operation);
}

void wf_coll_operations_tend(struct wf_coll_hub *hub, int64_t now_ns)
{
    note_due(hub, now_ns);
    for (const struct wf_coll_operation *at = hub->operations; at; at = at->next)
        if (is_judged(at))
            tend(at, now_ns);
}

int64_t wf_coll_operations_next_ns(struct wf_coll_hub *hub)
{
    int64_t next_ns = WF_COLL_NEVER, now_ns = wf_coll_now_ns();
    for (const struct wf_coll_operation *at = hub->operations; at; at = at->next) {
        int64_t at_ns = at->present_ns > now_ns ? at->present_ns : at->ask_ns > now_ns ? at->ask_ns : at->deadline_ns;
        if (is_judged(at) && at_ns < next_ns)
            next_ns = at_ns;
    }
    return hub->crowded && now_ns + CROWDED_NS < next_ns ? now_ns + CROWDED_NS : next_ns;
}
