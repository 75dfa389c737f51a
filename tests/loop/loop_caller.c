/*
 * loop_caller.c: calls the helper of 'weft nic serve' as no client of it does, by the packets of devmem/helper.h.
 *
 *     loop_caller SOCKET COUNT     connects so often, prints what it hears each time, and stays until its input ends
 *     loop_caller SOCKET garbage   sends packets that are no requests, each on a connection of its own that has to end
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "devmem/helper.h"

#define PACKETS 200

static int call(const char *path, struct wf_helper_reply *greeting)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), none;

    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror(path);
        exit(1);
    }
    if (wf_helper_receive(fd, greeting, sizeof *greeting, &none) != (ssize_t)sizeof *greeting)
        greeting->result = 1;
    return fd;
}

static void call_often(const char *path, int count)
{
    struct wf_helper_reply greeting;
    char byte;

    for (int i = 0; i < count; i++) {
        call(path, &greeting);
        printf("%d %s\n", greeting.result, greeting.words);
    }
    printf("that was all\n");
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
}

/* Any length and any bytes, some with the head of a request and a descriptor. Refusals may come before the end. */
static void send_garbage(const char *path)
{
    struct wf_helper_reply reply;
    unsigned char packet[2 * sizeof(struct wf_helper_request)];
    const struct wf_helper_request head = {.version = WF_HELPER_VERSION, .verb = WF_HELPER_LEASE};
    int none;

    srand(29);
    for (int i = 0; i < PACKETS; i++) {
        int fd = call(path, &reply);
        size_t bytes = i % 2 ? sizeof head : 1 + (size_t)rand() % sizeof packet;
        for (size_t at = 0; at < bytes; at++)
            packet[at] = (unsigned char)rand();
        if (i % 2)
            memcpy(packet, &head, i % 3 ? 4 : 8);
        wf_helper_send(fd, packet, bytes, i % 5 ? STDIN_FILENO : -1);
        shutdown(fd, SHUT_WR);
        while (wf_helper_receive(fd, &reply, sizeof reply, &none) > 0)
            if (none >= 0 || reply.result >= 0)
                printf("packet %d was taken for a request\n", i);
        close(fd);
    }
    printf("that was all\n");
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (strcmp(argv[2], "garbage") == 0)
        send_garbage(argv[1]);
    else
        call_often(argv[1], atoi(argv[2]));
    return 0;
}
