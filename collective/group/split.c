/*
 * Groups of some of the members, upon the hub that is there: a split gathers colour, key and number of every member of
 * the parent, and each makes its own table of that. The number of a group is chosen by each member for itself: what is
 * sent to a member has that member's, so two groups that are made at the same time need not agree on one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/group/words.h"

#define LEAVE_NS (1000 * 1000000LL)

/* What every member of the parent says. */
struct entry {
    int32_t color, key;
    uint32_t id; /* 0: it cannot make a group */
    uint32_t unused;
    uint64_t board_key;
};

/* --- the groups of a hub --- */

struct weft_group *wf_coll_next_group(struct wf_coll_hub *hub, const struct weft_group *group)
{
    return group == &hub->whole ? hub->groups : group->next;
}

int64_t wf_coll_rank_of(const struct weft_group *group, int64_t member)
{
    if (group->id == 0)
        return member >= 0 && member < group->size ? member : -1;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (group->places[rank].member == member)
            return rank;
    return -1;
}

static struct weft_group *of_id(struct wf_coll_hub *hub, uint64_t id)
{
    struct weft_group *group = &hub->whole;
    while (group && group->id != id)
        group = wf_coll_next_group(hub, group);
    return group;
}

struct weft_group *wf_coll_group_of(struct wf_coll_hub *hub, uint64_t id, const struct wf_coll_session *session)
{
    struct weft_group *group = of_id(hub, id);
    return group && wf_coll_rank_of(group, session->rank) >= 0 ? group : NULL;
}

/* One that was not used for as long as possible: messages of a group that was destroyed may still come. 0: none. */
static uint32_t next_id(struct wf_coll_hub *hub)
{
    for (uint32_t i = 1; i < WF_COLL_IDS; i++) {
        uint32_t id = (hub->last_id + i - 1) % (WF_COLL_IDS - 1) + 1;
        if (hub->ids[id / 64] >> id % 64 & 1)
            continue;
        hub->ids[id / 64] |= UINT64_C(1) << id % 64;
        hub->last_id = id;
        return id;
    }
    return 0;
}

static void put_in(struct weft_group *group)
{
    struct weft_group **first = &group->hub->groups;
    group->before = first;
    group->next = *first;
    if (group->next)
        group->next->before = &group->next;
    *first = group;
}

static void take_out(struct weft_group *group)
{
    struct wf_coll_hub *hub = group->hub;
    *group->before = group->next;
    if (group->next)
        group->next->before = group->before;
    hub->ids[group->id / 64] &= ~(UINT64_C(1) << group->id % 64);
    hub->abandoned -= group->abandoned;
    wf_coll_operations_free(group);
    wf_coll_board_destroy(group);
    free(group->places);
    free(group);
}

/* --- a split --- */

/* With the places of its parent: what others say of the group before the split has ended here is kept there. NULL: no
 * memory, or no number. */
static struct weft_group *begin(struct weft_group *parent)
{
    struct wf_coll_hub *hub = parent->hub;
    struct weft_error unused = {0};
    struct weft_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    *group = (struct weft_group){.hub = hub, .id = next_id(hub), .rank = parent->rank, .size = parent->size};
    put_in(group);
    wf_coll_port_init(group);
    group->places = calloc(group->size, sizeof *group->places);
    for (uint32_t rank = 0; group->places && rank < group->size; rank++)
        group->places[rank].member = parent->places[rank].member;
    if (group->id == 0 || !group->places || wf_coll_board_create(group, &unused) < 0) {
        take_out(group);
        return NULL;
    }
    return group;
}

struct turn {
    int32_t key;
    uint32_t rank; /* in the parent */
};

static int by_key(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : (a->rank > b->rank) - (a->rank < b->rank);
}

/* The members of that colour, in their order. How many. */
static uint32_t choose(const struct entry *entries, uint32_t size, int32_t color, struct turn *turns)
{
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < size; rank++)
        if (entries[rank].color == color)
            turns[count++] = (struct turn){entries[rank].key, rank};
    qsort(turns, count, sizeof *turns, by_key);
    return count;
}

/* The places are those of the chosen now, with what is known of them so far. */
static void settle(struct weft_group *group, const struct entry *entries, const struct turn *turns, uint32_t count,
                   struct wf_coll_place *places)
{
    for (uint32_t rank = 0; rank < count; rank++) {
        places[rank] = group->places[turns[rank].rank];
        places[rank].id = entries[turns[rank].rank].id;
    }
    free(group->places);
    group->places = places;
    group->size = count;
    group->rank = (uint32_t)wf_coll_rank_of(group, group->hub->rank);
    for (uint32_t rank = 0; rank < count; rank++)
        wf_coll_name_place(group, rank);
    group->board.key = entries[turns[0].rank].board_key;
    if (group->rank > 0)
        wf_coll_board_destroy(group);
    group->formed = true;
    wf_coll_tell_failed(group); /* since the split began */
    for (uint32_t rank = 0; rank < count; rank++)
        wf_coll_end_if_lost(group, rank);
}

/* The memory that forming a group needs, for as many members as the parent has: had before the others are told that
 * this member can make it. */
struct forms {
    struct turn *turns;
    struct wf_coll_place *places;
};

/* One member that can make no group is known to all of its colour: none of them makes one. Takes the places. */
static int form(struct weft_group *parent, struct weft_group *group, const struct entry *entries, struct forms *forms,
                struct weft_error *err)
{
    int32_t color = entries[parent->rank].color;
    for (uint32_t rank = 0; rank < parent->size; rank++)
        if (entries[rank].color == color && entries[rank].id == 0)
            return wf_coll_refuse(err, -ENOMEM, "weft_group_split: %s has no memory, or no number, for one more group",
                                  parent->places[rank].name);
    settle(group, entries, forms->turns, choose(entries, parent->size, color, forms->turns), forms->places);
    forms->places = NULL;
    return 0;
}

static int gather(struct weft_group *parent, struct entry *entries, int timeout_ms, struct weft_error *err)
{
    struct wf_ask ask = {.kind = WEFT_ALL_GATHER,
                         .type = WEFT_UINT8,
                         .count = sizeof *entries,
                         .in = entries + parent->rank,
                         .out = entries};
    struct wf_coll_way way = {timeout_ms, true, NULL};
    return wf_coll_collective(parent, ask, way, "weft_group_split", "split", err);
}

static int split(struct weft_group *parent, struct entry *entries, int timeout_ms, struct weft_group **out,
                 struct weft_error *err)
{
    struct wf_coll_hub *hub = parent->hub;
    struct entry *own = &entries[parent->rank];
    pthread_mutex_lock(&hub->lock);
    if (parent->status < 0) { /* its context may be gone */
        int status = wf_coll_refuse(err, parent->status, "%s", parent->text);
        pthread_mutex_unlock(&hub->lock);
        return status;
    }
    struct forms forms = {0};
    struct weft_group *group = NULL;
    if (own->color >= 0) {
        forms.turns = calloc(parent->size, sizeof *forms.turns);
        forms.places = calloc(parent->size, sizeof *forms.places);
        group = forms.turns && forms.places ? begin(parent) : NULL;
    }
    own->id = group ? group->id : 0;
    own->board_key = group ? group->board.key : 0;
    pthread_mutex_unlock(&hub->lock);
    int result = gather(parent, entries, timeout_ms, err);
    pthread_mutex_lock(&hub->lock);
    if (result == 0 && own->color >= 0)
        result = form(parent, group, entries, &forms, err);
    if (result < 0 && group)
        take_out(group);
    else if (result == 0)
        *out = group;
    wf_coll_unlock(hub);
    free(forms.turns);
    free(forms.places);
    return result;
}

int weft_group_split(struct weft_group *parent, int color, int key, int timeout_ms, struct weft_group **out,
                     struct weft_error *err)
{
    struct weft_error unused = {0};
    err = err ? err : &unused;
    if (!parent || !out)
        return wf_coll_refuse(err, -EINVAL, "weft_group_split: %s is NULL", parent ? "out" : "parent");
    struct entry *entries = calloc(parent->size, sizeof *entries);
    if (!entries)
        return wf_coll_refuse(err, -ENOMEM, "weft_group_split: no memory for the table of %u members", parent->size);
    entries[parent->rank].color = color < 0 ? -1 : color;
    entries[parent->rank].key = key;
    int result = split(parent, entries, timeout_ms, out, err);
    free(entries);
    return result;
}

/* --- the end --- */

void wf_coll_judge_left(struct weft_group *group)
{
    uint64_t last = 0;
    if (!group->some_left || !group->formed)
        return;
    for (const struct wf_coll_operation *at = group->hub->operations; at; at = at->next)
        if (at->group == group && !at->ended)
            last = at->order;
    for (uint32_t rank = 0; rank < group->size; rank++)
        if (group->places[rank].left && group->places[rank].left_at <= last)
            wf_coll_fail(group, -ESHUTDOWN, "%s has left the group", group->places[rank].name);
}

void wf_coll_told_left(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long id, number;
    struct weft_group *group = sscanf(text, "%llu %llu", &id, &number) == 2 ? wf_coll_group_of(hub, id, session) : NULL;
    if (!group)
        return;
    if (group == &hub->whole)
        hub->members[session->rank].left = true;
    wf_coll_wake(hub);
    struct wf_coll_place *place = &group->places[wf_coll_rank_of(group, session->rank)];
    if (!place->left) /* else this is the answer to a question that has crossed with the news */
        place->left_at = number;
    place->left = group->some_left = true;
    wf_coll_judge_left(group);
}

static uint64_t order_of(const struct weft_group *group, const struct wf_op *op)
{
    const struct wf_coll_operation *operation = wf_coll_operation_of(group->hub, op);
    return operation ? operation->order : group->ordered;
}

void wf_coll_ask(struct weft_group *group, uint32_t rank, const struct wf_op *op)
{
    struct wf_coll_place *place = &group->places[rank];
    struct wf_coll_session *session = group->hub->members[place->member].session;
    if (group->id == 0 || place->asked == session->number)
        return;
    place->asked = session->number;
    wf_coll_say(group->hub, session, WF_COLL_ASK, "%u %llu %u", place->id, (unsigned long long)order_of(group, op),
                group->id);
}

/* A group that is gone is unknown here. It has not done that operation: what it did with that member it did on a
 * session, and there it has said LEAVE before this answer. */
void wf_coll_asked(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long id, number;
    unsigned own;
    if (sscanf(text, "%llu %llu %u", &id, &number, &own) != 3)
        return;
    const struct weft_group *group = wf_coll_group_of(hub, id, session);
    if (!group || group->leaving)
        wf_coll_say(hub, session, WF_COLL_LEAVE, "%u %llu", own, number);
}

void wf_coll_say_leave(struct weft_group *group)
{
    uint64_t number = wf_coll_operations_done(group);
    for (uint32_t rank = 0; rank < group->size; rank++) {
        const struct wf_coll_place *place = &group->places[rank];
        const struct wf_coll_member *member = &group->hub->members[place->member];
        /* It may take HELLO when this side is gone. Who needs a part asks. Here it would be misled: an operation that
         * failed counts as done, and why it failed (FAIL) is said on open sessions alone. */
        bool knocks = group->id == 0 && member->dial && member->dial->state == WF_COLL_KNOCKING;
        struct wf_coll_session *sessions[] = {member->session, knocks ? member->dial : NULL};
        for (int i = 0; i < 2; i++)
            if (sessions[i])
                wf_coll_say(group->hub, sessions[i], WF_COLL_LEAVE, "%u %llu", place->id, (unsigned long long)number);
    }
}

void wf_coll_groups_free(struct wf_coll_hub *hub)
{
    for (struct weft_group *group = hub->groups, *next; group && hub->abandoned > 0; group = next) {
        next = group->next;
        if (group->abandoned && (group->under_way == 0 || hub->over))
            take_out(group);
    }
}

void wf_coll_leave(struct weft_group *group)
{
    struct wf_coll_hub *hub = group->hub;
    pthread_mutex_lock(&hub->lock);
    wf_coll_drive(hub);
    group->leaving = true;
    if (!hub->over) {
        wf_coll_say_leave(group);
        wf_coll_collectives_stop(group);
    }
    int64_t until_ns = wf_coll_now_ns() + LEAVE_NS;
    while (group->under_way > 0 && !hub->over && wf_coll_now_ns() < until_ns) {
        wf_coll_drive(hub);
        if (group->under_way > 0)
            wf_coll_rest(hub, until_ns);
    }
    group->abandoned = group->under_way > 0 && !hub->over;
    hub->abandoned += group->abandoned;
    if (!group->abandoned)
        take_out(group);
    wf_coll_groups_free(hub);
    bool last = hub->over && !hub->groups;
    wf_coll_unlock(hub);
    if (last)
        wf_coll_hub_free(hub);
}

void wf_coll_groups_end(struct wf_coll_hub *hub)
{
    for (struct weft_group *group = hub->groups; group; group = group->next) {
        if (!group->leaving)
            wf_coll_say_leave(group);
        group->by_loss = true; /* that is all that is told */
        wf_coll_fail(group, -ESHUTDOWN, "the group that this one was split from has been destroyed");
        wf_coll_collectives_stop(group);
    }
}
