/*
 * handshake.h: two sides that hold the same key prove it to each other. TLS 1.3 with that key as external PSK and with
 * ephemeral keys (psk_dhe_ke), as bytes in and bytes out: no socket, no clock, no thread.
 *
 *   done  =>  the other side holds the key, plays the other role, and has answered to bytes made for this conversation
 *
 * There is one cipher suite, and no certificate, ticket, resumption, early data or older version. In plain TLS a server
 * with a certificate but without the key can complete a handshake. Here it fails, for two reasons: no certificate is
 * trusted, and a TLS session without the key is refused.
 *
 * A stranger can make a conversation hold a limited amount only: it takes WF_HANDSHAKE_MAX bytes and fails with the
 * next byte, refuses a first message that announces 4 KiB or more, and uses about 64 KiB of memory.
 *
 * Each side calls pull() after create, feed() and write(), also after a failure: the alert then reaches the other side.
 */
#ifndef WF_WIRE_HANDSHAKE_H
#define WF_WIRE_HANDSHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "wire/seal.h"

#define WF_KEY_BYTES 32
#define WF_HANDSHAKE_MAX 16384  /* bytes from the other side in one conversation */
#define WF_HANDSHAKE_PREFIX 5    /* bytes of a TLS record before its content */
#define WF_HANDSHAKE_HELLO 0x16  /* the first byte that each side sends; no set-up message begins with it */
#define WF_HANDSHAKE_ALERT 0x15  /* the first byte of a side that refuses at once */

/* A key, made ready for any number of conversations. Any thread may create and destroy conversations with it. */
struct wf_handshake_key;

int wf_handshake_key_create(const uint8_t key[WF_KEY_BYTES], struct wf_handshake_key **out, struct wf_status *status);
/* All its conversations must have been destroyed. NULL is allowed. */
void wf_handshake_key_destroy(struct wf_handshake_key *key);

/* One conversation. Owner: one thread at a time. */
struct wf_handshake;

int wf_handshake_create(const struct wf_handshake_key *key, enum wf_role role, struct wf_handshake **out);
void wf_handshake_destroy(struct wf_handshake *handshake);

/*
 * Takes bytes of the other side. 0; else `status` has a text to put behind the name of the other side: -EACCES (a
 * different key, no key, a certificate, a replay), -EPROTO (not TLS 1.3, or garbage), -EMSGSIZE (too many bytes),
 * -ENOMEM. After a failure every further call returns the same error.
 */
int wf_handshake_feed(struct wf_handshake *handshake, const void *bytes, size_t length, struct wf_status *status);

/* Moves the bytes to send to `bytes`; returns their number, 0 when there are none. */
size_t wf_handshake_pull(struct wf_handshake *handshake, void *bytes, size_t room);

bool wf_handshake_done(const struct wf_handshake *handshake);

/* Once done. Encrypts `bytes` for pull(): 0 or a negative errno. */
int wf_handshake_write(struct wf_handshake *handshake, const void *bytes, size_t length);
/* Once done. Reads bytes that the other side has written: their number, 0 when there are none yet, or as feed(). */
int wf_handshake_read(struct wf_handshake *handshake, void *bytes, size_t room, struct wf_status *status);

/* Once done. Makes a secret for use outside of TLS: equal on both sides, and in no other conversation. 0 or -EIO. */
int wf_handshake_export(struct wf_handshake *handshake, const char *label, const void *context, size_t context_length,
                        uint8_t *out, size_t length);

/* The length of the TLS record that starts with `prefix`; -EPROTO: not TLS, or longer than `most`. */
int wf_handshake_record(const uint8_t prefix[WF_HANDSHAKE_PREFIX], size_t most);

#endif
