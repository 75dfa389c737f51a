/*
 * UCX: ucx_perftest, two-sided with tags, over its TCP transport alone. Which protocol is best depends on size and
 * machine, so that several are tried (`ucx_info -c -f` explains them). Every message uses the same buffer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "reading.h"

#define SETTINGS 2
#define COLUMNS 8
#define LARGE_SOURCE (2u << 20) /* of a source larger than that it matters where it lies */
#define EXACT_RATE                                                                                                     \
    10000 /* messages/s are printed without decimals, MiB/s with two: above this the former tell more                  \
           */

static const struct way {
    const char *note;
    const char *settings[SETTINGS];
    bool sleep; /* waits in the kernel instead of asking again and again */
} bandwidth[] =
    {
        {"as installed", {NULL}, false},
        {"rendezvous from 8K", {"UCX_RNDV_THRESH=8K"}, false},
        {"rendezvous by put", {"UCX_RNDV_SCHEME=put_zcopy", "UCX_RNDV_THRESH=8K"}, false},
        {"eager", {"UCX_RNDV_THRESH=inf"}, false},
        {"eager, segments of 64K", {"UCX_RNDV_THRESH=inf", "UCX_TCP_TX_SEG_SIZE=64K"}, false},
        {"socket buffers of 4 MiB", {"UCX_TCP_SNDBUF=4M", "UCX_TCP_RCVBUF=4M"}, false},
        {"sleeping", {NULL}, true},
},
  latency[] =
      {
          {"as installed", {NULL}, false},
},
  rate[] = {
      {"as installed", {NULL}, false},
      {"segments of 64K", {"UCX_TCP_TX_SEG_SIZE=64K"}, false},
};

static const struct {
    const struct way *ways;
    int count;
    const char *test;
} metrics[] = {
    [PEER_BANDWIDTH] = {bandwidth, sizeof bandwidth / sizeof bandwidth[0], "tag_bw"},
    [PEER_LATENCY] = {latency, sizeof latency / sizeof latency[0], "tag_lat"},
    [PEER_RATE] = {rate, sizeof rate / sizeof rate[0], "tag_bw"},
};

static int ucx_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)place;
    (void)why;
    return metrics[asked->metric].count;
}

/* Both sides have to agree on protocols and devices. */
static int put_settings(const struct way *way, const char *devices, int device_count, struct peer_command *command)
{
    int result = peer_setting(command, "UCX_TLS=tcp");

    if (device_count > 0)
        result = peer_setting(command, "UCX_NET_DEVICES=%s", devices);
    if (device_count > 1) {
        peer_setting(command, "UCX_MAX_EAGER_RAILS=%d", device_count);
        result = peer_setting(command, "UCX_MAX_RNDV_RAILS=%d", device_count);
    }
    for (int i = 0; i < SETTINGS && way->settings[i]; i++)
        result = peer_setting(command, "%s", way->settings[i]);
    return result;
}

static int put_server(const struct peer_place *place, struct peer_command *server)
{
    peer_word(server, "ucx_perftest");
    if (strchr(place->rails[0], ':'))
        peer_word(server, "-6");
    peer_word(server, "-p");
    return peer_word(server, "%d", place->port);
}

static int put_client(const struct peer_case *asked, const struct peer_place *place, const struct way *way,
                      struct peer_command *client)
{
    peer_word(client, "ucx_perftest");
    peer_word(client, "%s", place->rails[0]);
    if (strchr(place->rails[0], ':'))
        peer_word(client, "-6");
    peer_word(client, "-p");
    peer_word(client, "%d", place->port);
    peer_word(client, "-t");
    peer_word(client, "%s", metrics[asked->metric].test);
    peer_word(client, "-s");
    peer_word(client, "%" PRIu64, asked->size);
    peer_word(client, "-n");
    peer_word(client, "%" PRIu64, asked->messages);
    peer_word(client, "-w");
    peer_word(client, "%" PRIu64, asked->warmup);
    if (asked->metric != PEER_LATENCY) {
        peer_word(client, "-O");
        peer_word(client, "%" PRIu32, asked->inflight);
    }
    if (way->sleep) {
        peer_word(client, "-E");
        peer_word(client, "sleep");
    }
    peer_word(client, "-f");        /* the final numbers */
    return peer_word(client, "-v"); /* as comma separated values */
}

static int ucx_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                        struct peer_commands *out)
{
    const struct way *way = &metrics[asked->metric].ways[index];
    char devices[512] = "";
    int count = peer_devices(place, devices, sizeof devices);

    if (count < 0)
        return count;
    int server = put_settings(way, devices, count, &out->server);
    int client = put_settings(way, devices, count, &out->client);
    server = server ? server : put_server(place, &out->server);
    client = client ? client : put_client(asked, place, way, &out->client);
    /* Its source is never written: all of it is one page of zeros (or one of 2 MiB), and stays in the cache. */
    bool zeros = asked->metric == PEER_BANDWIDTH && asked->size >= LARGE_SOURCE;
    snprintf(out->note, sizeof out->note, "%s%s%s%s", way->note, asked->metric == PEER_LATENCY ? ", no p99" : "",
             zeros ? "; sends the kernel's cached page of zeros" : "",
             count < place->rail_count && place->rail_count > 1 ? ", one connection for the rails of an interface"
                                                                : "");
    return server ? server : client;
}

/* --- its output --- */

/* "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr", and a line of numbers:
 * microseconds of a message (of half a round trip), MiB/s, messages/s. `avg` is of the last interval only. */
static bool parse_numbers(const char *text, double numbers[COLUMNS])
{
    struct peer_columns columns;
    const char *head = strstr(text, "iterations,");

    text = head ? peer_columns(head, ",\r", &columns) : NULL;
    if (!text || columns.count != COLUMNS || peer_column(&columns, "overall_lat") != 3 ||
        peer_column(&columns, "overall_bw") != 5 || peer_column(&columns, "overall_mr") != 7)
        return false;
    text = peer_columns(text, ",\r", &columns);
    if (!text || columns.count != COLUMNS)
        return false;
    for (int i = 0; i < COLUMNS; i++)
        if (peer_number(columns.words[i], &numbers[i]) != 0)
            return false;
    return true;
}

static int ucx_read(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
                    struct peer_reading *out, struct wf_status *status)
{
    double numbers[COLUMNS];

    if (!parse_numbers(client->text, numbers))
        return peer_not_understood("ucx_perftest", client->text, status);
    if (numbers[0] != (double)asked->messages || numbers[3] <= 0)
        return wf_fail(status, -EPROTO, "ucx_perftest tells of %.0f messages in %.3f us each, asked for %" PRIu64,
                       numbers[0], numbers[3], asked->messages);
    if (asked->metric == PEER_LATENCY) {
        out->p50_us = numbers[1];
        out->mean_us = numbers[3];
        return 0;
    }
    double gb_per_s = numbers[7] >= EXACT_RATE ? numbers[7] * (double)asked->size / 1e9 : numbers[5] * 1048576 / 1e9;
    if (gb_per_s <= 0)
        return wf_fail(status, -EPROTO, "ucx_perftest tells of a bandwidth of 0");
    out->gb_per_s = gb_per_s;
    out->messages_per_s = gb_per_s * 1e9 / (double)asked->size;
    out->cpu_s_per_gb = peer_cpu_per_gb(asked, server, client, 1);
    return 0;
}

const struct peer_tool peer_ucx = {
    .name = "ucx",
    .program = "ucx_perftest",
    .package = "ucx-utils",
    .version = {"ucx_info", "-v"},
    .many_buffers = false,
    .variants = ucx_variants,
    .commands = ucx_commands,
    .read = ucx_read,
};
