/*
 * state.h: reads what the kernel reports of interfaces and addresses, and judges whether a rail can be used:
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

/* An interface, as the kernel reports it. */
struct wf_interface {
    uint32_t index; /* 0: there is no such interface */
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

/* What an address of an interface means to a rail; of several addresses the greatest value counts. */
enum wf_hold {
    WF_HOLD_NOT,       /* it is not the rail's address */
    WF_HOLD_TENTATIVE, /* the rail's, but no socket can bind to it yet: another host may have it */
    WF_HOLD_FULLY,     /* the rail's, ready for use */
};

/* Read a message about an interface or an address, new or gone. False: the message is about something else, or is cut
 * short. */
bool wf_interface_read(const struct nlmsghdr *message, struct wf_interface *out);
bool wf_held_read(const struct nlmsghdr *message, struct wf_held *out);

/* May any of these messages be about one of the rails? True also for a message that cannot be read. */
bool wf_rail_news(const void *messages, size_t length, const struct wf_rail *rails, int count);

/* What the address `held` means to the rail, if `interface` is the rail's. */
enum wf_hold wf_rail_hold(const struct wf_rail *rail, const struct wf_interface *interface, const struct wf_held *held);

/*
 * The trouble of a rail on this interface; `before`: its trouble until now. The kernel may set IFF_RUNNING up to a
 * second after the carrier has come: a rail that was fine stays fine meanwhile.
 */
enum wf_rail_trouble wf_rail_judge(const struct wf_interface *interface, enum wf_hold hold,
                                   enum wf_rail_trouble before);

#endif
