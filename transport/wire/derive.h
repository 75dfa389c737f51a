/*
 * derive.h: makes keys from a key: HKDF with SHA-384. Without `secret` nobody can guess `out`, and `out` does not
 * reveal `secret`. A different `info` gives a different key.
 */
#ifndef WF_WIRE_DERIVE_H
#define WF_WIRE_DERIVE_H

#include <stddef.h>

/* `info_bytes`: at most 1024. 0, or -EIO when the crypto library fails. */
int wf_derive(const void *secret, size_t secret_bytes, const void *info, size_t info_bytes, void *out,
              size_t out_bytes);

#endif
