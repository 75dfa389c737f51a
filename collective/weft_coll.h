/*
 * weft_coll.h: the public contract of libweft_coll: several processes as one group, on weft.h alone.
 *
 *     what fails in a group ends it at every member, with the name of the member that is the cause
 *
 * Conventions are those of weft.h, but for one: the calls here never set weft_last_error(). In addition:
 *   - A group has no thread. It makes progress only inside its calls: those that wait, those with _start,
 *     weft_group_poll() and weft_group_status(). A member that makes none of them answers no other member. (Its death,
 *     or that it is stopped, shows all the same.) While sessions are being opened it has to make one every 4 seconds:
 *     the other side waits 5 s for each step.
 *   - Any thread may call, also several at once.
 */
#ifndef WEFT_COLL_H
#define WEFT_COLL_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_group; /* this process and others, each with a rank */

/* ------------------------------------------------------------------------------------------- groups */

/*
 * What a group is made of. All zero (and NULL) is the default: everything is found in the environment.
 *
 * Who this process is among how many, and where they meet, is asked of these, in this order; the first that knows all
 * of it is taken: these options, PMIx, torchrun's variables, Slurm's, those of PMI-1. `rendezvous` holds with any of
 * them.
 */
struct weft_group_options {
    uint32_t size;          /* processes; 0: rank and size are found */
    uint32_t rank;          /* of this process, 0 to size - 1; counts only with a size */
    const char *rendezvous; /* "HOST:PORT": rank 0 listens there; "file:PATH": rank 0 writes its address to that file,
                             * in a folder that all share; NULL: found */
    const char *source;     /* "options", "pmix", "torchrun", "slurm", "pmi": ask no other; NULL: ask all */
    const char *name;       /* of the group, up to 63 characters without white space and `=`, the same at every member:
                             * others are refused. A second group of a process needs another one where PMIx is the
                             * meeting; PMI-1 serves one group of a process only */
    uint32_t sessions;      /* most that weft_group_connection() and collectives, also of groups destroyed since, have
                             * open at a time; 0: no limit but the setting `peers` */
    uint32_t reserved[7];   /* 0, else -EINVAL */
};

/*
 * Makes a group of `options.size` processes; every one of them calls. Waits until all have come, and all know that.
 * Rank 0 listens, and the others connect to it; all listen for later. A context that does not listen yet does after the
 * call, on the port that the kernel chose, or on that of the rendezvous. A name that nobody knows is asked for again
 * until the deadline, also by rank 0: in a cluster it may come after the processes. With a key (setting key_file) all
 * of this is under the key.
 *
 * The context belongs to the group: it takes the context's events (weft_event_poll()), peers that are no members are
 * closed, and endpoints 0xFFFFFF00 and up are its own. A context has one such group at a time, and any number that
 * weft_group_split() makes of it. Settings to look at: `peers` (at rank 0, at least size - 1), `timeout` (after which a
 * silent member is lost).
 *
 * The group waits as long as the least patient member does. `options` NULL: all zero. Errors, of which `err` says who
 * and why: -EINVAL an option or a variable is wrong, or who this is or where they meet is not known (`err` says what to
 * add), -ENOMEM, -ENODEV the context has no rail, -EIO or the system's errno where the rendezvous cannot be written or
 * read, -ETIMEDOUT members have not come, -EEXIST there is a process of this rank, -EPROTO a member has another
 * version, -EACCES this member and rank 0 have different keys, -ECONNREFUSED rank 0 belongs to another group, -EBUSY
 * the context has a group, those of weft_listen() and weft_connect(), and how a member was lost.
 */
WEFT_API int weft_group_create(struct weft_context *context, const struct weft_group_options *options, int timeout_ms,
                               struct weft_group **out, struct weft_error *err);

/*
 * As weft_group_create(), from addresses that the caller has: "HOST:PORT" of each rank, in their order. Nothing is
 * looked for in the environment, and no member knows all others until all have met. A context that does not listen yet
 * does on `addresses[rank]`. `name` as in weft_group_options; it may be NULL.
 */
WEFT_API int weft_group_create_from(struct weft_context *context, const char *const *addresses, uint32_t size,
                                    uint32_t rank, const char *name, int timeout_ms, struct weft_group **out,
                                    struct weft_error *err);

/*
 * Leaves the group, and ends it here: what is under way is cancelled, and never polled. Waits two seconds at most:
 * so long where a member does not answer. Others notice when they need this member: a barrier or collective that it has
 * not done, or that begins later, ends at once, with its name. A collective that has ended here may still need messages
 * of this member elsewhere: enter a barrier before this call. Memory of operations that were under way may be used
 * until the context is destroyed. Comes before weft_context_destroy(). Of a group that weft_group_split() has made: see
 * there. NULL is allowed.
 */
WEFT_API void weft_group_destroy(struct weft_group *group);

/* 1: the environment says that a launcher has started several processes (WORLD_SIZE, SLURM_STEP_NUM_TASKS or PMI_SIZE
 * above 1), or that PMIx has started this one; nobody is asked. Else 0. */
WEFT_API int weft_group_launched(void);

WEFT_API uint32_t weft_group_rank(const struct weft_group *group);
WEFT_API uint32_t weft_group_size(const struct weft_group *group);

/* Number of this process among those of its host, from 0: as what has started them says, else in the order of ranks. */
WEFT_API uint32_t weft_group_local_rank(const struct weft_group *group);

/* "rank 3 (host, process 4711)", for messages; "" for a rank that the group has not. "rank 3" alone while host and
 * process are not known (weft_group_create_from()): then the text may change with any call on the group. Lives as long
 * as the group. */
WEFT_API const char *weft_group_member_name(const struct weft_group *group, uint32_t rank);

/* In one line, which source has said who this is and where all meet. Lives as long as the group. */
WEFT_API const char *weft_group_source(const struct weft_group *group);

/* Who was refused while the group came together, and why: one line each; "" when nobody was. The same at every member
 * of weft_group_create(). Lives as long as the group. */
WEFT_API const char *weft_group_refused(const struct weft_group *group);

/*
 * How far its making had come at this member, and when: nanoseconds since the call that made it began. Each is no less
 * than the one before it; what a member has not had to do took no time.
 */
struct weft_group_times {
    int64_t opened_ns;    /* the group's own memory and endpoints, and a port to listen on */
    int64_t found_ns;     /* where rank 0 is was known; at rank 0: others could find it */
    int64_t connected_ns; /* the session with rank 0; at rank 0: with all */
    int64_t met_ns;       /* who all members are was known */
    int64_t made_ns;      /* the sessions of the tree, and a first barrier */
};
WEFT_API void weft_group_times(const struct weft_group *group, struct weft_group_times *out);

/* 0 while the group works; else the negative errno that ended it, and `err` has its text. */
WEFT_API int weft_group_status(struct weft_group *group, struct weft_error *err);

/* ------------------------------------------------------------------------------------------- groups of a group */

/*
 * Makes groups of members of a group: those that call with the same `color` (0 and up) become one, in the order of
 * `key`, and of their ranks in the parent where keys are equal. A collective of the parent: every member calls, in the
 * same order among its operations. With a `color` below 0 this member gets no group: `*out` is NULL.
 *
 * Such a group has ranks, a size, barriers, collectives and completions of its own, and may be split again. It has no
 * thread, descriptor, context or session of its own: what serves the parent serves it. So:
 *   - Any number may be under way in any of them at once. At most 65,535 groups come from one weft_group_create().
 *   - weft_group_fd() is that of all of them: when it is readable, poll each of them that has something under way.
 *   - weft_group_connection(), weft_group_peer() and weft_group_release() are about the same sessions for all of them,
 *     and so are the calls that say how the group came together.
 *   - A barrier is an all-reduce of one byte.
 *
 * Threads of a member may split the same parent at once. Calls meet in the order in which each member makes them: so
 * which calls of other members a thread's call meets is chance, unless the threads of each member keep the same order.
 *
 * What fails in a group ends that group alone, at all of its members; a member that is lost ends every group that it is
 * in, with its name and rank there, and the others go on. Ranks in the texts of a group are those of that group.
 *
 * weft_group_destroy() of it leaves it, and waits one second at most: an operation that this member has not done, or
 * that begins later, ends the group at the others. Groups may be destroyed in any order. When the group of
 * weft_group_create() is, those that come from it end in -ESHUTDOWN; they have to be destroyed all the same, also after
 * the context. No other thread may be in a call on any of them then.
 *
 * Errors: -EINVAL `parent` or `out` is NULL, -ENOMEM at all members of that color where one has no memory, or has
 * 65,535 groups of that context (the parent stays as it is), and those of a collective of the parent, which end it.
 */
WEFT_API int weft_group_split(struct weft_group *parent, int color, int key, int timeout_ms, struct weft_group **out,
                              struct weft_error *err);

/* ------------------------------------------------------------------------------------------- barrier */

/*
 * Ends when every member has entered its barrier of the same number: all members enter the same barriers in the same
 * order. Waits. After `timeout_ms` the call ends in -ETIMEDOUT, and with it the group at every member: `err` names
 * those that were late. (One that has entered in the last third of that time may be named, too.) With 0, what is not
 * done at once is late. Other errors: those of the group.
 */
WEFT_API int weft_group_barrier(struct weft_group *group, int timeout_ms, struct weft_error *err);

/* Enters the barrier, and does not wait: weft_group_poll() has the completion, with `user_data`. Several may be under
 * way. `timeout_ms` 0: no deadline; below 0: -EINVAL. Errors: -EINVAL, -ENOMEM, and those of the group. */
WEFT_API int weft_group_barrier_start(struct weft_group *group, int timeout_ms, void *user_data,
                                      struct weft_error *err);

/* As weft_queue_poll(), of what was started on this group. */
WEFT_API int weft_group_poll(struct weft_group *group, struct weft_completion *completions, int max);

/* As weft_queue_wait(). */
WEFT_API int weft_group_wait(struct weft_group *group, int timeout_ms, struct weft_completion *completions, int max);

/* A descriptor that is readable while there is something to poll, or something to do, which weft_group_poll() does.
 * Only for poll, select and epoll (level-triggered). The group owns it. */
WEFT_API int weft_group_fd(struct weft_group *group);

/* ------------------------------------------------------------------------------------------- collectives */

/*
 * What all members do with an array of each. Every member calls with the same collective, count, type, operation and
 * root or distance (else the results are undefined, or the group ends in -EPROTO), and all start the same operations,
 * barriers among them, in the same order. Several may be under way, of one thread or of many.
 *
 *   - A count is a number of elements, 0 and up, also below the number of members. With 0 the pointers may be NULL.
 *     Else they are addresses of elements: multiples of weft_type_bytes(type).
 *   - The caller owns the memory. `in` must stay as it is until the end of the operation, `out` is undefined until
 *     then, and after an error. They may not overlap, but where a comment says how a call works in place.
 *   - Host memory, or GPU memory of a card that the context uses (setting gpus), which passes through host memory of
 *     the library: then the call that starts the operation waits for the copy from the GPU, and the call that finds
 *     the operation done waits for the copy to the GPU. Meanwhile other calls on this group, and on all groups that
 *     come from the same weft_group_create(), wait, too.
 *     The four largest pieces of that memory are kept until the group of weft_group_create() and all that were split
 *     from it are destroyed.
 *   - The calls without _start wait. `timeout_ms` below 0: any time; 0: what is not done at once ends in -ETIMEDOUT.
 *     Those with _start do not: weft_group_poll() has the completion, with `user_data`, and its `bytes` are those of
 *     `out`; `timeout_ms` 0: no deadline, below 0: -EINVAL. The first use of a partner opens a session, which
 *     stays open.
 *   - After its deadline an operation ends in -ETIMEDOUT, and with it the group at every member: `err` names who has
 *     not started it. A member that is lost, or leaves before it has done its part, ends it everywhere with its name.
 *     A member with which no session can be opened ends it, too: at the deadline, or without one after 30 seconds.
 *   - Errors: -EINVAL, of the arguments, and of GPU memory those of weft_register() and weft_gpu_copy() (nothing has
 *     begun: the others wait for this member), -ENOMEM, -EMFILE more sessions are needed than
 *     weft_group_options.sessions allows, and those of the group, which they end.
 *
 * Which algorithm serves an operation depends on its kind, its bytes and the number of members alone: see
 * weft_group_algorithms(). With the algorithm the order of summation is fixed, too: the bits of a result are the same
 * at every member and in every run, whatever was first. Of N members, x(i) is the element of rank i:
 *
 *   - ring: of element e of the chunk of rank c: ((x(c+1) + x(c+2)) + ...) + x(c), the ranks modulo N. The chunk of
 *     rank c of an all-reduce is elements c * count / N (rounded down) up to (c+1) * count / N; of a reduce-scatter,
 *     the elements that rank c gets.
 *   - tree (doubling, halving): let P be the largest power of two up to N, and R = N - P. The first 2R ranks are
 *     added in pairs, x(0) + x(1), x(2) + x(3), and so on, and the others are as they are: that makes P values, in
 *     their order. Then neighbours are added, y(0) + y(1), y(2) + y(3), and so on, until one value is left.
 *
 * Each addition is rounded to the type, to nearest, ties to even: 16-bit types are added as float32, and rounded after
 * each addition. Sums of integers wrap around. An average is the sum, so rounded, divided by N, and rounded once more
 * (16-bit types: divided as float32; integers: towards 0). Of minimum and maximum, -0 is less than 0. A result that is
 * no number is the quiet NaN without sign and payload, of minimum and maximum also if only one element is none.
 * Denormal numbers stay, where the calling thread has not turned them off. A group of one member copies.
 */

enum weft_type {
    WEFT_FLOAT64 = 0,
    WEFT_FLOAT32 = 1,
    WEFT_FLOAT16 = 2,  /* IEEE 754 binary16 */
    WEFT_BFLOAT16 = 3, /* the upper half of a float32 */
    WEFT_INT32 = 4,
    WEFT_INT64 = 5,
    WEFT_UINT8 = 6,
};

enum weft_op { WEFT_SUM = 0, WEFT_MIN = 1, WEFT_MAX = 2, WEFT_AVG = 3 };

enum weft_collective {
    WEFT_ALL_REDUCE = 0,
    WEFT_REDUCE_SCATTER = 1,
    WEFT_ALL_GATHER = 2,
    WEFT_BROADCAST = 3,
    WEFT_ALL_TO_ALL = 4,
    WEFT_SHIFT = 5,
};

/* `out` gets, element by element, what `op` makes of the `count` elements of all members. In place: in == out. */
WEFT_API int weft_group_all_reduce(struct weft_group *group, const void *in, void *out, uint64_t count,
                                   enum weft_type type, enum weft_op op, int timeout_ms, struct weft_error *err);
WEFT_API int weft_group_all_reduce_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                         enum weft_type type, enum weft_op op, int timeout_ms, void *user_data,
                                         struct weft_error *err);

/* As an all-reduce of size * count elements, of which rank r gets the `count` that begin at r * count. In place: `out`
 * is that part of `in`; the rest of `in` stays as it is. */
WEFT_API int weft_group_reduce_scatter(struct weft_group *group, const void *in, void *out, uint64_t count,
                                       enum weft_type type, enum weft_op op, int timeout_ms, struct weft_error *err);
WEFT_API int weft_group_reduce_scatter_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                             enum weft_type type, enum weft_op op, int timeout_ms, void *user_data,
                                             struct weft_error *err);

/* `out`, of size * count elements, gets the `count` elements of every member, in the order of ranks. In place: `in` is
 * the own part of `out`. */
WEFT_API int weft_group_all_gather(struct weft_group *group, const void *in, void *out, uint64_t count,
                                   enum weft_type type, int timeout_ms, struct weft_error *err);
WEFT_API int weft_group_all_gather_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                         enum weft_type type, int timeout_ms, void *user_data, struct weft_error *err);

/* `out` gets the `count` elements at `in` of the rank `root`; at others `in` is not looked at. In place: in == out. */
WEFT_API int weft_group_broadcast(struct weft_group *group, const void *in, void *out, uint64_t count,
                                  enum weft_type type, uint32_t root, int timeout_ms, struct weft_error *err);
WEFT_API int weft_group_broadcast_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                        enum weft_type type, uint32_t root, int timeout_ms, void *user_data,
                                        struct weft_error *err);

/* Both have size * count elements: part s of `out` at rank r is part r of `in` at rank s. In place (in == out), by a
 * copy of `in`. */
WEFT_API int weft_group_all_to_all(struct weft_group *group, const void *in, void *out, uint64_t count,
                                   enum weft_type type, int timeout_ms, struct weft_error *err);
WEFT_API int weft_group_all_to_all_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                         enum weft_type type, int timeout_ms, void *user_data, struct weft_error *err);

/* Send and receive around a ring: sends `in` to the rank `by` places on, and receives `out` from the one as many places
 * back, both modulo the size (`by` 1: the neighbours; -1: the other way round). In place (in == out), by a copy of
 * `in`. */
WEFT_API int weft_group_shift(struct weft_group *group, const void *in, void *out, uint64_t count, enum weft_type type,
                              int by, int timeout_ms, struct weft_error *err);
WEFT_API int weft_group_shift_start(struct weft_group *group, const void *in, void *out, uint64_t count,
                                    enum weft_type type, int by, int timeout_ms, void *user_data,
                                    struct weft_error *err);

/* Bytes of one element; 0: no such type. */
WEFT_API uint64_t weft_type_bytes(enum weft_type type);

/* Which algorithm serves a collective of `bytes` among `size` members: "ring", "doubling", "halving", "tree", "pairs",
 * or "copy" for a group of one member; "" for no such collective. The bytes are those of the larger of `in` and `out`.
 */
WEFT_API const char *weft_group_algorithm(enum weft_collective collective, uint64_t bytes, uint32_t size);

/* Writes the table of choice as text, a line for each row, as snprintf() does: at most `room` bytes, with the
 * terminating 0, and returns the length of the whole text. */
WEFT_API int weft_group_algorithms(char *text, uint64_t room);

/* ------------------------------------------------------------------------------------------- connections */

/*
 * The connection to the member `rank`: opened when it is first asked for, from whichever side, then the same. Waits;
 * the other member has to be in a call of the group, too. The group owns the connection: it must not be closed. The
 * session stays open until both members have released it, and longer, unless the limit of weft_group_options.sessions
 * needs its place; one that a collective has used stays. Errors: -EINVAL no such rank, or the own one, -EMFILE the
 * limit is reached, and none is released, -ESHUTDOWN that member has left the group, -ENOMEM, -ETIMEDOUT, those of
 * weft_connect(), which leave the group as it is, and those of the group.
 */
WEFT_API int weft_group_connection(struct weft_group *group, uint32_t rank, int timeout_ms,
                                   struct weft_connection **out, struct weft_error *err);

/* The session of that connection, for connections of the user's own beside it, between endpoints of the user's; NULL:
 * weft_group_connection() has not opened it, or it is released. The group owns it: it must not be closed. What the
 * other side opens has to be asked for before it is opened (weft_connection_accept_start()): the group takes events. */
WEFT_API struct weft_peer *weft_group_peer(struct weft_group *group, uint32_t rank);

/* Nothing is under way on that connection any more, and nothing will be until it is asked for again. */
WEFT_API void weft_group_release(struct weft_group *group, uint32_t rank);

/* Sessions with other members now. */
WEFT_API uint32_t weft_group_sessions(struct weft_group *group);

#ifdef __cplusplus
}
#endif
#endif
