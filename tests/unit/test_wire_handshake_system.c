/* The handshake on a system whose OpenSSL is configured for something else: peers meet all the same, and on nothing
 * less. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wire/handshake.h"

/* Each of these alone keeps peers apart, or lets something in that is not asked for. */
static const char configured[] = "openssl_conf = start\n"
                                 "[start]\n"
                                 "ssl_conf = tls\n"
                                 "[tls]\n"
                                 "system_default = unlike\n"
                                 "[unlike]\n"
                                 "Protocol = ALL,-TLSv1.3\n"
                                 "MaxProtocol = TLSv1.2\n"
                                 "Ciphersuites = TLS_CHACHA20_POLY1305_SHA256\n"
                                 "CipherString = ALL:@SECLEVEL=5\n"
                                 "Groups = P-521\n"
                                 "RecordPadding = 16384\n"
                                 "NumTickets = 5\n"
                                 "Options = AllowNoDHEKEX,PrioritizeChaCha\n"
                                 "VerifyMode = Require\n";

static void pass_on(struct wf_handshake *from, struct wf_handshake *to, size_t *said)
{
    uint8_t bytes[WF_HANDSHAKE_MAX];
    size_t length;

    while ((length = wf_handshake_pull(from, bytes, sizeof(bytes))) > 0) {
        assert_int_equal(wf_handshake_feed(to, bytes, length, NULL), 0);
        *said += length;
    }
}

static void meets_all_the_same(void **state)
{
    static const uint8_t bytes[WF_KEY_BYTES] = {1, 2, 3};
    struct wf_handshake_key *key = NULL;
    struct wf_handshake *sides[2] = {NULL, NULL};
    struct wf_status status = {0};
    size_t said = 0;
    char got[16];

    (void)state;
    assert_int_equal(wf_handshake_key_create(bytes, &key, &status), 0);
    assert_int_equal(wf_handshake_create(key, WF_ROLE_DIALER, &sides[0]), 0);
    assert_int_equal(wf_handshake_create(key, WF_ROLE_ACCEPTOR, &sides[1]), 0);
    for (int turn = 0; turn < 4; turn++)
        pass_on(sides[turn % 2], sides[!(turn % 2)], &said);
    assert_true(wf_handshake_done(sides[0]) && wf_handshake_done(sides[1]));
    assert_int_equal(wf_handshake_write(sides[0], "hello", 5), 0);
    pass_on(sides[0], sides[1], &said);
    assert_int_equal(wf_handshake_read(sides[1], got, sizeof(got), &status), 5);
    assert_in_range(said, 1, 2048); /* nothing is padded */
    wf_handshake_destroy(sides[0]);
    wf_handshake_destroy(sides[1]);
    wf_handshake_key_destroy(key);
}

int main(void)
{
    static char path[] = "weft_openssl_XXXXXX";
    const struct CMUnitTest tests[] = {cmocka_unit_test(meets_all_the_same)};
    int fd = mkstemp(path);

    /* Read once, when OpenSSL is first used. */
    if (fd < 0 || write(fd, configured, sizeof(configured) - 1) < 0 || close(fd) != 0 ||
        setenv("OPENSSL_CONF", path, 1) != 0)
        return EXIT_FAILURE;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
