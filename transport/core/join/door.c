#include "core/join/door_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "core/channel/payload.h"
#include "core/ground/reached.h"
#include "core/join/lookup.h"
#include "core/join/redial.h"
#include "core/join/talk.h"
#include "core/rail/address.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "core/session/user.h"

#define LOOKS 8 /* looks at unanswered channels during wf_dial.share_ns */

void wf_door_rail_changed(struct wf_door *door, int rail)
{
    struct wf_sessions *sessions = door->sessions;
    const struct wf_rail *changed = &sessions->rails->each[rail];
    bool down = atomic_load(&changed->down), gone = atomic_load(&changed->trouble) == WF_RAIL_GONE;
    pthread_mutex_lock(&sessions->world->lock);
    WF_LIST_EACH (link, following, &sessions->all) {
        struct wf_session *session = WF_CONTAINER(link, struct wf_session, link);
        wf_session_rail_changed(session, rail, down, gone);
        wf_guard_visit(&session->guard, 0); /* if the rail is back, its lost channels are dialled at once */
    }
    pthread_mutex_unlock(&sessions->world->lock);
    if (down)
        wf_talks_rail_down(door, rail);
}

static void rail_changed(void *user, int rail)
{
    wf_door_rail_changed(user, rail);
}

int wf_door_create(struct wf_sessions *sessions, struct wf_handshake_key *key, struct wf_seal *seal,
                   struct wf_door **out, struct wf_status *status)
{
    struct wf_door *door = calloc(1, sizeof *door);
    if (!door)
        return wf_fail(status, -ENOMEM, "no memory for the door");
    door->sessions = sessions;
    door->key = key;
    door->seal = seal;
    pthread_mutex_init(&door->mail_lock, NULL);
    wf_list_init(&door->new_dials);
    wf_list_init(&door->wishes);
    wf_list_init(&door->dials);
    wf_list_init(&door->talks);
    wf_list_init(&door->talks_wait);
    wf_alarm_init(&door->dial_times);
    wf_alarm_init(&door->talk_times);
    wf_list_init(&door->redials_wait);
    door->stranger_log.interval_ns = 5 * WF_NS_PER_S;
    struct wf_engine_limits limits = {.call_bytes = 64 * 1024, .pinned = true, .set_up = true};
    int result = sessions->world->engine_ops->open(sessions->world->engine_host, &limits, &door->engine, status);
    if (result == 0 && !(door->lookup = wf_lookup_create(door->engine)))
        result = wf_fail(status, -ENOMEM, "no memory for the door");
    if (result < 0) {
        wf_door_destroy(door);
        return result;
    }
    wf_alarm_listen(&sessions->world->alarm, door->engine);
    wf_rail_watch_open(&door->watch, sessions->rails, door->engine, rail_changed, door);
    *out = door;
    return 0;
}

static bool operations_out(struct wf_door *door)
{
    if (door->watch.op.posted)
        return true;
    for (int i = 0; i < door->listeners_attached; i++)
        if (door->listeners[i].op.posted)
            return true;
    WF_LIST_EACH (link, following, &door->talks) {
        if (WF_CONTAINER(link, struct wf_talk, link)->op.posted)
            return true;
    }
    return false;
}

/* Cancels all operations, and polls until the engine has returned them: only then may the engine be closed. */
static void wind_down(struct wf_door *door)
{
    wf_talks_end_all(door);
    wf_rail_watch_stop(&door->watch);
    for (int i = 0; i < door->listeners_attached; i++)
        if (door->listeners[i].op.posted)
            door->engine->ops->cancel(door->engine, &door->listeners[i].op);
    while (operations_out(door)) {
        struct wf_op *finished[16];
        int count = door->engine->ops->poll(door->engine, finished, 16, 0);
        for (int i = 0; i < count; i++)
            if (finished[i]->kind == WF_OP_ACCEPT && finished[i]->result >= 0)
                door->engine->ops->close_fd(door->sessions->world->engine_host, (int)finished[i]->result);
    }
    wf_talks_tick(door, 0);
    wf_door_close_listeners(door);
    wf_rail_watch_close(&door->watch);
}

void wf_door_destroy(struct wf_door *door)
{
    if (!door)
        return;
    wf_lookup_destroy(door->lookup);
    if (door->engine) {
        wind_down(door);
        wf_alarm_listen(&door->sessions->world->alarm, NULL);
        door->engine->ops->close(door->engine);
    }
    wf_alarm_fini(&door->dial_times);
    wf_alarm_fini(&door->talk_times);
    pthread_mutex_destroy(&door->mail_lock);
    free(door);
}

/* --- dialling --- */

/* The addresses of the dial are known: makes the text that names them. */
static void name_addresses(struct wf_dial *dial)
{
    char first[80], second[80] = "";
    wf_address_text(&dial->addresses[0], true, first, sizeof first);
    if (dial->address_count > 1)
        wf_address_text(&dial->addresses[1], true, second, sizeof second);
    snprintf(dial->text, sizeof dial->text, "%s%s%s", first, second[0] ? " or " : "", second);
}

int wf_dial_init(struct wf_dial *dial, const struct wf_world *world, const char *address, int timeout_ms,
                 struct wf_status *status)
{
    memset(dial, 0, sizeof *dial);
    int count = wf_address_parse_known(address, world->tuning.port, dial->addresses, WF_DIAL_ADDRESSES, status);
    if (count < 0)
        return count;
    if (wf_address_port(&dial->addresses[0]) == 0)
        return wf_fail(status, -EINVAL,
                       "'%.100s' leads to port 0, where nobody waits: write ADDR:PORT, with the port of the other node",
                       address);
    wf_link_init(&dial->link);
    wf_link_init(&dial->wish_link);
    wf_list_init(&dial->talks);
    snprintf(dial->name_text, sizeof dial->name_text, "%s", address);
    dial->address_count = count;
    dial->deadline_ns = wf_deadline_after_ms(wf_world_now(world), timeout_ms);
    if (count > 0) {
        name_addresses(dial);
    } else {
        dial->name = dial->name_text;
        snprintf(dial->text, sizeof dial->text, "%.159s", address);
    }
    return 0;
}

void wf_door_dial(struct wf_door *door, struct wf_dial *dial)
{
    pthread_mutex_lock(&door->mail_lock);
    wf_list_push_back(&door->new_dials, &dial->link);
    pthread_mutex_unlock(&door->mail_lock);
    door->engine->ops->wake(door->engine);
}

void wf_door_give_up(struct wf_door *door, struct wf_dial *dial, const struct wf_status *why)
{
    pthread_mutex_lock(&door->mail_lock);
    if (!wf_link_in_list(&dial->wish_link)) {
        dial->wish = *why;
        wf_list_push_back(&door->wishes, &dial->wish_link);
    }
    pthread_mutex_unlock(&door->mail_lock);
    door->engine->ops->wake(door->engine);
}

void wf_door_forget_wish(struct wf_door *door, struct wf_dial *dial)
{
    pthread_mutex_lock(&door->mail_lock);
    wf_link_remove(&dial->wish_link);
    pthread_mutex_unlock(&door->mail_lock);
}

static bool given_up(struct wf_door *door, const struct wf_dial *dial)
{
    pthread_mutex_lock(&door->mail_lock);
    bool is = dial->wish.code < 0;
    pthread_mutex_unlock(&door->mail_lock);
    return is;
}

static void finish_dial(struct wf_door *door, struct wf_dial *dial)
{
    wf_link_remove(&dial->link);
    wf_alarm_leave(&door->dial_times, &dial->visit);
    wf_talks_end(dial);
    wf_lookup_forget(door->lookup, dial);
    if (dial->session)
        dial->session->visited_too = NULL;
    if (dial->status.code < 0 && dial->session) {
        bool expected = given_up(door, dial); /* nothing to tell of in the log */
        wf_session_lock(dial->session);
        if (expected)
            wf_session_dismiss(dial->session, NULL);
        wf_guard_fail(&dial->session->guard, dial->status.code, "%s", dial->status.text);
        wf_session_unlock(dial->session);
        wf_session_release(dial->session);
        dial->session = NULL;
    }
    if (dial->status.code == 0)
        wf_dial_tell_missed(dial);
    if (dial->ended)
        dial->ended(dial);
    else
        dial->done = true;
}

/* A dial begins: from now on the door visits it. */
static void begin_dial(struct wf_door *door, struct wf_dial *dial)
{
    wf_list_push_back(&door->dials, &dial->link);
    int result = wf_alarm_enter(&door->dial_times, &dial->visit);
    if (result < 0)
        wf_fail(&dial->status, result, "no memory to dial %s", dial->text);
    else if (dial->name)
        wf_lookup_ask(door->lookup, dial, door->sessions->world->tuning.port, &dial->status);
    if (result < 0) /* the door would not come back to it */
        finish_dial(door, dial);
}

/* Begins the dials that have come, and ends those that were given up. */
static void take_mail(struct wf_door *door)
{
    struct wf_link *link;
    struct wf_list fresh;
    wf_list_init(&fresh);
    pthread_mutex_lock(&door->mail_lock);
    while ((link = wf_list_pop_front(&door->new_dials)))
        wf_list_push_back(&fresh, link);
    pthread_mutex_unlock(&door->mail_lock);
    while ((link = wf_list_pop_front(&fresh)))
        begin_dial(door, WF_CONTAINER(link, struct wf_dial, link));
    pthread_mutex_lock(&door->mail_lock);
    while ((link = wf_list_pop_front(&door->wishes))) {
        struct wf_dial *dial = WF_CONTAINER(link, struct wf_dial, wish_link);
        dial->status = dial->wish;
        wf_alarm_again(&door->dial_times, &dial->visit, 0);
    }
    pthread_mutex_unlock(&door->mail_lock);
}

static void take_answers(struct wf_door *door)
{
    struct wf_dial *dial;
    while ((dial = wf_lookup_answered(door->lookup))) {
        if (dial->status.code == 0)
            name_addresses(dial);
        wf_alarm_again(&door->dial_times, &dial->visit, 0);
    }
}

/* Has the dial failed, or its session left JOINING? `some_up`: a channel of the session is up. */
static bool is_settled(struct wf_dial *dial, bool *some_up)
{
    *some_up = false;
    if (dial->status.code < 0 || !dial->session)
        return dial->status.code < 0;
    wf_session_lock(dial->session);
    enum wf_session_state state = dial->session->guard.state;
    *some_up = dial->session->lines.up_count > 0;
    if (state == WF_SESSION_FAILED || state == WF_SESSION_DEAD)
        dial->status = dial->session->guard.error;
    wf_session_unlock(dial->session);
    return state != WF_SESSION_JOINING;
}

/* Fails channels without an answer: after share_ns if another channel has been up for a while, and at the deadline. */
static void leave_out(struct wf_dial *dial, bool some_up, int64_t now)
{
    if (some_up && dial->up_ns == 0)
        dial->up_ns = now;
    if (now >= dial->deadline_ns)
        wf_talks_time_out(dial, now);
    else if (some_up && now - dial->up_ns >= dial->share_ns / LOOKS)
        wf_talks_time_out(dial, now - dial->share_ns);
}

/* Is the dial over? Looks at its session and its deadline. */
static bool dial_is_over(struct wf_dial *dial, int64_t now)
{
    bool some_up;
    if (is_settled(dial, &some_up))
        return true;
    leave_out(dial, some_up, now);
    if (is_settled(dial, &some_up))
        return true;
    if (now < dial->deadline_ns)
        return false;
    WF_REACHED_IF(dial->session, "session JOINING: deadline");
    if (dial->missed_count > 0)
        dial->status = dial->missed;
    else
        wf_fail(&dial->status, -ETIMEDOUT,
                "no answer from %s before the deadline%s%s; is the other node's server running?", dial->text,
                dial->last_error ? ": " : "", dial->last_error ? wf_strerror(dial->last_error) : "");
    if (dial->name)
        wf_fail(&dial->status, -ETIMEDOUT,
                "cannot resolve '%.100s' before the deadline: does this machine reach its name servers?", dial->name);
    return true;
}

/* Visits a dial that is not over; returns when to come again. */
static int64_t visit_dial(struct wf_door *door, struct wf_dial *dial, int64_t now)
{
    if (dial->name)
        return dial->deadline_ns;
    if (!dial->session && !dial->talking && now >= dial->retry_ns) {
        dial->retry_ns = now + WF_DOOR_RETRY_NS;
        wf_talk_control(dial, door);
    }
    int64_t due = dial->deadline_ns;
    if (!dial->session && !dial->talking && dial->retry_ns < due)
        due = dial->retry_ns;
    if (dial->share_ns > 0 && now + dial->share_ns / LOOKS < due)
        due = now + dial->share_ns / LOOKS;
    return dial->status.code < 0 ? now : due;
}

/* Visits the dials whose time has come. */
static void tick_dials(struct wf_door *door, int64_t now)
{
    struct wf_visit *next;
    while ((next = wf_alarm_next(&door->dial_times, now))) {
        struct wf_dial *dial = WF_CONTAINER(next, struct wf_dial, visit);
        if (dial_is_over(dial, now)) {
            finish_dial(door, dial);
            continue;
        }
        int64_t due = visit_dial(door, dial, now);
        wf_alarm_again(&door->dial_times, next, due > now ? due : now + 1); /* others come first */
    }
}

/* --- sessions --- */

/* Offers an accepted session that came up to weft_accept(); drops one that ended before it was offered. */
static void announce(struct wf_sessions *sessions, struct wf_session *session)
{
    if (session->terms.dialer || session->user.announced)
        return;
    wf_session_lock(session);
    enum wf_session_state state = session->guard.state;
    wf_session_unlock(session);
    if (state == WF_SESSION_JOINING)
        return;
    wf_user_announce(&session->user);
    if (state == WF_SESSION_UP)
        wf_sessions_offer(sessions, session);
    else
        wf_session_release(session);
}

/* Drops a session that is DEAD before weft_accept() has taken it. world.lock held. */
static void give_up_unclaimed(struct wf_session *session)
{
    if (!wf_user_is_awaited(&session->user))
        return;
    wf_session_lock(session);
    bool dead = session->guard.state == WF_SESSION_DEAD;
    if (dead)
        wf_user_withdraw(&session->user);
    wf_session_unlock(session);
    if (dead)
        wf_session_release(session);
}

/* Visits a session; returns when to come again. world.lock held. */
static int64_t visit(struct wf_door *door, struct wf_session *session, int64_t now)
{
    int64_t due = wf_session_tick(session, now), redial = wf_redial_tick(door, session, now);
    return redial < due ? redial : due;
}

/* Visits the sessions whose time has come. */
static void tick_sessions(struct wf_door *door, int64_t now)
{
    struct wf_sessions *sessions = door->sessions;
    struct wf_alarm *alarm = &sessions->world->alarm;
    struct wf_visit *next;
    /* Payload streams: closed without the lock, which others want while drivers take their time. */
    struct wf_list spent;
    if (now < atomic_load(&alarm->due_ns))
        return;
    wf_list_init(&spent);
    pthread_mutex_lock(&sessions->world->lock);
    while ((next = wf_alarm_next(alarm, now))) {
        if (next == &sessions->lobby.guard.visit) {
            wf_alarm_again(alarm, next, wf_lobby_tick(&sessions->lobby, now));
            continue;
        }
        struct wf_session *session = WF_CONTAINER(next, struct wf_session, guard.visit);
        if (session->visited_too)
            wf_alarm_again(&door->dial_times, session->visited_too, 0);
        announce(sessions, session);
        give_up_unclaimed(session);
        bool over = wf_session_is_over(session); /* from then on nothing joins: the last streams are taken, too */
        wf_payloads_take_spent(&session->lines, &spent);
        if (over) {
            WF_REACHED("session DEAD: last handle and request gone");
            wf_talks_forget(door, session);
            wf_session_destroy(session);
            wf_redial_pass_on(door);
        } else {
            int64_t due = visit(door, session, now);
            wf_alarm_again(alarm, next, due > now ? due : now + 1); /* others come first */
        }
    }
    pthread_mutex_unlock(&sessions->world->lock);
    wf_payloads_close(&spent);
}

/* --- driving --- */

int wf_door_drive(struct wf_door *door, int64_t timeout_ns)
{
    wf_door_attach_listeners(door);
    take_mail(door);
    take_answers(door);
    int64_t now = wf_world_now(door->sessions->world);
    int64_t next = wf_door_resume_accept(door, now);
    wf_talks_tick(door, now); /* a conversation that is over lets its dial try again */
    tick_dials(door, now);
    int64_t watch = wf_rail_watch_tick(&door->watch, now);
    wf_door_follow_rails(door);
    tick_sessions(door, now);
    int64_t talks = wf_talks_tick(door, now); /* with those that dials and sessions have just begun, or waited for */
    int64_t look = atomic_load(&door->sessions->world->alarm.due_ns), dials = atomic_load(&door->dial_times.due_ns);
    next = dials < next ? dials : next;
    next = talks < next ? talks : next;
    next = watch < next ? watch : next;
    next = look < next ? look : next;
    int64_t wait = next == WF_NEVER ? -1 : next > now ? next - now : 0;
    if (timeout_ns >= 0 && (wait < 0 || wait > timeout_ns))
        wait = timeout_ns;
    struct wf_op *finished[16];
    int count = door->engine->ops->poll(door->engine, finished, 16, wait);
    for (int i = 0; i < count; i++) {
        if (finished[i]->kind == WF_OP_ACCEPT)
            wf_door_accepted(door, finished[i]);
        else if (!wf_rail_watch_step(&door->watch, finished[i]))
            wf_talk_step(finished[i]->context);
    }
    return count;
}

static void *run(void *argument)
{
    struct wf_door *door = argument;
    pthread_setname_np(pthread_self(), "weft-door");
    while (!atomic_load(&door->stopping))
        wf_door_drive(door, -1);
    return NULL;
}

int wf_door_start(struct wf_door *door, struct wf_status *status)
{
    int result = pthread_create(&door->thread, NULL, run, door);
    char remedy[160];
    if (result != 0)
        return wf_fail(status, -result, "cannot start a thread: %s; %s", wf_strerror(result),
                       wf_thread_remedy(remedy, sizeof remedy));
    door->has_thread = true;
    return 0;
}

void wf_door_stop(struct wf_door *door)
{
    if (!door->has_thread)
        return;
    atomic_store(&door->stopping, true);
    door->engine->ops->wake(door->engine);
    pthread_join(door->thread, NULL);
    door->has_thread = false;
}
