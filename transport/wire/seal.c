#include "wire/seal.h"

#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "wire/derive.h"

#define LABEL_BYTES 16

/* They tell one use of the secret from another. */
static const char proof_label[LABEL_BYTES] = "weft channel v1";
static const char keys_label[LABEL_BYTES] = "weft records v1";

_Static_assert(WF_PROOF_BYTES == 32, "the proof is the whole output of SHA-256");

/* label | role u8 | acceptor's nonce | the JOIN message exactly as it travels: a field that is ever added to it is
 * under the proof without a change here. Returns the length or a negative errno. */
static int transcript(const char label[LABEL_BYTES], enum wf_role role, const struct wf_join *join,
                      const uint8_t acceptor_nonce[WF_NONCE_BYTES], uint8_t bytes[WF_SETUP_MAX])
{
    struct wf_setup setup = {.type = WF_SETUP_JOIN, .join = *join};
    size_t used = 0;

    memcpy(bytes, label, LABEL_BYTES);
    used += LABEL_BYTES;
    bytes[used++] = (uint8_t)role;
    memcpy(bytes + used, acceptor_nonce, WF_NONCE_BYTES);
    used += WF_NONCE_BYTES;

    int joined = wf_setup_encode(&setup, bytes + used, WF_SETUP_MAX - used);
    return joined < 0 ? joined : (int)used + joined;
}

int wf_seal_prove(const uint8_t secret[WF_SECRET_BYTES], enum wf_role role, const struct wf_join *join,
                  const uint8_t acceptor_nonce[WF_NONCE_BYTES], uint8_t proof[WF_PROOF_BYTES])
{
    uint8_t bytes[WF_SETUP_MAX], digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;

    int length = transcript(proof_label, role, join, acceptor_nonce, bytes);
    if (length < 0)
        return -EIO;
    if (!HMAC(EVP_sha256(), secret, WF_SECRET_BYTES, bytes, (size_t)length, digest, &size) || size != WF_PROOF_BYTES)
        return -EIO;
    memcpy(proof, digest, WF_PROOF_BYTES);
    return 0;
}

int wf_seal_key(const uint8_t secret[WF_SECRET_BYTES], enum wf_role sender, const struct wf_join *join,
                const uint8_t acceptor_nonce[WF_NONCE_BYTES], struct wf_record_key *key)
{
    uint8_t bytes[WF_SETUP_MAX];
    struct wf_record_key derived;

    int length = transcript(keys_label, sender, join, acceptor_nonce, bytes);
    if (length < 0 || wf_derive(secret, WF_SECRET_BYTES, bytes, (size_t)length, &derived, sizeof(derived)) < 0)
        return -EIO;
    *key = derived;
    OPENSSL_cleanse(&derived, sizeof(derived));
    return 0;
}

bool wf_seal_equal(const uint8_t a[WF_PROOF_BYTES], const uint8_t b[WF_PROOF_BYTES])
{
    return CRYPTO_memcmp(a, b, WF_PROOF_BYTES) == 0;
}
