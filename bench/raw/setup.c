/* Two sides of a raw run find each other: memory, streams, and the plan, which the client tells. */
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/machine/memory_limits.h"
#include "bench/words/heard.h"
#include "bench/words/words.h"
#include "parts.h"

#define MAGIC UINT64_C(0x3177617274666577) /* "weftraw1" as it stands on the wire */
#define HELLO_S 2                          /* for a client to say who it is */
#define HELLO_NUMBERS 14
#define ERRNO_MOST 4095
#define STREAMS_OF_OLD 16 /* that a server takes which knows no --streams */

/* The first bytes of a stream: numbers of 64 bits, little end first. */
struct hello {
    uint64_t nonce, index, count; /* which run, and which of its streams */
    struct raw_plan plan;
};

#define ANSWER_TEXT 252 /* bytes: as other builds of this program send it */

/* What the server says when it is ready, or why it is not. */
struct answer {
    uint64_t magic;
    uint64_t code; /* errno; 0: ready */
    char text[ANSWER_TEXT];
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

/* --- memory and streams --- */

void raw_link_init(struct raw_link *link)
{
    cpu_set_t allowed;

    memset(link, 0, sizeof *link);
    link->ready.epoll = -1;
    link->yield = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) == 1;
}

void raw_link_close(struct raw_link *link)
{
    raw_ready_close(&link->ready);
    for (int i = 0; i < link->stream_count; i++)
        if (link->streams[i].fd >= 0)
            close(link->streams[i].fd);
    free(link->streams);
    if (link->ring)
        munmap(link->ring, link->ring_bytes);
    raw_link_init(link);
}

/* None of them is open yet. */
static int make_streams(struct raw_link *link, int count, struct wf_status *status)
{
    link->streams = calloc((size_t)count, sizeof *link->streams);
    if (!link->streams)
        return wf_fail(status, -ENOMEM, "no memory for %d streams", count);
    link->stream_count = count;
    for (int i = 0; i < count; i++)
        link->streams[i].fd = -1;
    return raw_allow_descriptors(count, status);
}

/* All streams are open. */
static int watch_streams(struct raw_link *link, uint32_t events, struct wf_status *status)
{
    return link->stream_count > RAW_ASKED_MAX ? raw_ready_open(link, events, status) : 0;
}

/* Where a stream begins. Streams that are at work together are neighbours, and must not share an area: memory that many
 * use at once stays in the caches, and the floor would be higher than what messages can have. */
static uint64_t first_area(const struct raw_link *link, uint64_t stream)
{
    uint64_t buffers = link->plan.buffers, streams = (uint64_t)link->stream_count;
    return streams > buffers ? stream % buffers : buffers * stream / streams;
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
        link->streams[i].place = first_area(link, (uint64_t)i) * link->plan.size;
    return 0;
}

/* --- server --- */

/* Who has come so far. */
struct roll {
    uint64_t nonce; /* of the run; 0 as long as nobody has come */
    int admitted;   /* streams */
};

/* Who has come. A stranger may also be somebody who does not say. */
enum visitor { STRANGER, OTHER_COMMAND, CLIENT };

static enum visitor read_hello(int fd, struct hello *hello)
{
    struct timeval limit = {.tv_sec = HELLO_S};
    uint64_t numbers[HELLO_NUMBERS] = {0};

    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
        return STRANGER;
    if (recv(fd, numbers, sizeof numbers[0], MSG_WAITALL) != (ssize_t)sizeof numbers[0])
        return STRANGER;
    if (memcmp(numbers, "WEFT", 4) == 0)
        return OTHER_COMMAND;
    ssize_t rest = (ssize_t)(sizeof numbers - sizeof numbers[0]);
    return recv(fd, numbers + 1, (size_t)rest, MSG_WAITALL) == rest && decode_hello(numbers, hello) ? CLIENT : STRANGER;
}

/* Another command of weft hears the word by which it knows this one. What it has said is read, or it would get a reset.
 */
static void turn_away(int fd)
{
    struct answer answer = {.magic = htole64(MAGIC), .code = htole64(EPROTO)};
    char rest[4096];

    bench_copy_text(answer.text, sizeof answer.text, "this is 'weft raw --listen': start the same command on both");
    while (recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0)
        ;
    if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer)
        shutdown(fd, SHUT_WR);
    recv(fd, rest, sizeof rest, 0); /* until it has gone, at most HELLO_S */
}

/* Makes the connection `fd` one of the run's streams, and counts it. It is closed here if it is none. */
static int admit(struct raw_link *link, int fd, struct roll *roll, struct wf_status *status)
{
    struct hello hello;
    enum visitor visitor = read_hello(fd, &hello);
    bool known = visitor == CLIENT;
    int result = 0;

    if (visitor == OTHER_COMMAND) {
        turn_away(fd);
        fprintf(stderr, "weft: another command of weft wanted to connect: start 'weft raw --connect' there\n");
        close(fd);
        return 0;
    }
    if (known && link->stream_count == 0) {
        link->plan = hello.plan;
        roll->nonce = hello.nonce;
        result = make_streams(link, (int)hello.count, status);
    }
    if (!known || !link->streams || hello.nonce != roll->nonce || (int)hello.count != link->stream_count ||
        link->streams[hello.index].fd >= 0) {
        fprintf(stderr, "weft: closed a connection that was not from 'weft raw --connect'\n");
        close(fd);
        return result;
    }
    link->streams[hello.index].fd = fd;
    roll->admitted++;
    return result;
}

static int accept_one(struct raw_link *link, int listener, struct roll *roll, struct wf_status *status)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd >= 0)
        return admit(link, fd, roll, status);
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
        return 0; /* the connection is gone again */
    return wf_fail(status, -errno, "cannot accept stream %d of %d: %s", roll->admitted + 1, link->stream_count,
                   wf_strerror(errno));
}

static int nobody_came(const struct raw_link *link, const struct roll *roll, uint64_t timeout_s,
                       struct wf_status *status)
{
    if (roll->admitted)
        return wf_fail(status, -ETIMEDOUT, "%d of the client's %d streams came within %d s: raise --timeout",
                       roll->admitted, link->stream_count, (int)timeout_s);
    return wf_fail(status, -ETIMEDOUT, "no client came within %d s: start 'weft raw --connect', or raise --timeout",
                   (int)timeout_s);
}

static int accept_streams(struct raw_link *link, int listener, uint64_t timeout_s, struct wf_status *status)
{
    int64_t deadline = wf_deadline_after_ms(wf_clock_now(&wf_clock_monotonic), (int64_t)timeout_s * 1000);
    struct roll roll = {0};
    int result = 0;

    while (result == 0 && (roll.admitted == 0 || roll.admitted < link->stream_count)) {
        struct pollfd polled = {.fd = listener, .events = POLLIN};
        int64_t left_ms = (deadline - wf_clock_now(&wf_clock_monotonic)) / WF_NS_PER_MS;
        if (left_ms < 0)
            return nobody_came(link, &roll, timeout_s, status);
        if (poll(&polled, 1, (int)left_ms + 1) <= 0)
            continue;
        result = accept_one(link, listener, &roll, status);
    }
    return result;
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
    for (int i = 0; result == 0 && i < link->stream_count; i++)
        result = raw_prepare(link->streams[i].fd, link->plan.timeout_s, status);
    if (result == 0)
        result = watch_streams(link, EPOLLIN, status);
    if (result == 0)
        result = raw_link_map(link, status);
    /* Before the listener is closed: what a client sees of that is not the reason. */
    bool heard = link->streams && link->streams[0].fd >= 0;
    if (heard && send_answer(link, result, status) == -ECONNRESET && result == 0)
        result = wf_fail(status, -ECONNRESET, "the client went away before the measurement began");
    close(listener);
    return result;
}

/* --- client --- */

static int closed_at_once(const struct raw_link *link, const char *address, struct wf_status *status)
{
    char version[64] = "";

    if (link->stream_count > STREAMS_OF_OLD)
        snprintf(version, sizeof version, ", of a version that takes %d streams", link->stream_count);
    return wf_fail(status, -ECONNRESET,
                   "%.100s closed the connection at once: is it 'weft raw --listen'%s? Another command of weft "
                   "takes no stream of it",
                   address, version);
}

static int say_hello(const struct raw_link *link, int index, uint64_t nonce, const char *address,
                     struct wf_status *status)
{
    struct hello hello = {
        .nonce = nonce, .index = (uint64_t)index, .count = (uint64_t)link->stream_count, .plan = link->plan};
    uint64_t numbers[HELLO_NUMBERS];

    encode_hello(&hello, numbers);
    if (send(link->streams[index].fd, numbers, sizeof numbers, MSG_NOSIGNAL) != (ssize_t)sizeof numbers)
        return closed_at_once(link, address, status);
    return 0;
}

/* The first bytes tell a person what it is: "HTTP/1.1", "SSH-2.0-". */
static int stranger_answers(const struct answer *answer, const char *address, struct wf_status *status)
{
    char first[sizeof answer->magic + 1] = "";

    memcpy(first, &answer->magic, sizeof answer->magic);
    for (size_t i = 0; i < sizeof answer->magic; i++)
        if ((unsigned char)first[i] < ' ' || (unsigned char)first[i] >= 0x7f)
            first[i] = '.';
    return wf_fail(status, -EPROTO, "%.100s: is it 'weft raw --listen'? What it says begins with '%s'", address, first);
}

static int await_answer(const struct raw_link *link, const char *address, struct wf_status *status)
{
    struct answer answer;
    ssize_t got = recv(link->streams[0].fd, &answer, sizeof answer, MSG_WAITALL);

    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return wf_fail(status, -ETIMEDOUT, "%s did not answer within %d s: is it 'weft raw --listen'?", address,
                       (int)link->plan.timeout_s);
    if (got >= (ssize_t)sizeof answer.magic && le64toh(answer.magic) != MAGIC)
        return stranger_answers(&answer, address, status);
    if (got != (ssize_t)sizeof answer)
        return closed_at_once(link, address, status);
    answer.text[sizeof answer.text - 1] = '\0';
    bench_heard_plain(answer.text);
    uint64_t code = le64toh(answer.code);
    if (code)
        return wf_fail(status, code <= ERRNO_MOST ? -(int)code : -EPROTO, "the server at %.60s: %.160s", address,
                       answer.text);
    return 0;
}

/* Whether the server has already said something: that it cannot take as many streams. */
static bool answered(const struct raw_link *link)
{
    struct answer answer;

    return link->streams[0].fd >= 0 &&
           recv(link->streams[0].fd, &answer, sizeof answer, MSG_PEEK | MSG_DONTWAIT) == (ssize_t)sizeof answer;
}

/* The streams take turns at the addresses, so that those which are next to each other have different ones. */
static int connect_streams(struct raw_link *link, const struct raw_options *options, uint64_t nonce,
                           struct wf_status *status)
{
    int result = 0;

    for (int i = 0; result == 0 && i < link->stream_count; i++) {
        const char *address = options->addresses[i % options->address_count];
        result = raw_dial(address, options->congestion, link->plan.timeout_s, &link->streams[i].fd, status);
        if (result == 0)
            result = say_hello(link, i, nonce, address, status);
    }
    return result;
}

int raw_link_connect(struct raw_link *link, const struct raw_options *options, struct wf_status *status)
{
    uint64_t nonce;

    link->plan = options->plan;
    link->read_ahead = options->read_ahead;
    if (getrandom(&nonce, sizeof nonce, 0) != (ssize_t)sizeof nonce)
        return wf_fail(status, -errno, "no random numbers: %s", wf_strerror(errno));
    int result = make_streams(link, options->address_count * options->streams, status);
    if (result == 0)
        result = raw_link_map(link, status);
    if (result == 0)
        result = connect_streams(link, options, nonce, status);
    if (result && !(link->streams && answered(link)))
        return result;
    result = await_answer(link, options->addresses[0], status);
    return result ? result : watch_streams(link, EPOLLIN | EPOLLOUT, status);
}
