/*
 * Open MPI over its TCP transport alone, with our own pair of processes (weft-mpi), since its distribution has no
 * benchmark. The settings are those of its "btl tcp" component (`ompi_info --param btl tcp --level 9`).
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reading.h"

#define SETTINGS 3
#define EAGER_MOST (1u << 20) /* it keeps several buffers of the eager size per connection */

static const struct way {
    const char *note;
    bool bound; /* each process to a core of its own */
    bool eager; /* the whole message at once, not after asking */
    struct {
        const char *name, *value;
    } sets[SETTINGS];
} bandwidth[] =
    {
        {"as installed", false, false, {{NULL, NULL}}},
        {"bound to cores", true, false, {{NULL, NULL}}},
        {"read into place", false, false, {{"btl_tcp_endpoint_cache", "0"}}},
        {"read into place, fragments of 1 MiB",
         false,
         false,
         {{"btl_tcp_endpoint_cache", "0"},
          {"btl_tcp_max_send_size", "1048576"},
          {"btl_tcp_rdma_pipeline_send_length", "1048576"}}},
        {"two connections a rail", false, false, {{"btl_tcp_links", "2"}}},
        {"socket buffers of 4 MiB", false, false, {{"btl_tcp_sndbuf", "4194304"}, {"btl_tcp_rcvbuf", "4194304"}}},
        {"eager", false, true, {{"btl_tcp_endpoint_cache", "0"}}}, /* last: not for messages above EAGER_MOST */
},
  small[] = {
      {"as installed", false, false, {{NULL, NULL}}},
      {"bound to cores", true, false, {{NULL, NULL}}},
      {"read into place", false, false, {{"btl_tcp_endpoint_cache", "0"}}},
};

#define BANDWIDTH_WAYS ((int)(sizeof bandwidth / sizeof bandwidth[0]))
#define SMALL_WAYS ((int)(sizeof small / sizeof small[0]))

static bool usable(const struct way *way, const struct peer_case *asked)
{
    /* Binding would leave the one processor that this comparison was confined to. */
    return !(way->bound && peer_processors() < 2) && !(way->eager && asked->size > EAGER_MOST);
}

/* The `index`th way that can be used; NULL: there are fewer. */
static const struct way *find_way(const struct peer_case *asked, int index)
{
    const struct way *ways = asked->metric == PEER_BANDWIDTH ? bandwidth : small;
    int count = asked->metric == PEER_BANDWIDTH ? BANDWIDTH_WAYS : SMALL_WAYS;

    for (int i = 0; i < count; i++)
        if (usable(&ways[i], asked) && index-- == 0)
            return &ways[i];
    return NULL;
}

static int openmpi_variants(const struct peer_case *asked, const struct peer_place *place, char why[200])
{
    char program[1200];
    int count = 0;

    snprintf(program, sizeof program, "%s/weft-mpi", place->folder);
    if (!place->one_machine)
        snprintf(why, 200, "mpirun is started for one machine only");
    else if (asked->size > INT_MAX)
        snprintf(why, 200, "MPI counts the bytes of a message in int: up to 2 GiB - 1");
    else if (access(program, X_OK) != 0)
        snprintf(why, 200, "weft-mpi was not built: it needs libopenmpi-dev");
    else
        while (find_way(asked, count))
            count++;
    return count;
}

static void put_parameter(struct peer_command *command, const char *name, const char *value)
{
    peer_word(command, "--mca");
    peer_word(command, "%s", name);
    peer_word(command, "%s", value);
}

/* It leaves the loopback interface out unless that is named. */
static int put_devices(const struct peer_place *place, struct peer_commands *out)
{
    char devices[512];
    int count = peer_devices(place, devices, sizeof devices);

    if (count > 0)
        put_parameter(&out->client, "btl_tcp_if_include", devices);
    if (count > 0 && count < place->rail_count)
        snprintf(out->note, sizeof out->note, "one connection for the rails of an interface, ");
    return count < 0 ? count : 0;
}

static void put_openmpi_way(const struct way *way, const struct peer_case *asked, struct peer_command *client)
{
    char bytes[32];

    put_parameter(client, "mpi_yield_when_idle", peer_processors() < 2 ? "1" : "0");
    for (int i = 0; i < SETTINGS && way->sets[i].name; i++)
        put_parameter(client, way->sets[i].name, way->sets[i].value);
    if (way->eager) {
        snprintf(bytes, sizeof bytes, "%" PRIu64, asked->size + 256); /* its headers count */
        put_parameter(client, "btl_tcp_eager_limit", bytes);
        put_parameter(client, "btl_tcp_rndv_eager_limit", bytes);
        put_parameter(client, "btl_tcp_max_send_size", bytes);
    }
    peer_word(client, "--bind-to");
    peer_word(client, way->bound ? "core" : "none");
}

static int openmpi_commands(const struct peer_case *asked, const struct peer_place *place, int index,
                            struct peer_commands *out)
{
    const struct way *way = find_way(asked, index);
    struct peer_command *client = &out->client;

    if (!way)
        return -EINVAL;
    peer_word(client, "mpirun");
    peer_word(client, "-n");
    peer_word(client, "2");
    peer_word(client, "--allow-run-as-root");
    peer_word(client, "--oversubscribe");
    put_parameter(client, "plm", "isolated");
    put_parameter(client, "pml", "ob1");
    put_parameter(client, "btl", "tcp,self");
    int result = put_devices(place, out);
    put_openmpi_way(way, asked, client);
    peer_word(client, "%s/weft-mpi", place->folder);
    peer_word(client, "--size");
    peer_word(client, "%" PRIu64, asked->size);
    peer_word(client, "-n");
    peer_word(client, "%" PRIu64, asked->messages);
    peer_word(client, "-w");
    peer_word(client, "%" PRIu64, asked->warmup);
    peer_word(client, "--inflight");
    peer_word(client, "%" PRIu32, asked->inflight);
    if (asked->metric == PEER_LATENCY)
        peer_word(client, "--lat");
    snprintf(out->note + strlen(out->note), sizeof out->note - strlen(out->note), "%s", way->note);
    peer_word(client, "--buffers");
    return result ? result : peer_word(client, "%" PRIu32, asked->buffers);
}

static int openmpi_read(const struct peer_case *asked, const struct peer_output *server,
                        const struct peer_output *client, struct peer_reading *out, struct wf_status *status)
{
    (void)server;
    return peer_read_json(asked, "weft-mpi", "weft.mpi/1", client->text, out, status);
}

const struct peer_tool peer_openmpi = {
    .name = "openmpi",
    .program = "mpirun",
    .package = "openmpi-bin",
    .at_build = "libopenmpi-dev",
    .version = {"mpirun", "--version"},
    .many_buffers = true,
    .variants = openmpi_variants,
    .commands = openmpi_commands,
    .read = openmpi_read,
};
