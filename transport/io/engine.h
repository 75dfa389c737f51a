/*
 * engine.h: how the kernel is asked. A completion-shaped seam: operations are posted and come back from poll exactly
 * once, also after cancel. Partial sends stay inside. Implementations: epoll, io_uring, the simulator of tests/support,
 * and around any of them the one that injects faults (engine_fault.h).
 *
 * One thread at a time drives an engine (the holder of its worker's drive token); only wake() may be called by others.
 */
#ifndef WF_IO_ENGINE_H
#define WF_IO_ENGINE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/list.h"
#include "base/status.h"

enum wf_op_kind {
    WF_OP_ACCEPT,  /* result: a new descriptor (non-blocking, TCP_NODELAY set), to be closed by the poster */
    WF_OP_CONNECT, /* `address`; result 0 */
    WF_OP_RECV,    /* into `iov`, whatever is there, at least 1 byte; result: bytes, 0 at the end of the stream. Of
                    * datagrams, which the real engines read too: one, of which what does not fit is lost */
    WF_OP_SEND,    /* all of `iov`; result: bytes. After a failure `moved` tells how many had gone */
};

/* Whether payload is read into the cache before the kernel copies it (read_ahead.h). */
enum wf_read_ahead_when { WF_READ_AHEAD_AUTO, WF_READ_AHEAD_OFF, WF_READ_AHEAD_ON };

/*
 * One operation. Owner: the poster, except between post and the poll that returns it, when the engine may change every
 * field but `context`. The memory behind `iov` (the array too: the engine advances it) must stay until then.
 */
struct wf_op {
    struct wf_link link; /* the engine's while posted */
    enum wf_op_kind kind;
    int fd;
    struct iovec *iov;
    int iov_count;
    struct sockaddr_storage *address; /* CONNECT */
    int64_t result;   /* after poll: see enum wf_op_kind, or a negative errno; -ECANCELED after cancel */
    uint64_t moved;   /* SEND: bytes handed to the kernel, also after a failure */
    uint64_t read;    /* SEND, the engine's: bytes from the start that it has read ahead */
    uint32_t segment; /* SEND, the engine's: bytes of a TCP segment, once it has asked; 0: not yet */
    bool urgent;      /* RECV of small messages: an engine lets them pass large transfers where it can, and may cut the
                         calls of these */
    /* SEND: an engine with tells_start puts the time of its first call here, if 0 is there. NULL: not wanted. Any
     * thread may read it; relaxed. */
    _Atomic int64_t *began_ns;
    /* RECV: counts bytes that have come and that the engine keeps until more have come (engine_seal.h). NULL: not
     * wanted. Any thread may read it; relaxed. */
    _Atomic uint64_t *kept;
    bool posted;   /* between post and poll */
    bool finished; /* the engine's: waiting to be polled */
    void *context; /* the poster's */
};

/* What kind of socket to make and where to bind it. */
struct wf_socket_options {
    struct sockaddr_storage local; /* address to bind to; ss_family 0: none */
    char device[32];               /* interface to bind to; "": none */
    int buffer_bytes;              /* SO_SNDBUF and SO_RCVBUF; 0: left to the kernel */
    char congestion[16];           /* TCP_CONGESTION; "": left to the kernel */
    bool shared_port;              /* a listener beside which others, bound to a device, get the port; or one of these.
                                    * The former must be alone at first: -EADDRINUSE */
};

struct wf_engine_limits {
    uint32_t call_bytes; /* most bytes in one send or receive call; keeps small traffic from waiting behind bulk */
    bool pinned;         /* one thread drives the engine for most of its life; other threads only before that thread
                          * starts and after it has ended. An engine that knows this is cheaper */
    uint32_t zero_copy;  /* sends of so many bytes or more need not be copied by the kernel; 0: all are copied */
    enum wf_read_ahead_when read_ahead; /* not for a send without a copy */
    bool set_up; /* for the conversations that set connections up: injected faults of bytes and calls
                  * (engine_fault.h) spare them */
};

/* Of a connected descriptor's sending direction. The peer's kernel acknowledges also for a process that stands still.
 */
struct wf_progress {
    uint64_t acknowledged; /* bytes that have reached the peer's kernel; only changes of it mean something */
    uint64_t pending;      /* bytes that our kernel has taken and the peer's has not acknowledged */
    uint64_t unsent; /* of these, as many as still lie here, because the peer's kernel takes no more at the moment */
};

struct wf_engine {
    const struct wf_engine_ops *ops;
};

/*
 * The contract. -errno on failure; no call blocks except poll; only wake is thread-safe.
 */
struct wf_engine_ops {
    const char *name;
    bool cuts_calls;  /* does it cut large calls short while urgent RECVs get something? */
    bool tells_start; /* does it say in began_ns when it made the first call for a SEND? */

    /* Can this engine work here? 0, or negative with the reason in `status`. `host` is what open() gets. */
    int (*probe)(void *host, struct wf_status *status);

    /* Can sends leave without a copy? 0, or negative with the reason. NULL: no, this engine always copies. */
    int (*zero_copy)(void *host, struct wf_status *status);

    /* Creates an engine. `host` is NULL for real engines, the simulated network for the simulator. */
    int (*open)(void *host, const struct wf_engine_limits *limits, struct wf_engine **out, struct wf_status *status);

    /* Frees it; every operation has been polled back and every descriptor detached before. */
    void (*close)(struct wf_engine *engine);

    /* Makes a connected, connecting or listening descriptor known to this engine, and forgets it. A descriptor may be
     * attached to two engines at once (one receives, the other sends). detach: no operation on it is posted here. */
    int (*attach)(struct wf_engine *engine, int fd);
    void (*detach)(struct wf_engine *engine, int fd);

    /* Starts an operation. At most one that reads (ACCEPT, RECV) and one that writes (CONNECT, SEND) for a descriptor
     * at a time. Never fails: errors come back from poll. May try the operation at once. */
    void (*post)(struct wf_engine *engine, struct wf_op *op);

    /* Asks for an early end; the operation still comes back from poll, once: -ECANCELED, or its real result. What a
     * SEND had handed over stays handed over (`moved`); bytes that a RECV had taken are its result. A SEND that is not
     * copied comes back when the kernel no longer reads its memory: when the peer has got the bytes, or after kill. */
    void (*cancel)(struct wf_engine *engine, struct wf_op *op);

    /*
     * Returns up to `max` finished operations. Each ready operation gets at most one system call in a call of poll, so
     * that a busy descriptor does not hold up the others. When nothing is finished, waits up to `timeout_ns` (0: not
     * at all, negative: until something happens or wake()).
     */
    int (*poll)(struct wf_engine *engine, struct wf_op **finished, int max, int64_t timeout_ns);

    /* Ends a poll that is waiting, or the next one. Any thread. */
    void (*wake)(struct wf_engine *engine);

    /* --- descriptors: here because a simulated engine has simulated ones --- */

    /* A non-blocking TCP socket, bound as asked, TCP_NODELAY set. `bound_device` (may be NULL): whether the interface
     * binding took hold (without the right to, the address alone is bound). Returns the descriptor. */
    int (*socket)(void *host, int family, const struct wf_socket_options *options, bool *bound_device);
    /* The same, listening. */
    int (*listen)(void *host, const struct wf_socket_options *options, int backlog);
    /* Binds an accepted descriptor to an interface. 0 or -errno. */
    int (*bind_device)(void *host, int fd, const char *device);
    /* Local (`remote` false) or remote address. */
    int (*address)(void *host, int fd, bool remote, struct sockaddr_storage *out);
    /* No more sends: the peer reads the end of the stream. */
    void (*shutdown)(void *host, int fd);
    /* Drops the connection at once and every reference the kernel holds to sent memory (connect(AF_UNSPEC)). */
    void (*kill)(void *host, int fd);
    /* TCP segments sent again so far; 0 where that is not known. */
    uint64_t (*retransmits)(void *host, int fd);
    /* How far the peer's kernel has got. 0 or -errno. */
    int (*progress)(void *host, int fd, struct wf_progress *out);
    void (*close_fd)(void *host, int fd);
};

extern const struct wf_engine_ops wf_engine_epoll;
/* Always there; in a build without liburing its probe says so. */
extern const struct wf_engine_ops wf_engine_uring;

#endif
