/*
 * What ends a group: something that has happened in it ends that group alone, and the loss of a member every group that
 * it is in. Members tell each other on all their sessions, each fact once; who opens a session later is told then.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/group/words.h"

/* --- names --- */

void wf_coll_name_place(struct weft_group *group, uint32_t rank)
{
    struct wf_coll_place *place = &group->places[rank];
    const struct wf_coll_member *member = &group->hub->members[place->member];
    if (member->host[0])
        snprintf(place->name, sizeof place->name, "rank %u (%s, process %u)", rank, member->host, member->process);
    else
        snprintf(place->name, sizeof place->name, "rank %u", rank);
}

void wf_coll_name(struct wf_coll_hub *hub, uint32_t member, const char *host, uint32_t process)
{
    snprintf(hub->members[member].host, WF_COLL_HOST_BYTES, "%s", host);
    hub->members[member].process = process;
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group)) {
        int64_t rank = wf_coll_rank_of(group, member);
        if (rank >= 0)
            wf_coll_name_place(group, (uint32_t)rank);
    }
}

const char *wf_coll_name_of(const struct wf_coll_hub *hub, uint32_t member)
{
    return hub->whole.places[member].name;
}

uint32_t wf_coll_list(struct weft_group *group, bool (*is)(struct weft_group *, uint32_t rank), char *text, size_t room)
{
    uint32_t count = 0, only = 0;
    size_t used = 0;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (is(group, rank)) {
            only = rank;
            count++;
        }
    if (count <= 1) {
        snprintf(text, room, "%s", count == 1 ? group->places[only].name : "nobody");
        return count;
    }
    used = (size_t)snprintf(text, room, "ranks");
    for (uint32_t rank = 0; rank < group->size && used + 32 < room; rank++) {
        uint32_t last = rank;
        if (!is(group, rank))
            continue;
        while (last + 1 < group->size && is(group, last + 1))
            last++;
        const char *comma = used > 5 ? "," : "";
        used += (size_t)(last > rank ? snprintf(text + used, room - used, "%s %u-%u", comma, rank, last)
                                     : snprintf(text + used, room - used, "%s %u", comma, rank));
        if (used + 32 >= room)
            snprintf(text + used, room - used, "... (%u)", count);
        rank = last;
    }
    return count;
}

/* --- one group --- */

static void tell_failed(struct weft_group *group, uint32_t rank)
{
    const struct wf_coll_place *place = &group->places[rank];
    struct wf_coll_session *session = group->hub->members[place->member].session;
    if (session)
        wf_coll_say(group->hub, session, WF_COLL_FAIL, "%u %d %s", place->id, group->status, group->text);
}

void wf_coll_tell_failed(struct weft_group *group)
{
    for (uint32_t rank = 0; rank < group->size && group->status < 0 && group->formed && !group->by_loss; rank++)
        tell_failed(group, rank);
}

/* With the text set. */
static void end(struct weft_group *group, int code)
{
    group->status = code;
    wf_coll_tell_failed(group);
    wf_coll_operations_end(group);
    wf_coll_wake(group->hub);
}

void wf_coll_fail(struct weft_group *group, int code, const char *format, ...)
{
    va_list arguments;
    if (group->status < 0)
        return;
    va_start(arguments, format);
    vsnprintf(group->text, sizeof group->text, format, arguments);
    va_end(arguments);
    end(group, code);
}

void wf_coll_fail_all(struct wf_coll_hub *hub, int code, const char *format, ...)
{
    char text[WEFT_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group))
        wf_coll_fail(group, code, "%s", text);
}

void wf_coll_told_failed(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long id;
    int code, used = 0;
    if (sscanf(text, "%llu %d %n", &id, &code, &used) < 2)
        return;
    struct weft_group *group = wf_coll_group_of(hub, id, session);
    if (group)
        wf_coll_fail(group, code < 0 ? code : -EPROTO, "%s", text + used);
}

/* --- a member of the whole --- */

static void tell_gone(struct wf_coll_hub *hub, struct wf_coll_session *session, uint32_t rank)
{
    const struct wf_coll_member *member = &hub->members[rank];
    wf_coll_say(hub, session, WF_COLL_GONE, "%u %u %s %d %s", rank, member->process,
                member->host[0] ? member->host : "-", member->failure, member->text);
}

void wf_coll_end_if_lost(struct weft_group *group, int64_t rank)
{
    const struct wf_coll_member *member = rank < 0 ? NULL : &group->hub->members[group->places[rank].member];
    if (!member || !member->lost || group->status < 0)
        return;
    snprintf(group->text, sizeof group->text, "%s is lost: %s", group->places[rank].name, member->text);
    group->by_loss = true;
    end(group, member->failure);
}

void wf_coll_member_lost(struct wf_coll_hub *hub, uint32_t rank, int code, const char *why)
{
    struct wf_coll_member *member = &hub->members[rank];
    if (member->lost)
        return;
    if (hub->phase != WF_COLL_MADE) { /* others may not have the table yet: they are told its name */
        wf_coll_fail_all(hub, code, "%s is lost: %s", wf_coll_name_of(hub, rank), why);
        return;
    }
    member->lost = true;
    member->failure = code;
    snprintf(member->text, sizeof member->text, "%s", why);
    for (struct wf_coll_session *session = hub->sessions; session; session = session->next)
        if (session->state == WF_COLL_OPEN)
            tell_gone(hub, session, rank);
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group))
        if (group->formed)
            wf_coll_end_if_lost(group, wf_coll_rank_of(group, rank));
}

void wf_coll_told_gone(struct wf_coll_hub *hub, const char *text)
{
    unsigned rank, process;
    char host[WF_COLL_HOST_BYTES];
    int code, used = 0;
    if (sscanf(text, "%u %u %64s %d %n", &rank, &process, host, &code, &used) < 4 || rank >= hub->size)
        return;
    if (!hub->members[rank].host[0] && strcmp(host, "-") != 0)
        wf_coll_name(hub, rank, host, process);
    wf_coll_member_lost(hub, rank, code < 0 ? code : -EPROTO, text + used);
}

void wf_coll_tell_ended(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    for (uint32_t rank = 0; rank < hub->size; rank++)
        if (hub->members[rank].lost)
            tell_gone(hub, session, rank);
    for (struct weft_group *group = &hub->whole; group; group = wf_coll_next_group(hub, group)) {
        int64_t rank = wf_coll_rank_of(group, session->rank);
        if (group->status < 0 && !group->by_loss && group->formed && rank >= 0)
            tell_failed(group, (uint32_t)rank);
    }
    if (hub->ending)
        wf_coll_say(hub, session, WF_COLL_LEAVE, "0 %llu", (unsigned long long)hub->left_at);
}
