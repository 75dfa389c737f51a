/*
 * Weft itself: `weft pair` in two processes, as every other tool. The time that counts is the mean over all messages,
 * which is what the others print, not the median that `weft pair` reports.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "pair.h"
#include "reading.h"

/* Whether `weft pair` can be told how many buffers its messages take turns in. */
static bool takes_buffers(void)
{
    struct wf_status unknown;

    return wf_setting_find("buffers", &unknown) >= 0;
}

static int weft_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    (void)asked;
    (void)place;
    (void)why;
    return 1;
}

static void put_rails(struct peer_command *command, const char *const *rails, int count)
{
    char list[768] = "";
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        int length = snprintf(list + used, sizeof list - used, "%s%s", i ? "," : "", rails[i]);
        used += (size_t)length < sizeof list - used ? (size_t)length : sizeof list - used - 1;
    }
    peer_word(command, "--rails");
    peer_word(command, "%s", list);
}

/* What both sides are told. */
static int put_shared(struct peer_command *command, const struct peer_place *place)
{
    for (int i = 0; place->settings[i]; i++)
        peer_word(command, "--set=%s", place->settings[i]);
    peer_word(command, "--quiet");
    return peer_word(command, "--json=-");
}

static int put_case(struct peer_command *command, const struct peer_case *asked, bool gpu)
{
    peer_word(command, "--src=node1:%s0", gpu ? "gpu" : "host");
    peer_word(command, "--dst=node0:%s0", gpu ? "gpu" : "host");
    peer_word(command, "--size=%" PRIu64, asked->size);
    peer_word(command, "--iters=%" PRIu64, asked->messages);
    peer_word(command, "--warmup=%" PRIu64, asked->warmup);
    peer_word(command, "--check=0");
    if (takes_buffers())
        peer_word(command, "--buffers=%u", asked->buffers);
    if (asked->metric == PEER_LATENCY)
        return peer_word(command, "--lat");
    return peer_word(command, "--inflight=%u", asked->inflight);
}

/* "ADDR:PORT", with brackets around what has colons itself. */
static void put_address(struct peer_command *command, const char *option, const struct peer_place *place)
{
    const char *address = place->rails[0];
    bool brackets = strchr(address, ':') != NULL;

    peer_word(command, "--%s=%s%s%s:%d", option, brackets ? "[" : "", address, brackets ? "]" : "", place->port);
}

int peer_pair_commands(const char *backend, const struct peer_case *asked, const struct peer_place *place,
                       struct peer_commands *out)
{
    bool gpu = place->memory != NULL;
    struct peer_command *server = &out->server, *client = &out->client;

    peer_word(server, "%s/weft", place->folder);
    peer_word(server, "pair");
    put_address(server, "listen", place);
    put_rails(server, place->rails, place->rail_count);
    int result = put_shared(server, place);

    peer_word(client, "%s/weft", place->folder);
    peer_word(client, "pair");
    put_address(client, "connect", place);
    if (place->one_machine)
        put_rails(client, place->rails, place->rail_count);
    else if (place->devices[0] && place->devices[0][0])
        put_rails(client, place->devices, place->rail_count);
    put_case(client, asked, gpu);
    if (backend)
        peer_word(client, "--backend=%s", backend);
    if (put_shared(client, place) != 0)
        result = -ENOBUFS;
    if (!takes_buffers() && asked->metric != PEER_LATENCY && asked->buffers != asked->inflight)
        snprintf(out->note, sizeof out->note, "%u buffers: one for each message in flight", asked->inflight);
    return result;
}

static int weft_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                         struct peer_commands *out)
{
    (void)index;
    return peer_pair_commands(NULL, asked, place, out);
}

/* --- its output --- */

static int take_pair(const json_t *root, const struct peer_case *asked, struct peer_reading *out,
                     struct wf_status *status)
{
    const json_t *samples = json_object_get(root, "samples");
    const json_t *sample = json_array_get(samples, 0), *time = json_object_get(sample, "time_us");
    double mean_us = peer_json_number(time, "mean");

    if (json_array_size(samples) != 1 || mean_us <= 0)
        return wf_fail(status, -EPROTO, "weft pair told %zu samples instead of one with its times",
                       json_array_size(samples));
    out->cpu_s_per_gb = peer_json_number(sample, "cpu_s_per_gb");
    if (asked->metric == PEER_LATENCY) {
        out->p50_us = peer_json_number(time, "p50");
        out->p99_us = peer_json_number(time, "p99");
        out->mean_us = mean_us;
        return 0;
    }
    out->gb_per_s = (double)asked->size / (mean_us * 1e3);
    out->messages_per_s = 1e6 / mean_us;
    return 0;
}

int peer_pair_read(const struct peer_case *asked, const struct peer_output *server, const struct peer_output *client,
                   struct peer_reading *out, struct wf_status *status)
{
    json_error_t error;
    json_t *root = json_loads(client->text, 0, &error);

    (void)server;
    if (!root)
        return wf_fail(status, -EPROTO, "weft pair printed no JSON: line %d: %s", error.line, error.text);
    int result = take_pair(root, asked, out, status);
    json_decref(root);
    return result;
}

const struct peer_tool peer_weft = {
    .name = "weft",
    .program = "weft",
    .version = {"weft", "--version"},
    .many_buffers = true,
    .gpu_memory = true,
    .variants = weft_variants,
    .commands = weft_commands,
    .read = peer_pair_read,
};
