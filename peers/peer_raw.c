/*
 * `weft raw`: plain sockets, the floor. The best call size depends on caches and the kernel's socket buffers, spinning
 * costs processor time that waiting does not, and whether the scheduler moves the sides counts as well: all are tried.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "reading.h"

static const uint64_t calls[] = {64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20};

#define CALLS ((int)(sizeof calls / sizeof calls[0]))
#define BATCHES 3 /* all of what may be in flight, a half, a quarter */

/* How many different call sizes, or batches, a case has. */
static int ways(const struct peer_case *asked)
{
    int count = 0;

    switch (asked->metric) {
    case PEER_BANDWIDTH:
        while (count < CALLS && calls[count] < asked->size)
            count++;
        return count + 1; /* and the whole message */
    case PEER_RATE:
        while (count + 1 < BATCHES && asked->inflight >> (count + 1))
            count++;
        return count + 1;
    default:
        return 1;
    }
}

/* Whether one of the rounds reads its memory before it sends it. */
static bool reads_ahead(const struct peer_case *asked)
{
    return asked->metric == PEER_BANDWIDTH;
}

/* Each spinning and blocking, with each congestion control; once more with a processor for each side, and once with
 * memory that is read ahead: these with the last of them, for the others are slower where it matters. */
static int raw_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    int cores[2];

    if (asked->size == 0) {
        snprintf(why, 200, "a stream has no empty messages");
        return 0;
    }
    return 2 * ways(asked) * (peer_congestion_count(place) + peer_two_processors(place, cores) + reads_ahead(asked));
}

/* The server's addresses, one for each stream. */
static int put_addresses(const struct peer_place *place, struct peer_command *command)
{
    char list[PEER_RAILS_MAX * 64];
    size_t used = 0;

    for (int i = 0; i < place->rail_count; i++) {
        bool colons = strchr(place->rails[i], ':') != NULL;
        int length = snprintf(list + used, sizeof list - used, "%s%s%s%s:%d", i ? "," : "", colons ? "[" : "",
                              place->rails[i], colons ? "]" : "", place->port);
        if (length < 0 || (size_t)length >= sizeof list - used)
            return -ENOBUFS;
        used += (size_t)length;
    }
    return peer_word(command, "%s", list);
}

/* A batch goes out of one piece of memory, as it does where messages are copied into it: fewer buffers than messages in
 * it would make a list of pieces for the kernel, and the floor of that would be none. */
static uint32_t buffers(const struct peer_case *asked)
{
    return asked->metric == PEER_RATE && asked->buffers < asked->inflight ? asked->inflight : asked->buffers;
}

/* What differs between the variants, and what it is called. */
static int put_raw_way(const struct peer_case *asked, int way, bool block, struct peer_commands *out)
{
    char size[32];
    const char *how = block ? "blocking" : "spinning";
    struct peer_command *client = &out->client;
    uint64_t call = way < CALLS && calls[way] < asked->size ? calls[way] : asked->size;
    uint32_t batch = asked->inflight >> way ? asked->inflight >> way : 1;

    if (block)
        peer_word(client, "--block");
    if (asked->metric == PEER_LATENCY) {
        snprintf(out->note, sizeof out->note, "%s", how);
        return peer_word(client, "--lat");
    }
    peer_word(client, "--inflight");
    peer_word(client, "%" PRIu32, asked->inflight);
    if (asked->metric == PEER_RATE) {
        snprintf(out->note, sizeof out->note, "%" PRIu32 " messages a call, %" PRIu32 " buffers, %s", batch,
                 buffers(asked), how);
        peer_word(client, "--rate");
        peer_word(client, "--batch");
        return peer_word(client, "%" PRIu32, batch);
    }
    snprintf(out->note, sizeof out->note, "calls of %s, %s", wf_format_size(call, size, sizeof size), how);
    peer_word(client, "--call");
    return peer_word(client, "%s", wf_format_size(call, size, sizeof size));
}

/* What is the same for both sides, and acts on them alone. */
static int put_side(struct peer_command *command, const char *congestion, const int *core)
{
    int result = 0;

    if (congestion[0]) {
        peer_word(command, "--congestion");
        result = peer_word(command, "%s", congestion);
    }
    if (core) {
        peer_word(command, "--cpu");
        result = peer_word(command, "%d", *core);
    }
    return result;
}

static int raw_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                        struct peer_commands *out)
{
    struct peer_command *server = &out->server, *client = &out->client;
    int round = index / (2 * ways(asked)), way = index % (2 * ways(asked)), last = peer_congestion_count(place) - 1;
    const char *congestion = peer_congestion(place, round < last ? round : last);
    int cores[2];
    bool pinned = round == last + 1 && peer_two_processors(place, cores), ahead = round > last && !pinned;

    peer_word(server, "%s/weft", place->folder);
    peer_word(server, "raw");
    peer_word(server, "--listen");
    int result = peer_word(server, "%d", place->port);

    peer_word(client, "%s/weft", place->folder);
    peer_word(client, "raw");
    peer_word(client, "--connect");
    int other = put_addresses(place, client);
    result = result ? result : other;
    peer_word(client, "--size");
    peer_word(client, "%" PRIu64, asked->size);
    peer_word(client, "-n");
    peer_word(client, "%" PRIu64, asked->messages);
    peer_word(client, "-w");
    peer_word(client, "%" PRIu64, asked->warmup);
    peer_word(client, "--buffers");
    peer_word(client, "%" PRIu32, buffers(asked));
    other = put_raw_way(asked, way / 2, way % 2 != 0, out);
    result = result ? result : put_side(server, congestion, pinned ? &cores[0] : NULL);
    other = other ? other : put_side(client, congestion, pinned ? &cores[1] : NULL);
    if (ahead)
        other = other ? other : peer_word(client, "--read-ahead");
    if (congestion[0])
        strcat(strcat(out->note, ", "), congestion);
    if (pinned)
        strcat(out->note, ", each side on its processor");
    if (ahead)
        strcat(out->note, ", reading ahead");
    if (asked->metric == PEER_LATENCY && place->rail_count > 1)
        strcat(out->note, "; first rail only");
    return result ? result : other;
}

static int raw_read(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
                    struct peer_reading *out, struct wf_status *status)
{
    (void)server;
    return peer_read_json(asked, "weft raw", "weft.raw/1", client->text, out, status);
}

const struct peer_tool peer_raw = {
    .name = "raw",
    .program = "weft",
    .package = NULL,
    .aside = "plain sockets, the floor",
    .many_buffers = true,
    .variants = raw_variants,
    .commands = raw_commands,
    .read = raw_read,
};
