/*
 * frame.h: the wire after the handshake. Every frame starts with the same 64 little-endian bytes. Beside each type
 * stands the meaning of its fields. History: version 1, all fields below.
 *
 *   bytes  0  type u8 | 1 flags u8 | 2 data_off u16 | 4 conn u32 | 8 msg u64 | 16 offset u64 | 24 total u64
 *         32  length u32 | 36 payload_crc u32 | 40 key u64 | 48 base u64 | 56 ack u32 | 60 header_crc u32
 */
#ifndef WF_WIRE_FRAME_H
#define WF_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define WF_FRAME_BYTES 64
#define WF_FRAME_DATA_OFF_MAX 4096

/* 1 .. 15 are sequenced: counted, kept until acknowledged, idempotent. 16 and up are absolute totals or probes. */
enum wf_frame_type {
    WF_DATA = 1,    /* payload [offset, offset+length) of msg; key = tag */
    WF_OFFER = 2,   /* introduces msg without payload; total, key = tag, offset = what comes unasked */
    WF_GRANT = 3,   /* PEER msg may be sent up to offset; for a write, or with base = WF_BASE_LANDED: has landed up to
                     * it; key = domain + 1: all of it may come on the device channels of that domain, 0: on none */
    WF_READ = 4,    /* reads `total` bytes at `base` under `key`; the reply is DATA with this msg */
    WF_REFUSE = 5,  /* ends msg; key = status (negative errno as u64); from the sender of msg, offset = the unsolicited
                     * bytes it spent on msg; base = the number of a list that will not be used, or 0 */
    WF_OPEN = 6,    /* conn opened; key = endpoints (opener << 32 | peer), offset = introduction limit, base = class */
    WF_OPENED = 7,  /* answer; offset = introduction limit */
    WF_CLOSE = 8,   /* msg = one more than the number of the last message */
    WF_CLOSED = 9,  /* answer */
    WF_DOWN = 10,   /* key = channel << 32 | incarnation, offset = final disposed count, base = reason */
    WF_STATE = 16,  /* key as DOWN; offset = disposed count, total = granted frames, base = granted bytes */
    WF_CREDIT = 17, /* conn 0: offset = limit of unsolicited bytes; else offset = introduction limit of conn */
    WF_PING = 18,   /* msg = a number */
    WF_PONG = 19,   /* msg = the number of the PING */
    WF_BYE = 20,    /* the session ends; key = 0; a receiver does not look at it */
    WF_TRIAL = 21,  /* the pattern that the payload stream begins with comes (pattern.h) */
};

enum wf_frame_flag {
    WF_FLAG_TAGGED = 1 << 0,
    WF_FLAG_WRITE = 1 << 1,
    WF_FLAG_READ_REPLY = 1 << 2,
    WF_FLAG_NOTIFY = 1 << 3,
    WF_FLAG_LIST = 1 << 4,
    WF_FLAG_CRC = 1 << 5, /* payload_crc is set */
    WF_FLAG_RESENT = 1 << 6,
    WF_FLAG_PEER = 1 << 7, /* msg is a number of the side that receives this frame */
};

/* `base` of DATA and OFFER of a TAGGED message: its sender waits until the message has landed. Of GRANT: it has. */
#define WF_BASE_LANDED 1

/* The fields, decoded. */
struct wf_frame {
    uint8_t type;      /* enum wf_frame_type */
    uint8_t flags;     /* enum wf_frame_flag */
    uint16_t data_off; /* offset of the payload in the frame, WF_FRAME_BYTES .. WF_FRAME_DATA_OFF_MAX */
    uint32_t conn;     /* 0: the session */
    uint64_t msg;
    uint64_t offset, total;
    uint32_t length; /* payload bytes */
    uint32_t payload_crc;
    uint64_t key, base;
    uint32_t ack; /* number of disposed sequenced frames of the reverse direction, its low 32 bits */
};

static inline bool wf_frame_sequenced(uint8_t type)
{
    return type >= WF_DATA && type <= WF_DOWN;
}

/* "DATA", "OFFER", …; "?" for an unknown type. */
const char *wf_frame_name(uint8_t type);

/* Writes exactly WF_FRAME_BYTES, header CRC included. */
void wf_frame_encode(const struct wf_frame *frame, uint8_t bytes[WF_FRAME_BYTES]);

/*
 * Decodes a header and makes all checks that need no other data: CRC (-EBADMSG); known type, known flags for the type,
 * data_off in range, offset + length <= total without overflow for DATA, length 0 for types without payload (-EPROTO).
 * `frame` is written on success only.
 */
int wf_frame_decode(const uint8_t bytes[WF_FRAME_BYTES], struct wf_frame *frame);

/*
 * A DATA frame of a device channel is a header and this: where its payload begins in the payload stream, in bytes from
 * the stream's start. Its data_off is WF_DETACHED_BYTES.
 *
 *   bytes 64 position u64 | 72 zero u32 | 76 CRC32C of the 12 bytes before
 */
#define WF_DETACHED_BYTES 80

void wf_frame_encode_position(uint64_t position, uint8_t bytes[WF_DETACHED_BYTES - WF_FRAME_BYTES]);
/* 0 or -EBADMSG. */
int wf_frame_decode_position(const uint8_t bytes[WF_DETACHED_BYTES - WF_FRAME_BYTES], uint64_t *position);

/* channel << 32 | incarnation, as in STATE and DOWN. */
static inline uint64_t wf_channel_key(uint32_t channel, uint32_t incarnation)
{
    return (uint64_t)channel << 32 | incarnation;
}

#endif
