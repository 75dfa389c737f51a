#include "core/rail/state.h"

#include <arpa/inet.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include "core/rail/address.h"

/* --- messages --- */

/* The fixed part of a message, and behind it `*attributes`. NULL: the message is too short. */
static const void *body(const struct nlmsghdr *message, size_t size, struct rtattr **attributes, long *left)
{
    if (message->nlmsg_len < NLMSG_LENGTH(size))
        return NULL;
    *attributes = (struct rtattr *)((char *)NLMSG_DATA(message) + NLMSG_ALIGN(size));
    *left = (long)message->nlmsg_len - (long)NLMSG_SPACE(size);
    return NLMSG_DATA(message);
}

bool wf_interface_read(const struct nlmsghdr *message, struct wf_interface *out)
{
    struct rtattr *one;
    long left;
    if (message->nlmsg_type != RTM_NEWLINK && message->nlmsg_type != RTM_DELLINK)
        return false;
    const struct ifinfomsg *about = body(message, sizeof *about, &one, &left);
    if (!about)
        return false;
    struct wf_interface found = {.index = (uint32_t)about->ifi_index, .flags = about->ifi_flags};
    for (; RTA_OK(one, left); one = RTA_NEXT(one, left))
        if (one->rta_type == IFLA_IFNAME)
            snprintf(found.name, sizeof found.name, "%.*s", (int)RTA_PAYLOAD(one), (const char *)RTA_DATA(one));
    *out = found;
    return found.name[0] != '\0';
}

static bool read_address(int family, const struct rtattr *attribute, struct sockaddr_storage *out)
{
    void *place = family == AF_INET ? (void *)&((struct sockaddr_in *)out)->sin_addr
                                    : (void *)&((struct sockaddr_in6 *)out)->sin6_addr;
    size_t size = family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
    if (RTA_PAYLOAD(attribute) != size)
        return false;
    out->ss_family = (sa_family_t)family;
    memcpy(place, RTA_DATA(attribute), size);
    return true;
}

bool wf_held_read(const struct nlmsghdr *message, struct wf_held *out)
{
    struct rtattr *one;
    long left;
    if (message->nlmsg_type != RTM_NEWADDR && message->nlmsg_type != RTM_DELADDR)
        return false;
    const struct ifaddrmsg *about = body(message, sizeof *about, &one, &left);
    if (!about || (about->ifa_family != AF_INET && about->ifa_family != AF_INET6))
        return false;
    struct wf_held found = {.index = about->ifa_index, .flags = about->ifa_flags, .prefix = about->ifa_prefixlen};
    bool known = false, local = false;
    for (; RTA_OK(one, left); one = RTA_NEXT(one, left)) {
        if (one->rta_type == IFA_FLAGS && RTA_PAYLOAD(one) == sizeof found.flags)
            memcpy(&found.flags, RTA_DATA(one), sizeof found.flags);
        /* On a point-to-point interface IFA_ADDRESS is the other end's address, and IFA_LOCAL is ours. */
        bool ours = one->rta_type == IFA_LOCAL;
        if (!ours && (one->rta_type != IFA_ADDRESS || local))
            continue;
        local |= ours;
        known |= read_address(about->ifa_family, one, &found.address);
    }
    wf_address_set_scope(&found.address, found.index);
    *out = found;
    return known;
}

static bool concerns(const struct nlmsghdr *message, const struct wf_rail *rail)
{
    struct wf_interface interface;
    struct wf_held held;
    switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        if (!wf_interface_read(message, &interface))
            return true;
        return interface.index == rail->index || strcmp(interface.name, rail->device) == 0;
    case RTM_NEWADDR:
    case RTM_DELADDR:
        return !wf_held_read(message, &held) || held.index == rail->index;
    default:
        return false;
    }
}

bool wf_rail_news(const void *messages, size_t length, const struct wf_rail *rails, int count)
{
    const struct nlmsghdr *message = messages;
    long left = (long)length; /* below 0 after a message without its padding */
    for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left))
        for (int i = 0; i < count; i++)
            if (concerns(message, &rails[i]))
                return true;
    return left > 0;
}

/* --- verdicts --- */

static uint32_t number_of(const struct sockaddr_storage *address)
{
    return ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
}

/* A loopback interface holds the whole subnet of each of its IPv4 addresses: 127.0.0.1/8 is all of 127. */
static bool in_held_subnet(const struct sockaddr_storage *address, const struct wf_held *held)
{
    if (address->ss_family != AF_INET || held->address.ss_family != AF_INET || held->prefix == 0 || held->prefix > 32)
        return false;
    return (number_of(address) ^ number_of(&held->address)) >> (32 - held->prefix) == 0;
}

enum wf_hold wf_rail_hold(const struct wf_rail *rail, const struct wf_interface *interface, const struct wf_held *held)
{
    struct sockaddr_storage wanted = rail->address;
    wf_address_set_scope(&wanted, interface->index);
    if (interface->index == 0 || held->index != interface->index)
        return WF_HOLD_NOT;
    bool covered = (interface->flags & IFF_LOOPBACK) && in_held_subnet(&wanted, held);
    if (!covered && !wf_address_same_host(&wanted, &held->address))
        return WF_HOLD_NOT;
    bool checked = !(held->flags & IFA_F_TENTATIVE) || (held->flags & IFA_F_OPTIMISTIC);
    return checked && !(held->flags & IFA_F_DADFAILED) ? WF_HOLD_FULLY : WF_HOLD_TENTATIVE;
}

static bool has_carrier(uint32_t flags, enum wf_rail_trouble before)
{
    bool about_to_run = (flags & IFF_LOWER_UP) && !(flags & IFF_DORMANT);
    return (flags & IFF_RUNNING) || (about_to_run && before == WF_RAIL_FINE);
}

enum wf_rail_trouble wf_rail_judge(const struct wf_interface *interface, enum wf_hold hold, enum wf_rail_trouble before)
{
    if (interface->index == 0)
        return WF_RAIL_GONE;
    if (!(interface->flags & IFF_UP))
        return WF_RAIL_SHUT;
    if (!has_carrier(interface->flags, before))
        return WF_RAIL_NO_CARRIER;
    if (hold == WF_HOLD_NOT)
        return WF_RAIL_NO_ADDRESS;
    return hold == WF_HOLD_TENTATIVE ? WF_RAIL_TENTATIVE : WF_RAIL_FINE;
}
