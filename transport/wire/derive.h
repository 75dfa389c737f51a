/*
 * derive.h: keys made of keys: HKDF with SHA-384. `out` cannot be guessed without `secret`, and says nothing about
 * `secret`; another `info` gives another key.
 */
#ifndef WF_WIRE_DERIVE_H
#define WF_WIRE_DERIVE_H

#include <stddef.h>

/* `info`: at most 1024 bytes. 0, or -EIO when the crypto library refuses. */
int wf_derive(const void *secret, size_t secret_bytes, const void *info, size_t info_bytes, void *out,
              size_t out_bytes);

#endif
