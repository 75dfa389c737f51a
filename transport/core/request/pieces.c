#include "core/request/pieces.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

struct wf_pieces *wf_pieces_create(uint32_t count, bool upload)
{
    size_t places = sizeof(struct wf_pieces) + (size_t)count * sizeof(struct wf_piece);
    struct wf_pieces *pieces = malloc(places + (upload ? (size_t)count * WF_ENTRY_BYTES : 0));
    if (!pieces)
        return NULL;
    wf_link_init(&pieces->link);
    pieces->references = 1;
    pieces->count = 0;
    pieces->total = 0;
    pieces->upload = upload ? (uint8_t *)pieces + places : NULL;
    return pieces;
}

void wf_pieces_hold(struct wf_pieces *pieces)
{
    pieces->references += 1;
}

void wf_pieces_release(struct wf_pieces *pieces)
{
    if (!pieces || --pieces->references > 0)
        return;
    wf_link_remove(&pieces->link);
    free(pieces);
}

void wf_pieces_add(struct wf_pieces *pieces, uint8_t *at, uint64_t length)
{
    if (length == 0)
        return;
    pieces->piece[pieces->count++] = (struct wf_piece){pieces->total, at};
    pieces->total += length;
}

static uint64_t end_of(const struct wf_pieces *pieces, uint32_t index)
{
    return index + 1 < pieces->count ? pieces->piece[index + 1].start : pieces->total;
}

/* The piece that holds byte `offset` of the message. */
static uint32_t piece_at(const struct wf_pieces *pieces, uint64_t offset)
{
    uint32_t low = 0, high = pieces->count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (pieces->piece[middle].start <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Goes through the places of [offset, offset + length), at most `max`; writes them where `iov` is given. */
static int walk(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                uint64_t *covered)
{
    const uint8_t *previous_end = NULL;
    int count = 0;
    *covered = 0;
    if (length == 0)
        return 0;
    for (uint32_t index = piece_at(pieces, offset); *covered < length; index++) {
        uint64_t at = offset + *covered;
        uint8_t *place = pieces->piece[index].at + (at - pieces->piece[index].start);
        uint64_t bytes = end_of(pieces, index) - at;
        if (bytes > length - *covered)
            bytes = length - *covered;
        bool joined = place == previous_end;
        if (!joined && count == max)
            break;
        if (iov && joined)
            iov[count - 1].iov_len += bytes;
        else if (iov)
            iov[count] = (struct iovec){place, bytes};
        count += !joined;
        previous_end = place + bytes;
        *covered += bytes;
    }
    return count;
}

int wf_pieces_places(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, struct iovec *iov, int max,
                     uint64_t *covered)
{
    return walk(pieces, offset, length, iov, max, covered);
}

uint64_t wf_pieces_fit(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, int max)
{
    uint64_t covered;
    walk(pieces, offset, length, NULL, max, &covered);
    return covered;
}

/* The part of piece `index` within [at, at + length): its place, and how many bytes. */
static uint8_t *part(const struct wf_pieces *pieces, uint32_t index, uint64_t at, uint64_t length, size_t *bytes)
{
    uint64_t left = end_of(pieces, index) - at;
    *bytes = (size_t)(left < length ? left : length);
    return pieces->piece[index].at + (at - pieces->piece[index].start);
}

void wf_pieces_gather(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, void *to)
{
    size_t bytes;
    for (uint32_t index = piece_at(pieces, offset); length > 0; index++, offset += bytes, length -= bytes) {
        const uint8_t *from = part(pieces, index, offset, length, &bytes);
        memcpy(to, from, bytes);
        to = (uint8_t *)to + bytes;
    }
}

void wf_pieces_scatter(const struct wf_pieces *pieces, uint64_t offset, uint64_t length, const void *from)
{
    size_t bytes;
    for (uint32_t index = piece_at(pieces, offset); length > 0; index++, offset += bytes, length -= bytes) {
        uint8_t *to = part(pieces, index, offset, length, &bytes);
        memcpy(to, from, bytes);
        from = (const uint8_t *)from + bytes;
    }
}

void wf_entry_encode(const struct wf_entry *entry, uint8_t bytes[WF_ENTRY_BYTES])
{
    const uint64_t words[3] = {htole64(entry->key), htole64(entry->offset), htole64(entry->length)};
    memcpy(bytes, words, sizeof words);
}

void wf_entry_decode(const uint8_t bytes[WF_ENTRY_BYTES], struct wf_entry *entry)
{
    uint64_t words[3];
    memcpy(words, bytes, sizeof words);
    *entry = (struct wf_entry){le64toh(words[0]), le64toh(words[1]), le64toh(words[2])};
}
