/*
 * derive.h: keys made of keys: HKDF with SHA-384. Who does not know `secret` learns nothing of `out`, and nobody learns
 * anything of `secret` from it; another `info` gives another key.
 */
#ifndef WF_WIRE_DERIVE_H
#define WF_WIRE_DERIVE_H

#include <stddef.h>

/* `info`: at most 1024 bytes. 0, or -EIO when the crypto library refuses. */
int wf_derive(const void *secret, size_t secret_bytes, const void *info, size_t info_bytes, void *out,
              size_t out_bytes);

#endif
