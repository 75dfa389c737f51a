/*
 * seal.h: the proof that a channel belongs to a session: HMAC-SHA256 under the session's secret over all values that
 * the two sides must agree on. So a proof cannot be replayed (both nonces), reflected (the role), or moved to another
 * rail, channel or incarnation, and nothing in JOIN or CHALLENGE can be changed on the way. The keys of the channel's
 * records (record.h) are derived from the same values, so no key serves another channel, incarnation or direction.
 */
#ifndef WF_WIRE_SEAL_H
#define WF_WIRE_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/hello.h"
#include "wire/record.h"

enum wf_role { WF_ROLE_DIALER = 1, WF_ROLE_ACCEPTOR = 2 };

/* The proof of `role` under `secret` over `join` and `challenge`, except for `challenge->proof`. 0, or -EIO when the
 * crypto library fails. */
int wf_seal_prove(const uint8_t secret[WF_SECRET_BYTES], enum wf_role role, const struct wf_join *join,
                  const struct wf_challenge *challenge, uint8_t proof[WF_PROOF_BYTES]);

/* The proof that the acceptor of the session refuses `join` for `reason`. 0 or -EIO. */
int wf_seal_prove_refusal(const uint8_t secret[WF_SECRET_BYTES], const struct wf_join *join, uint16_t reason,
                          uint8_t proof[WF_PROOF_BYTES]);

/* The key under which `sender` sends its records on the channel of `join`. 0 or -EIO. */
int wf_seal_key(const uint8_t secret[WF_SECRET_BYTES], enum wf_role sender, const struct wf_join *join,
                const struct wf_challenge *challenge, struct wf_record_key *key);

/* Compares in constant time. */
bool wf_seal_equal(const uint8_t a[WF_PROOF_BYTES], const uint8_t b[WF_PROOF_BYTES]);

#endif
