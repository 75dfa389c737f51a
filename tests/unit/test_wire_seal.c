/* The proof of a channel: its published construction, and that nothing it covers can be exchanged. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "wire/seal.h"

/* What a proof is made of. */
struct input {
    uint8_t secret[WF_SECRET_BYTES];
    enum wf_role role;
    struct wf_join join;
    struct wf_challenge challenge;
};

static void rise(uint8_t *bytes, size_t count, unsigned first)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(first + i);
}

static struct input sample(void)
{
    struct input input = {
        .role = WF_ROLE_DIALER,
        .join = {.session = UINT64_C(0x1817161514131211),
                 .channel = 0x24232221,
                 .incarnation = 0x34333231,
                 .channels = 9,
                 .kind = WF_CHANNEL_BULK,
                 .rail = 3,
                 .domain = 0x5251,
                 .payload_port = 0x5453,
                 .granted_frames = 64,
                 .granted_bytes = 1 << 20},
        .challenge = {.granted_frames = UINT64_C(0x6867666564636261), .granted_bytes = UINT64_C(0x7877767574737271)},
    };

    rise(input.secret, WF_SECRET_BYTES, 0x80);
    rise(input.join.nonce, WF_NONCE_BYTES, 0x90);
    rise(input.challenge.nonce, WF_NONCE_BYTES, 0x10);
    return input;
}

struct proof {
    uint8_t bytes[WF_PROOF_BYTES];
};

static struct proof prove(const struct input *input)
{
    struct proof proof = {{0}};

    assert_int_equal(wf_seal_prove(input->secret, input->role, &input->join, &input->challenge, proof.bytes), 0);
    return proof;
}

/* Computed by another implementation of HMAC-SHA256 and CRC32C over the bytes of "weft channel v1\0", the role, the
 * acceptor's nonce and credit and the JOIN message. */
static void known_proofs(void **state)
{
    static const struct {
        enum wf_role role;
        struct proof proof;
    } known[] = {
        {WF_ROLE_DIALER,
         {{0x50, 0xe6, 0x32, 0x8b, 0xee, 0x7e, 0xb2, 0x8b, 0xc6, 0xbd, 0x3c, 0x66, 0x35, 0x3c, 0xea, 0x58,
           0xe8, 0xff, 0xa4, 0xf7, 0x60, 0xc7, 0x03, 0xdf, 0x44, 0x57, 0xa6, 0x71, 0x58, 0x7d, 0x39, 0x20}}},
        {WF_ROLE_ACCEPTOR,
         {{0xd9, 0x6b, 0x72, 0x68, 0x7f, 0xf1, 0x36, 0xf3, 0xff, 0x1b, 0x90, 0x53, 0xf5, 0xa7, 0x21, 0x4d,
           0xc2, 0x2e, 0x53, 0x32, 0x51, 0x9c, 0x1a, 0x5e, 0x4b, 0xf3, 0xa2, 0x8f, 0xb2, 0xdd, 0x39, 0x1c}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct input input = sample();
        input.role = known[i].role;
        struct proof proof = prove(&input);
        assert_memory_equal(proof.bytes, known[i].proof.bytes, WF_PROOF_BYTES);
    }
}

static void the_same_again(void **state)
{
    struct input input = sample();
    struct proof a = prove(&input), b = prove(&input);

    (void)state;
    assert_true(wf_seal_equal(a.bytes, b.bytes));
}

/* ------------------------------------------------------------------------------------------- exchanges */

/* Everything the proof covers, as places in `struct input`: each bit of each must matter. */
#define PLACE(member)                                                                                                  \
    {                                                                                                                  \
#member, offsetof(struct input, member), sizeof(((struct input *)0)->member)                                   \
    }
static const struct {
    const char *what;
    size_t at, size;
} places[] = {
    PLACE(secret),
    PLACE(join.session),
    PLACE(join.channel),
    PLACE(join.incarnation),
    PLACE(join.channels),
    PLACE(join.kind),
    PLACE(join.rail),
    PLACE(join.domain),
    PLACE(join.payload_port),
    PLACE(join.nonce),
    PLACE(join.granted_frames),
    PLACE(join.granted_bytes),
    PLACE(challenge.nonce),
    PLACE(challenge.granted_frames),
    PLACE(challenge.granted_bytes),
};
#define PLACE_COUNT (sizeof(places) / sizeof(places[0]))

static struct proof proofs[2048];
static size_t proof_count;

/* The new proof must differ from every one before it, not only from the first. */
static void collect(const struct input *input, const char *what)
{
    struct proof proof = prove(input);

    for (size_t i = 0; i < proof_count; i++) {
        if (wf_seal_equal(proofs[i].bytes, proof.bytes))
            fail_msg("%s does not change the proof", what);
    }
    assert_true(proof_count < sizeof(proofs) / sizeof(proofs[0]));
    proofs[proof_count++] = proof;
}

static void collect_all_bits(const struct input *base)
{
    for (size_t i = 0; i < PLACE_COUNT; i++) {
        for (size_t bit = 0; bit < 8 * places[i].size; bit++) {
            struct input input = *base;
            ((uint8_t *)&input)[places[i].at + bit / 8] ^= (uint8_t)(1u << bit % 8);
            collect(&input, places[i].what);
        }
    }
}

static void every_bit_of_every_field_matters(void **state)
{
    struct input input = sample();

    (void)state;
    proof_count = 0;
    collect(&input, "the base");
    collect_all_bits(&input);
    assert_int_equal(proof_count, 1 + 8 * (32 + 8 + 4 + 4 + 2 + 1 + 1 + 4 + 16 + 8 + 8 + 16 + 8 + 8));
}

/* A stranger that sends the acceptor's own proof back to it. */
static void reflection(void **state)
{
    struct input input = sample();
    struct proof dialer = prove(&input);

    (void)state;
    input.role = WF_ROLE_ACCEPTOR;
    struct proof acceptor = prove(&input);
    assert_false(wf_seal_equal(dialer.bytes, acceptor.bytes));

    /* Nor when it answers with the nonces the other way round, or the same nonce twice. */
    struct input swapped = sample();
    memcpy(swapped.join.nonce, input.challenge.nonce, WF_NONCE_BYTES);
    memcpy(swapped.challenge.nonce, input.join.nonce, WF_NONCE_BYTES);
    struct proof turned = prove(&swapped);
    assert_false(wf_seal_equal(dialer.bytes, turned.bytes));
    assert_false(wf_seal_equal(acceptor.bytes, turned.bytes));
    memcpy(swapped.join.nonce, swapped.challenge.nonce, WF_NONCE_BYTES);
    struct proof same_as_dialer = prove(&swapped);
    swapped.role = WF_ROLE_ACCEPTOR;
    struct proof same_as_acceptor = prove(&swapped);
    assert_false(wf_seal_equal(same_as_dialer.bytes, same_as_acceptor.bytes));
}

/* A recorded proof, played again to a side that has drawn another nonce, or for the next incarnation. */
static void replay(void **state)
{
    struct input input = sample();
    struct proof recorded = prove(&input);

    (void)state;
    input.challenge.nonce[0] ^= 1;
    struct proof wanted = prove(&input);
    assert_false(wf_seal_equal(recorded.bytes, wanted.bytes));
    input = sample();
    input.join.nonce[WF_NONCE_BYTES - 1] ^= 0x80;
    wanted = prove(&input);
    assert_false(wf_seal_equal(recorded.bytes, wanted.bytes));
    input = sample();
    input.join.incarnation += 1;
    wanted = prove(&input);
    assert_false(wf_seal_equal(recorded.bytes, wanted.bytes));
}

/* Neighbouring fields that trade their values must not add up to the same bytes. */
static void exchanged_values(void **state)
{
    struct input a = sample(), b = sample();

    (void)state;
    a.join.channel = 1, a.join.incarnation = 2;
    b.join.channel = 2, b.join.incarnation = 1;
    struct proof first = prove(&a), second = prove(&b);
    assert_false(wf_seal_equal(first.bytes, second.bytes));
    a = b = sample();
    a.join.kind = 1, a.join.rail = 2;
    b.join.kind = 2, b.join.rail = 1;
    first = prove(&a), second = prove(&b);
    assert_false(wf_seal_equal(first.bytes, second.bytes));
    a = b = sample();
    a.join.granted_frames = 1, a.join.granted_bytes = 2;
    b.join.granted_frames = 2, b.join.granted_bytes = 1;
    first = prove(&a), second = prove(&b);
    assert_false(wf_seal_equal(first.bytes, second.bytes));
}

/* A refusal is of one join and one reason, and no proof of anything else. Computed as above, of "weft refusal v1\0",
 * the role, the reason and the JOIN message. */
static void refusals(void **state)
{
    static const struct proof known = {{0xcd, 0x24, 0x7e, 0xa7, 0x8f, 0xc5, 0x52, 0xa3, 0x2a, 0xf9, 0x0e,
                                        0x22, 0xe2, 0xd0, 0x68, 0xd5, 0x27, 0x13, 0xf2, 0x3c, 0x38, 0x3f,
                                        0x65, 0xfa, 0x24, 0xc3, 0x88, 0x79, 0x0d, 0xe4, 0x1f, 0x06}};
    struct input input = sample();
    uint8_t proof[WF_PROOF_BYTES];

    (void)state;
    assert_int_equal(wf_seal_prove_refusal(input.secret, &input.join, WF_DENY_CLOSING, proof), 0);
    assert_memory_equal(proof, known.bytes, WF_PROOF_BYTES);
    proof_count = 0;
    for (unsigned reason = 0; reason <= UINT16_MAX; reason += 255) {
        assert_int_equal(wf_seal_prove_refusal(input.secret, &input.join, (uint16_t)reason, proof), 0);
        for (size_t i = 0; i < proof_count; i++)
            assert_false(wf_seal_equal(proofs[i].bytes, proof));
        memcpy(proofs[proof_count++].bytes, proof, WF_PROOF_BYTES);
    }
    input.join.nonce[0] ^= 1;
    assert_int_equal(wf_seal_prove_refusal(input.secret, &input.join, WF_DENY_CLOSING, proof), 0);
    assert_memory_not_equal(proof, known.bytes, WF_PROOF_BYTES);
    input = sample();
    input.secret[0] ^= 1;
    assert_int_equal(wf_seal_prove_refusal(input.secret, &input.join, WF_DENY_CLOSING, proof), 0);
    assert_memory_not_equal(proof, known.bytes, WF_PROOF_BYTES);
}

static void one_bit_apart_is_not_equal(void **state)
{
    struct input input = sample();
    struct proof a = prove(&input), b = a;

    (void)state;
    assert_true(wf_seal_equal(a.bytes, b.bytes));
    for (size_t bit = 0; bit < 8 * WF_PROOF_BYTES; bit++) {
        b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(wf_seal_equal(a.bytes, b.bytes));
        b.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_proofs),
        cmocka_unit_test(the_same_again),
        cmocka_unit_test(every_bit_of_every_field_matters),
        cmocka_unit_test(reflection),
        cmocka_unit_test(replay),
        cmocka_unit_test(exchanged_values),
        cmocka_unit_test(refusals),
        cmocka_unit_test(one_bit_apart_is_not_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
