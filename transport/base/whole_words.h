/*
 * whole_words.h: how bytes come into memory that someone looks at meanwhile. NCCL's kernels do: they take 8 bytes for
 * there as soon as the flag in their second half is (docs/decisions/0048-whole-words.md). So of an aligned word no
 * later byte may be seen before an earlier one.
 */
#ifndef WF_BASE_WHOLE_WORDS_H
#define WF_BASE_WHOLE_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WF_WORD_BYTES 8

/* Two pieces of a message meet at a multiple of this: they come in any order. It is the longest line of NCCL's that one
 * flag stands for. */
#define WF_LINE_BYTES 128

/* Less than a word, the first byte first. */
static inline void wf_copy_bytes(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        __atomic_store_n(&to[i], from[i], __ATOMIC_RELEASE);
}

/* memcpy() that leaves words of `to` whole. Alone it writes ragged ends by stores that overlap, the last one first.
 * Where it begins and ends at a word, no store of it ends within one. */
static inline void wf_copy_whole_words(void *to, const void *from, size_t bytes)
{
    uint8_t *out = to;
    const uint8_t *in = from;
    size_t head = -(uintptr_t)out % WF_WORD_BYTES;
    head = head < bytes ? head : bytes;
    size_t words = (bytes - head) / WF_WORD_BYTES * WF_WORD_BYTES;
    wf_copy_bytes(out, in, head);
    memcpy(out + head, in + head, words);
    wf_copy_bytes(out + head + words, in + head + words, bytes - head - words);
}

#endif
