/* The port of a group's collectives: messages on the connections of its hub's sessions, which are opened when one is
 * needed. The upper 16 bits of a tag are the group's number at the receiver, which each member chooses by itself.
 * What fails is judged when everything else that has happened is known: the cause may be another member. */
#include <errno.h>
#include <stdio.h>

#include "collective/group/words.h"

#define ID_SHIFT 48

static struct weft_group *group_of(struct wf_port *port)
{
    return (struct weft_group *)((char *)port - offsetof(struct weft_group, port));
}

/* The first one stays, but a cancelled transfer gives way: who cancels lives, and says why. */
static void note_trouble(struct weft_group *group, uint32_t rank, int status, const char *text)
{
    if (group->status < 0 || (group->trouble != 0 && group->trouble != -ECANCELED))
        return;
    group->hub->troubled = true;
    group->trouble = status;
    group->trouble_rank = rank;
    snprintf(group->trouble_text, sizeof group->trouble_text, "%s", text);
}

static void ended(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct wf_transfer *transfer = (struct wf_transfer *)task;
    struct wf_op *op = transfer->op;
    struct weft_group *group = group_of(wf_op_port(op));
    int status = completion->status;
    hub->transfers--;
    wf_coll_one_less(group);
    bool differs = (status == 0 && completion->bytes != transfer->bytes) || status == -EMSGSIZE;
    if (differs)
        status = -EPROTO;
    wf_op_transfer_ended(transfer, group->status < 0 ? group->status : status); /* first: there is nothing to cancel */
    if (differs)
        wf_coll_fail(group, -EPROTO,
                     "%s has sent %llu bytes of a collective, and rank %u waits for %llu: do all members call with the "
                     "same count, type and root?",
                     group->places[transfer->rank].name, (unsigned long long)completion->bytes, group->rank,
                     (unsigned long long)transfer->bytes);
    else if (status < 0)
        note_trouble(group, transfer->rank, status, completion->text);
    wf_coll_collective_advance(hub, op);
}

/* 1 and the session's connection, or as a post of the port. */
static int way_to(struct weft_group *group, uint32_t rank, struct weft_connection **out)
{
    struct weft_error err = {0};
    int result = wf_coll_reach(group, rank, WF_COLL_COLLECTIVE, WF_COLL_NEVER, &err);
    if (result < 0) {
        wf_coll_fail(group, result, "%s", err.text);
        return result;
    }
    if (result == 0)
        return -EAGAIN;
    struct wf_coll_session *session = group->hub->members[group->places[rank].member].session;
    session->needed = true;
    *out = session->work;
    return 1;
}

/* Its own lack of memory, or a wrong place: no matter of the other member. */
static bool is_own(int code)
{
    return code == -ENOMEM || code == -EFAULT || code == -EINVAL;
}

static int posted(struct weft_group *group, struct wf_transfer *transfer, int result)
{
    if (result == 0) {
        group->hub->transfers++;
        group->under_way++;
    } else if (result == -EAGAIN) {
        group->hub->crowded = true;
    } else if (is_own(result)) {
        wf_coll_fail(group, result, "%s could not post a message of a collective: %s", group->places[group->rank].name,
                     weft_last_error());
    } else {
        note_trouble(group, transfer->rank, result, weft_last_error());
    }
    return result;
}

/* A send has no place, and a receive no bytes. */
static int post(struct wf_port *port, struct wf_transfer *transfer, const void *bytes, void *place, uint64_t tag)
{
    struct weft_group *group = group_of(port);
    struct weft_connection *connection;
    struct wf_coll_hub *hub = group->hub;
    struct weft_options options = {.queue = hub->queue, .user_data = &transfer->task};
    int result = way_to(group, transfer->rank, &connection);
    if (result < 0)
        return result;
    if (hub->unsent || (!hub->receiving && !hub->ending)) /* the requests that come free are control's first */
        return posted(group, transfer, -EAGAIN);
    wf_coll_ask(group, transfer->rank, transfer->op);
    transfer->task.ended = ended;
    tag |= (uint64_t)(transfer->receives ? group->id : group->places[transfer->rank].id) << ID_SHIFT;
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
    if (!transfer->task.taken)
        weft_cancel(transfer->request);
}

void wf_coll_port_init(struct weft_group *group)
{
    group->port = (struct wf_port){post_send, post_receive, cancel};
}

/* A member cancels its transfers when it leaves, and when its group has failed. It says so (LEAVE, FAIL) on the
 * connection of control, which is in no order with that of work: what it says, or the loss of its session, is waited
 * for. */
static bool reason_to_come(const struct weft_group *group)
{
    const struct wf_coll_place *place = &group->places[group->trouble_rank];
    const struct wf_coll_member *member = &group->hub->members[place->member];
    return group->trouble == -ECANCELED && !place->left && !member->left && member->session;
}

/* False: not yet. */
static bool judge(struct weft_group *group)
{
    const struct wf_coll_place *place = &group->places[group->trouble_rank];
    if (group->trouble == 0 || group->status < 0 || group->leaving)
        return true;
    if (reason_to_come(group))
        return false;
    if (place->left || group->hub->members[place->member].left)
        wf_coll_fail(group, -ESHUTDOWN, "%s has left the group before a collective was done", place->name);
    else
        wf_coll_fail(group, group->trouble, "%s is lost: %s", place->name, group->trouble_text);
    return true;
}

void wf_coll_judge_trouble(struct wf_coll_hub *hub)
{
    if (!hub->troubled || hub->ending)
        return;
    hub->troubled = false;
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group))
        hub->troubled |= !judge(group);
}
