/*
 * engine_seal.h: an engine that encrypts. It stands around another one and has its contract (io/engine.h): what is sent
 * on a protected descriptor leaves as records (wire/record.h), and what is received has been a record that opened.
 * Whoever posts knows nothing of it. Bytes of operations are those before encryption; `progress` tells of those on the
 * wire. Other descriptors pass untouched.
 *
 * A RECV gets a record once it is there as a whole; what has come of it by then it counts (`kept`).
 *
 * A RECV that meets anything else than the peer's next record ends in -EBADMSG, as all later ones do; what it has
 * written is worthless, and its result counts none of it. One that meets the end of the stream within a record ends in
 * -ECONNRESET. A SEND that is cancelled has moved what was encrypted by then: it has been copied, and goes on leaving
 * for as long as the descriptor is attached where it was posted, and ahead of the next SEND at another engine; a
 * shutdown waits for it.
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
