/*
 * weft.h: the public contract of libweft.
 *
 * Weft moves messages between the endpoints (GPUs, host buffers) of different processes over plain TCP, on all
 * rails (NIC ports) at once. The invariant behind every call below:
 *
 *     a completion with status 0 means that every byte is where it belongs, each applied exactly once,
 *     and after any completion Weft neither reads nor writes the memory of that request again.
 *
 * Conventions, unless a declaration says otherwise:
 *   - Calls return 0 or a count on success and a negative errno value on failure; out-parameters are written on
 *     success only.
 *   - Sizes are bytes in 64 bits, times are milliseconds (`_ms`) or nanoseconds (`_ns`); a timeout of -1 never
 *     expires and 0 does not wait.
 *   - Every function may be called from any thread, and on any number of contexts in one process. A handle must
 *     not be used during or after the call that ends it.
 *   - No call blocks unless its comment says that it waits.
 *   - `err`, where there is one, may be NULL. On failure it holds one line that names the value at fault and the
 *     remedy.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

struct weft_config;       /* named settings; see `weft config` for the list */
struct weft_context;      /* the library in this process: rails, workers, requests */
struct weft_peer;         /* another context, reached through one session */
struct weft_endpoint;     /* one GPU's or host buffer's presence on the mesh */
struct weft_connection;   /* one pair of endpoints */
struct weft_registration; /* memory made known to the library */
struct weft_request;      /* an operation under way */
struct weft_queue;        /* where requests go that have ended, with a descriptor to wait on */

/* What went wrong, in one line for a person. */
struct weft_error {
    int code;       /* negative errno; 0 when nothing went wrong */
    char text[252]; /* what happened, to which value, and what to do; always terminated */
};

/* How an operation ended. */
struct weft_completion {
    int status;           /* 0, or a negative errno; -EIO: a GPU failed, -ENODEV: for good */
    uint32_t reserved;    /* 0 */
    uint64_t bytes;       /* payload bytes moved: the message's size, also when it is below the capacity */
    uint64_t tag;         /* the tag of the message (differs from the one asked for with WEFT_ANY_TAG) */
    int64_t completed_ns; /* CLOCK_MONOTONIC at which the operation completed; all that one read of a socket has ended
                           * have the time of that read. Of a send that was copied (up to `eager`), without a queue:
                           * when it was found to have completed */
    char text[320];       /* empty when status is 0; else peer, rails, last progress */
    void *user_data;      /* weft_options.user_data of the operation; NULL where there was none */
};

/* The version of the library, "major.minor.patch". */
WEFT_API const char *weft_version(void);

/* ------------------------------------------------------------------------------------------- settings */

/*
 * Creates a set of settings at their defaults, then applies the file named by WEFT_CONFIG and the WEFT_ variables
 * of the environment. An unknown variable is a warning on standard error, a value out of range an error.
 * The caller owns the result and destroys it; a context copies what it needs. Not safe for concurrent changes.
 */
WEFT_API int weft_config_create(struct weft_config **out, struct weft_error *err);
WEFT_API void weft_config_destroy(struct weft_config *config);

/* Sets one setting by its name, as on the command line (`channels`, `4`). -EINVAL for a bad value, -ENOENT for an
 * unknown name (the text proposes the nearest). */
WEFT_API int weft_config_set(struct weft_config *config, const char *name, const char *value, struct weft_error *err);

/* The value of a setting as text, or NULL for an unknown name. Valid until the next change of `config`. */
WEFT_API const char *weft_config_get(const struct weft_config *config, const char *name);

/* ------------------------------------------------------------------------------------------- context */

/*
 * Creates a context: finds the rails, starts the workers. `config` may be NULL for the defaults and the environment.
 * Errors: -ENODEV a rail that does not exist, -EMFILE too few file descriptors, -ENOENT or -EACCES a key file (setting
 * key_file) that is not there, or that others may read, -ENOMEM, -EINVAL.
 */
WEFT_API int weft_context_create(const struct weft_config *config, struct weft_context **out, struct weft_error *err);

/* Closes every peer in an orderly way (waits up to one second for each), then frees everything. Requests and
 * handles of this context are gone afterwards; their memory is not touched again. Streams that operations were ordered
 * in (WEFT_ON_STREAM) should have come to these: they are waited for, one second. NULL is allowed. */
WEFT_API void weft_context_destroy(struct weft_context *context);

/*
 * Accepts peers on `address`: "PORT", "ADDR:PORT", "[V6ADDR]:PORT" or "ADDR"; the setting `port` where none is named;
 * port 0 lets the kernel choose. A link-local address names its interface: "[fe80::1%eth0]:PORT". One port serves
 * control and all channels, so it is listened on at the address of every rail (setting rails), too. Once per context.
 * Errors: -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL, -EALREADY.
 */
WEFT_API int weft_listen(struct weft_context *context, const char *address, struct weft_error *err);

/* The port that weft_listen() got, or -ENOTCONN before it. */
WEFT_API int weft_listen_port(const struct weft_context *context);

/* ------------------------------------------------------------------------------------------- peers */

/*
 * Connects to the context that listens on `address` (as for weft_listen, with a host name or address), trying again
 * until `timeout_ms` has passed if nobody answers there yet; where a name has several addresses, each in turn. Waits.
 * A rail that does not reach its partner, while another one does, is left out and dialled again in the background:
 * weft_context_fallbacks() has a line for it. The error is of the first rail where none does.
 * The caller owns the peer and closes it. Errors: -ETIMEDOUT, -ECONNREFUSED (the other side said no: the text has its
 * reason), -EACCES (one side has another key than the other, or only one has one: setting key_file), -EHOSTUNREACH,
 * -EPROTO.
 */
WEFT_API int weft_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                          struct weft_error *err);

/* Takes the next peer that has connected to this listening context. Waits. The caller owns the peer. -ETIMEDOUT. */
WEFT_API int weft_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err);

/*
 * Ends the session in an orderly way: waits up to `timeout_ms` until what was sent is acknowledged, then closes the
 * channels. Connections of the peer are gone afterwards, requests that are still under way end in -ESHUTDOWN and can
 * still be tested. -ETIMEDOUT when the peer did not answer (the session is gone all the same).
 */
WEFT_API int weft_peer_close(struct weft_peer *peer, int timeout_ms, struct weft_error *err);

/* The peer's host name and address, for messages. Lives as long as the peer. */
WEFT_API const char *weft_peer_name(const struct weft_peer *peer);

/*
 * 0 while the session works; else the negative errno that ended it, with its text in `err`: the peer, its rails, the
 * bytes moved, how long ago it was heard. Every request of the session has ended in the same errno, or is about to.
 *
 * Lost channels and rails do not end a session: what was under way goes elsewhere, and they are dialled again in the
 * background (weft_peer_rails() counts). It ends when the peer is lost: -ECONNRESET, its process is gone, or has
 * restarted; -ETIMEDOUT, nothing is heard of it or acknowledged by it any more (setting timeout); or -EPROTO, it broke
 * the protocol. -ESHUTDOWN: it has closed the session.
 */
WEFT_API int weft_peer_status(const struct weft_peer *peer, struct weft_error *err);

/* What one rail of a session has carried so far. Counters only grow. */
struct weft_rail_stats {
    char name[64];           /* interface, or the local address where one interface carries several rails; "unmet": one
                              * that the peer, which has connected to this side, has not reached yet */
    char local[64];          /* local address */
    char remote[64];         /* the peer's address */
    uint64_t sent_bytes;     /* message payload handed to the kernel */
    uint64_t received_bytes; /* message payload taken from the kernel */
    uint64_t resent_bytes;   /* payload that failures of this rail have cost: sent again, on whichever rail */
    uint64_t stalls;         /* times a channel had work and no credit */
    uint64_t failures;       /* channels lost */
    uint64_t damaged;        /* chunks whose checksum was wrong (setting crc), and damaged headers */
    uint64_t retransmits;    /* TCP segments sent again (TCP_INFO) */
    int device_bound;        /* 1: sockets are bound to the interface; 0: to the address only */
    int channels, channels_up; /* TCP streams it should have, and has at the moment */
    int retired;               /* 1: not used any more, it has damaged too much (setting crc_limit) */
};

/* Fills up to `max` entries, one for each rail of the session; returns the number of rails. */
WEFT_API int weft_peer_rails(const struct weft_peer *peer, struct weft_rail_stats *stats, int max);

/* Writes and reads of the peer that were refused here: of an unknown key, outside of the registration, or not allowed
 * by it. More than a mistake may be behind many of them. */
WEFT_API uint64_t weft_peer_denied(const struct weft_peer *peer);

/* ------------------------------------------------------------------------------------------- rails in force */

/* An interface of this machine: a rail that a context would have, or one that is left out. */
struct weft_interface_info {
    char name[64]; /* as in weft_rail_info */
    char interface[32];
    char address[64]; /* "": it has none */
    int is_rail;      /* 1: it becomes a rail; 0: it does not */
    char why[96];     /* is_rail 0: the rule that leaves it out, "has no carrier" */
    char remedy[256]; /* is_rail 0: the option or command that brings it in; "": there is none */
};

/*
 * Which rails a context with these settings would have, in their order, then the interfaces that are left out. Nothing
 * is opened. Fills up to `max` entries; returns how many there are. Errors: as those of weft_context_create() for the
 * setting rails.
 */
WEFT_API int weft_interfaces(const struct weft_config *config, struct weft_interface_info *list, int max,
                             struct weft_error *err);

/* A rail of this context. */
struct weft_rail_info {
    char name[64];
    char address[64];
    char interface[32];
    int32_t mtu;
    int32_t speed_mbit; /* -1: unknown */
    int32_t numa_node;  /* that its card hangs from; -1: unknown, or the machine has one */
};

/* Fills up to `max` entries; returns the number of rails. */
WEFT_API int weft_context_rails(const struct weft_context *context, struct weft_rail_info *rails, int max);

/* A thread of this context that moves data, and where it is. Lists of processors as in "8-21,112-125". */
struct weft_thread_info {
    char name[16];
    char role[8];      /* "tx", "rx", or "shared": both, for every rail */
    char rail[64];     /* "": every one */
    int tid;           /* the kernel's number of it; 0: not started */
    char planned[256]; /* processors it was to be bound to; "": it was not (setting pin) */
    char allowed[256]; /* those that the kernel lets it run on */
    int last_cpu;      /* where it ran last; -1: unknown */
    int numa_node;     /* of last_cpu; -1: unknown */
};

/* Fills up to `max` entries with what is in force now; returns the number of threads. Any thread. Linux's /proc. */
WEFT_API int weft_context_threads(const struct weft_context *context, struct weft_thread_info *threads, int max);

/* The engine in force ("epoll", "uring"). */
WEFT_API const char *weft_context_engine(const struct weft_context *context);

/* Why a better path is not in use, one line each, newline separated; empty when nothing was given up. A GPU that is
 * made ready later may add a line; what is there stays. */
WEFT_API const char *weft_context_fallbacks(const struct weft_context *context);

/* Faults that the setting `fault` has injected so far, for tests of what becomes of them. */
struct weft_fault_stats {
    uint64_t resets;    /* connections reset by the bytes that moved (reset_every) */
    uint64_t flips;     /* bits flipped in what was received (flip_every) */
    uint64_t shortened; /* sends and receives made to move less (short) */
    uint64_t stalls;    /* times that a rail began to stand still */
    uint64_t drops;     /* times that a rail was gone, */
    uint64_t cut;       /* connections reset because of that, */
    uint64_t refused;   /* and connection attempts, from it and to it, that failed */
};

/* 1 and the counts where faults are injected, else 0. */
WEFT_API int weft_context_faults(const struct weft_context *context, struct weft_fault_stats *stats);

/* ------------------------------------------------------------------------------------------- GPUs */

/* A GPU of this machine. */
struct weft_gpu_info {
    int32_t index;  /* as in the setting `gpus`: the driver's number */
    int32_t in_use; /* 1: this context has made it ready */
    char name[96];
    char pci[20];      /* "0000:19:00.0"; "": unknown */
    int32_t numa_node; /* that it hangs from; -1: unknown, or the machine has one */
    uint64_t bytes;    /* of its memory */
};

/* Fills up to `max` entries; returns the number of GPUs, 0 where there is no GPU memory for this context (setting
 * `cuda`, or a line in weft_context_fallbacks() that says why). */
WEFT_API int weft_context_gpus(const struct weft_context *context, struct weft_gpu_info *gpus, int max);

/* What the library has copied for messages in the memory of one GPU so far. Counters only grow. */
struct weft_gpu_stats {
    int32_t index;
    int32_t under_way;     /* copies, at the moment */
    uint64_t out_bytes;    /* out of its memory, to be sent */
    uint64_t in_bytes;     /* into it, received */
    uint64_t direct_bytes; /* into it from a GPU of this context */
    uint64_t copies;       /* that were started */
    int64_t copying_ns; /* time in which there was one under way at least: what of it is not added to the time that the
                         * bytes take on the network was hidden behind them */
};

/* Fills up to `max` entries, one for each GPU in use; returns how many are. */
WEFT_API int weft_context_gpu_stats(const struct weft_context *context, struct weft_gpu_stats *stats, int max);

/* What messages may lie in: "host", "cuda", or "cuda (emulated)" with the driver of the tests. */
WEFT_API const char *weft_context_memory(const struct weft_context *context);

/*
 * GPU memory for those who have no CUDA of their own, and copies from and to it; both wait, also for other work of the
 * GPU, and are meant for setting up. A GPU that the context has not used yet is made ready first. Errors: -ENODEV there
 * is no such GPU, or it cannot be used any more; -ENOMEM; -EIO.
 */
WEFT_API int weft_gpu_alloc(struct weft_context *context, int gpu, uint64_t bytes, void **out, struct weft_error *err);
/* Nothing under way refers to it. NULL is allowed. */
WEFT_API void weft_gpu_free(struct weft_context *context, int gpu, void *memory);
/* Either side may be host memory or GPU memory, registered or not. */
WEFT_API int weft_gpu_copy(struct weft_context *context, void *to, const void *from, uint64_t bytes,
                           struct weft_error *err);

/* ------------------------------------------------------------------------------------------- endpoints */

#define WEFT_ANY_ENDPOINT UINT32_MAX

/* Makes endpoint number `id` of this context known (0 .. WEFT_ANY_ENDPOINT - 1, unique: -EEXIST). */
WEFT_API int weft_endpoint_create(struct weft_context *context, uint32_t id, struct weft_endpoint **out,
                                  struct weft_error *err);

/*
 * Tells where the endpoint's memory is: NUMA node `numa_node`; -1 (the default): nowhere in particular. With
 * rail_policy = near or node its large messages then leave on the rails of that node, as long as one of them works; the
 * receiver has no say in it. For connections opened or accepted afterwards. Any thread.
 */
WEFT_API int weft_endpoint_set_node(struct weft_endpoint *endpoint, int numa_node);

/* -EBUSY while a connection of it is open. */
WEFT_API int weft_endpoint_destroy(struct weft_endpoint *endpoint);

/* ------------------------------------------------------------------------------------------- connections */

/*
 * Opens a connection from `endpoint` to endpoint `remote_id` of `peer`, once that endpoint exists there. Waits.
 * Errors: -ETIMEDOUT (the remote endpoint did not appear), the peer's status. Two connections of the same pair are
 * two connections.
 */
WEFT_API int weft_connection_open(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                  int timeout_ms, struct weft_connection **out, struct weft_error *err);

/* Takes a connection that `peer` has opened from its endpoint `remote_id` (or WEFT_ANY_ENDPOINT) to `endpoint`.
 * Waits. -ETIMEDOUT, or the peer's status. */
WEFT_API int weft_connection_accept(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                    int timeout_ms, struct weft_connection **out, struct weft_error *err);

/*
 * Closes this side: receives of this connection end in -ECANCELED, what the peer sends, writes or reads from now on in
 * -ESHUTDOWN; own sends, writes and reads are finished first. Waits for that. The handle is gone afterwards, whatever
 * the result; requests can still be tested. -ETIMEDOUT when own sends did not finish in time (they are cancelled).
 */
WEFT_API int weft_connection_close(struct weft_connection *connection, int timeout_ms, struct weft_error *err);

/* The number of the endpoint at the other side. */
WEFT_API uint32_t weft_connection_remote(const struct weft_connection *connection);

/* ------------------------------------------------------------------------------------------- memory */

enum weft_memory_kind { WEFT_MEMORY_HOST = 0, WEFT_MEMORY_HOST_PINNED = 1, WEFT_MEMORY_CUDA = 2 };

/*
 * Makes `length` bytes at `base` known, of host memory or of one allocation of one GPU (cudaMalloc, a pool, or mapped
 * with the virtual memory calls). Host memory need not be registered to be sent or received into; GPU memory must be,
 * for as long as operations on it are under way: these are then told of it (weft_options.registration), or find it by
 * address. The first registration of a GPU's memory makes that GPU ready (setting `gpus` does it before): it may wait.
 * Every peer that is told the key may read and write the memory (weft_read, weft_write) until the registration ends: it
 * must be there until then, for it is this process that reads and writes it.
 * Errors: -EINVAL (NULL, the range wraps, or spans two allocations), -ENODEV (a GPU that cannot be used), -ENOMEM.
 */
WEFT_API int weft_register(struct weft_context *context, void *base, uint64_t length, struct weft_registration **out,
                           struct weft_error *err);

/* What peers that know the key may do with the memory. */
enum weft_access {
    WEFT_REMOTE_READ = 1u << 0,
    WEFT_REMOTE_WRITE = 1u << 1,
};

/* As weft_register(), which allows both: peers may do no more than `access` says, with 0 nothing. */
WEFT_API int weft_register_for(struct weft_context *context, void *base, uint64_t length, uint32_t access,
                               struct weft_registration **out, struct weft_error *err);

/* The kind of the memory, and its key (unguessable, unique in this context, 0 is never used). */
WEFT_API enum weft_memory_kind weft_registration_kind(const struct weft_registration *registration);
WEFT_API uint64_t weft_registration_key(const struct weft_registration *registration);

/* Ends the registration: no new operation may name it, peers' operations on it are refused; then waits until no
 * operation uses it. */
WEFT_API void weft_deregister(struct weft_registration *registration);

/* ------------------------------------------------------------------------------------------- messages */

enum weft_flags {
    WEFT_ANY_TAG = 1u << 0, /* receive: the next message of the connection whatever its tag */
    WEFT_NOTIFY = 1u << 1,  /* write, read: the peer gets the notification of the options once it is done */
    /* The operation takes its place in the order of the options' stream: its memory, which must be a GPU's, is not
     * touched before the work that is in the stream now has been done, and work put to the stream after the call waits
     * for the operation's end, also where that is an error. Nothing waits in the call, nor does a processor. A stream
     * that is being captured into a graph is refused: -ENOTSUP. */
    WEFT_ON_STREAM = 1u << 2,
};

#define WEFT_NOTIFICATION_MAX 65536 /* bytes of a notification */

/* What else an operation may be told. All zero is the default; NULL means all zero. */
struct weft_options {
    uint32_t flags;                         /* enum weft_flags; unknown bits: -EINVAL */
    int32_t timeout_ms;                     /* 0: no deadline of its own; else the request ends in -ETIMEDOUT */
    struct weft_registration *registration; /* NULL, or the registration the buffer lies in: held while under way */
    uint64_t notify_tag;                    /* with WEFT_NOTIFY: a number that the peer gets as the tag, */
    const void *notify_data;                /* bytes of the user's own, unchanged until the request completes, */
    uint64_t notify_length;                 /* and how many: 0 to WEFT_NOTIFICATION_MAX */
    struct weft_queue *queue;               /* NULL, or the queue (of this context) that the request ends in */
    void *user_data;                        /* comes back in the completion; never looked at */
    void *stream;                           /* with WEFT_ON_STREAM: a CUstream of the memory's GPU; NULL: the default */
};

/*
 * Posts a message of `length` bytes (0 and up) with `tag`. The memory must stay unchanged, and readable by this
 * process, until the request completes: that is when every byte has been acknowledged, or, for small messages, copied.
 * Messages of one connection and tag are matched in the order in which they were posted.
 *
 * Errors: -EAGAIN the setting `requests` is exhausted (nothing was posted: test or wait for some, then try again),
 * -ESHUTDOWN the connection is closed, -EINVAL, -EFAULT GPU memory that is not registered, -ENODEV of a GPU that is
 * lost, or the peer's status.
 */
WEFT_API int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
                       const struct weft_options *options, struct weft_request **out);

/*
 * Posts a receive of at most `capacity` bytes with `tag`. A larger message ends the receive in -EMSGSIZE with nothing
 * written (and the send too, unless that was already complete). Errors as for weft_send().
 */
WEFT_API int weft_recv(struct weft_connection *connection, void *buffer, uint64_t capacity, uint64_t tag,
                       const struct weft_options *options, struct weft_request **out);

/* ------------------------------------------------------------------------------------------- one-sided operations */

/*
 * Writes `length` bytes (0 and up) to `offset` bytes into the memory that the peer has registered under `key`, which it
 * has told by a message of its own. Nobody receives: the request completes when every byte is there. The memory
 * must stay unchanged, and readable by this process, until then. With WEFT_NOTIFY the peer's weft_recv_notification()
 * completes after the data is in place, exactly once, and never when the write fails; the request completes when both
 * have been taken over. Writes are ordered neither among themselves nor with messages.
 *
 * Ends in -EACCES: the peer knows no such key, has deregistered it, or does not allow this; -ERANGE: outside of the
 * registration; what was written before an error is undefined. Errors as for weft_send(); -EMSGSIZE the notification is
 * too long.
 */
WEFT_API int weft_write(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t key,
                        uint64_t offset, const struct weft_options *options, struct weft_request **out);

/* Reads as weft_write() writes. The notification tells the owner of the memory that it has been read. */
WEFT_API int weft_read(struct weft_connection *connection, void *buffer, uint64_t length, uint64_t key, uint64_t offset,
                       const struct weft_options *options, struct weft_request **out);

/* A piece of a list: where it is on either side, from the local base and from the start of the peer's registration. */
struct weft_piece {
    uint64_t local, remote;
    uint64_t length; /* 0 is allowed */
};

/*
 * Writes `count` pieces in one request: small ones travel together in chunks. `base` is where the offsets of the local
 * side count from. `pieces` is copied. Pieces that overlap at their destination leave any of their bytes there.
 * The completion's `bytes` is the sum of the lengths. Errors as for weft_write(), and -E2BIG: more than 1,048,576
 * pieces, or more than the peer takes.
 */
WEFT_API int weft_write_list(struct weft_connection *connection, const void *base, const struct weft_piece *pieces,
                             uint64_t count, uint64_t key, const struct weft_options *options,
                             struct weft_request **out);

/* Reads as weft_write_list() writes. */
WEFT_API int weft_read_list(struct weft_connection *connection, void *base, const struct weft_piece *pieces,
                            uint64_t count, uint64_t key, const struct weft_options *options,
                            struct weft_request **out);

/*
 * Posts a receive for a notification of the peer, of any of its writes and reads on this connection, in the order in
 * which these are done. The completion has its tag and length. Errors as for weft_recv().
 */
WEFT_API int weft_recv_notification(struct weft_connection *connection, void *buffer, uint64_t capacity,
                                    const struct weft_options *options, struct weft_request **out);

/* 1 and the completion when `request` has ended (the handle is gone then), else 0. Drives progress.
 * `completion` may be NULL. -EINVAL for a request with a queue; so also from the two calls below. */
WEFT_API int weft_test(struct weft_request *request, struct weft_completion *completion);

/* Waits until `request` ends: 0 and its completion (the handle is gone then), or -ETIMEDOUT with the request still
 * under way. */
WEFT_API int weft_wait(struct weft_request *request, int timeout_ms, struct weft_completion *completion);

/* Waits until one of `count` requests of the same context ends (NULL entries are passed over): 0, its index and its
 * completion (that handle is gone then); -ETIMEDOUT; -ENOENT when all entries are NULL; -EINVAL when they are of
 * several contexts, which it may not look at while one of them has ended already. Keep them in a ring, in the order of
 * posting: then the cost of a call does not grow with `count`. */
WEFT_API int weft_wait_any(struct weft_request *const *requests, int count, int timeout_ms, int *index,
                           struct weft_completion *completion);

/* Asks for an early end. The request still has to be tested or waited for: its status is -ECANCELED, or what it
 * would have been where the cancel came too late. */
WEFT_API void weft_cancel(struct weft_request *request);

/* ------------------------------------------------------------------------------------------- queues */

/*
 * A queue collects the requests that name it in their options, in the order in which they end, for who waits for many
 * of them, or for them and other descriptors. Such a request is never tested or waited for: its completion comes out of
 * weft_queue_poll() once, told apart by `user_data`, and its handle serves weft_cancel() until then. (Another thread
 * that polls may have taken it before the call that posted it is back.) Ended requests count towards the setting
 * `requests` until they are polled. A context has any number of queues; nothing is allocated for a completion.
 *
 * An event loop, `fd` from weft_completion_fd() being in its set for reading, does for a readable `fd`:
 *
 *     while ((count = weft_queue_poll(queue, completions, MAX)) > 0)
 *         … each of them …
 */

/* The caller owns the queue; it ends with the context at the latest. Errors: -ENOMEM, -EMFILE, -ENFILE. */
WEFT_API int weft_queue_create(struct weft_context *context, struct weft_queue **out, struct weft_error *err);

/* -EBUSY, and nothing done, while a request that names it is under way or has not been polled. */
WEFT_API int weft_queue_destroy(struct weft_queue *queue);

/*
 * Takes up to `max` (1 and up) ended requests: returns how many, 0 when none has ended, and fills `completions`. The
 * handles of these requests are gone. Drives progress when there is none to take. Several threads may poll one queue:
 * each completion goes to one of them. -EINVAL.
 */
WEFT_API int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max);

/*
 * A descriptor that is readable (poll, select, epoll, level- or edge-triggered) as long as ended requests are in the
 * queue. From the first call on the library's own threads make the progress. The descriptor is the queue's and ends
 * with it: it must not be read, written or closed. A thread that was told of completions may find that another one has
 * taken them; with the engine `uring` the kernel may interrupt its sleep (EINTR). Never fails.
 */
WEFT_API int weft_completion_fd(struct weft_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
