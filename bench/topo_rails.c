/* The setting `rails`, resolved without opening anything. The library does the same in core/rail.c, for itself. */
#include "topo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

struct finding {
    const struct wf_machine *machine;
    struct wf_plan_request *request;
    struct ifaddrs *addresses; /* of this machine; NULL: another one */
};

/* --- addresses --- */

static bool has_family(const struct ifaddrs *one, int family)
{
    return one->ifa_addr && one->ifa_addr->sa_family == family;
}

static bool holds_v4(const struct ifaddrs *one, const struct in_addr *address)
{
    if (!has_family(one, AF_INET))
        return false;
    if ((one->ifa_flags & IFF_LOOPBACK) && ntohl(address->s_addr) >> 24 == 127)
        return true; /* all of 127/8 is its own */
    return ((const struct sockaddr_in *)one->ifa_addr)->sin_addr.s_addr == address->s_addr;
}

static bool holds_v6(const struct ifaddrs *one, const struct in6_addr *address)
{
    return has_family(one, AF_INET6) &&
           memcmp(&((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, address, sizeof(*address)) == 0;
}

/* True when the item is an address; `device` is the interface that holds it, or "". */
static bool read_address(const struct finding *finding, const char *item, char device[IF_NAMESIZE])
{
    struct in_addr v4;
    struct in6_addr v6;
    char bare[INET6_ADDRSTRLEN];
    const char *zone = strchr(item, '%');

    snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(item, "%"), item);
    bool is_v4 = inet_pton(AF_INET, bare, &v4) == 1, is_v6 = inet_pton(AF_INET6, bare, &v6) == 1;
    device[0] = '\0';
    for (const struct ifaddrs *one = finding->addresses; one && (is_v4 || is_v6) && !device[0]; one = one->ifa_next)
        if (((is_v4 && holds_v4(one, &v4)) || (is_v6 && holds_v6(one, &v6))) &&
            (!zone || strcmp(zone + 1, one->ifa_name) == 0))
            bench_copy_text(device, IF_NAMESIZE, one->ifa_name);
    return is_v4 || is_v6;
}

/* Up, with an address that means something beyond its link. */
static bool usable(const struct finding *finding, const char *name, bool *loopback)
{
    for (const struct ifaddrs *one = finding->addresses; one; one = one->ifa_next) {
        if (strcmp(one->ifa_name, name) != 0 || !(one->ifa_flags & IFF_UP) || !(one->ifa_flags & IFF_RUNNING))
            continue;
        *loopback = one->ifa_flags & IFF_LOOPBACK;
        if (has_family(one, AF_INET) ||
            (has_family(one, AF_INET6) &&
             !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr)))
            return true;
    }
    return false;
}

/* --- items of the list --- */

static bool item_matches(const struct finding *finding, const char *item, const char *name)
{
    char device[IF_NAMESIZE];
    size_t length = strlen(item);
    if (read_address(finding, item, device))
        return strcmp(device, name) == 0;
    if (length && item[length - 1] == '*')
        return strncmp(name, item, length - 1) == 0;
    return strcmp(name, item) == 0;
}

static bool excluded(const struct finding *finding, const char *list, const char *name)
{
    char copy[WF_VALUE_MAX], *rest = copy;
    bench_copy_text(copy, sizeof(copy), list);
    for (char *item; (item = bench_next_word(&rest, ','));)
        if (item_matches(finding, item, name))
            return true;
    return false;
}

static int add(struct finding *finding, const char *name, const char *device, struct wf_status *status)
{
    struct wf_plan_request *request = finding->request;
    for (int i = 0; i < request->rail_count; i++)
        if (strcmp(request->rails[i].name, name) == 0)
            return wf_fail(status, -EINVAL, "rails names '%.60s' twice", name);
    if (request->rail_count == WF_PLAN_RAILS)
        return wf_fail(status, -EINVAL, "rails names more than %d rails: name fewer", WF_PLAN_RAILS);
    struct wf_plan_rail_request *rail = &request->rails[request->rail_count++];
    bench_copy_text(rail->name, sizeof(rail->name), name);
    bench_copy_text(rail->device, sizeof(rail->device), device);
    return 0;
}

static int not_there(const struct finding *finding, const char *item, struct wf_status *status)
{
    char here[160] = "none";
    size_t used = 0;
    for (int i = 0; i < finding->machine->nic_count && used < sizeof(here); i++)
        used +=
            (size_t)snprintf(here + used, sizeof(here) - used, "%s%s", i ? ", " : "", finding->machine->nics[i].name);
    return wf_fail(status, -EINVAL, "rail '%.60s' (setting rails) is not %s; there are: %s", item,
                   finding->machine->foreign ? "a NIC of that machine" : "here", here);
}

static int add_item(struct finding *finding, const char *item, struct wf_status *status)
{
    char device[IF_NAMESIZE];
    int before = finding->request->rail_count, rc = 0;

    if (read_address(finding, item, device))
        return device[0] ? add(finding, item, device, status) : not_there(finding, item, status);
    for (int i = 0; i < finding->machine->nic_count && rc == 0; i++)
        if (item_matches(finding, item, finding->machine->nics[i].name))
            rc = add(finding, finding->machine->nics[i].name, finding->machine->nics[i].name, status);
    return rc || finding->request->rail_count > before ? rc : not_there(finding, item, status);
}

/* --- the whole --- */

/* Those that are up on another machine, or can be used on this one; loopback where nothing else is left. */
static int add_usable(struct finding *finding, const char *exclusions, struct wf_status *status)
{
    const struct wf_machine *machine = finding->machine;
    const char *spare = NULL;
    int rc = 0;

    for (int i = 0; i < machine->nic_count && rc == 0 && finding->request->rail_count < WF_PLAN_RAILS; i++) {
        const char *name = machine->nics[i].name;
        bool loopback = false;
        if (excluded(finding, exclusions, name) ||
            !(machine->foreign ? machine->nics[i].up : usable(finding, name, &loopback)))
            continue;
        if (loopback)
            spare = name;
        else
            rc = add(finding, name, name, status);
    }
    if (rc == 0 && finding->request->rail_count == 0 && spare)
        rc = add(finding, spare, spare, status);
    return rc;
}

static int add_named(struct finding *finding, const char *list, struct wf_status *status)
{
    char copy[WF_VALUE_MAX], *rest = copy;
    int rc = 0;
    bench_copy_text(copy, sizeof(copy), list);
    for (char *item; rc == 0 && (item = bench_next_word(&rest, ','));)
        rc = add_item(finding, item, status);
    return rc;
}

int bench_topo_rails(const struct wf_machine *machine, const char *setting, struct wf_plan_request *request,
                     struct wf_status *status)
{
    struct finding finding = {.machine = machine, .request = request};
    int rc;

    if (machine->foreign && !setting[0])
        return 0;
    if (!machine->foreign && getifaddrs(&finding.addresses) != 0)
        return wf_fail(status, -errno, "cannot read the addresses of this machine: %s", wf_strerror(errno));
    if (!setting[0] || setting[0] == '^')
        rc = add_usable(&finding, setting[0] ? setting + 1 : "", status);
    else
        rc = add_named(&finding, setting, status);
    if (finding.addresses)
        freeifaddrs(finding.addresses);
    return rc;
}
