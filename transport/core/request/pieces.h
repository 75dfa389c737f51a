/*
 * pieces.h: a message's memory in many places: the list of pieces in the order of the message's bytes. One block of
 * memory holds the pieces and the description of the remote ones that travels (the upload).
 *
 * Owner: session lock. A block counts its references; blocks that are left when the session ends are freed with it.
 */
#ifndef WF_CORE_REQUEST_PIECES_H
#define WF_CORE_REQUEST_PIECES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/list.h"

/* Bytes [start, start of the next one) of the message are at `at`. */
struct wf_piece {
    uint64_t start;
    uint8_t *at;
};

/* An entry of an uploaded list, as it travels: three little-endian words. */
struct wf_entry {
    uint64_t key, offset, length;
};

#define WF_ENTRY_BYTES 24

struct wf_pieces {
    struct wf_link link; /* wf_desk.pieces */
    uint32_t references;
    uint32_t count;
    uint64_t total;  /* bytes of the message */
    uint8_t *upload; /* room for `count` entries, or NULL */
    struct wf_piece piece[];
};

/* Room for `count` pieces, and for their upload if `upload`; one reference. Not yet in any session. NULL: memory. */
struct wf_pieces *wf_pieces_create(uint32_t count, bool upload);

void wf_pieces_hold(struct wf_pieces *pieces);
/* The last one frees it. NULL is allowed. */
void wf_pieces_release(struct wf_pieces *pieces);

/* Adds bytes at the end of the message; `pieces` has room. Empty ones are left out. */
void wf_pieces_add(struct wf_pieces *pieces, uint8_t *at, uint64_t length);

/* Fills `iov` with the places of [offset, offset + length), neighbours joined; returns how many entries, and how many
 * bytes they cover in `*covered`: less than `length` where `max` entries do not suffice. */
int wf_pieces_places(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                     uint64_t *covered);

/* The bytes from `offset` that `max` entries cover, at most `length`. */
uint64_t wf_pieces_fit(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, int max);

/* Copies bytes [offset, offset + length) of the message out of its pieces, and into them, in their order. */
void wf_pieces_gather(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, void *to);
void wf_pieces_scatter(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, const void *from);

void wf_entry_encode(const struct wf_entry *entry, uint8_t bytes[WF_ENTRY_BYTES]);
void wf_entry_decode(const uint8_t bytes[WF_ENTRY_BYTES], struct wf_entry *entry);

#endif
