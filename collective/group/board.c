/*
 * Who is late, where no member may be asked: the late ones answer nobody. So whoever has waited for a quarter of its
 * time writes the number of its operation to the board, which is memory of rank 0 that the library serves without rank
 * 0's help; and reads all of it before its time is over. Rank 0 itself never touches that memory: it is told the same
 * in messages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/group/words.h"

int wf_coll_board_create(struct weft_group *group, struct weft_error *err)
{
    if (group->rank != 0)
        return 0;
    group->board = calloc(group->size, sizeof *group->board);
    if (!group->board)
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", group->size);
    int result = weft_register_for(group->context, group->board, group->size * sizeof *group->board,
                                   WEFT_REMOTE_READ | WEFT_REMOTE_WRITE, &group->board_registration, err);
    if (result == 0)
        group->board_key = weft_registration_key(group->board_registration);
    return result;
}

void wf_coll_board_destroy(struct weft_group *group)
{
    weft_deregister(group->board_registration);
    free(group->board);
    free(group->seen);
}

/* The session with rank 0, which need not have been answered; NULL: there is none yet. */
static struct wf_coll_session *way(struct weft_group *group)
{
    struct wf_coll_member *first = &group->members[0];
    if (first->session)
        return first->session;
    if (!first->dial && wf_coll_dial(group, 0, WF_COLL_NEVER, 0, false) < 0)
        return NULL;
    return first->dial && first->dial->state == WF_COLL_KNOCKING ? first->dial : NULL;
}

struct mark {
    struct wf_coll_task task;
    uint64_t number;
};

static void written(struct weft_group *group, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)completion;
    group->notes--;
    free((struct mark *)task);
}

static void write_mark(struct weft_group *group, struct wf_coll_session *session, uint64_t number)
{
    struct mark *mark = calloc(1, sizeof *mark);
    if (!mark)
        return;
    *mark = (struct mark){.task.ended = written, .number = number};
    struct weft_options options = {.queue = group->queue, .user_data = &mark->task};
    struct weft_request *request;
    group->notes++;
    if (weft_write(session->control, &mark->number, sizeof mark->number, group->board_key,
                   group->rank * sizeof mark->number, &options, &request) < 0)
        written(group, &mark->task, NULL);
}

void wf_coll_board_present(struct weft_group *group, uint64_t number)
{
    if (group->rank == 0 || group->presented >= number || group->phase != WF_COLL_MADE)
        return;
    struct wf_coll_session *session = way(group);
    if (!session)
        return;
    group->presented = number;
    write_mark(group, session, number);
    wf_coll_say(group, session, WF_COLL_PRESENT, "%llu", (unsigned long long)number);
}

struct look {
    struct wf_coll_task task;
    uint64_t number;
};

static void read_board(struct weft_group *group, struct wf_coll_task *task, const struct weft_completion *completion)
{
    group->seeing = false;
    group->seen_valid = completion->status == 0 && ((struct look *)task)->number == group->asked;
    free((struct look *)task);
}

void wf_coll_board_ask(struct weft_group *group, uint64_t number)
{
    if (group->rank == 0 || group->asked >= number || group->seeing || group->presented < number)
        return;
    struct wf_coll_session *session = way(group);
    if (!group->seen)
        group->seen = calloc(group->size, sizeof *group->seen);
    struct look *look = session && group->seen ? calloc(1, sizeof *look) : NULL;
    if (!look)
        return;
    *look = (struct look){.task.ended = read_board, .number = number};
    struct weft_options options = {.queue = group->queue, .user_data = &look->task};
    struct weft_request *request;
    group->asked = number;
    group->seen_valid = false;
    group->seeing = weft_read(session->control, group->seen, group->size * sizeof *group->seen, group->board_key, 0,
                              &options, &request) == 0;
    if (!group->seeing)
        free(look);
}

void wf_coll_board_is_present(struct weft_group *group, struct wf_coll_session *session, const char *text)
{
    unsigned long long number = strtoull(text, NULL, 10);
    if (session->rank < 0)
        return;
    group->members[session->rank].present = number;
    if (group->rank == 0 && group->ordered >= number)
        wf_coll_say(group, session, WF_COLL_HERE, "%llu", number);
}

void wf_coll_board_here(struct weft_group *group, const char *text)
{
    group->first_here = strtoull(text, NULL, 10);
}

static bool is_present(const struct weft_group *group, uint32_t rank, uint64_t order)
{
    if (rank == group->rank)
        return true;
    if (group->rank == 0)
        return group->members[rank].present >= order;
    return rank == 0 ? group->first_here >= order : group->seen[rank] >= order;
}

static bool is_late(struct weft_group *group, uint32_t rank)
{
    const struct wf_coll_operation *operation = group->judged;
    for (int i = 0; i < 2 && operation->barrier > 0; i++)
        if (rank == 2 * group->rank + 1 + (uint32_t)i && group->child_sent[i] >= operation->barrier)
            return false;
    return !is_present(group, rank, operation->order);
}

/* In a line some may have done their part and gone on. So late is the first one on the way that is not there: up the
 * line from one whose message is missing, down the line from one that does not take ours. */
static bool is_first_late(struct weft_group *group, uint32_t rank)
{
    const struct wf_coll_operation *operation = group->judged;
    for (int receives = 1; receives >= 0; receives--) {
        uint32_t at = wf_op_waits_for(operation->op, receives);
        for (uint32_t i = 0; i < group->size && at != WF_OPS_NOBODY; i++) {
            if (!is_present(group, at, operation->order))
                return rank == at;
            at = wf_op_neighbour(operation->op, at, receives);
        }
    }
    return false;
}

static void name_operation(const struct wf_coll_operation *operation, char text[64])
{
    if (operation->op)
        snprintf(text, 64, "collective %llu (%s)", (unsigned long long)operation->collective,
                 wf_op_name(operation->op));
    else
        snprintf(text, 64, "barrier %llu", (unsigned long long)operation->barrier - 1);
}

void wf_coll_board_judge(struct weft_group *group, const struct wf_coll_operation *operation)
{
    int waited_ms = (int)((wf_coll_now_ns() - operation->started_ns) / 1000000);
    char names[160], what[64];
    bool known = group->rank == 0 || (group->seen_valid && group->asked == operation->order);
    bool line = operation->op && wf_op_is_line(operation->op);
    group->judged = operation;
    name_operation(operation, what);
    if (known && wf_coll_list(group, line ? is_first_late : is_late, names, sizeof names) > 0)
        wf_coll_fail(group, -ETIMEDOUT, "%s: %s did not %s it within %d ms", what, names,
                     operation->op ? "start" : "enter", waited_ms);
    else if (known)
        wf_coll_fail(group, -ETIMEDOUT, "%s did not end within %d ms, though all members are in it", what, waited_ms);
    else
        wf_coll_fail(group, -ETIMEDOUT, "%s did not end within %d ms; who is late is not known, for %s does not answer",
                     what, waited_ms, group->members[0].name);
}
