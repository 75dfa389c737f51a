/* The making of a group: rank 0 gathers all, and gives every member the table; or the members know it beforehand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "collective/group/words.h"

/* Between two looks at a file of a shared folder, where nobody tells of changes: an eighth of what was waited, within
 * these. Rank 0 is mostly there at once, and many ranks that wait for long are to leave the folder's server alone. */
#define LOOK_LEAST_NS 1000000LL
#define LOOK_MOST_NS (20 * 1000000LL)
#define AGAIN_NS (200 * 1000000LL) /* before what the file says is tried again */

static int waited_ms(const struct weft_group *group)
{
    return (int)((wf_coll_now_ns() - group->began_ns) / 1000000);
}

/* --- where rank 0 is --- */

static int left_ms(const struct weft_group *group)
{
    if (group->deadline_ns == WF_COLL_NEVER)
        return INT32_MAX;
    int64_t left = (group->deadline_ns - wf_coll_now_ns()) / 1000000;
    return left > 0 ? (int)left : 0;
}

static int publish(struct weft_group *group, struct weft_error *err)
{
    char line[WF_MEET_LINE_BYTES];
    snprintf(line, sizeof line, "%016llx;%s", (unsigned long long)group->token, group->addresses);
    return wf_meet_publish(&group->meet, line, left_ms(group), err);
}

static void join(struct weft_group *group, const char *addresses, uint64_t token)
{
    free(group->members[0].addresses);
    group->members[0].addresses = strdup(addresses);
    group->phase = WF_COLL_JOINING;
    wf_coll_note(group, &group->times.found_ns);
    if (!group->members[0].addresses || wf_coll_dial(group, 0, group->deadline_ns, token, false) < 0)
        wf_coll_fail(group, -ENOMEM, "no memory to join");
}

static int64_t until_next_look_ns(const struct weft_group *group, int64_t now_ns)
{
    int64_t pause_ns = (now_ns - group->began_ns) / 8;
    return pause_ns < LOOK_LEAST_NS ? LOOK_LEAST_NS : pause_ns > LOOK_MOST_NS ? LOOK_MOST_NS : pause_ns;
}

void wf_coll_look(struct weft_group *group, int64_t now_ns)
{
    char line[WF_MEET_LINE_BYTES];
    struct weft_error err = {0};
    unsigned long long token;
    if (group->phase != WF_COLL_LOOKING || now_ns < group->look_ns)
        return;
    group->look_ns = now_ns + until_next_look_ns(group, now_ns);
    int result = wf_meet_look(&group->meet, left_ms(group), line, &err);
    char *addresses = result == 1 ? strchr(line, ';') : NULL;
    if (result < 0)
        wf_coll_fail(group, result, "%s", err.text);
    else if (addresses && sscanf(line, "%16llx;", &token) == 1)
        join(group, addresses + 1, token);
}

/* A file may be of an earlier run, whose address is somebody else's by now: it is looked at again. */
void wf_coll_join_failed(struct weft_group *group, struct wf_coll_session *session)
{
    struct wf_coll_member *first = &group->members[0];
    if (session->state == WF_COLL_KNOCKING || !first->answered) { /* an answer tells more than that nobody listens */
        first->answered = session->state == WF_COLL_KNOCKING;
        first->failure = session->failure ? session->failure : -ETIMEDOUT;
        snprintf(first->text, sizeof first->text, "%s", session->text[0] ? session->text : "no answer");
    }
    bool again = session->failure != -EINVAL && session->failure != -EEXIST && session->failure != -EPROTO;
    if (group->meet.way == WF_MEET_FILE && again && wf_coll_now_ns() < group->deadline_ns) {
        group->phase = WF_COLL_LOOKING;
        group->look_ns = wf_coll_now_ns() + AGAIN_NS;
    } else if (first->failure == -ETIMEDOUT || first->failure == -ECONNREFUSED ||
               wf_coll_now_ns() >= group->deadline_ns) {
        wf_coll_fail(group, first->failure, "rank 0 did not take rank %u within %d ms: %s", group->rank,
                     waited_ms(group), first->text);
    } else {
        wf_coll_fail(group, first->failure, "%s", first->text);
    }
}

int wf_coll_meet(struct weft_group *group, struct weft_error *err)
{
    int result = 0;
    if (group->from || group->size == 1) {
        group->token_known = true;
        wf_coll_to_tree(group);
    } else if (group->rank == 0) {
        while (group->token == 0)
            if (getrandom(&group->token, sizeof group->token, 0) < 0)
                return wf_coll_refuse(err, -errno, "no random number: %s", strerror(errno));
        group->token_known = true;
        group->phase = WF_COLL_GATHERING;
        group->came = 1;
        wf_meet_clear(&group->meet); /* of an earlier run */
        result = publish(group, err);
        wf_coll_note(group, &group->times.found_ns);
    } else if (group->meet.way == WF_MEET_HOST) {
        join(group, group->meet.place, 0);
    } else {
        group->phase = WF_COLL_LOOKING;
    }
    return result;
}

/* --- the table --- */

static void send_table(struct weft_group *group, struct wf_coll_session *session, const char *text, size_t length)
{
    wf_coll_say_bytes(group, session, WF_COLL_TABLE, text, length);
}

static void to_all(struct weft_group *group, enum wf_coll_kind kind, const char *text, size_t length)
{
    for (uint32_t i = 1; i < group->size; i++)
        if (group->members[i].session) {
            if (kind == WF_COLL_TABLE)
                send_table(group, group->members[i].session, text, length);
            else
                wf_coll_say_bytes(group, group->members[i].session, kind, text, length);
        }
}

static void hand_out(struct weft_group *group)
{
    char text[WF_COLL_MESSAGE_BYTES];
    to_all(group, WF_COLL_NOTES, group->refused, strlen(group->refused));
    size_t used = 0;
    for (uint32_t i = 0; i < group->size; i++) {
        const struct wf_coll_member *member = &group->members[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%u %u %s %s\n", i, member->process, member->host,
                                 member->addresses);
        if (used + WF_COLL_ADDRESSES_BYTES + WF_COLL_HOST_BYTES + 32 > sizeof text || i + 1 == group->size) {
            to_all(group, WF_COLL_TABLE, text, used);
            used = 0;
        }
    }
}

static bool take_entry(struct weft_group *group, const char *line)
{
    unsigned rank, process;
    char host[WF_COLL_HOST_BYTES], addresses[WF_COLL_ADDRESSES_BYTES];
    if (sscanf(line, "%u %u %64s %899s", &rank, &process, host, addresses) != 4 || rank >= group->size)
        return false;
    struct wf_coll_member *member = &group->members[rank];
    char *copy = strdup(addresses);
    if (!copy)
        return false;
    free(member->addresses);
    member->addresses = copy;
    snprintf(member->host, sizeof member->host, "%s", host);
    member->process = process;
    wf_coll_name(group, rank, host, process);
    group->listed++;
    return true;
}

void wf_coll_table(struct weft_group *group, const char *text)
{
    if (group->phase != WF_COLL_LISTED)
        return;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        if (!strchr(line, '\n') || !take_entry(group, line)) {
            wf_coll_fail(group, -EPROTO, "the table of members that rank 0 sends is wrong");
            return;
        }
    if (group->listed == group->size)
        wf_coll_to_tree(group);
}

/* --- the tree --- */

static void count_local(struct weft_group *group)
{
    group->local_rank = 0;
    for (uint32_t i = 0; i < group->rank; i++) {
        const char *own = group->from ? group->members[group->rank].addresses : group->host;
        const char *other = group->from ? group->members[i].addresses : group->members[i].host;
        size_t length = group->from ? (size_t)(strrchr(own, ':') - own) + 1 : strlen(own) + 1;
        group->local_rank += strncmp(own, other, length) == 0;
    }
    if (group->meet.local_rank >= 0)
        group->local_rank = (uint32_t)group->meet.local_rank;
}

void wf_coll_to_tree(struct weft_group *group)
{
    group->phase = WF_COLL_TREE;
    wf_coll_note(group, &group->times.met_ns);
    count_local(group);
    struct wf_coll_operation *first;
    int result = wf_coll_enter(group, -1, true, NULL, &first);
    uint32_t parent = group->rank > 0 ? (group->rank - 1) / 2 : 0;
    if (result == 0 && group->rank > 0 && !group->members[parent].session)
        result = wf_coll_dial(group, parent, group->deadline_ns, 0, false);
    if (result < 0)
        wf_coll_fail(group, result, "no memory for the group");
}

void wf_coll_member_came(struct weft_group *group, uint32_t rank, int patience_ms)
{
    (void)rank;
    if (group->phase != WF_COLL_GATHERING)
        return;
    group->came++;
    if (patience_ms >= 0) {
        int64_t until_ns = wf_coll_now_ns() + patience_ms * 1000000LL - wf_coll_margin_ns(patience_ms);
        if (until_ns < group->knows_ns)
            group->knows_ns = until_ns;
    }
    if (group->came == group->size) {
        wf_coll_note(group, &group->times.connected_ns);
        hand_out(group);
        wf_coll_to_tree(group);
    }
}

/* --- who has not come --- */

static bool is_missing(struct weft_group *group, uint32_t rank)
{
    return rank != group->rank && !group->members[rank].session;
}

static bool is_missing_near(struct weft_group *group, uint32_t rank)
{
    return wf_coll_is_near(group, rank) && !group->members[rank].session;
}

static void fail_missing(struct weft_group *group, bool (*is)(struct weft_group *, uint32_t))
{
    char names[160];
    wf_coll_list(group, is, names, sizeof names);
    const char *last = strrchr(group->refused, '\n');
    const char *refused = last ? last + 1 : group->refused;
    wf_coll_fail(group, -ETIMEDOUT, "%s did not come within %d ms%s%.100s%s", names, waited_ms(group),
                 refused[0] ? " (refused: " : "", refused, refused[0] ? ")" : "");
}

static bool misses_near(struct weft_group *group)
{
    char text[8];
    return wf_coll_list(group, is_missing_near, text, sizeof text) > 0;
}

static void too_late(struct weft_group *group)
{
    const struct wf_coll_member *first = &group->members[0];
    switch (group->phase) {
    case WF_COLL_LOOKING:
        wf_coll_fail(group, first->failure ? first->failure : -ETIMEDOUT,
                     "rank 0 did not come within %d ms: %s%.120s%s%.150s", waited_ms(group),
                     group->meet.way == WF_MEET_FILE ? "file:" : "no address by ",
                     group->meet.way == WF_MEET_FILE ? group->meet.place : group->meet.said,
                     first->text[0] ? ": " : " was not written", first->text);
        break;
    case WF_COLL_JOINING:
        wf_coll_fail(group, first->dial && first->dial->failure ? first->dial->failure : -ETIMEDOUT,
                     "rank 0 did not come within %d ms: %.100s: %s", waited_ms(group), first->addresses,
                     first->dial && first->dial->text[0] ? first->dial->text : "no answer");
        break;
    case WF_COLL_LISTED:
        wf_coll_fail(group, -ETIMEDOUT, "rank 0 did not say within %d ms who else has come", waited_ms(group));
        break;
    case WF_COLL_GATHERING:
        fail_missing(group, is_missing);
        break;
    case WF_COLL_TREE:
        if (misses_near(group))
            fail_missing(group, is_missing_near);
        else
            wf_coll_fail(group, -ETIMEDOUT, "not all members have met within %d ms", waited_ms(group));
        break;
    case WF_COLL_MADE:
        break;
    }
}

void wf_coll_making_tend(struct weft_group *group, int64_t now_ns)
{
    if (group->phase == WF_COLL_MADE || group->status < 0)
        return;
    wf_coll_look(group, now_ns);
    bool knows = group->phase == WF_COLL_GATHERING || (group->phase == WF_COLL_TREE && misses_near(group));
    if (now_ns >= group->deadline_ns || (knows && now_ns >= group->knows_ns))
        too_late(group);
}
