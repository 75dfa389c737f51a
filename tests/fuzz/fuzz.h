/*
 * fuzz.h: what every target has: one function that takes any bytes and returns, and a name for what it has found. A
 * target keeps nothing from one input to the next, so that each finding is a file that shows it again.
 *
 * With clang the function is driven by libFuzzer; in every other build replay.c gives it the files of the corpus.
 */
#ifndef WEFT_TESTS_FUZZ_FUZZ_H
#define WEFT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 0: go on. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What has to hold whatever the input: libFuzzer and CTest both take an abort for a finding. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* The input as text: up to its first null byte, on the heap with nothing behind its end, for the sanitizer to see who
 * reads on. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = strndup(size ? (const char *)data : "", size);
    FUZZ_CHECK(text);
    return text;
}

#endif
