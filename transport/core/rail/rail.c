#include "core/rail/rail.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "core/rail/address.h"
#include "core/rail/candidate.h"

static bool is_prefix(const char *item)
{
    size_t length = strlen(item);
    return length > 0 && item[length - 1] == '*';
}

static bool item_matches(const char *item, const struct wf_rail *rail)
{
    struct sockaddr_storage address;
    if (wf_address_numeric(item, &address) == 0)
        return wf_address_same_host(&address, &rail->address);
    if (is_prefix(item))
        return strncmp(rail->device, item, strlen(item) - 1) == 0;
    return strcmp(rail->device, item) == 0;
}

static bool excluded(const char *list, const struct wf_rail *rail)
{
    char copy[WF_VALUE_MAX], *rest = copy, *item;
    snprintf(copy, sizeof copy, "%s", list);
    while ((item = strsep(&rest, ",")))
        if (item_matches(item, rail))
            return true;
    return false;
}

/* "eth0 (10.0.0.1), eth1 (is down)": the interfaces that `rails` may name, and why it may not name the others. */
static void describe_all(const struct wf_candidate *all, int count, char *text, size_t room)
{
    size_t used = 0;
    snprintf(text, room, "none");
    for (int i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s (%s)", i ? ", " : "", all[i].rail.device,
                                 wf_candidate_usable(&all[i]) ? all[i].rail.text : wf_rail_rule_text(all[i].rule));
}

/* Returns the least rule in `all`: if `rails` names no interface, the interfaces of this rule become rails, unless it
 * is above WF_RULE_LOOPBACK. Sets the `rule` of excluded interfaces to WF_RULE_EXCLUDED. */
static enum wf_rail_rule choose_rule(const char *exclusions, struct wf_candidate *all, int count)
{
    enum wf_rail_rule least = WF_RULE_NOT_NAMED;
    for (int i = 0; i < count; i++) {
        if (wf_candidate_usable(&all[i]) && excluded(exclusions, &all[i].rail))
            all[i].rule = WF_RULE_EXCLUDED;
        if (all[i].rule < least)
            least = all[i].rule;
    }
    return least;
}

static int take(enum wf_rail_rule rule, const struct wf_candidate *all, int count, struct wf_rail *rails, int max)
{
    int chosen = 0;
    for (int i = 0; i < count && rule <= WF_RULE_LOOPBACK && chosen < max; i++) {
        if (all[i].rule != rule)
            continue;
        rails[chosen] = all[i].rail;
        rails[chosen++].rule = rule;
    }
    return chosen;
}

static int find_usable(const char *exclusions, int family, struct wf_rail *rails, int max, struct wf_status *status)
{
    struct wf_candidate *all;
    int count = wf_candidates_list(family, &all);
    if (count < 0)
        return wf_fail(status, count, "cannot read the interfaces of this machine: %s", wf_strerror(count));
    int chosen = take(choose_rule(exclusions, all, count), all, count, rails, max);
    char here[160];
    describe_all(all, count, here, sizeof here);
    free(all);
    if (chosen > 0)
        return chosen;
    return wf_fail(status, -ENETDOWN,
                   "no network interface is taken unasked: none is up with carrier and an address that others reach; "
                   "here are: %s%s%.60s%s",
                   here, exclusions[0] ? "; rails = ^" : "", exclusions, strlen(exclusions) > 60 ? "..." : "");
}

static bool read_up(const struct ifaddrs *one, struct sockaddr_storage *address)
{
    return (one->ifa_flags & IFF_UP) && wf_address_read(one->ifa_addr, address);
}

/* The interface that owns an address; all of 127/8 belongs to loopback. */
static const char *owner_of(const struct sockaddr_storage *address, char name[IF_NAMESIZE])
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return NULL;
    const char *found = NULL;
    for (struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        struct sockaddr_storage own;
        if (!read_up(one, &own))
            continue;
        bool loop =
            (one->ifa_flags & IFF_LOOPBACK) && wf_address_is_loopback(address) && own.ss_family == address->ss_family;
        if (loop || wf_address_same_host(&own, address))
            found = strncpy(name, one->ifa_name, IF_NAMESIZE - 1);
    }
    freeifaddrs(all);
    return found;
}

static bool is_known(const struct wf_rail *rails, int count, const struct wf_rail *rail)
{
    for (int i = 0; i < count; i++)
        if (wf_address_same_host(&rails[i].address, &rail->address))
            return true;
    return false;
}

/* Rails, and the most that there may be. */
struct found {
    struct wf_rail *rails;
    int count, max;
};

/* 1; 0: it is among them. -E2BIG: there is no room. */
static int add(struct found *found, const struct wf_rail *rail)
{
    if (is_known(found->rails, found->count, rail))
        return 0;
    if (found->count == found->max)
        return -E2BIG;
    found->rails[found->count++] = *rail;
    return 1;
}

static int add_address(const struct sockaddr_storage *address, struct found *found)
{
    char device[IF_NAMESIZE] = "";
    struct wf_rail rail;
    if (!owner_of(address, device))
        return wf_address_is_local(address) ? -ENETDOWN : -ENODEV;
    wf_rail_fill(&rail, device, address, true);
    return add(found, &rail);
}

/* One item of a list: an address, an interface, a prefix. Returns how many rails it added, 0 if all of them are known;
 * -ENODEV: there is nothing of that name here; -ENETDOWN: there is, and it cannot be used as it is; -E2BIG: there are
 * more than there may be, which it added. */
static int add_item(const char *item, int family, struct found *found)
{
    struct sockaddr_storage address;
    int result = wf_address_numeric(item, &address);
    if (result == 0)
        return add_address(&address, found);
    if (result != -EINVAL)
        return result;
    struct wf_candidate *all;
    int count = wf_candidates_list(family, &all), before = found->count;
    bool present = false, usable = false;
    for (int i = 0; i < count && result != -E2BIG; i++) {
        if (!item_matches(item, &all[i].rail))
            continue;
        present = true;
        if (!wf_candidate_usable(&all[i]))
            continue;
        usable = true;
        result = add(found, &all[i].rail);
    }
    free(all);
    if (result == -E2BIG)
        return result;
    return usable ? found->count - before : present ? -ENETDOWN : -ENODEV;
}

/* Why the item is no rail: `code` is what add_item() says. */
static int refuse_item(const char *item, int family, int code, struct wf_status *status)
{
    if (item[0] == '\0')
        return wf_fail(status, -EINVAL,
                       "rails has an empty item: write names or addresses with one comma between them");
    if (code == -EDESTADDRREQ)
        return wf_fail(status, -EINVAL,
                       "rail '%s' (setting rails) is link-local: name its interface too, as in %s%%eth0", item, item);
    struct wf_candidate *all;
    char here[160];
    int found = wf_candidates_list(family, &all);
    describe_all(all, found, here, sizeof here);
    free(all);
    return wf_fail(status, code, "rail '%.60s' (setting rails) %s; here are: %s", item,
                   code == -ENETDOWN ? "is down, or has no address" : "is not here", here);
}

static int find_named(const char *list, int family, struct wf_rail *rails, int max, struct wf_status *status)
{
    char copy[WF_VALUE_MAX], *rest = copy, *item;
    snprintf(copy, sizeof copy, "%s", list);
    struct found found = {.rails = rails, .max = max};
    while ((item = strsep(&rest, ","))) {
        int added = add_item(item, family, &found);
        if (added == -E2BIG)
            return wf_fail(status, -E2BIG, "rails = '%.40s...' names more than %d rails: name fewer", list, max);
        if (added < 0)
            return refuse_item(item, family, added, status);
        if (added == 0 && !is_prefix(item)) /* a prefix may mean what was named before it */
            return wf_fail(status, -EINVAL, "rails names rail '%.60s' twice", item);
    }
    return found.count;
}

/* The union of what the items match, as NCCL reads its list: it was written for many machines, so an item that matches
 * nothing usable on this one is no mistake. */
static int find_matching(const char *list, int family, struct wf_rail *rails, int max, struct wf_status *status)
{
    char copy[WF_VALUE_MAX], *rest = copy, *item;
    snprintf(copy, sizeof copy, "%s", list);
    struct found usable = {.rails = rails, .max = max};
    int code = -ENODEV;
    while ((item = strsep(&rest, ",")))
        if (add_item(item, family, &usable) == -ENETDOWN)
            code = -ENETDOWN;
    if (usable.count > 0)
        return usable.count;
    struct wf_candidate *all;
    char here[160];
    int found = wf_candidates_list(family, &all);
    describe_all(all, found, here, sizeof here);
    free(all);
    return wf_fail(status, code, "rails = '%.60s%s' matches no interface that is up and has an address; here are: %s",
                   list, strlen(list) > 60 ? "..." : "", here);
}

/* The bytes of an address, and how many; NULL: the family is neither IPv4 nor IPv6. */
static const uint8_t *address_bytes(const struct sockaddr *address, size_t *length)
{
    *length = address->sa_family == AF_INET ? 4 : 16;
    if (address->sa_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
    if (address->sa_family == AF_INET6)
        return (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr;
    return NULL;
}

/* Is the rail's address in the subnet of the address `one`? */
static bool rail_in_subnet(const struct ifaddrs *one, const struct wf_rail *rail)
{
    size_t length;
    if (!one->ifa_addr || !one->ifa_netmask || one->ifa_addr->sa_family != rail->address.ss_family)
        return false;
    const uint8_t *theirs = address_bytes(one->ifa_addr, &length), *mask = address_bytes(one->ifa_netmask, &length);
    const uint8_t *ours = address_bytes((const struct sockaddr *)&rail->address, &length);
    if (!theirs || !mask || !ours)
        return false;
    for (size_t i = 0; i < length; i++)
        if ((theirs[i] ^ ours[i]) & mask[i])
            return false;
    return true;
}

static int prefix_of(const struct ifaddrs *one)
{
    size_t length;
    int bits = 0;
    const uint8_t *mask = address_bytes(one->ifa_netmask, &length);
    for (size_t i = 0; mask && i < length; i++)
        bits += __builtin_popcount(mask[i]);
    return bits;
}

/* If several subnets of its interface contain the rail's address, the narrowest is the rail's, as for the kernel. A
 * link-local address names its interface, so no other interface makes it crowded. */
static void note_subnets(struct wf_rail *rails, int count)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return;
    for (int i = 0; i < count; i++)
        for (struct ifaddrs *one = all; one; one = one->ifa_next) {
            bool own = strcmp(one->ifa_name, rails[i].device) == 0;
            if (own && rail_in_subnet(one, &rails[i]) && prefix_of(one) > rails[i].prefix)
                rails[i].prefix = prefix_of(one);
            else if (!own && !wf_address_is_link_local(&rails[i].address))
                rails[i].crowded |= rail_in_subnet(one, &rails[i]);
        }
    freeifaddrs(all);
}

int wf_rails_find(const char *setting, const char *alias, int family, struct wf_rail *rails, int max,
                  struct wf_status *status)
{
    int count;
    if (setting[0] == '\0' || setting[0] == '^')
        count = find_usable(setting[0] ? setting + 1 : "", family, rails, max, status);
    else if (alias)
        count = find_matching(setting, family, rails, max, status);
    else
        count = find_named(setting, family, rails, max, status);
    if (count < 0 && alias)
        (void)wf_fail_prefix(status, "%s", alias);
    note_subnets(rails, count);
    return count;
}

/* Is a rail made of this interface already, with whatever address? */
static bool is_taken(const struct wf_rail *rails, int count, const struct wf_candidate *candidate)
{
    for (int i = 0; i < count; i++)
        if (strcmp(rails[i].device, candidate->rail.device) == 0)
            return true;
    return false;
}

int wf_rails_left_out(const char *setting, int family, const struct wf_rail *taken, int count,
                      struct wf_candidate **out)
{
    int all = wf_candidates_list(family, out), left = 0;
    struct wf_candidate *list = *out;
    bool named = setting[0] && setting[0] != '^';
    enum wf_rail_rule rule = choose_rule(setting[0] == '^' ? setting + 1 : "", list, all);
    for (int i = 0; i < all; i++) {
        if (is_taken(taken, count, &list[i]))
            continue;
        list[left] = list[i];
        if (named && wf_candidate_usable(&list[i]))
            list[left].rule = WF_RULE_NOT_NAMED;
        else if (!named && rule <= WF_RULE_LOOPBACK && list[i].rule == rule)
            list[left].rule = WF_RULE_TOO_MANY;
        left++;
    }
    return all < 0 ? all : left;
}

const char *wf_rail_trouble_text(enum wf_rail_trouble trouble)
{
    static const char *const texts[] = {
        [WF_RAIL_FINE] = "nothing is wrong with it",
        [WF_RAIL_GONE] = "its interface is gone",
        [WF_RAIL_SHUT] = "its interface is down",
        [WF_RAIL_NO_CARRIER] = "its interface has no carrier",
        [WF_RAIL_NO_ADDRESS] = "its interface does not hold its address",
        [WF_RAIL_TENTATIVE] = "its address is not known to be its own alone",
    };
    return texts[trouble];
}

void wf_rails_read(struct wf_rails *rails, int index, struct wf_rail *out)
{
    pthread_mutex_lock(&rails->world->lock);
    *out = rails->each[index];
    pthread_mutex_unlock(&rails->world->lock);
}
