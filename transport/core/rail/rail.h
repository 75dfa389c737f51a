/*
 * rail.h: one NIC port with the local address we bind to. A rail is found (every usable interface) or named by the
 * setting `rails`; its sockets are bound to its address and its interface, so that two NICs in one subnet both carry.
 */
#ifndef WF_CORE_RAIL_RAIL_H
#define WF_CORE_RAIL_RAIL_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "core/ground/world.h"
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
 * What an interface is when the setting `rails` names none. Of the first four the least that some interface has is
 * taken; the others are rails only when they are named, or not at all.
 */
enum wf_rail_rule {
    WF_RULE_CARD,         /* a network card, bond, team, VLAN, macvlan, or a container's own interface */
    WF_RULE_LINK_LOCAL,   /* such a one whose only address means something on its own link alone */
    WF_RULE_VIRTUAL,      /* a bridge, port or tunnel of containers, virtual machines or a VPN */
    WF_RULE_LOOPBACK,     /* reaches this machine alone */
    WF_RULE_VIRTUAL_LINK, /* VIRTUAL, or a port, with only a link-local address: a rail when named, as the next */
    WF_RULE_NO_CARRIER,   /* up, without carrier: joins when that comes */
    WF_RULE_DOWN,         /* no rail, as the next two */
    WF_RULE_NO_ADDRESS,
    WF_RULE_PORT,      /* of a bond, team or bridge, and without an address of its own */
    WF_RULE_EXCLUDED,  /* the setting says so, as in the next */
    WF_RULE_NOT_NAMED, /* it names others */
    WF_RULE_TOO_MANY,  /* as many as there may be come before it */
};

/*
 * Found once, when the context is created. What changes afterwards, `device`, `index`, the scope of `address`, `down`
 * and `trouble`, the door's thread writes, holding world.lock (core/rail/watch.h).
 */
struct wf_rail {
    char name[64];                   /* interface, or the address where one interface carries several rails */
    char device[32];                 /* interface */
    uint32_t index;                  /* its number, which is local to this machine */
    char text[64];                   /* address for messages */
    int prefix;                      /* bits of its subnet; 0: unknown */
    bool crowded;                    /* another interface has an address in the same subnet */
    enum wf_rail_rule rule;          /* that it was taken by */
    struct sockaddr_storage address; /* port 0; with `index` where it is link-local */
    int32_t mtu;
    int32_t speed_mbit;  /* -1: unknown */
    _Atomic bool down;   /* cannot be used: `trouble` says why. May be read without the lock */
    _Atomic int trouble; /* enum wf_rail_trouble */
};

/* Of a context. Owner: the context; found while it is built. */
struct wf_rails {
    struct wf_world *world;
    int count;
    struct wf_rail each[WF_RAILS_MAX];
};

/* A rail as it is now, for any thread but the door's. */
void wf_rails_read(struct wf_rails *rails, int index, struct wf_rail *out);

static inline bool wf_rail_is_down(const struct wf_rail *rail)
{
    return atomic_load_explicit(&rail->down, memory_order_relaxed);
}

/*
 * Fills `rails` from the setting's text. "": the interfaces of the first rule of WF_RULE_CARD .. WF_RULE_LOOPBACK that
 * any falls under. Items: an interface, a prefix with '*', an address; a leading '^' turns the list into one of
 * exclusions. An interface stands for its first IPv4 address, else its first global IPv6 one, else its link-local one.
 * Returns the number of rails, or -ENODEV / -EINVAL / -E2BIG naming the item and what exists here.
 */
int wf_rails_find(const char *setting, struct wf_rail *rails, int max, struct wf_status *status);

/* The interfaces that the same setting leaves out, each with the rule that does it. `taken` has the rails that
 * wf_rails_find() has found. Returns how many, or -errno; the caller frees `list`, which is NULL then. */
struct wf_candidate;
int wf_rails_left_out(const char *setting, const struct wf_rail *taken, int count, struct wf_candidate **list);

/* "has no carrier": what the rule says of an interface. */
const char *wf_rail_rule_text(enum wf_rail_rule rule);

/* "its interface is down": why a rail is. */
const char *wf_rail_trouble_text(enum wf_rail_trouble trouble);

#endif
