/*
 * libfabric: fi_pingpong over its TCP providers. It has one message under way at a time, in one direction after the
 * other; its bandwidth is what a ping-pong reaches, and says so. Provider `net` is the one that became `tcp` in 1.18.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "reading.h"

static const struct way {
    const char *provider, *endpoint;
} ways[] = {{"tcp", "msg"}, {"tcp", "rdm"}, {"net", "msg"}, {"net", "rdm"}};

#define WAYS ((int)(sizeof ways / sizeof ways[0]))

static int libfabric_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)place;
    if (asked->metric == PEER_RATE)
        snprintf(why, 200, "fi_pingpong has one message in flight: it has no rate of its own");
    else if (asked->size < 1 || asked->size > INT_MAX || asked->messages > INT_MAX)
        snprintf(why, 200, "fi_pingpong counts bytes and messages in int, from 1 to 2^31 - 1");
    else
        return WAYS;
    return 0;
}

/* What both sides are told. */
static int put_test(const struct peer_case *asked, const struct peer_place *place, const struct way *way,
                    const char *device, struct peer_command *command)
{
    peer_word(command, "-p");
    peer_word(command, "%s", way->provider);
    peer_word(command, "-e");
    peer_word(command, "%s", way->endpoint);
    if (device) {
        peer_word(command, "-d");
        peer_word(command, "%s", device);
    }
    if (strchr(place->rails[0], ':'))
        peer_word(command, "-6");
    peer_word(command, "-I");
    peer_word(command, "%" PRIu64, asked->messages);
    peer_word(command, "-S");
    return peer_word(command, "%" PRIu64, asked->size);
}

static int libfabric_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                              struct peer_commands *out)
{
    const struct way *way = &ways[index];
    const char *device = place->devices[0] && place->devices[0][0] ? place->devices[0] : NULL;
    struct peer_command *server = &out->server, *client = &out->client;

    peer_word(server, "fi_pingpong");
    peer_word(server, "-B");
    peer_word(server, "%d", place->port);
    int result = put_test(asked, place, way, device, server);

    peer_word(client, "fi_pingpong");
    peer_word(client, "-P");
    peer_word(client, "%d", place->port);
    put_test(asked, place, way, device, client);
    int other = peer_word(client, "%s", place->rails[0]);
    snprintf(out->note, sizeof out->note, "provider %s, %s; %s%s%s", way->provider, way->endpoint,
             asked->metric == PEER_LATENCY ? "mean only" : "ping-pong, one in flight",
             place->rail_count > 1 ? "; first rail only" : "", asked->warmup ? "; no warm-up" : "");
    return result ? result : other;
}

/* --- its output --- */

/*
 * bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec
 * 1m      500     =500     1000m       0.19s   5383.55     194.77       0.01
 *
 * `time` is rounded to 10 ms and sizes to their unit; usec/xfer, half of a round trip, is the best of it. "=": all that
 * was sent has been acknowledged.
 */
static bool parse_usec(const char *text, double *usec)
{
    struct peer_columns columns;
    const char *head = strstr(text, "bytes ");

    text = head ? peer_columns(head, " \t\r", &columns) : NULL;
    if (!text)
        return false;
    int count = columns.count;
    int sent = peer_column(&columns, "#sent");
    int acknowledged = peer_column(&columns, "#ack");
    int time = peer_column(&columns, "usec/xfer");
    text = peer_columns(text, " \t\r", &columns);
    return sent >= 0 && acknowledged >= 0 && time >= 0 && text && columns.count == count &&
           columns.words[acknowledged][0] == '=' && peer_number(columns.words[time], usec) == 0 && *usec > 0;
}

static int libfabric_read(const struct peer_case *asked, const struct peer_output *server,
                          const struct peer_output *client, struct peer_reading *out, struct wf_status *status)
{
    struct peer_case without = *asked;
    double usec;

    if (!parse_usec(client->text, &usec))
        return peer_not_understood("fi_pingpong", client->text, status);
    if (asked->metric == PEER_LATENCY) {
        out->mean_us = usec;
        return 0;
    }
    out->gb_per_s = (double)asked->size / (usec * 1e3);
    out->messages_per_s = 1e6 / usec;
    without.warmup = 0;
    out->cpu_s_per_gb = peer_cpu_per_gb(&without, server, client, 2);
    return 0;
}

const struct peer_tool peer_libfabric = {
    .name = "libfabric",
    .program = "fi_pingpong",
    .package = "libfabric-bin",
    .version = {"fi_info", "--version"},
    .many_buffers = false,
    .variants = libfabric_variants,
    .commands = libfabric_commands,
    .read = libfabric_read,
};
