/*
 * record.h: encrypted bytes in one direction of one incarnation of a channel, as records of AES-256-GCM:
 *
 *   length u32 (of what is encrypted) | CRC32C u32 (of the length) | encrypted bytes | tag of 16 bytes
 *
 * The tag also covers length and CRC. The CRC finds a length that was damaged on its way before the receiver waits for
 * so many bytes; the tag finds a length that was changed on purpose. A nonce is the direction's IV xor the number of
 * the record, which is not sent: a record that is changed, left out, repeated, moved or taken from anywhere else does
 * not open, and none behind it does. After wf_record_limits the next key and IV are derived from the present ones, on
 * both sides at the same record.
 */
#ifndef WF_WIRE_RECORD_H
#define WF_WIRE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define WF_RECORD_KEY_BYTES 32
#define WF_RECORD_IV_BYTES 12
#define WF_RECORD_HEADER 8 /* the length and its CRC */
#define WF_RECORD_TAG 16
#define WF_RECORD_OVERHEAD (WF_RECORD_HEADER + WF_RECORD_TAG)
/* The most bytes that one encrypts: four hold a chunk of 512 KiB and its header (docs/decisions/0013-encryption.md). */
#define WF_RECORD_MAX (128 * 1024 + 128)
#define WF_RECORD_WIRE (WF_RECORD_MAX + WF_RECORD_OVERHEAD) /* the longest record as it travels */

struct wf_record_key {
    uint8_t key[WF_RECORD_KEY_BYTES];
    uint8_t iv[WF_RECORD_IV_BYTES];
};

/* How much goes under one key. */
struct wf_record_limits {
    uint64_t records, bytes;
};

/* 2^24 records and 2^36 bytes: far below what AES-GCM bears. */
extern const struct wf_record_limits wf_record_limits;

/* One direction, at one end. Owner: one thread at a time. */
struct wf_records;

/* `seals`: this end encrypts; else it decrypts. NULL: no memory, or the crypto library refuses. `limits` must be the
 * same at both ends. */
struct wf_records *wf_records_create(const struct wf_record_key *key, bool seals,
                                     const struct wf_record_limits *limits);
/* Wipes the keys. NULL is fine. */
void wf_records_destroy(struct wf_records *records);

/* Makes the next record of the first `bytes` bytes of `iov`, 1 to WF_RECORD_MAX, at `out`: WF_RECORD_OVERHEAD more.
 * Once for given bytes: what comes of it is to be kept until it has been sent. 0, -EINVAL (length), -EOVERFLOW (no
 * number is left for it), -EIO. */
int wf_records_seal(struct wf_records *records, const struct iovec *iov, size_t bytes, uint8_t *out);

/* How many bytes the record with this header holds; -EBADMSG: it is none. Not to be believed before it has opened. */
int wf_record_length(const uint8_t header[WF_RECORD_HEADER]);

/* Decrypts the whole record at `record` into `iov`, which has room for `bytes` (as its header says), or in place at
 * record + WF_RECORD_HEADER. -EBADMSG: it is not the next record of this direction, what is in `iov` is worthless, and
 * so is everything from here on. -EOVERFLOW, -EIO as above. */
int wf_records_open(struct wf_records *records, const uint8_t *record, size_t bytes, const struct iovec *iov);

#endif
