/*
 * onesided_speed [ROUNDS]: what a list of small pieces costs beside one large message of the same size, over loopback.
 * Each round measures all in turn; medians of the rounds and their ratios are printed. A benchmark: it judges nothing
 * but the bytes.
 */
#include "loop_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PIECES 100000
#define LENGTH 4096
#define TOTAL ((size_t)PIECES * LENGTH)
#define SLACK ((size_t)PIECES * 2 + 64) /* room for pieces that keep off each other and off any boundary */
#define ROUNDS_MAX 99

enum { MESSAGE, WRITE, READ, LIST_WRITE, LIST_READ, ODD_WRITE, ODD_READ, KINDS };

static const char *const names[KINDS] = {"one message, sent and received",
                                         "one write",
                                         "one read",
                                         "list, written",
                                         "list, read",
                                         "list, written, unaligned",
                                         "list, read, unaligned"};

static struct loop_pair pair;
static struct weft_piece even[PIECES], odd[PIECES];
static unsigned char *source, *sink;
static uint64_t key;

static void wait_for(struct weft_request *request)
{
    struct weft_completion completion;
    LOOP_CHECK(weft_wait(request, 120000, &completion) == 0, "it does not end");
    LOOP_CHECK(completion.status == 0 && completion.bytes == TOTAL, "%s", completion.text);
}

/* Ours is `source`, the peer's is `sink`; a read brings the peer's bytes here. */
static void run(int kind)
{
    struct weft_connection *asker = pair.node[0].connection;
    struct weft_request *request = NULL, *receive = NULL;
    const struct weft_piece *pieces = kind >= ODD_WRITE ? odd : even;
    int rc = 0;
    switch (kind) {
    case MESSAGE:
        receive = loop_recv(pair.node[1].connection, sink, TOTAL, 1);
        request = loop_send(asker, source, TOTAL, 1);
        wait_for(receive);
        break;
    case WRITE:
        rc = weft_write(asker, source, TOTAL, key, 0, NULL, &request);
        break;
    case READ:
        rc = weft_read(asker, source, TOTAL, key, 0, NULL, &request);
        break;
    case LIST_WRITE:
    case ODD_WRITE:
        rc = weft_write_list(asker, source, pieces, PIECES, key, NULL, &request);
        break;
    default:
        rc = weft_read_list(asker, source, pieces, PIECES, key, NULL, &request);
        break;
    }
    LOOP_CHECK(rc == 0 && request, "posting: %s", strerror(-rc));
    wait_for(request);
}

static void verify(int kind)
{
    const struct weft_piece *pieces = kind >= ODD_WRITE ? odd : even;
    if (kind < LIST_WRITE) {
        LOOP_CHECK(memcmp(source, sink, TOTAL) == 0, "%s: wrong bytes", names[kind]);
        return;
    }
    for (size_t i = 0; i < PIECES; i++)
        LOOP_CHECK(memcmp(source + pieces[i].local, sink + pieces[i].remote, LENGTH) == 0, "%s: piece %zu is wrong",
                   names[kind], i);
}

/* The pieces change places on their way, so that no two neighbours here are neighbours there. */
static void make_pieces(void)
{
    for (size_t i = 0; i < PIECES; i++) {
        size_t there = i * 7919 % PIECES;
        even[i] = (struct weft_piece){i * LENGTH, there * LENGTH, LENGTH};
        odd[i] = (struct weft_piece){i * (LENGTH + 1) + 3, there * (LENGTH + 2) + 1, LENGTH};
    }
}

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 9;
    static double speeds[KINDS][ROUNDS_MAX];
    struct weft_error err;
    struct weft_registration *registration;

    loop_begin(1, argv);
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: onesided_speed [ROUNDS], 1 to %d\n", ROUNDS_MAX);
        return 2;
    }
    source = malloc(TOTAL + SLACK);
    sink = malloc(TOTAL + SLACK);
    LOOP_CHECK(source && sink, "memory");
    make_pieces();
    loop_pair_create(&pair, NULL, NULL, 1);
    LOOP_CALL(weft_register(pair.node[1].context, sink, TOTAL + SLACK, &registration, &err), &err);
    key = weft_registration_key(registration);
    for (int round = -1; round < rounds; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            loop_fill(source, TOTAL + SLACK, (uint64_t)(round + 2) * KINDS + (uint64_t)kind);
            int64_t start = now_us();
            run(kind);
            if (round >= 0) /* the first touches the memory */
                speeds[kind][round] = (double)TOTAL / (double)(now_us() - start) / 1000;
            verify(kind);
        }
    double base = 0;
    for (int kind = 0; kind < KINDS; kind++) {
        qsort(speeds[kind], (size_t)rounds, sizeof(double), by_size);
        double median = speeds[kind][rounds / 2];
        base = kind == MESSAGE ? median : base;
        printf("%-32s %6.2f GB/s  %4.2f of one message  (%.2f to %.2f)\n", names[kind], median, median / base,
               speeds[kind][0], speeds[kind][rounds - 1]);
    }
    weft_deregister(registration);
    loop_pair_destroy(&pair);
    return 0;
}
