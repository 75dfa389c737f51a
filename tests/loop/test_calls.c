/* test_calls.c: the most that the library asks the kernel to send in one call. Large messages alone go in whole chunks,
 * several at a time where that is of use; a small message among them has smaller calls, so that it waits for less. The
 * calls are seen on their way to the kernel: this program's sendmsg stands before the C library's. Reading ahead, which
 * ends calls where memory is slow, is off. */
#include "loop_support.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AHEAD 8
#define SIZE (1 << 20)
#define CHUNK (512u * 1024)
#define CUT (128u * 1024)
#define HEADER 512u
#define CUT_MOST 80 /* WF_HOT_BYTES (io/hot.h) and some: then a receive has told that nothing is urgent */

static atomic_uint whole, cut;                   /* calls that ask for a chunk, and for what an engine cuts them to */
static atomic_uint several;                      /* for more than one */
static atomic_uint large;                        /* for what may be a piece of a chunk, or more */
static atomic_ullong whole_bytes, several_bytes; /* that these calls ask for */

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    size_t length = 0;
    for (size_t i = 0; i < message->msg_iovlen; i++)
        length += message->msg_iov[i].iov_len;
    large += length >= CUT / 2;
    if (length > CHUNK + HEADER) {
        several += 1;
        several_bytes += length;
    }
    if (length >= CHUNK) {
        whole += 1;
        whole_bytes += length;
    } else if (length == CUT)
        cut += 1;
    return syscall(SYS_sendmsg, fd, message, flags);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    large += length >= CUT / 2;
    if (length >= CHUNK) {
        whole += 1;
        whole_bytes += length;
    } else if (length == CUT)
        cut += 1;
    return syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
}

/* `count` large messages, some of them under way at a time; with each, `small` small ones there and back, before it is
 * posted and while it is under way. */
static void run(struct loop_pair *pair, int count, int small)
{
    struct loop_message messages[AHEAD];
    struct weft_connection *left = pair->node[0].connection, *right = pair->node[1].connection;

    for (int i = 0; i < count + AHEAD; i++) {
        struct loop_message *message = &messages[i % AHEAD];
        if (i >= AHEAD) {
            loop_done(message->send, 0, SIZE);
            loop_done(message->recv, 0, SIZE);
            loop_message_verify(message);
            loop_message_destroy(message);
        }
        if (i >= count)
            continue;
        loop_message_create(message, SIZE, (uint64_t)i);
        for (int k = 0; k < small; k++)
            loop_exchange(left, right, 8, 1000);
        message->recv = loop_recv(right, message->sink.data, SIZE, (uint64_t)i);
        message->send = loop_send(left, message->source.data, SIZE, (uint64_t)i);
        for (int k = 0; k < small; k++)
            loop_exchange(left, right, 8, 1001);
    }
}

static void large_alone(void)
{
    static const char *const settings[] = {"engine=epoll workers=shared channels=1 chunk=512K read_ahead=off",
                                           "engine=epoll workers=shared channels=2 chunk=512K read_ahead=off"};
    loop_needs_kernel("system calls");
    for (int i = 0; i < 2; i++) {
        struct loop_pair pair;
        loop_pair_create(&pair, settings[i], NULL, 1);
        run(&pair, 16, 0);
        whole = cut = several = large = 0;
        whole_bytes = several_bytes = 0;
        run(&pair, 200, 0);
        loop_pair_destroy(&pair);
        LOOP_CHECK(cut * 10 < large, "%s: %u of %u large calls were cut", settings[i], cut, large);
        if (i > 0) /* of two channels each takes pieces after its rate, which a busy machine makes small */
            continue;
        /* In chunks, not calls: on a busy machine one call may take a whole window. */
        LOOP_CHECK(whole_bytes > 100 * (uint64_t)CHUNK && cut * 10 < whole,
                   "%s: %u calls took a whole chunk, %u were cut", settings[i], whole, cut);
        LOOP_CHECK(several_bytes > 20 * (uint64_t)CHUNK, "%s: %u of %u calls took several chunks", settings[i], several,
                   whole);
    }
}

/* What a checksum was made of is still in the cache. */
static void one_at_a_time(void)
{
    static const char *const settings[] = {"engine=epoll workers=shared channels=1 chunk=512K read_ahead=off crc=on",
                                           "engine=epoll workers=shared channels=2 chunk=512K read_ahead=off crc=on"};
    loop_needs_kernel("system calls");
    for (int i = 0; i < 2; i++) {
        struct loop_pair pair;
        loop_pair_create(&pair, settings[i], NULL, 1);
        several = 0;
        run(&pair, 100, 0);
        loop_pair_destroy(&pair);
        LOOP_CHECK(several == 0, "%s: %u calls took several chunks", settings[i], several);
    }
}

/* Injected faults come between, and nobody tells when a call was made: two streams take turns within a chunk. */
static void streams_take_turns(void)
{
    struct loop_pair pair;

    loop_needs_kernel("system calls");
    loop_pair_create(&pair, "engine=epoll workers=shared channels=2 chunk=512K read_ahead=off fault=seed=1", NULL, 1);
    whole = several = 0;
    run(&pair, 100, 0);
    loop_pair_destroy(&pair);
    LOOP_CHECK(whole == 0 && several == 0, "%u calls took a whole chunk", whole);
}

static void large_among_small(void)
{
    struct loop_pair pair;

    loop_needs_kernel("system calls");
    loop_pair_create(&pair, "engine=epoll workers=shared channels=1 chunk=512K read_ahead=off", NULL, 1);
    run(&pair, 16, 2);
    whole = cut = 0;
    run(&pair, 100, 2);
    loop_pair_destroy(&pair);
    LOOP_CHECK(cut > whole, "%u calls took a whole chunk, %u were cut", whole, cut);
}

/* One that came alone, as of a barrier, and some time ago is no reason to cut calls. */
static void large_after_a_small_one(void)
{
    const struct timespec some_time = {.tv_nsec = 2000000};
    struct loop_pair pair;

    loop_needs_kernel("system calls");
    loop_pair_create(&pair, "engine=epoll workers=shared channels=1 chunk=512K read_ahead=off", NULL, 1);
    run(&pair, 16, 0);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 8, 1000);
    nanosleep(&some_time, NULL);
    whole = cut = 0;
    run(&pair, 200, 0);
    loop_pair_destroy(&pair);
    LOOP_CHECK(cut <= CUT_MOST, "%u calls were cut, %u took a whole chunk", cut, whole);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(large_alone, 30),       LOOP_CASE(one_at_a_time, 30),           LOOP_CASE(streams_take_turns, 30),
        LOOP_CASE(large_among_small, 30), LOOP_CASE(large_after_a_small_one, 30),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
