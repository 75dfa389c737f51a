/* Sessions with members and strangers: dialled, come, closed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective/group/words.h"

#define STRANGERS_MAX 256
#define GOODBYE_MS 1000
#define TRY_MS 2000 /* for one address, where another try comes: of it, of another one, or of a newer one */
#define AGAIN_NS (50 * 1000000LL)     /* between two rounds through the addresses */
#define CROSSED_NS (1000 * 1000000LL) /* for the other side's dial to arrive */
/* Tries end after this, where no operation has a deadline: the member has gone, and whoever knew it is gone, too. */
#define UNREACHED_NS (30 * 1000000000LL)
#define HELLO_NS (5 * 1000000000LL) /* for a stranger to open its connections, and then to say who it is */
#define OPEN_MS 10000               /* the library answers for the other side's group, if it has one */

static void tidy(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    if (session->state != WF_COLL_CLOSED || session->under_way > 0)
        return;
    struct wf_coll_session **at = &hub->sessions;
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    free(session->hello);
    free(session);
}

static void closed(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    (void)completion;
    struct wf_coll_session *session =
        (struct wf_coll_session *)((char *)task - offsetof(struct wf_coll_session, closed));
    session->under_way--;
    tidy(hub, session);
}

static void part_from(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct weft_options options = {.queue = hub->queue, .timeout_ms = GOODBYE_MS, .user_data = &session->closed};
    struct weft_request *request;
    struct weft_peer *peer = session->peer;
    session->peer = NULL;
    session->control = session->data = session->work = NULL;
    session->under_way++;
    if (weft_peer_close_start(peer, &options, &request, NULL) < 0)
        session->under_way--;
}

void wf_coll_session_close(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    if (session->state == WF_COLL_CLOSED)
        return;
    if (session->rank >= 0) {
        struct wf_coll_member *member = &hub->members[session->rank];
        if (member->session == session)
            member->session = NULL;
        if (member->dial == session)
            member->dial = NULL;
    }
    if (session->state == WF_COLL_STRANGER || session->state == WF_COLL_HELD)
        hub->strangers--;
    if (session->on_demand)
        hub->on_demand--;
    session->state = WF_COLL_CLOSED;
    wf_coll_unsay(hub, session);
    wf_coll_wake(hub);
    if (session->dialling && hub->ending && !session->dialled.taken)
        weft_cancel(session->dialling); /* else it ends in order, without a word in the other one's log */
    if (session->peer)
        part_from(hub, session);
    tidy(hub, session);
}

void wf_coll_dials_cancel(struct wf_coll_hub *hub)
{
    for (struct wf_coll_session *session = hub->sessions; session; session = session->next)
        if (session->dialling)
            weft_cancel(session->dialling);
}

/* --- dialling --- */

static struct wf_coll_session *of_dialled(struct wf_coll_task *task)
{
    return (struct wf_coll_session *)((char *)task - offsetof(struct wf_coll_session, dialled));
}

/* Address number `index` of a list. The scope of a link-local one is the name of an interface of its own machine: here
 * it is that of our rail. False: there is none. */
static bool address_at(struct wf_coll_hub *hub, const char *list, uint32_t index, char *out, size_t room)
{
    for (; index > 0 && *list; index--) {
        list += strcspn(list, ",");
        list += *list == ',';
    }
    size_t length = strcspn(list, ",");
    if (length == 0)
        return false;
    const char *scope = memchr(list, '%', length),
               *close = scope ? memchr(scope, ']', length - (size_t)(scope - list)) : NULL;
    if (scope && close) {
        struct weft_rail_info rails[WF_COLL_RAILS_MAX];
        int count = weft_context_rails(hub->context, rails, WF_COLL_RAILS_MAX);
        count = count < WF_COLL_RAILS_MAX ? count : WF_COLL_RAILS_MAX;
        const char *interface = count > 0 ? rails[index % (uint32_t)count].interface : "";
        snprintf(out, room, "%.*s%%%s%.*s", (int)(scope - list), list, interface,
                 (int)(length - (size_t)(close - list)), close);
    } else {
        snprintf(out, room, "%.*s", (int)length, list);
    }
    return true;
}

static bool passing(int status)
{
    return status != -EACCES && status != -EINVAL && status != -ENOMEM;
}

void wf_coll_note_failure(struct wf_coll_member *member, const struct wf_coll_session *session)
{
    member->failure = session->failure ? session->failure : -ETIMEDOUT;
    snprintf(member->text, sizeof member->text, "%s", session->text[0] ? session->text : "no answer");
}

/* The session comes to nothing. */
static void give_up(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct wf_coll_member *member = &hub->members[session->rank];
    if (hub->phase == WF_COLL_JOINING && session->rank == 0) {
        wf_coll_join_failed(hub, session);
    } else {
        wf_coll_note_failure(member, session);
        if (hub->phase == WF_COLL_TREE && wf_coll_is_near(hub, (uint32_t)session->rank))
            wf_coll_fail_all(hub, member->failure, "%s cannot be reached: %s",
                             wf_coll_name_of(hub, (uint32_t)session->rank), member->text);
    }
    wf_coll_session_close(hub, session);
}

static struct wf_coll_session *add(struct wf_coll_hub *hub, enum wf_coll_state state);

/* A session that takes the place of a dialled one: what is still under way on that one does not concern it. */
static struct wf_coll_session *renew(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct wf_coll_session *next = add(hub, WF_COLL_DIALLING);
    if (!next)
        return NULL;
    next->rank = session->rank;
    next->dials = true;
    next->on_demand = session->on_demand;
    next->deadline_ns = session->deadline_ns;
    next->asked_until_ns = session->asked_until_ns;
    next->expected_token = session->expected_token;
    next->attempt = session->attempt;
    next->failing_ns = session->failing_ns;
    next->failure = session->failure;
    memcpy(next->text, session->text, sizeof next->text);
    hub->on_demand += next->on_demand;
    wf_coll_session_close(hub, session);
    hub->members[next->rank].dial = next;
    return next;
}

void wf_coll_dial_later(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    session = renew(hub, session);
    if (session)
        session->again_ns = wf_coll_now_ns() + CROSSED_NS;
    else
        wf_coll_fail_all(hub, -ENOMEM, "no memory for a session");
}

/* Has it failed for so long that it will not succeed? Where something has a deadline, that decides. `more`: not all
 * addresses have been tried in this round. One round is enough for the next group that needs a member just given up. */
static bool is_unreached(const struct wf_coll_hub *hub, const struct wf_coll_session *session, bool more,
                         int64_t now_ns)
{
    bool again = session->on_demand && hub->members[session->rank].unreached_ns != 0 && !more;
    if (hub->phase != WF_COLL_MADE || session->deadline_ns != WF_COLL_NEVER)
        return false;
    for (const struct wf_coll_operation *at = hub->operations; at; at = at->next)
        if (!at->ended && at->deadline_ns != WF_COLL_NEVER && wf_coll_rank_of(at->group, session->rank) >= 0)
            return false;
    return (again || now_ns - session->failing_ns >= UNREACHED_NS) && now_ns >= session->asked_until_ns;
}

static void try_failed(struct wf_coll_hub *hub, struct wf_coll_session *session, int status, const char *text)
{
    int64_t now_ns = wf_coll_now_ns();
    struct wf_coll_member *member = &hub->members[session->rank];
    char address[300];
    bool more = address_at(hub, member->addresses, session->attempt + 1, address, sizeof address);
    session->failure = status;
    snprintf(session->text, sizeof session->text, "%s", text);
    if (session->failing_ns == 0)
        session->failing_ns = now_ns;
    bool file = hub->phase == WF_COLL_JOINING && hub->meet.way == WF_MEET_FILE;
    bool unreached = is_unreached(hub, session, more, now_ns);
    if (unreached)
        member->unreached_ns = now_ns;
    if (!passing(status) || file || unreached) {
        give_up(hub, session);
        return;
    }
    if (session->state != WF_COLL_DIALLING) {
        session = renew(hub, session);
        if (!session) {
            wf_coll_fail_all(hub, -ENOMEM, "no memory for a session");
            return;
        }
    }
    session->again_ns = more ? 0 : now_ns + AGAIN_NS;
    session->attempt = more ? session->attempt + 1 : 0;
}

static void try_once(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    const char *list = hub->members[session->rank].addresses;
    char address[300], second[300];
    struct weft_error err = {0};
    int64_t left_ms =
        session->deadline_ns == WF_COLL_NEVER ? INT32_MAX : (session->deadline_ns - wf_coll_now_ns()) / 1000000;
    if (!address_at(hub, list, session->attempt, address, sizeof address)) {
        try_failed(hub, session, -EINVAL, "no address is known");
        return;
    }
    bool shorter = session->expected_token != 0 || address_at(hub, list, 1, second, sizeof second) ||
                   session->deadline_ns == WF_COLL_NEVER;
    struct weft_options options = {
        .queue = hub->queue,
        .user_data = &session->dialled,
        .timeout_ms = shorter && left_ms > TRY_MS ? TRY_MS
                      : left_ms > 1               ? (int)left_ms
                                                  : 1,
    };
    session->under_way++;
    int result = weft_connect_start(hub->context, address, &options, &session->dialling, &err);
    if (result < 0) {
        session->under_way--;
        session->dialling = NULL;
        try_failed(hub, session, result, err.text);
    }
}

static int open_one(struct wf_coll_hub *hub, struct wf_coll_session *session, struct weft_endpoint *endpoint,
                    uint32_t id, struct wf_coll_task *task, struct weft_error *err)
{
    struct weft_options options = {
        .queue = hub->queue,
        .timeout_ms = session->expected_token      ? TRY_MS
                      : hub->phase == WF_COLL_MADE ? OPEN_MS
                                                   : 0,
        .user_data = task,
    };
    struct weft_request *request;
    session->under_way++;
    int result = weft_connection_open_start(endpoint, session->peer, id, &options, &request, err);
    if (result < 0)
        session->under_way--;
    return result;
}

static void open_all(struct wf_coll_hub *hub, struct wf_coll_session *session)
{
    struct weft_error err = {0};
    if (hub->phase == WF_COLL_JOINING && session->rank == 0)
        wf_coll_note(hub, &hub->times.connected_ns);
    session->state = WF_COLL_OPENING;
    int result = open_one(hub, session, hub->control, WF_COLL_CONTROL, &session->control_opened, &err);
    if (result == 0)
        result = open_one(hub, session, hub->data, WF_COLL_DATA, &session->data_opened, &err);
    if (result == 0)
        result = open_one(hub, session, hub->work, WF_COLL_WORK, &session->work_opened, &err);
    if (result < 0)
        try_failed(hub, session, result, err.text);
}

static void dialled(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct wf_coll_session *session = of_dialled(task);
    session->under_way--;
    session->dialling = NULL;
    if (completion->status == 0)
        session->peer = completion->peer;
    if (session->state == WF_COLL_CLOSED) {
        if (session->peer)
            part_from(hub, session);
        tidy(hub, session);
    } else if (completion->status < 0) {
        try_failed(hub, session, completion->status, completion->text);
    } else {
        open_all(hub, session);
    }
}

static void opened(struct wf_coll_hub *hub, struct wf_coll_session *session, struct weft_connection **place,
                   const struct weft_completion *completion)
{
    session->under_way--;
    if (session->state == WF_COLL_CLOSED) {
        tidy(hub, session);
        return;
    }
    if (session->state != WF_COLL_OPENING) /* another one has failed */
        return;
    if (completion->status < 0) {
        try_failed(hub, session, completion->status, completion->text);
        return;
    }
    *place = completion->connection;
    if (session->control && session->data && session->work)
        wf_coll_knock(hub, session);
}

static void control_opened(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct wf_coll_session *session =
        (struct wf_coll_session *)((char *)task - offsetof(struct wf_coll_session, control_opened));
    opened(hub, session, &session->control, completion);
}

static void data_opened(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct wf_coll_session *session =
        (struct wf_coll_session *)((char *)task - offsetof(struct wf_coll_session, data_opened));
    opened(hub, session, &session->data, completion);
}

static void work_opened(struct wf_coll_hub *hub, struct wf_coll_task *task, const struct weft_completion *completion)
{
    struct wf_coll_session *session =
        (struct wf_coll_session *)((char *)task - offsetof(struct wf_coll_session, work_opened));
    opened(hub, session, &session->work, completion);
}

static struct wf_coll_session *add(struct wf_coll_hub *hub, enum wf_coll_state state)
{
    struct wf_coll_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->dialled.ended = dialled;
    session->control_opened.ended = control_opened;
    session->data_opened.ended = data_opened;
    session->work_opened.ended = work_opened;
    session->closed.ended = closed;
    session->state = state;
    session->rank = -1;
    session->number = ++hub->met;
    session->next = hub->sessions;
    hub->sessions = session;
    return session;
}

int wf_coll_dial(struct wf_coll_hub *hub, uint32_t rank, int64_t deadline_ns, uint64_t expected_token, bool on_demand)
{
    struct wf_coll_member *member = &hub->members[rank];
    struct wf_coll_session *session = add(hub, WF_COLL_DIALLING);
    if (!session)
        return -ENOMEM;
    session->rank = rank;
    session->dials = true;
    session->on_demand = on_demand;
    session->deadline_ns = deadline_ns;
    session->expected_token = expected_token;
    hub->on_demand += on_demand;
    member->dial = session;
    member->failure = 0;
    if (wf_coll_now_ns() - member->unreached_ns >= UNREACHED_NS) /* long ago */
        member->unreached_ns = 0;
    try_once(hub, session);
    return 0;
}

/* --- who has come --- */

void wf_coll_came(struct wf_coll_hub *hub, struct weft_peer *peer)
{
    struct wf_coll_session *session = hub->strangers < STRANGERS_MAX + hub->size ? add(hub, WF_COLL_STRANGER) : NULL;
    if (!session) {
        struct weft_options options = {.queue = hub->queue, .timeout_ms = GOODBYE_MS};
        struct weft_request *request;
        weft_peer_close_start(peer, &options, &request, NULL);
        return;
    }
    hub->strangers++;
    session->peer = peer;
    session->deadline_ns = wf_coll_now_ns() + HELLO_NS;
}

static struct wf_coll_session *of_peer(struct wf_coll_hub *hub, const struct weft_peer *peer)
{
    struct wf_coll_session *session = hub->sessions;
    while (session && session->peer != peer)
        session = session->next;
    return session;
}

struct wf_coll_session *wf_coll_session_of(struct wf_coll_hub *hub, const struct weft_connection *control)
{
    struct wf_coll_session *session = hub->sessions;
    while (session && session->control != control)
        session = session->next;
    return session;
}

void wf_coll_connected(struct wf_coll_hub *hub, struct weft_peer *peer, struct weft_endpoint *endpoint,
                       struct weft_connection *connection)
{
    struct wf_coll_session *session = of_peer(hub, peer);
    struct weft_connection **place = !session                   ? NULL
                                     : endpoint == hub->control ? &session->control
                                     : endpoint == hub->data    ? &session->data
                                     : endpoint == hub->work    ? &session->work
                                                                : NULL;
    if (place && !*place && !session->dials) {
        *place = connection;
        if (session->control && session->data && session->work) /* HELLO may need one more call of its program */
            session->deadline_ns = wf_coll_now_ns() + HELLO_NS;
        wf_coll_wake(hub);
    } else if (place) { /* no member opens a second one */
        wf_coll_session_close(hub, session);
    }
}

void wf_coll_lost(struct wf_coll_hub *hub, const struct weft_event *event)
{
    struct wf_coll_session *session = of_peer(hub, event->peer);
    if (!session)
        return;
    struct wf_coll_member *member = session->rank >= 0 ? &hub->members[session->rank] : NULL;
    switch (session->state) {
    case WF_COLL_OPENING:
    case WF_COLL_KNOCKING:
        try_failed(hub, session, event->status, event->text);
        return;
    case WF_COLL_OPEN:
        if (!member->left && !session->parting)
            wf_coll_member_lost(hub, (uint32_t)session->rank, event->status, event->text);
        break;
    case WF_COLL_DIALLING:
    case WF_COLL_STRANGER:
    case WF_COLL_HELD:
    case WF_COLL_PARTED:
    case WF_COLL_CLOSED:
        break;
    }
    wf_coll_session_close(hub, session);
}

/* --- time --- */

static void tend(struct wf_coll_hub *hub, struct wf_coll_session *session, int64_t now_ns)
{
    bool stranger = session->state == WF_COLL_STRANGER;
    bool on_its_way = session->state <= WF_COLL_KNOCKING;
    if ((stranger || on_its_way) && now_ns >= session->deadline_ns) {
        if (on_its_way)
            give_up(hub, session);
        else
            wf_coll_session_close(hub, session);
    } else if (session->state == WF_COLL_DIALLING && !session->dialling && now_ns >= session->again_ns) {
        try_once(hub, session);
    }
}

void wf_coll_sessions_tend(struct wf_coll_hub *hub, int64_t now_ns)
{
    for (struct wf_coll_session *session = hub->sessions, *next; session; session = next) {
        next = session->next; /* nothing below ends another session but the failure of groups, which closes none */
        tend(hub, session, now_ns);
    }
}

int64_t wf_coll_sessions_next_ns(const struct wf_coll_hub *hub)
{
    int64_t next_ns = WF_COLL_NEVER;
    for (const struct wf_coll_session *session = hub->sessions; session; session = session->next) {
        int64_t at_ns = WF_COLL_NEVER;
        if (session->state == WF_COLL_DIALLING && !session->dialling)
            at_ns = session->again_ns;
        else if (session->state <= WF_COLL_STRANGER)
            at_ns = session->deadline_ns;
        if (at_ns < next_ns)
            next_ns = at_ns;
    }
    return next_ns;
}

void wf_coll_sessions_free(struct wf_coll_hub *hub)
{
    while (hub->sessions) {
        struct wf_coll_session *session = hub->sessions;
        hub->sessions = session->next;
        free(session->hello);
        free(session);
    }
}
