/*
 * around.h: an outer engine stands around an inner engine and passes some ops on unchanged: the ops that get a host.
 * The outer engine's host begins with a struct wf_around. For engines only.
 */
#ifndef WF_IO_AROUND_H
#define WF_IO_AROUND_H

#include "io/engine.h"

/* Owner: the host. */
struct wf_around {
    struct wf_engine_ops ops;          /* the outer engine's, with the name of the inner one */
    const struct wf_engine_ops *inner; /* the inner engine's */
    void *host;                        /* the inner engine's host */
};

/* Copies `ops` to `around->ops`, except for values of the inner engine: name, cuts_calls, and a zero_copy or descriptor
 * that is NULL. Returns `around->ops`. */
const struct wf_engine_ops *wf_around_set(struct wf_around *around, const struct wf_engine_ops *ops,
                                          const struct wf_engine_ops *inner, void *host);

/* The first step of post() for an operation that the outer engine does not give to the inner engine. */
static inline void wf_around_keep(struct wf_op *op)
{
    wf_link_init(&op->link);
    op->posted = true;
    op->finished = false;
    op->result = 0;
    op->moved = 0;
    op->lent = op->copied = 0;
}

/* --- each calls the op of the inner engine: for the outer engine's table, and to ask the inner engine --- */

int wf_around_probe(void *host, struct wf_status *status);
int wf_around_zero_copy(void *host, struct wf_status *status);
int wf_around_socket(void *host, int family, const struct wf_socket_options *options, bool *bound_device);
int wf_around_listen(void *host, const struct wf_socket_options *options, int backlog);
int wf_around_bind_device(void *host, int fd, const char *device);
int wf_around_mark(void *host, int fd, int dscp);
int wf_around_pace(void *host, int fd, uint64_t bytes_per_second);
int wf_around_address(void *host, int fd, bool remote, struct sockaddr_storage *out);
void wf_around_shutdown(void *host, int fd);
void wf_around_kill(void *host, int fd);
uint64_t wf_around_retransmits(void *host, int fd);
int wf_around_give_back(void *host, int fd, const struct wf_tokens *ranges, int count);
int wf_around_progress(void *host, int fd, struct wf_progress *out);
void wf_around_close_fd(void *host, int fd);

/* For the outer engine's table: the ops that no outer engine changes. */
#define WF_AROUND_OPS                                                                                                  \
    .probe = wf_around_probe, .socket = wf_around_socket, .listen = wf_around_listen,                                  \
    .bind_device = wf_around_bind_device, .mark = wf_around_mark, .pace = wf_around_pace,                              \
    .address = wf_around_address, .kill = wf_around_kill, .retransmits = wf_around_retransmits,                        \
    .give_back = wf_around_give_back

#endif
