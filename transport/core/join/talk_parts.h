/*
 * talk_parts.h: functions shared by the sources behind talk.h: the mechanics of one conversation (talk.c), the
 * deadlines and ends of all (talks.c), TLS around them (talk_tls.c), each side's answer to a message that was read
 * (talk_dial.c, talk_answer.c), and what both sides do alike after HELLO (talk_greet.c). No other source includes it.
 */
#ifndef WF_CORE_JOIN_TALK_PARTS_H
#define WF_CORE_JOIN_TALK_PARTS_H

#include "core/join/talk.h"

/* --- mechanics --- */

/* Takes over `fd`. NULL: no memory, or the engine does not take it; `fd` is closed. */
struct wf_talk *wf_talk_create(struct wf_door *door, enum wf_talk_role role, int fd);
void wf_talk_post(struct wf_talk *talk, enum wf_op_kind kind);
/* The conversation is for this dial. */
void wf_talk_serve(struct wf_talk *talk, struct wf_dial *dial);
/* It fails at `deadline_ns`. */
void wf_talk_by(struct wf_talk *talk, int64_t deadline_ns);
/* Starts to read the next message. */
void wf_talk_read_message(struct wf_talk *talk);
/* Bytes of the message have come: takes the message if it is complete, else reads the rest. */
void wf_talk_read_on(struct wf_talk *talk);
/* Sends a message. `last`: no answer is expected; behind PROOF a channel takes the socket, behind any other message the
 * conversation ends. */
void wf_talk_say(struct wf_talk *talk, const struct wf_setup *setup, bool last);
/* Ends the conversation with an error. VISITOR: a line in the log. CONTROL: the dial fails. CHANNEL: the channel is
 * missed. REDIAL: wf_redial_failed(). */
void wf_talk_fail(struct wf_talk *talk, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sends DENY with the reason, and ends. */
void wf_talk_deny(struct wf_talk *talk, enum wf_deny_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The conversation is over: cancels its operation. wf_talks_tick() destroys it once the operation has come back. */
void wf_talk_end(struct wf_talk *talk);
/* The peer has proved itself, and PROOF has been sent or has come: a channel takes the socket, as soon as an older
 * incarnation has let go of its own. `frames`, `bytes`: the peer's credit. */
void wf_talk_hand_over(struct wf_talk *talk, uint64_t frames, uint64_t bytes);
/* The same, once more, for a conversation in WF_TALK_WAITING. */
void wf_talk_try_to_hand_over(struct wf_talk *talk);
/* CHANNEL, REDIAL: the connect has failed or timed out. The text names this side's rail and its address. */
void wf_talk_cannot_reach(struct wf_talk *talk, int code, const char *why);
const struct wf_engine_ops *wf_talk_ops_of(const struct wf_talk *talk);

/* --- with a key --- */

#define WF_SESSION_LABEL "EXPORTER-weft-session" /* of the session's secret; its context is the session's number */

/* Dialer: starts TLS, and says HELLO once TLS has proved that the peer holds the key. */
void wf_talk_cover_start(struct wf_talk *talk);
/* Acceptor: the first bytes are TLS. With a key, starts TLS; without one, reads the record to its end, then denies. */
void wf_talk_take_tls(struct wf_talk *talk);
/* `length` bytes have come into the buffer of `tls`. */
void wf_talk_cover_take(struct wf_talk *talk, size_t length);
/* The next step under TLS: takes a complete message, sends what TLS has to send, or reads on. */
void wf_talk_cover_go_on(struct wf_talk *talk);
/* Encrypts and sends the first `length` bytes of `talk->bytes`. */
void wf_talk_cover_say(struct wf_talk *talk, size_t length);
void wf_talk_tls_end(struct wf_talk *talk);
/* Derives the session's secret from TLS: its channels prove that they know it. 0 or a negative errno. */
int wf_talk_secret(struct wf_talk *talk, uint64_t session, uint8_t secret[WF_SECRET_BYTES]);

/* --- dialling side --- */
void wf_talk_say_hello(struct wf_talk *talk);
void wf_talk_say_join(struct wf_talk *talk);
void wf_talk_take_hello_answer(struct wf_talk *talk, const struct wf_hello *hello);
/* The control conversation is complete: dials the session's channels. */
void wf_dial_begin_channels(struct wf_dial *dial, struct wf_door *door);
/* Dials a channel that the dial needs. */
void wf_dial_channel(struct wf_dial *dial, struct wf_door *door, struct wf_join join);
/* The conversation about a channel that the dial needs has failed. */
void wf_talk_missed(struct wf_talk *talk, const struct wf_status *why);
/* The payload stream is connected, at the port for it. */
void wf_talk_join_mutely(struct wf_talk *talk);
void wf_talk_take_challenge(struct wf_talk *talk, const struct wf_challenge *challenge);

/* --- after HELLO, on either side --- */
/* Sends the GREETING of this side. `last`: the conversation ends with it. */
void wf_talk_say_greeting(struct wf_talk *talk, bool last);
void wf_talk_take_greeting(struct wf_talk *talk, const struct wf_greeting *greeting);

/* --- accepting side --- */
/* The session with this number that a peer has dialled, in any state; NULL: there is none. */
struct wf_session *wf_talk_find_session(struct wf_sessions *sessions, uint64_t id);
/* Notes which rail of this side the peer has dialled, and from which address. */
void wf_talk_note_rail(struct wf_talk *talk, int fd);
void wf_talk_take_hello(struct wf_talk *talk, const struct wf_hello *hello);
void wf_talk_take_join(struct wf_talk *talk, const struct wf_join *join);
void wf_talk_take_proof(struct wf_talk *talk, const struct wf_proof *proof);

#endif
