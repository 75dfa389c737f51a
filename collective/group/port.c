/* The port of a group's collectives: messages on the connections of its sessions, which are opened when one is needed.
 * What fails is judged when everything else that has happened is known: the cause may be another member. */
#include <errno.h>
#include <stdio.h>

#include "collective/group/words.h"

static struct weft_group *group_of(struct wf_port *port)
{
    return (struct weft_group *)((char *)port - offsetof(struct weft_group, port));
}

/* The first one stays, but a cancelled transfer gives way: who cancels lives, and says why. */
static void note_trouble(struct weft_group *group, uint32_t rank, int status, const char *text)
{
    if (group->status < 0 || (group->trouble != 0 && group->trouble != -ECANCELED))
        return;
    group->trouble = status;
    group->trouble_rank = rank;
    snprintf(group->trouble_text, sizeof group->trouble_text, "%s", text);
}

static void ended(struct weft_group *group, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct wf_transfer *transfer = (struct wf_transfer *)task;
    struct wf_op *op = transfer->op;
    int status = completion->status;
    group->transfers--;
    if ((status == 0 && completion->bytes != transfer->bytes) || status == -EMSGSIZE)
        wf_coll_fail(group, -EPROTO,
                     "%s has sent %llu bytes of a collective, and rank %u waits for %llu: do all members call with the "
                     "same count, type and root?",
                     group->members[transfer->rank].name, (unsigned long long)completion->bytes, group->rank,
                     (unsigned long long)transfer->bytes);
    else if (status < 0)
        note_trouble(group, transfer->rank, status, completion->text);
    wf_op_transfer_ended(transfer, group->status < 0 ? group->status : status);
    wf_coll_collective_advance(group, op);
}

/* 1 and the session's connection, or as a post of the port. */
static int way_to(struct weft_group *group, uint32_t rank, struct weft_connection **out)
{
    struct weft_error err = {0};
    int result = wf_coll_reach(group, rank, WF_COLL_NEVER, &err);
    if (result < 0) {
        wf_coll_fail(group, result, "%s", err.text);
        return result;
    }
    if (result == 0)
        return -EAGAIN;
    struct wf_coll_session *session = group->members[rank].session;
    if (!session->wanted) {
        session->wanted = true;
        session->used = ++group->uses;
    }
    *out = session->work;
    return 1;
}

static int posted(struct weft_group *group, struct wf_transfer *transfer, int result)
{
    if (result == 0)
        group->transfers++;
    else if (result == -EAGAIN)
        group->crowded = true;
    else
        note_trouble(group, transfer->rank, result, weft_last_error());
    return result;
}

/* A send has no place, and a receive no bytes. */
static int post(struct wf_port *port, struct wf_transfer *transfer, const void *bytes, void *place, uint64_t tag)
{
    struct weft_group *group = group_of(port);
    struct weft_connection *connection;
    struct weft_options options = {.queue = group->queue, .user_data = &transfer->task};
    int result = way_to(group, transfer->rank, &connection);
    if (result < 0)
        return result;
    transfer->task.ended = ended;
    result = transfer->receives ? weft_recv(connection, place, transfer->bytes, tag, &options, &transfer->request)
                                : weft_send(connection, bytes, transfer->bytes, tag, &options, &transfer->request);
    return posted(group, transfer, result);
}

static int post_send(struct wf_port *port, struct wf_transfer *transfer, const void *bytes, uint64_t tag)
{
    return post(port, transfer, bytes, NULL, tag);
}

static int post_receive(struct wf_port *port, struct wf_transfer *transfer, void *place, uint64_t tag)
{
    return post(port, transfer, NULL, place, tag);
}

static void cancel(struct wf_port *port, struct wf_transfer *transfer)
{
    (void)port;
    weft_cancel(transfer->request);
}

void wf_coll_port_init(struct weft_group *group)
{
    group->port = (struct wf_port){post_send, post_receive, cancel};
}

/* A member cancels its transfers when it leaves, and when its group has failed. It says so (LEAVE, FAIL) on the
 * connection of control, which is in no order with that of work: what it says, or the loss of its session, is waited
 * for. */
static bool reason_to_come(const struct weft_group *group, const struct wf_coll_member *member)
{
    return group->trouble == -ECANCELED && !member->left && member->session;
}

void wf_coll_judge_trouble(struct weft_group *group)
{
    const struct wf_coll_member *member = &group->members[group->trouble_rank];
    if (group->trouble == 0 || group->status < 0 || group->ending || group->taking || reason_to_come(group, member))
        return;
    if (member->left)
        wf_coll_fail(group, -ESHUTDOWN, "%s has left the group before a collective was done", member->name);
    else
        wf_coll_fail(group, group->trouble, "%s is lost: %s", member->name, group->trouble_text);
}
