#include "wire/record.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "wire/crc.h"
#include "wire/derive.h"

const struct wf_record_limits wf_record_limits = {.records = UINT64_C(1) << 24, .bytes = UINT64_C(1) << 36};

static const char next_label[] = "weft next key";

_Static_assert(WF_RECORD_MAX <= INT_MAX, "OpenSSL counts in int");

struct wf_records {
    struct wf_record_limits limits;
    struct wf_record_key key;
    EVP_CIPHER_CTX *cipher; /* keyed with `key` */
    uint64_t count, bytes;  /* under this key */
    uint32_t generation;    /* of keys */
    bool seals;
    int broken; /* the error that everything from here on ends in; 0: none */
};

/* The cipher takes the key in force. */
static int use_key(struct wf_records *records)
{
    records->count = records->bytes = 0;
    int good = EVP_CipherInit_ex(records->cipher, EVP_aes_256_gcm(), NULL, records->key.key, NULL, records->seals);
    return good == 1 ? 0 : -EIO;
}

struct wf_records *wf_records_create(const struct wf_record_key *key, bool seals, const struct wf_record_limits *limits)
{
    struct wf_records *records = calloc(1, sizeof(*records));

    if (!records)
        return NULL;
    records->limits = *limits;
    records->key = *key;
    records->seals = seals;
    records->cipher = EVP_CIPHER_CTX_new();
    if (!records->cipher || use_key(records) < 0) {
        wf_records_destroy(records);
        return NULL;
    }
    return records;
}

void wf_records_destroy(struct wf_records *records)
{
    if (!records)
        return;
    EVP_CIPHER_CTX_free(records->cipher);
    OPENSSL_cleanse(records, sizeof(*records));
    free(records);
}

static int change_key(struct wf_records *records)
{
    struct wf_record_key next;

    if (records->generation == UINT32_MAX)
        return -EOVERFLOW;
    int result = wf_derive(&records->key, sizeof(records->key), next_label, sizeof(next_label), &next, sizeof(next));
    if (result == 0) {
        records->key = next;
        records->generation += 1;
        result = use_key(records);
    }
    OPENSSL_cleanse(&next, sizeof(next));
    return result;
}

/* The cipher is ready for the next record, its length told. */
static int begin(struct wf_records *records, size_t bytes, const uint8_t header[WF_RECORD_HEADER])
{
    uint8_t nonce[WF_RECORD_IV_BYTES], number[8];
    int ignored;

    if (records->count == records->limits.records || bytes > records->limits.bytes - records->bytes) {
        int result = change_key(records);
        if (result < 0)
            return result;
    }
    if (records->count == UINT64_MAX)
        return -EOVERFLOW;
    for (size_t i = 0; i < sizeof(number); i++)
        number[i] = (uint8_t)(records->count >> (8 * (7 - i)));
    memcpy(nonce, records->key.iv, sizeof(nonce));
    for (size_t i = 0; i < sizeof(number); i++)
        nonce[sizeof(nonce) - sizeof(number) + i] ^= number[i];
    records->count += 1;
    records->bytes += bytes;
    if (EVP_CipherInit_ex(records->cipher, NULL, NULL, NULL, nonce, -1) != 1 ||
        EVP_CipherUpdate(records->cipher, NULL, &ignored, header, WF_RECORD_HEADER) != 1)
        return -EIO;
    return 0;
}

static int update(struct wf_records *records, uint8_t *to, const uint8_t *from, size_t bytes)
{
    int done;

    return EVP_CipherUpdate(records->cipher, to, &done, from, (int)bytes) == 1 && (size_t)done == bytes ? 0 : -EIO;
}

static void put_header(size_t bytes, uint8_t header[WF_RECORD_HEADER])
{
    uint32_t length = htole32((uint32_t)bytes), check = htole32(wf_crc32c(0, &length, sizeof(length)));

    memcpy(header, &length, sizeof(length));
    memcpy(header + sizeof(length), &check, sizeof(check));
}

static int seal(struct wf_records *records, const struct iovec *iov, size_t bytes, uint8_t *out)
{
    uint8_t *to = out + WF_RECORD_HEADER;
    int none;

    put_header(bytes, out);
    int result = begin(records, bytes, out);
    for (; result == 0 && bytes > 0; iov++) {
        size_t piece = iov->iov_len < bytes ? iov->iov_len : bytes;
        if (piece > 0)
            result = update(records, to, iov->iov_base, piece);
        to += piece;
        bytes -= piece;
    }
    if (result < 0)
        return result;
    if (EVP_CipherFinal_ex(records->cipher, to, &none) != 1 ||
        EVP_CIPHER_CTX_ctrl(records->cipher, EVP_CTRL_GCM_GET_TAG, WF_RECORD_TAG, to) != 1)
        return -EIO;
    return 0;
}

int wf_records_seal(struct wf_records *records, const struct iovec *iov, size_t bytes, uint8_t *out)
{
    if (bytes == 0 || bytes > WF_RECORD_MAX)
        return -EINVAL;
    if (records->broken == 0)
        records->broken = seal(records, iov, bytes, out);
    return records->broken;
}

int wf_record_length(const uint8_t header[WF_RECORD_HEADER])
{
    uint32_t length, check;

    memcpy(&length, header, sizeof(length));
    memcpy(&check, header + sizeof(length), sizeof(check));
    if (le32toh(check) != wf_crc32c(0, &length, sizeof(length)))
        return -EBADMSG;
    length = le32toh(length);
    return length >= 1 && length <= WF_RECORD_MAX ? (int)length : -EBADMSG;
}

static int unseal(struct wf_records *records, const uint8_t *record, size_t bytes, const struct iovec *iov)
{
    const uint8_t *from = record + WF_RECORD_HEADER;
    uint8_t tag[WF_RECORD_TAG], none_bytes[WF_RECORD_TAG];
    int none;

    /* Before the bytes, which may be decrypted in place. */
    memcpy(tag, from + bytes, sizeof(tag));
    int result = begin(records, bytes, record);
    for (; result == 0 && bytes > 0; iov++) {
        size_t piece = iov->iov_len < bytes ? iov->iov_len : bytes;
        if (piece > 0)
            result = update(records, iov->iov_base, from, piece);
        from += piece;
        bytes -= piece;
    }
    if (result < 0)
        return result;
    if (EVP_CIPHER_CTX_ctrl(records->cipher, EVP_CTRL_GCM_SET_TAG, WF_RECORD_TAG, tag) != 1)
        return -EIO;
    return EVP_CipherFinal_ex(records->cipher, none_bytes, &none) == 1 ? 0 : -EBADMSG;
}

int wf_records_open(struct wf_records *records, const uint8_t *record, size_t bytes, const struct iovec *iov)
{
    if (records->broken == 0 && (bytes == 0 || wf_record_length(record) != (int)bytes))
        records->broken = -EBADMSG;
    if (records->broken == 0)
        records->broken = unseal(records, record, bytes, iov);
    return records->broken;
}
