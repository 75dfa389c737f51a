/* test_encrypt.c: encrypted channels (setting encrypt). What is on the wire tells nothing of the payload, what was
 * changed there is never delivered, and who is not agreed on it gets no session. The environment variable LOOP_KEY
 * names the key file. */
#include "loop_support.h"
#include "loop_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static struct loop_pair pair;

static const char *with_key(const char *settings)
{
    static char text[2][512];
    static int turn;
    char *out = text[turn = !turn];
    snprintf(out, sizeof(text[0]), "key_file=%s %s", getenv("LOOP_KEY"), settings);
    return out;
}

/* --- agreement --- */

/* One side encrypts, the other does not. */
static void refuse(bool listener_encrypts)
{
    struct loop_node near, far;
    struct weft_peer *peer = NULL;
    struct weft_error err = {0};
    char address[80];

    loop_node_start(&far, with_key(listener_encrypts ? "encrypt=on log=error" : "encrypt=off log=error"), 1);
    loop_node_start(&near, with_key(listener_encrypts ? "encrypt=off" : "encrypt=on"), 1);
    loop_address(address, sizeof(address), loop_node_listen(&far));
    int result = loop_world_connect(near.context, address, LOOP_WAIT_MS, &peer, &err);
    LOOP_CHECK(result == -ECONNREFUSED, "code %d: %s", result, err.text);
    const char *said = listener_encrypts ? "encrypt is on on the listening side and off on the dialling side"
                                         : "encrypt is off on the listening side and on on the dialling side";
    LOOP_CHECK(strstr(err.text, said), "%s", err.text);
    loop_node_stop(&near);
    loop_node_stop(&far);
}

static void both_or_none(void)
{
    refuse(true);
    refuse(false);
}

static void needs_a_key(void)
{
    struct weft_config *config = loop_config("encrypt=on key_file=", 1);
    struct weft_context *context = NULL;
    struct weft_error err = {0};

    int result = weft_context_create(config, &context, &err);
    LOOP_CHECK(result == -EINVAL && !context, "code %d: %s", result, err.text);
    LOOP_CHECK(strstr(err.text, "key_file"), "%s", err.text);
    weft_config_destroy(config);
}

static void tells_that_zero_copy_is_not_used(void)
{
    struct loop_node node;

    loop_node_start(&node, with_key("encrypt=on zero_copy=64K"), 1);
    const char *fallbacks = weft_context_fallbacks(node.context);
    LOOP_CHECK(strstr(fallbacks, "zero_copy: sends are copied, they are encrypted"), "%s", fallbacks);
    loop_node_stop(&node);
}

/* --- damage --- */

static uint64_t draw(uint64_t below)
{
    static uint64_t state = 20261122;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static const size_t sizes[] = {1, 900, 7000, 8193, 40000, 65537, 300001};
#define SIZE_COUNT (sizeof(sizes) / sizeof(sizes[0]))

/* Messages in both directions. Returns how many came with wrong bytes; `failed` counts those that did not come. */
static int exchange(int *failed)
{
    static struct loop_message message[2][SIZE_COUNT];
    int wrong = 0;

    for (size_t i = 0; i < 2 * SIZE_COUNT; i++) {
        struct loop_message *one = &message[i % 2][i / 2];
        size_t size = sizes[i / 2];
        loop_message_create(one, size, i);
        weft_send(pair.node[i % 2].connection, one->source.data, size, i, NULL, &one->send);
        weft_recv(pair.node[!(i % 2)].connection, one->sink.data, size, i, NULL, &one->recv);
    }
    for (size_t i = 0; i < 2 * SIZE_COUNT; i++) {
        struct loop_message *one = &message[i % 2][i / 2];
        bool came = one->recv && loop_end(one->recv).status == 0;
        bool sent = one->send && loop_end(one->send).status == 0;
        *failed += !came + !sent;
        wrong += came && loop_wrong(one->sink.data, sizes[i / 2], one->seed) >= 0;
        loop_message_destroy(one);
    }
    return wrong;
}

/* What is under way fits between two flips, mostly, or it comes through by luck only. Without checksums: the records
 * alone keep what was flipped from being delivered, and the channel is joined again. */
static void damage_is_never_delivered(void)
{
    static const char *const shapes[] = {"chunk=64K", "channels=2 chunk=4K header_pad=64 eager=2000",
                                         "chunk=512K window=2 call=16K first_burst=0"};
    static const int flips_k[] = {250, 300, 600};
    uint64_t damaged = 0;
    int wrong = 0, failed = 0;

    for (int round = 0; round < (loop_world_simulated ? 60 : 6); round++) {
        char settings[256];
        snprintf(settings, sizeof(settings), "encrypt=on crc=off crc_limit=0 log=error fault=seed=%d,flip_every=%dK %s",
                 round + 1, flips_k[round % 3] + (int)draw(50), shapes[round % 3]);
        loop_note("round %d, %s", round, settings);
        loop_pair_create(&pair, with_key(settings), NULL, 1 + round % 2);
        wrong += exchange(&failed);
        damaged += loop_damaged(pair.node[0].peer) + loop_damaged(pair.node[1].peer);
        loop_pair_destroy(&pair);
    }
    LOOP_CHECK(wrong == 0, "%d messages came with wrong bytes", wrong);
    LOOP_CHECK(failed == 0, "%d requests failed", failed);
    LOOP_CHECK(damaged >= (loop_world_simulated ? 20 : 3), "only %llu records were damaged",
               (unsigned long long)damaged);
}

/* --- a capture --- */

#define CAPTURE_BYTES (8u << 20)
#define RUN 16 /* bytes in a row that tell payload from chance */
#define SECRET_BYTES (256u * 1024)

/* What the process hands to its kernel to be sent, both nodes of it. Threads send: a place is theirs alone. */
static unsigned char captured[CAPTURE_BYTES];
static _Atomic size_t captured_bytes;
static _Atomic bool capturing;

static void capture(const struct iovec *iov, size_t count, ssize_t sent)
{
    if (!capturing || sent <= 0)
        return;
    size_t left = (size_t)sent, at = captured_bytes;
    do
        if (left > CAPTURE_BYTES - at)
            return; /* the check that all of it is there fails */
    while (!__atomic_compare_exchange_n((size_t *)&captured_bytes, &at, at + left, false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST));
    for (size_t i = 0; i < count && left > 0; i++) {
        size_t piece = iov[i].iov_len < left ? iov[i].iov_len : left;
        memcpy(captured + at, iov[i].iov_base, piece);
        at += piece;
        left -= piece;
    }
}

/* The library calls these instead of the C library's. */
#pragma GCC visibility push(default)
ssize_t send(int fd, const void *bytes, size_t length, int flags)
{
    ssize_t sent = syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0);
    int kept = errno;
    struct iovec iov = {(void *)(uintptr_t)bytes, length};
    capture(&iov, 1, sent);
    errno = kept;
    return sent;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t sent = syscall(SYS_sendmsg, fd, message, flags);
    int kept = errno;
    capture(message->msg_iov, message->msg_iovlen, sent);
    errno = kept;
    return sent;
}
#pragma GCC visibility pop

/* How many places of the message, each RUN bytes, can be found in the capture. */
static size_t runs_found(const unsigned char *secret, size_t length)
{
    enum { BUCKETS = 1 << 16 };
    static int32_t first[BUCKETS], next[SECRET_BYTES];
    size_t found = 0;

    memset(first, -1, sizeof(first));
    for (size_t i = 0; i + RUN <= length; i++) {
        unsigned bucket = secret[i] | (unsigned)secret[i + 1] << 8;
        next[i] = first[bucket];
        first[bucket] = (int32_t)i;
    }
    for (size_t at = 0; at + RUN <= captured_bytes; at++)
        for (int32_t i = first[captured[at] | (unsigned)captured[at + 1] << 8]; i >= 0; i = next[i])
            found += memcmp(captured + at, secret + i, RUN) == 0;
    return found;
}

/* One large message, one small one, a write: all of the same bytes. Returns the runs of them on the wire. */
static size_t runs_on_the_wire(const char *encrypt)
{
    static unsigned char secret[SECRET_BYTES], got[SECRET_BYTES];
    struct weft_registration *registration = NULL;
    struct weft_request *request = NULL;
    struct weft_error err;
    char settings[64];

    for (size_t i = 0; i < sizeof(secret); i++)
        secret[i] = (unsigned char)draw(256);
    snprintf(settings, sizeof(settings), "engine=epoll encrypt=%s", encrypt);
    captured_bytes = 0;
    capturing = true;
    loop_pair_create(&pair, with_key(settings), NULL, 2);
    LOOP_CALL(weft_register(pair.node[1].context, got, sizeof(got), &registration, &err), &err);
    struct weft_connection *ends[] = {pair.node[0].connection, pair.node[1].connection};
    static const size_t lengths[] = {SECRET_BYTES, 1000};
    for (int i = 0; i < 2; i++) {
        struct weft_request *receive = loop_recv(ends[1], got, lengths[i], 1);
        loop_done(loop_send(ends[0], secret, lengths[i], 1), 0, lengths[i]);
        loop_done(receive, 0, lengths[i]);
        LOOP_CHECK(memcmp(got, secret, lengths[i]) == 0, "it came with wrong bytes");
    }
    memset(got, 0, sizeof(got));
    /* Nothing but a socket would tell the owner's thread of this, or this thread of what that one writes: a lock that
     * both have held orders them. */
    LOOP_CALL(weft_peer_status(pair.node[1].peer, &err), &err);
    LOOP_CALL(weft_write(ends[0], secret, sizeof(secret), weft_registration_key(registration), 0, NULL, &request),
              &err);
    loop_done(request, 0, sizeof(secret));
    LOOP_CALL(weft_peer_status(pair.node[1].peer, &err), &err);
    LOOP_CHECK(memcmp(got, secret, sizeof(got)) == 0, "it was written with wrong bytes");
    loop_world_deregister(registration);
    loop_pair_destroy(&pair);
    capturing = false;
    LOOP_CHECK(captured_bytes > 2 * sizeof(secret) && captured_bytes < CAPTURE_BYTES, "%zu bytes captured",
               (size_t)captured_bytes);
    return runs_found(secret, sizeof(secret));
}

static void capture_holds_no_payload(void)
{
    loop_needs_kernel("system calls that send");
    size_t runs = runs_on_the_wire("off");
    LOOP_CHECK(runs > SECRET_BYTES, "only %zu runs of payload found where nothing is encrypted", runs);
    runs = runs_on_the_wire("on");
    LOOP_CHECK(runs == 0, "%zu runs of %d payload bytes on the wire", runs, RUN);
}

int main(int argc, char **argv)
{
    if (!getenv("LOOP_KEY")) {
        fprintf(stderr, "LOOP_KEY names no key file\n");
        return 77;
    }
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(both_or_none, 20),
        LOOP_CASE(needs_a_key, 20),
        LOOP_CASE(tells_that_zero_copy_is_not_used, 20),
        LOOP_CASE(damage_is_never_delivered, 60),
        LOOP_CASE(capture_holds_no_payload, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
