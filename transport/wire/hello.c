#include "wire/hello.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "wire/crc.h"

#define CRC_BYTES 4
#define TYPE_AT 4
#define VERSION_AT 5
#define LENGTH_AT 6

#define CHUNK_MIN 64u
#define CHUNK_MAX (1u << 30)
#define HEADER_PAD_MIN 64u
#define HEADER_PAD_MAX 4096u

static const uint8_t magic[4] = {'W', 'E', 'F', 'T'};

/* ------------------------------------------------------------------------------------------- writing */

/* Invariant: used <= room. After `full` nothing more is written. */
struct writer {
    uint8_t *bytes;
    size_t used, room;
    bool full;
};

static void put(struct writer *out, const void *bytes, size_t count)
{
    if (out->full || count > out->room - out->used) {
        out->full = true;
        return;
    }
    memcpy(out->bytes + out->used, bytes, count);
    out->used += count;
}

static void put_u8(struct writer *out, uint8_t value)
{
    put(out, &value, sizeof(value));
}

static void put_u16(struct writer *out, uint16_t value)
{
    value = htole16(value);
    put(out, &value, sizeof(value));
}

static void put_u32(struct writer *out, uint32_t value)
{
    value = htole32(value);
    put(out, &value, sizeof(value));
}

static void put_u64(struct writer *out, uint64_t value)
{
    value = htole64(value);
    put(out, &value, sizeof(value));
}

/* A field of `size` bytes, terminated and zero behind the text: the peer must not see what that memory held before. */
static void put_text(struct writer *out, const char *text, size_t size)
{
    static const uint8_t zeros[256];
    size_t length = strnlen(text, size - 1);

    put(out, text, length);
    put(out, zeros, size - length);
}

static void put_address(struct writer *out, const struct wf_wire_address *address)
{
    uint8_t bytes[16] = {0};

    memcpy(bytes, address->bytes, address->family == 4 ? 4 : sizeof(bytes));
    put_u8(out, address->family);
    put(out, bytes, sizeof(bytes));
    put_u16(out, address->port);
    put_text(out, address->name, sizeof(address->name));
}

static void put_limits(struct writer *out, const struct wf_limits *limits)
{
    put_u32(out, limits->chunk);
    put_u32(out, limits->eager);
    put_u32(out, limits->first_burst);
    put_u32(out, limits->header_pad);
    put_u64(out, limits->unsolicited);
    put_u32(out, limits->list_bytes);
    put_u32(out, limits->connections);
}

static void put_hello(struct writer *out, const struct wf_hello *hello)
{
    put_u16(out, hello->version_min);
    put_u16(out, hello->version_max);
    put_u64(out, hello->features);
    put_u64(out, hello->boot_nonce);
    put_u64(out, hello->session);
    put(out, hello->secret, sizeof(hello->secret));
    put_limits(out, &hello->limits);
    put_text(out, hello->name, sizeof(hello->name));
    put_u8(out, hello->rail_count);
    for (unsigned i = 0; i < hello->rail_count; i++)
        put_address(out, &hello->rails[i]);
}

static void put_join(struct writer *out, const struct wf_join *join)
{
    put_u64(out, join->session);
    put_u32(out, join->channel);
    put_u32(out, join->incarnation);
    put_u16(out, join->channels);
    put_u8(out, join->kind);
    put_u8(out, join->rail);
    put_u16(out, join->domain);
    put_u16(out, join->payload_port);
    put(out, join->nonce, sizeof(join->nonce));
    put_u64(out, join->granted_frames);
    put_u64(out, join->granted_bytes);
}

static void put_challenge(struct writer *out, const struct wf_challenge *challenge)
{
    put(out, challenge->nonce, sizeof(challenge->nonce));
    put(out, challenge->proof, sizeof(challenge->proof));
    put_u64(out, challenge->granted_frames);
    put_u64(out, challenge->granted_bytes);
}

static void put_deny(struct writer *out, const struct wf_deny *deny)
{
    put_u16(out, deny->reason);
    put_text(out, deny->text, sizeof(deny->text));
    put(out, deny->proof, sizeof(deny->proof));
    if (deny->reason == WF_DENY_PORT)
        put_u16(out, deny->port);
}

static void put_greeting(struct writer *out, const struct wf_greeting *greeting)
{
    put_u16(out, greeting->length);
    put(out, greeting->bytes, greeting->length);
}

static void put_body(struct writer *out, const struct wf_setup *setup)
{
    switch (setup->type) {
    case WF_SETUP_HELLO:
        put_hello(out, &setup->hello);
        break;
    case WF_SETUP_JOIN:
        put_join(out, &setup->join);
        break;
    case WF_SETUP_CHALLENGE:
        put_challenge(out, &setup->challenge);
        break;
    case WF_SETUP_PROOF:
        put(out, setup->proof.proof, sizeof(setup->proof.proof));
        break;
    case WF_SETUP_DENY:
        put_deny(out, &setup->deny);
        break;
    case WF_SETUP_GREETING:
        put_greeting(out, &setup->greeting);
        break;
    }
}

/* False for a message that must not be encoded: it would read past its arrays, or no peer would decode it. */
static bool encodable(const struct wf_setup *setup)
{
    if (setup->type < WF_SETUP_HELLO || setup->type > WF_SETUP_GREETING)
        return false;
    if (setup->type == WF_SETUP_GREETING)
        return setup->greeting.length <= WF_GREETING_MAX;
    return setup->type != WF_SETUP_HELLO || setup->hello.rail_count <= WF_RAILS_MAX;
}

int wf_setup_encode(const struct wf_setup *setup, uint8_t *bytes, size_t room)
{
    struct writer out = {.bytes = bytes, .room = room < WF_SETUP_MAX ? room : WF_SETUP_MAX};

    if (!encodable(setup))
        return -EINVAL;
    put(&out, magic, sizeof(magic));
    put_u8(&out, (uint8_t)setup->type);
    put_u8(&out, WF_PROTOCOL_VERSION);
    put_u16(&out, 0);
    put_body(&out, setup);
    if (out.full || out.room - out.used < CRC_BYTES)
        return -EMSGSIZE;

    uint16_t body = htole16((uint16_t)(out.used - WF_SETUP_PREFIX));
    memcpy(bytes + LENGTH_AT, &body, sizeof(body));
    put_u32(&out, wf_crc32c(0, bytes, out.used));
    return (int)out.used;
}

/* ------------------------------------------------------------------------------------------- reading */

/* Invariant: used <= length. After `bad` every value read is 0, and the message is refused. */
struct reader {
    const uint8_t *bytes;
    size_t used, length;
    bool bad;
};

static void get(struct reader *in, void *bytes, size_t count)
{
    if (in->bad || count > in->length - in->used) {
        in->bad = true;
        memset(bytes, 0, count);
        return;
    }
    memcpy(bytes, in->bytes + in->used, count);
    in->used += count;
}

static uint8_t get_u8(struct reader *in)
{
    uint8_t value;
    get(in, &value, sizeof(value));
    return value;
}

static uint16_t get_u16(struct reader *in)
{
    uint16_t value;
    get(in, &value, sizeof(value));
    return le16toh(value);
}

static uint32_t get_u32(struct reader *in)
{
    uint32_t value;
    get(in, &value, sizeof(value));
    return le32toh(value);
}

static uint64_t get_u64(struct reader *in)
{
    uint64_t value;
    get(in, &value, sizeof(value));
    return le64toh(value);
}

static void require(struct reader *in, bool good)
{
    if (!good)
        in->bad = true;
}

/* Text ends up in logs and on terminals: a peer gets no control characters in there, whatever this side's locale. */
static void get_text(struct reader *in, char *text, size_t size)
{
    get(in, text, size);

    size_t length = strnlen(text, size);
    if (length == size) {
        in->bad = true;
        text[0] = '\0';
        return;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < ' ' || text[i] > '~')
            text[i] = '?';
    }
    memset(text + length, 0, size - length);
}

static void get_address(struct reader *in, struct wf_wire_address *address)
{
    address->family = get_u8(in);
    require(in, address->family == 4 || address->family == 6);
    get(in, address->bytes, sizeof(address->bytes));
    if (address->family == 4)
        memset(address->bytes + 4, 0, sizeof(address->bytes) - 4);
    address->port = get_u16(in);
    get_text(in, address->name, sizeof(address->name));
}

static void get_limits(struct reader *in, struct wf_limits *limits)
{
    limits->chunk = get_u32(in);
    limits->eager = get_u32(in);
    limits->first_burst = get_u32(in);
    limits->header_pad = get_u32(in);
    limits->unsolicited = get_u64(in);
    limits->list_bytes = get_u32(in);
    limits->connections = get_u32(in);
    require(in, limits->chunk >= CHUNK_MIN && limits->chunk <= CHUNK_MAX);
    require(in, limits->eager <= CHUNK_MAX); /* it goes out as one frame */
    require(in, limits->header_pad >= HEADER_PAD_MIN && limits->header_pad <= HEADER_PAD_MAX);
}

/* Versions this side cannot speak and features it does not know are for the session to answer, with a DENY. */
static void get_hello(struct reader *in, struct wf_hello *hello)
{
    hello->version_min = get_u16(in);
    hello->version_max = get_u16(in);
    require(in, hello->version_min >= 1 && hello->version_min <= hello->version_max);
    hello->features = get_u64(in);
    hello->boot_nonce = get_u64(in);
    hello->session = get_u64(in);
    get(in, hello->secret, sizeof(hello->secret));
    get_limits(in, &hello->limits);
    get_text(in, hello->name, sizeof(hello->name));
    hello->rail_count = get_u8(in);
    require(in, hello->rail_count <= WF_RAILS_MAX);
    for (unsigned i = 0; !in->bad && i < hello->rail_count; i++)
        get_address(in, &hello->rails[i]);
}

/* Session, channel and incarnation are compared by the session, which knows what exists. */
static void get_join(struct reader *in, struct wf_join *join)
{
    join->session = get_u64(in);
    join->channel = get_u32(in);
    join->incarnation = get_u32(in);
    join->channels = get_u16(in);
    require(in, join->channels >= 1);
    join->kind = get_u8(in);
    require(in, join->kind >= WF_CHANNEL_EXPRESS && join->kind <= WF_CHANNEL_PAYLOAD);
    join->rail = get_u8(in);
    require(in, join->rail < WF_RAILS_MAX);
    join->domain = get_u16(in);
    require(in, join->domain <= WF_STRANDS_MAX && (join->domain > 0) == (join->kind >= WF_CHANNEL_DEVICE));
    join->payload_port = get_u16(in);
    require(in, join->payload_port == 0 || join->kind == WF_CHANNEL_DEVICE);
    get(in, join->nonce, sizeof(join->nonce));
    join->granted_frames = get_u64(in);
    join->granted_bytes = get_u64(in);
}

static void get_challenge(struct reader *in, struct wf_challenge *challenge)
{
    get(in, challenge->nonce, sizeof(challenge->nonce));
    get(in, challenge->proof, sizeof(challenge->proof));
    challenge->granted_frames = get_u64(in);
    challenge->granted_bytes = get_u64(in);
}

/* A reason that this side does not know is a refusal all the same, and its text says why. */
static void get_deny(struct reader *in, struct wf_deny *deny)
{
    deny->reason = get_u16(in);
    get_text(in, deny->text, sizeof(deny->text));
    get(in, deny->proof, sizeof(deny->proof));
    deny->port = deny->reason == WF_DENY_PORT ? get_u16(in) : 0;
    require(in, (deny->port > 0) == (deny->reason == WF_DENY_PORT));
}

/* Bytes of the user's: any, and for the user to check. */
static void get_greeting(struct reader *in, struct wf_greeting *greeting)
{
    greeting->length = get_u16(in);
    require(in, greeting->length <= WF_GREETING_MAX);
    if (!in->bad)
        get(in, greeting->bytes, greeting->length);
}

static void get_body(struct reader *in, struct wf_setup *setup)
{
    switch (setup->type) {
    case WF_SETUP_HELLO:
        get_hello(in, &setup->hello);
        break;
    case WF_SETUP_JOIN:
        get_join(in, &setup->join);
        break;
    case WF_SETUP_CHALLENGE:
        get_challenge(in, &setup->challenge);
        break;
    case WF_SETUP_PROOF:
        get(in, setup->proof.proof, sizeof(setup->proof.proof));
        break;
    case WF_SETUP_DENY:
        get_deny(in, &setup->deny);
        break;
    case WF_SETUP_GREETING:
        get_greeting(in, &setup->greeting);
        break;
    default:
        in->bad = true;
    }
}

int wf_setup_length(const uint8_t prefix[WF_SETUP_PREFIX])
{
    uint16_t body;

    if (memcmp(prefix, magic, sizeof(magic)) != 0)
        return -EPROTO;
    if (prefix[VERSION_AT] != WF_PROTOCOL_VERSION)
        return -EPROTONOSUPPORT;
    memcpy(&body, prefix + LENGTH_AT, sizeof(body));
    body = le16toh(body);
    if (body > WF_SETUP_MAX - WF_SETUP_PREFIX - CRC_BYTES)
        return -EMSGSIZE;
    return WF_SETUP_PREFIX + body + CRC_BYTES;
}

int wf_setup_decode(const uint8_t *bytes, size_t length, struct wf_setup *setup)
{
    uint32_t crc;

    if (length < WF_SETUP_PREFIX + CRC_BYTES)
        return -EPROTO;
    int whole = wf_setup_length(bytes);
    if (whole < 0 || (size_t)whole != length)
        return -EPROTO;
    memcpy(&crc, bytes + length - CRC_BYTES, sizeof(crc));
    if (le32toh(crc) != wf_crc32c(0, bytes, length - CRC_BYTES))
        return -EBADMSG;

    struct reader in = {.bytes = bytes, .used = WF_SETUP_PREFIX, .length = length - CRC_BYTES};
    struct wf_setup seen = {.type = (enum wf_setup_type)bytes[TYPE_AT]};
    get_body(&in, &seen);
    if (in.bad || in.used != in.length)
        return -EPROTO;
    *setup = seen;
    return 0;
}

const char *wf_deny_name(uint16_t reason)
{
    static const char *const names[] = {
        [WF_DENY_VERSION] = "no common protocol version",
        [WF_DENY_BUSY] = "too many peers",
        [WF_DENY_SESSION] = "unknown session",
        [WF_DENY_PROOF] = "wrong proof",
        [WF_DENY_LIMIT] = "a value out of limits",
        [WF_DENY_CLOSING] = "closing",
        [WF_DENY_RETIRED] = "the rail is retired",
        [WF_DENY_ENCRYPT] = "encryption on one side alone",
        [WF_DENY_KEY] = "no key",
        [WF_DENY_PORT] = "another port",
    };

    if (reason >= sizeof(names) / sizeof(names[0]) || !names[reason])
        return "unknown reason";
    return names[reason];
}
