/*
 * helper.h: what a process without CAP_NET_ADMIN and the helper ('weft nic serve') say to each other.
 *
 *     a connection is a lease: one queue, its rules, and when it ends the rules are taken away
 *
 * A SOCK_SEQPACKET socket in the folder of the records. The helper speaks first: a reply whose result says whether this
 * user may ask. Then the client asks, and the helper answers each request. Every packet is one of the structs below, in
 * the machine's own byte order, with one descriptor where it says so. The helper ends a conversation that is none.
 *
 * Who may lead a stream to a queue is who has the stream's socket: the client sends its descriptor, and the helper
 * reads the addresses itself. The binding is in the netlink socket that the client gets: it ends with the client.
 */
#ifndef WF_DEVMEM_HELPER_H
#define WF_DEVMEM_HELPER_H

#include <net/if.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/status.h"

#define WF_HELPER_SOCKET "nic.sock" /* in WF_LENT_FOLDER */
#define WF_HELPER_VERSION 3

enum wf_helper_verb {
    WF_HELPER_LEASE = 1, /* with a dma-buf; once. The reply has the netlink socket */
    WF_HELPER_STEER,     /* with a connected TCP socket */
    WF_HELPER_UNSTEER
};

struct wf_helper_request {
    uint32_t version;
    uint32_t verb;
    uint64_t network;    /* LEASE: number of the client's network namespace */
    char card[IFNAMSIZ]; /* LEASE */
    uint32_t buffer;     /* LEASE: as in struct wf_devmem_rx */
    uint32_t rule;       /* UNSTEER */
    uint32_t number;     /* of the request, from 1 on */
};

struct wf_helper_reply {
    uint32_t version;
    uint32_t number;            /* of the request; 0: the first words */
    int32_t result;             /* 0, or a negative errno */
    uint32_t queue, binding;    /* of LEASE */
    uint32_t by_port;           /* of LEASE: as wf_lease_by_port(), 0 or 1 */
    uint32_t rule;              /* of STEER */
    char words[WF_STATUS_TEXT]; /* of a failure */
};

/* One packet with a descriptor, -1: none. 0, or a negative errno: -EAGAIN, the other side takes nothing. */
int wf_helper_send(int socket, const void *packet, size_t bytes, int descriptor);
/* Takes one. Returns its bytes, 0 at the end, -EMSGSIZE for one that is longer than `room`. `descriptor` is the
 * caller's, -1: none came. Of several the first is kept. */
ssize_t wf_helper_receive(int socket, void *packet, size_t room, int *descriptor);

/* The number of the network namespace of this thread, 0: not known. */
uint64_t wf_helper_network(void);

#endif
