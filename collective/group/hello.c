/* How two members meet: the one that has dialled says HELLO, the other one judges it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collective/group/words.h"

static int patience_ms(const struct wf_coll_hub *hub)
{
    if (hub->phase == WF_COLL_MADE || hub->deadline_ns == WF_COLL_NEVER)
        return -1;
    int64_t left_ms = (hub->deadline_ns - wf_coll_now_ns()) / 1000000;
    return left_ms > 0 ? (int)left_ms : 0;
}

void wf_coll_knock(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct wf_coll_hello_words words = {
        .version = WF_COLL_VERSION,
        .rank = hub->rank,
        .size = hub->size,
        .process = (unsigned)getpid(),
        .token = hub->token_known ? hub->token : session->expected_token,
        .patience_ms = patience_ms(hub),
    };
    char text[WF_COLL_MESSAGE_BYTES];
    snprintf(words.name, sizeof words.name, "%s", hub->meet.name);
    snprintf(words.host, sizeof words.host, "%s", hub->host);
    snprintf(words.weft, sizeof words.weft, "%s", weft_version());
    snprintf(words.addresses, sizeof words.addresses, "%s", hub->addresses);
    int length = wf_coll_hello_write(&words, text, sizeof text);
    session->state = WF_COLL_KNOCKING;
    session->failing_ns = hub->members[session->rank].unreached_ns = 0;
    wf_coll_say_bytes(hub, session, WF_COLL_HELLO, text, (size_t)length);
}

/* --- the judge --- */

static void note_refusal(struct wf_coll_hub *hub, const char *who, const char *why)
{
    char line[400];
    size_t used = strlen(hub->refused);
    snprintf(line, sizeof line, "%s: %s", who, why);
    if (!strstr(hub->refused, line) && used + strlen(line) + 2 < sizeof hub->refused)
        snprintf(hub->refused + used, sizeof hub->refused - used, "%s%s", used > 0 ? "\n" : "", line);
}

/* Refused; it closes the session when it has read why. */
static void refuse(struct wf_coll_hub *hub, struct wf_coll_session *session, const struct wf_coll_hello_words *hello,
                   int code, const char *why)
{
    char who[160];
    if (hello->version == WF_COLL_VERSION)
        snprintf(who, sizeof who, "rank %u (%s, process %u)", hello->rank, hello->host, hello->process);
    else
        snprintf(who, sizeof who, "%.120s", weft_peer_name(session->peer));
    bool told = hub->phase >= WF_COLL_TREE && !hub->from; /* all have rank 0's notes already */
    if (code != -ESTALE && hub->phase != WF_COLL_MADE && !told)
        note_refusal(hub, who, why);
    wf_coll_say(hub, session, WF_COLL_REFUSED, "%d %s", code, why);
}

/* Why it is refused, with its code; 0: it is not. */
static int judge(struct wf_coll_hub *hub, const struct wf_coll_hello_words *hello, char *why, size_t room)
{
    struct wf_coll_member *member = hello->rank < hub->size ? &hub->members[hello->rank] : NULL;
    if (hello->version != WF_COLL_VERSION) {
        snprintf(why, room, "it has version %u of groups, this one %d: install the same Weft everywhere",
                 hello->version, WF_COLL_VERSION);
        return -EPROTO;
    }
    if (strcmp(hello->name, hub->meet.name) != 0) {
        snprintf(why, room, "it asks for the group '%s', and this is '%s'", hello->name, hub->meet.name);
        return -ECONNREFUSED;
    }
    if (hello->token != 0 && hello->token != hub->token) {
        snprintf(why, room, "it asks for another run of the group");
        return -ESTALE;
    }
    if (hello->size != hub->size) {
        snprintf(why, room, "it has group size %u, this one %u", hello->size, hub->size);
        return -EINVAL;
    }
    if (!member || hello->rank == hub->rank ||
        (member->host[0] && (member->process != hello->process || strcmp(member->host, hello->host) != 0))) {
        snprintf(why, room, "%s is here already: was it started twice?",
                 member ? wf_coll_name_of(hub, hello->rank) : "that rank");
        return member ? -EEXIST : -EINVAL;
    }
    return 0;
}

static void take(struct wf_coll_hub *hub, struct wf_coll_session *session, const struct wf_coll_hello_words *hello)
{
    struct wf_coll_member *member = &hub->members[hello->rank];
    bool again = member->session;
    if (member->dial)
        wf_coll_session_close(hub, member->dial);
    if (again) /* which the other side has no more */
        wf_coll_session_close(hub, member->session);
    hub->strangers--;
    session->state = WF_COLL_OPEN;
    session->rank = hello->rank;
    member->session = session;
    wf_coll_wake(hub);
    member->unreached_ns = 0;
    if (!member->host[0])
        wf_coll_name(hub, hello->rank, hello->host, hello->process);
    if (!member->addresses)
        member->addresses = strdup(hello->addresses);
    wf_coll_say(hub, session, WF_COLL_WELCOME, "%016llx %llu", (unsigned long long)hub->token,
                (unsigned long long)hub->whole.board.key);
    wf_coll_tell_ended(hub, session);
    if (hub->whole.status == 0 && !again)
        wf_coll_member_came(hub, hello->patience_ms);
}

/* Has the caller left this group, or is it over here? Then it asks for the next one at this place: it dials again until
 * that is made here, too. */
static bool is_for_the_next(const struct wf_coll_hub *hub, const struct wf_coll_hello_words *hello)
{
    return hub->ending || (hello->rank < hub->size && hub->members[hello->rank].left);
}

void wf_coll_hello(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    struct wf_coll_hello_words hello;
    char why[200];
    if (!wf_coll_hello_read(text, &hello)) {
        wf_coll_session_close(hub, session);
        return;
    }
    if (!hub->token_known) {
        free(session->hello);
        session->hello = strdup(text);
        session->state = WF_COLL_HELD;
        return;
    }
    if (is_for_the_next(hub, &hello)) {
        wf_coll_session_close(hub, session);
        return;
    }
    int code = judge(hub, &hello, why, sizeof why);
    if (code < 0) {
        refuse(hub, session, &hello, code, why);
        return;
    }
    struct wf_coll_member *member = &hub->members[hello.rank];
    /* An own dial that has failed so far may never succeed: only one side may be able to reach the other. */
    bool own = (member->dial && member->dial->failing_ns == 0) || (member->session && member->session->dials);
    if (own && hub->rank < hello.rank)
        wf_coll_say(hub, session, WF_COLL_CROSSED, "-");
    else
        take(hub, session, &hello);
}

void wf_coll_judge_held(struct wf_coll_hub *hub)
{
    struct wf_coll_session *session = hub->sessions;
    while (session) {
        if (session->state != WF_COLL_HELD) {
            session = session->next;
            continue;
        }
        char *text = session->hello;
        session->hello = NULL;
        session->state = WF_COLL_STRANGER;
        session->deadline_ns = WF_COLL_NEVER;
        wf_coll_hello(hub, session, text);
        free(text);
        session = hub->sessions; /* the list has changed */
    }
}

/* --- the answer --- */

void wf_coll_welcome(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    unsigned long long token, key;
    if (sscanf(text, "%16llx %llu", &token, &key) != 2 || session->state != WF_COLL_KNOCKING)
        return;
    bool other_run =
        (session->expected_token != 0 && token != session->expected_token) || (hub->token_known && token != hub->token);
    if (other_run) {
        char stale[64];
        snprintf(stale, sizeof stale, "%d it is another run of the group", -ESTALE);
        wf_coll_refused(hub, session, stale);
        return;
    }
    struct wf_coll_member *member = &hub->members[session->rank];
    session->state = WF_COLL_OPEN;
    member->dial = NULL;
    member->session = session;
    wf_coll_wake(hub);
    if (session->rank == 0)
        hub->whole.board.key = key;
    if (!hub->token_known) {
        hub->token = token;
        hub->token_known = true;
        wf_coll_judge_held(hub);
    }
    if (hub->phase == WF_COLL_JOINING && session->rank == 0)
        hub->phase = WF_COLL_LISTED;
    wf_coll_tell_ended(hub, session);
    wf_coll_advance(hub);
}

void wf_coll_refused(struct wf_coll_hub *hub, struct wf_coll_session *session, const char *text)
{
    int code = atoi(text);
    const char *why = strchr(text, ' ');
    if (session->state != WF_COLL_KNOCKING)
        return;
    session->failure = code < 0 ? code : -EPROTO;
    snprintf(session->text, sizeof session->text, "%s refuses rank %u: %.200s", weft_peer_name(session->peer),
             hub->rank, why ? why + 1 : "");
    uint32_t rank = (uint32_t)session->rank;
    if (hub->phase == WF_COLL_JOINING && rank == 0) {
        wf_coll_join_failed(hub, session);
    } else {
        wf_coll_note_failure(&hub->members[rank], session);
        if (wf_coll_is_near(hub, rank))
            wf_coll_fail_all(hub, session->failure, "%s", session->text);
    }
    wf_coll_session_close(hub, session);
}

void wf_coll_crossed(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    if (session->state == WF_COLL_KNOCKING) /* the other one's is on its way */
        wf_coll_dial_later(hub, session);
}
