/*
 * socket.h: the TCP sockets of every real engine: non-blocking, close-on-exec, TCP_NODELAY. The functions have the
 * types of their entries in wf_engine_ops (`host` is not used); WF_SOCKET_OPS puts them into a table.
 */
#ifndef WF_IO_SOCKET_H
#define WF_IO_SOCKET_H

#include "io/device_call.h"
#include "io/engine.h"

int wf_socket_open(void *host, int family, const struct wf_socket_options *options, bool *bound_device);
int wf_socket_listen(void *host, const struct wf_socket_options *options, int backlog);
int wf_socket_bind_device(void *host, int fd, const char *device);
int wf_socket_mark(void *host, int fd, int dscp);
int wf_socket_pace(void *host, int fd, uint64_t bytes_per_second);
int wf_socket_address(void *host, int fd, bool remote, struct sockaddr_storage *out);
void wf_socket_shutdown(void *host, int fd);
void wf_socket_kill(void *host, int fd);
uint64_t wf_socket_retransmits(void *host, int fd);
int wf_socket_progress(void *host, int fd, struct wf_progress *out);
void wf_socket_close(void *host, int fd);

#define WF_SOCKET_OPS                                                                                                  \
    .socket = wf_socket_open, .listen = wf_socket_listen, .bind_device = wf_socket_bind_device,                        \
    .mark = wf_socket_mark, .pace = wf_socket_pace, .address = wf_socket_address, .shutdown = wf_socket_shutdown,      \
    .kill = wf_socket_kill, .retransmits = wf_socket_retransmits, .give_back = wf_device_give_back,                    \
    .progress = wf_socket_progress, .close_fd = wf_socket_close

/* Can sockets use this congestion control? 0, or negative with the reason: it does not exist, or needs more rights. */
int wf_socket_congestion(const char *name, struct wf_status *status);

/* Accepts one connection: the new descriptor, or -errno; -EAGAIN: no connection waits. */
int wf_socket_accept(int fd);

/* Starts connecting. 0: connected; -EINPROGRESS: ask wf_socket_connected when the descriptor is writable. */
int wf_socket_connect(int fd, const struct sockaddr_storage *address);

/* The result of a connect, once the descriptor is writable: 0 or -errno. */
int wf_socket_connected(int fd);

/* Bytes of the address that its family uses; 0 for a family that is neither IPv4 nor IPv6. */
socklen_t wf_socket_address_size(const struct sockaddr_storage *address);

#endif
