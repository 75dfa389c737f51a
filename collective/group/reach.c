/* Connections on demand: a session with any member, as long as it is wanted, and no more of them than the limit. */
#include <errno.h>
#include <stdio.h>

#include "collective/group/words.h"

void wf_coll_part(struct weft_group *group, struct wf_coll_session *session)
{
    session->parting = true;
    wf_coll_say(group, session, WF_COLL_PART, "-");
}

void wf_coll_asked_to_part(struct weft_group *group, struct wf_coll_session *session)
{
    struct wf_coll_member *member = &group->members[session->rank];
    if (session->wanted || wf_coll_is_near(group, (uint32_t)session->rank)) {
        wf_coll_say(group, session, WF_COLL_MAY_NOT_PART, "-");
        return;
    }
    wf_coll_say(group, session, WF_COLL_MAY_PART, "-");
    session->state = WF_COLL_PARTED;
    if (member->session == session)
        member->session = NULL;
}

void wf_coll_may_part(struct weft_group *group, struct wf_coll_session *session, bool may)
{
    if (!session->parting)
        return;
    session->parting = false;
    if (may)
        wf_coll_session_close(group, session);
    else
        session->kept = true;
}

/* Makes room for one more session: 1: there is; 0: soon; or -EMFILE. */
static int make_room(struct weft_group *group, struct weft_error *err)
{
    struct wf_coll_session *oldest = NULL;
    if (group->session_limit == 0 || group->on_demand < group->session_limit)
        return 1;
    for (struct wf_coll_session *at = group->sessions; at; at = at->next) {
        if (at->on_demand && at->parting)
            return 0;
        if (at->on_demand && at->state == WF_COLL_OPEN && !at->wanted && !at->kept &&
            (!oldest || at->used < oldest->used))
            oldest = at;
    }
    if (!oldest)
        return wf_coll_refuse(err, -EMFILE,
                              "%u sessions are open, the most that the group's options allow (sessions): release one",
                              group->on_demand);
    wf_coll_part(group, oldest);
    return 0;
}

/* 1: the member's session has its connections; 0: not yet; or why not. */
int wf_coll_reach(struct weft_group *group, uint32_t rank, int64_t deadline_ns, struct weft_error *err)
{
    struct wf_coll_member *member = &group->members[rank];
    struct wf_coll_session *session = member->session;
    if (group->status < 0)
        return wf_coll_refuse(err, group->status, "%s", group->text);
    if (member->left)
        return wf_coll_refuse(err, -ESHUTDOWN, "%s has left the group", member->name);
    if (session && !session->parting)
        return session->data && session->work;
    if (session || member->dial)
        return 0;
    if (member->failure < 0) {
        int failure = member->failure;
        member->failure = 0;
        return wf_coll_refuse(err, failure, "%s cannot be reached: %s", member->name, member->text);
    }
    int result = make_room(group, err);
    if (result <= 0)
        return result;
    result = wf_coll_dial(group, rank, deadline_ns, 0, true);
    return result < 0 ? wf_coll_refuse(err, result, "no memory for a session") : 0;
}
