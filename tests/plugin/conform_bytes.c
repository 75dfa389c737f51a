/* conform_bytes.c: the bytes of a message follow from a number. */
#include <string.h>

#include "conform.h"

void fill(void *data, size_t size, uint64_t key)
{
    unsigned char *to = data;
    uint64_t word = mix(key, size);
    for (size_t at = 0; at < size; at += sizeof word, word = word * UINT64_C(6364136223846793005) + key)
        memcpy(to + at, &word, size - at < sizeof word ? size - at : sizeof word);
}

int64_t wrong(const void *data, size_t size, uint64_t key)
{
    const unsigned char *from = data;
    uint64_t word = mix(key, size);
    for (size_t at = 0; at < size; at += sizeof word, word = word * UINT64_C(6364136223846793005) + key) {
        size_t length = size - at < sizeof word ? size - at : sizeof word;
        if (memcmp(from + at, &word, length)) {
            const unsigned char *right = (const unsigned char *)&word;
            for (size_t i = 0; i < length; i++) {
                if (from[at + i] != right[i])
                    return (int64_t)(at + i);
            }
        }
    }
    return -1;
}
