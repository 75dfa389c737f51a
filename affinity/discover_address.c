/* Addresses as text, and whether this machine has one. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

#include "affinity/discover.h"

/* Its family, and its bytes without the interface; 0: it is none. */
static int parse(const char *text, unsigned char bytes[16])
{
    char bare[INET6_ADDRSTRLEN];
    size_t length = strcspn(text, "%");
    int family = strchr(text, ':') ? AF_INET6 : AF_INET;
    if (length >= sizeof bare)
        return 0;
    memcpy(bare, text, length);
    bare[length] = '\0';
    return inet_pton(family, bare, bytes) == 1 ? family : 0;
}

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
    const char *scope = strchr(address, '%');
    int family = parse(address, bytes);
    struct ifaddrs *all;
    bool found = false;
    if (family == 0 || getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next)
        found = holds(one, family, bytes) && (!scope || strcmp(scope + 1, one->ifa_name) == 0);
    freeifaddrs(all);
    return found;
}

bool wf_address_same(const char *one, const char *other)
{
    unsigned char bytes[16], others[16];
    const char *scope = strchr(one, '%'), *other_scope = strchr(other, '%');
    int family = parse(one, bytes);
    if (family == 0 || parse(other, others) != family || memcmp(bytes, others, family == AF_INET ? 4 : 16) != 0)
        return false;
    return !scope || !other_scope || strcmp(scope, other_scope) == 0;
}
