#include "wire/frame.h"

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "wire/crc.h"

/* The header as it lies on the wire, each field little-endian. */
struct image {
    uint8_t type, flags;
    uint16_t data_off;
    uint32_t conn;
    uint64_t msg, offset, total;
    uint32_t length, payload_crc;
    uint64_t key, base;
    uint32_t ack, header_crc;
};

#define CRC_AT offsetof(struct image, header_crc)

_Static_assert(sizeof(struct image) == WF_FRAME_BYTES, "the fields fill the header without padding");
_Static_assert(CRC_AT == WF_CRC_HEADER && offsetof(struct image, key) == 40, "the layout written in frame.h");

struct kind {
    const char *name; /* NULL: no such type */
    uint8_t flags;    /* flags that the type may carry */
};

/*
 * PEER stands where a frame can speak about a number of its receiver: grants, refusals and what belongs to a READ
 * (of DATA only the reply: checked below). RESENT belongs to what is retained. An OFFER never carries WRITE, which
 * needs no grant.
 */
static const struct kind kinds[] = {
    [WF_DATA] = {"DATA", 0xff},
    [WF_OFFER] = {"OFFER", WF_FLAG_TAGGED | WF_FLAG_NOTIFY | WF_FLAG_LIST | WF_FLAG_RESENT},
    [WF_GRANT] = {"GRANT", WF_FLAG_PEER | WF_FLAG_RESENT},
    [WF_READ] = {"READ", WF_FLAG_NOTIFY | WF_FLAG_LIST | WF_FLAG_PEER | WF_FLAG_RESENT},
    [WF_REFUSE] = {"REFUSE", WF_FLAG_PEER | WF_FLAG_RESENT},
    [WF_OPEN] = {"OPEN", WF_FLAG_RESENT},
    [WF_OPENED] = {"OPENED", WF_FLAG_RESENT},
    [WF_CLOSE] = {"CLOSE", WF_FLAG_RESENT},
    [WF_CLOSED] = {"CLOSED", WF_FLAG_RESENT},
    [WF_DOWN] = {"DOWN", WF_FLAG_RESENT},
    [WF_STATE] = {"STATE", 0},
    [WF_CREDIT] = {"CREDIT", 0},
    [WF_PING] = {"PING", 0},
    [WF_PONG] = {"PONG", 0},
    [WF_BYE] = {"BYE", 0},
    [WF_TRIAL] = {"TRIAL", 0},
};

#define KIND_COUNT (sizeof(kinds) / sizeof(kinds[0]))

const char *wf_frame_name(uint8_t type)
{
    return type < KIND_COUNT && kinds[type].name ? kinds[type].name : "?";
}

void wf_frame_encode(const struct wf_frame *frame, uint8_t bytes[WF_FRAME_BYTES])
{
    struct image image = {
        .type = frame->type,
        .flags = frame->flags,
        .data_off = htole16(frame->data_off),
        .conn = htole32(frame->conn),
        .msg = htole64(frame->msg),
        .offset = htole64(frame->offset),
        .total = htole64(frame->total),
        .length = htole32(frame->length),
        .payload_crc = htole32(frame->payload_crc),
        .key = htole64(frame->key),
        .base = htole64(frame->base),
        .ack = htole32(frame->ack),
    };

    image.header_crc = htole32(wf_crc32c_header(&image));
    memcpy(bytes, &image, sizeof(image));
}

static void unpack(const struct image *image, struct wf_frame *frame)
{
    *frame = (struct wf_frame){
        .type = image->type,
        .flags = image->flags,
        .data_off = le16toh(image->data_off),
        .conn = le32toh(image->conn),
        .msg = le64toh(image->msg),
        .offset = le64toh(image->offset),
        .total = le64toh(image->total),
        .length = le32toh(image->length),
        .payload_crc = le32toh(image->payload_crc),
        .key = le64toh(image->key),
        .base = le64toh(image->base),
        .ack = le32toh(image->ack),
    };
}

static bool flags_known(const struct wf_frame *frame)
{
    uint8_t flags = frame->flags;

    if (flags & ~kinds[frame->type].flags)
        return false;
    if (frame->type != WF_DATA)
        return true;
    /* A writer numbers its own messages; only the answer to a READ travels under a number of the other side. */
    if (flags & WF_FLAG_READ_REPLY)
        return !(flags & WF_FLAG_WRITE);
    return !(flags & WF_FLAG_PEER);
}

static bool payload_fits(const struct wf_frame *frame)
{
    if (frame->type != WF_DATA)
        return frame->length == 0 && frame->data_off == WF_FRAME_BYTES;
    if (frame->data_off < WF_FRAME_BYTES || frame->data_off > WF_FRAME_DATA_OFF_MAX)
        return false;
    return frame->offset <= frame->total && frame->length <= frame->total - frame->offset;
}

int wf_frame_decode(const uint8_t bytes[WF_FRAME_BYTES], struct wf_frame *frame)
{
    struct image image;
    struct wf_frame seen;

    memcpy(&image, bytes, sizeof(image));
    if (le32toh(image.header_crc) != wf_crc32c_header(&image))
        return -EBADMSG;
    if (image.type >= KIND_COUNT || !kinds[image.type].name)
        return -EPROTO;
    unpack(&image, &seen);
    if (!flags_known(&seen) || !payload_fits(&seen))
        return -EPROTO;
    *frame = seen;
    return 0;
}

/* What follows the header on a device channel. */
struct tail {
    uint64_t position;
    uint32_t zero, crc;
};

_Static_assert(sizeof(struct tail) == WF_DETACHED_BYTES - WF_FRAME_BYTES, "the layout written in frame.h");

void wf_frame_encode_position(uint64_t position, uint8_t bytes[WF_DETACHED_BYTES - WF_FRAME_BYTES])
{
    struct tail tail = {.position = htole64(position)};

    tail.crc = htole32(wf_crc32c(0, &tail, offsetof(struct tail, crc)));
    memcpy(bytes, &tail, sizeof(tail));
}

int wf_frame_decode_position(const uint8_t bytes[WF_DETACHED_BYTES - WF_FRAME_BYTES], uint64_t *position)
{
    struct tail tail;

    memcpy(&tail, bytes, sizeof(tail));
    if (le32toh(tail.crc) != wf_crc32c(0, &tail, offsetof(struct tail, crc)))
        return -EBADMSG;
    *position = le64toh(tail.position);
    return 0;
}
