/* Two sides of a raw run find each other: memory, streams, and the plan, which the client tells. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/machine/memory_limits.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "raw.h"

#define MAGIC UINT64_C(0x3177617274666577) /* "weftraw1" as it stands on the wire */
#define HELLO_S 2                          /* for a client to say who it is */
#define HELLO_NUMBERS 14
#define ERRNO_MOST 4095

/* The first bytes of a stream: numbers of 64 bits, little end first. */
struct hello {
    uint64_t nonce, index, count; /* which run, and which of its streams */
    struct raw_plan plan;
};

/* What the server says when it is ready, or why it is not. */
struct answer {
    uint64_t magic;
    uint64_t code; /* errno; 0: ready */
    char text[WF_STATUS_TEXT];
};

static void encode_hello(const struct hello *hello, uint64_t *out)
{
    const struct raw_plan *plan = &hello->plan;
    const uint64_t numbers[HELLO_NUMBERS] = {
        MAGIC,        hello->nonce, hello->index,   hello->count,  plan->mode,  plan->size,      plan->messages,
        plan->warmup, plan->call,   plan->inflight, plan->buffers, plan->batch, plan->timeout_s, plan->block,
    };

    for (int i = 0; i < HELLO_NUMBERS; i++)
        out[i] = htole64(numbers[i]);
}

/* False where it is not from one of us, or asks for what no client of ours would. */
static bool decode_hello(const uint64_t *in, struct hello *hello)
{
    uint64_t n[HELLO_NUMBERS];

    for (int i = 0; i < HELLO_NUMBERS; i++)
        n[i] = le64toh(in[i]);
    if (n[0] != MAGIC || n[4] >= RAW_MODES)
        return false;
    *hello = (struct hello){
        .nonce = n[1],
        .index = n[2],
        .count = n[3],
        .plan = {.mode = (enum raw_mode)n[4],
                 .size = n[5],
                 .messages = n[6],
                 .warmup = n[7],
                 .call = n[8],
                 .inflight = n[9],
                 .buffers = n[10],
                 .batch = n[11],
                 .timeout_s = n[12],
                 .block = n[13] != 0},
    };
    return hello->count >= 1 && hello->count <= RAW_STREAMS_MAX && hello->index < hello->count &&
           raw_plan_check(&hello->plan, NULL) == 0;
}

/* --- memory --- */

void raw_link_init(struct raw_link *link)
{
    cpu_set_t allowed;

    memset(link, 0, sizeof *link);
    for (int i = 0; i < RAW_STREAMS_MAX; i++)
        link->streams[i].fd = -1;
    link->yield = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == 1;
}

void raw_link_close(struct raw_link *link)
{
    for (int i = 0; i < RAW_STREAMS_MAX; i++)
        if (link->streams[i].fd >= 0)
            close(link->streams[i].fd);
    if (link->ring)
        munmap(link->ring, link->ring_bytes);
    raw_link_init(link);
}

int raw_link_map(struct raw_link *link, struct wf_status *status)
{
    uint64_t bytes = link->plan.size * link->plan.buffers;
    char wanted[32], there[32];
    const char *why;
    uint64_t available = bench_memory_available(&why);
    if (bytes > available)
        return wf_fail(status, -ENOMEM, "needs %s of buffers here and has %s (%s): lower --size or --buffers",
                       bench_human_bytes(bytes, wanted, sizeof wanted),
                       bench_human_bytes(available, there, sizeof there), why);
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return wf_fail(status, -ENOMEM, "cannot map %s of buffers: lower --size or --buffers",
                       bench_human_bytes(bytes, wanted, sizeof wanted));
    madvise(at, bytes, MADV_HUGEPAGE); /* as the buffers of the other commands; a kernel without them says no */
    memset(at, 0x5a, bytes);
    link->ring = at;
    link->ring_bytes = bytes;
    for (int i = 0; i < link->stream_count; i++)
        link->streams[i].place = link->plan.buffers * (uint64_t)i / (uint64_t)link->stream_count * link->plan.size;
    return 0;
}

/* --- server --- */

/* Reads who has come. False: a stranger, or somebody who does not say. */
static bool read_hello(int fd, struct hello *hello)
{
    struct timeval limit = {.tv_sec = HELLO_S};
    uint64_t numbers[HELLO_NUMBERS];

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
           recv(fd, numbers, sizeof numbers, MSG_WAITALL) == (ssize_t)sizeof numbers && decode_hello(numbers, hello);
}

/* Makes the connection `fd` one of the run's streams. False: it is none. */
static bool admit(struct raw_link *link, int fd, uint64_t *nonce)
{
    struct hello hello;

    if (!read_hello(fd, &hello))
        return false;
    if (link->stream_count == 0) {
        link->stream_count = (int)hello.count;
        link->plan = hello.plan;
        *nonce = hello.nonce;
    }
    if (hello.nonce != *nonce || (int)hello.count != link->stream_count || link->streams[hello.index].fd >= 0)
        return false;
    link->streams[hello.index].fd = fd;
    return true;
}

static bool complete(const struct raw_link *link)
{
    for (int i = 0; i < link->stream_count; i++)
        if (link->streams[i].fd < 0)
            return false;
    return link->stream_count > 0;
}

static int accept_streams(struct raw_link *link, int listener, uint64_t timeout_s, struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), (int64_t)timeout_s * 1000);
    uint64_t nonce = 0;

    while (!complete(link)) {
        struct pollfd polled = {.fd = listener, .events = POLLIN};
        int64_t left_ms = (deadline - wf_clock_now(&wf_clock_monotonic)) / WF_NS_PER_MS;
        if (left_ms < 0)
            return wf_fail(status, -ETIMEDOUT,
                           "no client came within %d s: start 'weft raw --connect', or raise --timeout",
                           (int)timeout_s);
        if (poll(&polled, 1, (int)left_ms + 1) <= 0)
            continue;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            continue;
        if (!admit(link, fd, &nonce)) {
            fprintf(stderr, "weft: closed a connection that was not from 'weft raw --connect'\n");
            close(fd);
        }
    }
    return 0;
}

static int send_answer(const struct raw_link *link, int code, const struct wf_status *why)
{
    struct answer answer = {.magic = htole64(MAGIC), .code = htole64((uint64_t)-code)};

    bench_copy_text(answer.text, sizeof answer.text, code ? why->text : "");
    return send(link->streams[0].fd, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer ? code
                                                                                                     : -ECONNRESET;
}

int raw_link_accept(struct raw_link *link, const struct raw_options *options, struct wf_status *status)
{
    int listener, result = raw_listen(options->address, options->congestion, &listener, status);

    if (result)
        return result;
    result = accept_streams(link, listener, options->plan.timeout_s, status);
    close(listener);
    for (int i = 0; result == 0 && i < link->stream_count; i++)
        result = raw_prepare(link->streams[i].fd, link->plan.timeout_s, status);
    if (result)
        return result;
    result = raw_link_map(link, status);
    if (send_answer(link, result, status) == -ECONNRESET)
        return wf_fail(status, -ECONNRESET, "the client went away before the measurement began");
    return result;
}

/* --- client --- */

static int say_hello(const struct raw_link *link, int index, uint64_t nonce, const char *address,
                     struct wf_status *status)
{
    struct hello hello = {
        .nonce = nonce, .index = (uint64_t)index, .count = (uint64_t)link->stream_count, .plan = link->plan};
    uint64_t numbers[HELLO_NUMBERS];

    encode_hello(&hello, numbers);
    if (send(link->streams[index].fd, numbers, sizeof numbers, MSG_NOSIGNAL) != (ssize_t)sizeof numbers)
        return wf_fail(status, -ECONNRESET, "%s closed the connection at once: is it 'weft raw --listen'?", address);
    return 0;
}

static int await_answer(const struct raw_link *link, const char *address, struct wf_status *status)
{
    struct answer answer;
    ssize_t got = recv(link->streams[0].fd, &answer, sizeof answer, MSG_WAITALL);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return wf_fail(status, -ETIMEDOUT, "%s did not answer within %d s: is it 'weft raw --listen'?", address,
                       (int)link->plan.timeout_s);
    if (got != (ssize_t)sizeof answer || le64toh(answer.magic) != MAGIC)
        return wf_fail(status, -ECONNRESET, "%s closed the connection at once: is it 'weft raw --listen'?", address);
    answer.text[sizeof answer.text - 1] = '\0';
    bench_heard_plain(answer.text);
    uint64_t code = le64toh(answer.code);
    if (code)
        return wf_fail(status, code <= ERRNO_MOST ? -(int)code : -EPROTO, "the server at %.60s: %.160s", address,
                       answer.text);
    return 0;
}

int raw_link_connect(struct raw_link *link, const struct raw_options *options, struct wf_status *status)
{
    uint64_t nonce;
    int result = 0;

    link->plan = options->plan;
    link->stream_count = options->address_count;
    link->read_ahead = options->read_ahead;
    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return wf_fail(status, -errno, "no random numbers: %s", wf_strerror(errno));
    result = raw_link_map(link, status);
    for (int i = 0; result == 0 && i < link->stream_count; i++) {
        result =
            raw_dial(options->addresses[i], options->congestion, link->plan.timeout_s, &link->streams[i].fd, status);
        if (result == 0)
            result = say_hello(link, i, nonce, options->addresses[i], status);
    }
    return result ? result : await_answer(link, options->addresses[0], status);
}
