#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ground/reached.h"
#include "core/join/redial.h"
#include "core/join/talk_parts.h"
#include "core/rail/address.h"
#include "core/session/entry.h"
#include "core/session/loss.h"
#include "core/session/session.h"
#include "io/engine_seal.h"
#include "wire/handshake.h"
#include "wire/seal.h"

#define REMEDY "set key_file to the same key on both"
#define CLOSED_UNHEARD_LEAST 16        /* attempts of one dial, */
#define UNHEARD_NS (5 * WF_NS_PER_S)   /* and for so long, at least */
#define PATIENCE_NS (10 * WF_NS_PER_S) /* for a conversation, if connect_timeout is not less; not for a redial */

const struct wf_engine_ops *wf_talk_ops_of(const struct wf_talk *talk)
{
    return talk->door->sessions->world->engine_ops;
}

/* --- the mechanics: post, read exactly, end --- */

void wf_talk_post(struct wf_talk *talk, enum wf_op_kind kind)
{
    talk->op.kind = kind;
    talk->op.fd = talk->fd;
    talk->op.iov = &talk->iov;
    talk->op.iov_count = 1;
    talk->op.context = talk;
    talk->op.address = &talk->peer;
    talk->door->engine->ops->post(talk->door->engine, &talk->op);
}

static void read_more(struct wf_talk *talk)
{
    if (talk->tls) {
        wf_talk_cover_go_on(talk);
        return;
    }
    talk->state = WF_TALK_READING;
    talk->iov = (struct iovec){talk->bytes + talk->have, talk->need - talk->have};
    wf_talk_post(talk, WF_OP_RECV);
}

void wf_talk_read_message(struct wf_talk *talk)
{
    talk->have = 0;
    talk->need = WF_SETUP_PREFIX;
    read_more(talk);
}

void wf_talk_serve(struct wf_talk *talk, struct wf_dial *dial)
{
    talk->dial = dial;
    wf_list_push_back(&dial->talks, &talk->dial_link);
}

void wf_talk_by(struct wf_talk *talk, int64_t deadline_ns)
{
    talk->deadline_ns = deadline_ns;
    wf_alarm_again(&talk->door->talk_times, &talk->visit, deadline_ns);
}

/* The door looks at the conversation, and at its dial, in this round or the next. */
static void look_at(struct wf_talk *talk)
{
    wf_alarm_again(&talk->door->talk_times, &talk->visit, 0);
    if (talk->dial)
        wf_alarm_again(&talk->door->dial_times, &talk->dial->visit, 0);
}

void wf_talk_end(struct wf_talk *talk)
{
    talk->state = WF_TALK_OVER;
    wf_link_remove(&talk->wait_link);
    look_at(talk);
    if (talk->op.posted)
        talk->door->engine->ops->cancel(talk->door->engine, &talk->op);
}

/* A full acceptor closes the connection of its oldest visitor without DENY. So a dial whose connection was closed
 * before a byte came tries again. It gives up after CLOSED_UNHEARD_LEAST times and UNHEARD_NS: another program may have
 * the port. A busy machine needs a while to serve a crowd of hundreds, and its callers soon have tried that often. */
static bool may_try_again(struct wf_talk *talk, int code)
{
    bool shown_out = talk->dial && !talk->heard && (code == -ECONNRESET || code == -EPIPE);
    int64_t now = wf_world_now(talk->door->sessions->world);
    if (!shown_out)
        return false;
    if (talk->dial->closed_unheard == 0)
        talk->dial->unheard_ns = now;
    if (talk->dial->closed_unheard >= CLOSED_UNHEARD_LEAST && now - talk->dial->unheard_ns >= UNHEARD_NS)
        return false;
    talk->dial->closed_unheard += 1;
    talk->dial->last_error = code;
    return true;
}

/* wf_talk_fail() with the `reason` of the peer's DENY; 0: there was none. */
static void fail(struct wf_talk *talk, int code, int reason, const char *format, va_list arguments)
{
    struct wf_status status = {.code = code};
    if (may_try_again(talk, code)) {
        if (talk->role == WF_TALK_CHANNEL)
            wf_dial_channel(talk->dial, talk->door, talk->join);
        wf_talk_end(talk);
        return;
    }
    vsnprintf(status.text, sizeof status.text, format, arguments);
    if (talk->role == WF_TALK_REDIAL && talk->session)
        wf_redial_failed(talk, code, reason, status.text);
    else if (talk->dial && talk->role == WF_TALK_CHANNEL)
        wf_talk_missed(talk, &status);
    else if (talk->dial)
        wf_fail(&talk->dial->status, code, "%s: %s", talk->peer_text, status.text);
    else if (!talk->denied) /* DENY was logged: if it cannot be sent, the log gets no second line */
        wf_log_limited(&talk->door->sessions->world->log, &talk->door->stranger_log,
                       wf_world_now(talk->door->sessions->world), WF_LOG_WARN, "refused %s: %s", talk->peer_text,
                       status.text);
    wf_talk_end(talk);
}

void wf_talk_fail(struct wf_talk *talk, int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(talk, code, 0, format, arguments);
    va_end(arguments);
}

static void fail_denied(struct wf_talk *talk, int reason, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(talk, reason == WF_DENY_KEY ? -EACCES : -ECONNREFUSED, reason, format, arguments);
    va_end(arguments);
}

void wf_talk_say(struct wf_talk *talk, const struct wf_setup *setup, bool last)
{
    int length = wf_setup_encode(setup, talk->bytes, sizeof talk->bytes);
    if (length < 0) {
        wf_talk_fail(talk, length, "a set-up message does not fit: %s", wf_strerror(length));
        return;
    }
    talk->answered = last;
    if (talk->tls) {
        wf_talk_cover_say(talk, (size_t)length);
        return;
    }
    talk->state = WF_TALK_SENDING;
    talk->iov = (struct iovec){talk->bytes, (size_t)length};
    wf_talk_post(talk, WF_OP_SEND);
}

void wf_talk_deny(struct wf_talk *talk, enum wf_deny_reason reason, const char *format, ...)
{
    struct wf_setup setup = {.type = WF_SETUP_DENY, .deny = {.reason = (uint16_t)reason}};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(setup.deny.text, sizeof setup.deny.text, format, arguments);
    va_end(arguments);
    wf_log_limited(&talk->door->sessions->world->log, &talk->door->stranger_log,
                   wf_world_now(talk->door->sessions->world), WF_LOG_WARN, "refused %s: %s", talk->peer_text,
                   setup.deny.text);
    talk->denied = true;
    if (talk->session) /* if this fails, DENY goes out without a proof */
        (void)wf_seal_prove_refusal(talk->session->secret, &talk->join, setup.deny.reason, setup.deny.proof);
    wf_talk_say(talk, &setup, true);
}

struct wf_talk *wf_talk_create(struct wf_door *door, enum wf_talk_role role, int fd)
{
    struct wf_talk *talk = calloc(1, sizeof *talk);
    int result = talk ? wf_alarm_enter(&door->talk_times, &talk->visit) : -ENOMEM;
    if (result == 0)
        result = door->engine->ops->attach(door->engine, fd);
    if (result < 0) {
        if (talk)
            wf_alarm_leave(&door->talk_times, &talk->visit);
        free(talk);
        door->sessions->world->engine_ops->close_fd(door->sessions->world->engine_host, fd);
        return NULL;
    }
    talk->door = door;
    talk->role = role;
    talk->fd = fd;
    int64_t patience = door->sessions->world->tuning.connect_timeout_ns;
    talk->begun_ns = wf_world_now(door->sessions->world);
    wf_talk_by(talk, talk->begun_ns + (patience < PATIENCE_NS ? patience : PATIENCE_NS));
    wf_link_init(&talk->op.link);
    wf_link_init(&talk->dial_link);
    wf_link_init(&talk->wait_link);
    wf_list_push_back(&door->talks, &talk->link);
    return talk;
}

/* If this context encrypts, gives the engine a key for each direction of the socket: frames come next. */
static int protect(const struct wf_talk *talk, int fd)
{
    bool visited = talk->role == WF_TALK_VISITOR;
    struct wf_record_key keys[2]; /* to send, to receive */
    const struct wf_challenge *challenge = &talk->challenge;
    const uint8_t *secret = talk->session->secret;
    if (!talk->door->seal)
        return 0;
    int result = wf_seal_key(secret, visited ? WF_ROLE_ACCEPTOR : WF_ROLE_DIALER, &talk->join, challenge, &keys[0]);
    if (result == 0)
        result = wf_seal_key(secret, visited ? WF_ROLE_DIALER : WF_ROLE_ACCEPTOR, &talk->join, challenge, &keys[1]);
    if (result == 0)
        result = wf_seal_protect(talk->door->seal, fd, &keys[0], &keys[1]);
    explicit_bzero(keys, sizeof keys);
    return result;
}

/* The socket is the payload stream of a channel that joins next. */
static void park(struct wf_talk *talk, int fd)
{
    struct wf_status status = {0};
    int result = wf_session_park(talk->session, &talk->join, fd, &status);
    talk->parked = result == 0;
    if (talk->parked)
        return;
    wf_talk_ops_of(talk)->close_fd(talk->door->sessions->world->engine_host, fd);
    wf_talk_fail(talk, result, "no payload stream: %s", status.text);
}

/* Gives the socket to a channel. The door's engine lets go first: from wf_session_join() on, a worker may use it. */
static void hand_over(struct wf_talk *talk)
{
    struct wf_session *session = talk->session;
    WF_REACHED("channel PROVING: both proofs good");
    talk->handed_over = true;
    wf_talk_end(talk);
    talk->door->engine->ops->detach(talk->door->engine, talk->fd);
    int fd = talk->fd;
    talk->fd = -1;
    if (talk->role == WF_TALK_VISITOR && talk->join.kind != WF_CHANNEL_PAYLOAD)
        wf_talk_note_rail(talk, fd);
    if (talk->join.kind == WF_CHANNEL_PAYLOAD) {
        park(talk, fd);
        return;
    }
    int result = protect(talk, fd);
    if (result == 0)
        result = wf_session_join(session, &talk->join, talk->granted_frames, talk->granted_bytes, fd);
    if (result < 0) {
        wf_talk_ops_of(talk)->close_fd(talk->door->sessions->world->engine_host, fd);
        wf_talk_fail(talk, result, "a channel could not be joined: %s", wf_strerror(result));
    }
    wf_guard_visit(&session->guard, 0);
}

void wf_talk_try_to_hand_over(struct wf_talk *talk)
{
    int result = talk->join.kind == WF_CHANNEL_PAYLOAD ? wf_session_may_park(talk->session)
                                                       : wf_session_may_join(talk->session, &talk->join);
    if (result == 0)
        hand_over(talk);
    else if (result == -EAGAIN && !wf_link_in_list(&talk->wait_link))
        wf_list_push_back(&talk->door->talks_wait, &talk->wait_link);
    if (result == -EAGAIN)
        talk->state = WF_TALK_WAITING; /* the older incarnation sets the door's alarm when it has let go */
    else if (result < 0)
        wf_talk_fail(talk, result, "a channel could not be joined: %s", wf_strerror(result));
}

void wf_talk_hand_over(struct wf_talk *talk, uint64_t frames, uint64_t bytes)
{
    talk->granted_frames = frames;
    talk->granted_bytes = bytes;
    wf_talk_try_to_hand_over(talk);
}

/* --- steps --- */

/* Has the peer proved its DENY? WF_DENY_SESSION needs no proof: a peer without the session has no secret for one. */
static bool is_proven(const struct wf_talk *talk, const struct wf_deny *deny_message)
{
    uint8_t expected[WF_PROOF_BYTES];
    return deny_message->reason == WF_DENY_SESSION ||
           (wf_seal_prove_refusal(talk->session->secret, &talk->join, deny_message->reason, expected) == 0 &&
            wf_seal_equal(expected, deny_message->proof));
}

/* DENY of a redial can retire a rail or end the session. So it needs a proof: anybody on the way can send one. */
static void take_deny(struct wf_talk *talk, const struct wf_deny *deny_message)
{
    if (talk->role == WF_TALK_REDIAL && !is_proven(talk, deny_message)) {
        wf_talk_fail(talk, -EACCES, "refused us (%s), and did not prove that it belongs to the session",
                     wf_deny_name(deny_message->reason));
        return;
    }
    if (deny_message->reason == WF_DENY_PORT && talk->role == WF_TALK_REDIAL && talk->join.kind == WF_CHANNEL_PAYLOAD) {
        wf_redial_sent_on(talk, deny_message->port);
        return;
    }
    WF_REACHED_IF(talk->role == WF_TALK_CHANNEL, "session JOINING: DENY");
    WF_REACHED_IF(talk->role != WF_TALK_CONTROL, "channel PROVING: DENY");
    fail_denied(talk, deny_message->reason, "refused us (%s): %s", wf_deny_name(deny_message->reason),
                deny_message->text);
}

static bool is_channel(const struct wf_talk *talk)
{
    return talk->role == WF_TALK_CHANNEL || talk->role == WF_TALK_REDIAL;
}

/* A whole message is in `talk->bytes`. */
static void take(struct wf_talk *talk)
{
    struct wf_setup setup;
    int result = wf_setup_decode(talk->bytes, talk->need, &setup);
    if (result < 0) {
        wf_talk_fail(talk, result, "a set-up message that makes no sense (%s)", wf_strerror(result));
        return;
    }
    bool visitor = talk->role == WF_TALK_VISITOR;
    bool bare = talk->door->key && !talk->tls && setup.type == WF_SETUP_HELLO;
    if (bare && visitor)
        wf_talk_deny(talk, WF_DENY_KEY, "the listening side has a key, the dialling side none: " REMEDY);
    else if (bare)
        wf_talk_fail(talk, -EACCES, "answers without a key, which this side has: " REMEDY);
    else if (talk->greets && setup.type == WF_SETUP_GREETING)
        wf_talk_take_greeting(talk, &setup.greeting);
    else if (visitor && setup.type == WF_SETUP_HELLO && !talk->session && !talk->greets)
        wf_talk_take_hello(talk, &setup.hello);
    else if (visitor && setup.type == WF_SETUP_JOIN && !talk->session && !talk->greets && !talk->tls)
        wf_talk_take_join(talk, &setup.join);
    else if (visitor && setup.type == WF_SETUP_PROOF && talk->session)
        wf_talk_take_proof(talk, &setup.proof);
    else if (talk->role == WF_TALK_CONTROL && setup.type == WF_SETUP_HELLO && !talk->greets)
        wf_talk_take_hello_answer(talk, &setup.hello);
    else if (is_channel(talk) && setup.type == WF_SETUP_CHALLENGE)
        wf_talk_take_challenge(talk, &setup.challenge);
    else if (!visitor && setup.type == WF_SETUP_DENY)
        take_deny(talk, &setup.deny);
    else
        wf_talk_fail(talk, -EPROTO, "a set-up message out of order");
}

/* The peer has not begun as a weft peer does. Its first bytes tell a person what it is: "HTTP/1.1", "SSH-2.0-". */
static void fail_stranger(struct wf_talk *talk, int code)
{
    char first[WF_SETUP_PREFIX + 1] = "";
    for (int i = 0; i < WF_SETUP_PREFIX; i++)
        first[i] = talk->bytes[i] >= ' ' && talk->bytes[i] < 0x7f ? (char)talk->bytes[i] : '.';
    if (code == -EPROTONOSUPPORT)
        wf_talk_fail(talk, code, "another version of the protocol");
    else if (talk->role == WF_TALK_CONTROL)
        wf_talk_fail(talk, code, "is that a weft server? What it says begins with '%s'", first);
    else
        wf_talk_fail(talk, code, "not a weft peer: what it says begins with '%s'", first);
}

static void step_read(struct wf_talk *talk)
{
    int64_t result = talk->op.result;
    if (result <= 0) {
        WF_REACHED_IF(talk->session, "channel PROVING: the stream ends");
        wf_talk_fail(talk, result < 0 ? (int)result : -ECONNRESET,
                     "closed the connection before the set-up was complete%s%s%s", result < 0 ? ": " : "",
                     result < 0 ? wf_strerror((int)result) : "",
                     talk->role == WF_TALK_CONTROL ? "; is that a weft server?" : "");
        return;
    }
    talk->heard = true;
    if (talk->tls) {
        wf_talk_cover_take(talk, (size_t)result);
        return;
    }
    talk->have += (uint32_t)result;
    wf_talk_read_on(talk);
}

void wf_talk_read_on(struct wf_talk *talk)
{
    if (talk->have < talk->need) {
        read_more(talk);
        return;
    }
    if (talk->foreign) {
        wf_talk_deny(talk, WF_DENY_KEY, "the dialling side has a key, the listening side none: " REMEDY);
        return;
    }
    if (talk->need > WF_SETUP_PREFIX) {
        take(talk);
        return;
    }
    int length = wf_setup_length(talk->bytes);
    bool tls = talk->role == WF_TALK_VISITOR && !talk->session && talk->bytes[0] == WF_HANDSHAKE_HELLO;
    if (length < 0 && tls && !talk->tls) {
        wf_talk_take_tls(talk);
        return;
    }
    if (length < 0) {
        fail_stranger(talk, length);
        return;
    }
    talk->need = (uint32_t)length;
    read_more(talk);
}

static void step_sent(struct wf_talk *talk)
{
    if (talk->op.result < 0)
        wf_talk_fail(talk, (int)talk->op.result, "%s", wf_strerror((int)talk->op.result));
    else if (talk->tls)
        wf_talk_cover_go_on(talk);
    else if (is_channel(talk) && talk->answered)
        wf_talk_hand_over(talk, talk->challenge.granted_frames, talk->challenge.granted_bytes);
    else if (talk->answered)
        wf_talk_end(talk);
    else
        wf_talk_read_message(talk);
}

void wf_talk_cannot_reach(struct wf_talk *talk, int code, const char *why)
{
    const struct wf_session_rail *rail = &talk->session->lines.rails[talk->join.rail];
    char from[80];
    wf_address_text(&rail->from, false, from, sizeof from);
    /* of a dial: wf_talk_missed() adds the peer's address */
    wf_talk_fail(talk, code, "rail %s (%s) cannot reach it: %s; see to the route, or leave it out (setting rails)",
                 rail->name, from, why);
}

static void step_connected(struct wf_talk *talk)
{
    int result = (int)talk->op.result;
    if (result == 0 && talk->role == WF_TALK_CONTROL && talk->door->key) {
        wf_talk_cover_start(talk);
    } else if (result == 0 && talk->role == WF_TALK_CONTROL) {
        wf_talk_say_hello(talk);
    } else if (result == 0 && talk->mute) {
        wf_talk_join_mutely(talk);
    } else if (result == 0) {
        WF_REACHED("channel DIALING: connected");
        wf_talk_say_join(talk);
    } else if (talk->role == WF_TALK_CONTROL) { /* no connection yet: the dial tries again */
        talk->dial->last_error = result;
        wf_talk_end(talk);
    } else {
        WF_REACHED("channel DIALING: nobody answers");
        wf_talk_cannot_reach(talk, result, wf_strerror(result));
    }
}

void wf_talk_step(struct wf_talk *talk)
{
    switch (talk->state) {
    case WF_TALK_CONNECTING:
        step_connected(talk);
        break;
    case WF_TALK_SENDING:
        step_sent(talk);
        break;
    case WF_TALK_READING:
        step_read(talk);
        break;
    case WF_TALK_MUTE:
    case WF_TALK_WAITING:
        break;
    case WF_TALK_OVER: /* the cancelled operation has come back */
        look_at(talk);
        break;
    }
}
