/*
 * conform.h: drives a net plugin as NCCL does, and holds it to NCCL's rules. The invariant: a case ends. Every wait has
 * a limit, and an alarm names the call that a thread was in.
 *
 * A case runs in `conform.processes` forked processes at once, each with its own copy of the plugin. Calls come from
 * the threads that NCCL uses: init and devices from the application's, comms and memory from a service thread,
 * transfers from a progress thread that polls (struct rank). Handles go through a socket pair ("boot"). The plugin is
 * seen as a table of v12; the older four are put behind it as NCCL itself does (conform_table.c).
 */
#ifndef CONFORM_H
#define CONFORM_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "plugins/nccl/abi.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFORM_SLOWER 5 /* how much longer anything may take in this build */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CONFORM_SLOWER 5
#endif
#endif
#ifndef CONFORM_SLOWER
#define CONFORM_SLOWER 1
#endif

#define CONFORM_PROCESSES_MAX 4
#define CONFORM_RANKS_MAX 8
#define CONFORM_LINKS_MAX 64
#define CONFORM_SLOTS_MAX 8
#define CONFORM_LIMIT_MS (conform.limit_ms * CONFORM_SLOWER) /* of a wait that is expected to end */

/* ------------------------------------------------------------------------------------------- frame (conform_process.c)
 */

enum conform_status { CONFORM_PASSED = 0, CONFORM_FAILED = 1, CONFORM_SKIPPED = 77 };

struct conform_case {
    const char *name;
    const char *group;
    const char *rule;
    void (*body)(void); /* in every process */
    int versions;       /* from this table on; 0: all */
    int seconds;
    bool killed; /* process 1 is killed by process 0 */
};

extern const struct conform_case conform_cases[];
extern const int conform_case_count;
extern const struct conform_case conform_connect_cases[], conform_transfer_cases[], conform_close_cases[],
    conform_life_cases[], conform_loss_cases[], conform_polled_cases[], conform_random_cases[];

/* Options, and what this process is. Set before a case, read-only in it. */
struct conform {
    const char *plugin;
    int version; /* 8 to 12 */
    int processes;
    uint64_t seed;
    int schedules; /* of the case that has random ones */
    int rounds;    /* of the cases that repeat something */
    int bound_ms;  /* of a call that must not block */
    int limit_ms;  /* of a wait for messages and comms */
    bool alone;    /* the plugin brings all it needs: nothing that it loads may stay */
    bool verbose;
    int number; /* of the schedule that runs */
    const struct conform_case *at;
    int me;
    int boot[CONFORM_PROCESSES_MAX]; /* to each other process */
    int report;                      /* a copy of standard error: what the plugin prints goes elsewhere */
};
extern struct conform conform;

enum conform_status conform_run(const struct conform_case *at);

_Noreturn void conform_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
_Noreturn void conform_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            conform_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                 \
    } while (0)
/* For calls of the plugin that must succeed; one that does not has said why in the log. */
#define MUST(call)                                                                                                     \
    do {                                                                                                               \
        enum nccl_result must_ = (call);                                                                               \
        const char *why_ = must_ == NCCL_SUCCESS ? NULL : log_last(NCCL_LOG_WARN);                                     \
        CHECK(must_ == NCCL_SUCCESS, "returned %d: %s", (int)must_, why_ ? why_ : "no warning in the log");            \
    } while (0)

int64_t now_ms(void);
uint64_t mix(uint64_t a, uint64_t b); /* chance that is the same in all processes */

void boot_send(int to, const void *data, size_t size);
void boot_receive(int from, void *data, size_t size);
void boot_barrier(void);

/* ------------------------------------------------------------------------------------------- plugin (conform_table.c)
 */

extern int net_traffic_class;         /* of the communicators that are initialised from now on */
extern struct nccl_net_v12 net_table; /* the plugin's, or what stands before an older one */

/* dlopen and dlsym. close: dlclose. */
void net_open(void);
void net_close(void);
enum nccl_result net_forget(void *context); /* what NCCL does up to v10 instead of finalize() */

/* ------------------------------------------------------------------------------------------- calls (conform_calls.c)
 */

/* As in struct nccl_net_v12. Each is timed: a call that blocks for longer than its bound fails the case. */
extern pthread_mutex_t net_mutex; /* one init, devices, properties or finalize at a time */
enum nccl_result net_init(void **context, uint64_t comm_id);
enum nccl_result net_finalize(void *context); /* nothing up to v10 */
enum nccl_result net_devices(int *ndev);
enum nccl_result net_properties(int dev, struct nccl_net_properties_v12 *properties);
enum nccl_result net_listen(void *context, int dev, void *handle, void **comm);
enum nccl_result net_connect(void *context, int dev, void *handle, void **comm);
enum nccl_result net_accept(void *listener, void **comm);
enum nccl_result net_reg(void *comm, void *data, size_t size, int type, void **mhandle);
enum nccl_result net_dereg(void *comm, void *mhandle);
enum nccl_result net_isend(void *comm, void *data, size_t size, int tag, void *mhandle, void **request);
enum nccl_result net_irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles, void **request);
enum nccl_result net_iflush(void *comm, int n, void **data, int *sizes, void **mhandles, void **request);
/* `done` must be written whenever the call succeeds. */
enum nccl_result net_test(void *request, bool *done, int *sizes);
/* After a receive that is done; nothing where the plugin leaves it out. NCCL calls it of any device, one that offloads
 * or not. */
enum nccl_result net_irecv_consumed(void *comm, int n, void *request);
enum nccl_result net_close_send(void *comm);
enum nccl_result net_close_recv(void *comm);
enum nccl_result net_close_listen(void *listener);

void calls_describe(char *out, size_t room); /* what each thread is in, for the alarm */

/* ------------------------------------------------------------------------------------------- log (conform_log.c) */

void net_logger(enum nccl_log_level level, unsigned long flags, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
enum nccl_result net_profiler(void **event, int kind, void *at, int64_t plugin, void *descriptor);
/* Lines of this process so far, by NCCL's level. */
int log_lines(enum nccl_log_level level);
const char *log_first(enum nccl_log_level level); /* NULL: none */
const char *log_last(enum nccl_log_level level);
bool log_says(enum nccl_log_level level, const char *words);
/* A line of this level that names an address or this host; NULL: none. */
const char *log_names_peer(enum nccl_log_level level);
int64_t profile_open(void); /* events that started and did not stop */
int64_t profile_events(void);
int64_t profile_chunks(int op); /* of them, those of chunks, by NCCL_PROFILE_OP_* */

/* ------------------------------------------------------------------------------------------- this process
 * (conform_life.c) */

struct footprint {
    int threads;
    int descriptors;
    int mapped; /* files that are mapped and executable */
};
void footprint_take(struct footprint *now);
/* As before, within a moment; `mapped` only where the plugin is to be gone. */
void footprint_check(const struct footprint *before, bool mapped, const char *when);
int socket_count(void);

/* ------------------------------------------------------------------------------------------- ranks (conform_rank.c) */

struct worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    void (*body)(void *arg); /* NULL: idle */
    void *arg;
    bool quit;
};

void worker_run(struct worker *worker, void (*body)(void *arg), void *arg); /* start and wait */
void worker_start(struct worker *worker, void (*body)(void *arg), void *arg);
void worker_wait(struct worker *worker);

/* One GPU of NCCL's: a context, a device, and two threads. */
struct rank {
    void *context;
    int dev;
    struct nccl_net_properties_v12 properties;
    struct worker service, progress;
};

extern struct rank ranks[CONFORM_RANKS_MAX];
extern int rank_count;

/* Loads the plugin and initialises so many ranks on the default device; the other one finalises, unloads, and checks
 * that nothing is left. */
void ranks_begin(int count);
void ranks_end(void);
void rank_start(struct rank *rank, int dev);
void rank_stop(struct rank *rank);

/* One direction between two processes, which may be the same. */
struct link {
    int id;
    int from, to;
    int rank; /* index of ranks[], in both */
    unsigned char handle[NCCL_NET_HANDLE_MAXSIZE];
    void *listener, *send, *recv; /* NULL: not this process's end */
};

extern struct link links[CONFORM_LINKS_MAX];
extern int link_count;

int links_add(int from, int to, int rank); /* its index */
void links_ring(int each);                 /* so many from each process to the next one, and back */
void links_listen(void);                   /* and the handles are where they are needed */
void links_join(void);                     /* connect and accept in turns until all are there */
void links_open(void);                     /* both */
void links_close(void);                    /* and forget them */
void link_close(struct link *link);        /* on the service thread of its rank */

/* ------------------------------------------------------------------------------------------- transfers
 * (conform_flow.c) */

enum order { OLDEST, YOUNGEST, ANY };

/* Messages over one link; the same words at both ends. All zero but for what is said. */
struct flow {
    struct link *link;
    int messages; /* receives; as many sends per slot */
    int slots;    /* of a receive; 0: 1 */
    int window;   /* requests under way; 0: 8 */
    size_t largest;
    const size_t *sizes; /* of the messages in turn, `size_count` of them; NULL: by chance up to `largest` */
    int size_count;
    enum order order;
    bool exact;      /* receives are as large as the send */
    bool optional;   /* receives with the marker, which may complete before the bytes are there */
    bool twins;      /* slots 0 and 1 have one tag, 2 and 3, … */
    bool all_posted; /* the whole window is posted before the first test */
    uint64_t seed;
    struct flow_ends *ends; /* while it runs */
};

/* Runs all flows over all links at once, each on the progress thread of its rank: every byte is verified. */
void flows_run(struct flow *flows, int count);
/* The same flow over every link. */
void flows_everywhere(const struct flow *like);
/* In parts, for what goes on beside it. */
void flows_start(struct flow *flows, int count);
void flows_wait(void);

void fill(void *data, size_t size, uint64_t key);
int64_t wrong(const void *data, size_t size, uint64_t key); /* the first offset that differs, or -1 */

#endif
