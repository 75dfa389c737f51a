/* The handshake under a key: who gets through, who does not and with what words, whatever the bytes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "wire/handshake.h"

#define FLIGHT 8192

/* What one side has to send. */
struct flight {
    uint8_t bytes[FLIGHT];
    size_t length;
};

/* Two sides of one conversation, and the bytes that came from each first. */
struct pair {
    struct wf_handshake_key *keys[2];
    struct wf_handshake *sides[2]; /* dialer, acceptor */
    struct wf_status status[2];
};

static struct wf_handshake_key *key_of(uint8_t first)
{
    struct wf_handshake_key *key = NULL;
    uint8_t bytes[WF_KEY_BYTES];

    for (int i = 0; i < WF_KEY_BYTES; i++)
        bytes[i] = (uint8_t)(first + i);
    assert_int_equal(wf_handshake_key_create(bytes, &key, NULL), 0);
    return key;
}

static void open_pair(struct pair *pair, uint8_t dialer, uint8_t acceptor)
{
    *pair = (struct pair){.keys = {key_of(dialer), key_of(acceptor)}};
    assert_int_equal(wf_handshake_create(pair->keys[0], WF_ROLE_DIALER, &pair->sides[0]), 0);
    assert_int_equal(wf_handshake_create(pair->keys[1], WF_ROLE_ACCEPTOR, &pair->sides[1]), 0);
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        wf_handshake_destroy(pair->sides[i]);
        wf_handshake_key_destroy(pair->keys[i]);
    }
}

static struct flight pull(struct wf_handshake *side)
{
    struct flight flight = {.length = 0};
    size_t got;

    while ((got = wf_handshake_pull(side, flight.bytes + flight.length, sizeof(flight.bytes) - flight.length)) > 0)
        flight.length += got;
    return flight;
}

static int feed(struct wf_handshake *side, const struct flight *flight, struct wf_status *status)
{
    return flight->length ? wf_handshake_feed(side, flight->bytes, flight->length, status) : 0;
}

/* To and fro until nobody has anything to say. */
static void talk(struct pair *pair)
{
    bool more = true;

    while (more) {
        more = false;
        for (int i = 0; i < 2; i++) {
            struct flight flight = pull(pair->sides[i]);
            more = more || flight.length > 0;
            (void)feed(pair->sides[!i], &flight, &pair->status[!i]);
        }
    }
}

static void expect_failure(const struct wf_status *status, int code, const char *words)
{
    assert_int_equal(status->code, code);
    if (!strstr(status->text, words))
        fail_msg("'%s' does not say '%s'", status->text, words);
}

/* --- keys --- */

static void expect_message(struct wf_handshake *from, struct wf_handshake *to, size_t length)
{
    uint8_t sent[4096], got[4096];
    size_t have = 0;

    memset(sent, (int)(length & 0xff), sizeof(sent));
    assert_int_equal(wf_handshake_write(from, sent, length), 0);
    struct flight flight = pull(from);
    assert_null(memmem(flight.bytes, flight.length, sent, length < 16 ? length : 16));
    assert_int_equal(feed(to, &flight, NULL), 0);
    while (have < length) {
        int more = wf_handshake_read(to, got + have, sizeof(got) - have, NULL);
        assert_true(more > 0);
        have += (size_t)more;
    }
    assert_int_equal(have, length);
    assert_memory_equal(sent, got, length);
    assert_int_equal(wf_handshake_read(to, got, sizeof(got), NULL), 0);
}

static void the_same_key(void **state)
{
    struct pair pair;
    uint8_t secrets[4][32];

    (void)state;
    open_pair(&pair, 1, 1);
    assert_false(wf_handshake_done(pair.sides[0]));
    assert_int_equal(wf_handshake_write(pair.sides[0], "early", 5), -EINVAL);
    assert_int_equal(wf_handshake_export(pair.sides[0], "x", "", 0, secrets[0], 32), -EIO);
    talk(&pair);
    assert_true(wf_handshake_done(pair.sides[0]) && wf_handshake_done(pair.sides[1]));
    for (size_t length = 16; length <= 4096; length *= 4) {
        expect_message(pair.sides[0], pair.sides[1], length);
        expect_message(pair.sides[1], pair.sides[0], length);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(wf_handshake_export(pair.sides[i], "EXPORTER-a", "12345678", 8, secrets[2 * i], 32), 0);
        assert_int_equal(wf_handshake_export(pair.sides[i], "EXPORTER-a", "12345679", 8, secrets[2 * i + 1], 32), 0);
    }
    assert_memory_equal(secrets[0], secrets[2], 32);
    assert_memory_equal(secrets[1], secrets[3], 32);
    assert_memory_not_equal(secrets[0], secrets[1], 32);
    close_pair(&pair);
}

/* The same key gives other secrets in every conversation. */
static void secrets_are_of_one_conversation(void **state)
{
    uint8_t secrets[2][32];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct pair pair;
        open_pair(&pair, 1, 1);
        talk(&pair);
        assert_int_equal(wf_handshake_export(pair.sides[0], "EXPORTER-a", "", 0, secrets[i], 32), 0);
        close_pair(&pair);
    }
    assert_memory_not_equal(secrets[0], secrets[1], 32);
}

static void another_key(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 1, 2);
    talk(&pair);
    assert_false(wf_handshake_done(pair.sides[0]));
    assert_false(wf_handshake_done(pair.sides[1]));
    expect_failure(&pair.status[0], -EACCES, "refused: another key than ours");
    expect_failure(&pair.status[1], -EACCES, "another key than ours");
    struct wf_status again = {0};
    assert_int_equal(wf_handshake_feed(pair.sides[1], "x", 1, &again), -EACCES);
    assert_string_equal(again.text, pair.status[1].text);
    close_pair(&pair);
}

/* The one who reads refusals reads them as they come, too. */
static void another_key_in_pieces(void **state)
{
    struct pair pair;

    (void)state;
    open_pair(&pair, 1, 2);
    struct flight flight = pull(pair.sides[0]);
    assert_int_equal(feed(pair.sides[1], &flight, NULL), -EACCES);
    flight = pull(pair.sides[1]);
    for (size_t at = 0; at < flight.length; at++)
        assert_int_equal(wf_handshake_feed(pair.sides[0], flight.bytes + at, 1, &pair.status[0]),
                         at + 1 < flight.length ? 0 : -EACCES);
    expect_failure(&pair.status[0], -EACCES, "refused: another key than ours");
    close_pair(&pair);
}

/* --- others that speak TLS --- */

/* A certificate of its own making. */
static void give_certificate(SSL_CTX *tls)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();

    assert_non_null(key);
    assert_non_null(certificate);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC, (const unsigned char *)"weft",
                               -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(tls, certificate), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(tls, key), 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* Somebody else's TLS, of at most this version. */
static SSL *other_tls(bool server, int version, bool certificate)
{
    SSL_CTX *context = SSL_CTX_new(TLS_method());

    assert_non_null(context);
    assert_int_equal(SSL_CTX_set_max_proto_version(context, version), 1);
    if (certificate)
        give_certificate(context);
    SSL *tls = SSL_new(context);
    assert_non_null(tls);
    SSL_CTX_free(context);
    SSL_set_bio(tls, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    if (server)
        SSL_set_accept_state(tls);
    else
        SSL_set_connect_state(tls);
    return tls;
}

/* Ours with somebody else's, until nothing moves; what ours says in the end. Must not be done. */
static struct wf_status meet(enum wf_role role, int version, bool certificate)
{
    struct wf_handshake_key *key = key_of(1);
    struct wf_handshake *ours = NULL;
    struct wf_status status = {0};
    SSL *theirs = other_tls(role == WF_ROLE_DIALER, version, certificate);

    assert_int_equal(wf_handshake_create(key, role, &ours), 0);
    for (int turn = 0; turn < 8; turn++) {
        struct flight flight = pull(ours);
        if (flight.length)
            BIO_write(SSL_get_rbio(theirs), flight.bytes, (int)flight.length);
        SSL_do_handshake(theirs);
        int length = BIO_read(SSL_get_wbio(theirs), flight.bytes, sizeof(flight.bytes));
        if (length > 0)
            wf_handshake_feed(ours, flight.bytes, (size_t)length, &status);
        assert_false(wf_handshake_done(ours));
    }
    assert_false(SSL_is_init_finished(theirs) && role == WF_ROLE_ACCEPTOR);
    SSL_free(theirs);
    wf_handshake_destroy(ours);
    wf_handshake_key_destroy(key);
    return status;
}

static void a_certificate_is_no_key(void **state)
{
    struct wf_status status = meet(WF_ROLE_DIALER, TLS1_3_VERSION, true);

    (void)state;
    expect_failure(&status, -EACCES, "certificate");
    status = meet(WF_ROLE_DIALER, TLS1_3_VERSION, false);
    expect_failure(&status, -EACCES, "knows nothing of a key");
    status = meet(WF_ROLE_ACCEPTOR, TLS1_3_VERSION, false);
    expect_failure(&status, -EACCES, "offers no key");
    status = meet(WF_ROLE_ACCEPTOR, TLS1_3_VERSION, true);
    expect_failure(&status, -EACCES, "offers no key");
}

static void older_versions(void **state)
{
    struct wf_status status = meet(WF_ROLE_ACCEPTOR, TLS1_2_VERSION, false);

    (void)state;
    expect_failure(&status, -EPROTO, "older TLS");
    status = meet(WF_ROLE_DIALER, TLS1_2_VERSION, true);
    assert_int_equal(status.code, -EACCES);
}

/* --- bytes that are not what they should be --- */

/* A whole conversation as it was: what the dialer said first and second, and the acceptor between. */
static void record(struct flight said[3])
{
    struct pair pair;

    open_pair(&pair, 1, 1);
    said[0] = pull(pair.sides[0]);
    assert_int_equal(feed(pair.sides[1], &said[0], NULL), 0);
    said[1] = pull(pair.sides[1]);
    assert_int_equal(feed(pair.sides[0], &said[1], NULL), 0);
    assert_int_equal(wf_handshake_write(pair.sides[0], "a first message", 15), 0);
    said[2] = pull(pair.sides[0]);
    assert_int_equal(feed(pair.sides[1], &said[2], NULL), 0);
    assert_true(wf_handshake_done(pair.sides[1]));
    close_pair(&pair);
}

/* The acceptor answers a dialer's old words with new ones, to which the old second flight is no answer. */
static void replayed(void **state)
{
    struct flight said[3];
    struct pair pair;
    char got[32];

    (void)state;
    record(said);
    open_pair(&pair, 1, 1);
    assert_int_equal(feed(pair.sides[1], &said[0], NULL), 0);
    assert_false(wf_handshake_done(pair.sides[1]));
    assert_int_equal(feed(pair.sides[1], &said[2], &pair.status[1]), -EACCES);
    expect_failure(&pair.status[1], -EACCES, "another conversation");
    assert_false(wf_handshake_done(pair.sides[1]));
    assert_true(wf_handshake_read(pair.sides[1], got, sizeof(got), NULL) < 0);
    /* And an old answer to a new dialer. */
    assert_true(feed(pair.sides[0], &said[1], &pair.status[0]) < 0);
    assert_false(wf_handshake_done(pair.sides[0]));
    close_pair(&pair);
}

/* Either side's own words, sent back to it. */
static void reflected(void **state)
{
    struct pair pair;
    struct flight first, second;

    (void)state;
    open_pair(&pair, 1, 1);
    first = pull(pair.sides[0]);
    assert_true(feed(pair.sides[0], &first, &pair.status[0]) < 0);
    assert_false(wf_handshake_done(pair.sides[0]));
    assert_int_equal(feed(pair.sides[1], &first, NULL), 0);
    second = pull(pair.sides[1]);
    assert_true(feed(pair.sides[1], &second, &pair.status[1]) < 0);
    assert_false(wf_handshake_done(pair.sides[1]));
    close_pair(&pair);
}

/* Every byte of every flight changed, one at a time: nobody takes it for good, and no message comes out. */
static void damaged(void **state)
{
    struct flight said[3];

    (void)state;
    record(said);
    for (int which = 0; which < 2; which++) {
        for (size_t at = 0; at < said[which].length; at += 3) {
            struct pair pair;
            open_pair(&pair, 1, 1);
            struct flight flight = pull(pair.sides[0]);
            if (which == 0)
                flight.bytes[at] ^= (uint8_t)(1u << at % 8);
            (void)feed(pair.sides[1], &flight, NULL);
            flight = pull(pair.sides[1]);
            if (which == 1 && at < flight.length)
                flight.bytes[at] ^= (uint8_t)(1u << at % 8);
            (void)feed(pair.sides[0], &flight, NULL);
            flight = pull(pair.sides[0]);
            (void)feed(pair.sides[1], &flight, NULL);
            assert_false(wf_handshake_done(pair.sides[1]));
            close_pair(&pair);
        }
    }
}

/* Cut anywhere and in any pieces: the rest is waited for, and nothing is done before it is there. */
static void in_pieces(void **state)
{
    (void)state;
    for (size_t piece = 1; piece < 600; piece = piece * 2 + 1) {
        struct pair pair;
        open_pair(&pair, 1, 1);
        for (int turn = 0; turn < 3; turn++) {
            struct flight flight = pull(pair.sides[turn % 2]);
            struct wf_handshake *to = pair.sides[!(turn % 2)];
            for (size_t at = 0; at < flight.length; at += piece) {
                size_t length = flight.length - at < piece ? flight.length - at : piece;
                assert_false(wf_handshake_done(to));
                assert_int_equal(wf_handshake_feed(to, flight.bytes + at, length, NULL), 0);
            }
            assert_true(wf_handshake_done(to) || turn == 0);
        }
        close_pair(&pair);
    }
}

static void garbage(void **state)
{
    uint32_t seed = 1;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct pair pair;
        struct flight noise = {.length = 1 + (size_t)round % 700};
        for (size_t i = 0; i < noise.length; i++) {
            seed = seed * 1664525u + 1013904223u;
            noise.bytes[i] = (uint8_t)(seed >> 24);
        }
        if (round % 2) { /* a record, at least */
            uint8_t head[] = {
                0x16, 3, 3, (uint8_t)(noise.length >> 8), (uint8_t)noise.length, (uint8_t)(1 + round % 3)};
            memcpy(noise.bytes, head, noise.length < sizeof(head) ? noise.length : sizeof(head));
        }
        open_pair(&pair, 1, 1);
        (void)pull(pair.sides[0]);
        for (int i = 0; i < 2; i++) {
            (void)feed(pair.sides[i], &noise, NULL);
            assert_false(wf_handshake_done(pair.sides[i]));
            (void)pull(pair.sides[i]);
        }
        close_pair(&pair);
    }
}

/* --- bounds --- */

static _Atomic int64_t held, most;

static void count(int64_t bytes)
{
    int64_t now = atomic_fetch_add(&held, bytes) + bytes;

    if (now > atomic_load(&most))
        atomic_store(&most, now);
}

/* The size stands before what OpenSSL gets. */
static void *counted_alloc(size_t size, const char *file, int line)
{
    size_t *block = malloc(size + 16);

    (void)file;
    (void)line;
    if (!block)
        return NULL;
    *block = size;
    count((int64_t)size);
    return (char *)block + 16;
}

static void counted_free(void *bytes, const char *file, int line)
{
    (void)file;
    (void)line;
    if (!bytes)
        return;
    size_t *block = (size_t *)(void *)((char *)bytes - 16);
    count(-(int64_t)*block);
    free(block);
}

static void *counted_realloc(void *bytes, size_t size, const char *file, int line)
{
    void *made = size ? counted_alloc(size, file, line) : NULL;

    if (bytes && made) {
        size_t had = *(size_t *)(void *)((char *)bytes - 16);
        memcpy(made, bytes, had < size ? had : size);
    }
    if (bytes && (made || !size))
        counted_free(bytes, file, line);
    return made;
}

/* However much somebody says, in one record or many, that may or may not be believable. */
static void memory_is_bounded(void **state)
{
    static const uint8_t starts[][6] = {{0x16, 3, 1, 0x40, 0x00, 1}, {0x16, 3, 3, 0x00, 0x01, 1},
                                        {0x17, 3, 3, 0x40, 0x00, 0}, {0x14, 3, 3, 0, 1, 1},
                                        {0, 0x0f, 0xff, 0, 0, 0},    {1, 0x30, 0, 0, 0, 0}};
    static const uint8_t head[] = {0x16, 3, 1, 0x0f, 0xff, 1};
    struct wf_handshake_key *key = key_of(1);
    int64_t most_of_all = 0;

    (void)state;
    for (size_t row = 0; row < sizeof(starts) / sizeof(starts[0]); row++) {
        for (int turn = 0; turn < 20; turn++) {
            struct wf_handshake *side = NULL;
            struct wf_status status = {0};
            int64_t before = atomic_load(&held);
            atomic_store(&most, before);
            assert_int_equal(wf_handshake_create(key, WF_ROLE_ACCEPTOR, &side), 0);
            if (starts[row][0] < 2) /* the claim of a long message, in a record that is long enough */
                (void)wf_handshake_feed(side, head, sizeof(head), &status);
            for (int i = 0; i < 2 * WF_HANDSHAKE_MAX / 6 && status.code == 0; i++)
                (void)wf_handshake_feed(side, starts[row], sizeof(starts[row]), &status);
            assert_true(status.code < 0);
            wf_handshake_destroy(side);
            if (turn > 0) { /* the first may leave what OpenSSL keeps once */
                assert_int_equal(atomic_load(&held), before);
                if (atomic_load(&most) - before > most_of_all)
                    most_of_all = atomic_load(&most) - before;
            }
        }
    }
    print_message("most for one conversation: %lld bytes\n", (long long)most_of_all);
    assert_true(most_of_all > 0 && most_of_all < 96 * 1024);
    wf_handshake_key_destroy(key);
}

static void records(void **state)
{
    (void)state;
    assert_int_equal(wf_handshake_record((const uint8_t[]){0x16, 3, 1, 1, 0}, 4096), 261);
    assert_int_equal(wf_handshake_record((const uint8_t[]){0x16, 3, 1, 0x0f, 0xfb}, 4096), 4096);
    assert_int_equal(wf_handshake_record((const uint8_t[]){0x16, 3, 1, 0x0f, 0xfc}, 4096), -EPROTO);
    assert_int_equal(wf_handshake_record((const uint8_t[]){0x16, 2, 1, 0, 4}, 4096), -EPROTO);
    assert_int_equal(wf_handshake_record((const uint8_t[]){'W', 'E', 'F', 'T', 1}, 4096), -EPROTO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_key_in_pieces),
        cmocka_unit_test(the_same_key),
        cmocka_unit_test(secrets_are_of_one_conversation),
        cmocka_unit_test(another_key),
        cmocka_unit_test(a_certificate_is_no_key),
        cmocka_unit_test(older_versions),
        cmocka_unit_test(replayed),
        cmocka_unit_test(reflected),
        cmocka_unit_test(damaged),
        cmocka_unit_test(in_pieces),
        cmocka_unit_test(garbage),
        cmocka_unit_test(records),
        cmocka_unit_test(memory_is_bounded),
    };

    if (!CRYPTO_set_mem_functions(counted_alloc, counted_realloc, counted_free))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
