/*
 * engine_seal.h: an engine that encrypts. It stands around an inner engine and keeps the contract of io/engine.h: bytes
 * sent on a protected descriptor leave as records (wire/record.h), and received bytes come from records that opened.
 * The poster sees no difference. Operations count bytes before encryption; `progress` counts bytes on the wire. All
 * other descriptors are passed to the inner engine unchanged.
 *
 * A RECV gets a record once the whole record has come; `kept` counts the received bytes of incomplete records.
 *
 * A RECV that reads anything other than the peer's next record ends in -EBADMSG, and so do all later RECVs; the bytes
 * of that record in the poster's memory mean nothing and are not counted. A RECV that reads the end of the stream
 * within a record ends in -ECONNRESET. A cancelled SEND has moved all bytes that were encrypted before the cancel.
 * These bytes have been copied and are still sent: while the descriptor is attached to the engine of that SEND, or else
 * before the next SEND at another engine. A shutdown waits for them.
 */
#ifndef WF_IO_ENGINE_SEAL_H
#define WF_IO_ENGINE_SEAL_H

#include "io/engine.h"
#include "wire/record.h"

/* Serves all engines of a context. */
struct wf_seal;

/* NULL: no memory. */
struct wf_seal *wf_seal_create(void);

/* Every engine and descriptor must be closed before. NULL is allowed. */
void wf_seal_destroy(struct wf_seal *seal);

/*
 * The outer engine around `engine`, whose host is `host`. The outer engine has the host `seal` and the inner name.
 * A later call may choose another `engine` once all engines are closed. The result lives as long as `seal`.
 */
const struct wf_engine_ops *wf_seal_around(struct wf_seal *seal, const struct wf_engine_ops *engine, void *host);

/* The inner engine of `engine`; `engine` itself if it does not encrypt. */
struct wf_engine *wf_seal_within(struct wf_engine *engine);

/*
 * Encrypts every byte on `fd` from now until it is closed, under one key for each direction. `fd` must not be attached
 * to any engine during the call. Any thread. -ENOMEM: there is no memory, or the crypto library fails.
 */
int wf_seal_protect(struct wf_seal *seal, int fd, const struct wf_record_key *tx, const struct wf_record_key *rx);

#endif
