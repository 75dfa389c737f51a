/*
 * class_latency: round trips of 8 bytes beside bulk data, over a network that other programs make slow.
 *
 *   class_latency listen [dscp=LIST] [rails=LIST]
 *   class_latency ADDRESS [option=value]...    prints one line: round trips, their p50 and p99 in us, bulk in MB/s
 *
 *   trips=N      round trips [2000]
 *   bulk=0|1|2   no bulk data, bulk data of the class of the round trips (0), bulk data of class 1 [0]
 *   rate=BYTES   bulk data of class 1 is held to so many bytes a second; 0: not [0]
 *   others       settings of the library
 *
 * The dialer sends the bulk data, BULK_BYTES at a time, BULK_AT_ONCE of them under way.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weft.h"

#define PATIENCE_MS 30000
#define BULK_BYTES (1u << 20)
#define BULK_AT_ONCE 4
#define BULK_CLASS 1
#define WARM_NS INT64_C(500000000) /* of bulk data before the round trips begin */

enum { TRIPS = 1, BULK = 2 }; /* endpoints, of both sides */

static struct {
    uint64_t trips, bulk, rate;
} ask = {.trips = 2000};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "class_latency: %s: %s\n", what, why);
    exit(1);
}

/* The result of a call that has failed ends the program. */
static int must(int result, const char *what, const struct weft_error *err)
{
    if (result < 0)
        die(what, err && err->text[0] ? err->text : strerror(-result));
    return result;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static struct weft_context *open_context(int count, char **options)
{
    struct weft_config *config;
    struct weft_context *context;
    struct weft_error err = {0};
    must(weft_config_create(&config, &err), "settings", &err);
    for (int i = 0; i < count; i++) {
        char *value = strchr(options[i], '=');
        if (!value)
            die(options[i], "is no option=value");
        *value++ = '\0';
        if (strcmp(options[i], "trips") == 0)
            ask.trips = strtoull(value, NULL, 10);
        else if (strcmp(options[i], "bulk") == 0)
            ask.bulk = strtoull(value, NULL, 10);
        else if (strcmp(options[i], "rate") == 0)
            ask.rate = strtoull(value, NULL, 10);
        else
            must(weft_config_set(config, options[i], value, &err), options[i], &err);
    }
    must(weft_context_create(config, &context, &err), "context", &err);
    weft_config_destroy(config);
    return context;
}

/* --- the side that listens: sends round trips back, takes bulk data --- */

/* The other side may have closed the connection since its last message came: then there is no next one. */
static void receive_next(struct weft_connection *connection, void *buffer, uint64_t bytes,
                         struct weft_request **request)
{
    int result = weft_recv(connection, buffer, bytes, 0, NULL, request);
    if (result == -ESHUTDOWN)
        *request = NULL;
    else
        must(result, "receive", NULL);
}

static void serve(struct weft_context *context)
{
    struct weft_endpoint *endpoints[2];
    struct weft_connection *trips, *bulk;
    struct weft_peer *peer;
    struct weft_error err = {0};
    struct weft_request *requests[BULK_AT_ONCE + 1]; /* the last: of the round trips */
    struct weft_request *answer = NULL;
    static unsigned char sinks[BULK_AT_ONCE][BULK_BYTES];
    uint64_t word, back;
    must(weft_endpoint_create(context, TRIPS, &endpoints[0], &err), "endpoint", &err);
    must(weft_endpoint_create(context, BULK, &endpoints[1], &err), "endpoint", &err);
    must(weft_listen(context, "", &err), "listen", &err);
    must(weft_accept(context, PATIENCE_MS, &peer, &err), "accept", &err);
    must(weft_connection_accept(endpoints[0], peer, WEFT_ANY_ENDPOINT, PATIENCE_MS, &trips, &err), "accept", &err);
    must(weft_connection_accept(endpoints[1], peer, WEFT_ANY_ENDPOINT, PATIENCE_MS, &bulk, &err), "accept", &err);
    for (int i = 0; i < BULK_AT_ONCE; i++)
        must(weft_recv(bulk, sinks[i], BULK_BYTES, 0, NULL, &requests[i]), "receive", NULL);
    must(weft_recv(trips, &word, sizeof word, 0, NULL, &requests[BULK_AT_ONCE]), "receive", NULL);
    while (requests[BULK_AT_ONCE]) {
        struct weft_completion completion;
        int index;
        must(weft_wait_any(requests, BULK_AT_ONCE + 1, PATIENCE_MS, &index, &completion), "wait", NULL);
        requests[index] = NULL;
        if (completion.status < 0) /* the other side has closed the connection */
            continue;
        if (index < BULK_AT_ONCE) {
            receive_next(bulk, sinks[index], BULK_BYTES, &requests[index]);
            continue;
        }
        if (answer)
            must(weft_wait(answer, PATIENCE_MS, NULL), "wait", NULL);
        back = word;
        must(weft_send(trips, &back, sizeof back, 0, NULL, &answer), "send", NULL);
        receive_next(trips, &word, sizeof word, &requests[index]);
    }
    weft_connection_close(trips, PATIENCE_MS, NULL);
    weft_connection_close(bulk, PATIENCE_MS, NULL);
    weft_peer_close(peer, PATIENCE_MS, NULL);
}

/* --- the side that dials --- */

struct dialer {
    struct weft_peer *peer;
    struct weft_connection *trips, *bulk;
    struct weft_request *bulks[BULK_AT_ONCE];
    uint64_t done; /* bytes of bulk data that have arrived */
};

static unsigned char source[BULK_BYTES];

static void post_bulk(struct dialer *dialer, int index)
{
    must(weft_send(dialer->bulk, source, BULK_BYTES, 0, NULL, &dialer->bulks[index]), "send", NULL);
}

/* What has ended goes again. */
static void turn_bulk(struct dialer *dialer)
{
    for (int i = 0; i < BULK_AT_ONCE; i++) {
        struct weft_completion completion;
        if (!dialer->bulks[i] || !weft_test(dialer->bulks[i], &completion))
            continue;
        must(completion.status, "bulk data", NULL);
        dialer->done += BULK_BYTES;
        post_bulk(dialer, i);
    }
}

static int64_t round_trip(struct dialer *dialer, uint64_t number)
{
    struct weft_request *send, *receive;
    struct weft_completion completion;
    uint64_t word = number, back = 0;
    int64_t begun = now_ns();
    must(weft_recv(dialer->trips, &back, sizeof back, 0, NULL, &receive), "receive", NULL);
    must(weft_send(dialer->trips, &word, sizeof word, 0, NULL, &send), "send", NULL);
    while (!weft_test(receive, &completion)) {
        turn_bulk(dialer);
        if (now_ns() - begun > PATIENCE_MS * INT64_C(1000000))
            die("a round trip", "does not end");
    }
    int64_t took = now_ns() - begun;
    must(completion.status, completion.text, NULL);
    must(weft_wait(send, PATIENCE_MS, NULL), "wait", NULL);
    if (back != number)
        die("a round trip", "has brought another number");
    return took;
}

static int compare(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static void measure(struct dialer *dialer)
{
    int64_t *took = calloc(ask.trips, sizeof *took), begun = now_ns();
    if (!took)
        die("round trips", "no memory");
    for (int i = 0; i < BULK_AT_ONCE && ask.bulk > 0; i++)
        post_bulk(dialer, i);
    while (ask.bulk > 0 && now_ns() - begun < WARM_NS)
        turn_bulk(dialer);
    begun = now_ns();
    uint64_t before = dialer->done;
    for (uint64_t i = 0; i < ask.trips; i++)
        took[i] = round_trip(dialer, i);
    double seconds = (double)(now_ns() - begun) / 1e9;
    qsort(took, ask.trips, sizeof *took, compare);
    printf("trips %" PRIu64 " p50 %.1f us p99 %.1f us bulk %.1f MB/s\n", ask.trips, (double)took[ask.trips / 2] / 1e3,
           (double)took[ask.trips * 99 / 100] / 1e3, (double)(dialer->done - before) / seconds / 1e6);
    free(took);
    for (int i = 0; i < BULK_AT_ONCE; i++)
        if (dialer->bulks[i])
            must(weft_wait(dialer->bulks[i], PATIENCE_MS, NULL), "bulk data", NULL);
}

static void dial(struct weft_context *context, const char *address)
{
    struct weft_endpoint *endpoints[2];
    struct dialer dialer = {0};
    struct weft_error err = {0};
    must(weft_endpoint_create(context, TRIPS, &endpoints[0], &err), "endpoint", &err);
    must(weft_endpoint_create(context, BULK, &endpoints[1], &err), "endpoint", &err);
    must(weft_connect(context, address, PATIENCE_MS, &dialer.peer, &err), "connect", &err);
    if (ask.bulk == 2)
        must(weft_endpoint_set_class(endpoints[1], BULK_CLASS), "class", NULL);
    must(weft_connection_open(endpoints[0], dialer.peer, TRIPS, PATIENCE_MS, &dialer.trips, &err), "open", &err);
    must(weft_connection_open(endpoints[1], dialer.peer, BULK, PATIENCE_MS, &dialer.bulk, &err), "open", &err);
    if (ask.rate > 0)
        must(weft_peer_set_rate(dialer.peer, BULK_CLASS, ask.rate), "rate", NULL);
    measure(&dialer);
    must(weft_connection_close(dialer.bulk, PATIENCE_MS, &err), "close", &err);
    must(weft_connection_close(dialer.trips, PATIENCE_MS, &err), "close", &err);
    must(weft_peer_close(dialer.peer, PATIENCE_MS, &err), "close", &err);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: class_latency listen|ADDRESS [option=value]...\n");
        return 2;
    }
    struct weft_context *context = open_context(argc - 2, argv + 2);
    if (strcmp(argv[1], "listen") == 0)
        serve(context);
    else
        dial(context, argv[1]);
    weft_context_destroy(context);
    return 0;
}
