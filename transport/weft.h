/*
 * weft.h: the public contract of libweft.
 *
 * Weft moves messages between the endpoints (GPUs, host buffers) of different processes over plain TCP, on all
 * rails (NIC ports) at once. Every call below keeps this invariant:
 *
 *     a completion with status 0 means that the operation is done, each byte applied exactly once,
 *     and after any completion Weft neither reads nor writes the memory of that request again.
 *
 * Done means:
 *   - a receive, a read: every byte is in the caller's memory;
 *   - a write: every byte is in the peer's memory;
 *   - a send with WEFT_SYNC: a receive of the peer has taken the message, and every byte is in that receive's memory;
 *   - a send without it, a notification: the library has what it needs of the caller's memory. That says nothing of the
 *     peer: the message may still be lost with the peer, or refused, if the peer closes the connection before it has
 *     received the message.
 *
 * Conventions, unless the comment of a declaration says otherwise:
 *   - A call returns 0 or a count on success and a negative errno value on failure. It writes its out-parameters on
 *     success only.
 *   - Sizes are bytes in 64 bits. Times are milliseconds (`_ms`) or nanoseconds (`_ns`). A timeout of -1, or any other
 *     below 0, never expires, and a timeout of 0 does not wait.
 *   - Every function may be called from any thread, and on any number of contexts in one process. A handle must
 *     not be used during or after the call that ends it.
 *   - After fork() the child has no use of its parent's contexts and groups: it makes no call on them, nor destroys
 *     them. It may call exec, _exit or exit, which leave the parent's as they are.
 *   - No call blocks unless its comment says that it waits.
 *   - NULL in the place of a handle, a name or a result is refused, where the comment does not allow it: calls that
 *     return int return -EINVAL, those that return an unsigned number or an enum 0, those that return text "", and
 *     those that return nothing do nothing. The array of a call that fills up to `max` entries may be NULL with
 *     `max` 0.
 *   - `err` may be NULL. On failure it holds one line that names the wrong value and the remedy. Calls without `err`
 *     say it in weft_last_error().
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

struct weft_config;       /* named settings; `weft config` lists them */
struct weft_context;      /* the library in this process: rails, workers, requests */
struct weft_peer;         /* another context, reached through one session */
struct weft_endpoint;     /* a numbered place in a context, for one GPU or host buffer: connections join two of them */
struct weft_connection;   /* one pair of endpoints */
struct weft_registration; /* memory made known to the library */
struct weft_request;      /* an operation under way */
struct weft_queue;        /* collects requests that have ended; has a descriptor to wait on */
struct weft_options;      /* of an operation; below */

#define WEFT_TEXT_BYTES 320 /* of every text that says why something failed, with its terminating 0 */

/* Why a call failed, in one line for a person. */
struct weft_error {
    int code;                   /* negative errno; 0 when nothing went wrong */
    char text[WEFT_TEXT_BYTES]; /* what happened, which value caused it, and what to do; always terminated */
};

/* How an operation ended. */
struct weft_completion {
    int status;        /* 0, or a negative errno. -EIO: a GPU failed; -ENODEV: a GPU is lost for good */
    uint32_t reserved; /* 0 */
    uint64_t bytes;    /* payload bytes moved (a receive: the size of the message, also of one that is too large for it,
                        * status -EMSGSIZE); 0 with any other status than 0 */
    uint64_t tag;      /* the tag of the message (a receive with WEFT_ANY_TAG: the sender's); write, read: 0 */
    int64_t completed_ns; /* CLOCK_MONOTONIC time of completion. Without a queue: operations that one read of a socket
                           * ended all have the time of that read, and a send that was copied (up to `eager` bytes) has
                           * the time at which a call found it complete */
    /* The connection of the operation; of an open or accept that has ended with status 0, the new connection; else
     * NULL. Once that connection is closed, the pointer may only be compared. */
    struct weft_connection *connection;
    struct weft_peer *peer;     /* the new one of a connect or accept that has ended well; else NULL */
    void *user_data;            /* weft_options.user_data of the operation; NULL without options */
    char text[WEFT_TEXT_BYTES]; /* "" when status is 0; else one line: the operation, the peer, the reason */
};

/* The version of this header. A program may ask for it: `#if WEFT_VERSION_AT_LEAST(0, 2, 0)`. */
#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION_NUMBER (WEFT_VERSION_MAJOR * 1000000 + WEFT_VERSION_MINOR * 1000 + WEFT_VERSION_PATCH)
#define WEFT_VERSION_AT_LEAST(major, minor, patch) (WEFT_VERSION_NUMBER >= (major)*1000000 + (minor)*1000 + (patch))

/* The version of the library that the program runs with, "major.minor.patch". */
WEFT_API const char *weft_version(void);

/* ------------------------------------------------------------------------------------------- settings */

/*
 * Creates settings with their default values, then applies the file named by WEFT_CONFIG and the WEFT_ variables of
 * the environment. An unknown variable is a warning on standard error; a value out of range is an error.
 * The caller owns and destroys the result; a context copies the settings that it needs. While one thread changes
 * a struct weft_config, no other thread may use it. Errors: -EINVAL, -ENOMEM, or the errno of opening the file.
 */
WEFT_API int weft_config_create(struct weft_config **out, struct weft_error *err);
WEFT_API void weft_config_destroy(struct weft_config *config);

enum weft_log_level { WEFT_LOG_ERROR = 0, WEFT_LOG_WARN = 1, WEFT_LOG_INFO = 2, WEFT_LOG_DEBUG = 3 };

/* Takes one line, without a newline. Called by any thread, also by several at once; it must not call the library, and
 * `line` is gone when it returns. `level`: enum weft_log_level. */
typedef void weft_log_function(void *user, int level, const char *line);

/* As weft_config_create(), but `log` gets the lines that would go to standard error: those of this call, and those of
 * contexts with these settings, until they are destroyed. The setting `log` says which. NULL: standard error. */
WEFT_API int weft_config_create_logged(weft_log_function *log, void *user, struct weft_config **out,
                                       struct weft_error *err);

/* Sets one setting by its name, as on the command line (`channels`, `4`). What a list or a name in a value means
 * (rails, fault, dscp) is looked at when a context is created. -EINVAL: a bad value, or a setting that acts on the
 * program `weft` alone (a file or the environment, which the program may share, can have such settings all the same);
 * -ENOENT: an unknown name (`err` proposes the nearest name). */
WEFT_API int weft_config_set(struct weft_config *config, const char *name, const char *value, struct weft_error *err);

/* The value of a setting as text, or NULL for an unknown name, or for NULL. Valid until the next change of `config`. */
WEFT_API const char *weft_config_get(const struct weft_config *config, const char *name);

/* 1 if a setting was given by the settings file, the environment or weft_config_set(), be it at its default; 0 if not:
 * a program with a default of its own sets it then. -ENOENT: an unknown name; -EINVAL: NULL. */
WEFT_API int weft_config_is_set(const struct weft_config *config, const char *name);

/* ------------------------------------------------------------------------------------------- context */

/*
 * Creates a context: finds the rails, starts the workers. `config` NULL: the defaults and the environment. The caller
 * owns and destroys the context. Waits until the GPUs of the setting `gpus` are ready. Errors: -ENODEV a rail does
 * not exist or no GPU can be used, -ENETDOWN a rail is down, or no card is up, -E2BIG too many rails, -EMFILE too few
 * file descriptors, -ENOENT the key file (setting key_file) does not exist, -EACCES other users may read it, -EPERM the
 * setting congestion names one that only root may use, -ENOTSUP the setting engine or devmem requires what cannot be
 * had here, -EAGAIN the system starts no more threads, -EIO no random numbers, the system's errno where the setting pin
 * is require or the key file cannot be opened, -ENOMEM, -EINVAL. `config` NULL: also the errors of
 * weft_config_create().
 */
WEFT_API int weft_context_create(const struct weft_config *config, struct weft_context **out, struct weft_error *err);

/* Closes every peer in an orderly way (waits up to one second, for all of them at once), then frees everything.
 * Requests and handles of this context are gone afterwards; the memory of requests is not touched again. Before this
 * call, streams with operations (WEFT_ON_STREAM) should have reached them: it waits for that, one second at most. A
 * group of the context (weft_group_create()) has to be destroyed before. NULL is allowed. */
WEFT_API void weft_context_destroy(struct weft_context *context);

/*
 * Accepts peers on `address`: "PORT", "ADDR:PORT", "[V6ADDR]:PORT" or "ADDR". Without a port, the setting `port` is
 * used; 0 lets the kernel choose. A link-local address names its interface: "[fe80::1%eth0]:PORT". The context listens
 * on the same port at the address of every rail (setting rails), too. Once per context. Waits only to look up a name.
 * Errors: -EADDRINUSE, -EADDRNOTAVAIL, -EINVAL, -EALREADY, -ENODEV, -EHOSTUNREACH, -EACCES only root may take so low a
 * port, or the system's errno.
 */
WEFT_API int weft_listen(struct weft_context *context, const char *address, struct weft_error *err);

/* The port on which weft_listen() listens, or -ENOTCONN before that call. */
WEFT_API int weft_listen_port(const struct weft_context *context);

#define WEFT_GREETING_MAX 4096 /* bytes */

/*
 * Sets what this context tells every peer when they meet, such as a name, a role or a version of the program's own: up
 * to WEFT_GREETING_MAX bytes, of which the call keeps a copy. Holds for peers met from now on, connected or accepted:
 * call it before weft_listen() and weft_connect(). `length` 0 (`bytes` may be NULL): no greeting, as at the start. With
 * a key (setting key_file) the greeting travels encrypted, without one it does not. -EINVAL: longer than
 * WEFT_GREETING_MAX, or `bytes` is NULL.
 */
WEFT_API int weft_greeting_set(struct weft_context *context, const void *bytes, uint32_t length,
                               struct weft_error *err);

/* ------------------------------------------------------------------------------------------- peers */

/*
 * Connects to the context that listens on `address` (as for weft_listen, with a host name or address). Waits. If no
 * process listens there yet, the call tries again until `timeout_ms` has passed; if a name has several addresses, it
 * tries each in turn. A rail that does not reach its partner, while another rail does, is left out and dialled again in
 * the background: weft_context_fallbacks() has a line for it. If no rail reaches its partner, the call returns the
 * error of the first rail that failed. The caller owns the peer and closes it. Errors: -ETIMEDOUT, -ECONNREFUSED the
 * other side refused (`err` has its reason), -EACCES the two sides have different keys, or only one side has a key
 * (setting key_file), -EHOSTUNREACH, -EPROTO what answers is not Weft, -EPROTONOSUPPORT there is no common version,
 * -ECONNRESET the other side closed the connection meanwhile, -ENODEV the interface of a link-local address is not
 * here, -EIO the crypto library fails, the system's errno where no socket or thread is to be had, -EMFILE, -ENOMEM,
 * -EINVAL.
 */
WEFT_API int weft_connect(struct weft_context *context, const char *address, int timeout_ms, struct weft_peer **out,
                          struct weft_error *err);

/* Takes the next peer that has connected to this context. Waits, also if the context does not listen. The caller owns
 * the peer. Errors: -ETIMEDOUT, -ENOMEM. */
WEFT_API int weft_accept(struct weft_context *context, int timeout_ms, struct weft_peer **out, struct weft_error *err);

/*
 * Ends the session in an orderly way: waits up to `timeout_ms` until the peer has acknowledged everything sent and, up
 * to half a second of that, until it knows what was received of its own sends; then closes the channels. The peer and
 * its connections are gone afterwards, whatever the result. Requests still under way end in -ESHUTDOWN or the
 * session's error, and can still be tested. -ETIMEDOUT: no answer; -ENOMEM: the session was cut; or the session's
 * error, also if it was lost before the call. 0 also if the peer has closed the session first: what it had not received
 * by then is lost. Sends that are not complete are not waited for: weft_connection_close() of their connections first
 * does that. Small ones that were copied, and so are complete, are: a peer that takes none of them holds the close up
 * until its deadline, and then the session is cut, so that both sides learn that something was lost.
 */
WEFT_API int weft_peer_close(struct weft_peer *peer, int timeout_ms, struct weft_error *err);

/*
 * The calls below that end in _start do the same without waiting: for programs with an event loop. What is begun is a
 * request as that of a message is: weft_test(), weft_wait(), weft_wait_any() and weft_cancel() serve it, or the queue
 * of its options. Of the options they take timeout_ms (0: no deadline), queue and user_data; registration must be NULL;
 * flags: 0, unless the comment of a call names some. A request that ends in an error says why, as the waiting call
 * does. When such a request ends with status 0, its completion has the new peer or connection, and the caller owns
 * it from then on: so take the completion, also after a cancel that may come too late. Requests that set up something
 * do not count towards the setting `requests`. Errors of all: -EINVAL, -ENOMEM; then nothing was begun.
 *
 * A name is looked up by a thread of the context, one name after the other: a slow name server holds up other names,
 * and nothing else. weft_context_destroy() does not wait for it.
 */

/* As weft_connect(). The completion has the peer. -ECANCELED after weft_cancel(): what had begun is ended. */
WEFT_API int weft_connect_start(struct weft_context *context, const char *address, const struct weft_options *options,
                                struct weft_request **out, struct weft_error *err);

/* As weft_accept(). The completion has the peer. Peers go to requests in the order of the calls. */
WEFT_API int weft_accept_start(struct weft_context *context, const struct weft_options *options,
                               struct weft_request **out, struct weft_error *err);

/*
 * As weft_peer_close(), but from the call on the peer and its connections are gone, also if the call returns -ENOMEM
 * (after -EINVAL they are not). At the deadline, or after weft_cancel(), the session is cut, and the request ends in
 * -ETIMEDOUT or -ECANCELED.
 */
WEFT_API int weft_peer_close_start(struct weft_peer *peer, const struct weft_options *options,
                                   struct weft_request **out, struct weft_error *err);

/* The peer's host name and address, for messages. Lives as long as the peer. */
WEFT_API const char *weft_peer_name(const struct weft_peer *peer);

/*
 * What the peer has told this side with weft_greeting_set(); "" when it told nothing, or its version of Weft has no
 * greetings. Never NULL; a zero byte follows the `*length` bytes, which may contain any values, as the peer likes.
 * `length` may be NULL. Lives as long as the peer.
 */
WEFT_API const void *weft_peer_greeting(const struct weft_peer *peer, uint32_t *length);

/*
 * 0 while the session works; else the negative errno that ended the session, and `err` has its text: the peer, rails,
 * bytes moved, time since the peer was heard. Every request of the session has ended in the same errno, or is about to.
 * But a message that has come whole can still be received: by a receive that is posted later, and, after the peer's
 * close, by one that waits for its stream.
 *
 * The loss of channels or rails does not end a session: other channels send the data that was under way, and the lost
 * channels are dialled again in the background (weft_peer_rails() counts them). The loss of the peer ends it.
 * -ECONNRESET: the peer's process is gone or has restarted; -ETIMEDOUT: the peer sends and acknowledges nothing any
 * more (setting timeout); -EPROTO: the peer broke the protocol; -ESHUTDOWN: the peer has closed the session.
 */
WEFT_API int weft_peer_status(const struct weft_peer *peer, struct weft_error *err);

/* What one rail of a session has carried so far. Counters only grow. */
struct weft_rail_stats {
    char name[64];           /* interface, or the local address where one interface carries several rails; "unmet": the
                              * peer connected to this side, but has not reached this rail yet */
    char local[64];          /* local address */
    char remote[64];         /* the peer's address */
    uint64_t sent_bytes;     /* message payload handed to the kernel */
    uint64_t received_bytes; /* message payload taken from the kernel */
    uint64_t resent_bytes;   /* payload sent again, on any rail, because channels of this rail were lost */
    uint64_t stalls;         /* times a channel had work and no credit */
    uint64_t failures;       /* channels lost, or not joined */
    uint64_t damaged;        /* wrong checksums (setting crc), damaged headers, records that do not open (encrypt) */
    uint64_t retransmits;    /* TCP segments sent again (TCP_INFO) */
    int device_bound;        /* 1: sockets are bound to the interface; 0: to the address only */
    int channels, channels_up; /* TCP streams that it should have, and that it has now */
    int retired;               /* 1: not used any more, too many chunks were damaged (setting crc_limit) */
};

/* Fills up to `max` entries, one for each rail of the session; returns the number of rails. */
WEFT_API int weft_peer_rails(const struct weft_peer *peer, struct weft_rail_stats *stats, int max);

/*
 * Holds what this side sends to the peer in a traffic class (0 to 3) to a rate in bytes a second; 0, the default: no
 * limit. The kernel holds it, smoothly (SO_MAX_PACING_RATE). It counts all bytes of the class's TCP streams: payload,
 * headers, answers to the peer, and what is sent again. An eighth is for messages of up to `eager` bytes, the rest for
 * larger ones; each part is divided evenly among the streams that are up. It does not bound what the peer sends; nor
 * messages that other classes carry while the streams of this class are missing. A class in use has streams from then
 * on.
 *
 * Errors: -EINVAL no such class, -ERANGE the rate is so small that a chunk, or a small message, could take a quarter of
 * the setting timeout (with the defaults and one rail, 80 KB/s), -ENOTSUP a class above 0 and a peer whose version of
 * Weft has no classes, -ENOMEM, or the peer's status.
 */
WEFT_API int weft_peer_set_rate(struct weft_peer *peer, uint32_t traffic_class, uint64_t bytes_per_second);

/* Writes and reads of the peer that this side refused: the key was unknown, the range outside of the registration, or
 * the access not allowed. Many of them may be an attack rather than a mistake. */
WEFT_API uint64_t weft_peer_denied(const struct weft_peer *peer);

/* ------------------------------------------------------------------------------------------- rails in force */

/* An interface of this machine: a rail that a context would have, or an interface that is left out. */
struct weft_interface_info {
    char name[64]; /* as in weft_rail_info */
    char interface[32];
    char address[64]; /* "": it has none */
    int is_rail;      /* 1: it becomes a rail; 0: it does not */
    char why[96];     /* is_rail 0: the rule that leaves it out, "has no carrier" */
    char remedy[256]; /* is_rail 0: the option or command that makes it a rail; "": there is none */
};

/*
 * The rails that a context with these settings would have, in their order, then the interfaces that are left out. Opens
 * nothing. `config` must not be NULL. Fills up to `max` entries; returns the number of rails and interfaces. Errors: as
 * weft_context_create() for the setting rails.
 */
WEFT_API int weft_interfaces(const struct weft_config *config, struct weft_interface_info *list, int max,
                             struct weft_error *err);

/* A rail of this context. */
struct weft_rail_info {
    char name[64];
    char address[64];
    char interface[32];
    int32_t mtu;
    int32_t speed_mbit; /* line rate; -1: unknown, as of interfaces without hardware */
    int32_t numa_node;  /* of the network card; -1: unknown, or the machine has one node */
};

/* Fills up to `max` entries; returns the number of rails. */
WEFT_API int weft_context_rails(const struct weft_context *context, struct weft_rail_info *rails, int max);

/* A thread of this context that moves data, and where it runs. Lists of processors as in "8-21,112-125". */
struct weft_thread_info {
    char name[16];
    char role[8];      /* "tx", "rx", or "shared": both, on every rail; beside "tx" and "rx", of small messages alone */
    char rail[64];     /* "": every rail */
    int tid;           /* the kernel's thread id; 0: not started */
    char planned[256]; /* processors that the plan binds it to; "": not bound (setting pin) */
    char allowed[256]; /* processors that the kernel lets it run on */
    int last_cpu;      /* processor that it ran on last; -1: unknown */
    int numa_node;     /* of last_cpu; -1: unknown */
};

/* Fills up to `max` entries with the threads as they are now (Linux's /proc); returns the number of threads. */
WEFT_API int weft_context_threads(const struct weft_context *context, struct weft_thread_info *threads, int max);

/* The engine in force ("epoll", "uring"). */
WEFT_API const char *weft_context_engine(const struct weft_context *context);

/* Why a better path is not in use: one line each, newline separated; "" when the context gave up nothing. A GPU that is
 * made ready later, or a rail that is left out, may add a line; existing lines stay. Lives as long as the context. */
WEFT_API const char *weft_context_fallbacks(const struct weft_context *context);

/* Faults that the setting `fault` has injected so far, for tests. */
struct weft_fault_stats {
    uint64_t resets;    /* connections reset after a number of bytes (reset_every) */
    uint64_t flips;     /* bits flipped in received bytes (flip_every) */
    uint64_t shortened; /* sends and receives made to move less (short) */
    uint64_t stalls;    /* stalls of a rail that began */
    uint64_t drops;     /* drops of a rail that began */
    uint64_t cut;       /* connections reset because of a drop */
    uint64_t refused;   /* connection attempts, from or to a dropped rail, that failed */
};

/* 1 and the counts if the setting `fault` injects faults, else 0. */
WEFT_API int weft_context_faults(const struct weft_context *context, struct weft_fault_stats *stats);

/* ------------------------------------------------------------------------------------------- trace */

enum weft_trace_kind {
    WEFT_TRACE_SENT,       /* a chunk: from the post of the send that carries it until all of that send is with the
                            * kernel, or with the peer where the kernel does not copy (setting zero_copy) */
    WEFT_TRACE_RECEIVED,   /* a chunk: from its header until its last byte is in memory */
    WEFT_TRACE_COPIED_OUT, /* a copy from the memory of `gpu`: from its start until it was found done */
    WEFT_TRACE_COPIED_IN,  /* a copy into the memory of `gpu` */
};

/*
 * What has happened to a piece of a message. A small message is one chunk; writes, reads, their lists and notifications
 * travel in chunks, too. Chunks that one send carries together have the same times. Bytes that were sent again are
 * events again; a send or copy that failed is none. A copy from one GPU of this context to another is COPIED_OUT alone:
 * of the sender, with its GPU.
 */
struct weft_trace_event {
    int64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    uint64_t tag;             /* of the message; 0: it has none */
    uint64_t offset, bytes;   /* of its payload */
    uint32_t endpoint;        /* of this context; WEFT_ANY_ENDPOINT: the connection has ended */
    uint32_t remote;          /* the peer's; as `endpoint` */
    int32_t rail;             /* index in weft_peer_rails(); -1: a copy */
    int32_t channel;          /* number of the TCP stream in its session; -1: a copy */
    int32_t gpu;              /* as weft_gpu_info.index; -1: a chunk */
    int32_t kind;             /* enum weft_trace_kind */
};

/*
 * Traces what is below a message: keeps up to `events` (64 bytes each) of what begins from now on. 0, the default, ends
 * that and frees the memory. What was traced before and has not been taken is gone in either case. -ENOMEM: all is as
 * it was.
 */
WEFT_API int weft_trace_start(struct weft_context *context, uint32_t events, struct weft_error *err);

/*
 * Takes up to `max` events in the order in which they were written down, roughly that of their ends; returns their
 * number; 0: there are none now, or nothing is traced. `lost` (may be NULL): events since weft_trace_start() that found
 * no room. An event may be there only after the request of its message has completed. -EINVAL: `context` is NULL,
 * `events` is NULL and `max` is not 0, or `max` is below 0.
 */
WEFT_API int weft_trace_take(struct weft_context *context, struct weft_trace_event *events, int max, uint64_t *lost);

/* ------------------------------------------------------------------------------------------- GPUs */

/* A GPU of this machine. */
struct weft_gpu_info {
    int32_t index;  /* as in the setting `gpus`: the driver's number */
    int32_t in_use; /* 1: this context has made it ready */
    char name[96];
    char pci[20];      /* "0000:19:00.0"; "": unknown */
    int32_t numa_node; /* of the GPU; -1: unknown, or the machine has one node */
    uint64_t bytes;    /* of its memory */
};

/* Fills up to `max` entries; returns the number of GPUs; 0: no GPU memory (setting `cuda`, or see the fallbacks). */
WEFT_API int weft_context_gpus(const struct weft_context *context, struct weft_gpu_info *gpus, int max);

/* What the library has copied for messages from and to the memory of one GPU so far. Counters only grow. */
struct weft_gpu_stats {
    int32_t index;
    int32_t under_way;     /* copies queued or running now */
    uint64_t out_bytes;    /* copied out of its memory, to be sent */
    uint64_t in_bytes;     /* copied into its memory, received */
    uint64_t direct_bytes; /* copied into its memory from a GPU of this context */
    uint64_t copies;       /* started */
    int64_t copying_ns; /* time with at least one copy running. It costs a transfer only the part by which the transfer
                         * takes longer than its bytes need on the network */
};

/* Fills up to `max` entries, one for each GPU in use; returns the number of GPUs in use. */
WEFT_API int weft_context_gpu_stats(const struct weft_context *context, struct weft_gpu_stats *stats, int max);

/* What network cards have written to the memory of one GPU and read from it themselves (setting devmem), so far. What
 * went in other ways is in weft_gpu_stats. Counters only grow. */
struct weft_devmem_stats {
    int32_t index;
    int32_t inlets;          /* rails whose card writes to its memory now */
    uint64_t fragment_bytes; /* received: written to its memory by a card */
    uint64_t host_bytes; /* received on the same streams, but left in host memory by the card, and copied from there */
    uint64_t sent_bytes; /* given to a card to read from its memory; what is sent again goes another way */
    uint64_t sends_copied;   /* system calls of these for which the kernel has copied the memory after all */
    uint64_t fragments_held; /* now: buffers of its memory that are not given back to a card yet */
};

/* Fills up to `max` entries, one for each GPU in use; returns the number of GPUs in use. */
WEFT_API int weft_context_devmem_stats(const struct weft_context *context, struct weft_devmem_stats *stats, int max);

/* The kinds of memory that messages may use: "host", "cuda", or "cuda (emulated)" with the driver of the tests. */
WEFT_API const char *weft_context_memory(const struct weft_context *context);

/*
 * GPU memory for programs without CUDA of their own, and copies from and to it. For setting up: all three wait, also
 * for other work of the GPU. The caller owns the memory and frees it. A GPU that the context has not used yet is made
 * ready first. Errors: -ENODEV the GPU does not exist, or cannot be used any more; -EINVAL; -ENOMEM; -EIO.
 */
WEFT_API int weft_gpu_alloc(struct weft_context *context, int gpu, uint64_t bytes, void **out, struct weft_error *err);
/* No operation that uses the memory may be under way. NULL is allowed. */
WEFT_API void weft_gpu_free(struct weft_context *context, int gpu, void *memory);
/* `to` and `from` may each be host memory or GPU memory, registered or not. */
WEFT_API int weft_gpu_copy(struct weft_context *context, void *to, const void *from, uint64_t bytes,
                           struct weft_error *err);

/* ------------------------------------------------------------------------------------------- endpoints */

#define WEFT_ANY_ENDPOINT UINT32_MAX

/* Creates endpoint number `id` of this context (0 .. WEFT_ANY_ENDPOINT - 1). The caller owns the endpoint and destroys
 * it. Errors: -EEXIST the context has an endpoint with this number, -EINVAL, -ENOMEM. */
WEFT_API int weft_endpoint_create(struct weft_context *context, uint32_t id, struct weft_endpoint **out,
                                  struct weft_error *err);

/*
 * Tells the library the NUMA node of the endpoint's memory; -1 (the default): no particular node. With rail_policy =
 * near or node, large messages of the endpoint leave on the rails of that node while one of these works, whatever the
 * receiver's node; a node without rails uses all. For connections opened or accepted later. -EINVAL: below -1.
 */
WEFT_API int weft_endpoint_set_node(struct weft_endpoint *endpoint, int numa_node);

/*
 * The traffic class (0, the default, to 3) of connections that are opened from this endpoint from now on. A connection
 * has the class that its opener chose, in both directions. The peer's messages of one class have TCP streams of their
 * own, as many as class 0 has, which are dialled when the class is first used: so bulk data of one class does not stand
 * before messages of another, and a network can tell the classes apart by their mark (setting dscp). While the streams
 * of a class are missing, its messages go on those of another. -EINVAL: above 3. Opening ends in -ENOTSUP with a class
 * above 0 if the peer runs a version of Weft without classes.
 */
WEFT_API int weft_endpoint_set_class(struct weft_endpoint *endpoint, uint32_t traffic_class);

/* -EBUSY, and nothing done, while a connection of the endpoint is open: until both sides have closed it, or the peer's
 * handle is closed. Accepts that still wait for a connection to it end with -ECANCELED. NULL is allowed. */
WEFT_API int weft_endpoint_destroy(struct weft_endpoint *endpoint);

/* ------------------------------------------------------------------------------------------- connections */

/*
 * Opens a connection from `endpoint` to endpoint `remote_id` of `peer`. Waits until that endpoint exists there. A pair
 * of endpoints can have several connections. The caller owns and closes the connection. Errors: -ETIMEDOUT the remote
 * endpoint did not appear, -EMFILE the peer allows no more connections, -EINVAL endpoint and peer are of different
 * contexts, or `remote_id` is WEFT_ANY_ENDPOINT, -ENOTSUP a traffic class above 0 and a peer whose version of Weft has
 * none, -ENOMEM, or the peer's status.
 */
WEFT_API int weft_connection_open(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                  int timeout_ms, struct weft_connection **out, struct weft_error *err);

/* Takes a connection that `peer` has opened from its endpoint `remote_id` (or WEFT_ANY_ENDPOINT) to `endpoint`. Waits.
 * One that the peer has closed since is among them while something that came on it was not received. The caller owns
 * the connection and closes it. Errors: -ETIMEDOUT, -EINVAL endpoint and peer are of different contexts, -ENOMEM, or
 * the peer's status. */
WEFT_API int weft_connection_accept(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                    int timeout_ms, struct weft_connection **out, struct weft_error *err);

/*
 * Closes this side. Receives of this connection end in -ECANCELED; later sends, writes and reads of the peer end in
 * -ESHUTDOWN. Waits until the sends, writes and reads of this side have finished. The handle is gone afterwards,
 * whatever the result; requests can still be tested. -ETIMEDOUT: some did not finish in time; they are cancelled. If
 * the session is lost while the call waits: the session's error. 0 without waiting if the session was lost before, or
 * if there is no memory to wait: the requests say what became of them, once nothing touches their memory.
 */
WEFT_API int weft_connection_close(struct weft_connection *connection, int timeout_ms, struct weft_error *err);

/* The connection's traffic class, as its opener chose it: 0 to 3. */
WEFT_API uint32_t weft_connection_class(const struct weft_connection *connection);

/* As weft_connection_open(), without waiting, and with WEFT_CLASS in a traffic class. The completion has the
 * connection. If the request fails, nothing of the connection is left. Errors also as weft_connection_open(). */
WEFT_API int weft_connection_open_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                        const struct weft_options *options, struct weft_request **out,
                                        struct weft_error *err);

/* As weft_connection_accept(), without waiting. The completion has the connection. Errors also as there. */
WEFT_API int weft_connection_accept_start(struct weft_endpoint *endpoint, struct weft_peer *peer, uint32_t remote_id,
                                          const struct weft_options *options, struct weft_request **out,
                                          struct weft_error *err);

/* As weft_connection_close(), but the handle is gone from the call on, also if the call returns -ENOMEM (after -EINVAL
 * it is not). At the deadline, or after weft_cancel(), the sends that have not finished are cancelled. */
WEFT_API int weft_connection_close_start(struct weft_connection *connection, const struct weft_options *options,
                                         struct weft_request **out, struct weft_error *err);

/* The number of the endpoint at the other side; WEFT_ANY_ENDPOINT for NULL. */
WEFT_API uint32_t weft_connection_remote(const struct weft_connection *connection);

/* ------------------------------------------------------------------------------------------- events */

enum weft_event_kind {
    WEFT_EVENT_PEER = 1,       /* a peer has connected: `peer` is handed over, as by weft_accept() */
    WEFT_EVENT_CONNECTION = 2, /* `peer` has opened a connection to `endpoint`: `connection` is handed over, as by
                                * weft_connection_accept() */
    WEFT_EVENT_LOST = 3,       /* `peer`, which is yours, can no longer be used: status and text as weft_peer_status().
                                * Told once, and you still close it */
};

/* What has happened unasked. */
struct weft_event {
    int kind;   /* enum weft_event_kind */
    int status; /* LOST: a negative errno; else 0 */
    struct weft_peer *peer;
    struct weft_connection *connection; /* CONNECTION; else NULL */
    struct weft_endpoint *endpoint;     /* CONNECTION: the one of this context; else NULL */
    uint64_t reserved;                  /* 0 */
    char text[WEFT_TEXT_BYTES];         /* LOST: why, in one line; else "" */
};

/*
 * Takes up to `max` (1 and up) events, and returns their number; 0: nothing has happened. Never waits. A peer or a
 * connection goes to who asks first, an event or an accept call. Of one peer, PEER comes before CONNECTION, and LOST
 * last; peers that you have by a request or a call are told of from the moment on at which you have taken the
 * completion, or the call has returned. -EINVAL: `context` or `events` is NULL, or `max` is below 1.
 */
WEFT_API int weft_event_poll(struct weft_context *context, struct weft_event *events, int max);

/* A descriptor that is readable (level- or edge-triggered, as that of a queue) while an event may be waiting; poll
 * until 0 is returned. The context owns it. -EINVAL: `context` is NULL. */
WEFT_API int weft_event_fd(struct weft_context *context);

/* ------------------------------------------------------------------------------------------- memory */

enum weft_memory_kind { WEFT_MEMORY_HOST = 0, WEFT_MEMORY_HOST_PINNED = 1, WEFT_MEMORY_CUDA = 2 };

/*
 * Makes `length` bytes at `base` known: host memory, or memory of one allocation of one GPU (cudaMalloc, a pool, or
 * mapped with the virtual memory calls). Host memory need not be registered to be sent or received into. GPU memory
 * must be registered while operations on it are under way: they get the registration in weft_options, or find it by
 * address. The first registration of a GPU's memory makes this GPU ready: it may wait (setting `gpus`: done before).
 * Every peer that has the key may read and write the memory (weft_read, weft_write) until the registration ends. This
 * process does so for the peer: the memory must exist until then. The caller owns and ends the registration.
 * Errors: -EINVAL (NULL, empty, the range wraps or spans two allocations), -ENODEV the GPU is unusable, -ENOTSUP the
 * setting devmem is require and no card can, -ENOMEM, -EIO, or the errno of reading random numbers.
 */
WEFT_API int weft_register(struct weft_context *context, void *base, uint64_t length, struct weft_registration **out,
                           struct weft_error *err);

/* What peers that know the key may do with the memory. */
enum weft_access {
    WEFT_REMOTE_READ = 1u << 0,
    WEFT_REMOTE_WRITE = 1u << 1,
};

/* As weft_register(), which allows reads and writes: peers may do only what `access` says; 0: nothing. -EINVAL also for
 * other bits in `access`. */
WEFT_API int weft_register_for(struct weft_context *context, void *base, uint64_t length, uint32_t access,
                               struct weft_registration **out, struct weft_error *err);

/* The kind of the memory (never HOST_PINNED), and its key (never 0, unique in this context, peers cannot guess it). */
WEFT_API enum weft_memory_kind weft_registration_kind(const struct weft_registration *registration);
WEFT_API uint64_t weft_registration_key(const struct weft_registration *registration);

/* Ends the registration: refuses new operations that name it and peers' operations on it, then waits, without a limit,
 * until no operation uses it: let own requests that name it end first, or cancel them. NULL is allowed. */
WEFT_API void weft_deregister(struct weft_registration *registration);

/* ------------------------------------------------------------------------------------------- messages */

enum weft_flags {
    WEFT_ANY_TAG = 1u << 0, /* receive: the next message of the connection, with any tag */
    WEFT_NOTIFY = 1u << 1,  /* write, read: the peer gets the notification of the options once the operation is done */
    /* The operation takes its place in the order of weft_options.stream. Its memory, which must be GPU memory (else
     * -EINVAL), is not touched before the work now in the stream is done. Work put to the stream after the call waits
     * until the operation ends, also with an error. Neither the call nor a processor waits. -ENOTSUP: the stream is
     * being captured into a graph, or the GPU cannot wait for the library. */
    WEFT_ON_STREAM = 1u << 2,
    WEFT_TAG_MASK = 1u << 3, /* receive: a message whose tag has the bits of weft_options.tag_mask as in the receive's
                              * tag; not with WEFT_ANY_TAG */
    WEFT_SYNC = 1u << 4,     /* send: ends only when a receive has taken the message and every byte is in its memory */
    WEFT_CLASS = 1u << 5,    /* weft_connection_open_start(): weft_options.traffic_class, not the endpoint's */
    WEFT_WATCH = 1u << 6,    /* weft_send(), weft_sendv(), weft_recv(), weft_recvv(): weft_options.watcher hears
                              * of chunks */
};

#define WEFT_NOTIFICATION_MAX 65536 /* bytes of a notification */

/*
 * Why the last of this thread's calls failed that have no `err`, such as those that post an operation, in one line: the
 * argument, its value, the remedy. A wait that ended in -ETIMEDOUT has not failed. "" if none has failed; a call that
 * succeeds leaves the line as it is. Valid until the next such call of this thread fails.
 */
WEFT_API const char *weft_last_error(void);

/* A piece of a message that one TCP stream carries. */
struct weft_chunk {
    uint64_t offset, bytes; /* of the message's payload */
    int32_t rail;           /* index in weft_peer_rails() */
    int32_t channel;        /* number of the TCP stream in its session */
    int32_t fd;             /* its descriptor: to tell streams apart, not to be used */
    int32_t receives;       /* 1: the operation is a receive; 0: a send */
};

/*
 * Hears of an operation's chunks while they move, as a profiler needs it that takes the time when it is called; a trace
 * is the cheaper way (weft_trace_start()). A chunk of a send begins when a stream takes it, and ends when the kernel
 * has taken all of it; one of a receive begins with its header, and ends when its last byte has come. Its memory stays
 * the operation's until that completes: what is sent again begins again. Each `begins` is followed by one `ends`,
 * before the operation completes. Bytes may be in no chunk: of messages of up to `eager` bytes, and what comes before
 * its receive is posted or may be written to. What is copied from one GPU of this context to another has none.
 *
 * Both are called on threads of the library or of any caller of it, with locks of the library held: they must return
 * soon, and must not call the library. Calls for operations with one peer do not overlap.
 */
struct weft_watcher {
    void *(*begins)(void *user_data, const struct weft_chunk *chunk); /* returns what `ends` is given as `own` */
    void (*ends)(void *user_data, void *own, int whole);              /* `whole` 0: not all of it went, or came */
};

/* Options of an operation. All zero is the default; NULL means all zero. The call copies the struct. A field whose
 * comment names a flag counts only with that flag. */
struct weft_options {
    uint32_t flags;                         /* enum weft_flags; bits that the call does not know: -EINVAL */
    int32_t timeout_ms;                     /* 0: no deadline; below 0: -EINVAL; else the request ends in -ETIMEDOUT
                                             * after this time */
    struct weft_registration *registration; /* NULL, or the one that contains the buffer: held until the request ends */
    uint64_t notify_tag;                    /* WEFT_NOTIFY: the tag of the notification */
    const void *notify_data;                /* WEFT_NOTIFY: host memory, unchanged until the request completes */
    uint64_t notify_length;                 /* WEFT_NOTIFY: bytes at notify_data, 0 to WEFT_NOTIFICATION_MAX */
    struct weft_queue *queue;               /* NULL, or a queue of this context: the request ends in it */
    void *user_data;                        /* the completion has the same value; the library does not use it */
    void *stream;                           /* WEFT_ON_STREAM: a CUstream of the memory's GPU; NULL: the default one */
    uint64_t tag_mask;                      /* WEFT_TAG_MASK: the bits of the tag that must be equal */
    uint32_t traffic_class;                 /* WEFT_CLASS: 0 to 3 */
    uint32_t reserved;                      /* WEFT_CLASS: 0, else -EINVAL; never read without that flag */
    const struct weft_watcher *watcher;     /* WEFT_WATCH: unchanged until the operation completes; gets user_data */
};

/*
 * Posts a message of `length` bytes (0 and up) with `tag`. The memory must stay unchanged, and readable by this
 * process, until the request completes: every byte is acknowledged by the peer or, for small messages, copied. It may
 * change as soon as a receive of the peer has completed with the whole message: what is sent again after that, because
 * its acknowledgement was lost with a channel, is dropped there unchecked. Messages of one connection are matched in
 * the order in which they were posted. Test, wait for or poll `*out`.
 *
 * With WEFT_SYNC the request completes only when a receive of the peer has taken the message and all of it has landed.
 * It ends in -ESHUTDOWN if the peer closes the connection first; -ENOTSUP: the peer runs an older version of Weft.
 * After a cancel or a deadline the peer may have received the message all the same.
 *
 * Errors: -EAGAIN the setting `requests`, or a limit of the GPU for WEFT_ON_STREAM, is exhausted (nothing was posted:
 * test or wait for some requests, then try again), -ESHUTDOWN the connection or the registration has ended, -EINVAL,
 * -EFAULT GPU memory that is not registered, -ENODEV the GPU is lost, -ENOMEM, -ENOTSUP, -EIO, or the peer's status.
 */
WEFT_API int weft_send(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t tag,
                       const struct weft_options *options, struct weft_request **out);

/*
 * Posts a receive of at most `capacity` bytes with `tag`. A larger message ends the receive in -EMSGSIZE: nothing is
 * written, the completion's `bytes` are the size of the message, and the message keeps its place for the next receive
 * that takes its tag. Errors as for weft_send(). It ends in -ECANCELED or -ETIMEDOUT also where the sender's end of the
 * message does, by a cancel or a deadline, after this receive has taken it.
 *
 * After the peer has closed the session or was lost, a message that came whole before can still be received, and probed
 * for, unless the receive would take an older one that did not. Other receives end in the session's error, here or in
 * their completion.
 *
 * A message takes the receive that was posted first of those that take its tag, whether they name one tag, some
 * (WEFT_TAG_MASK) or any (WEFT_ANY_TAG). A receive takes the first message that no receive has taken.
 */
WEFT_API int weft_recv(struct weft_connection *connection, void *buffer, uint64_t capacity, uint64_t tag,
                       const struct weft_options *options, struct weft_request **out);

#define WEFT_IOV_MAX 1024 /* entries of a vector */

/*
 * As weft_send() and weft_recv(), but the bytes of the one message are in `count` (0 to WEFT_IOV_MAX) places, in the
 * order of the entries. Entries may be empty. The call copies `iov`. The other side need not use the same entries, or
 * any. Where entries of a receive overlap, the bytes of any of them are left there. The entries are all in host memory,
 * or all in one registration of GPU memory: else -ENOTSUP. -E2BIG: too many entries.
 */
WEFT_API int weft_sendv(struct weft_connection *connection, const struct iovec *iov, int count, uint64_t tag,
                        const struct weft_options *options, struct weft_request **out);
WEFT_API int weft_recvv(struct weft_connection *connection, const struct iovec *iov, int count, uint64_t tag,
                        const struct weft_options *options, struct weft_request **out);

/*
 * Posts a receive of a message from any connection of the endpoint, of any peer, also from connections that come later.
 * The completion says which connection (of a message that was taken; else NULL). Takes part in all that is said of
 * weft_recv(); in addition:
 *   - A message that a receive of its own connection is for goes to that receive.
 *   - Where messages wait on several connections, the connections take turns: each time a message is taken from those
 *     that wait on a connection, the connection goes behind the others. Messages of one connection keep their order.
 *   - Only connections that the caller has take part: a message on one that has not been accepted waits for that.
 * The receive ends with an error of its message if the peer is lost, or cancels, while the message is on its way into
 * the buffer; otherwise no peer ends it. It ends in -ECANCELED when the endpoint is destroyed. WEFT_ON_STREAM: -EINVAL.
 */
WEFT_API int weft_endpoint_recv(struct weft_endpoint *endpoint, void *buffer, uint64_t capacity, uint64_t tag,
                                const struct weft_options *options, struct weft_request **out);

/* A message that waits for a receive. */
struct weft_message {
    struct weft_connection *connection; /* on which it came */
    uint64_t tag;
    uint64_t bytes;    /* its size; some of them may be still to come */
    uint64_t reserved; /* 0 */
};

/*
 * 1 and the message that a receive of `tag` would take, if it were posted now; 0: no such message has come yet. Takes
 * nothing: another thread's receive may take the message before the caller's. Options: WEFT_ANY_TAG or WEFT_TAG_MASK
 * with its mask, no other flag. Drives progress as weft_test() does. Errors: -EINVAL, -ESHUTDOWN the peer
 * has closed the connection and nothing is left of it, or the peer's status.
 */
WEFT_API int weft_probe(struct weft_connection *connection, uint64_t tag, const struct weft_options *options,
                        struct weft_message *out);

/* As weft_probe(), of a receive by weft_endpoint_recv(): 1 and the message of the connection whose turn it is; or 0.
 * The only error is -EINVAL. */
WEFT_API int weft_endpoint_probe(struct weft_endpoint *endpoint, uint64_t tag, const struct weft_options *options,
                                 struct weft_message *out);

/* ------------------------------------------------------------------------------------------- one-sided operations */

/*
 * Writes `length` bytes (0 and up) to `offset` bytes into the memory that the peer has registered under `key` (the peer
 * tells the key in a message of its own). The peer posts no receive: the request completes when every byte is in place.
 * The memory must stay unchanged, and readable by this process, until then. With WEFT_NOTIFY, the peer's
 * weft_recv_notification() completes once, after the data is in place, and never if the write fails; the request then
 * completes when the peer has taken both. Writes are ordered neither among themselves nor with messages.
 *
 * Ends in -EACCES: the peer knows no such key, has deregistered it, or does not allow the access; -ERANGE: the range
 * lies outside of the registration. After an error the bytes in the range are undefined. Errors as for weft_send();
 * -EMSGSIZE the notification is too long.
 */
WEFT_API int weft_write(struct weft_connection *connection, const void *buffer, uint64_t length, uint64_t key,
                        uint64_t offset, const struct weft_options *options, struct weft_request **out);

/* As weft_write(), but reads. The notification tells the owner of the memory that the memory has been read. */
WEFT_API int weft_read(struct weft_connection *connection, void *buffer, uint64_t length, uint64_t key, uint64_t offset,
                       const struct weft_options *options, struct weft_request **out);

/* A piece of a list: its offset at either side, from the local base and from the start of the peer's registration. */
struct weft_piece {
    uint64_t local, remote;
    uint64_t length; /* 0 is allowed */
};

/*
 * Writes `count` pieces in one request; small pieces travel together in chunks. Local offsets count from `base`. The
 * call copies `pieces`. Where pieces overlap at their destination, the bytes of any of them are left there.
 * The completion's `bytes` is the sum of the lengths. Errors as for weft_write(), and -E2BIG: more than 1,048,576
 * pieces, or more than the peer allows. The request may end in -ENOBUFS: the peer has too many lists of this session at
 * the moment; try again later.
 */
WEFT_API int weft_write_list(struct weft_connection *connection, const void *base, const struct weft_piece *pieces,
                             uint64_t count, uint64_t key, const struct weft_options *options,
                             struct weft_request **out);

/* As weft_write_list(), but reads. */
WEFT_API int weft_read_list(struct weft_connection *connection, void *base, const struct weft_piece *pieces,
                            uint64_t count, uint64_t key, const struct weft_options *options,
                            struct weft_request **out);

/*
 * Posts a receive for the next notification on this connection: of the peer's writes and reads, in the order in which
 * they are done, and of its calls of weft_notify(). A notification that is too large ends the receive in -EMSGSIZE and
 * waits for the next one. The completion has its tag and length. No flags are allowed. Errors as for weft_recv().
 */
WEFT_API int weft_recv_notification(struct weft_connection *connection, void *buffer, uint64_t capacity,
                                    const struct weft_options *options, struct weft_request **out);

/*
 * Posts a notification of `length` bytes (0 to WEFT_NOTIFICATION_MAX) with `tag`, without a write or read: the peer's
 * weft_recv_notification() gets it as any other. Notifications of this call arrive in the order of the calls.
 * `data` is host memory and must stay unchanged until the request completes, which is as early as that of a send. No
 * flags are allowed. Errors as for weft_send(); -EMSGSIZE the notification is too long; -ENOTSUP the peer runs an older
 * version of Weft.
 */
WEFT_API int weft_notify(struct weft_connection *connection, const void *data, uint64_t length, uint64_t tag,
                         const struct weft_options *options, struct weft_request **out);

/* 1 and the completion when `request` has ended (the handle is then gone), else 0. Drives progress. `completion` may be
 * NULL, also in the two calls below. All three: -EINVAL for a request with a queue. */
WEFT_API int weft_test(struct weft_request *request, struct weft_completion *completion);

/* Waits until `request` ends: 0 and its completion (the handle is then gone); -ETIMEDOUT: it is still under way. */
WEFT_API int weft_wait(struct weft_request *request, int timeout_ms, struct weft_completion *completion);

/* Waits until one of `count` requests of the same context ends (NULL entries are passed over): 0, its index and its
 * completion (that handle is then gone). -ETIMEDOUT; -ENOENT: all entries are NULL; -EINVAL: requests of several
 * contexts, which the call may not notice when one of them has already ended. Keep the requests in a ring, in the order
 * of posting: then the cost of a call does not grow with `count`. */
WEFT_API int weft_wait_any(struct weft_request *const *requests, int count, int timeout_ms, int *index,
                           struct weft_completion *completion);

/* Asks for an early end. The request still has to be tested, waited for or, with a queue, polled: its status is
 * -ECANCELED, or the status that it would have had if the cancel came too late. */
WEFT_API void weft_cancel(struct weft_request *request);

/* ------------------------------------------------------------------------------------------- queues */

/*
 * A queue collects the requests that name it in their options, in the order in which they end. Use it to wait for many
 * requests, or for requests and other descriptors. Such a request is never tested or waited for: weft_queue_poll()
 * returns its completion once, with its `user_data`, and its handle serves weft_cancel() until then. (Another thread
 * may poll the completion before the call that posted the request returns.) Ended requests count towards the setting
 * `requests` until they are polled. A context has any number of queues. A completion allocates nothing.
 *
 * An event loop, with `fd` from weft_completion_fd() in its set for reading, sleeps after the queue was found empty:
 *
 *     for (count = 0;;) {
 *         epoll_wait(set, events, MAX, count > 0 ? 0 : -1);
 *         … what the other descriptors have …
 *         count = weft_queue_poll(queue, completions, MAX);
 *         … each of these completions …
 *     }
 *
 * So it serves the others between two batches: while every completion makes it post the next request, the queue need
 * not become empty.
 */

/* The caller owns the queue; the end of the context ends it, too. Errors: -ENOMEM, -EMFILE, -ENFILE. */
WEFT_API int weft_queue_create(struct weft_context *context, struct weft_queue **out, struct weft_error *err);

/* -EBUSY, and nothing done, while a request that names the queue is under way or has not been polled. */
WEFT_API int weft_queue_destroy(struct weft_queue *queue);

/*
 * Takes up to `max` (1 and up) ended requests, fills `completions` and returns the number; 0 when none has ended. The
 * handles of these requests are gone. Drives progress when the queue is empty. Several threads may poll one queue:
 * each completion goes to one of them. -EINVAL: `completions` is NULL, or `max` is below 1.
 */
WEFT_API int weft_queue_poll(struct weft_queue *queue, struct weft_completion *completions, int max);

/*
 * As weft_queue_poll(), but waits up to `timeout_ms` for at least one, and drives progress as weft_wait() does; several
 * threads may wait on one queue. The number of completions, or -ETIMEDOUT.
 */
WEFT_API int weft_queue_wait(struct weft_queue *queue, int timeout_ms, struct weft_completion *completions, int max);

/*
 * A descriptor that is readable (poll, select, epoll, level- or edge-triggered) as long as ended requests are in the
 * queue. It may also be readable because there is work to do, such as bytes that have come: weft_queue_poll() does it,
 * and may return 0. So poll until it returns 0 before going to sleep; a loop that does not is told a little later.
 * The thread that sleeps on the descriptor of a context's only watched queue does the library's work when it wakes and
 * calls weft_queue_poll(), which saves a wake-up for each message. While no thread calls it, and where several queues
 * are watched, the library's own threads do that work. The queue owns the descriptor and closes it: the caller must not
 * read, write or close it. A thread may wake to find that another thread has polled the completions; with the engine
 * `uring` the kernel may interrupt its sleep (EINTR). The only error is -EINVAL: `queue` is NULL.
 */
WEFT_API int weft_completion_fd(struct weft_queue *queue);

#ifdef __cplusplus
}
#endif
#endif
