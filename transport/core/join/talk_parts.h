/*
 * talk_parts.h: functions shared by the sources behind talk.h: the mechanics (talk.c), TLS around them (talk_tls.c),
 * and each side's answer to a message that was read (talk_dial.c, talk_answer.c). No other source includes it.
 */
#ifndef WF_CORE_JOIN_TALK_PARTS_H
#define WF_CORE_JOIN_TALK_PARTS_H

#include "core/join/talk.h"

/* --- mechanics --- */

/* Takes over `fd` (closes it on failure: NULL). */
struct wf_talk *wf_talk_create(struct wf_door *door, enum wf_talk_role role, int fd);
void wf_talk_post(struct wf_talk *talk, enum wf_op_kind kind);
/* Waits for the next message. */
void wf_talk_read_message(struct wf_talk *talk);
/* More of it is there: takes it when it is complete, else waits for the rest. */
void wf_talk_read_on(struct wf_talk *talk);
/* Sends a message; with `last` the conversation is over after it. */
void wf_talk_say(struct wf_talk *talk, const struct wf_setup *setup, bool last);
/* Ends the conversation with an error: one line in the log for a visitor; a dial of this side fails. */
void wf_talk_fail(struct wf_talk *talk, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Sends DENY with the reason, and ends. */
void wf_talk_deny(struct wf_talk *talk, enum wf_deny_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void wf_talk_end(struct wf_talk *talk);
/* The socket belongs to a channel from here on: the talk forgets it before a worker learns of it. */
void wf_talk_hand_over(struct wf_talk *talk, uint64_t frames, uint64_t bytes);
const struct wf_engine_ops *wf_talk_ops_of(const struct wf_talk *talk);

/* --- with a key --- */

#define WF_SESSION_LABEL "EXPORTER-weft-session" /* of the session's secret; its context is the session's number */

/* Dialer: begins, and says HELLO once the other side has shown that it holds the key. */
void wf_talk_cover_start(struct wf_talk *talk);
/* Acceptor: the prefix of the first message is that of TLS. */
void wf_talk_take_tls(struct wf_talk *talk);
/* `length` bytes have arrived. */
void wf_talk_cover_take(struct wf_talk *talk, size_t length);
/* Sends the bytes that TLS has to send, then reads on. */
void wf_talk_cover_go_on(struct wf_talk *talk);
/* Sends the first `length` of `bytes`. */
void wf_talk_cover_say(struct wf_talk *talk, size_t length);
void wf_talk_tls_end(struct wf_talk *talk);
/* The secret that channels of this session prove to know. */
int wf_talk_secret(struct wf_talk *talk, uint64_t session, uint8_t secret[WF_SECRET_BYTES]);

/* --- dialling side --- */
void wf_talk_say_hello(struct wf_talk *talk);
void wf_talk_say_join(struct wf_talk *talk);
void wf_talk_take_hello_answer(struct wf_talk *talk, const struct wf_hello *hello);
/* The conversation about a channel that the dial needs has failed. */
void wf_talk_missed(struct wf_talk *talk, const struct wf_status *why);
void wf_talk_take_challenge(struct wf_talk *talk, const struct wf_challenge *challenge);

/* --- accepting side --- */
void wf_talk_note_rail(struct wf_talk *talk, int fd);
void wf_talk_take_hello(struct wf_talk *talk, const struct wf_hello *hello);
void wf_talk_take_join(struct wf_talk *talk, const struct wf_join *join);
void wf_talk_take_proof(struct wf_talk *talk, const struct wf_proof *proof);

#endif
