/*
 * state.h: what the kernel says of interfaces and addresses, and whether a rail can be used after that:
 *
 *     usable = its interface is up, has its carrier, and holds its address
 *
 * Pure: messages of NETLINK_ROUTE come in, verdicts go out.
 */
#ifndef WF_CORE_RAIL_STATE_H
#define WF_CORE_RAIL_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "core/rail/rail.h"

struct nlmsghdr;

/* An interface. */
struct wf_interface {
    uint32_t index; /* 0: there is none */
    uint32_t flags; /* IFF_... */
    char name[32];
};

/* An address that an interface holds. */
struct wf_held {
    uint32_t index;                  /* of the interface */
    uint32_t flags;                  /* IFA_F_... */
    unsigned prefix;                 /* bits of its subnet */
    struct sockaddr_storage address; /* port 0 */
};

/* What an interface's addresses mean to a rail; of several the greatest counts. */
enum wf_hold {
    WF_HOLD_NOT,       /* another address */
    WF_HOLD_TENTATIVE, /* the rail's, but nothing can be bound to it: another host may have it */
    WF_HOLD_FULLY,     /* the rail's */
};

/* Read a message that tells of an interface or an address (new or gone). False: it tells of something else, or is cut
 * short. */
bool wf_interface_read(const struct nlmsghdr *message, struct wf_interface *out);
bool wf_held_read(const struct nlmsghdr *message, struct wf_held *out);

/* Whether any of these messages may be about one of the rails. What cannot be read may be. */
bool wf_rail_news(const void *messages, size_t length, const struct wf_rail *rails, int count);

/* What this address means to the rail, were `interface` its own. */
enum wf_hold wf_rail_hold(const struct wf_rail *rail, const struct wf_interface *interface, const struct wf_held *held);

/*
 * What is wrong with a rail on this interface, after `before`: an interface that has its carrier may be told to run as
 * late as a second after it does, which changes no opinion.
 */
enum wf_rail_trouble wf_rail_judge(const struct wf_interface *interface, enum wf_hold hold,
                                   enum wf_rail_trouble before);

#endif
