#include "wire/derive.h"

#include <errno.h>

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

/* The interface takes what it only reads as if it wrote it. */
static void *unconst(const void *bytes)
{
    union {
        const void *in;
        void *out;
    } both = {.in = bytes};
    return both.out;
}

int wf_derive(const void *secret, size_t secret_bytes, const void *info, size_t info_bytes, void *out, size_t out_bytes)
{
    static char digest[] = "SHA384";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, unconst(secret), secret_bytes),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, unconst(info), info_bytes),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *context = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    int good = context && EVP_KDF_derive(context, out, out_bytes, parameters) == 1;

    EVP_KDF_CTX_free(context);
    EVP_KDF_free(kdf);
    return good ? 0 : -EIO;
}
