/* Whether this machine has an address. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "affinity/discover.h"

static bool holds(const struct ifaddrs *one, int family, const unsigned char *bytes)
{
    if (!one->ifa_addr || one->ifa_addr->sa_family != family)
        return false;
    if (family == AF_INET)
        return memcmp(&((const struct sockaddr_in *)one->ifa_addr)->sin_addr, bytes, 4) == 0;
    return memcmp(&((const struct sockaddr_in6 *)one->ifa_addr)->sin6_addr, bytes, 16) == 0;
}

bool wf_address_is_here(const char *address)
{
    unsigned char bytes[16];
    int family = strchr(address, ':') ? AF_INET6 : AF_INET;
    struct ifaddrs *all;
    bool found = false;
    if (inet_pton(family, address, bytes) != 1 || getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next)
        found = holds(one, family, bytes);
    freeifaddrs(all);
    return found;
}
