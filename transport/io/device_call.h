/*
 * device_call.h: the system calls of device-memory TCP on a stream. For engines only.
 */
#ifndef WF_IO_DEVICE_CALL_H
#define WF_IO_DEVICE_CALL_H

#include <stdbool.h>
#include <sys/socket.h>

#include "io/engine.h"

/* One call with `message`, whose vector is set: as recvmsg(), with the control messages of the operation. The bytes it
 * moved, or -errno. */
ssize_t wf_device_receive(struct wf_op *op, struct msghdr *message);
/* The same of a send from the operation's dma-buf; counts it in `lent`. */
ssize_t wf_device_send(struct wf_op *op, struct msghdr *message);
/* Takes what the kernel tells of memory that it reads no longer off `lent`, and counts in `copied`. 0 or -errno. */
int wf_device_released(struct wf_op *op);

/* Member of wf_engine_ops. */
int wf_device_give_back(void *host, int fd, const struct wf_tokens *ranges, int count);

#endif
