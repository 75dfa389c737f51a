/* CRC32C against published vectors, against a bit-by-bit reference, and for reads behind the end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/crc.h"

#define REFERENCE_MAX 300

struct vector {
    const char *what;
    uint8_t bytes[48];
    size_t length;
    uint32_t crc;
};

/* RFC 3720 appendix B.4, with the check value of the CRC catalogues and the empty text before it. */
static const struct vector vectors[] = {
    {"empty", {0}, 0, 0},
    {"123456789", "123456789", 9, 0xE3069283},
    {"32 zeros", {0}, 32, 0x8A9136AA},
    {"32 ones",
     {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
      0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
     32,
     0x62A8AB43},
    {"32 rising",
     {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
      16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31},
     32,
     0x46DD794E},
    {"32 falling",
     {31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16,
      15, 14, 13, 12, 11, 10, 9,  8,  7,  6,  5,  4,  3,  2,  1,  0},
     32,
     0x113FDB5C},
    {"iSCSI read command",
     {0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
      0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0},
     48,
     0xD9963A56},
};

static uint32_t reference(uint32_t crc, const uint8_t *bytes, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    }
    return ~crc;
}

static void published_vectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        const struct vector *v = &vectors[i];
        print_message("  %s\n", v->what);
        assert_int_equal(wf_crc32c(0, v->bytes, v->length), v->crc);
    }
}

static void in_two_pieces(void **state)
{
    (void)state;
    for (size_t cut = 0; cut <= 48; cut++) {
        const struct vector *v = &vectors[6];
        uint32_t crc = wf_crc32c(0, v->bytes, cut);
        assert_int_equal(wf_crc32c(crc, v->bytes + cut, v->length - cut), v->crc);
    }
}

static void fill(uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(i * 167 + (i >> 3) + 13);
}

/* A payload comes in as many pieces as receives and places make of it, and has one sum. */
static void in_pieces_of_all_sizes(void **state)
{
    static uint8_t bytes[300007];
    static const size_t steps[] = {1, 63, 64, 511, 4096, 70001};

    (void)state;
    fill(bytes, sizeof(bytes));
    uint32_t whole = reference(0, bytes, sizeof(bytes));
    assert_int_equal(wf_crc32c(0, bytes, sizeof(bytes)), whole);
    for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++) {
        uint32_t crc = 0;
        for (size_t at = 0, piece; at < sizeof(bytes); at += piece) {
            piece = steps[s] + at % 3;
            if (piece > sizeof(bytes) - at)
                piece = sizeof(bytes) - at;
            crc = wf_crc32c(crc, bytes + at, piece);
        }
        assert_int_equal(crc, whole);
    }
}

static void every_length_and_alignment(void **state)
{
    uint8_t bytes[REFERENCE_MAX + 16];

    (void)state;
    fill(bytes, sizeof(bytes));
    for (size_t start = 0; start < 16; start++) {
        for (size_t length = 0; length <= REFERENCE_MAX; length++) {
            uint32_t crc = (uint32_t)(length * 2654435761u);
            assert_int_equal(wf_crc32c(crc, bytes + start, length), reference(crc, bytes + start, length));
        }
    }
}

static void headers_have_the_same_sum(void **state)
{
    uint8_t bytes[WF_CRC_HEADER + 16];

    (void)state;
    for (unsigned salt = 0; salt < 256; salt++) {
        fill(bytes, sizeof(bytes));
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] ^= (uint8_t)salt;
        for (size_t start = 0; start < 16; start++)
            assert_int_equal(wf_crc32c_header(bytes + start), reference(0, bytes + start, WF_CRC_HEADER));
    }
}

/* The kernel's fault tells what a sanitizer cannot see in hand-written assembly. */
static void never_reads_behind_the_end(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *area = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(area != MAP_FAILED);
    fill(area, page);
    assert_int_equal(mprotect(area + page, page, PROT_NONE), 0);
    for (size_t length = 0; length <= page; length += length < 512 ? 1 : 97) {
        const uint8_t *start = area + page - length;
        assert_int_equal(wf_crc32c(0, start, length), reference(0, start, length));
    }
    const uint8_t *header = area + page - WF_CRC_HEADER;
    assert_int_equal(wf_crc32c_header(header), reference(0, header, WF_CRC_HEADER));
    munmap(area, 2 * page);
}

static void no_bytes_need_no_memory(void **state)
{
    (void)state;
    assert_int_equal(wf_crc32c(0, NULL, 0), 0);
    assert_int_equal(wf_crc32c(0x12345678, NULL, 0), 0x12345678);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),          cmocka_unit_test(in_two_pieces),
        cmocka_unit_test(in_pieces_of_all_sizes),     cmocka_unit_test(every_length_and_alignment),
        cmocka_unit_test(never_reads_behind_the_end), cmocka_unit_test(no_bytes_need_no_memory),
        cmocka_unit_test(headers_have_the_same_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
