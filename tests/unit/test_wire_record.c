/* Records: published vectors of their cipher, and that nothing opens but the next one, whole and unchanged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "wire/crc.h"
#include "wire/derive.h"
#include "wire/record.h"
#include "wire/seal.h"

static size_t from_hex(const char *text, uint8_t *bytes)
{
    size_t count = strlen(text) / 2;
    for (size_t i = 0; i < count; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    return count;
}

static struct wf_record_key key_of(uint8_t first)
{
    struct wf_record_key key;
    for (size_t i = 0; i < sizeof(key); i++)
        ((uint8_t *)&key)[i] = (uint8_t)(first + i);
    return key;
}

static struct wf_records *records_of(const struct wf_record_key *key, bool seals, uint64_t records, uint64_t bytes)
{
    struct wf_record_limits limits = {.records = records, .bytes = bytes};
    struct wf_records *made = wf_records_create(key, seals, &limits);
    assert_non_null(made);
    return made;
}

/* Both ends of a direction, with the limits that are in force. */
struct ends {
    struct wf_records *sealer, *opener;
};

static struct ends ends_of(const struct wf_record_key *key)
{
    return (struct ends){wf_records_create(key, true, &wf_record_limits),
                         wf_records_create(key, false, &wf_record_limits)};
}

static void destroy(struct ends *ends)
{
    wf_records_destroy(ends->sealer);
    wf_records_destroy(ends->opener);
}

static void seal(struct wf_records *records, const void *bytes, size_t count, uint8_t *out)
{
    struct iovec iov = {(void *)(uintptr_t)bytes, count};
    assert_int_equal(wf_records_seal(records, &iov, count, out), 0);
}

static int open_into(struct wf_records *records, const uint8_t *record, void *bytes, size_t count)
{
    struct iovec iov = {bytes, count};
    return wf_records_open(records, record, count, &iov);
}

/* --- published vectors --- */

/* Test cases 15 and 16 of "The Galois/Counter Mode of Operation" (McGrew, Viega), by the cipher that records use, and
 * with the first record of a stream where the case has no bytes beside the encrypted ones. */
static const char vector_key[] = "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308";
static const char vector_iv[] = "cafebabefacedbaddecaf888";
static const char vector_plain[] = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                                   "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255";
static const char vector_sealed[] = "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                                    "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662898015ad";
static const char vector_tag[] = "b094dac5d93471bdec1a502270e3cc6c";
static const char vector_extra[] = "feedfacedeadbeeffeedfacedeadbeefabaddad2";
static const char vector_extra_tag[] = "76fc6ece0f4e1768cddf8853bb2d551b"; /* of the first 60 bytes, case 16 */

/* The header of a record of 64 bytes, and the tag of case 15 with it as the bytes beside, by other implementations of
 * CRC32C and GCM. */
static const char record_header[] = "400000002014c1e3";
static const char record_tag[] = "a5cd438fe7924098740bc308ada30103";

static void takes_published_vectors(void **state)
{
    (void)state;
    struct wf_record_key key;
    uint8_t plain[64], expected[64], out[64 + WF_RECORD_OVERHEAD], tag[16], extra[20], header[8];
    int ignored;
    from_hex(vector_key, key.key);
    from_hex(vector_iv, key.iv);
    from_hex(vector_plain, plain);
    from_hex(vector_sealed, expected);
    from_hex(vector_extra, extra);

    for (int with = 0; with < 2; with++) { /* the vectors as published, so that what follows rests on them */
        int count = with ? 60 : 64;
        EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
        from_hex(with ? vector_extra_tag : vector_tag, tag);
        assert_int_equal(EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key.key, key.iv), 1);
        if (with)
            assert_int_equal(EVP_EncryptUpdate(cipher, NULL, &ignored, extra, sizeof(extra)), 1);
        assert_int_equal(EVP_EncryptUpdate(cipher, out, &ignored, plain, count), 1);
        assert_memory_equal(out, expected, (size_t)count);
        assert_int_equal(EVP_EncryptFinal_ex(cipher, out + count, &ignored), 1);
        assert_int_equal(EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, 16, out), 1);
        assert_memory_equal(out, tag, 16);
        EVP_CIPHER_CTX_free(cipher);
    }

    /* The first record has number 0, so its nonce is the IV: the same encrypted bytes; the tag covers its length too.
     */
    struct wf_records *records = records_of(&key, true, 10, 1000);
    seal(records, plain, sizeof(plain), out);
    assert_int_equal(from_hex(record_header, header), WF_RECORD_HEADER);
    assert_memory_equal(out, header, WF_RECORD_HEADER);
    assert_memory_equal(out + WF_RECORD_HEADER, expected, sizeof(expected));
    assert_int_equal(from_hex(record_tag, tag), 16);
    assert_memory_equal(out + WF_RECORD_HEADER + sizeof(expected), tag, sizeof(tag));
    wf_records_destroy(records);
}

/* RFC 5869 has no vectors for SHA-384: one by another implementation of HKDF, with an empty salt. */
static void derives_as_others_do(void **state)
{
    (void)state;
    uint8_t secret[32], out[44], expected[44];
    for (size_t i = 0; i < sizeof(secret); i++)
        secret[i] = (uint8_t)i;
    assert_int_equal(wf_derive(secret, sizeof(secret), "weft", 4, out, sizeof(out)), 0);
    assert_int_equal(
        from_hex("32bc171dff2a54987273f0afef44e1502b2683847c7b0ec04f53beb29358d55136c4f14b9479c2a1fa5e10c7", expected),
        sizeof(expected));
    assert_memory_equal(out, expected, sizeof(out));
}

/* --- what goes through --- */

static void carries_every_shape(void **state)
{
    (void)state;
    static uint8_t plain[WF_RECORD_MAX], got[WF_RECORD_MAX], out[WF_RECORD_WIRE];
    static const size_t sizes[] = {1, 2, 15, 16, 17, 64, 1000, 4096, 65515, WF_RECORD_MAX};
    struct wf_record_key key = key_of(1);
    struct ends ends = ends_of(&key);
    for (size_t i = 0; i < sizeof(plain); i++)
        plain[i] = (uint8_t)(i * 7 + i / 251);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        size_t size = sizes[i], first = size / 3, second = size / 2 - first;
        struct iovec from[] = {{plain, first}, {NULL, 0}, {plain + first, second}, {plain + first + second, 70000}};
        struct iovec to[] = {{got, second}, {got + second, 1}, {NULL, 0}, {got + second + 1, size}};
        memset(got, 0, sizeof(got));
        assert_int_equal(wf_records_seal(ends.sealer, from, size, out), 0);
        assert_int_equal(wf_record_length(out), size);
        assert_int_equal(wf_records_open(ends.opener, out, size, to), 0);
        assert_memory_equal(got, plain, size);
        assert_int_equal(wf_records_seal(ends.sealer, from, size, out), 0); /* and in place */
        assert_int_equal(open_into(ends.opener, out, out + WF_RECORD_HEADER, size), 0);
        assert_memory_equal(out + WF_RECORD_HEADER, plain, size);
    }
    struct iovec iov = {plain, sizeof(plain)};
    assert_int_equal(wf_records_seal(ends.sealer, &iov, 0, out), -EINVAL);
    assert_int_equal(wf_records_seal(ends.sealer, &iov, WF_RECORD_MAX + 1, out), -EINVAL);
    destroy(&ends);
}

/* The same bytes twice are two different records. */
static void never_repeats_itself(void **state)
{
    (void)state;
    struct wf_record_key key = key_of(9);
    struct ends ends = ends_of(&key);
    uint8_t plain[32] = {0}, one[sizeof(plain) + WF_RECORD_OVERHEAD], two[sizeof(one)];
    seal(ends.sealer, plain, sizeof(plain), one);
    seal(ends.sealer, plain, sizeof(plain), two);
    assert_memory_not_equal(one + WF_RECORD_HEADER, two + WF_RECORD_HEADER, sizeof(plain));
    assert_memory_not_equal(one + WF_RECORD_HEADER, two + WF_RECORD_HEADER, 16);
    destroy(&ends);
}

/* --- what does not --- */

enum { SIZE = 100, WIRE = SIZE + WF_RECORD_OVERHEAD, RECORDS = 4 };

/* Some records of one direction. */
static void make(const struct wf_record_key *key, uint8_t made[RECORDS][WIRE])
{
    uint8_t plain[SIZE];
    struct ends ends = ends_of(key);
    for (int i = 0; i < RECORDS; i++) {
        memset(plain, i + 1, sizeof(plain));
        seal(ends.sealer, plain, sizeof(plain), made[i]);
    }
    destroy(&ends);
}

static void refuses_any_changed_bit(void **state)
{
    (void)state;
    struct wf_record_key key = key_of(2);
    uint8_t made[RECORDS][WIRE], got[WF_RECORD_MAX];
    make(&key, made);
    for (size_t at = 0; at < WIRE; at++) {
        for (int bit = 0; bit < 8; bit++) {
            struct ends ends = ends_of(&key);
            uint8_t changed[WF_RECORD_WIRE] = {0};
            memcpy(changed, made[0], WIRE);
            changed[at] ^= (uint8_t)(1 << bit);
            /* Nobody waits for another number of bytes than was sent. */
            assert_int_equal(wf_record_length(changed), at < WF_RECORD_HEADER ? -EBADMSG : SIZE);
            assert_int_equal(open_into(ends.opener, changed, got, SIZE), -EBADMSG);
            /* And for good: the record as it was is refused as well. */
            assert_int_equal(open_into(ends.opener, made[0], got, SIZE), -EBADMSG);
            destroy(&ends);
        }
    }
}

static void refuses_other_orders(void **state)
{
    (void)state;
    struct wf_record_key key = key_of(3);
    uint8_t made[RECORDS][WIRE], got[SIZE];
    static const int orders[][2] = {{1, -1}, {0, 0}, {0, 2}, {3, -1}}; /* the last of each is not the next one */
    make(&key, made);
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++) {
        struct ends ends = ends_of(&key);
        int wrong = orders[i][1] < 0 ? orders[i][0] : orders[i][1];
        if (orders[i][1] >= 0)
            assert_int_equal(open_into(ends.opener, made[orders[i][0]], got, SIZE), 0);
        assert_int_equal(open_into(ends.opener, made[wrong], got, SIZE), -EBADMSG);
        destroy(&ends);
    }
}

/* The header of a record of so many bytes. */
static void put_header(uint32_t bytes, uint8_t header[WF_RECORD_HEADER])
{
    uint8_t length[] = {(uint8_t)bytes, (uint8_t)(bytes >> 8), (uint8_t)(bytes >> 16), (uint8_t)(bytes >> 24)};
    uint32_t check = wf_crc32c(0, length, sizeof(length));
    memcpy(header, length, sizeof(length));
    for (int k = 0; k < 4; k++)
        header[4 + k] = (uint8_t)(check >> 8 * k);
}

static void refuses_what_is_cut(void **state)
{
    (void)state;
    struct wf_record_key key = key_of(4);
    uint8_t made[RECORDS][WIRE], got[SIZE];
    make(&key, made);
    for (size_t size = 1; size < SIZE; size++) { /* the reader is told of fewer bytes, by whoever cut it */
        struct ends ends = ends_of(&key);
        uint8_t cut[WIRE];
        memcpy(cut, made[0], WIRE);
        assert_int_equal(open_into(ends.opener, cut, got, size), -EBADMSG); /* the header tells of more */
        destroy(&ends);
        ends = ends_of(&key);
        put_header((uint32_t)size, cut); /* by somebody who knows CRCs, but not the key */
        assert_int_equal(wf_record_length(cut), (int)size);
        assert_int_equal(open_into(ends.opener, cut, got, size), -EBADMSG);
        destroy(&ends);
    }
}

static void refuses_lengths_that_are_none(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, WF_RECORD_MAX + 1, 0x80000000u, UINT32_MAX};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        uint8_t header[WF_RECORD_HEADER];
        put_header(lengths[i], header);
        assert_int_equal(wf_record_length(header), -EBADMSG);
    }
}

/* --- keys --- */

static struct wf_join sample_join(void)
{
    struct wf_join join = {.session = 77, .channel = 3, .incarnation = 5, .channels = 9, .kind = WF_CHANNEL_BULK};
    memset(join.nonce, 0x21, sizeof(join.nonce));
    return join;
}

/* A record of one channel, incarnation, direction or join is none of any other. */
static void refuses_what_is_of_elsewhere(void **state)
{
    (void)state;
    uint8_t secret[WF_SECRET_BYTES] = {1, 2, 3}, made[RECORDS][WIRE], got[SIZE];
    struct wf_join join = sample_join();
    struct wf_challenge challenge = {.nonce = {4}, .granted_frames = 64, .granted_bytes = 1 << 20};
    struct wf_record_key key;
    assert_int_equal(wf_seal_key(secret, WF_ROLE_DIALER, &join, &challenge, &key), 0);
    make(&key, made);
    for (int what = 0; what <= 10; what++) {
        struct wf_join other = join;
        struct wf_challenge answer = challenge;
        uint8_t other_secret[WF_SECRET_BYTES];
        memcpy(other_secret, secret, sizeof(secret));
        other.channel += what == 1;
        other.incarnation += what == 2;
        other.session += what == 3;
        other.rail = what == 4;
        other.nonce[15] ^= what == 5;
        answer.nonce[15] ^= what == 6;
        other_secret[31] ^= what == 7;
        enum wf_role role = what == 8 ? WF_ROLE_ACCEPTOR : WF_ROLE_DIALER;
        answer.granted_frames += what == 9;
        answer.granted_bytes += what == 10;
        assert_int_equal(wf_seal_key(other_secret, role, &other, &answer, &key), 0);
        struct ends ends = ends_of(&key);
        assert_int_equal(open_into(ends.opener, made[0], got, SIZE), what == 0 ? 0 : -EBADMSG);
        destroy(&ends);
    }
}

/* After so many records, and after so many bytes, at both ends at once. */
static void changes_keys_in_time(void **state)
{
    (void)state;
    struct wf_record_key key = key_of(5);
    uint8_t plain[SIZE] = {0}, got[SIZE], first[WIRE], out[WIRE];
    static const struct wf_record_limits limits[] = {{3, 1 << 20}, {1000, 3 * SIZE}, {1000, 3 * SIZE + SIZE / 2}};
    for (size_t which = 0; which < sizeof(limits) / sizeof(*limits); which++) {
        struct wf_records *sealer = wf_records_create(&key, true, &limits[which]);
        struct wf_records *opener = wf_records_create(&key, false, &limits[which]);
        struct wf_records *late = wf_records_create(&key, false, &wf_record_limits);
        for (int i = 0; i < 20; i++) {
            seal(sealer, plain, sizeof(plain), out);
            if (i == 0)
                memcpy(first, out, sizeof(first));
            assert_int_equal(open_into(opener, out, got, SIZE), 0);
            /* The fourth is under another key: who does not change it can read no more, and number 0 is new. */
            assert_int_equal(open_into(late, out, got, SIZE), i < 3 ? 0 : -EBADMSG);
            if (i == 3)
                assert_memory_not_equal(first + WF_RECORD_HEADER, out + WF_RECORD_HEADER, SIZE);
        }
        wf_records_destroy(sealer);
        wf_records_destroy(opener);
        wf_records_destroy(late);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_published_vectors),      cmocka_unit_test(derives_as_others_do),
        cmocka_unit_test(carries_every_shape),          cmocka_unit_test(never_repeats_itself),
        cmocka_unit_test(refuses_any_changed_bit),      cmocka_unit_test(refuses_other_orders),
        cmocka_unit_test(refuses_what_is_cut),          cmocka_unit_test(refuses_lengths_that_are_none),
        cmocka_unit_test(refuses_what_is_of_elsewhere), cmocka_unit_test(changes_keys_in_time),
    };
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
