/*
 * The control connection of a context that has a key: TLS from its first byte on, with HELLO and GREETING inside.
 * Channels are outside of TLS: they prove that they know the session's secret, which both sides derive from this
 * conversation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/join/talk_parts.h"
#include "wire/handshake.h"

struct wf_talk_tls {
    struct wf_handshake *handshake;
    struct wf_status status; /* code below 0: ends the conversation once the alert is out */
    bool heard;              /* the peer has begun with TLS */
    bool hello_said;         /* dialer: HELLO is out */
    uint8_t bytes[2048];     /* of TLS, received or to be sent */
};

static int start(struct wf_talk *talk, enum wf_role role)
{
    struct wf_talk_tls *cover = calloc(1, sizeof *cover);
    int result = cover ? wf_handshake_create(talk->door->key, role, &cover->handshake) : -ENOMEM;
    if (result < 0) {
        free(cover);
        wf_talk_fail(talk, result, "no memory for a handshake");
        return result;
    }
    talk->tls = cover;
    return 0;
}

void wf_talk_tls_end(struct wf_talk *talk)
{
    if (!talk->tls)
        return;
    wf_handshake_destroy(talk->tls->handshake);
    free(talk->tls);
    talk->tls = NULL;
}

/* Reads a single byte first: it tells TLS from a set-up message. */
static void receive(struct wf_talk *talk)
{
    struct wf_talk_tls *cover = talk->tls;
    talk->state = WF_TALK_READING;
    talk->iov = (struct iovec){cover->bytes, cover->heard ? sizeof cover->bytes : 1};
    wf_talk_post(talk, WF_OP_RECV);
}

/* Moves decrypted bytes to `talk->bytes`. Is the part that is read complete? */
static bool read_plain(struct wf_talk *talk)
{
    struct wf_talk_tls *cover = talk->tls;
    while (talk->have < talk->need) {
        int got =
            wf_handshake_read(cover->handshake, talk->bytes + talk->have, talk->need - talk->have, &cover->status);
        if (got <= 0)
            return false;
        talk->have += (uint32_t)got;
    }
    return true;
}

void wf_talk_cover_go_on(struct wf_talk *talk)
{
    struct wf_talk_tls *cover = talk->tls;
    bool complete = wf_handshake_done(cover->handshake) && !talk->answered &&
                    (talk->role != WF_TALK_CONTROL || cover->hello_said) && read_plain(talk);
    size_t length = wf_handshake_pull(cover->handshake, cover->bytes, sizeof cover->bytes);
    talk->proved_member |=
        length > 0 && cover->status.code == 0; /* as acceptor, TLS answers only a peer that holds the key */
    if (length > 0 && !complete) {
        talk->state = WF_TALK_SENDING;
        talk->iov = (struct iovec){cover->bytes, length};
        wf_talk_post(talk, WF_OP_SEND);
    } else if (complete) {
        wf_talk_read_on(talk);
    } else if (cover->status.code < 0) {
        wf_talk_fail(talk, cover->status.code, "%s", cover->status.text);
    } else if (talk->answered) {
        wf_talk_end(talk);
    } else if (wf_handshake_done(cover->handshake) && talk->role == WF_TALK_CONTROL && !cover->hello_said) {
        cover->hello_said = true;
        wf_talk_say_hello(talk);
    } else {
        receive(talk);
    }
}

void wf_talk_cover_start(struct wf_talk *talk)
{
    if (start(talk, WF_ROLE_DIALER) == 0)
        wf_talk_read_message(talk); /* sends the first bytes of TLS before it reads */
}

static void feed(struct wf_talk *talk, const uint8_t *bytes, size_t length)
{
    talk->tls->heard = true;
    wf_handshake_feed(talk->tls->handshake, bytes, length, &talk->tls->status);
    wf_talk_cover_go_on(talk);
}

void wf_talk_cover_take(struct wf_talk *talk, size_t length)
{
    struct wf_talk_tls *cover = talk->tls;
    uint8_t first = cover->bytes[0];
    if (cover->heard || first == WF_HANDSHAKE_HELLO || first == WF_HANDSHAKE_ALERT) {
        feed(talk, cover->bytes, length);
        return;
    }
    /* Not TLS: a peer without a key answers with DENY. Any other message without TLS ends the conversation. */
    wf_talk_tls_end(talk);
    talk->bytes[0] = first;
    talk->have = 1;
    talk->need = WF_SETUP_PREFIX;
    wf_talk_read_on(talk);
}

void wf_talk_take_tls(struct wf_talk *talk)
{
    uint8_t prefix[WF_SETUP_PREFIX];
    memcpy(prefix, talk->bytes, sizeof prefix);
    if (talk->door->key) {
        talk->have = 0;
        if (start(talk, WF_ROLE_ACCEPTOR) == 0)
            feed(talk, prefix, sizeof prefix);
        return;
    }
    /* Reads the record to its end: if bytes were unread at the close, a reset would follow, and DENY could be lost. */
    int length = wf_handshake_record(prefix, sizeof talk->bytes);
    if (length <= WF_SETUP_PREFIX) {
        wf_talk_fail(talk, -EPROTO, "not a weft peer");
        return;
    }
    talk->foreign = true;
    talk->need = (uint32_t)length;
    wf_talk_read_on(talk);
}

void wf_talk_cover_say(struct wf_talk *talk, size_t length)
{
    int result = wf_handshake_write(talk->tls->handshake, talk->bytes, length);
    talk->have = 0;
    talk->need = WF_SETUP_PREFIX;
    if (result < 0)
        wf_talk_fail(talk, result, "a set-up message could not be sealed: %s", wf_strerror(result));
    else
        wf_talk_cover_go_on(talk);
}

int wf_talk_secret(struct wf_talk *talk, uint64_t session, uint8_t secret[WF_SECRET_BYTES])
{
    uint8_t context[8];
    for (int i = 0; i < 8; i++)
        context[i] = (uint8_t)(session >> 8 * i);
    return wf_handshake_export(talk->tls->handshake, WF_SESSION_LABEL, context, sizeof context, secret,
                               WF_SECRET_BYTES);
}
