/* The interfaces of this machine, and which rule each of them falls under. */
#include "core/rail/candidate.h"

#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rail/address.h"

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

/* Is there hardware behind it? Others, as a veth, tell a rate that nothing keeps to. */
static bool is_hardware(const char *device)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/%s/device", device);
    return access(path, F_OK) == 0;
}

/* The first of the interfaces below this one, as a bond and a VLAN have them; false: there is none. */
static bool interface_below(const char *device, char name[IF_NAMESIZE])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/%s", device);
    DIR *folder = opendir(path);
    bool found = false;
    struct dirent *entry;
    while (folder && !found && (entry = readdir(folder)) != NULL) {
        found = strncmp(entry->d_name, "lower_", 6) == 0 && strlen(entry->d_name + 6) < IF_NAMESIZE;
        if (found)
            strcpy(name, entry->d_name + 6);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* In Mbit/s, as the driver tells; -1: not known. A bond's is the sum of those below it. */
static int32_t line_rate(const char *device)
{
    char below[IF_NAMESIZE] = "", deeper[IF_NAMESIZE];
    bool stacked = interface_below(device, below);
    while (stacked && !is_hardware(below) && interface_below(below, deeper))
        strcpy(below, deeper);
    return is_hardware(stacked ? below : device) ? read_number(device, "speed", -1) : -1;
}

static void fill_interface(struct wf_rail *rail, const char *device)
{
    memset(rail, 0, sizeof *rail);
    snprintf(rail->device, sizeof rail->device, "%s", device);
    snprintf(rail->name, sizeof rail->name, "%s", device);
    rail->index = if_nametoindex(device);
    rail->mtu = read_number(device, "mtu", -1);
    rail->speed_mbit = line_rate(device);
}

static void fill_address(struct wf_rail *rail, const struct sockaddr_storage *address)
{
    rail->address = *address;
    wf_address_set_port(&rail->address, 0);
    wf_address_text(&rail->address, false, rail->text, sizeof rail->text);
}

void wf_rail_fill(struct wf_rail *rail, const char *device, const struct sockaddr_storage *address, bool by_address)
{
    fill_interface(rail, device);
    fill_address(rail, address);
    if (by_address)
        snprintf(rail->name, sizeof rail->name, "%s", rail->text);
}

/* --- rules --- */

/* Names of Docker, Podman, libvirt, LXC, the networks of Kubernetes, and VPNs. A container's own eth0 counts as a
 * card. */
bool wf_interface_is_virtual(const char *name)
{
    static const char *const prefixes[] = {"docker",    "br-",    "veth",   "virbr", "vnet", "cni",
                                           "flannel",   "cali",   "tun",    "tap",   "wg",   "lxc",
                                           "tailscale", "podman", "cilium", "kube",  "lxdbr"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Is the interface a tunnel by its kind? Its name does not matter. */
static bool is_tunnel(const char *device)
{
    char path[128], line[64];
    snprintf(path, sizeof path, "/sys/class/net/%s/tun_flags", device);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, sizeof path, "/sys/class/net/%s/uevent", device);
    FILE *stream = fopen(path, "re");
    bool found = false;
    while (stream && !found && fgets(line, sizeof line, stream))
        found = strcmp(line, "DEVTYPE=wireguard\n") == 0;
    if (stream)
        fclose(stream);
    return found;
}

/* Is the interface a port of a bond, team or bridge? The address belongs to the bond, team or bridge then. */
static bool is_port(const char *device)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/class/net/%s/master", device);
    return access(path, F_OK) == 0;
}

static enum wf_rail_rule rule_of(const struct wf_rail *rail, unsigned flags)
{
    bool has_address = rail->address.ss_family != AF_UNSPEC;
    if (!has_address && is_port(rail->device))
        return WF_RULE_PORT;
    if (!(flags & IFF_UP))
        return WF_RULE_DOWN;
    if (!has_address)
        return WF_RULE_NO_ADDRESS;
    if (!(flags & IFF_RUNNING))
        return WF_RULE_NO_CARRIER;
    if (wf_address_is_loopback(&rail->address))
        return WF_RULE_LOOPBACK;
    bool link_local = wf_address_is_link_local(&rail->address);
    if (link_local && is_port(rail->device)) /* the bridge takes the frames that its port receives */
        return WF_RULE_VIRTUAL_LINK;
    if (wf_interface_is_virtual(rail->device) || is_tunnel(rail->device))
        return link_local ? WF_RULE_VIRTUAL_LINK : WF_RULE_VIRTUAL;
    return link_local ? WF_RULE_LINK_LOCAL : WF_RULE_CARD;
}

const char *wf_rail_rule_text(enum wf_rail_rule rule)
{
    static const char *const texts[] = {
        [WF_RULE_CARD] = "nothing speaks against it",
        [WF_RULE_LINK_LOCAL] = "has only a link-local address, and others have more",
        [WF_RULE_VIRTUAL] = "is of containers, virtual machines or a VPN, by its name or kind",
        [WF_RULE_LOOPBACK] = "reaches this machine alone",
        [WF_RULE_VIRTUAL_LINK] = "is a port or tunnel of a bridge, containers or a VPN, with only a link-local address",
        [WF_RULE_NO_CARRIER] = "has no carrier",
        [WF_RULE_DOWN] = "is down",
        [WF_RULE_NO_ADDRESS] = "has no address",
        [WF_RULE_PORT] = "is a port of a bond, team or bridge, which has the address",
        [WF_RULE_EXCLUDED] = "is excluded (setting rails)",
        [WF_RULE_NOT_NAMED] = "is not named (setting rails)",
        [WF_RULE_TOO_MANY] = "comes after as many rails as there may be",
    };
    return texts[rule];
}

/* --- the list --- */

/* Does `address` stand for its interface better than `known`? The first IPv4 address is best, then the first IPv6
 * address that is not link-local. */
static bool is_better(const struct sockaddr_storage *address, const struct sockaddr_storage *known)
{
    if (known->ss_family != AF_INET6)
        return known->ss_family == AF_UNSPEC;
    return address->ss_family == AF_INET || (wf_address_is_link_local(known) && !wf_address_is_link_local(address));
}

/* The entry of an interface in `list`, made if it is missing: `list` has room for every entry of the kernel's list. */
static struct wf_candidate *entry_of(struct wf_candidate *list, int *count, const struct ifaddrs *one)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(list[i].rail.device, one->ifa_name) == 0)
            return &list[i];
    fill_interface(&list[*count].rail, one->ifa_name);
    return &list[(*count)++];
}

/* Reads an address that counts. */
static bool read_address(const struct ifaddrs *one, int family, struct sockaddr_storage *address)
{
    return wf_address_read(one->ifa_addr, address) && (family == AF_UNSPEC || address->ss_family == family);
}

static int list_all(const struct ifaddrs *all, int family, struct wf_candidate *list)
{
    int count = 0;
    for (int with_address = 1; with_address >= 0; with_address--)
        for (const struct ifaddrs *one = all; one; one = one->ifa_next) {
            struct sockaddr_storage address = {0};
            if (read_address(one, family, &address) != with_address)
                continue;
            struct wf_candidate *candidate = entry_of(list, &count, one);
            if (with_address && is_better(&address, &candidate->rail.address))
                fill_address(&candidate->rail, &address);
            candidate->rule = rule_of(&candidate->rail, one->ifa_flags);
        }
    return count;
}

int wf_candidates_list(int family, struct wf_candidate **list)
{
    struct ifaddrs *all;
    size_t entries = 0;
    *list = NULL;
    if (getifaddrs(&all) != 0)
        return -errno;
    for (struct ifaddrs *one = all; one; one = one->ifa_next)
        entries++;
    *list = calloc(entries + 1, sizeof **list);
    int count = *list ? list_all(all, family, *list) : -ENOMEM;
    freeifaddrs(all);
    return count;
}
