/*
 * test_short_memory.c: the library's allocations fail, each in turn, alone or with those that follow it. Every call and
 * request ends, with a reason or with the right bytes, and what there is can be closed. The linker puts the functions
 * below into the place of the C library's: this program contains the library.
 */
#include "loop_support.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS "timeout=5 chunk=64K log=error"
#define SMALL 100
#define BRIEF 30000
#define LARGE (1024 * 1024 + 5)
#define PIECES 40
#define MANY 32
#define FEWEST 100 /* allocations that a run makes at least: else something is not wrapped */

/* --- allocations --- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

/* Those with the numbers [first, end) fail, counted from allocations_fail() on. */
static struct {
    atomic_ulong made, failed, first, end;
} allocations;

static void allocations_fail(unsigned long first, unsigned long count)
{
    atomic_store(&allocations.end, 0); /* none while the other words change */
    atomic_store(&allocations.made, 0);
    atomic_store(&allocations.failed, 0);
    atomic_store(&allocations.first, first);
    atomic_store(&allocations.end, first + count);
}

static void allocations_succeed(void)
{
    atomic_store(&allocations.end, 0);
}

static bool fails(void)
{
    unsigned long number = atomic_fetch_add(&allocations.made, 1) + 1;
    if (number < atomic_load(&allocations.first) || number >= atomic_load(&allocations.end))
        return false;
    atomic_fetch_add(&allocations.failed, 1);
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

/* --- two nodes --- */

/* Any of it may be missing. `memory` is the GPU's where there are emulated ones. */
static struct node {
    struct weft_context *context;
    struct weft_endpoint *endpoint;
    struct weft_peer *peer;
    struct weft_connection *connection;
    struct weft_registration *registration;
    unsigned char *memory, *allocated;
} nodes[2];

static struct weft_config *config;
static bool on_gpus;
static int troubles; /* calls and requests of this run that did not end well */
static unsigned char host[2][LARGE], pattern[LARGE], seen[LARGE];

/* No call here has a deadline: only a peer that was lost gives -ETIMEDOUT. */
static bool fell_silent(void)
{
    for (int i = 0; i < 2; i++)
        if (nodes[i].peer && weft_peer_status(nodes[i].peer, NULL) == -ETIMEDOUT)
            return true;
    return false;
}

/* A call that may fail, but says why. */
static bool went_well(const char *call, int result, const char *text)
{
    LOOP_CHECK(result >= 0 || (text && text[0]), "%s: %d without a reason", call, result);
    LOOP_CHECK(result != -ETIMEDOUT || fell_silent(), "%s: %s", call, text);
    troubles += result < 0;
    return result >= 0;
}

#define CALLED(call) went_well(#call, call, err.text)
#define POSTED(call) went_well(#call, call, weft_last_error())

/* Awaits the request; NULL: it never was. */
static bool ended_well(struct weft_request *request, struct weft_completion *completion)
{
    struct weft_completion own;
    if (!completion)
        completion = &own;
    if (!request)
        return false;
    LOOP_CHECK(weft_wait(request, LOOP_WAIT_MS, completion) == 0, "a request hangs");
    LOOP_CHECK(completion->status == 0 || completion->text[0], "%d without a reason", completion->status);
    troubles += completion->status < 0;
    return completion->status == 0;
}

/* Awaits two that need each other: one that cannot end any more is cancelled. */
static bool both_end_well(struct weft_request *first, struct weft_request *second, struct weft_completion out[2])
{
    if (!first && second)
        weft_cancel(second);
    bool well = ended_well(first, &out[0]);
    if (!well && first && second)
        weft_cancel(second);
    return ended_well(second, &out[1]) && well;
}

static bool start(struct node *node)
{
    struct weft_error err = {0};
    int index = (int)(node - nodes);
    void *gpu = NULL;
    if (!CALLED(weft_context_create(config, &node->context, &err)) ||
        !CALLED(weft_endpoint_create(node->context, 0, &node->endpoint, &err)))
        return false;
    node->memory = host[index];
    if (on_gpus && !CALLED(weft_gpu_alloc(node->context, index, LARGE, &gpu, &err)))
        return false;
    if (on_gpus)
        node->memory = node->allocated = gpu;
    return CALLED(weft_register_for(node->context, node->memory, LARGE, WEFT_REMOTE_READ | WEFT_REMOTE_WRITE,
                                    &node->registration, &err));
}

static bool meet(void)
{
    struct weft_error err = {0};
    struct weft_request *dial = NULL, *take = NULL;
    struct weft_completion ends[2] = {0};
    char address[64];
    if (!CALLED(weft_listen(nodes[1].context, "127.0.1.1:0", &err)))
        return false;
    loop_address(address, sizeof address, weft_listen_port(nodes[1].context));
    if (CALLED(weft_accept_start(nodes[1].context, NULL, &take, &err)))
        CALLED(weft_connect_start(nodes[0].context, address, NULL, &dial, &err));
    ended_well(dial, &ends[0]);
    nodes[0].peer = ends[0].peer;
    /* A peer that is lost before it is handed over never is: then there is nobody to wait for. */
    while (take && weft_wait(take, 10, &ends[1]) == -ETIMEDOUT)
        if (!nodes[0].peer || weft_peer_status(nodes[0].peer, NULL) < 0)
            weft_cancel(take);
    nodes[1].peer = ends[1].peer;
    return nodes[0].peer && nodes[1].peer;
}

static bool join(void)
{
    struct weft_error err = {0};
    struct weft_request *open = NULL, *take = NULL;
    struct weft_completion ends[2] = {0};
    if (CALLED(weft_connection_accept_start(nodes[1].endpoint, nodes[1].peer, 0, NULL, &take, &err)))
        CALLED(weft_connection_open_start(nodes[0].endpoint, nodes[0].peer, 0, NULL, &open, &err));
    both_end_well(open, take, ends);
    nodes[0].connection = ends[0].connection;
    nodes[1].connection = ends[1].connection;
    return nodes[0].connection && nodes[1].connection;
}

static void leave(void)
{
    for (int i = 0; i < 2; i++) {
        if (nodes[i].connection)
            weft_connection_close(nodes[i].connection, LOOP_WAIT_MS, NULL);
        if (nodes[i].peer)
            weft_peer_close(nodes[i].peer, LOOP_WAIT_MS, NULL);
    }
    for (int i = 0; i < 2; i++) {
        weft_deregister(nodes[i].registration);
        if (nodes[i].allocated)
            weft_gpu_free(nodes[i].context, i, nodes[i].allocated);
        LOOP_CHECK(!nodes[i].endpoint || weft_endpoint_destroy(nodes[i].endpoint) == 0, "the endpoint is busy");
        weft_context_destroy(nodes[i].context);
        nodes[i] = (struct node){0};
    }
}

/* --- what they do --- */

static bool put(struct node *node, const unsigned char *bytes, size_t size)
{
    struct weft_error err = {0};
    if (on_gpus)
        return CALLED(weft_gpu_copy(node->context, node->memory, bytes, size, &err));
    memcpy(node->memory, bytes, size);
    return true;
}

static void check(struct node *node, const unsigned char *expected, size_t size)
{
    struct weft_error err = {0};
    if (on_gpus && !CALLED(weft_gpu_copy(node->context, seen, node->memory, size, &err)))
        return;
    LOOP_CHECK(memcmp(on_gpus ? seen : node->memory, expected, size) == 0, "%zu bytes are wrong", size);
}

/* Waits until the message is here, or will not come. */
static void await_arrival(struct node *node, uint64_t tag)
{
    struct weft_message message;
    int64_t end_ms = loop_now_ms() + LOOP_WAIT_MS;
    while (weft_probe(node->connection, tag, NULL, &message) == 0) {
        LOOP_CHECK(loop_now_ms() < end_ms, "a message does not come, and the session goes on");
        loop_sleep_ms(1);
    }
}

static void message(int from, size_t size, bool late)
{
    static uint64_t tag = MANY; /* others are below */
    struct node *source = &nodes[from], *sink = &nodes[1 - from];
    struct weft_request *send = NULL, *receive = NULL;
    struct weft_completion ends[2];
    bool sent = false;
    tag += 1;
    loop_fill(pattern, size, tag);
    memset(seen, LOOP_POISON, size);
    if (!put(source, pattern, size) || !put(sink, seen, size))
        return;
    if (late) {
        sent = POSTED(weft_send(source->connection, source->memory, size, tag, NULL, &send));
        if (!sent)
            return;
        await_arrival(sink, tag);
    }
    bool posted = POSTED(weft_recv(sink->connection, sink->memory, size, tag, NULL, &receive));
    if (posted && !late)
        sent = POSTED(weft_send(source->connection, source->memory, size, tag, NULL, &send));
    if (sent && !posted)
        weft_cancel(send);
    both_end_well(send, receive, ends);
    if (receive && ends[1].status == 0)
        check(sink, pattern, size);
}

/* In host memory, so that what every session needs is there when the first message of a GPU comes. */
static void first_messages(void)
{
    unsigned char *memory[2] = {nodes[0].memory, nodes[1].memory};
    bool gpus = on_gpus;
    on_gpus = false;
    for (int i = 0; i < 2; i++)
        nodes[i].memory = host[i];
    message(0, SMALL, false);
    message(1, SMALL, false);
    on_gpus = gpus;
    for (int i = 0; i < 2; i++)
        nodes[i].memory = memory[i];
}

static void messages(void)
{
    first_messages();
    for (int from = 0; from < 2; from++) {
        message(from, SMALL, false);
        message(from, SMALL, true);
        message(from, BRIEF, from == 0);
        message(from, LARGE, from == 1);
    }
}

/* Many at once. The receives end in a queue. */
static void many_in_a_queue(void)
{
    struct weft_error err = {0};
    struct weft_queue *queue = NULL;
    struct weft_request *receives[MANY] = {0}, *send;
    struct weft_completion ends[MANY];
    int posted = 0;
    loop_fill(host[0], BRIEF, 93);
    memset(host[1], LOOP_POISON, MANY * BRIEF);
    if (!CALLED(weft_queue_create(nodes[1].context, &queue, &err)))
        return;
    struct weft_options options = {.queue = queue};
    for (int i = 0; i < MANY; i++)
        posted +=
            POSTED(weft_recv(nodes[1].connection, host[1] + i * BRIEF, BRIEF, (uint64_t)i, &options, &receives[i]));
    for (int i = 0; i < MANY; i++) {
        bool sent = receives[i] &&
                    POSTED(weft_send(nodes[0].connection, host[0], i % 2 ? SMALL : BRIEF, (uint64_t)i, NULL, &send));
        if (receives[i] && (!sent || !ended_well(send, NULL)))
            weft_cancel(receives[i]);
    }
    while (posted > 0) {
        int count = weft_queue_wait(queue, LOOP_WAIT_MS, ends, MANY);
        LOOP_CHECK(count > 0, "%d receives of a queue hang", posted);
        posted -= count;
        for (int i = 0; i < count; i++)
            LOOP_CHECK(memcmp(host[1] + ends[i].tag * BRIEF, host[0], ends[i].bytes) == 0, "a message is wrong");
    }
    LOOP_CHECK(weft_queue_destroy(queue) == 0, "the queue is busy");
}

static void one_sided(void)
{
    struct weft_request *write = NULL, *word = NULL, *read = NULL;
    struct weft_options options = {.flags = WEFT_NOTIFY, .notify_data = "x", .notify_length = 1};
    struct weft_completion ends[2];
    uint64_t key = weft_registration_key(nodes[1].registration);
    unsigned char byte;
    loop_fill(pattern, LARGE, 90);
    if (!put(&nodes[0], pattern, LARGE) || !put(&nodes[1], seen, LARGE))
        return;
    if (POSTED(weft_recv_notification(nodes[1].connection, &byte, 1, NULL, &word)))
        POSTED(weft_write(nodes[0].connection, nodes[0].memory, LARGE, key, 0, &options, &write));
    if (both_end_well(write, word, ends))
        check(&nodes[1], pattern, LARGE);
    loop_fill(pattern, LARGE, 91);
    if (put(&nodes[1], pattern, LARGE) &&
        POSTED(weft_read(nodes[0].connection, nodes[0].memory, LARGE, key, 0, NULL, &read)) && ended_well(read, NULL))
        check(&nodes[0], pattern, LARGE);
}

/* Every piece is where it belongs; the far ones are at their remote offsets. */
static void check_pieces(struct node *node, const struct weft_piece *pieces, bool far)
{
    struct weft_error err = {0};
    const unsigned char *there = on_gpus ? seen : node->memory;
    if (on_gpus && !CALLED(weft_gpu_copy(node->context, seen, node->memory, LARGE, &err)))
        return;
    for (size_t i = 0; i < PIECES; i++)
        LOOP_CHECK(memcmp(there + (far ? pieces[i].remote : pieces[i].local), pattern + pieces[i].local,
                          pieces[i].length) == 0,
                   "piece %zu is wrong", i);
}

static void lists(void)
{
    struct weft_request *list = NULL;
    struct weft_piece pieces[PIECES];
    for (size_t i = 0; i < PIECES; i++)
        pieces[i] = (struct weft_piece){.local = i * 9000, .remote = i * 8000, .length = i * 199};
    uint64_t key = weft_registration_key(nodes[1].registration);
    loop_fill(pattern, LARGE, 92);
    memset(seen, LOOP_POISON, LARGE);
    if (!put(&nodes[0], pattern, LARGE) || !put(&nodes[1], seen, LARGE))
        return;
    if (!POSTED(weft_write_list(nodes[0].connection, nodes[0].memory, pieces, PIECES, key, NULL, &list)) ||
        !ended_well(list, NULL))
        return;
    check_pieces(&nodes[1], pieces, true);
    memset(seen, LOOP_POISON, LARGE);
    if (put(&nodes[0], seen, LARGE) &&
        POSTED(weft_read_list(nodes[0].connection, nodes[0].memory, pieces, PIECES, key, NULL, &list)) &&
        ended_well(list, NULL))
        check_pieces(&nodes[0], pieces, false);
}

static void vectors(void)
{
    struct weft_request *send = NULL, *receive = NULL;
    struct weft_completion ends[2];
    struct iovec from[PIECES], to[PIECES];
    loop_fill(host[0], LARGE, 94);
    memset(host[1], LOOP_POISON, LARGE);
    for (size_t i = 0; i < PIECES; i++) {
        from[i] = (struct iovec){.iov_base = host[0] + i * 9000, .iov_len = i * 199};
        to[i] = (struct iovec){.iov_base = host[1] + i * 8000, .iov_len = i * 199};
    }
    if (POSTED(weft_recvv(nodes[1].connection, to, PIECES, MANY, NULL, &receive)))
        POSTED(weft_sendv(nodes[0].connection, from, PIECES, MANY, NULL, &send));
    if (both_end_well(send, receive, ends))
        for (size_t i = 0; i < PIECES; i++)
            LOOP_CHECK(memcmp(to[i].iov_base, from[i].iov_base, to[i].iov_len) == 0, "piece %zu is wrong", i);
}

static void live(void)
{
    if (!start(&nodes[1]) || !start(&nodes[0]) || !meet() || !join())
        return;
    messages();
    many_in_a_queue();
    one_sided();
    lists();
    vectors();
}

/* --- the cases --- */

/* From LOOP_FIRST on, every LOOP_STEP-th. */
static void fail_in_turn(unsigned long together)
{
    const char *first_text = getenv("LOOP_FIRST"), *step_text = getenv("LOOP_STEP");
    unsigned long first = first_text ? strtoul(first_text, NULL, 10) : 1;
    unsigned long step = step_text ? strtoul(step_text, NULL, 10) : 1, failed = 1;
    config = loop_config(SETTINGS, 2);
    for (; failed > 0; first += step) {
        loop_note("allocation %lu and %lu more", first, together - 1);
        troubles = 0;
        allocations_fail(first, together);
        live();
        failed = atomic_load(&allocations.failed);
        allocations_succeed();
        leave();
        LOOP_CHECK(failed > 0 || troubles == 0, "%d troubles though nothing failed", troubles);
    }
    weft_config_destroy(config);
    LOOP_CHECK(first > FEWEST, "a run has only %lu allocations", first - 1);
    printf("%lu allocations\n", first - 1);
}

static void one_fails(void)
{
    fail_in_turn(1);
}

static void three_fail(void)
{
    fail_in_turn(3);
}

static void all_that_follow_fail(void)
{
    fail_in_turn(1000000);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    on_gpus = getenv("WEFT_EMULATED_GPUS");
    const struct CMUnitTest tests[] = {
        LOOP_CASE(one_fails, 120),
        LOOP_CASE(three_fail, 120),
        LOOP_CASE(all_that_follow_fail, 120),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
