/*
 * op.h: one operation that an engine carries out: what is asked of the kernel, and what came of it.
 */
#ifndef WF_IO_OP_H
#define WF_IO_OP_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"

enum wf_op_kind {
    WF_OP_ACCEPT,  /* result: a new descriptor (non-blocking, TCP_NODELAY set), to be closed by the poster */
    WF_OP_CONNECT, /* `address`; result 0 */
    WF_OP_RECV,    /* the bytes that are there, at least 1, into `iov`; result: bytes, 0 at the end of the stream. A
                    * real engine can also read one datagram; bytes for which `iov` has no room are lost */
    WF_OP_SEND,    /* all of `iov`; result: bytes. After a failure `moved` has the bytes that the kernel has taken */
};

/*
 * Where a RECV leaves the control messages of its call, by which device-memory TCP tells what a network card has
 * written to device memory (MSG_SOCK_DEVMEM). Bytes that are in host memory are in the operation's `iov`.
 */
struct wf_control {
    void *bytes;
    size_t room;
    size_t length; /* of the last RECV, */
    int flags;     /* and its msg_flags */
};

/* A range of tokens, by which fragments of device memory are given back. As the kernel has it (struct dmabuf_token). */
struct wf_tokens {
    uint32_t first, count;
};

/*
 * One operation. Owner: the poster; from post to the poll that returns it, the engine, which may change every field
 * except `context`. The array `iov`, which the engine advances, and its memory must stay until that poll.
 */
struct wf_op {
    struct wf_link link; /* used by the engine while posted */
    enum wf_op_kind kind;
    int fd;
    struct iovec *iov;
    int iov_count;
    struct sockaddr_storage *address; /* CONNECT */
    int64_t result;   /* after poll: see enum wf_op_kind, or a negative errno; -ECANCELED after cancel */
    uint64_t moved;   /* SEND: bytes handed to the kernel, also after a failure */
    uint64_t read;    /* SEND, set by the engine: bytes from the start that it has read ahead */
    uint32_t segment; /* SEND, set by the engine: bytes of a TCP segment; 0: not asked yet */
    uint32_t gather;  /* RECV: a thread that sleeps for it need not be woken before so many bytes are there, or the
                       * stream  ends. They have to come, whatever the poster does meanwhile. 0: any byte counts */
    bool urgent;      /* RECV of small messages: an engine lets it pass large transfers if it can, and may make their
                         calls shorter. SEND: its poster will not poll: what the kernel takes goes to it at once */
    /* SEND: an engine with tells_start stores the time of its first call here, if the value is 0. NULL: not wanted.
     * Any thread may read it; relaxed. */
    _Atomic int64_t *began_ns;
    /* RECV: counts received bytes that the engine keeps until more bytes have come (engine_seal.h). NULL: not wanted.
     * Any thread may read it; relaxed. */
    _Atomic uint64_t *kept;
    /* RECV: of a stream whose payload may be in device memory. NULL: of an ordinary one. */
    struct wf_control *control;
    /* SEND: `iov` has offsets in the dma-buf that is bound to the network card under this number; 0: it has addresses.
     * Such a send comes back when the kernel no longer reads the memory, as one without a copy. */
    uint32_t binding;
    uint32_t lent;   /* SEND, the engine's: calls of it whose memory the kernel still reads */
    uint32_t copied; /* the same, calls whose memory the kernel has copied after all */
    bool posted;     /* between post and poll */
    bool finished;   /* set by the engine: the operation waits to be polled */
    void *context;   /* belongs to the poster */
};

#endif
