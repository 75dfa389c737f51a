/* test_lost.c: TCP connections die under the library all the time, by resets and half-closes at random moments, and
 * every message arrives, once, with the right bytes. */
#include "loop_support.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { FIRST_FD = 3, LAST_FD = 400, FLIGHT = 12, NOTE_BYTES = 100 };

static struct loop_pair pair;

/* --- what breaks connections --- */

/* It breaks as many as it is allowed to: more with everything that arrives, so that something always can. */
struct breaker {
    pthread_t thread;
    atomic_bool stopping;
    atomic_int allowed;
    uint64_t random;
    int broken;
};

static struct breaker breaker;

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (*state >> 20) % below;
}

/* A connected TCP socket of this process: its descriptor may be any other thing a moment later, hence the look at the
 * option and not at a list. */
static bool is_connection(int fd)
{
    int protocol = 0, listens = 1;
    socklen_t size = sizeof protocol;
    struct sockaddr_storage peer;
    socklen_t peer_size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) == 0 && protocol == IPPROTO_TCP &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && !listens &&
           getpeername(fd, (struct sockaddr *)&peer, &peer_size) == 0;
}

static void break_one(void)
{
    static const int ways[] = {SHUT_RDWR, SHUT_WR, SHUT_RD};
    int start = (int)draw(&breaker.random, LAST_FD - FIRST_FD);
    for (int i = 0; i < LAST_FD - FIRST_FD; i++) {
        int fd = FIRST_FD + (start + i) % (LAST_FD - FIRST_FD);
        if (!is_connection(fd))
            continue;
        breaker.broken += shutdown(fd, ways[draw(&breaker.random, 3)]) == 0;
        return;
    }
}

static void *break_some(void *argument)
{
    (void)argument;
    while (!atomic_load(&breaker.stopping)) {
        /* At any moment of what is under way, not only right after something has arrived. */
        struct timespec pause = {.tv_nsec = (long)draw(&breaker.random, 1000000)};
        nanosleep(&pause, NULL);
        if (atomic_load(&breaker.allowed) == 0)
            continue;
        atomic_fetch_sub(&breaker.allowed, 1);
        break_one();
    }
    return NULL;
}

static void allow(int more)
{
    atomic_fetch_add(&breaker.allowed, more);
}

static void breaker_start(uint64_t seed)
{
    memset(&breaker, 0, sizeof breaker);
    breaker.random = seed * 2654435761u + 1;
    allow(3);
    LOOP_CHECK(pthread_create(&breaker.thread, NULL, break_some, NULL) == 0, "no thread");
}

static void breaker_stop(void)
{
    atomic_store(&breaker.stopping, true);
    pthread_join(breaker.thread, NULL);
    uint64_t lost = loop_failures(pair.node[0].peer) + loop_failures(pair.node[1].peer);
    LOOP_CHECK(breaker.broken > 0 && lost > 0, "%d connections broken, %llu channels lost: nothing was tested",
               breaker.broken, (unsigned long long)lost);
}

/* --- what they must survive --- */

static size_t some_size(uint64_t *random)
{
    static const size_t most[] = {1, 64, 9000, 70000, 700000, 4 << 20};
    return draw(random, most[draw(random, 6)]);
}

/* Messages both ways, `FLIGHT` at a time. */
static void exchange_many(uint64_t *random, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        struct loop_message messages[FLIGHT];
        size_t sizes[FLIGHT];
        loop_note("round %d of messages", round);
        for (int i = 0; i < FLIGHT; i++) {
            sizes[i] = some_size(random);
            loop_message_create(&messages[i], sizes[i], (uint64_t)round * FLIGHT + (uint64_t)i);
            bool late = draw(random, 3) == 0;
            struct weft_connection *from = pair.node[i % 2].connection, *to = pair.node[1 - i % 2].connection;
            if (!late)
                messages[i].recv = loop_recv(to, messages[i].sink.data, sizes[i], (uint64_t)i);
            messages[i].send = loop_send(from, messages[i].source.data, sizes[i], (uint64_t)i);
            if (late)
                messages[i].recv = loop_recv(to, messages[i].sink.data, sizes[i], (uint64_t)i);
        }
        for (int i = 0; i < FLIGHT; i++) {
            loop_done(messages[i].recv, 0, sizes[i]);
            allow(draw(random, 3) == 0);
            loop_done(messages[i].send, 0, sizes[i]);
            loop_message_verify(&messages[i]);
            loop_message_destroy(&messages[i]);
        }
    }
}

static void messages(const char *settings, int rails, int rounds)
{
    uint64_t random = 88172645463325252u;
    loop_pair_create(&pair, settings, NULL, rails);
    breaker_start(1);
    exchange_many(&random, LOOP_COUNT(rounds, rounds / 4 + 1));
    breaker_stop();
    exchange_many(&random, 2);
    loop_pair_destroy(&pair);
}

static void messages_on_four_rails(void)
{
    messages("channels=2 chunk=64K log=error", 4, 120);
}

static void messages_on_one_rail(void)
{
    messages("channels=1 chunk=64K log=error", 1, 25); /* each loss is waited for: the rail has no other channel */
}

static void messages_with_a_tiny_window(void)
{
    messages("channels=3 chunk=4K window=1 eager=100 introductions=4 unexpected=16K log=error", 2, 60);
}

/* Writes with notifications and reads, a few at a time. */
static void one_sided_round(uint64_t *random, struct loop_buffer *far, uint64_t key, int round)
{
    enum { SLOTS = 6 };
    size_t slot = far->size / SLOTS;
    struct loop_buffer near[SLOTS];
    unsigned char notes[SLOTS][NOTE_BYTES];
    struct weft_request *requests[SLOTS], *heard[SLOTS];
    struct weft_connection *asker = pair.node[0].connection, *owner = pair.node[1].connection;
    loop_note("round %d of writes and reads", round);
    for (int i = 0; i < SLOTS; i++) {
        size_t size = 1 + draw(random, slot);
        bool writes = i % 2 == 0;
        loop_buffer_create(&near[i], LOOP_NEAR, size);
        memset(notes[i], i + 1, NOTE_BYTES);
        struct weft_options options = {.flags = WEFT_NOTIFY, .notify_data = notes[i], .notify_length = NOTE_BYTES};
        loop_fill(near[i].data, size, (uint64_t)(round * SLOTS + i));
        int result = writes ? weft_write(asker, near[i].data, size, key, (uint64_t)i * slot, &options, &requests[i])
                            : weft_read(asker, near[i].data, size, key, (uint64_t)i * slot, NULL, &requests[i]);
        LOOP_CHECK(result == 0, "%d", result);
    }
    unsigned char told[SLOTS][NOTE_BYTES];
    for (int i = 0; i < SLOTS; i += 2)
        LOOP_CHECK(weft_recv_notification(owner, told[i], NOTE_BYTES, NULL, &heard[i]) == 0, "a receive");
    for (int i = 0; i < SLOTS; i++) {
        loop_done(requests[i], 0, near[i].size);
        uint64_t seed = (uint64_t)(round * SLOTS + i);
        const unsigned char *slot_data = far->data + (size_t)i * slot;
        bool well = i % 2 == 0 ? loop_wrong(slot_data, near[i].size, seed) < 0
                               : loop_same(near[i].data, slot_data, near[i].size);
        LOOP_CHECK(well, "operation %d: wrong bytes", i);
        loop_buffer_unmap(&near[i]);
    }
    int seen = 0; /* each once, in the order in which what they announce has ended */
    for (int i = 0; i < SLOTS; i += 2) {
        loop_done(heard[i], 0, NOTE_BYTES);
        LOOP_CHECK(loop_differs(told[i], NOTE_BYTES, told[i][0]) < 0, "a notification in pieces");
        seen |= 1 << told[i][0];
    }
    LOOP_CHECK(seen == (1 << 1 | 1 << 3 | 1 << 5), "notifications %#x", (unsigned)seen);
}

static void writes_and_reads(void)
{
    struct loop_buffer far;
    struct weft_registration *registration;
    struct weft_error err = {0};
    uint64_t random = 5489;
    loop_pair_create(&pair, "channels=2 chunk=64K log=error", NULL, 3);
    loop_buffer_create(&far, LOOP_FAR, 6 << 20);
    loop_fill(far.data, far.size, 7777); /* the slots that are read stay so: they may be read again after a loss */
    LOOP_CALL(weft_register(pair.node[1].context, far.data, far.size, &registration, &err), &err);
    breaker_start(2);
    for (int round = 0; round < LOOP_COUNT(60, 15); round++) {
        one_sided_round(&random, &far, weft_registration_key(registration), round);
        allow(3);
    }
    breaker_stop();
    weft_deregister(registration);
    loop_buffer_unmap(&far);
    loop_pair_destroy(&pair);
}

/* Connections come and go while the channels that their frames are on do. */
static void opening_and_closing(void)
{
    loop_pair_create(&pair, "channels=1 log=error", NULL, 3);
    breaker_start(3);
    for (int round = 0; round < LOOP_COUNT(150, 30); round++) {
        struct weft_connection *ends[2];
        loop_note("connection %d", round);
        loop_connection(&pair, round % 2, ends);
        loop_exchange(ends[0], ends[1], (size_t)round * 997 % 200000, 3);
        loop_connection_end(ends);
        allow(1);
    }
    breaker_stop();
    loop_pair_destroy(&pair);
}

int main(int argc, char **argv)
{
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(messages_on_four_rails, 40),      LOOP_CASE(messages_on_one_rail, 40),
        LOOP_CASE(messages_with_a_tiny_window, 40), LOOP_CASE(writes_and_reads, 40),
        LOOP_CASE(opening_and_closing, 40),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
