#include "wire/crc.h"

#include <isa-l.h>

/* ISA-L takes the length as an int; a multiple of 64 below that keeps later pieces aligned as the first. */
#define PIECE_BYTES ((size_t)1 << 30)

uint32_t wf_crc32c(uint32_t crc, const void *bytes, size_t length)
{
    /* ISA-L neither changes the bytes (its prototype only lacks the const) nor inverts: both inversions are here. */
    unsigned char *at = (unsigned char *)bytes;
    uint32_t state = ~crc;

    while (length > 0) {
        size_t piece = length < PIECE_BYTES ? length : PIECE_BYTES;
        state = crc32_iscsi(at, (int)piece, state);
        at += piece;
        length -= piece;
    }
    return ~state;
}
