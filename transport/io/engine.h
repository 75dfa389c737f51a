/*
 * engine.h: asks the kernel to move bytes. The caller posts operations; poll returns each of them exactly once, also
 * after cancel. An engine continues a partial send by itself. Implementations: epoll, io_uring, the simulator of
 * tests/support; around any of them the engines that inject faults (engine_fault.h) and encrypt (engine_seal.h).
 * One thread at a time drives an engine (the holder of its worker's drive token). Other threads may call wake() only.
 */
#ifndef WF_IO_ENGINE_H
#define WF_IO_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "io/op.h"

/* How to make and bind a socket. */
struct wf_socket_options {
    struct sockaddr_storage local; /* address to bind to; ss_family 0: none */
    char device[32];               /* interface to bind to; "": none */
    int buffer_bytes;              /* SO_SNDBUF and SO_RCVBUF; 0: left to the kernel */
    char congestion[16];           /* TCP_CONGESTION; "": left to the kernel */
    int dscp;                      /* the mark of its packets (DSCP), 0 to 63; 0: none */
    bool own_port;                 /* no other connection of this machine has its local port, towards whichever peer */
    bool shared_port;              /* listeners: one without `device` and later ones with `device` share a port. The
                                    * first fails with -EADDRINUSE if another listener has the port */
};

/* Whether payload is read into the cache before the kernel copies it (read_ahead.h). */
enum wf_read_ahead_when { WF_READ_AHEAD_AUTO, WF_READ_AHEAD_OFF, WF_READ_AHEAD_ON };

struct wf_engine_limits {
    uint32_t call_bytes; /* most bytes in one send or receive call; keeps small traffic from waiting behind bulk */
    bool pinned;         /* one thread drives the engine; other threads drive it only before that thread starts and
                          * after it has ended. The engine then does less work */
    uint32_t zero_copy;  /* the kernel need not copy sends of this size or more; 0: it copies all sends */
    enum wf_read_ahead_when read_ahead; /* not for a send without a copy */
    bool set_up; /* the engine of the conversations that set connections up: faults of bytes and calls
                  * (engine_fault.h) are not injected */
};

/* The sending direction of a connected descriptor. The peer's kernel acknowledges even if the peer's process stands
 * still. */
struct wf_progress {
    uint64_t acknowledged; /* bytes that have reached the peer's kernel, from an unknown start: compare two values */
    uint64_t pending;      /* bytes that this machine's kernel has taken and the peer's has not acknowledged */
    uint64_t unsent; /* bytes of `pending` that are still here, because the peer's kernel takes no more at the moment */
};

struct wf_engine {
    const struct wf_engine_ops *ops;
};

/*
 * The contract. Calls return -errno on failure. Only poll blocks. Only wake is thread-safe.
 */
struct wf_engine_ops {
    const char *name;
    bool cuts_calls;  /* it makes large calls shorter while urgent RECVs receive bytes */
    bool tells_start; /* it stores the time of the first call for a SEND in began_ns */

    /* Can this engine work here? 0, or negative with the reason in `status`. `host`: as for open(). */
    int (*probe)(void *host, struct wf_status *status);

    /* Can sends leave without a copy? 0, or negative with the reason. NULL: no, this engine always copies. */
    int (*zero_copy)(void *host, struct wf_status *status);

    /* Creates an engine. `host` is NULL for real engines, the simulated network for the simulator. */
    int (*open)(void *host, const struct wf_engine_limits *limits, struct wf_engine **out, struct wf_status *status);

    /* Frees it. Before, poll must have returned every operation, and every descriptor must be detached. */
    void (*close)(struct wf_engine *engine);

    /* Adds a connected, connecting or listening descriptor to this engine, and removes it. A descriptor may be attached
     * to two engines at once (one receives, the other sends). detach: no operation on it may be posted here. */
    int (*attach)(struct wf_engine *engine, int fd);
    void (*detach)(struct wf_engine *engine, int fd);

    /* Starts an operation. A descriptor can have one operation that reads (ACCEPT, RECV) and one that writes (CONNECT,
     * SEND) at a time. Never fails: poll returns the error. May try the operation at once. */
    void (*post)(struct wf_engine *engine, struct wf_op *op);

    /* Asks for an early end. poll still returns the operation, once: -ECANCELED, or its real result. Bytes that a SEND
     * has given to the kernel stay given (`moved`); bytes that a RECV has taken are its result. A SEND without a copy
     * comes back when the kernel no longer reads its memory: when the peer has the bytes, or after kill. */
    void (*cancel)(struct wf_engine *engine, struct wf_op *op);

    /*
     * Returns up to `max` finished operations. Each ready operation gets at most one system call in one poll, so that a
     * busy descriptor does not delay other descriptors. If no operation is finished, waits up to `timeout_ns` (0: does
     * not wait; negative: until an event or wake()).
     */
    int (*poll)(struct wf_engine *engine, struct wf_op **finished, int max, int64_t timeout_ns);

    /* Ends a poll that is waiting, or the next one. Any thread. */
    void (*wake)(struct wf_engine *engine);

    /*
     * For a thread that sleeps outside of poll. rest: 0, and from now until the next poll the descriptor is readable
     * when poll has something to do, or was woken. -EAGAIN: poll has something to do now; with `tell` the descriptor is
     * readable. descriptor: the same for the engine's life; any thread. Both NULL: a thread can sleep in poll only.
     */
    int (*descriptor)(struct wf_engine *engine);
    int (*rest)(struct wf_engine *engine, bool tell);

    /* --- descriptors: here because the simulator has simulated descriptors --- */

    /* A non-blocking TCP socket, bound as in `options`, TCP_NODELAY set. `bound_device` (may be NULL): whether it is
     * bound to the interface (without the permission, only to the address). Returns the descriptor. */
    int (*socket)(void *host, int family, const struct wf_socket_options *options, bool *bound_device);
    /* As socket(), but listening. */
    int (*listen)(void *host, const struct wf_socket_options *options, int backlog);
    /* Binds an accepted descriptor to an interface. 0 or -errno. */
    int (*bind_device)(void *host, int fd, const char *device);
    /* Marks what the descriptor sends from now on (DSCP, 0 to 63). 0 or -errno. */
    int (*mark)(void *host, int fd, int dscp);
    /* The kernel sends no more than this from now on, evenly; 0: as fast as it can. 0 or -errno. */
    int (*pace)(void *host, int fd, uint64_t bytes_per_second);
    /* Local (`remote` false) or remote address. */
    int (*address)(void *host, int fd, bool remote, struct sockaddr_storage *out);
    /* Ends the sending direction: the peer reads the end of the stream. */
    void (*shutdown)(void *host, int fd);
    /* Drops the connection at once, and every reference of the kernel to sent memory (connect(AF_UNSPEC)). */
    void (*kill)(void *host, int fd);
    /* TCP segments sent again so far; 0 if unknown. */
    uint64_t (*retransmits)(void *host, int fd);
    /* Gives fragments of device memory that a RECV has told of back to the network card: as many ranges and tokens as
     * the kernel takes at a time (devmem/intake.h). Any thread. 0 or -errno. NULL: this engine has no such streams. */
    int (*give_back)(void *host, int fd, const struct wf_tokens *ranges, int count);
    /* Fills `out`. 0 or -errno. */
    int (*progress)(void *host, int fd, struct wf_progress *out);
    void (*close_fd)(void *host, int fd);
};

extern const struct wf_engine_ops wf_engine_epoll;
/* Always defined; in a build without liburing its probe fails and says why. */
extern const struct wf_engine_ops wf_engine_uring;

#endif
