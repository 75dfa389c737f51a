/*
 * loop_mute.c: a node of the benchmark that joins and then says nothing, for the tests of the one that waits for it.
 *
 *     loop_mute ADDRESS RAILS [open]   connects; with `open`, opens the control connection, too; stays until its
 * standard input ends
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "weft.h"

#define CONTROL_ENDPOINT 0xfffffff0u /* as in bench/nodes/link.h */
#define TIMEOUT_MS 20000

static int join(const char *address, const char *rails, int open, struct weft_error *err)
{
    struct weft_config *config;
    struct weft_context *context;
    struct weft_peer *peer;
    struct weft_endpoint *endpoint;
    struct weft_connection *connection;
    int rc = weft_config_create(&config, err);

    if (rc == 0)
        rc = weft_config_set(config, "rails", rails, err);
    if (rc == 0)
        rc = weft_context_create(config, &context, err);
    if (rc == 0)
        rc = weft_connect(context, address, TIMEOUT_MS, &peer, err);
    if (rc == 0 && open)
        rc = weft_endpoint_create(context, CONTROL_ENDPOINT, &endpoint, err);
    if (rc == 0 && open)
        rc = weft_connection_open(endpoint, peer, CONTROL_ENDPOINT, TIMEOUT_MS, &connection, err);
    return rc;
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    char byte;

    if (argc < 3 || join(argv[1], argv[2], argc > 3 && strcmp(argv[3], "open") == 0, &err) != 0) {
        fprintf(stderr, "loop_mute: %s\n", err.text);
        return 1;
    }
    puts("joined");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}
