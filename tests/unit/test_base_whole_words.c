/* Tests of base/whole_words.h: what a copy that keeps words whole leaves, for every start, end and alignment. That no
 * store ends within a word is not tested: memcpy() passes, too, for its stores are nanoseconds apart. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/whole_words.h"

#define MOST 40
#define BESIDE 0xa5

static void copy_one(size_t to, size_t from, size_t bytes)
{
    _Alignas(WF_WORD_BYTES) uint8_t out[MOST + 2 * WF_WORD_BYTES], in[MOST + WF_WORD_BYTES];
    memset(out, BESIDE, sizeof out);
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i + 1);
    wf_copy_whole_words(out + to, in + from, bytes);
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], i >= to && i < to + bytes ? in[i - to + from] : BESIDE);
}

static void test_all_bytes_and_no_others(void **state)
{
    (void)state;
    for (size_t to = 0; to < WF_WORD_BYTES; to++)
        for (size_t from = 0; from < WF_WORD_BYTES; from++)
            for (size_t bytes = 0; bytes <= MOST; bytes++)
                copy_one(to, from, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_bytes_and_no_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
