/* talk.h: requests to the kernel and its answers. No file outside of this room includes it. */
#ifndef WF_DEVMEM_TALK_H
#define WF_DEVMEM_TALK_H

#include <libmnl/libmnl.h>
#include <linux/genetlink.h>

#include "devmem.h"
#include "kernel.h"

/* Commands of the family "netdev", version 1; linux/netdev.h of older systems lacks them, or is not there. */
#define WF_NETDEV_BIND_RX 13
#define WF_NETDEV_BIND_TX 15

/* A family of generic netlink. */
struct wf_devmem_family {
    uint16_t id;          /* 0: the kernel has none of that name */
    int bind_rx, bind_tx; /* as in struct wf_devmem_card */
};

/* Owner: who has opened it. */
struct wf_devmem {
    const struct wf_devmem_kernel *kernel;
    int fd;            /* -1: not open */
    uint32_t sequence; /* of the last request */
    struct wf_devmem_family netdev, ethtool;
};

#define WF_DEVMEM_REQUEST_ROOM 2048
#define WF_DEVMEM_ANSWER_ROOM 32768

/* A request under construction; what does not fit sets `full`. */
struct wf_devmem_request {
    bool full;
    union {
        struct nlmsghdr header;
        uint8_t bytes[WF_DEVMEM_REQUEST_ROOM];
    } at;
};

void wf_devmem_start(struct wf_devmem *devmem, struct wf_devmem_request *request, uint16_t family, uint8_t command,
                     uint16_t flags);
void wf_devmem_put(struct wf_devmem_request *request, uint16_t type, const void *data, size_t bytes);
void wf_devmem_put_u32(struct wf_devmem_request *request, uint16_t type, uint32_t number);
/* NULL: it did not fit; wf_devmem_end() takes that. */
struct nlattr *wf_devmem_begin(struct wf_devmem_request *request, uint16_t type);
void wf_devmem_end(struct wf_devmem_request *request, struct nlattr *nest);

/* Called with a message of the answer that is long enough for its headers. 0, or a negative errno. */
typedef int wf_devmem_answer(const struct nlmsghdr *message, void *data);

/* Sends, and waits for the acknowledgement; messages before it go to `answer` (NULL: they are dropped). What the kernel
 * refuses is told in `status` as "WHAT: its words". */
int wf_devmem_ask(struct wf_devmem *devmem, struct wf_devmem_request *request, wf_devmem_answer *answer, void *data,
                  const char *what, struct wf_status *status);

/* The number in an attribute, -EBADMSG where it is shorter than that. */
int wf_devmem_number(const struct nlattr *attribute, enum mnl_attr_data_type type, uint32_t *number);

/* ETHTOOL_* by ioctl; `data` begins with the command. */
int wf_devmem_ethtool(const struct wf_devmem *devmem, const char *name, void *data);

/* rings.c: header split and its threshold as the card says; unknown where it does not. Fails where the kernel fails. */
int wf_devmem_read_rings(struct wf_devmem *devmem, struct wf_devmem_card *card, struct wf_status *status);
/* steer.c: the table of rules. */
void wf_devmem_read_rules(const struct wf_devmem *devmem, struct wf_devmem_card *card);
/* features.c */
void wf_devmem_read_ntuple(const struct wf_devmem *devmem, struct wf_devmem_card *card);

#endif
