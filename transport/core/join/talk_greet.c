/* GREETING, on both sides: the last messages of a control conversation, if both sides know them. The dialer says its
 * own first. So both sides have the other's before a channel joins, and hand it out with the peer. */
#include <errno.h>

#include "core/join/talk_parts.h"
#include "core/session/entry.h"
#include "core/session/session.h"

void wf_talk_say_greeting(struct wf_talk *talk, bool last)
{
    struct wf_sessions *sessions = talk->door->sessions;
    struct wf_setup setup = {.type = WF_SETUP_GREETING};
    pthread_mutex_lock(&sessions->world->lock);
    setup.greeting = sessions->greeting;
    pthread_mutex_unlock(&sessions->world->lock);
    wf_talk_say(talk, &setup, last);
}

void wf_talk_take_greeting(struct wf_talk *talk, const struct wf_greeting *greeting)
{
    bool visitor = talk->role == WF_TALK_VISITOR;
    struct wf_session *session =
        visitor ? wf_talk_find_session(talk->door->sessions, talk->greets) : talk->dial->session;
    if (!session) { /* it may end while its GREETING is awaited: at its deadline, or with the context */
        wf_talk_fail(talk, -ETIMEDOUT, "said its greeting too late");
        return;
    }
    if (wf_session_take_greeting(session, greeting) < 0) {
        wf_talk_fail(talk, -ENOMEM, "no memory for a greeting");
        return;
    }
    talk->greets = 0;
    if (visitor) {
        wf_talk_say_greeting(talk, true);
    } else {
        wf_dial_begin_channels(talk->dial, talk->door);
        wf_talk_end(talk);
    }
}
