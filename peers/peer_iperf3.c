/*
 * iperf3: a stream of bytes over one TCP connection, without messages: an upper bound for what a message layer on one
 * stream and the same number of calls could reach. Its best call size depends on the machine, so several are tried,
 * and so are sendfile() in place of send() (-Z), processors of its own for each side (-A), and congestion controls
 * (-C). It has no warm-up: -O counts in whole seconds, and a case takes less.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "peer.h"
#include "reading.h"

static const struct way {
    const char *call; /* -l */
    bool sendfile, pinned;
} ways[] = {
    {"128K", false, false}, {"256K", false, false}, {"512K", false, false}, {"1M", false, false},
    {"256K", true, false},  {"256K", false, true},  {"1M", false, true},
};

#define WAYS ((int)(sizeof ways / sizeof ways[0]))
#define PINNED 2 /* of them, at the end */

/* With one congestion control. */
static int way_count(const struct peer_place *place)
{
    int cores[2];

    return peer_two_processors(place, cores) ? WAYS : WAYS - PINNED;
}

static int iperf3_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    if (asked->metric == PEER_BANDWIDTH)
        return way_count(place) * peer_congestion_count(place);
    snprintf(why, 200, "a stream of bytes: it has no messages");
    return 0;
}

static int iperf3_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                           struct peer_commands *out)
{
    const struct way *way = &ways[index % way_count(place)];
    const char *congestion = peer_congestion(place, index / way_count(place));
    struct peer_command *server = &out->server, *client = &out->client;
    int cores[2] = {0, 0};

    peer_word(server, "iperf3");
    peer_word(server, "-s");
    peer_word(server, "-1"); /* one client */
    peer_word(server, "-B");
    peer_word(server, "%s", place->rails[0]);
    peer_word(server, "-p");
    int result = peer_word(server, "%d", place->port);

    peer_word(client, "iperf3");
    peer_word(client, "-c");
    peer_word(client, "%s", place->rails[0]);
    peer_word(client, "-p");
    peer_word(client, "%d", place->port);
    peer_word(client, "-n");
    peer_word(client, "%" PRIu64, asked->size * asked->messages);
    peer_word(client, "-l");
    peer_word(client, "%s", way->call);
    if (way->sendfile)
        peer_word(client, "-Z");
    if (way->pinned && peer_two_processors(place, cores)) {
        peer_word(client, "-A");
        peer_word(client, "%d,%d", cores[0], cores[1]);
    }
    if (congestion[0]) {
        peer_word(client, "-C");
        peer_word(client, "%s", congestion);
    }
    peer_word(client, "-J");
    result = result ? result : peer_word(client, "-i0");
    snprintf(out->note, sizeof out->note,
             "a stream of bytes, no messages, from and to %s of memory: calls of %s%s%s%s%s%s%s", way->call, way->call,
             way->sendfile ? ", sendfile" : "", way->pinned ? ", each side on its processor" : "",
             congestion[0] ? ", " : "", congestion, place->rail_count > 1 ? "; first rail only" : "",
             asked->warmup ? "; no warm-up" : "");
    return result;
}

/* --- its output --- */

/* Percentages of one processor, over the time that the side took. */
static double processor_seconds(const json_t *end, const char *side, const char *sum)
{
    double percent = peer_json_number(json_object_get(end, "cpu_utilization_percent"), side);
    double duration = peer_json_number(json_object_get(end, sum), "seconds");

    return percent >= 0 && duration >= 0 ? percent / 100 * duration : -1;
}

static int take_iperf3(const json_t *root, struct peer_reading *out, struct wf_status *status)
{
    const json_t *end = json_object_get(root, "end"), *received = json_object_get(end, "sum_received");
    const char *error = json_string_value(json_object_get(root, "error"));
    double bytes = peer_json_number(received, "bytes"), bits_per_s = peer_json_number(received, "bits_per_second");
    double here = processor_seconds(end, "host_total", "sum_sent");
    double there = processor_seconds(end, "remote_total", "sum_received");

    if (error)
        return wf_fail(status, -EPROTO, "iperf3: %s", error);
    if (bytes <= 0 || bits_per_s <= 0)
        return wf_fail(status, -EPROTO, "iperf3 told no end.sum_received.bits_per_second");
    out->gb_per_s = bits_per_s / 8e9;
    if (here >= 0 && there >= 0)
        out->cpu_s_per_gb = (here + there) / (bytes / 1e9);
    return 0;
}

static int iperf3_read(const struct peer_case *asked, const struct peer_output *server,
                       const struct peer_output *client, struct peer_reading *out, struct wf_status *status)
{
    json_error_t error;
    json_t *root = json_loads(client->text, 0, &error);

    (void)asked;
    (void)server;
    if (!root)
        return wf_fail(status, -EPROTO, "iperf3 printed no JSON: line %d: %s", error.line, error.text);
    int result = take_iperf3(root, out, status);
    json_decref(root);
    return result;
}

const struct peer_tool peer_iperf3 = {
    .name = "iperf3",
    .program = "iperf3",
    .package = "iperf3",
    .version = {"iperf3", "--version"},
    .variants = iperf3_variants,
    .commands = iperf3_commands,
    .read = iperf3_read,
};
