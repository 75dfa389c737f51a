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

static int waited_ms(const struct wf_coll_hub *hub)
{
    return (int)((wf_coll_now_ns() - hub->began_ns) / 1000000);
}

/* --- where rank 0 is --- */

static int left_ms(const struct wf_coll_hub *hub)
{
    if (hub->deadline_ns == WF_COLL_NEVER)
        return INT32_MAX;
    int64_t left = (hub->deadline_ns - wf_coll_now_ns()) / 1000000;
    return left > 0 ? (int)left : 0;
}

static int publish(struct wf_coll_hub *hub, struct weft_error *err)
{
    char line[WF_MEET_LINE_BYTES];
    snprintf(line, sizeof line, "%016llx;%s", (unsigned long long)hub->token, hub->addresses);
    return wf_meet_publish(&hub->meet, line, left_ms(hub), err);
}

static void join(struct wf_coll_hub *hub, const char *addresses, uint64_t token)
{
    free(hub->members[0].addresses);
    hub->members[0].addresses = strdup(addresses);
    hub->phase = WF_COLL_JOINING;
    wf_coll_note(hub, &hub->times.found_ns);
    if (!hub->members[0].addresses || wf_coll_dial(hub, 0, hub->deadline_ns, token, false) < 0)
        wf_coll_fail_all(hub, -ENOMEM, "no memory to join");
}

static int64_t until_next_look_ns(const struct wf_coll_hub *hub, int64_t now_ns)
{
    int64_t pause_ns = (now_ns - hub->began_ns) / 8;
    return pause_ns < LOOK_LEAST_NS ? LOOK_LEAST_NS : pause_ns > LOOK_MOST_NS ? LOOK_MOST_NS : pause_ns;
}

void wf_coll_look(struct wf_coll_hub *hub, int64_t now_ns)
{
    char line[WF_MEET_LINE_BYTES];
    struct weft_error err = {0};
    unsigned long long token;
    if (hub->phase != WF_COLL_LOOKING || now_ns < hub->look_ns)
        return;
    hub->look_ns = now_ns + until_next_look_ns(hub, now_ns);
    int result = wf_meet_look(&hub->meet, left_ms(hub), line, &err);
    char *addresses = result == 1 ? strchr(line, ';') : NULL;
    if (result < 0)
        wf_coll_fail_all(hub, result, "%s", err.text);
    else if (addresses && sscanf(line, "%16llx;", &token) == 1)
        join(hub, addresses + 1, token);
}

/* An answer tells more than that none came to a later question, or that nobody listens. */
static int why_not(const struct wf_coll_member *first)
{
    return first->refusal ? first->refusal : first->failure;
}

static void fail_refused(struct wf_coll_hub *hub, int failure)
{
    wf_coll_fail_all(hub, failure, "rank 0 did not take rank %u within %d ms: %s", hub->rank, waited_ms(hub),
                     hub->members[0].text);
}

/* A file may be of an earlier run, whose address is somebody else's by now: it is looked at again. */
void wf_coll_join_failed(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct wf_coll_member *first = &hub->members[0];
    bool answered = session->state == WF_COLL_KNOCKING && session->text[0];
    if (answered || !first->refusal)
        wf_coll_note_failure(first, session);
    if (answered)
        first->refusal = first->failure;
    int failure = why_not(first);
    bool again = session->failure != -EINVAL && session->failure != -EEXIST && session->failure != -EPROTO;
    if (hub->meet.way == WF_MEET_FILE && again && wf_coll_now_ns() < hub->deadline_ns) {
        hub->phase = WF_COLL_LOOKING;
        hub->look_ns = wf_coll_now_ns() + AGAIN_NS;
    } else if (failure == -ETIMEDOUT || failure == -ECONNREFUSED || wf_coll_now_ns() >= hub->deadline_ns) {
        fail_refused(hub, failure);
    } else {
        wf_coll_fail_all(hub, failure, "%s", first->text);
    }
}

int wf_coll_meet(struct wf_coll_hub *hub, struct weft_error *err)
{
    int result = 0;
    if (hub->from || hub->size == 1) {
        hub->token_known = true;
        wf_coll_to_tree(hub);
    } else if (hub->rank == 0) {
        while (hub->token == 0)
            if (getrandom(&hub->token, sizeof hub->token, 0) < 0)
                return wf_coll_refuse(err, -errno, "no random number: %s", strerror(errno));
        hub->token_known = true;
        hub->phase = WF_COLL_GATHERING;
        hub->came = 1;
        wf_meet_clear(&hub->meet); /* of an earlier run */
        result = publish(hub, err);
        wf_coll_note(hub, &hub->times.found_ns);
    } else if (hub->meet.way == WF_MEET_HOST) {
        join(hub, hub->meet.place, 0);
    } else {
        hub->phase = WF_COLL_LOOKING;
    }
    return result;
}

/* --- the table --- */

static void send_table(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text, size_t length)
{
    wf_coll_say_bytes(hub, session, WF_COLL_TABLE, text, length);
}

static void to_all(struct wf_coll_hub *hub, enum wf_coll_kind kind, const char *text, size_t length)
{
    for (uint32_t i = 1; i < hub->size; i++)
        if (hub->members[i].session) {
            if (kind == WF_COLL_TABLE)
                send_table(hub, hub->members[i].session, text, length);
            else
                wf_coll_say_bytes(hub, hub->members[i].session, kind, text, length);
        }
}

static void hand_out(struct wf_coll_hub *hub)
{
    char text[WF_COLL_MESSAGE_BYTES];
    to_all(hub, WF_COLL_NOTES, hub->refused, strlen(hub->refused));
    size_t used = 0;
    for (uint32_t i = 0; i < hub->size; i++) {
        const struct wf_coll_member *member = &hub->members[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%u %u %s %s\n", i, member->process, member->host,
                                 member->addresses);
        if (used + WF_COLL_ADDRESSES_BYTES + WF_COLL_HOST_BYTES + 32 > sizeof text || i + 1 == hub->size) {
            to_all(hub, WF_COLL_TABLE, text, used);
            used = 0;
        }
    }
}

static bool take_entry(struct wf_coll_hub *hub, const char *line)
{
    unsigned rank, process;
    char host[WF_COLL_HOST_BYTES], addresses[WF_COLL_ADDRESSES_BYTES];
    if (sscanf(line, "%u %u %64s %899s", &rank, &process, host, addresses) != 4 || rank >= hub->size)
        return false;
    struct wf_coll_member *member = &hub->members[rank];
    char *copy = strdup(addresses);
    if (!copy)
        return false;
    free(member->addresses);
    member->addresses = copy;
    wf_coll_name(hub, rank, host, process);
    hub->listed++;
    return true;
}

void wf_coll_table(struct wf_coll_hub *hub, const char *text)
{
    if (hub->phase != WF_COLL_LISTED)
        return;
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        if (!strchr(line, '\n') || !take_entry(hub, line)) {
            wf_coll_fail_all(hub, -EPROTO, "the table of members that rank 0 sends is wrong");
            return;
        }
    if (hub->listed == hub->size)
        wf_coll_to_tree(hub);
}

/* --- the tree --- */

static void count_local(struct wf_coll_hub *hub)
{
    hub->local_rank = 0;
    for (uint32_t i = 0; i < hub->rank; i++) {
        const char *own = hub->from ? hub->members[hub->rank].addresses : hub->host;
        const char *other = hub->from ? hub->members[i].addresses : hub->members[i].host;
        size_t length = hub->from ? (size_t)(strrchr(own, ':') - own) + 1 : strlen(own) + 1;
        hub->local_rank += strncmp(own, other, length) == 0;
    }
    if (hub->meet.local_rank >= 0)
        hub->local_rank = (uint32_t)hub->meet.local_rank;
}

void wf_coll_to_tree(struct wf_coll_hub *hub)
{
    hub->phase = WF_COLL_TREE;
    wf_coll_note(hub, &hub->times.met_ns);
    count_local(hub);
    struct wf_coll_operation *first;
    int result = wf_coll_enter(hub, -1, true, NULL, &first);
    uint32_t parent = hub->rank > 0 ? (hub->rank - 1) / 2 : 0;
    if (result == 0 && hub->rank > 0 && !hub->members[parent].session)
        result = wf_coll_dial(hub, parent, hub->deadline_ns, 0, false);
    if (result < 0)
        wf_coll_fail_all(hub, result, "no memory for the group");
}

void wf_coll_member_came(struct wf_coll_hub *hub, int patience_ms)
{
    if (hub->phase != WF_COLL_GATHERING)
        return;
    hub->came++;
    if (patience_ms >= 0) {
        int64_t until_ns = wf_coll_now_ns() + patience_ms * 1000000LL - wf_coll_margin_ns(patience_ms);
        if (until_ns < hub->knows_ns)
            hub->knows_ns = until_ns;
    }
    if (hub->came == hub->size) {
        wf_coll_note(hub, &hub->times.connected_ns);
        hand_out(hub);
        wf_coll_to_tree(hub);
    }
}

/* --- who has not come --- */

static bool is_missing(struct weft_group *whole, uint32_t rank)
{
    return rank != whole->rank && !whole->hub->members[rank].session;
}

static bool is_missing_near(struct weft_group *whole, uint32_t rank)
{
    return wf_coll_is_near(whole->hub, rank) && !whole->hub->members[rank].session;
}

static void fail_missing(struct wf_coll_hub *hub, bool (*is)(struct weft_group *, uint32_t))
{
    char names[160];
    wf_coll_list(&hub->whole, is, names, sizeof names);
    const char *last = strrchr(hub->refused, '\n');
    const char *refused = last ? last + 1 : hub->refused;
    wf_coll_fail_all(hub, -ETIMEDOUT, "%s did not come within %d ms%s%.100s%s", names, waited_ms(hub),
                     refused[0] ? " (refused: " : "", refused, refused[0] ? ")" : "");
}

static bool misses_near(struct wf_coll_hub *hub)
{
    char text[8];
    return wf_coll_list(&hub->whole, is_missing_near, text, sizeof text) > 0;
}

static void too_late(struct wf_coll_hub *hub)
{
    const struct wf_coll_member *first = &hub->members[0];
    int failure = why_not(first);
    switch (hub->phase) {
    case WF_COLL_LOOKING:
        wf_coll_fail_all(hub, failure ? failure : -ETIMEDOUT, "rank 0 did not come within %d ms: %s%.120s%s%.150s",
                         waited_ms(hub), hub->meet.way == WF_MEET_FILE ? "file:" : "no address by ",
                         hub->meet.way == WF_MEET_FILE ? hub->meet.place : hub->meet.said,
                         first->text[0] ? ": " : " was not written", first->text);
        break;
    case WF_COLL_JOINING:
        if (first->refusal) /* of an earlier question */
            fail_refused(hub, first->refusal);
        else
            wf_coll_fail_all(hub, first->dial && first->dial->failure ? first->dial->failure : -ETIMEDOUT,
                             "rank 0 did not come within %d ms: %.100s: %s", waited_ms(hub), first->addresses,
                             first->dial && first->dial->text[0] ? first->dial->text : "no answer");
        break;
    case WF_COLL_LISTED:
        wf_coll_fail_all(hub, -ETIMEDOUT, "rank 0 did not say within %d ms who else has come", waited_ms(hub));
        break;
    case WF_COLL_GATHERING:
        fail_missing(hub, is_missing);
        break;
    case WF_COLL_TREE:
        if (misses_near(hub))
            fail_missing(hub, is_missing_near);
        else
            wf_coll_fail_all(hub, -ETIMEDOUT, "not all members have met within %d ms", waited_ms(hub));
        break;
    case WF_COLL_MADE:
        break;
    }
}

void wf_coll_making_tend(struct wf_coll_hub *hub, int64_t now_ns)
{
    if (hub->phase == WF_COLL_MADE || hub->whole.status < 0)
        return;
    wf_coll_look(hub, now_ns);
    bool knows = hub->phase == WF_COLL_GATHERING || (hub->phase == WF_COLL_TREE && misses_near(hub));
    if (now_ns >= hub->deadline_ns || (knows && now_ns >= hub->knows_ns))
        too_late(hub);
}
