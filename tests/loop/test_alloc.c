/* test_alloc.c: nothing is allocated per chunk, nor per message. Runs with the counting library preloaded, else skipped
 * (77). */
#include "loop_support.h"

#include <dlfcn.h>
#include <stdio.h>

typedef unsigned long (*count_fn)(void);

static count_fn allocations;
static struct loop_pair pair;

static void transfer(struct loop_message *message, uint64_t tag)
{
    size_t size = message->source.size;

    message->recv = loop_recv(pair.node[1].connection, message->sink.data, size, tag);
    message->send = loop_send(pair.node[0].connection, message->source.data, size, tag);
    loop_done(message->recv, 0, size);
    loop_done(message->send, 0, size);
}

/* 256 MiB after a warm-up of the same kind. */
static void count_for(const char *settings, size_t size)
{
    struct loop_message message;
    size_t rounds = ((size_t)256 << 20) / size;

    if (rounds > 20000)
        rounds = 20000;
    loop_pair_create(&pair, settings, NULL, 2);
    loop_message_create(&message, size, 1);
    for (uint64_t i = 0; i < rounds / 8 + 1; i++)
        transfer(&message, i);
    unsigned long before = allocations();
    for (uint64_t i = 0; i < rounds; i++)
        transfer(&message, i);
    unsigned long made = allocations() - before;
    LOOP_CHECK(made <= 16, "%lu allocations in %zu messages of %zu bytes, %s", made, rounds, size, settings);
    loop_message_verify(&message);
    loop_message_destroy(&message);
    loop_pair_destroy(&pair);
}

static void none_per_chunk(void)
{
    count_for("chunk=4K", (size_t)16 << 20);
    count_for("chunk=4K channels=4 window=2", (size_t)4 << 20);
}

static void none_per_message(void)
{
    count_for("chunk=64K", 64);
    count_for("chunk=64K", 30000);
    count_for("chunk=64K", 200000);
}

int main(int argc, char **argv)
{
    *(void **)&allocations = dlsym(RTLD_DEFAULT, "preload_alloc_count");
    if (!allocations) {
        puts("skipped: the counting library is not preloaded");
        return 77;
    }
    loop_begin(argc, argv);
    const struct CMUnitTest tests[] = {
        LOOP_CASE(none_per_chunk, 60),
        LOOP_CASE(none_per_message, 60),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
