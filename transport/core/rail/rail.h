/*
 * rail.h: one NIC port with the local address that our sockets bind to. A rail is found (every usable interface) or
 * named by the setting `rails`; its sockets are bound to its address and its interface, so that two NICs in one subnet
 * both carry traffic.
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

/* Why a rail cannot be used. */
enum wf_rail_trouble {
    WF_RAIL_FINE,       /* this machine knows of no trouble */
    WF_RAIL_GONE,       /* its interface is not there */
    WF_RAIL_SHUT,       /* its interface is down */
    WF_RAIL_NO_CARRIER, /* its interface has no carrier: a cable, or the switch at the other end */
    WF_RAIL_NO_ADDRESS, /* its interface does not hold its address */
    WF_RAIL_TENTATIVE,  /* IPv6: the kernel does not know yet that no other host has the address, or one has it */
};

/*
 * The kind of an interface when the setting `rails` names none. Take the least of the first four rules that some
 * interface has: the interfaces of this rule become rails. All others become rails only if they are named, or never.
 */
enum wf_rail_rule {
    WF_RULE_CARD,         /* a network card, bond, team, VLAN, macvlan, or a container's own interface */
    WF_RULE_LINK_LOCAL,   /* such an interface, with only a link-local address */
    WF_RULE_VIRTUAL,      /* a bridge, port or tunnel of containers, virtual machines or a VPN */
    WF_RULE_LOOPBACK,     /* reaches this machine alone */
    WF_RULE_VIRTUAL_LINK, /* VIRTUAL, or a port, with only a link-local address. It and the next: a rail if named */
    WF_RULE_NO_CARRIER,   /* up, without carrier; the rail is used once the carrier comes */
    WF_RULE_DOWN,         /* this and the next two: never a rail */
    WF_RULE_NO_ADDRESS,
    WF_RULE_PORT,      /* a port of a bond, team or bridge, without an address of its own */
    WF_RULE_EXCLUDED,  /* the setting `rails` excludes it */
    WF_RULE_NOT_NAMED, /* the setting `rails` names others */
    WF_RULE_TOO_MANY,  /* as many rails as are allowed come before it */
};

/*
 * Found once, when the context is created. Afterwards only the door's thread writes, holding world.lock, and only
 * `device`, `index`, the scope of `address`, `down` and `trouble` (core/rail/watch.h).
 */
struct wf_rail {
    char name[64];                   /* interface, or the address where one interface carries several rails */
    char device[32];                 /* interface */
    uint32_t index;                  /* the interface's number, valid on this machine alone */
    char text[64];                   /* address for messages */
    int prefix;                      /* bits of its subnet; 0: unknown */
    bool crowded;                    /* another interface has an address in the same subnet */
    enum wf_rail_rule rule;          /* by which it became a rail */
    struct sockaddr_storage address; /* port 0; with `index` where it is link-local */
    int32_t mtu;
    int32_t speed_mbit;  /* -1: unknown */
    _Atomic bool down;   /* cannot be used: `trouble` says why. May be read without the lock */
    _Atomic int trouble; /* enum wf_rail_trouble */
};

/* The rails of a context. Owner: the context; found while it is built. */
struct wf_rails {
    struct wf_world *world;
    int count;
    struct wf_rail each[WF_RAILS_MAX];
};

/* Copies a rail as it is now. Any thread but the door's. */
void wf_rails_read(struct wf_rails *rails, int index, struct wf_rail *out);

/* Of the interface, bytes a second; 0: unknown. */
static inline uint64_t wf_rail_line_rate(const struct wf_rail *rail)
{
    return rail->speed_mbit > 0 ? (uint64_t)rail->speed_mbit * 125000 : 0;
}

static inline bool wf_rail_is_down(const struct wf_rail *rail)
{
    return atomic_load_explicit(&rail->down, memory_order_relaxed);
}

/*
 * Fills `rails` from the setting's text. "": the interfaces of the first rule of WF_RULE_CARD .. WF_RULE_LOOPBACK that
 * any interface has. Items of the list: an interface, a prefix with '*', an address. A leading '^': the list names the
 * interfaces to exclude. An interface stands for its first IPv4 address, else its first global IPv6 one, else its
 * link-local one; only addresses of `family` (AF_INET, AF_INET6; AF_UNSPEC: both) count. Returns the number of rails,
 * or -E2BIG, -EINVAL, -ENODEV (nothing here is called so) or -ENETDOWN (it is here, but down or without an address; or
 * nothing can be taken unasked) with a text that names the item and the interfaces of this machine.
 * `alias`: the variable of another program that the setting comes from, or NULL. With it, items that match nothing
 * usable are skipped, what several items match is taken once, and rails above `max` are left out; -ENODEV or -ENETDOWN
 * if none is left, with a text that names the variable, too.
 */
int wf_rails_find(const char *setting, const char *alias, int family, struct wf_rail *rails, int max,
                  struct wf_status *status);

/* The interfaces that the same settings leave out, each with the rule that does it. `taken`: the rails that
 * wf_rails_find() has found. Returns how many, or -errno and NULL in `list`. The caller frees `list`. */
struct wf_candidate;
int wf_rails_left_out(const char *setting, int family, const struct wf_rail *taken, int count,
                      struct wf_candidate **list);

/* "has no carrier": what the rule says of an interface. */
const char *wf_rail_rule_text(enum wf_rail_rule rule);

/* "its interface is down": the trouble of a rail as text. */
const char *wf_rail_trouble_text(enum wf_rail_trouble trouble);

#endif
