/*
 * device_way.h: TCP from the wire into the memory of GPUs: what cards and GPUs say of it, and what is first in the way.
 * Asks nothing.
 */
#ifndef WF_AFFINITY_DEVICE_WAY_H
#define WF_AFFINITY_DEVICE_WAY_H

#include <stdbool.h>
#include <stdint.h>

/* A card, as somebody says who has asked kernel and driver for it. Numbers: -1, they do not tell. */
struct wf_device_way {
    bool asked;                     /* false: all that is known is the name of the driver */
    bool never;                     /* no setting would help: a right that is missing does not matter either */
    bool prepared;                  /* 'weft nic prepare' makes the change, and those that are needed behind it */
    char why[128];                  /* what is first in the way; "": nothing is */
    char change[128];               /* the command that would change it; "": none would */
    int header_split;               /* 1 on, 0 off */
    int64_t hds_thresh;             /* bytes up to which a packet stays whole in host memory */
    int queues, queues_aside;       /* that receive; of these, kept off all other traffic */
    int rules;                      /* for flows: 1 on, 0 off */
    bool by_port;                   /* it was seen to take none for one stream, only for an address and port */
    int64_t rules_most, rules_used; /* of their table */
};

/* A GPU. */
struct wf_gpu_way {
    int dmabuf;    /* 1: its driver exports its memory, 0: it does not, -1: nobody has asked */
    char why[160]; /* it does not; "": it does */
};

/* How the payload of packets fills the buffers that a card writes to: each packet begins a new one. */
struct wf_buffer_fit {
    int unused_percent; /* of the buffers' memory; -1: no packet has payload */
    int full_mtu;       /* the largest MTU up to this one that leaves nothing unused, or else the smallest */
};

/* Of IPv4 and TCP with timestamps; IPv6 takes 20 bytes more of an MTU. Pure. */
struct wf_buffer_fit wf_buffer_fit(int mtu, int buffer_bytes);

#endif
