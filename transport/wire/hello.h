/*
 * hello.h: the set-up messages before framing: HELLO and GREETING on the control connection; JOIN, CHALLENGE, PROOF on
 * each channel; DENY on either. Variable length, at most WF_SETUP_MAX bytes:
 *
 *   magic "WEFT" | type u8 | version u8 | length u16 (of the body) | body | CRC32C u32 over all before
 *
 *   dialer                      acceptor
 *   control:  HELLO         ->
 *                           <-  HELLO (session, secret, its rails) or DENY
 *             GREETING      ->                            both, if both HELLOs have WF_FEATURE_GREETING; else neither
 *                           <-  GREETING
 *
 *   With a key all of these are inside TLS (handshake.h). Only DENY may come without TLS, from a side without a key.
 *
 *   channel:  JOIN          ->
 *                           <-  CHALLENGE (acceptor's proof and credit) or DENY
 *             PROOF         ->
 *
 * A body is used only after its CRC has been checked, and every value in it is range-checked.
 */
#ifndef WF_WIRE_HELLO_H
#define WF_WIRE_HELLO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_SETUP_PREFIX 8 /* bytes before the body: enough to know the whole length */
#define WF_GREETING_MAX 4096
#define WF_SETUP_MAX (WF_SETUP_PREFIX + 2 + WF_GREETING_MAX + 4) /* the longest GREETING; all others are shorter */
#define WF_PROTOCOL_VERSION 1
#define WF_SECRET_BYTES 32
#define WF_NONCE_BYTES 16
#define WF_PROOF_BYTES 32
#define WF_RAILS_MAX 64
#define WF_RAILS_FEW 16 /* that a side without WF_FEATURE_RAILS knows */
#define WF_NAME_BYTES 64
#define WF_MACHINE_BITS 24
#define WF_CLASSES 4 /* traffic classes, 0 to 3 */

enum wf_setup_type {
    WF_SETUP_HELLO = 1,
    WF_SETUP_JOIN = 2,
    WF_SETUP_CHALLENGE = 3,
    WF_SETUP_PROOF = 4,
    WF_SETUP_DENY = 5,
    WF_SETUP_GREETING = 6,
};

enum wf_deny_reason {
    WF_DENY_VERSION = 1, /* no common protocol version */
    WF_DENY_BUSY = 2,    /* no room for one more peer (setting `peers`) */
    WF_DENY_SESSION = 3, /* unknown session: the process has restarted, or has ended it */
    WF_DENY_PROOF = 4,
    WF_DENY_LIMIT = 5, /* a value is out of this side's limits, or there is no memory */
    WF_DENY_CLOSING = 6,
    WF_DENY_RETIRED = 7, /* the rail has damaged too many chunks and is not used any more */
    WF_DENY_KEY = 8,     /* one side has a key, the other side has none */
    WF_DENY_ENCRYPT = 9, /* one side encrypts its channels, the other side does not */
    WF_DENY_PORT = 10,   /* PAYLOAD: this stream is taken at another port only, which `port` names */
};

/* An address as sent. */
struct wf_wire_address {
    uint8_t family;    /* 4 or 6 */
    uint8_t bytes[16]; /* IPv4: the first four */
    uint16_t port;
    char name[32]; /* the rail's name, terminated */
};

/* The limits of one side; the other side keeps within them. */
struct wf_limits {
    uint32_t chunk;       /* most payload bytes in one frame, 64 .. 1 GiB */
    uint32_t eager;       /* bytes of the largest message that this side sends at once, <= chunk of the receiver */
    uint32_t first_burst; /* bytes of a larger message that this side sends unsolicited */
    uint32_t header_pad;  /* data_off of this side's frames on bulk channels */
    uint64_t unsolicited; /* bytes the other side may send unsolicited at first */
    uint32_t list_bytes;  /* bytes of the longest list upload that this side takes; 0: none */
    uint32_t connections; /* most connections of a session */
};

#define WF_FEATURE_ENCRYPT 1u  /* all bytes after a channel's proofs are in records (record.h); both sides or none */
#define WF_FEATURE_RAILS 2u    /* takes a HELLO with up to WF_RAILS_MAX rails, and JOINs for as many pairs of rails */
#define WF_FEATURE_GREETING 4u /* sends a GREETING after HELLO and takes one */
#define WF_FEATURE_MATCHING 8u /* says when a TAGGED message landed (WF_BASE_LANDED); takes NOTEs of no operation */
#define WF_FEATURE_CLASSES 16u /* takes JOINs and OPENs of traffic classes above 0 */
#define WF_FEATURE_DEVICE 32u  /* takes JOINs of device channels, and GRANTs that name a domain */
#define WF_FEATURE_TRIAL 64u   /* its payload streams begin with a pattern (pattern.h), and so do those that it takes */
#define WF_FEATURE_ANNOUNCE 128u /* takes OFFERs that say how much comes unasked */

struct wf_hello {
    uint16_t version_min, version_max;
    uint64_t features;   /* WF_FEATURE_ bits; unknown bits are ignored */
    uint64_t boot_nonce; /* different for every start of the process; its upper WF_MACHINE_BITS are equal for all
                          * processes of a machine until the machine restarts */
    uint64_t session;    /* 0 from the dialer; chosen by the acceptor */
    uint8_t secret[WF_SECRET_BYTES]; /* acceptor's answer: the secret for the proofs of channels; zero from the dialer;
                                      * with a key zero too, as both sides derive the secret */
    struct wf_limits limits;
    char name[WF_NAME_BYTES]; /* host name, for messages */
    uint8_t rail_count;
    struct wf_wire_address rails[WF_RAILS_MAX];
};

enum wf_channel_kind {
    WF_CHANNEL_EXPRESS = 1,
    WF_CHANNEL_BULK = 2,
    WF_CHANNEL_DEVICE = 3,  /* its payloads travel on a stream of their own, */
    WF_CHANNEL_PAYLOAD = 4, /* which is this one: only JOIN says so */
};

/* A strand: payload towards one domain, the memory of one GPU, of one side. Device channels have one each. */
#define WF_DOMAINS_MAX 16
#define WF_STRANDS_MAX (2 * WF_DOMAINS_MAX)

static inline uint32_t wf_strand_of(uint32_t domain, bool to_acceptor)
{
    return 2 * domain + !to_acceptor;
}

static inline uint32_t wf_strand_domain(uint32_t strand)
{
    return strand / 2;
}

static inline bool wf_strand_to_acceptor(uint32_t strand)
{
    return strand % 2 == 0;
}

struct wf_join {
    uint64_t session;
    uint32_t channel; /* class * channels + index: the same index has the same kind and rail in every class; of strands,
                       * which come behind the classes, the same with WF_CLASSES + strand */
    uint32_t incarnation;
    uint16_t channels;     /* number of channels of a class: tells the acceptor when all of class 0 have joined */
    uint8_t kind;          /* enum wf_channel_kind */
    uint8_t rail;          /* number of the rail pair */
    uint16_t domain;       /* DEVICE, PAYLOAD: the strand, plus 1; 0: payload is in band */
    uint16_t payload_port; /* DEVICE: the dialer's port of its payload stream, which was connected to the port of
                            * WF_DENY_PORT; 0: the stream has joined by itself */
    uint8_t nonce[WF_NONCE_BYTES];
    uint64_t granted_frames, granted_bytes; /* initial credit for the acceptor's frames */
};

struct wf_challenge {
    uint8_t nonce[WF_NONCE_BYTES];
    uint8_t proof[WF_PROOF_BYTES];          /* the acceptor's */
    uint64_t granted_frames, granted_bytes; /* initial credit for the dialer's frames */
};

struct wf_proof {
    uint8_t proof[WF_PROOF_BYTES]; /* the dialer's */
};

struct wf_deny {
    uint16_t reason;               /* enum wf_deny_reason */
    char text[160];                /* for a person; decoding leaves printable characters only */
    uint8_t proof[WF_PROOF_BYTES]; /* on a channel of a session that the acceptor knows: the proof that the session's
                                    * acceptor sent this DENY (seal.h); else zero */
    uint16_t port;                 /* WF_DENY_PORT */
};

/* What the user of a side tells every peer about itself. */
struct wf_greeting {
    uint16_t length; /* up to WF_GREETING_MAX */
    uint8_t bytes[WF_GREETING_MAX];
};

/* Any set-up message, decoded. */
struct wf_setup {
    enum wf_setup_type type;
    union {
        struct wf_hello hello;
        struct wf_join join;
        struct wf_challenge challenge;
        struct wf_proof proof;
        struct wf_deny deny;
        struct wf_greeting greeting;
    };
};

/* Writes the message; returns its length, or -EMSGSIZE when `room` is too small. */
int wf_setup_encode(const struct wf_setup *setup, uint8_t *bytes, size_t room);

/*
 * The length of the whole message from its first WF_SETUP_PREFIX bytes, or -EPROTO (wrong magic: a stranger),
 * -EMSGSIZE, -EPROTONOSUPPORT (another version byte).
 */
int wf_setup_length(const uint8_t prefix[WF_SETUP_PREFIX]);

/* Decodes exactly `length` bytes. -EBADMSG (CRC), -EPROTO (short, long, out of range, unknown type). */
int wf_setup_decode(const uint8_t *bytes, size_t length, struct wf_setup *setup);

const char *wf_deny_name(uint16_t reason);

#endif
