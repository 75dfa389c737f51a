#include "place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/words/words.h"

int bench_place_set(struct bench_options *options, enum bench_place place, const char *address,
                    struct wf_status *status)
{
    if (options->place != BENCH_PLACE_NONE && options->place != place)
        return wf_fail(status, -EINVAL, "--listen, --connect and --local exclude each other: name one");
    if (address && options->place == place && options->address[0] && strcmp(options->address, address) != 0)
        return wf_fail(status, -EINVAL,
                       "two addresses, '%.60s' and '%.60s': name one; the rails are found by themselves",
                       options->address, address);
    if (address && strlen(address) >= sizeof options->address)
        return wf_fail(status, -EINVAL, "the address '%.40s...' is too long", address);
    options->place = place;
    bench_copy_text(options->address, sizeof options->address, address ? address : "");
    return 0;
}

int bench_place_number(const char *option, const char *text, int least, int *number, struct wf_status *status)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || value < least || value > BENCH_NODES_MOST)
        return wf_fail(status, -EINVAL, "--%s '%.40s': must be a number from %d to %d", option, text, least,
                       BENCH_NODES_MOST);
    *number = (int)value;
    return 0;
}

int bench_place_check(struct bench_options *options, bool launched, struct wf_status *status)
{
    bool said = options->nodes || options->rank >= 0 || options->rendezvous;
    int processes = (int)wf_config_number(options->config, WF_SET_PROCESSES);

    if (said && (options->place == BENCH_PLACE_LISTEN || options->place == BENCH_PLACE_CONNECT))
        return wf_fail(status, -EINVAL,
                       "--nodes, --rank and --rendezvous are for nodes that meet as a group: leave out --%s",
                       options->place == BENCH_PLACE_LISTEN ? "listen" : "connect");
    if (options->command != BENCH_MESH)
        return 0;
    if (processes > 1 && (options->place == BENCH_PLACE_LISTEN || options->place == BENCH_PLACE_CONNECT))
        return wf_fail(status, -EINVAL,
                       "--processes %d: with --%s a node is one process: use --local, --nodes or a launcher", processes,
                       options->place == BENCH_PLACE_LISTEN ? "listen" : "connect");
    if (processes > 1 && options->place == BENCH_PLACE_LOCAL && options->nodes == 0)
        options->nodes = 2;
    if (options->nodes * processes > BENCH_NODES_MOST)
        return wf_fail(status, -EINVAL, "--nodes %d with --processes %d: more than %d processes", options->nodes,
                       processes, BENCH_NODES_MOST);
    if (options->place == BENCH_PLACE_LOCAL) {
        if (options->rank >= 0 || options->rendezvous)
            return wf_fail(status, -EINVAL, "--local starts all nodes here: leave out --%s",
                           options->rank >= 0 ? "rank" : "rendezvous");
        if (options->nodes == 1)
            return wf_fail(status, -EINVAL, "--nodes 1: a mesh has 2 nodes at least");
        options->nodes *= processes;
        return 0;
    }
    options->nodes *= processes;
    if (options->rank >= 0 && options->rank >= options->nodes)
        return wf_fail(status, -EINVAL, "--rank %d of --nodes %d: ranks go from 0 to one less than the nodes",
                       options->rank, options->nodes / processes);
    if (said || (launched && options->place == BENCH_PLACE_NONE && options->command == BENCH_MESH))
        options->place = BENCH_PLACE_GROUP;
    return 0;
}
