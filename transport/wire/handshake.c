#include "wire/handshake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#define ALERT(level_and_description) ((level_and_description)&0xff)

#define FIRST_LENGTH_AT (WF_HANDSHAKE_PREFIX + 1) /* three bytes, the length of the first message, big-endian */
#define FIRST_MOST 4096
#define SECURITY_LEVEL 2 /* 112 bits; what is offered has 128 and more, and a higher one would refuse it */

/* The one suite: its hash is that of the key, so that it decides which of them a peer may offer. */
static const char suite_name[] = "TLS_AES_256_GCM_SHA384";
static const unsigned char suite_number[2] = {0x13, 0x02};

/* Every key has the same name: a name made of the key would show which hosts share a key. */
static const unsigned char identity[] = {'w', 'e', 'f', 't'};

struct wf_handshake_key {
    SSL_CTX *tls;
    uint8_t bytes[WF_KEY_BYTES];
};

struct wf_handshake {
    SSL *tls;
    enum wf_role role;
    size_t fed;
    bool done;
    bool offered;            /* acceptor: the dialer speaks of a key of our name */
    bool refused;            /* the other side's first word is an alert */
    int alert;               /* the last one that came in; -1: none */
    struct wf_status status; /* code 0: nothing has gone wrong */
};

/* --- the key --- */

static SSL_SESSION *session_of(SSL *tls)
{
    const struct wf_handshake_key *key = SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls));
    const SSL_CIPHER *suite = SSL_CIPHER_find(tls, suite_number);
    SSL_SESSION *session = SSL_SESSION_new();

    if (suite && session && SSL_SESSION_set1_master_key(session, key->bytes, sizeof(key->bytes)) &&
        SSL_SESSION_set_cipher(session, suite) && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* The dialer's: OpenSSL asks for the key to offer. `hash` is NULL before the server's first answer; only one is used.
 */
static int offer_key(SSL *tls, const EVP_MD *hash, const unsigned char **id, size_t *length, SSL_SESSION **session)
{
    (void)hash;
    *id = identity;
    *length = sizeof(identity);
    *session = session_of(tls);
    return *session != NULL;
}

/* The acceptor's: asked for the key of that name. Where there is none, TLS wants a certificate, which we have not. */
static int find_key(SSL *tls, const unsigned char *id, size_t length, SSL_SESSION **session)
{
    struct wf_handshake *handshake = SSL_get_app_data(tls);

    *session = NULL;
    if (length != sizeof(identity) || memcmp(id, identity, length) != 0)
        return 1;
    handshake->offered = true;
    *session = session_of(tls);
    return *session != NULL;
}

static void note_alert(const SSL *tls, int where, int value)
{
    struct wf_handshake *handshake = SSL_get_app_data(tls);

    if ((where & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT)
        handshake->alert = ALERT(value);
}

/* Everything that a file of the system's could have chosen is chosen here. */
static bool set_up(SSL_CTX *tls)
{
    (void)SSL_CTX_clear_options(tls, SSL_CTX_get_options(tls));
    (void)SSL_CTX_set_options(tls, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    (void)SSL_CTX_set_session_cache_mode(tls, SSL_SESS_CACHE_OFF);
    (void)SSL_CTX_set_mode(tls, SSL_MODE_RELEASE_BUFFERS);
    (void)SSL_CTX_set_max_cert_list(tls, WF_HANDSHAKE_MAX);
    (void)SSL_CTX_set_max_send_fragment(tls, FIRST_MOST);
    SSL_CTX_set_security_level(tls, SECURITY_LEVEL);
    SSL_CTX_set_psk_use_session_callback(tls, offer_key);
    SSL_CTX_set_psk_find_session_callback(tls, find_key);
    SSL_CTX_set_info_callback(tls, (void (*)(const SSL *, int, int))note_alert);
    return SSL_CTX_set_min_proto_version(tls, TLS1_3_VERSION) && SSL_CTX_set_max_proto_version(tls, TLS1_3_VERSION) &&
           SSL_CTX_set_ciphersuites(tls, suite_name) && SSL_CTX_set_num_tickets(tls, 0) &&
           SSL_CTX_set_max_early_data(tls, 0) && SSL_CTX_set_recv_max_early_data(tls, 0) &&
           SSL_CTX_set_block_padding(tls, 0) && SSL_CTX_set1_groups_list(tls, "X25519:P-256");
}

int wf_handshake_key_create(const uint8_t key[WF_KEY_BYTES], struct wf_handshake_key **out, struct wf_status *status)
{
    struct wf_handshake_key *made = calloc(1, sizeof(*made));

    if (!made)
        return wf_fail(status, -ENOMEM, "no memory for a key");
    memcpy(made->bytes, key, sizeof(made->bytes));
    ERR_clear_error();
    made->tls = SSL_CTX_new(TLS_method());
    if (!made->tls || !set_up(made->tls)) {
        const char *why = ERR_reason_error_string(ERR_peek_error());
        int rc = wf_fail(status, -EIO, "OpenSSL cannot do TLS 1.3 with %s: %s", suite_name, why ? why : "no memory");
        ERR_clear_error();
        wf_handshake_key_destroy(made);
        return rc;
    }
    (void)SSL_CTX_set_app_data(made->tls, made);
    *out = made;
    return 0;
}

void wf_handshake_key_destroy(struct wf_handshake_key *key)
{
    if (!key)
        return;
    SSL_CTX_free(key->tls);
    OPENSSL_cleanse(key->bytes, sizeof(key->bytes));
    free(key);
}

/* --- what went wrong --- */

static int refuse(struct wf_handshake *handshake, int code, const char *text)
{
    return wf_fail(&handshake->status, code, "%s", text);
}

/* What the other side's last alert, or its key, tells the dialer. */
static int explain_to_dialer(struct wf_handshake *handshake, int reason)
{
    if (handshake->alert == SSL_AD_ILLEGAL_PARAMETER || handshake->alert == SSL_AD_DECRYPT_ERROR)
        return refuse(handshake, -EACCES, "refused: another key than ours (setting key_file)");
    if (handshake->alert == SSL_AD_HANDSHAKE_FAILURE || handshake->alert == SSL_AD_MISSING_EXTENSION ||
        handshake->alert == SSL_AD_PROTOCOL_VERSION)
        return refuse(handshake, -EACCES, "refused: it speaks TLS, but knows nothing of a key: no weft peer");
    if (handshake->alert >= 0)
        return wf_fail(&handshake->status, -EACCES, "refused, and does not say why (TLS alert %d)", handshake->alert);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return refuse(handshake, -EACCES, "has a certificate, and not our key (setting key_file)");
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        return refuse(handshake, -EACCES, "speaks an older TLS, and has not our key: no weft peer");
    return refuse(handshake, -EPROTO, "answers with TLS that makes no sense here");
}

static int explain_to_acceptor(struct wf_handshake *handshake, int reason)
{
    if (reason == SSL_R_BINDER_DOES_NOT_VERIFY)
        return refuse(handshake, -EACCES, "another key than ours (setting key_file)");
    if (handshake->alert >= 0)
        return wf_fail(&handshake->status, -EACCES, "gave up (TLS alert %d): it takes us for somebody else",
                       handshake->alert);
    if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        return refuse(handshake, -EPROTO, "speaks an older TLS: no weft peer");
    if (reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC || reason == SSL_R_DIGEST_CHECK_FAILED)
        return refuse(handshake, -EACCES, "its answer belongs to another conversation, or was changed on the way");
    if (!handshake->offered && (reason == SSL_R_NO_SHARED_CIPHER || reason == SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM ||
                                reason == SSL_R_NO_SUITABLE_KEY_SHARE || reason == SSL_R_NO_CERTIFICATE_SET))
        return refuse(handshake, -EACCES, "speaks TLS, but offers no key: no weft peer");
    return refuse(handshake, -EPROTO, "speaks TLS that makes no sense here");
}

/* OpenSSL has said no. */
static int explain(struct wf_handshake *handshake)
{
    unsigned long error = ERR_peek_error();

    ERR_clear_error();
    if (ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE)
        return refuse(handshake, -ENOMEM, "no memory for a handshake");
    return handshake->role == WF_ROLE_DIALER ? explain_to_dialer(handshake, ERR_GET_REASON(error))
                                             : explain_to_acceptor(handshake, ERR_GET_REASON(error));
}

static int failed(const struct wf_handshake *handshake, struct wf_status *status)
{
    if (handshake->status.code < 0 && status)
        *status = handshake->status;
    return handshake->status.code;
}

/* OpenSSL allocates as many bytes as a first message claims to have, so the claim is checked before: Weft's first
 * message is in one record, and short. */
static bool plausible(struct wf_handshake *handshake, const uint8_t *bytes, size_t length)
{
    const uint8_t kind = handshake->role == WF_ROLE_DIALER ? SSL3_MT_SERVER_HELLO : SSL3_MT_CLIENT_HELLO;

    for (size_t i = 0, at = handshake->fed; i < length && at < FIRST_LENGTH_AT + 2; i++, at++) {
        handshake->refused = at == 0 ? bytes[i] == WF_HANDSHAKE_ALERT : handshake->refused;
        if (handshake->refused && handshake->role == WF_ROLE_DIALER)
            continue;
        if ((at == 0 && bytes[i] != WF_HANDSHAKE_HELLO) || (at == WF_HANDSHAKE_PREFIX && bytes[i] != kind) ||
            (at == FIRST_LENGTH_AT && bytes[i] != 0) || (at == FIRST_LENGTH_AT + 1 && bytes[i] >= FIRST_MOST >> 8))
            return false;
    }
    return true;
}

/* --- one conversation --- */

/* Also drops bytes that OpenSSL still wants to send: nothing may follow. */
static void finish(struct wf_handshake *handshake)
{
    SSL *tls = handshake->tls;

    if (SSL_session_reused(tls) && !SSL_get0_peer_certificate(tls) && SSL_version(tls) == TLS1_3_VERSION) {
        handshake->done = true;
        return;
    }
    (void)BIO_reset(SSL_get_wbio(tls));
    (void)refuse(handshake, -EACCES, "has not shown that it holds our key (setting key_file)");
}

static void advance(struct wf_handshake *handshake)
{
    ERR_clear_error();
    int result = SSL_do_handshake(handshake->tls);
    int error = SSL_get_error(handshake->tls, result);
    if (result == 1)
        finish(handshake);
    else if (error != SSL_ERROR_WANT_READ)
        (void)explain(handshake);
}

static SSL *conversation(const struct wf_handshake_key *key, enum wf_role role)
{
    SSL *tls = SSL_new(key->tls);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());

    if (!tls || !in || !out) {
        SSL_free(tls);
        BIO_free(in);
        BIO_free(out);
        ERR_clear_error();
        return NULL;
    }
    SSL_set_bio(tls, in, out);
    if (role == WF_ROLE_DIALER) {
        SSL_set_verify(tls, SSL_VERIFY_PEER, NULL); /* against a store that is empty */
        SSL_set_connect_state(tls);
    } else {
        SSL_set_verify(tls, SSL_VERIFY_NONE, NULL); /* a session that rests on the key has no certificate to ask for */
        SSL_set_accept_state(tls);
    }
    return tls;
}

int wf_handshake_create(const struct wf_handshake_key *key, enum wf_role role, struct wf_handshake **out)
{
    struct wf_handshake *handshake = calloc(1, sizeof(*handshake));

    if (!handshake)
        return -ENOMEM;
    handshake->role = role;
    handshake->alert = -1;
    handshake->tls = conversation(key, role);
    if (handshake->tls) {
        (void)SSL_set_app_data(handshake->tls, handshake);
        advance(handshake); /* the dialer's first words */
    }
    if (!handshake->tls || handshake->status.code < 0) {
        wf_handshake_destroy(handshake);
        return -ENOMEM;
    }
    *out = handshake;
    return 0;
}

void wf_handshake_destroy(struct wf_handshake *handshake)
{
    if (!handshake)
        return;
    SSL_free(handshake->tls);
    free(handshake);
}

int wf_handshake_feed(struct wf_handshake *handshake, const void *bytes, size_t length, struct wf_status *status)
{
    if (handshake->status.code < 0)
        return failed(handshake, status);
    if (length > WF_HANDSHAKE_MAX - handshake->fed) {
        (void)wf_fail(&handshake->status, -EMSGSIZE, "says more than %d bytes before it is let in", WF_HANDSHAKE_MAX);
        return failed(handshake, status);
    }
    bool believable = plausible(handshake, bytes, length);
    handshake->fed += length;
    if (!believable)
        (void)refuse(handshake, -EPROTO, "speaks TLS that makes no sense here");
    else if (length > 0 && BIO_write(SSL_get_rbio(handshake->tls), bytes, (int)length) != (int)length)
        (void)refuse(handshake, -ENOMEM, "no memory for a handshake");
    else if (!handshake->done)
        advance(handshake);
    return failed(handshake, status);
}

size_t wf_handshake_pull(struct wf_handshake *handshake, void *bytes, size_t room)
{
    int length = BIO_read(SSL_get_wbio(handshake->tls), bytes, room < WF_HANDSHAKE_MAX ? (int)room : WF_HANDSHAKE_MAX);

    return length > 0 ? (size_t)length : 0;
}

bool wf_handshake_done(const struct wf_handshake *handshake)
{
    return handshake->done && handshake->status.code == 0;
}

int wf_handshake_write(struct wf_handshake *handshake, const void *bytes, size_t length)
{
    size_t written = 0;

    if (!wf_handshake_done(handshake) || length == 0 || length > WF_HANDSHAKE_MAX)
        return -EINVAL;
    ERR_clear_error();
    if (SSL_write_ex(handshake->tls, bytes, length, &written) && written == length)
        return 0;
    ERR_clear_error();
    return -EIO;
}

int wf_handshake_read(struct wf_handshake *handshake, void *bytes, size_t room, struct wf_status *status)
{
    size_t got = 0;

    if (handshake->status.code < 0)
        return failed(handshake, status);
    if (!handshake->done || room == 0)
        return 0;
    ERR_clear_error();
    if (SSL_read_ex(handshake->tls, bytes, room < WF_HANDSHAKE_MAX ? room : WF_HANDSHAKE_MAX, &got))
        return (int)got;
    int error = SSL_get_error(handshake->tls, 0);
    if (error == SSL_ERROR_WANT_READ)
        return 0;
    if (error == SSL_ERROR_ZERO_RETURN)
        (void)refuse(handshake, -ECONNRESET, "ended the conversation");
    else
        (void)explain(handshake);
    return failed(handshake, status);
}

int wf_handshake_export(struct wf_handshake *handshake, const char *label, const void *context, size_t context_length,
                        uint8_t *out, size_t length)
{
    if (!wf_handshake_done(handshake))
        return -EIO;
    ERR_clear_error();
    int made =
        SSL_export_keying_material(handshake->tls, out, length, label, strlen(label), context, context_length, 1);
    ERR_clear_error();
    return made == 1 ? 0 : -EIO;
}

int wf_handshake_record(const uint8_t prefix[WF_HANDSHAKE_PREFIX], size_t most)
{
    size_t length = WF_HANDSHAKE_PREFIX + ((size_t)prefix[3] << 8 | prefix[4]);

    return prefix[0] == WF_HANDSHAKE_HELLO && prefix[1] == 3 && length <= most ? (int)length : -EPROTO;
}
