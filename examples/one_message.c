/*
 * Moves 16 MiB from one process to another, over all rails between them.
 *
 *     one_message listen PORT             waits for the other process and receives (PORT 0: the kernel chooses one)
 *     one_message connect ADDRESS:PORT    connects to it and sends
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft.h"

#define MESSAGE_BYTES (16u << 20)
#define MESSAGE_TAG 7
#define PATIENCE_MS 30000

/* The side that listens: takes the first process that connects, and the connection that it opens. */
static int wait_for_peer(struct weft_context *context, struct weft_endpoint *endpoint, const char *port,
                         struct weft_connection **connection, struct weft_error *err)
{
    struct weft_peer *peer;
    int result = weft_listen(context, port, err);
    if (result == 0) {
        printf("port %d\n", weft_listen_port(context));
        fflush(stdout);
        result = weft_accept(context, PATIENCE_MS, &peer, err);
    }
    if (result == 0)
        result = weft_connection_accept(endpoint, peer, WEFT_ANY_ENDPOINT, PATIENCE_MS, connection, err);
    return result;
}

/* The side that connects: its connection leads to endpoint 0 of the other process. */
static int call_peer(struct weft_context *context, struct weft_endpoint *endpoint, const char *address,
                     struct weft_connection **connection, struct weft_error *err)
{
    struct weft_peer *peer;
    int result = weft_connect(context, address, PATIENCE_MS, &peer, err);
    if (result == 0)
        result = weft_connection_open(endpoint, peer, 0, PATIENCE_MS, connection, err);
    return result;
}

/* Posts the one operation and waits until it is complete: then every byte is at its destination. */
static int move(struct weft_connection *connection, unsigned char *buffer, int sends, struct weft_error *err)
{
    struct weft_request *request;
    struct weft_completion done;
    int result = sends ? weft_send(connection, buffer, MESSAGE_BYTES, MESSAGE_TAG, NULL, &request)
                       : weft_recv(connection, buffer, MESSAGE_BYTES, MESSAGE_TAG, NULL, &request);
    if (result == 0)
        result = weft_wait(request, -1, &done);
    if (result < 0) { /* these calls have no err */
        snprintf(err->text, sizeof err->text, "%s", weft_last_error());
        return result;
    }
    if (done.status < 0)
        snprintf(err->text, sizeof err->text, "%s", done.text);
    else
        printf("%s %" PRIu64 " bytes\n", sends ? "sent" : "received", done.bytes);
    return done.status;
}

int main(int argc, char **argv)
{
    struct weft_error err = {0};
    struct weft_context *context = NULL;
    struct weft_endpoint *endpoint;
    struct weft_connection *connection;
    int sends = argc == 3 && strcmp(argv[1], "connect") == 0;
    if (!sends && (argc != 3 || strcmp(argv[1], "listen") != 0)) {
        fprintf(stderr, "usage: %s listen PORT | connect ADDRESS:PORT\n", argv[0]);
        return 2;
    }
    unsigned char *buffer = calloc(1, MESSAGE_BYTES);
    if (!buffer) {
        fprintf(stderr, "%s: no memory\n", argv[0]);
        return 1;
    }
    if (sends)
        memset(buffer, 'w', MESSAGE_BYTES);

    int result = weft_context_create(NULL, &context, &err); /* settings: the defaults and the environment */
    if (result == 0)
        result = weft_endpoint_create(context, 0, &endpoint, &err);
    if (result == 0)
        result = sends ? call_peer(context, endpoint, argv[2], &connection, &err)
                       : wait_for_peer(context, endpoint, argv[2], &connection, &err);
    if (result == 0)
        result = move(connection, buffer, sends, &err);
    if (result == 0 && buffer[MESSAGE_BYTES - 1] != 'w') {
        snprintf(err.text, sizeof err.text, "the last byte is wrong");
        result = -EBADMSG;
    }
    if (result < 0)
        fprintf(stderr, "%s: %s\n", argv[0], err.text);

    weft_context_destroy(context); /* ends the session in an orderly way, frees what belongs to the context */
    free(buffer);                  /* only now: nothing touches it any more */
    return result < 0;
}
