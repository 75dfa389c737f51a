/* conform_polled.c: memory that is looked at while a message fills it, as NCCL's kernels do with the protocol LL. Of
 * each 8 bytes the second half is a flag, the number of the message; once it is there, the first half must be. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conform.h"

#define SLOTS 8                /* messages under way, as NCCL_STEPS */
#define SLOT_BYTES (256 << 10) /* more than what goes whole over one rail (eager, brief messages) */
#define SLOT_WORDS (SLOT_BYTES / 8)
#define ROUNDS_MOST 100 /* of 100 messages, so that the case ends in its time on a busy machine */

struct slot {
    uint64_t words[SLOT_WORDS];
};

static struct {
    struct slot *slots;
    void *mhandle;
    void *request[SLOTS];
    int messages;
    unsigned seen; /* messages that the kernel has read */
} polled;

/* Every other message is shorter, by chance: it has at least one line of 16 bytes. */
static size_t words_of(unsigned message)
{
    uint64_t lines = SLOT_WORDS / 2;
    return 2 * (message % 2 ? lines : 1 + mix(conform.seed, message) % lines);
}

static uint64_t word_of(unsigned message, size_t at)
{
    return (uint64_t)message << 32 | (uint32_t)mix(message, at);
}

static void register_slots(void *arg)
{
    const struct link *link = arg;
    void *comm = link->from == conform.me ? link->send : link->recv;
    MUST(net_reg(comm, polled.slots, SLOTS * sizeof *polled.slots, NCCL_PTR_HOST, &polled.mhandle));
}

static void deregister_slots(void *arg)
{
    const struct link *link = arg;
    MUST(net_dereg(link->from == conform.me ? link->send : link->recv, polled.mhandle));
}

static void wait_for(void **request)
{
    int64_t limit = now_ms() + CONFORM_LIMIT_MS;
    bool done = false;
    while (*request && !done) {
        MUST(net_test(*request, &done, NULL));
        CHECK(done || now_ms() < limit, "a message does not end");
        if (!done)
            sched_yield();
    }
    *request = NULL;
}

static void post_send(const struct link *link, unsigned message, void **request)
{
    struct slot *slot = &polled.slots[message % SLOTS];
    for (size_t i = 0; i < words_of(message); i++)
        slot->words[i] = word_of(message, i);
    while (!*request)
        MUST(net_isend(link->send, slot, 8 * words_of(message), 1, polled.mhandle, request));
}

static void post_receive(const struct link *link, unsigned message, void **request)
{
    void *data = &polled.slots[message % SLOTS];
    size_t size = SLOT_BYTES;
    int tag = 1;
    int64_t limit = now_ms() + CONFORM_LIMIT_MS;
    while (message > SLOTS && __atomic_load_n(&polled.seen, __ATOMIC_ACQUIRE) < message - SLOTS) {
        CHECK(now_ms() < limit, "message %u is not all there, though its receive has ended", message - SLOTS);
        sched_yield();
    }
    while (!*request)
        MUST(net_irecv(link->recv, 1, &data, &size, &tag, &polled.mhandle, request));
}

static void move(void *arg)
{
    const struct link *link = arg;
    for (unsigned message = 1; message <= (unsigned)polled.messages; message++) {
        void **request = &polled.request[message % SLOTS];
        wait_for(request);
        if (link->from == conform.me)
            post_send(link, message, request);
        else
            post_receive(link, message, request);
    }
    for (int i = 0; i < SLOTS; i++)
        wait_for(&polled.request[i]);
}

/* As a GPU reads, which no sanitizer knows of. */
__attribute__((noinline, no_sanitize("thread"))) static uint64_t look_at(const volatile uint64_t *place)
{
    return *place;
}

/* One thread for a kernel's many: it reads two messages from the front, close behind who writes, and the next two from
 * the end, which another rail may have brought before. */
static void read_words(void *arg)
{
    (void)arg;
    for (unsigned message = 1; message <= (unsigned)polled.messages; message++) {
        size_t words = words_of(message);
        int64_t limit = now_ms() + CONFORM_LIMIT_MS;
        for (size_t i = 0; i < words; i++) {
            size_t at = message / 2 % 2 ? i : words - 1 - i;
            const uint64_t *place = &polled.slots[message % SLOTS].words[at];
            uint64_t word;
            while ((word = look_at(place)) >> 32 != message) {
                CHECK(now_ms() < limit, "byte %zu of message %u does not come", 8 * at, message);
                sched_yield();
            }
            CHECK(word == word_of(message, at),
                  "message %u of %zu bytes: at %zu the flag is there, and before it %08x, not %08x", message, 8 * words,
                  8 * at, (unsigned)word, (unsigned)word_of(message, at));
        }
        __atomic_store_n(&polled.seen, message, __ATOMIC_RELEASE);
    }
}

static void whole_words(void)
{
    ranks_begin(1);
    links_add(0, 1, 0);
    links_open();
    struct link *link = &links[0];
    if (link->from == conform.me || link->to == conform.me) {
        polled.messages = 100 * (conform.rounds < ROUNDS_MOST ? conform.rounds : ROUNDS_MOST) / CONFORM_SLOWER;
        polled.slots = calloc(SLOTS, sizeof *polled.slots);
        CHECK(polled.slots, "no memory");
        worker_run(&ranks[0].service, register_slots, link);
        worker_start(&ranks[0].progress, move, link);
        if (link->to == conform.me)
            worker_run(&ranks[0].service, read_words, NULL);
        worker_wait(&ranks[0].progress);
        worker_run(&ranks[0].service, deregister_slots, link);
        free(polled.slots);
    }
    links_close();
    ranks_end();
}

static void is_set(const char *setting, const char *name, const char *expected)
{
    const char *found = getenv(name);
    CHECK(found ? expected && !strcmp(found, expected) : !expected, "with %s on, %s is %s, not %s",
          setting ? setting : "nothing", name, found ? found : "not set", expected ? expected : "not set");
}

static void protocol_is(const char *setting, const char *chosen, const char *expected, bool warns)
{
    static const char *const names[] = {"WEFT_CRC", "WEFT_ENCRYPT", "NCCL_PROTO", "NCCL_P2P_LL_THRESHOLD",
                                        "NCCL_LL128_C2C"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    if (setting)
        setenv(setting, "on", 1);
    if (chosen)
        setenv("NCCL_PROTO", chosen, 1);
    int warnings = log_lines(NCCL_LOG_WARN);
    ranks_begin(1);
    CHECK((log_lines(NCCL_LOG_WARN) > warnings) == warns, "with %s on and NCCL_PROTO=%s there is %s warning",
          setting ? setting : "nothing", chosen ? chosen : "", warns ? "no" : "a");
    is_set(setting, "NCCL_PROTO", expected);
    is_set(setting, "NCCL_P2P_LL_THRESHOLD", setting ? "0" : NULL);
    is_set(setting, "NCCL_LL128_C2C", setting ? NULL : "0");
    ranks_end();
}

static void proven_first(void)
{
    char path[64];
    int file = memfd_create("key", MFD_CLOEXEC); /* nothing stays, whatever happens */
    CHECK(file >= 0 && fchmod(file, 0600) == 0 && dprintf(file, "%064d\n", 1) == 65, "no key file");
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    setenv("WEFT_KEY_FILE", path, 1);
    protocol_is(NULL, NULL, NULL, false);
    protocol_is("WEFT_CRC", NULL, "Simple", false);
    protocol_is("WEFT_ENCRYPT", NULL, "Simple", false);
    protocol_is("WEFT_CRC", "simple", "simple", false);
    protocol_is("WEFT_CRC", "^ll,LL128", "^ll,LL128", false);
    protocol_is("WEFT_CRC", "LL", "LL", true);
    protocol_is("WEFT_CRC", "^LL128", "^LL128", true);
    protocol_is("WEFT_CRC", "^Simple,LL", "^Simple,LL", true);
    close(file);
}

const struct conform_case conform_polled_cases[] = {
    {"whole_words", "polled", "of 8 bytes of a receive under way the second half never comes before the first",
     whole_words, 0, 300, false},
    {"proven_first", "polled", "where bytes are proven NCCL does without kernels that look, unless the user has chosen",
     proven_first, 0, 30, false},
    {0},
};
