#include "wire/crc.h"

#include <isa-l.h>
#include <string.h>

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

#ifdef __x86_64__

/* ISA-L is made for more bytes: its start takes longer than the whole of this. */
__attribute__((target("sse4.2"))) static uint32_t sum_header(const uint8_t *at)
{
    uint64_t state = UINT32_MAX, word;
    uint32_t last;

#pragma GCC unroll 7
    for (int i = 0; i < WF_CRC_HEADER / 8; i++) {
        memcpy(&word, at + 8 * i, sizeof(word));
        state = __builtin_ia32_crc32di(state, word);
    }
    memcpy(&last, at + WF_CRC_HEADER / 8 * 8, sizeof(last));
    return ~__builtin_ia32_crc32si((uint32_t)state, last);
}

uint32_t wf_crc32c_header(const void *bytes)
{
    return __builtin_cpu_supports("sse4.2") ? sum_header(bytes) : wf_crc32c(0, bytes, WF_CRC_HEADER);
}

#else

uint32_t wf_crc32c_header(const void *bytes)
{
    return wf_crc32c(0, bytes, WF_CRC_HEADER);
}

#endif
