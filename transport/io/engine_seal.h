/*
 * engine_seal.h: an engine that encrypts. It stands around another one and has its contract (io/engine.h): what is sent
 * on a protected descriptor leaves as records (wire/record.h), and what is received has been a record that opened.
 * The poster sees no difference. Operations count bytes before encryption; `progress` counts bytes on the wire. Other
 * descriptors pass untouched.
 *
 * A RECV gets a record once all of it has come; `kept` counts the bytes of a record that has come in part.
 *
 * A RECV that meets anything else than the peer's next record ends in -EBADMSG, and so do all later RECVs; the bytes of
 * that record in the poster's memory mean nothing and are not counted. A RECV that meets the end of the stream within a
 * record ends in -ECONNRESET. A cancelled SEND has moved all bytes that were encrypted by then. They have been copied
 * and are still sent: as long as the descriptor is attached to the engine of that SEND, and else before the next SEND
 * at another engine. A shutdown waits for them.
 */
#ifndef WF_IO_ENGINE_SEAL_H
#define WF_IO_ENGINE_SEAL_H

#include "io/engine.h"
#include "wire/record.h"

/* Serves all engines of a context. */
struct wf_seal;

/* NULL: no memory. */
struct wf_seal *wf_seal_create(void);

/* Every engine and descriptor has been closed before. NULL is fine. */
void wf_seal_destroy(struct wf_seal *seal);

/*
 * The engine around `engine`, which gets `host`. Its own host is the struct wf_seal; its name is that of `engine`.
 * Another one may be chosen once all engines are closed. Lives as long as `seal`.
 */
const struct wf_engine_ops *wf_seal_around(struct wf_seal *seal, const struct wf_engine_ops *engine, void *host);

/* The engine within one of these; any other engine is its own. */
struct wf_engine *wf_seal_within(struct wf_engine *engine);

/*
 * From here on everything on this descriptor is encrypted, with its first byte, under one key for each direction. Not
 * attached to any engine here; until it is closed. Any thread. -ENOMEM (or the crypto library refuses).
 */
int wf_seal_protect(struct wf_seal *seal, int fd, const struct wf_record_key *tx, const struct wf_record_key *rx);

#endif
