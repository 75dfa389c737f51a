/*
 * devmem.h: device-memory TCP of the kernel: what a network card needs for it, and how it is told to do it.
 *
 *     the payload of a bound queue's packets is written to a dma-buf; headers, and all other queues, go to the host
 *
 * A handle is one conversation with the kernel. A binding gives receive queues of a card, or its sends, the memory of a
 * dma-buf; it lives as long as the handle, and ends with the process, too. Rules and settings of a card live until
 * somebody takes them back: who changes them keeps what was there before.
 *
 * Interfaces are named as the kernel names them, in the network namespace of the calling thread. One thread at a time
 * uses a handle. Nothing here waits for the network; a change of a card's rings may hold its traffic up for a moment.
 * In a build without libmnl wf_devmem_open() fails with -EOPNOTSUPP and says so.
 *
 * Failures of all functions: -ENODEV, no such interface; -EPERM, this process lacks CAP_NET_ADMIN; -EOPNOTSUPP, kernel
 * or driver cannot; -EAGAIN, the kernel did not answer; -EBADMSG, its answer makes no sense. `status` has the kernel's
 * own words where it gave some.
 */
#ifndef WF_DEVMEM_H
#define WF_DEVMEM_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

struct wf_devmem;
struct wf_devmem_kernel; /* devmem/kernel.h */

/* `kernel` NULL: that of this machine. The handle is the caller's. */
int wf_devmem_open(const struct wf_devmem_kernel *kernel, struct wf_devmem **devmem, struct wf_status *status);
/* Ends all its bindings. NULL is allowed. What has arrived through a binding stays readable on its sockets. */
void wf_devmem_close(struct wf_devmem *devmem);
/* Whether this process may bind, steer and set: CAP_NET_ADMIN in the user namespace that owns its network. */
bool wf_devmem_may_change(const struct wf_devmem *devmem);
/* The socket of the handle, whose it stays. Another process that gets a copy of it keeps the bindings, too; it can make
 * none, for the kernel looks at the rights of the sender. */
int wf_devmem_socket(const struct wf_devmem *devmem);

/* --- what a card is: reading only, needs no rights --- */

enum wf_devmem_split {
    WF_DEVMEM_SPLIT_UNKNOWN, /* the driver does not tell */
    WF_DEVMEM_SPLIT_OFF,
    WF_DEVMEM_SPLIT_ON,
    WF_DEVMEM_SPLIT_AUTO /* to be set only, never told: as the driver has it by itself */
};

/* Numbers: -1, neither kernel nor driver tells. */
struct wf_devmem_card {
    char name[IFNAMSIZ];
    char driver[32]; /* "": it has none */
    int ifindex;
    bool loopback;
    int mtu;
    int bind_rx, bind_tx; /* 1: the kernel knows the command, 0: it does not; nothing of the driver */
    enum wf_devmem_split split;
    int split_settable;             /* 1: it is; -1: it may be, the kernel tells only when it is set */
    int64_t hds_thresh;             /* bytes up to which a packet stays whole in host memory */
    int rx_queues;                  /* that packets are spread over now */
    int queues_most;                /* that it could have */
    int ntuple;                     /* 1: rules for flows act; 0: off, and can be switched on */
    bool ntuple_fixed;              /* what ntuple says cannot be changed */
    int64_t rules_most, rules_used; /* of the table of rules */
    bool rules_anywhere;            /* the driver finds a place for a rule itself */
    int rss_entries; /* of the table by which packets are spread over queues; 0: there is none; -1: more than the most
                      */
};

/* The name in `card` is the interface's own, also where an alternative one was given. */
int wf_devmem_look(struct wf_devmem *devmem, const char *name, struct wf_devmem_card *card, struct wf_status *status);

/* The name that the interface with this number has now. */
int wf_devmem_name(struct wf_devmem *devmem, int ifindex, char name[IFNAMSIZ], struct wf_status *status);

/* Who can take an obstacle out of the way. */
enum wf_devmem_remedy {
    WF_DEVMEM_READY,   /* there is none: a queue may be bound */
    WF_DEVMEM_NEVER,   /* nobody: another kernel, driver or card */
    WF_DEVMEM_BY_HAND, /* the user, for it changes what the card does for others */
    WF_DEVMEM_BY_SET   /* the functions below */
};

struct wf_devmem_obstacle {
    enum wf_devmem_remedy remedy;
    char why[128];    /* a sentence without its full stop */
    char change[128]; /* the command line that would change it; "": none would */
};

/* The first thing in the way of binding `queues` receive queues of the card, in the order of wf_devmem_remedy. Pure. */
void wf_devmem_first_obstacle(const struct wf_devmem_card *card, int queues, struct wf_devmem_obstacle *obstacle);

/* --- bindings --- */

#define WF_DEVMEM_QUEUES_MAX 64

/* Receive queues of a card, and what they are to be given. */
struct wf_devmem_rx {
    int ifindex;
    const uint32_t *queues;
    uint32_t count;  /* of queues */
    int dmabuf;      /* stays the caller's, who may close it afterwards */
    uint32_t buffer; /* bytes of each that a packet begins: a power of two, more than a page; 0: a page, as all can */
};

/* `id` names the dma-buf in the control messages of recvmsg(). -EINVAL: no such queue, no dma-buf, or header split is
 * off; -EEXIST: a queue is bound already, or has an XDP program; -EBUSY: it belongs to AF_XDP; -ERANGE: it was refused
 * with `buffer`, which kernel (7.3 can), driver, or memory in smaller pieces may be the reason of: 0 may be taken. */
int wf_devmem_bind_rx(struct wf_devmem *devmem, const struct wf_devmem_rx *rx, uint32_t *id, struct wf_status *status);
#define WF_DEVMEM_RX_MAX 1024

/* Which dma-buf each receive queue of the card is bound to, by any process: `ids` are those of wf_devmem_bind_rx(), 0
 * for a queue that is not bound, and for all up to `most` that the kernel does not tell of. Returns how many it tells
 * of: none while the interface is down, or where the kernel cannot. Needs no rights. */
int wf_devmem_bindings(struct wf_devmem *devmem, int ifindex, uint32_t *ids, uint32_t most, struct wf_status *status);
/* Whether one of them is bound. 1, 0, or a failure. */
int wf_devmem_is_bound(struct wf_devmem *devmem, int ifindex, struct wf_status *status);
/* Makes a dma-buf known to a card, for sends from it: `id` is for the control messages of sendmsg(). */
int wf_devmem_bind_tx(struct wf_devmem *devmem, int ifindex, int dmabuf, uint32_t *id, struct wf_status *status);

/* --- settings of a card; all need CAP_NET_ADMIN --- */

/* Switches header split, and sets how many bytes of a packet stay whole; UNKNOWN leaves the one, -1 the other. */
int wf_devmem_set_split(struct wf_devmem *devmem, const char *name, enum wf_devmem_split split, int64_t hds_thresh,
                        struct wf_status *status);
int wf_devmem_set_ntuple(struct wf_devmem *devmem, const char *name, bool on, struct wf_status *status);

#define WF_DEVMEM_RSS_MAX 4096

/* Which queue gets the packets of which hash. */
struct wf_devmem_rss {
    uint32_t count; /* of entries */
    bool usual;     /* all queues in turns, as a driver has it by itself */
    uint16_t queue[WF_DEVMEM_RSS_MAX];
};

/* Reads the table. -EOPNOTSUPP: there is none. */
int wf_devmem_rss_read(struct wf_devmem *devmem, const char *name, struct wf_devmem_rss *rss, struct wf_status *status);
/* Writes it, and reads it again: -EIO, the card has another one now. */
int wf_devmem_rss_write(struct wf_devmem *devmem, const char *name, const struct wf_devmem_rss *rss,
                        struct wf_status *status);
/* Makes it the first `queues` queues in turns. Pure. */
void wf_devmem_rss_first(struct wf_devmem_rss *rss, uint32_t queues);
/* Whether packets are spread over a queue from `first` on. Pure. */
bool wf_devmem_rss_reaches(const struct wf_devmem_rss *rss, uint32_t first);

/* --- rules: a TCP stream to a queue --- */

/* Port 0: any. */
struct wf_devmem_flow {
    struct sockaddr_storage from; /* of the sender; AF_UNSPEC: any */
    struct sockaddr_storage to;   /* of this machine: AF_INET or AF_INET6 */
};

/* Adds a rule, and reads it back; `location` is its place in the table. -ENOSPC: the table is full; -EIO: the card has
 * another rule there, which was taken away again. */
int wf_devmem_steer(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                    uint32_t *location, struct wf_status *status);
/* The place of such a rule. -ENOENT, without words: the table has none. */
int wf_devmem_find_rule(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                        uint32_t *location, struct wf_status *status);
/* Takes it away. -ENOENT: it is not there any more, and what may be there instead stays. */
int wf_devmem_unsteer(struct wf_devmem *devmem, const char *name, const struct wf_devmem_flow *flow, uint32_t queue,
                      uint32_t location, struct wf_status *status);

#endif
