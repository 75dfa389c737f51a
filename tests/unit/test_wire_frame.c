/* The 64 bytes of a frame: their layout, and what decoding must refuse. Argument: the seed. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/crc.h"
#include "wire/frame.h"

static uint64_t seed = 20240613;

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Makes the header CRC hold again after a change of the bytes before it. */
static void reseal(uint8_t bytes[WF_FRAME_BYTES])
{
    uint32_t crc = wf_crc32c(0, bytes, 60);

    for (int i = 0; i < 4; i++)
        bytes[60 + i] = (uint8_t)(crc >> 8 * i);
}

/* Decodes, and sees to it that a refusal leaves the frame alone. */
static int decode(const uint8_t bytes[WF_FRAME_BYTES], struct wf_frame *frame)
{
    uint8_t *exact = malloc(WF_FRAME_BYTES);
    struct wf_frame before;

    assert_non_null(exact);
    memcpy(exact, bytes, WF_FRAME_BYTES);
    memset(frame, 0xa5, sizeof(*frame));
    memset(&before, 0xa5, sizeof(before));
    int rc = wf_frame_decode(exact, frame);
    free(exact);
    if (rc)
        assert_memory_equal(frame, &before, sizeof(before));
    return rc;
}

static int pass(const struct wf_frame *frame)
{
    uint8_t bytes[WF_FRAME_BYTES];
    struct wf_frame seen;

    wf_frame_encode(frame, bytes);
    return decode(bytes, &seen);
}

static void assert_same(const struct wf_frame *a, const struct wf_frame *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->data_off, b->data_off);
    assert_int_equal(a->conn, b->conn);
    assert_true(a->msg == b->msg);
    assert_true(a->offset == b->offset);
    assert_true(a->total == b->total);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->payload_crc, b->payload_crc);
    assert_true(a->key == b->key);
    assert_true(a->base == b->base);
    assert_int_equal(a->ack, b->ack);
}

/* A valid frame of any type with distinct bytes in all fields that the type leaves free. */
static struct wf_frame sample(uint8_t type)
{
    struct wf_frame frame = {
        .type = type,
        .data_off = WF_FRAME_BYTES,
        .conn = 0x14131211,
        .msg = UINT64_C(0x2827262524232221),
        .offset = UINT64_C(0x3837363534333231),
        .total = UINT64_C(0x4847464544434241),
        .payload_crc = 0x54535251,
        .key = UINT64_C(0x6867666564636261),
        .base = UINT64_C(0x7877767574737271),
        .ack = 0x84838281,
    };

    if (type == WF_DATA) {
        frame.flags = WF_FLAG_TAGGED | WF_FLAG_CRC;
        frame.data_off = 0x0201;
        frame.length = 0x00929190;
    }
    return frame;
}

static const uint8_t types[] = {WF_DATA,   WF_OFFER, WF_GRANT, WF_READ,   WF_REFUSE, WF_OPEN, WF_OPENED, WF_CLOSE,
                                WF_CLOSED, WF_DOWN,  WF_STATE, WF_CREDIT, WF_PING,   WF_PONG, WF_BYE,    WF_TRIAL};
#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

/* The layout is the contract with every other build of the library: written out byte by byte. */
static void layout(void **state)
{
    static const uint8_t expected[60] = {
        1,    0x21, 0x01, 0x02, 0x11, 0x12, 0x13, 0x14, /* type, flags, data_off, conn */
        0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, /* msg */
        0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, /* offset */
        0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, /* total */
        0x90, 0x91, 0x92, 0x00, 0x51, 0x52, 0x53, 0x54, /* length, payload_crc */
        0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, /* key */
        0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, /* base */
        0x81, 0x82, 0x83, 0x84,                         /* ack */
    };
    struct wf_frame frame = sample(WF_DATA), seen;
    uint8_t bytes[WF_FRAME_BYTES + 1], sealed[WF_FRAME_BYTES];

    (void)state;
    bytes[WF_FRAME_BYTES] = 0xa5;
    wf_frame_encode(&frame, bytes);
    assert_int_equal(bytes[WF_FRAME_BYTES], 0xa5);
    assert_memory_equal(bytes, expected, sizeof(expected));
    memcpy(sealed, bytes, sizeof(sealed));
    reseal(sealed);
    assert_memory_equal(bytes, sealed, sizeof(sealed));
    assert_int_equal(decode(bytes, &seen), 0);
    assert_same(&frame, &seen);
}

static void every_type_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        struct wf_frame frame = sample(types[i]), seen;
        uint8_t bytes[WF_FRAME_BYTES];
        wf_frame_encode(&frame, bytes);
        assert_int_equal(decode(bytes, &seen), 0);
        assert_same(&frame, &seen);
        assert_int_equal(wf_frame_sequenced(types[i]), types[i] < 16);
    }
}

static void unknown_types(void **state)
{
    static const char *const names[256] = {
        [1] = "DATA",   [2] = "OFFER", [3] = "GRANT",  [4] = "READ",   [5] = "REFUSE", [6] = "OPEN",
        [7] = "OPENED", [8] = "CLOSE", [9] = "CLOSED", [10] = "DOWN",  [16] = "STATE", [17] = "CREDIT",
        [18] = "PING",  [19] = "PONG", [20] = "BYE",   [21] = "TRIAL",
    };

    (void)state;
    for (int type = 0; type < 256; type++) {
        struct wf_frame frame = {.type = (uint8_t)type, .data_off = WF_FRAME_BYTES};
        assert_int_equal(pass(&frame), names[type] ? 0 : -EPROTO);
        assert_string_equal(wf_frame_name((uint8_t)type), names[type] ? names[type] : "?");
        assert_true(names[type] || !wf_frame_sequenced((uint8_t)type));
    }
}

/* Said again here, not taken from the code under test. */
static int flags_allowed(uint8_t type, int flags)
{
    int peer = flags & WF_FLAG_PEER, rest = flags & ~(WF_FLAG_PEER | WF_FLAG_RESENT);

    switch (type) {
    case WF_DATA:
        if (flags & WF_FLAG_READ_REPLY)
            return !(flags & WF_FLAG_WRITE);
        return !peer;
    case WF_OFFER:
        return !peer && (rest & ~(WF_FLAG_TAGGED | WF_FLAG_NOTIFY | WF_FLAG_LIST)) == 0;
    case WF_READ:
        return (rest & ~(WF_FLAG_NOTIFY | WF_FLAG_LIST)) == 0;
    case WF_GRANT:
    case WF_REFUSE:
        return rest == 0;
    default:
        return type < 16 ? (flags & ~WF_FLAG_RESENT) == 0 : flags == 0;
    }
}

static void all_flags_of_all_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        for (int flags = 0; flags < 256; flags++) {
            struct wf_frame frame = sample(types[i]);
            frame.flags = (uint8_t)flags;
            if (pass(&frame) != (flags_allowed(types[i], flags) ? 0 : -EPROTO))
                fail_msg("%s with flags %#x", wf_frame_name(types[i]), flags);
        }
    }
}

static void all_data_offsets(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        for (unsigned data_off = 0; data_off <= UINT16_MAX; data_off += data_off < 5000 ? 1 : 61) {
            struct wf_frame frame = sample(types[i]);
            int good = types[i] == WF_DATA ? data_off >= 64 && data_off <= 4096 : data_off == 64;
            frame.data_off = (uint16_t)data_off;
            if (pass(&frame) != (good ? 0 : -EPROTO))
                fail_msg("%s with data_off %u", wf_frame_name(types[i]), data_off);
        }
    }
}

static void no_payload_without_data(void **state)
{
    static const uint32_t lengths[] = {1, 64, 0x80000000, UINT32_MAX};

    (void)state;
    for (size_t i = 1; i < TYPE_COUNT; i++) {
        for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
            struct wf_frame frame = sample(types[i]);
            frame.total = UINT64_MAX;
            frame.offset = 0;
            frame.length = lengths[k];
            assert_int_equal(pass(&frame), -EPROTO);
        }
    }
}

static void data_within_its_message(void **state)
{
    static const struct {
        uint64_t offset, total;
        uint32_t length;
        int rc;
    } cases[] = {
        {0, 0, 0, 0}, /* the empty message */
        {0, 1, 1, 0},
        {0, 0, 1, -EPROTO},
        {1, 0, 0, -EPROTO},
        {10, 20, 10, 0},
        {10, 20, 11, -EPROTO},
        {20, 20, 0, 0},
        {20, 20, 1, -EPROTO},
        {21, 20, 0, -EPROTO},
        {0, UINT32_MAX, UINT32_MAX, 0},
        {1, UINT32_MAX, UINT32_MAX, -EPROTO},
        {UINT64_MAX - 5, UINT64_MAX, 5, 0},
        {UINT64_MAX - 5, UINT64_MAX, 6, -EPROTO}, /* offset + length is 0 in 64 bits */
        {UINT64_MAX - 5, UINT64_MAX, UINT32_MAX, -EPROTO},
        {UINT64_MAX, UINT64_MAX, 0, 0},
        {UINT64_MAX, UINT64_MAX, 1, -EPROTO},
        {UINT64_MAX, 100, 50, -EPROTO}, /* wraps into the message */
        {UINT64_MAX - 9, 100, 20, -EPROTO},
        {UINT64_C(0x100000000), 0xffffffff, 0, -EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wf_frame frame = {.type = WF_DATA,
                                 .data_off = WF_FRAME_BYTES,
                                 .conn = 1,
                                 .msg = 1,
                                 .offset = cases[i].offset,
                                 .total = cases[i].total,
                                 .length = cases[i].length};
        if (pass(&frame) != cases[i].rc)
            fail_msg("case %zu", i);
    }
}

static void flip(uint8_t *bytes, unsigned bit)
{
    bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        struct wf_frame frame = sample(types[i]), seen;
        uint8_t bytes[WF_FRAME_BYTES];
        wf_frame_encode(&frame, bytes);
        for (unsigned bit = 0; bit < 8 * WF_FRAME_BYTES; bit++) {
            flip(bytes, bit);
            assert_int_equal(decode(bytes, &seen), -EBADMSG);
            flip(bytes, bit);
        }
        assert_int_equal(decode(bytes, &seen), 0);
    }
}

static void every_two_flipped_bits_are_noticed(void **state)
{
    struct wf_frame frame = sample(WF_DATA), seen;
    uint8_t bytes[WF_FRAME_BYTES];

    (void)state;
    wf_frame_encode(&frame, bytes);
    for (unsigned first = 0; first < 8 * WF_FRAME_BYTES; first++) {
        flip(bytes, first);
        for (unsigned second = 0; second < first; second++) {
            flip(bytes, second);
            assert_int_equal(wf_frame_decode(bytes, &seen), -EBADMSG);
            flip(bytes, second);
        }
        flip(bytes, first);
    }
}

static void all_zeros_and_all_ones(void **state)
{
    uint8_t bytes[WF_FRAME_BYTES] = {0};
    struct wf_frame seen;

    (void)state;
    assert_int_equal(decode(bytes, &seen), -EBADMSG);
    reseal(bytes);
    assert_int_equal(decode(bytes, &seen), -EPROTO);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(decode(bytes, &seen), -EBADMSG);
    reseal(bytes);
    assert_int_equal(decode(bytes, &seen), -EPROTO);
}

/* A hostile peer computes CRCs too. What passes must say the same when it is encoded again. */
static void random_headers_with_a_good_crc(void **state)
{
    uint64_t random = seed;
    int passed = 0;

    (void)state;
    print_message("  seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 200000; i++) {
        struct wf_frame base = sample(types[draw(&random) % TYPE_COUNT]), seen;
        uint8_t bytes[WF_FRAME_BYTES], again[WF_FRAME_BYTES];
        wf_frame_encode(&base, bytes);
        for (uint64_t changes = draw(&random) % 4; changes > 0; changes--)
            bytes[draw(&random) % 60] = (uint8_t)draw(&random);
        reseal(bytes);
        int rc = wf_frame_decode(bytes, &seen);
        assert_true(rc == 0 || rc == -EPROTO);
        if (rc)
            continue;
        passed++;
        assert_true(seen.type == WF_DATA || seen.length == 0);
        assert_true(seen.type != WF_DATA ||
                    (seen.offset + seen.length >= seen.offset && seen.offset + seen.length <= seen.total));
        wf_frame_encode(&seen, again);
        assert_memory_equal(bytes, again, sizeof(bytes));
    }
    assert_in_range(passed, 1000, 199000);
}

static void channel_keys(void **state)
{
    (void)state;
    assert_true(wf_channel_key(0, 0) == 0);
    assert_true(wf_channel_key(1, 2) == UINT64_C(0x100000002));
    assert_true(wf_channel_key(UINT32_MAX, UINT32_MAX) == UINT64_MAX);
    assert_true(wf_channel_key(0, UINT32_MAX) == UINT32_MAX);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(unknown_types),
        cmocka_unit_test(all_flags_of_all_types),
        cmocka_unit_test(all_data_offsets),
        cmocka_unit_test(no_payload_without_data),
        cmocka_unit_test(data_within_its_message),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(every_two_flipped_bits_are_noticed),
        cmocka_unit_test(all_zeros_and_all_ones),
        cmocka_unit_test(random_headers_with_a_good_crc),
        cmocka_unit_test(channel_keys),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
