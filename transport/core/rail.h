/*
 * rail.h: one NIC port with the local address we bind to. A rail is found (every usable interface) or named by the
 * setting `rails`; its sockets are bound to its address and its interface, so that two NICs in one subnet both carry.
 */
#ifndef WF_CORE_RAIL_H
#define WF_CORE_RAIL_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "wire/hello.h"

/* What keeps a rail from being used. */
enum wf_rail_trouble {
    WF_RAIL_FINE,       /* nothing that this machine knows of */
    WF_RAIL_GONE,       /* its interface is not there */
    WF_RAIL_SHUT,       /* its interface is down */
    WF_RAIL_NO_CARRIER, /* its interface has no carrier: a cable, or the switch at the other end */
    WF_RAIL_NO_ADDRESS, /* its interface does not hold its address */
    WF_RAIL_TENTATIVE,  /* whether another host has its address, too, is not known yet, or known to be so (IPv6) */
};

/*
 * Found once, when the context is created. What changes afterwards, `device`, `index`, the scope of `address`, `down`
 * and `trouble`, the door's thread writes, holding context.lock (core/rail_watch.h).
 */
struct wf_rail {
    char name[64];                   /* interface, or the address where one interface carries several rails */
    char device[32];                 /* interface */
    uint32_t index;                  /* its number, which is local to this machine */
    char text[64];                   /* address for messages */
    int prefix;                      /* bits of its subnet; 0: unknown */
    bool crowded;                    /* another interface has an address in the same subnet */
    struct sockaddr_storage address; /* port 0; with `index` where it is link-local */
    int32_t mtu;
    int32_t speed_mbit;  /* -1: unknown */
    _Atomic bool down;   /* cannot be used: `trouble` says why. May be read without the lock */
    _Atomic int trouble; /* enum wf_rail_trouble */
};

static inline bool wf_rail_is_down(const struct wf_rail *rail)
{
    return atomic_load_explicit(&rail->down, memory_order_relaxed);
}

/*
 * Fills `rails` from the setting's text: "" = all usable interfaces (up, with an address, not loopback; loopback when
 * there is nothing else). Items: an interface, a prefix with '*', an address; a leading '^' turns the list into one of
 * exclusions. An interface stands for its first IPv4 address, else its first global IPv6 one, else, where it is named,
 * its link-local one. Returns the number of rails, or -ENODEV / -EINVAL / -E2BIG naming the item and what exists here.
 */
int wf_rails_find(const char *setting, struct wf_rail *rails, int max, struct wf_status *status);

/* "its interface is down": why a rail is. */
const char *wf_rail_trouble_text(enum wf_rail_trouble trouble);

#endif
