/*
 * record.h: encrypted bytes in one direction of one incarnation of a channel, as records of AES-256-GCM:
 *
 *   length u32 (of the encrypted bytes) | CRC32C u32 (of the length) | encrypted bytes | tag of 16 bytes
 *
 * The tag also covers length and CRC. The CRC detects a length that was damaged on the way, before the receiver waits
 * for that many bytes; the tag detects a length that was changed on purpose. The nonce is the direction's IV xor the
 * number of the record, which is not sent. So a record that is changed, left out, repeated, moved or taken from another
 * stream does not open, and no later record opens. After wf_record_limits both sides derive the next key and IV from
 * the present ones, at the same record.
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
/* The most bytes in one record: four records hold a chunk of 512 KiB and its header (decisions/0013-encryption.md). */
#define WF_RECORD_MAX (128 * 1024 + 128)
#define WF_RECORD_WIRE (WF_RECORD_MAX + WF_RECORD_OVERHEAD) /* bytes of the longest record as sent */

struct wf_record_key {
    uint8_t key[WF_RECORD_KEY_BYTES];
    uint8_t iv[WF_RECORD_IV_BYTES];
};

/* The most records and bytes under one key. */
struct wf_record_limits {
    uint64_t records, bytes;
};

/* 2^24 records and 2^36 bytes: far below the limit of AES-GCM. */
extern const struct wf_record_limits wf_record_limits;

/* One direction, at one end. Owner: one thread at a time. */
struct wf_records;

/* `seals` true: this end encrypts; false: it decrypts. `limits` must be equal at both ends. NULL: there is no memory,
 * or the crypto library fails. */
struct wf_records *wf_records_create(const struct wf_record_key *key, bool seals,
                                     const struct wf_record_limits *limits);
/* Wipes the keys. NULL is fine. */
void wf_records_destroy(struct wf_records *records);

/* Encrypts the first `bytes` bytes of `iov` (1 to WF_RECORD_MAX) as the next record, at `out`: `bytes` +
 * WF_RECORD_OVERHEAD bytes. Every call makes a new record: the caller keeps the record until it has been sent. 0;
 * -EINVAL: the length; -EOVERFLOW: all record numbers are used; -EIO. */
int wf_records_seal(struct wf_records *records, const struct iovec *iov, size_t bytes, uint8_t *out);

/* Bytes in the record with this header; -EBADMSG: it is not a header. Not trusted before wf_records_open(). */
int wf_record_length(const uint8_t header[WF_RECORD_HEADER]);

/* Decrypts the whole record at `record` into `iov`, which has room for `bytes` (from the header), or in place at
 * record + WF_RECORD_HEADER. -EBADMSG: it is not the next record of this direction; the bytes in `iov` mean nothing,
 * and all later calls fail. -EOVERFLOW, -EIO as above. */
int wf_records_open(struct wf_records *records, const uint8_t *record, size_t bytes, const struct iovec *iov);

#endif
