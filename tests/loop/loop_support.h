/*
 * loop_support.h: nodes on loopback rails, guarded buffers and bounded waits for the loop tests. The invariant: a test
 * ends. Every wait has a limit, and a watchdog names the test that passed its own.
 *
 * Everything here speaks to weft.h alone.
 */
#ifndef LOOP_SUPPORT_H
#define LOOP_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

#include "weft.h"

#if defined(__SANITIZE_THREAD__)
#define LOOP_SLOW_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LOOP_SLOW_SANITIZER 1
#endif
#endif
#ifndef LOOP_SLOW_SANITIZER
#define LOOP_SLOW_SANITIZER 0
#endif

#if defined(__SANITIZE_ADDRESS__) || LOOP_SLOW_SANITIZER
#define LOOP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LOOP_SANITIZED 1
#endif
#endif
#ifndef LOOP_SANITIZED
#define LOOP_SANITIZED 0
#endif

#define LOOP_SLOWER (LOOP_SANITIZED ? 5 : 1) /* how much longer anything may take in this build */
#define LOOP_COUNT(n, sanitized) (LOOP_SLOW_SANITIZER ? (sanitized) : (n))
#define LOOP_WAIT_MS (60000 * LOOP_SLOWER) /* limit of a wait that is expected to end */
#define LOOP_POISON 0xDB                   /* what stands in a landing before anything arrives */
#define LOOP_RAILS_MAX 8

/* ------------------------------------------------------------------------------------------- test frame */

struct loop_case {
    const char *name;
    void (*body)(void);
    int seconds; /* in a normal build */
};

/* A row of a cmocka table; use inside main(). */
#define LOOP_CASE(function, limit_s)                                                                                   \
    {                                                                                                                  \
#function, loop_run, NULL, NULL, &(struct loop_case)                                                           \
        {                                                                                                              \
#function, function, limit_s                                                                               \
        }                                                                                                              \
    }

/* First call of main(): clears WEFT_ variables (but WEFT_LOG and WEFT_EMULATED_), skips all where the world of these
 * tests (loop_world.h) cannot be had, takes a name filter from argv[1]. */
void loop_begin(int argc, char **argv);
void loop_run(void **state);

/* What the test is doing, for failures and the watchdog. */
void loop_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* On the test's own thread the test fails; on other threads and in children the process aborts. */
_Noreturn void loop_fail(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#define LOOP_CHECK(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            loop_fail(__FILE__, __LINE__, #condition, __VA_ARGS__);                                                    \
    } while (0)

/* For calls that fill `err`: must return 0 or more; its value. */
#define LOOP_CALL(call, err) loop_called(__FILE__, __LINE__, #call, (call), (err))
int loop_called(const char *file, int line, const char *call, int result, const struct weft_error *err);

/* The world's time. */
int64_t loop_now_ms(void);
void loop_sleep_ms(int ms);

/* First call of a case: skips it in a simulated world, which lacks `what`. */
void loop_needs_kernel(const char *what);

/* ------------------------------------------------------------------------------------------- memory */

/*
 * The environment variable LOOP_MEMORY puts the buffers of a test into host memory (host, the default), all into device
 * memory (cuda), those of one side (send, recv), or each by chance (mixed). The tests are the same: what stands in a
 * buffer is written and read by the functions below alone. Device memory is registered with every context.
 */
enum loop_memory_kind { LOOP_ALL_HOST, LOOP_ALL_CUDA, LOOP_SEND_CUDA, LOOP_RECV_CUDA, LOOP_MIXED };
enum loop_memory_kind loop_memory(void);

/* Whose memory it is. */
enum loop_side {
    LOOP_NEAR, /* of who sends, or asks */
    LOOP_FAR,  /* of who receives, or is asked */
    LOOP_HOST, /* host memory whatever LOOP_MEMORY says */
};

#define LOOP_NO_DEVICE (-1)

/* Memory that ends at a page nobody may touch; before it lies another one, and marked slack. On a device it ends where
 * its allocation ends. */
struct loop_buffer {
    unsigned char *data;
    size_t size;
    unsigned char *map; /* NULL: unmapped */
    size_t mapped;
    int device; /* LOOP_NO_DEVICE: host memory */
};

void loop_buffer_create(struct loop_buffer *buffer, enum loop_side side, size_t size);
/* On this device, or LOOP_NO_DEVICE, whatever LOOP_MEMORY says. */
void loop_buffer_create_on(struct loop_buffer *buffer, int device, size_t size);
/* Checks the slack, then unmaps. Idempotent. */
void loop_buffer_unmap(struct loop_buffer *buffer);

/* `data`: in a buffer, or other host memory. */
void loop_fill(void *data, size_t size, uint64_t seed);
void loop_set(void *data, size_t size, int value);
/* The first offset that differs from loop_fill(), or -1. */
int64_t loop_wrong(const void *data, size_t size, uint64_t seed);
/* The first offset that does not hold `value`, or -1. */
int64_t loop_differs(const void *data, size_t size, int value);
bool loop_same(const void *a, const void *b, size_t size);
unsigned char loop_byte(const void *data);

/* A context that buffers are registered with; the other one before it is destroyed. */
void loop_memory_join(struct weft_context *context);
void loop_memory_leave(const struct weft_context *context);

/* A message with the memory of both sides. */
struct loop_message {
    struct loop_buffer source, sink;
    uint64_t seed;
    struct weft_request *send, *recv;
};

void loop_message_create(struct loop_message *message, size_t size, uint64_t seed);
/* The source is overwritten (a send that completed does not read it), every byte of the sink verified. */
void loop_message_verify(struct loop_message *message);
void loop_message_destroy(struct loop_message *message);
/* Awaits the receive and the send, which must succeed; verifies and destroys. */
void loop_message_finish(struct loop_message *message);

/* ------------------------------------------------------------------------------------------- nodes */

/* A context with endpoint 0, one peer and one connection. */
struct loop_node {
    struct weft_context *context;
    struct weft_endpoint *endpoint;
    struct weft_peer *peer;
    struct weft_connection *connection;
};

/* Context and endpoint 0, in the traffic class of the environment variable LOOP_CLASS. `settings`:
 * "channels=4 window=1", or NULL; `rails`: 127.0.1.1, 127.0.2.1, … */
void loop_node_start(struct loop_node *node, const char *settings, int rails);
int loop_node_listen(struct loop_node *node); /* the port the kernel chose on 127.0.1.1 */
void loop_node_connect(struct loop_node *node, int port);
void loop_node_accept(struct loop_node *node);
void loop_node_open(struct loop_node *node); /* to endpoint 0 */
void loop_node_take(struct loop_node *node); /* from endpoint 0 */
void loop_node_stop(struct loop_node *node);

/* The context alone, and its settings: those of the environment variable LOOP_SETTINGS first, then the test's own. */
struct weft_context *loop_context(const char *settings, int rails);
void loop_context_end(struct weft_context *context);
struct weft_config *loop_config(const char *settings, int rails);
/*
 * A socket that has a port of all addresses and does not listen: a caller is refused, and the kernel gives the port to
 * no other socket. One that names the port may listen on it.
 */
int loop_hold_port(int *port);
void loop_address(char *out, size_t room, int port);

/* Two nodes of this process, connected; [0] dialled. `other` are the settings of [1]; NULL: the same. */
struct loop_pair {
    struct loop_node node[2];
};

void loop_pair_create(struct loop_pair *pair, const char *settings, const char *other, int rails);
void loop_pair_destroy(struct loop_pair *pair);
/* One more connection from endpoints of both nodes; ends[0] is the opener's. */
void loop_connection(struct loop_pair *pair, int opener, struct weft_connection *ends[2]);
void loop_connection_end(struct weft_connection *ends[2]);

/* One message of `size` bytes in each direction, verified. */
void loop_exchange(struct weft_connection *a, struct weft_connection *b, size_t size, uint64_t tag);

/* Payload bytes the rails of a peer took in so far, and channels lost. */
uint64_t loop_received(const struct weft_peer *peer);
uint64_t loop_failures(const struct weft_peer *peer);
uint64_t loop_damaged(const struct weft_peer *peer); /* chunks and headers */
uint64_t loop_resent(const struct weft_peer *peer);  /* payload bytes that lost channels had sent before */

/* ------------------------------------------------------------------------------------------- requests */

struct weft_request *loop_send(struct weft_connection *connection, const void *data, size_t size, uint64_t tag);
struct weft_request *loop_recv(struct weft_connection *connection, void *data, size_t size, uint64_t tag);
/* The receive takes whatever comes next. */
struct weft_request *loop_recv_any(struct weft_connection *connection, void *data, size_t size);
/* Waits at most LOOP_WAIT_MS and checks what holds for every completion. */
struct weft_completion loop_end(struct weft_request *request);
/* The same, and the status must be `status` and, where that is 0 or -EMSGSIZE, the size `bytes`. */
void loop_done(struct weft_request *request, int status, uint64_t bytes);

/* ------------------------------------------------------------------------------------------- processes */

/* A second process; it dies with this one. `in` and `out` carry numbers. */
struct loop_child {
    pid_t pid;
    int in, out;
};

/* Call only while this process has no context. The child's body returns 0 when all went well. */
void loop_child_start(struct loop_child *child, int (*body)(int in, int out, void *arg), void *arg);
/* In the child, before its body: from here on a failure ends the process. */
void loop_child_enter(void);
void loop_child_kill(struct loop_child *child);
/* Stops it as SIGSTOP does, and returns when the last of its threads has: one that runs on another processor goes on
 * for a while after kill(). */
void loop_child_stop(const struct loop_child *child);
/* Waits for its end (bounded) and checks that it went well. */
void loop_child_join(struct loop_child *child);
void loop_tell(int fd, uint64_t value);
uint64_t loop_hear(int fd);
/* Waits until the descriptor is readable. False: the time is over. */
bool loop_readable(int fd, int timeout_ms);

int loop_threads(void); /* entries of /proc/self/task */
int loop_fds(void);     /* entries of /proc/self/fd */

#endif
