#include "wire/seal.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "wire/derive.h"

#define LABEL_BYTES 16
#define ANSWER_BYTES (WF_NONCE_BYTES + 8 + 8)

/* They tell one use of the secret from another. */
static const char proof_label[LABEL_BYTES] = "weft channel v1";
static const char refusal_label[LABEL_BYTES] = "weft refusal v1";
static const char keys_label[LABEL_BYTES] = "weft records v1";

_Static_assert(WF_PROOF_BYTES == 32, "the proof is the whole output of SHA-256");

/* What the acceptor has answered to a JOIN, as it travels. */
struct answer {
    uint8_t bytes[ANSWER_BYTES];
    size_t length;
};

/* CHALLENGE, without the proof: nonce | granted frames u64 | granted bytes u64 */
static struct answer answer_of(const struct wf_challenge *challenge)
{
    struct answer answer = {.length = ANSWER_BYTES};
    uint64_t granted[] = {htole64(challenge->granted_frames), htole64(challenge->granted_bytes)};

    memcpy(answer.bytes, challenge->nonce, WF_NONCE_BYTES);
    memcpy(answer.bytes + WF_NONCE_BYTES, granted, sizeof(granted));
    return answer;
}

/* label | role u8 | the acceptor's answer | the JOIN message exactly as it travels: a field that is ever added to it is
 * under the proof without a change here. Returns the length or a negative errno. */
static int transcript(const char label[LABEL_BYTES], enum wf_role role, const struct wf_join *join,
                      const struct answer *answer, uint8_t bytes[WF_SETUP_MAX])
{
    struct wf_setup setup = {.type = WF_SETUP_JOIN, .join = *join};
    size_t used = 0;

    memcpy(bytes, label, LABEL_BYTES);
    used += LABEL_BYTES;
    bytes[used++] = (uint8_t)role;
    memcpy(bytes + used, answer->bytes, answer->length);
    used += answer->length;

    int joined = wf_setup_encode(&setup, bytes + used, WF_SETUP_MAX - used);
    return joined < 0 ? joined : (int)used + joined;
}

static int prove(const uint8_t secret[WF_SECRET_BYTES], const uint8_t *bytes, int length, uint8_t proof[WF_PROOF_BYTES])
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned int size = 0;

    if (length < 0)
        return -EIO;
    if (!HMAC(EVP_sha256(), secret, WF_SECRET_BYTES, bytes, (size_t)length, digest, &size) || size != WF_PROOF_BYTES)
        return -EIO;
    memcpy(proof, digest, WF_PROOF_BYTES);
    return 0;
}

int wf_seal_prove(const uint8_t secret[WF_SECRET_BYTES], enum wf_role role, const struct wf_join *join,
                  const struct wf_challenge *challenge, uint8_t proof[WF_PROOF_BYTES])
{
    uint8_t bytes[WF_SETUP_MAX];
    struct answer answer = answer_of(challenge);

    return prove(secret, bytes, transcript(proof_label, role, join, &answer, bytes), proof);
}

int wf_seal_prove_refusal(const uint8_t secret[WF_SECRET_BYTES], const struct wf_join *join, uint16_t reason,
                          uint8_t proof[WF_PROOF_BYTES])
{
    uint8_t bytes[WF_SETUP_MAX];
    struct answer answer = {.bytes = {(uint8_t)reason, (uint8_t)(reason >> 8)}, .length = sizeof(reason)};

    return prove(secret, bytes, transcript(refusal_label, WF_ROLE_ACCEPTOR, join, &answer, bytes), proof);
}

int wf_seal_key(const uint8_t secret[WF_SECRET_BYTES], enum wf_role sender, const struct wf_join *join,
                const struct wf_challenge *challenge, struct wf_record_key *key)
{
    uint8_t bytes[WF_SETUP_MAX];
    struct answer answer = answer_of(challenge);
    struct wf_record_key derived;

    int length = transcript(keys_label, sender, join, &answer, bytes);
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
