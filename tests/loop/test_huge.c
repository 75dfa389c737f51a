/* test_huge.c: a message longer than 2^32 bytes. Both sides show it to the library through many mappings of one small
 * piece of memory, whose period is such that an offset cut to 32 bits lands in the wrong place. */
#include "loop_support.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PERIOD ((size_t)61 << 20)
#define TOTAL (((size_t)5 << 30) + 12345)

/* TOTAL bytes of address space, all of them the same PERIOD of memory. */
static unsigned char *repeat(void)
{
    int fd = memfd_create("period", MFD_CLOEXEC);
    size_t room = (TOTAL / PERIOD + 1) * PERIOD;

    LOOP_CHECK(fd >= 0 && ftruncate(fd, (off_t)PERIOD) == 0, "memfd: %s", strerror(errno));
    unsigned char *base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LOOP_CHECK(base != MAP_FAILED, "mmap: %s", strerror(errno));
    for (size_t at = 0; at < room; at += PERIOD) {
        void *piece = mmap(base + at, PERIOD, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        LOOP_CHECK(piece == base + at, "mmap of a piece: %s", strerror(errno));
    }
    close(fd);
    return base;
}

static void five_gibibytes(void)
{
    struct loop_pair pair;
    unsigned char *source = repeat(), *sink = repeat();

    loop_fill(source, PERIOD, 1);
    memset(sink, LOOP_POISON, PERIOD);
    loop_pair_create(&pair, "chunk=4M channels=2", NULL, 2);
    struct weft_request *recv = loop_recv(pair.node[1].connection, sink, TOTAL, 1);
    struct weft_request *send = loop_send(pair.node[0].connection, source, TOTAL, 1);
    struct weft_completion completion;
    LOOP_CHECK(weft_wait(recv, 200000 * LOOP_SLOWER, &completion) == 0, "the receive does not end");
    LOOP_CHECK(completion.status == 0 && completion.bytes == TOTAL, "status %d, %llu bytes: %s", completion.status,
               (unsigned long long)completion.bytes, completion.text);
    loop_done(send, 0, TOTAL);
    int64_t at = loop_wrong(sink, PERIOD, 1);
    LOOP_CHECK(at < 0, "wrong from %lld", (long long)at);
    loop_exchange(pair.node[0].connection, pair.node[1].connection, 70000, 2);
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(five_gibibytes, 240),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
