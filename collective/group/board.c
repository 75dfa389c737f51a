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
    group->board.marks = calloc(group->size, sizeof *group->board.marks);
    if (!group->board.marks)
        return wf_coll_refuse(err, -ENOMEM, "no memory for a group of %u", group->size);
    int result = weft_register_for(group->hub->context, group->board.marks, group->size * sizeof *group->board.marks,
                                   WEFT_REMOTE_READ | WEFT_REMOTE_WRITE, &group->board.registration, err);
    if (result == 0)
        group->board.key = weft_registration_key(group->board.registration);
    return result;
}

void wf_coll_board_destroy(struct weft_group *group)
{
    weft_deregister(group->board.registration);
    free(group->board.marks);
    if (!group->board.seeing) /* else the library may still write to it */
        free(group->board.seen);
    group->board.registration = NULL;
    group->board.marks = group->board.seen = NULL;
}

/* The session with rank 0, which need not have been answered; NULL: there is none yet. */
static struct wf_coll_session *way(struct weft_group *group)
{
    uint32_t rank = group->places[0].member;
    struct wf_coll_member *first = &group->hub->members[rank];
    if (first->session)
        return first->session;
    if (!first->dial && wf_coll_dial(group->hub, rank, WF_COLL_NEVER, 0, false) < 0)
        return NULL;
    return first->dial && first->dial->state == WF_COLL_KNOCKING ? first->dial : NULL;
}

/* A write to the board, or a read of it. */
struct look {
    struct wf_coll_task task;
    struct weft_group *group;
    uint64_t number;
};

static struct look *look_create(struct weft_group *group, uint64_t number)
{
    struct look *look = calloc(1, sizeof *look);
    if (!look)
        return NULL;
    look->group = group;
    look->number = number;
    group->under_way++;
    group->hub->notes++;
    return look;
}

static void look_destroy(struct look *look)
{
    struct weft_group *group = look->group;
    group->hub->notes--;
    free(look);
    wf_coll_one_less(group);
}

static void written(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)hub, (void)completion;
    look_destroy((struct look *)task);
}

static void write_mark(struct weft_group *group, struct wf_coll_session *session, uint64_t number)
{
    struct look *mark = look_create(group, number);
    if (!mark)
        return;
    mark->task.ended = written;
    struct weft_options options = {.queue = group->hub->queue, .user_data = &mark->task};
    struct weft_request *request;
    if (weft_write(session->control, &mark->number, sizeof mark->number, group->board.key,
                   group->rank * sizeof mark->number, &options, &request) < 0)
        look_destroy(mark);
}

void wf_coll_board_present(struct weft_group *group, uint64_t number)
{
    if (group->rank == 0 || group->board.presented >= number || group->hub->phase != WF_COLL_MADE)
        return;
    struct wf_coll_session *session = way(group);
    if (!session)
        return;
    group->board.presented = number;
    write_mark(group, session, number);
    wf_coll_say(group->hub, session, WF_COLL_PRESENT, "%u %llu", group->places[0].id, (unsigned long long)number);
}

void wf_coll_board_unsaid(struct wf_coll_hub *hub, uint32_t member)
{
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group))
        if (group->size > 0 && group->places[0].member == member)
            group->board.presented = 0;
}

static void read_board(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct look *look = (struct look *)task;
    struct wf_coll_board *board = &look->group->board;
    (void)hub;
    board->seeing = false;
    board->seen_valid = completion->status == 0 && look->number == board->asked;
    look_destroy(look);
}

void wf_coll_board_ask(struct weft_group *group, uint64_t number)
{
    struct wf_coll_board *board = &group->board;
    if (group->rank == 0 || board->asked >= number || board->seeing || board->presented < number)
        return;
    struct wf_coll_session *session = way(group);
    if (!board->seen)
        board->seen = calloc(group->size, sizeof *board->seen);
    struct look *look = session && board->seen ? look_create(group, number) : NULL;
    if (!look)
        return;
    look->task.ended = read_board;
    struct weft_options options = {.queue = group->hub->queue, .user_data = &look->task};
    struct weft_request *request;
    board->asked = number;
    board->seen_valid = false;
    board->seeing = weft_read(session->control, board->seen, group->size * sizeof *board->seen, board->key, 0, &options,
                              &request) == 0;
    if (!board->seeing)
        look_destroy(look);
}

static void say_here(struct weft_group *group, uint32_t rank, uint64_t number)
{
    struct wf_coll_session *session = group->hub->members[group->places[rank].member].session;
    if (session)
        wf_coll_say(group->hub, session, WF_COLL_HERE, "%u %llu", group->places[rank].id, (unsigned long long)number);
}

void wf_coll_board_is_present(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long id, number;
    struct weft_group *group = sscanf(text, "%llu %llu", &id, &number) == 2 ? wf_coll_group_of(hub, id, session) : NULL;
    if (!group)
        return;
    uint32_t rank = (uint32_t)wf_coll_rank_of(group, session->rank);
    group->places[rank].present = number;
    if (group->formed && group->rank == 0 && group->ordered >= number)
        say_here(group, rank, number);
    else if (number > group->board.early)
        group->board.early = number;
}

void wf_coll_board_began(struct weft_group *group)
{
    if (group->rank > 0 || group->board.early < group->ordered)
        return;
    for (uint32_t rank = 1; rank < group->size; rank++)
        if (group->places[rank].present >= group->ordered)
            say_here(group, rank, group->ordered);
}

void wf_coll_board_here(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long id, number;
    struct weft_group *group = sscanf(text, "%llu %llu", &id, &number) == 2 ? wf_coll_group_of(hub, id, session) : NULL;
    if (group && session->rank == (int64_t)group->places[0].member)
        group->board.first_here = number;
}

static bool is_present(const struct weft_group *group, uint32_t rank, uint64_t order)
{
    if (rank == group->rank)
        return true;
    if (group->rank == 0)
        return group->places[rank].present >= order;
    return rank == 0 ? group->board.first_here >= order : group->board.seen[rank] >= order;
}

static bool is_late(struct weft_group *group, uint32_t rank)
{
    const struct wf_coll_operation *operation = group->judged;
    for (int i = 0; i < 2 && !operation->op; i++)
        if (rank == 2 * group->rank + 1 + (uint32_t)i && group->hub->child_sent[i] >= operation->barrier)
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
    if (operation->collective > 0)
        snprintf(text, 64, "collective %llu (%s)", (unsigned long long)operation->collective,
                 operation->name ? operation->name : wf_op_name(operation->op));
    else /* the whole begins with one of its own */
        snprintf(text, 64, "barrier %llu", (unsigned long long)operation->barrier - (operation->group->id == 0));
}

void wf_coll_board_judge(const struct wf_coll_operation *operation)
{
    struct weft_group *group = operation->group;
    int waited_ms = (int)((wf_coll_now_ns() - operation->started_ns) / 1000000);
    char names[160], what[64];
    bool known = group->rank == 0 || (group->board.seen_valid && group->board.asked >= operation->order);
    bool line = operation->op && wf_op_is_line(operation->op);
    group->judged = operation;
    name_operation(operation, what);
    if (known && wf_coll_list(group, line ? is_first_late : is_late, names, sizeof names) > 0)
        wf_coll_fail(group, -ETIMEDOUT, "%s: %s did not %s it within %d ms", what, names,
                     operation->collective > 0 ? "start" : "enter", waited_ms);
    else if (known)
        wf_coll_fail(group, -ETIMEDOUT,
                     "%s did not end within %d ms, though all members are in operations of that number: are they the "
                     "same?",
                     what, waited_ms);
    else
        wf_coll_fail(group, -ETIMEDOUT, "%s did not end within %d ms; who is late is not known, for %s does not answer",
                     what, waited_ms, group->places[0].name);
}
