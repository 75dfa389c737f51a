#include "core/rail.h"

#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "core/address.h"

static int32_t read_number(const char *device, const char *file, int32_t otherwise)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/%s/%s", device, file);
    FILE *stream = fopen(path, "re");
    long value = otherwise;
    if (stream) {
        if (fscanf(stream, "%ld", &value) != 1)
            value = otherwise;
        fclose(stream);
    }
    return value > 0 && value <= INT32_MAX ? (int32_t)value : otherwise;
}

static void fill(struct wf_rail *rail, const char *device, const struct sockaddr_storage *address, bool by_address)
{
    memset(rail, 0, sizeof *rail);
    rail->address = *address;
    wf_address_set_port(&rail->address, 0);
    wf_address_text(&rail->address, false, rail->text, sizeof rail->text);
    snprintf(rail->device, sizeof rail->device, "%s", device);
    snprintf(rail->name, sizeof rail->name, "%s", by_address ? rail->text : device);
    rail->index = if_nametoindex(device);
    rail->mtu = read_number(device, "mtu", -1);
    rail->speed_mbit = read_number(device, "speed", -1);
}

/* An address of an interface that traffic can be bound to. */
static bool usable(const struct ifaddrs *one, struct sockaddr_storage *address)
{
    if (!one->ifa_addr || !(one->ifa_flags & IFF_UP))
        return false;
    memset(address, 0, sizeof *address);
    if (one->ifa_addr->sa_family == AF_INET)
        memcpy(address, one->ifa_addr, sizeof(struct sockaddr_in));
    else if (one->ifa_addr->sa_family == AF_INET6)
        memcpy(address, one->ifa_addr, sizeof(struct sockaddr_in6));
    else
        return false;
    return true;
}

/* Not asked of an interface that is named: the kernel may tell of a link that came up as late as a second after it did.
 */
static bool running(const struct ifaddrs *one)
{
    return one->ifa_flags & IFF_RUNNING;
}

/* One candidate for each interface: its first IPv4 address, else its best IPv6 one. */
static int list_interfaces(struct wf_rail *rails, int max, bool named)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return -errno;
    int count = 0;
    for (struct ifaddrs *one = all; one; one = one->ifa_next) {
        struct sockaddr_storage address;
        if (!usable(one, &address) || (!named && !running(one)))
            continue;
        int index = 0;
        while (index < count && strcmp(rails[index].device, one->ifa_name) != 0)
            index++;
        bool known = index < count;
        bool better = known && (rails[index].address.ss_family == AF_INET6) &&
                      (address.ss_family == AF_INET ||
                       (wf_address_is_link_local(&rails[index].address) && !wf_address_is_link_local(&address)));
        if (known && !better)
            continue;
        if (!known && count == max)
            continue;
        fill(&rails[index], one->ifa_name, &address, false);
        count += !known;
    }
    freeifaddrs(all);
    return count;
}

#define CANDIDATES 128

static bool item_matches(const char *item, const struct wf_rail *rail)
{
    struct sockaddr_storage address;
    size_t length = strlen(item);
    if (wf_address_numeric(item, &address) == 0)
        return wf_address_same_host(&address, &rail->address);
    if (length > 0 && item[length - 1] == '*')
        return strncmp(rail->device, item, length - 1) == 0;
    return strcmp(rail->device, item) == 0;
}

static bool excluded(const char *list, const struct wf_rail *rail)
{
    char copy[1024], *rest = copy, *item;
    snprintf(copy, sizeof copy, "%s", list);
    while ((item = strsep(&rest, ",")))
        if (item_matches(item, rail))
            return true;
    return false;
}

/* Every interface with an address that means something beyond its link, but loopback and those in `exclusions`;
 * loopback alone where nothing else is left. */
static int find_usable(const char *exclusions, struct wf_rail *rails, int max, struct wf_status *status)
{
    struct wf_rail all[CANDIDATES], loopback;
    bool has_loopback = false;
    int count = list_interfaces(all, CANDIDATES, false), chosen = 0;
    for (int i = 0; i < count; i++) {
        if (excluded(exclusions, &all[i]))
            continue;
        if (wf_address_is_loopback(&all[i].address)) {
            loopback = all[i];
            has_loopback = true;
        } else if (!wf_address_is_link_local(&all[i].address) && chosen < max) {
            rails[chosen++] = all[i];
        }
    }
    if (chosen == 0 && has_loopback)
        rails[chosen++] = loopback;
    if (chosen == 0)
        return wf_fail(status, -ENODEV, "no usable network interface (rails = '%s%s'): none is up with an address",
                       exclusions[0] ? "^" : "", exclusions);
    return chosen;
}

static void describe_all(const struct wf_rail *all, int count, char *text, size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < count && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s (%s)", i ? ", " : "", all[i].device, all[i].text);
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
        if (!usable(one, &own))
            continue;
        bool loop =
            (one->ifa_flags & IFF_LOOPBACK) && wf_address_is_loopback(address) && own.ss_family == address->ss_family;
        if (loop || wf_address_same_host(&own, address))
            found = strncpy(name, one->ifa_name, IF_NAMESIZE - 1);
    }
    freeifaddrs(all);
    return found;
}

static int add_address(const struct sockaddr_storage *address, struct wf_rail *rail)
{
    char device[IF_NAMESIZE] = "";
    if (!owner_of(address, device))
        return -ENODEV;
    fill(rail, device, address, true);
    return 1;
}

/* One item of a list: an address, an interface, a prefix. Returns how many rails it added. */
static int add_item(const char *item, struct wf_rail *rails, int max)
{
    struct sockaddr_storage address;
    int result = wf_address_numeric(item, &address);
    if (result == 0)
        return add_address(&address, rails);
    if (result != -EINVAL)
        return result;
    struct wf_rail all[CANDIDATES];
    int count = list_interfaces(all, CANDIDATES, true), added = 0;
    for (int i = 0; i < count && added < max; i++)
        if (item_matches(item, &all[i]))
            rails[added++] = all[i];
    return added ? added : -ENODEV;
}

static bool is_known(const struct wf_rail *rails, int count, const struct wf_rail *rail)
{
    for (int i = 0; i < count; i++)
        if (wf_address_same_host(&rails[i].address, &rail->address))
            return true;
    return false;
}

static int find_named(const char *list, struct wf_rail *rails, int max, struct wf_status *status)
{
    char copy[1024], *rest = copy, *item;
    snprintf(copy, sizeof copy, "%s", list);
    int count = 0;
    while ((item = strsep(&rest, ","))) {
        if (count == max)
            return wf_fail(status, -E2BIG, "rails = '%s' names more than %d rails: name fewer", list, max);
        int added = add_item(item, rails + count, max - count);
        if (added > 0 && is_known(rails, count, &rails[count]))
            return wf_fail(status, -EINVAL, "rails = '%s' names rail '%s' twice", list, item);
        if (added == -EDESTADDRREQ)
            return wf_fail(status, -EINVAL,
                           "rail '%s' (setting rails) is link-local: name its interface too, as in %s%%eth0", item,
                           item);
        if (added < 0) {
            struct wf_rail all[CANDIDATES];
            char here[160];
            describe_all(all, list_interfaces(all, CANDIDATES, true), here, sizeof here);
            return wf_fail(status, -ENODEV, "rail '%s' (setting rails) is not here, or is down; here are: %s", item,
                           here);
        }
        count += added;
    }
    return count;
}

/* The bytes of an address, and how many; NULL for families that are none of ours. */
static const uint8_t *address_bytes(const struct sockaddr *address, size_t *length)
{
    *length = address->sa_family == AF_INET ? 4 : 16;
    if (address->sa_family == AF_INET)
        return (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr;
    if (address->sa_family == AF_INET6)
        return (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr;
    return NULL;
}

/* Is the rail's address in the subnet of this one? */
static bool in_subnet(const struct ifaddrs *one, const struct wf_rail *rail)
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

/* Of several subnets of its interface the narrowest is the rail's, as for the kernel. Link-local addresses name their
 * interface: they are never in doubt. */
static void note_subnets(struct wf_rail *rails, int count)
{
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return;
    for (int i = 0; i < count; i++)
        for (struct ifaddrs *one = all; one; one = one->ifa_next) {
            bool own = strcmp(one->ifa_name, rails[i].device) == 0;
            if (own && in_subnet(one, &rails[i]) && prefix_of(one) > rails[i].prefix)
                rails[i].prefix = prefix_of(one);
            else if (!own && !wf_address_is_link_local(&rails[i].address))
                rails[i].crowded |= in_subnet(one, &rails[i]);
        }
    freeifaddrs(all);
}

int wf_rails_find(const char *setting, struct wf_rail *rails, int max, struct wf_status *status)
{
    bool usable_ones = setting[0] == '\0' || setting[0] == '^';
    int count = usable_ones ? find_usable(setting[0] ? setting + 1 : "", rails, max, status)
                            : find_named(setting, rails, max, status);
    note_subnets(rails, count);
    return count;
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
