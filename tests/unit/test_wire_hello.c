/* Set-up messages: their layout, and what decoding must refuse. Argument: the seed. */
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
#include "wire/hello.h"

/* Where things lie in the messages, counted from their first byte. */
#define TYPE_AT 4
#define VERSION_AT 5
#define LENGTH_AT 6
#define OVERHEAD 12 /* prefix and CRC */
#define HELLO_BYTES(rails) (OVERHEAD + 157 + 51 * (rails))
#define JOIN_BYTES (OVERHEAD + 56)
#define CHALLENGE_BYTES (OVERHEAD + 64)
#define PROOF_BYTES (OVERHEAD + 32)
#define DENY_BYTES (OVERHEAD + 194)
#define GREETING_BYTES(length) (OVERHEAD + 2 + (length))

static uint64_t seed = 20240614;

/* splitmix64, public domain, Sebastiano Vigna. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* ------------------------------------------------------------------------------------------- samples */

static void rise(uint8_t *bytes, size_t count, unsigned first)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(first + i);
}

static struct wf_setup sample_hello(unsigned rails)
{
    struct wf_setup setup = {
        .type = WF_SETUP_HELLO,
        .hello = {.version_min = 1,
                  .version_max = 0x0201,
                  .boot_nonce = UINT64_C(0x1817161514131211),
                  .session = UINT64_C(0x2827262524232221),
                  .limits = {.chunk = 0x00040201,
                             .eager = 0x1003,
                             .first_burst = 0x10004,
                             .header_pad = 512,
                             .unsolicited = UINT64_C(0x3837363534333231),
                             .list_bytes = 0x44434241,
                             .connections = 0x54535251},
                  .name = "node-a.example",
                  .rail_count = (uint8_t)rails},
    };

    rise(setup.hello.secret, WF_SECRET_BYTES, 0x80);
    for (unsigned i = 0; i < rails; i++) {
        struct wf_wire_address *rail = &setup.hello.rails[i];
        rail->family = i % 2 ? 6 : 4;
        rise(rail->bytes, i % 2 ? 16 : 4, 10 + i);
        rail->port = (uint16_t)(0x4801 + i);
        snprintf(rail->name, sizeof(rail->name), "eth%u", i);
    }
    return setup;
}

static struct wf_setup sample_join(void)
{
    struct wf_setup setup = {
        .type = WF_SETUP_JOIN,
        .join = {.session = UINT64_C(0x1817161514131211),
                 .channel = 0x24232221,
                 .incarnation = 0x34333231,
                 .channels = 0x4241,
                 .kind = WF_CHANNEL_DEVICE,
                 .rail = 15,
                 .domain = 17,
                 .payload_port = 0x5453,
                 .granted_frames = UINT64_C(0x6867666564636261),
                 .granted_bytes = UINT64_C(0x7877767574737271)},
    };

    rise(setup.join.nonce, WF_NONCE_BYTES, 0x90);
    return setup;
}

static struct wf_setup sample_challenge(void)
{
    struct wf_setup setup = {.type = WF_SETUP_CHALLENGE, .challenge = {.granted_frames = 64, .granted_bytes = 1 << 20}};

    rise(setup.challenge.nonce, WF_NONCE_BYTES, 0x10);
    rise(setup.challenge.proof, WF_PROOF_BYTES, 0x40);
    return setup;
}

static struct wf_setup sample_proof(void)
{
    struct wf_setup setup = {.type = WF_SETUP_PROOF};

    rise(setup.proof.proof, WF_PROOF_BYTES, 0xc0);
    return setup;
}

static struct wf_setup sample_deny(void)
{
    struct wf_setup setup = {.type = WF_SETUP_DENY,
                             .deny = {.reason = WF_DENY_BUSY, .text = "as many peers as `peers` allows"}};

    rise(setup.deny.proof, WF_PROOF_BYTES, 0x60);
    return setup;
}

static struct wf_setup sample_greeting(size_t length)
{
    struct wf_setup setup = {.type = WF_SETUP_GREETING, .greeting = {.length = (uint16_t)length}};

    rise(setup.greeting.bytes, length, 0xf0);
    return setup;
}

#define SAMPLES 10

static struct wf_setup sample(int which)
{
    switch (which) {
    case 0:
        return sample_hello(0);
    case 1:
        return sample_hello(3);
    case 2:
        return sample_hello(WF_RAILS_MAX);
    case 3:
        return sample_join();
    case 4:
        return sample_challenge();
    case 5:
        return sample_proof();
    case 6:
        return sample_deny();
    case 7:
        return sample_greeting(0);
    case 8:
        return sample_greeting(5);
    default:
        return sample_greeting(WF_GREETING_MAX);
    }
}

static const size_t sample_bytes[SAMPLES] = {
    HELLO_BYTES(0), HELLO_BYTES(3), HELLO_BYTES(WF_RAILS_MAX), JOIN_BYTES,        CHALLENGE_BYTES,
    PROOF_BYTES,    DENY_BYTES,     GREETING_BYTES(0),         GREETING_BYTES(5), WF_SETUP_MAX};

/* ------------------------------------------------------------------------------------------- help */

static size_t encode(const struct wf_setup *setup, uint8_t bytes[WF_SETUP_MAX])
{
    int length = wf_setup_encode(setup, bytes, WF_SETUP_MAX);

    assert_true(length > 0);
    return (size_t)length;
}

/* Makes the length field and the CRC hold for a message of `length` bytes. */
static void reseal(uint8_t *bytes, size_t length)
{
    size_t body = length - OVERHEAD;

    bytes[LENGTH_AT] = (uint8_t)body;
    bytes[LENGTH_AT + 1] = (uint8_t)(body >> 8);
    uint32_t crc = wf_crc32c(0, bytes, length - 4);
    for (int i = 0; i < 4; i++)
        bytes[length - 4 + (size_t)i] = (uint8_t)(crc >> 8 * i);
}

/* Decodes from an allocation of exactly `length` bytes, so that a sanitizer sees any step over its end, and sees to it
 * that a refusal leaves the result alone. */
static int decode(const uint8_t *bytes, size_t length, struct wf_setup *setup)
{
    uint8_t *exact = malloc(length ? length : 1);
    struct wf_setup before;

    assert_non_null(exact);
    memcpy(exact, bytes, length);
    memset(setup, 0xa5, sizeof(*setup));
    memset(&before, 0xa5, sizeof(before));
    int rc = wf_setup_decode(exact + (length ? 0 : 1), length, setup);
    free(exact);
    if (rc)
        assert_memory_equal(setup, &before, sizeof(before));
    return rc;
}

/* Encodes with one byte changed behind the sender's back, the CRC being right. */
static int decode_with(struct wf_setup setup, size_t at, uint8_t value, struct wf_setup *seen)
{
    uint8_t bytes[WF_SETUP_MAX];
    size_t length = encode(&setup, bytes);

    bytes[at] = value;
    reseal(bytes, length);
    return decode(bytes, length, seen);
}

static int pass(const struct wf_setup *setup)
{
    uint8_t bytes[WF_SETUP_MAX];
    struct wf_setup seen;

    return decode(bytes, encode(setup, bytes), &seen);
}

/* ------------------------------------------------------------------------------------------- layout */

static void samples_come_back(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        struct wf_setup setup = sample(which), seen;
        uint8_t bytes[WF_SETUP_MAX], again[WF_SETUP_MAX];
        size_t length = encode(&setup, bytes);
        assert_int_equal(length, sample_bytes[which]);
        assert_int_equal(wf_setup_length(bytes), (int)length);
        assert_int_equal(decode(bytes, length, &seen), 0);
        assert_int_equal(seen.type, setup.type);
        assert_int_equal(encode(&seen, again), length);
        assert_memory_equal(bytes, again, length);
    }
}

static void hello_fields_come_back(void **state)
{
    struct wf_setup setup = sample_hello(5), seen;
    uint8_t bytes[WF_SETUP_MAX];
    const struct wf_hello *a = &setup.hello, *b = &seen.hello;

    (void)state;
    assert_int_equal(decode(bytes, encode(&setup, bytes), &seen), 0);
    assert_int_equal(a->version_min, b->version_min);
    assert_int_equal(a->version_max, b->version_max);
    assert_true(a->features == b->features && a->boot_nonce == b->boot_nonce && a->session == b->session);
    assert_memory_equal(a->secret, b->secret, WF_SECRET_BYTES);
    assert_memory_equal(&a->limits, &b->limits, sizeof(a->limits));
    assert_string_equal(a->name, b->name);
    assert_int_equal(b->rail_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(a->rails[i].family, b->rails[i].family);
        assert_memory_equal(a->rails[i].bytes, b->rails[i].bytes, 16);
        assert_int_equal(a->rails[i].port, b->rails[i].port);
        assert_string_equal(a->rails[i].name, b->rails[i].name);
    }
}

static void join_layout(void **state)
{
    static const uint8_t expected[JOIN_BYTES - 4] = {
        'W',  'E',  'F',  'T',  2,    1,    56,   0,    /* magic, type, version, length */
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* session */
        0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34, /* channel, incarnation */
        0x41, 0x42, 3,    15,   17,   0,    0x53, 0x54, /* channels, kind, rail, domain, payload_port */
        0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, /* nonce */
        0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, /* granted_frames */
        0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, /* granted_bytes */
    };
    struct wf_setup setup = sample_join(), seen;
    uint8_t bytes[WF_SETUP_MAX], sealed[WF_SETUP_MAX];
    size_t length = encode(&setup, bytes);

    (void)state;
    assert_memory_equal(bytes, expected, sizeof(expected));
    memcpy(sealed, bytes, length);
    reseal(sealed, length);
    assert_memory_equal(bytes, sealed, length);
    assert_int_equal(decode(bytes, length, &seen), 0);
    assert_true(seen.join.session == setup.join.session && seen.join.granted_bytes == setup.join.granted_bytes);
    assert_int_equal(seen.join.channel, setup.join.channel);
    assert_int_equal(seen.join.incarnation, setup.join.incarnation);
    assert_int_equal(seen.join.channels, setup.join.channels);
    assert_int_equal(seen.join.rail, 15);
    assert_int_equal(seen.join.domain, setup.join.domain);
    assert_int_equal(seen.join.payload_port, setup.join.payload_port);
    assert_true(seen.join.granted_frames == setup.join.granted_frames);
}

static void greeting_layout(void **state)
{
    static const uint8_t expected[GREETING_BYTES(5) - 4] = {
        'W',  'E',  'F',  'T',  6,    1, 7, 0, /* magic, type, version, length of the body */
        5,    0,                               /* length of the greeting */
        0xf0, 0xf1, 0xf2, 0xf3, 0xf4,
    };
    struct wf_setup setup = sample_greeting(5), seen;
    uint8_t bytes[WF_SETUP_MAX];
    size_t length = encode(&setup, bytes);

    (void)state;
    assert_memory_equal(bytes, expected, sizeof(expected));
    assert_int_equal(decode(bytes, length, &seen), 0);
    assert_int_equal(seen.greeting.length, 5);
    assert_memory_equal(seen.greeting.bytes, expected + 10, 5);
    setup = sample_greeting(WF_GREETING_MAX);
    assert_int_equal(encode(&setup, bytes), WF_SETUP_MAX);
    assert_int_equal(decode(bytes, WF_SETUP_MAX, &seen), 0);
    assert_int_equal(seen.greeting.length, WF_GREETING_MAX);
    assert_memory_equal(seen.greeting.bytes, setup.greeting.bytes, WF_GREETING_MAX);
}

static void encode_needs_all_its_room(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        struct wf_setup setup = sample(which);
        size_t needed = sample_bytes[which];
        for (size_t room = 0; room < needed; room++) {
            uint8_t *exact = malloc(room ? room : 1);
            assert_non_null(exact);
            assert_int_equal(wf_setup_encode(&setup, exact, room), -EMSGSIZE);
            free(exact);
        }
        uint8_t bytes[WF_SETUP_MAX];
        assert_int_equal(wf_setup_encode(&setup, bytes, needed), (int)needed);
    }
}

static void encode_refuses_nonsense(void **state)
{
    struct wf_setup setup = sample_hello(WF_RAILS_MAX);
    uint8_t bytes[WF_SETUP_MAX];

    (void)state;
    setup.hello.rail_count = WF_RAILS_MAX + 1; /* there is no such rail to read */
    assert_int_equal(wf_setup_encode(&setup, bytes, sizeof(bytes)), -EINVAL);
    setup.type = (enum wf_setup_type)0;
    assert_int_equal(wf_setup_encode(&setup, bytes, sizeof(bytes)), -EINVAL);
    setup.type = (enum wf_setup_type)7;
    assert_int_equal(wf_setup_encode(&setup, bytes, sizeof(bytes)), -EINVAL);
    setup = sample_greeting(WF_GREETING_MAX);
    setup.greeting.length += 1;
    assert_int_equal(wf_setup_encode(&setup, bytes, sizeof(bytes)), -EINVAL);
}

/* What lies behind a name or a short address in the sender's memory stays there. */
static void encode_leaks_nothing(void **state)
{
    struct wf_setup clean = sample_hello(1), dirty = clean;
    uint8_t a[WF_SETUP_MAX], b[WF_SETUP_MAX];

    (void)state;
    memset(dirty.hello.name + 15, 0x5a, WF_NAME_BYTES - 15);
    memset(dirty.hello.rails[0].name + 5, 0x5a, 27);
    memset(dirty.hello.rails[0].bytes + 4, 0x5a, 12);
    memset(&dirty.hello.rails[1], 0x5a, sizeof(dirty.hello.rails[1]));
    assert_int_equal(encode(&clean, a), encode(&dirty, b));
    assert_memory_equal(a, b, HELLO_BYTES(1));
}

static void encode_cuts_what_is_not_terminated(void **state)
{
    struct wf_setup setup = sample_deny(), seen;
    uint8_t bytes[WF_SETUP_MAX];

    (void)state;
    memset(setup.deny.text, 'x', sizeof(setup.deny.text));
    assert_int_equal(decode(bytes, encode(&setup, bytes), &seen), 0);
    assert_int_equal(strlen(seen.deny.text), sizeof(seen.deny.text) - 1);
}

/* ------------------------------------------------------------------------------------------- damage */

static void every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        struct wf_setup setup = sample(which), seen;
        uint8_t bytes[WF_SETUP_MAX];
        size_t length = encode(&setup, bytes);
        for (size_t bit = 0; bit < 8 * length; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            int rc = decode(bytes, length, &seen);
            int framing = bit / 8 < TYPE_AT || (bit / 8 >= VERSION_AT && bit / 8 < WF_SETUP_PREFIX);
            assert_int_equal(rc, framing ? -EPROTO : -EBADMSG);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

static void cut_at_every_byte(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        struct wf_setup setup = sample(which), seen;
        uint8_t bytes[WF_SETUP_MAX];
        size_t length = encode(&setup, bytes);
        for (size_t cut = 0; cut < length; cut++)
            assert_int_equal(decode(bytes, cut, &seen), -EPROTO);
    }
}

/* As a peer would that lies about its length with a right CRC: the body ends in the middle of any field. */
static void shorter_and_longer_bodies_with_a_good_crc(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        struct wf_setup setup = sample(which), seen;
        uint8_t whole[WF_SETUP_MAX] = {0}, bytes[WF_SETUP_MAX];
        size_t length = encode(&setup, whole);
        for (size_t other = OVERHEAD; other <= WF_SETUP_MAX; other += other < length + 200 ? 1 : 41) {
            memcpy(bytes, whole, sizeof(bytes));
            if (other > length)
                memset(bytes + length - 4, 0, 4);
            reseal(bytes, other);
            assert_int_equal(decode(bytes, other, &seen), other == length ? 0 : -EPROTO);
        }
    }
}

static void under_every_other_type(void **state)
{
    (void)state;
    for (int which = 0; which < SAMPLES; which++) {
        struct wf_setup setup = sample(which), seen;
        for (int type = 0; type < 256; type++)
            assert_int_equal(decode_with(setup, TYPE_AT, (uint8_t)type, &seen), type == (int)setup.type ? 0 : -EPROTO);
    }
}

static void lengths_from_the_prefix(void **state)
{
    static const struct {
        uint8_t prefix[WF_SETUP_PREFIX];
        int length;
    } cases[] = {
        {{'W', 'E', 'F', 'T', 1, 1, 0, 0}, 12},
        {{'W', 'E', 'F', 'T', 1, 1, 1, 0}, 13},
        {{'W', 'E', 'F', 'T', 9, 1, 0, 1}, 268}, /* types are the decoder's business */
        {{'W', 'E', 'F', 'T', 1, 1, 0xf4, 0x0f}, 4096},
        {{'W', 'E', 'F', 'T', 6, 1, 0x02, 0x10}, 4110},
        {{'W', 'E', 'F', 'T', 6, 1, 0x03, 0x10}, -EMSGSIZE},
        {{'W', 'E', 'F', 'T', 1, 1, 0xff, 0xff}, -EMSGSIZE},
        {{'W', 'E', 'F', 'T', 1, 0, 0, 0}, -EPROTONOSUPPORT},
        {{'W', 'E', 'F', 'T', 1, 2, 0xff, 0xff}, -EPROTONOSUPPORT},
        {{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T'}, -EPROTO},
        {{0x16, 3, 1, 2, 0, 1, 0, 1}, -EPROTO},
        {{'W', 'E', 'F', 'U', 1, 1, 0, 0}, -EPROTO},
        {{0}, -EPROTO},
    };
    struct wf_setup seen;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(wf_setup_length(cases[i].prefix), cases[i].length);
        assert_int_equal(decode(cases[i].prefix, WF_SETUP_PREFIX, &seen), -EPROTO);
    }
}

/* ------------------------------------------------------------------------------------------- ranges */

#define BODY WF_SETUP_PREFIX
#define RAIL_COUNT_AT (BODY + 156)
#define RAILS_AT (BODY + 157)
#define NAME_AT (BODY + 92)

static void hello_ranges(void **state)
{
    static const struct {
        uint16_t version_min, version_max;
        uint32_t chunk, eager, header_pad;
        int rc;
    } cases[] = {
        {1, 1, 64, 0, 64, 0},
        {1, UINT16_MAX, 1 << 30, 1 << 30, 4096, 0},
        {7, 7, 4096, 100, 65, 0}, /* an incompatible peer still gets a DENY that says so */
        {0, 1, 4096, 0, 64, -EPROTO},
        {2, 1, 4096, 0, 64, -EPROTO},
        {1, 1, 63, 0, 64, -EPROTO},
        {1, 1, 0, 0, 64, -EPROTO},
        {1, 1, (1 << 30) + 1, 0, 64, -EPROTO},
        {1, 1, UINT32_MAX, 0, 64, -EPROTO},
        {1, 1, 4096, (1 << 30) + 1, 64, -EPROTO},
        {1, 1, 4096, 0, 63, -EPROTO},
        {1, 1, 4096, 0, 0, -EPROTO},
        {1, 1, 4096, 0, 4097, -EPROTO},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wf_setup setup = sample_hello(2);
        setup.hello.version_min = cases[i].version_min;
        setup.hello.version_max = cases[i].version_max;
        setup.hello.limits.chunk = cases[i].chunk;
        setup.hello.limits.eager = cases[i].eager;
        setup.hello.limits.header_pad = cases[i].header_pad;
        if (pass(&setup) != cases[i].rc)
            fail_msg("case %zu", i);
    }
}

static void rail_counts_and_families(void **state)
{
    struct wf_setup seen;

    (void)state;
    for (int value = 0; value < 256; value++) {
        uint8_t byte = (uint8_t)value;
        assert_int_equal(decode_with(sample_hello(WF_RAILS_MAX), RAIL_COUNT_AT, byte, &seen),
                         value == WF_RAILS_MAX ? 0 : -EPROTO);
        assert_int_equal(decode_with(sample_hello(2), RAIL_COUNT_AT, byte, &seen), value == 2 ? 0 : -EPROTO);
        int rc = value == 4 || value == 6 ? 0 : -EPROTO;
        assert_int_equal(decode_with(sample_hello(2), RAILS_AT, byte, &seen), rc);
        assert_int_equal(decode_with(sample_hello(2), RAILS_AT + 51, byte, &seen), rc);
    }
}

/* Seventeen well-formed rails are one more than there is room for in the result. */
static void seventeen_rails(void **state)
{
    struct wf_setup setup = sample_hello(WF_RAILS_MAX), seen;
    uint8_t bytes[WF_SETUP_MAX];
    size_t length = encode(&setup, bytes);

    (void)state;
    memcpy(bytes + length - 4, bytes + RAILS_AT, 51);
    bytes[RAIL_COUNT_AT] = 17;
    reseal(bytes, length + 51);
    assert_int_equal(decode(bytes, length + 51, &seen), -EPROTO);
}

/* The length in the body agrees with the body, whatever it claims; and what is said to be longer than a greeting may be
 * is refused before anything is copied. */
static void greeting_lengths(void **state)
{
    struct wf_setup seen;

    (void)state;
    for (unsigned claimed = 0; claimed <= UINT16_MAX; claimed++) {
        struct wf_setup setup = sample_greeting(5);
        uint8_t bytes[WF_SETUP_MAX];
        size_t length = encode(&setup, bytes);
        bytes[BODY] = (uint8_t)claimed;
        bytes[BODY + 1] = (uint8_t)(claimed >> 8);
        reseal(bytes, length);
        assert_int_equal(decode(bytes, length, &seen), claimed == 5 ? 0 : -EPROTO);
    }
    assert_int_equal(decode_with(sample_greeting(WF_GREETING_MAX), BODY, 1, &seen), -EPROTO); /* 4097 */
    assert_int_equal(decode_with(sample_greeting(WF_GREETING_MAX), BODY + 1, 0xff, &seen), -EPROTO);
}

static void short_addresses_are_cleared(void **state)
{
    struct wf_setup seen;

    (void)state;
    assert_int_equal(decode_with(sample_hello(1), RAILS_AT + 1 + 9, 0x5a, &seen), 0);
    assert_int_equal(seen.hello.rails[0].bytes[9], 0);
}

static void join_ranges(void **state)
{
    struct wf_setup seen;

    (void)state;
    struct wf_setup in_band = sample_join();
    in_band.join.domain = in_band.join.payload_port = 0;
    for (int value = 0; value < 256; value++) {
        uint8_t byte = (uint8_t)value;
        bool ordinary = value == WF_CHANNEL_EXPRESS || value == WF_CHANNEL_BULK, device = value == WF_CHANNEL_DEVICE;
        assert_int_equal(decode_with(in_band, BODY + 18, byte, &seen), ordinary ? 0 : -EPROTO);
        assert_int_equal(decode_with(sample_join(), BODY + 18, byte, &seen), device ? 0 : -EPROTO);
        assert_int_equal(decode_with(sample_join(), BODY + 20, byte, &seen),
                         value > 0 && value <= WF_STRANDS_MAX ? 0 : -EPROTO);
        assert_int_equal(decode_with(sample_join(), BODY + 19, byte, &seen), value < WF_RAILS_MAX ? 0 : -EPROTO);
    }
    struct wf_setup setup = sample_join();
    setup.join.channels = 0;
    assert_int_equal(pass(&setup), -EPROTO);
}

/* Only a refusal that says so names a port, and it names one. */
static void a_port_where_it_is_said(void **state)
{
    struct wf_setup setup = sample_deny(), seen;
    uint8_t bytes[WF_SETUP_MAX];

    (void)state;
    size_t without = encode(&setup, bytes);
    setup.deny.reason = WF_DENY_PORT;
    assert_int_equal(pass(&setup), -EPROTO);
    setup.deny.port = 0x1234;
    size_t length = encode(&setup, bytes);
    assert_int_equal(length, without + 2);
    assert_int_equal(decode(bytes, length, &seen), 0);
    assert_int_equal(seen.deny.port, 0x1234);
}

static void texts_must_end(void **state)
{
    struct wf_setup hello = sample_hello(2), deny = sample_deny(), seen;

    (void)state;
    memset(hello.hello.name, 'n', WF_NAME_BYTES - 1);
    assert_int_equal(decode_with(hello, NAME_AT + 63, 0, &seen), 0);
    assert_int_equal(decode_with(hello, NAME_AT + 63, 'n', &seen), -EPROTO);
    memset(hello.hello.rails[1].name, 'r', 31);
    assert_int_equal(decode_with(hello, RAILS_AT + 2 * 51 - 1, 0, &seen), 0);
    assert_int_equal(decode_with(hello, RAILS_AT + 2 * 51 - 1, 'r', &seen), -EPROTO);
    memset(deny.deny.text, 't', 159);
    assert_int_equal(decode_with(deny, BODY + 2 + 159, 0, &seen), 0);
    assert_int_equal(decode_with(deny, BODY + 2 + 159, 't', &seen), -EPROTO);
}

static void texts_are_printable(void **state)
{
    (void)state;
    for (int value = 1; value < 256; value++) {
        char byte = (char)value, expected = value >= 0x20 && value < 0x7f ? byte : '?';
        struct wf_setup seen;
        assert_int_equal(decode_with(sample_hello(1), NAME_AT + 2, (uint8_t)value, &seen), 0);
        assert_int_equal(seen.hello.name[2], expected);
        assert_int_equal(decode_with(sample_hello(1), RAILS_AT + 19 + 1, (uint8_t)value, &seen), 0);
        assert_int_equal(seen.hello.rails[0].name[1], expected);
        assert_int_equal(decode_with(sample_deny(), BODY + 2 + 5, (uint8_t)value, &seen), 0);
        assert_int_equal(seen.deny.text[5], expected);
    }
}

/* Nothing a peer hides behind the end of a text survives. */
static void texts_are_cleared_behind_their_end(void **state)
{
    static const char zeros[160];
    struct wf_setup seen;

    (void)state;
    assert_int_equal(decode_with(sample_deny(), BODY + 2, 0, &seen), 0);
    assert_memory_equal(seen.deny.text, zeros, sizeof(seen.deny.text));
    assert_int_equal(decode_with(sample_deny(), BODY + 2 + 150, 0x1b, &seen), 0);
    assert_string_equal(seen.deny.text, "as many peers as `peers` allows");
    assert_int_equal(seen.deny.text[150], 0);
}

/* A hostile peer computes CRCs too. What passes must stay the same when it goes round once more. */
static void random_bodies_with_a_good_crc(void **state)
{
    uint64_t random = seed;
    int passed = 0;

    (void)state;
    print_message("  seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < 60000; i++) {
        struct wf_setup setup = sample((int)(draw(&random) % SAMPLES)), seen, twice;
        uint8_t bytes[WF_SETUP_MAX], again[WF_SETUP_MAX], third[WF_SETUP_MAX];
        size_t length = encode(&setup, bytes);
        for (uint64_t changes = draw(&random) % 6; changes > 0; changes--)
            bytes[TYPE_AT + draw(&random) % (length - 8)] = (uint8_t)draw(&random);
        bytes[VERSION_AT] = WF_PROTOCOL_VERSION;
        reseal(bytes, length);
        int rc = decode(bytes, length, &seen);
        assert_true(rc == 0 || rc == -EPROTO);
        if (rc)
            continue;
        passed++;
        assert_int_equal(encode(&seen, again), length);
        assert_int_equal(decode(again, length, &twice), 0);
        assert_int_equal(encode(&twice, third), length);
        assert_memory_equal(again, third, length);
    }
    assert_in_range(passed, 1000, 59000);
}

static void reasons_have_names(void **state)
{
    (void)state;
    for (unsigned reason = 0; reason <= UINT16_MAX; reason++) {
        int known = reason >= WF_DENY_VERSION && reason <= WF_DENY_PORT;
        const char *name = wf_deny_name((uint16_t)reason);
        assert_non_null(name);
        assert_int_equal(strcmp(name, wf_deny_name(0)) != 0, known);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_back),
        cmocka_unit_test(hello_fields_come_back),
        cmocka_unit_test(join_layout),
        cmocka_unit_test(greeting_layout),
        cmocka_unit_test(encode_needs_all_its_room),
        cmocka_unit_test(encode_refuses_nonsense),
        cmocka_unit_test(encode_leaks_nothing),
        cmocka_unit_test(encode_cuts_what_is_not_terminated),
        cmocka_unit_test(every_flipped_bit_is_noticed),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(shorter_and_longer_bodies_with_a_good_crc),
        cmocka_unit_test(under_every_other_type),
        cmocka_unit_test(lengths_from_the_prefix),
        cmocka_unit_test(hello_ranges),
        cmocka_unit_test(rail_counts_and_families),
        cmocka_unit_test(seventeen_rails),
        cmocka_unit_test(greeting_lengths),
        cmocka_unit_test(short_addresses_are_cleared),
        cmocka_unit_test(join_ranges),
        cmocka_unit_test(a_port_where_it_is_said),
        cmocka_unit_test(texts_must_end),
        cmocka_unit_test(texts_are_printable),
        cmocka_unit_test(texts_are_cleared_behind_their_end),
        cmocka_unit_test(random_bodies_with_a_good_crc),
        cmocka_unit_test(reasons_have_names),
    };

    if (argc > 1)
        seed = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
