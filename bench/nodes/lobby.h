/*
 * lobby.h: where the clients of a server that stays wait for their turn. A thread of its own lets them in, in the order
 * in which they come, tells each its place in the line whenever that changes, and forgets those that leave:
 *
 *     joined -> in line, once the control connection is there -> bench_lobby_next() hands it to the run
 */
#ifndef WF_BENCH_LOBBY_H
#define WF_BENCH_LOBBY_H

#include <stdio.h>

#include "control.h"
#include "link.h"

/* Whose turn it is. All three are the taker's from then on. */
struct bench_guest {
    struct weft_peer *peer;
    struct weft_connection *connection;
    struct bench_control *control;
};

struct bench_lobby; /* Owner: the thread that opened it; its own thread has what its lock guards. */

/* Opens the lobby of a link that listens, and that outlives it. Who leaves is told to `news` (NULL: nowhere). Signals
 * must be blocked by now, as bench_interrupt_start() does it. */
int bench_lobby_open(struct bench_link *house, FILE *news, struct bench_lobby **out, struct wf_status *status);

/* Waits for somebody, and takes who came first: as long as bench_lobby_done() is not called, others have that one
 * before them. -ETIMEDOUT after `timeout_ms` (-1: never), -EINTR once a signal has come. */
int bench_lobby_next(struct bench_lobby *lobby, int timeout_ms, struct bench_guest *out, struct wf_status *status);
void bench_lobby_done(struct bench_lobby *lobby);

/* Tells those who wait why there is no turn for them, and ends their sessions. NULL is allowed. */
void bench_lobby_close(struct bench_lobby *lobby, const char *reason, int signal);

#endif
