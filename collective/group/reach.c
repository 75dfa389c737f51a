/* Connections on demand: a session with any member, as long as it is wanted or needed, and no more of them than the
 * limit. */
#include <errno.h>
#include <stdio.h>

#include "collective/group/words.h"

#define ROOM_NS (200 * 1000000LL) /* for a member to part: then the next one is asked as well, for it may compute */

void wf_coll_part(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    session->parting = true;
    wf_coll_say(hub, session, WF_COLL_PART, "-");
}

void wf_coll_asked_to_part(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct wf_coll_member *member = &hub->members[session->rank];
    if (session->wanted || session->needed || wf_coll_is_near(hub, (uint32_t)session->rank)) {
        wf_coll_say(hub, session, WF_COLL_MAY_NOT_PART, "-");
        session->keeps = true;
        return;
    }
    wf_coll_say(hub, session, WF_COLL_MAY_PART, "-");
    session->state = WF_COLL_PARTED;
    if (member->session == session)
        member->session = NULL;
    wf_coll_wake(hub);
}

void wf_coll_may_part(struct wf_coll_hub *hub, struct wf_coll_session *session, bool may)
{
    if (!session->parting)
        return;
    session->parting = false;
    if (may) {
        wf_coll_board_unsaid(hub, (uint32_t)session->rank);
        wf_coll_session_close(hub, session);
    } else {
        session->kept = true;
        wf_coll_wake(hub);
    }
}

void wf_coll_done_with(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    session->wanted = false;
    session->used = ++hub->uses;
    session->kept = false;
    if (session->keeps && !session->needed) {
        wf_coll_say(hub, session, WF_COLL_DONE_WITH, "-");
        session->keeps = false;
    }
}

/* Makes room for one more session: 1: there is; 0: soon; or -EMFILE. */
static int make_room(struct wf_coll_hub *hub, struct weft_error *err)
{
    struct wf_coll_session *oldest = NULL;
    bool parting = false;
    int64_t now_ns = wf_coll_now_ns();
    if (hub->session_limit == 0 || hub->on_demand < hub->session_limit)
        return 1;
    for (struct wf_coll_session *at = hub->sessions; at; at = at->next) {
        parting |= at->on_demand && at->parting;
        if (at->on_demand && at->state == WF_COLL_OPEN && !at->wanted && !at->needed && !at->kept && !at->parting &&
            (!oldest || at->used < oldest->used))
            oldest = at;
    }
    if (parting && (!oldest || now_ns < hub->room_ns))
        return 0;
    if (!oldest)
        return wf_coll_refuse(err, -EMFILE,
                              "%u sessions are open, the most that the group's options allow (sessions): release one",
                              hub->on_demand);
    wf_coll_part(hub, oldest);
    hub->room_ns = now_ns + ROOM_NS;
    return 0;
}

void wf_coll_room_tend(struct wf_coll_hub *hub, int64_t now_ns)
{
    if (hub->room_ns == 0 || now_ns < hub->room_ns)
        return;
    hub->room_ns = 0;
    hub->crowded = true; /* collectives try again, */
    wf_coll_wake(hub);   /* and so do calls for a connection */
}

/* The dial itself has no deadline: others may wait for it, too, and want it for longer. */
static void ask_until(struct wf_coll_session *dial, int64_t until_ns)
{
    if (dial && until_ns != WF_COLL_NEVER && until_ns > dial->asked_until_ns)
        dial->asked_until_ns = until_ns;
}

int wf_coll_reach(struct weft_group *group, uint32_t rank, enum wf_coll_asker asker, int64_t until_ns,
                  struct weft_error *err)
{
    struct wf_coll_hub *hub = group->hub;
    struct wf_coll_place *place = &group->places[rank];
    struct wf_coll_member *member = &hub->members[place->member];
    struct wf_coll_session *session = member->session;
    bool awaited = place->awaited[asker];
    place->awaited[asker] = false;
    if (group->status < 0)
        return wf_coll_refuse(err, group->status, "%s", group->text);
    if (member->left)
        return wf_coll_refuse(err, -ESHUTDOWN, "%s has left the group", place->name);
    if (session && !session->parting)
        return session->data && session->work;
    ask_until(member->dial, until_ns);
    if (session || member->dial) {
        place->awaited[asker] = true;
        return 0;
    }
    if (awaited && member->failure < 0)
        return wf_coll_refuse(err, member->failure, "%s cannot be reached: %s", place->name, member->text);
    int result = make_room(hub, err);
    if (result <= 0)
        return result;
    result = wf_coll_dial(hub, place->member, WF_COLL_NEVER, 0, true);
    if (result < 0)
        return wf_coll_refuse(err, result, "no memory for a session");
    ask_until(member->dial, until_ns);
    place->awaited[asker] = true;
    return 0;
}
