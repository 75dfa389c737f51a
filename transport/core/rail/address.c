#include "core/rail/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/brackets.h"

static const struct sockaddr_in *v4(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in *)address;
}

static const struct sockaddr_in6 *v6(const struct sockaddr_storage *address)
{
    return (const struct sockaddr_in6 *)address;
}

bool wf_address_read(const struct sockaddr *from, struct sockaddr_storage *out)
{
    if (!from || (from->sa_family != AF_INET && from->sa_family != AF_INET6))
        return false;
    memset(out, 0, sizeof *out);
    memcpy(out, from, from->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    return true;
}

void wf_address_set_port(struct sockaddr_storage *address, int port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons((uint16_t)port);
}

int wf_address_port(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6 ? v6(address)->sin6_port : v4(address)->sin_port);
}

bool wf_address_is_any(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_UNSPEC)
        return true;
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(&v6(address)->sin6_addr);
    return v4(address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

/* A mapped IPv6 address is an IPv4 one that came through a dual-stack socket. */
static struct sockaddr_storage unmapped(const struct sockaddr_storage *address)
{
    struct sockaddr_storage out = *address;
    if (address->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6(address)->sin6_addr))
        return out;
    memset(&out, 0, sizeof out);
    struct sockaddr_in *in = (struct sockaddr_in *)&out;
    in->sin_family = AF_INET;
    in->sin_port = v6(address)->sin6_port;
    memcpy(&in->sin_addr, &v6(address)->sin6_addr.s6_addr[12], 4);
    return out;
}

bool wf_address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    struct sockaddr_storage left = unmapped(a), right = unmapped(b);
    if (left.ss_family != right.ss_family)
        return false;
    if (left.ss_family == AF_INET)
        return v4(&left)->sin_addr.s_addr == v4(&right)->sin_addr.s_addr;
    return memcmp(&v6(&left)->sin6_addr, &v6(&right)->sin6_addr, 16) == 0 &&
           v6(&left)->sin6_scope_id == v6(&right)->sin6_scope_id;
}

static const uint8_t *bytes_of(const struct sockaddr_storage *address, int *bits)
{
    *bits = address->ss_family == AF_INET ? 32 : 128;
    return address->ss_family == AF_INET ? (const uint8_t *)&((const struct sockaddr_in *)address)->sin_addr
                                         : (const uint8_t *)&((const struct sockaddr_in6 *)address)->sin6_addr;
}

bool wf_address_in_subnet(const struct sockaddr_storage *a, const struct sockaddr_storage *b, int prefix)
{
    int bits;
    const uint8_t *x = bytes_of(a, &bits), *y = bytes_of(b, &bits);
    if (a->ss_family != b->ss_family || prefix < 0 || prefix > bits)
        return false;
    int whole = prefix / 8, rest = prefix % 8;
    return memcmp(x, y, (size_t)whole) == 0 && (rest == 0 || ((x[whole] ^ y[whole]) >> (8 - rest)) == 0);
}

bool wf_address_is_link_local(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&v6(address)->sin6_addr);
}

void wf_address_set_scope(struct sockaddr_storage *address, uint32_t interface)
{
    if (wf_address_is_link_local(address))
        ((struct sockaddr_in6 *)address)->sin6_scope_id = interface;
}

bool wf_address_is_loopback(const struct sockaddr_storage *address)
{
    struct sockaddr_storage plain = unmapped(address);
    if (plain.ss_family == AF_INET)
        return (ntohl(v4(&plain)->sin_addr.s_addr) >> 24) == 127;
    return plain.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6(&plain)->sin6_addr);
}

bool wf_address_is_local(const struct sockaddr_storage *address)
{
    if (wf_address_is_loopback(address))
        return true;
    struct ifaddrs *all;
    if (getifaddrs(&all) != 0)
        return false;
    bool found = false;
    for (struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        struct sockaddr_storage own;
        found = wf_address_read(one->ifa_addr, &own) && wf_address_same_host(&own, address);
    }
    freeifaddrs(all);
    return found;
}

char *wf_address_text(const struct sockaddr_storage *address, bool port, char *buffer, int room)
{
    struct sockaddr_storage plain = unmapped(address);
    char host[INET6_ADDRSTRLEN] = "*", scope[IF_NAMESIZE + 1] = "%";
    if (plain.ss_family == AF_INET) {
        inet_ntop(AF_INET, &v4(&plain)->sin_addr, host, sizeof host);
    } else if (plain.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &v6(&plain)->sin6_addr, host, sizeof host);
        if (v6(&plain)->sin6_scope_id && !if_indextoname(v6(&plain)->sin6_scope_id, scope + 1))
            snprintf(scope + 1, IF_NAMESIZE, "%u", v6(&plain)->sin6_scope_id); /* the interface is gone */
    }
    if (!scope[1])
        scope[0] = '\0';
    bool brackets = port && plain.ss_family == AF_INET6;
    int used = snprintf(buffer, (size_t)room, "%s%s%s%s", brackets ? "[" : "", host, scope, brackets ? "]" : "");
    if (port && used < room)
        snprintf(buffer + used, (size_t)(room - used), ":%d", wf_address_port(&plain));
    return buffer;
}

void wf_address_to_wire(const struct sockaddr_storage *address, const char *name, struct wf_wire_address *wire)
{
    struct sockaddr_storage plain = unmapped(address);
    memset(wire, 0, sizeof *wire);
    snprintf(wire->name, sizeof wire->name, "%s", name);
    wire->port = (uint16_t)wf_address_port(&plain);
    wire->family = plain.ss_family == AF_INET ? 4 : 6;
    if (plain.ss_family == AF_INET)
        memcpy(wire->bytes, &v4(&plain)->sin_addr, 4);
    else
        memcpy(wire->bytes, &v6(&plain)->sin6_addr, 16);
}

void wf_address_from_wire(const struct wf_wire_address *wire, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    out->ss_family = wire->family == 4 ? AF_INET : AF_INET6;
    if (wire->family == 4)
        memcpy(&((struct sockaddr_in *)out)->sin_addr, wire->bytes, 4);
    else
        memcpy(&((struct sockaddr_in6 *)out)->sin6_addr, wire->bytes, 16);
    wf_address_set_port(out, wire->port);
}

static int bad_address(struct wf_status *status, const char *text)
{
    return wf_fail(status, -EINVAL, "'%.100s' is not an address: write PORT, ADDR, ADDR:PORT or [V6ADDR]:PORT", text);
}

static int parse_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    long port = digits > 0 && digits < 10 && text[digits] == '\0' ? strtol(text, NULL, 10) : -1;
    return port < 0 || port > 65535 ? -EINVAL : (int)port;
}

/* Splits "HOST:PORT", "[HOST]:PORT", "HOST", "PORT" (`passive`). An absent part is left empty. */
static int split(const char *text, bool passive, char host[256], char port[16])
{
    const char *colon = strrchr(text, ':'), *bracket = strchr(text, ']');
    bool many = colon && strchr(text, ':') != colon;
    size_t host_length = strlen(text);
    port[0] = '\0';
    if (text[0] == '[') {
        if (!bracket || (bracket[1] != '\0' && bracket[1] != ':'))
            return -EINVAL;
        colon = bracket[1] == ':' ? bracket + 1 : NULL;
        host_length = (size_t)(bracket - text - 1);
        if (host_length == 0)
            return -EINVAL;
        text += 1;
    } else if (colon && !many) {
        host_length = (size_t)(colon - text);
    } else if (many) {
        colon = NULL; /* a bare IPv6 address */
    } else if (passive && text[0] && text[strspn(text, "0123456789")] == '\0') {
        if (host_length >= 16)
            return -EINVAL;
        strcpy(port, text);
        host_length = 0;
    }
    if (host_length >= 256 || (colon && strlen(colon + 1) >= 16))
        return -EINVAL;
    memcpy(host, text, host_length);
    host[host_length] = '\0';
    if (colon)
        strcpy(port, colon + 1);
    return colon && port[0] == '\0' ? -EINVAL : 0;
}

/* "eth0", or the number of an interface of this machine. 0: the text is neither. */
static uint32_t interface_number(const char *text)
{
    char name[IF_NAMESIZE];
    /* The kernel would cut "lo:80" at its colon, as the name of an alias. */
    uint32_t number = strchr(text, ':') ? 0 : if_nametoindex(text);
    if (number == 0 && text[0] && text[strspn(text, "0123456789")] == '\0')
        number = (uint32_t)strtoul(text, NULL, 10);
    return number && if_indextoname(number, name) ? number : 0;
}

int wf_address_numeric(const char *text, struct sockaddr_storage *out)
{
    char host[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE];
    size_t length = strlen(text);
    bool brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
    if (brackets ? length - 2 >= sizeof host : length >= sizeof host)
        return -EINVAL;
    snprintf(host, sizeof host, "%.*s", (int)(brackets ? length - 2 : length), text + brackets);
    struct sockaddr_storage address = {0};
    if (!brackets && inet_pton(AF_INET, host, &((struct sockaddr_in *)&address)->sin_addr) == 1) {
        address.ss_family = AF_INET;
        *out = address;
        return 0;
    }
    char *scope = strchr(host, '%');
    if (scope)
        *scope++ = '\0';
    if (inet_pton(AF_INET6, host, &((struct sockaddr_in6 *)&address)->sin6_addr) != 1)
        return -EINVAL;
    address.ss_family = AF_INET6;
    bool link_local = wf_address_is_link_local(&address);
    uint32_t interface = scope ? interface_number(scope) : 0;
    if (link_local && !scope)
        return -EDESTADDRREQ;
    if (scope && interface == 0)
        return -ENODEV;
    if (scope && !link_local)
        return -EINVAL;
    wf_address_set_scope(&address, interface);
    *out = unmapped(&address);
    return 0;
}

/* Every address of a name, up to `max`. */
static int resolve(const char *host, bool passive, struct sockaddr_storage *out, int max)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = passive ? AI_PASSIVE : 0};
    struct addrinfo *found;
    if (getaddrinfo(host, "0", &hints, &found) != 0)
        return -EHOSTUNREACH;
    int count = 0;
    for (struct addrinfo *one = found; one && count < max; one = one->ai_next) {
        memset(&out[count], 0, sizeof *out);
        memcpy(&out[count++], one->ai_addr, one->ai_addrlen);
    }
    freeaddrinfo(found);
    return count;
}

/* Text that has colons, and is no IPv6 address: names have none. */
static int bad_six(const char *host, struct wf_status *status)
{
    char meant[128];
    if (wf_brackets_meant(host, meant, sizeof meant))
        return wf_fail(status, -EINVAL, "'%s' is not an address: an IPv6 address with a port is written %s", host,
                       meant);
    return wf_fail(status, -EINVAL, "'%.100s' is not an IPv6 address, which with a port is written [V6ADDR]:PORT",
                   host);
}

/* The host part, numeric or a name, as up to `max` addresses. 0: a name, and nobody is to be asked about it. */
static int find_host(const char *host, bool passive, bool ask, struct sockaddr_storage *out, int max,
                     struct wf_status *status)
{
    int result = wf_address_numeric(host, out);
    if (result == 0)
        return 1;
    if (result == -EDESTADDRREQ)
        return wf_fail(status, -EINVAL, "'%s' is link-local: name the interface of this machine too, as in %s%%eth0",
                       host, host);
    if (result == -ENODEV && !strchr(strchr(host, '%'), ':'))
        return wf_fail(status, -ENODEV, "'%s' names the interface '%s', which is not here", host,
                       strchr(host, '%') + 1);
    if (strchr(host, ':') && (result == -ENODEV || !strchr(host, '%')))
        return strstr(host, "//") ? bad_address(status, host) : bad_six(host, status);
    if (host[strspn(host, "0123456789")] == '\0') /* an IPv4 address to the resolver: 0.0.72.123 for 18555 */
        return wf_fail(status, -EINVAL, "'%.60s' is a number, and no address: write ADDR:PORT", host);
    if (strpbrk(host, ", \t"))
        return wf_fail(status, -EINVAL,
                       "'%.100s' is not an address: name one, without blanks; the rails of both sides are found by "
                       "themselves",
                       host);
    if (strchr(host, '%'))
        return wf_fail(status, -EINVAL, "'%s' is not a link-local address: it takes no interface", host);
    result = ask ? resolve(host, passive, out, max) : 0;
    if (result < 0)
        return wf_fail(status, result, "cannot resolve '%.100s': is the name right, and known on this machine?", host);
    return result;
}

static int parse(const char *text, int default_port, bool passive, bool ask, struct sockaddr_storage *out, int max,
                 struct wf_status *status)
{
    char host[256], port_text[16];
    if (split(text, passive, host, port_text) < 0)
        return bad_address(status, text);
    int port = port_text[0] ? parse_port(port_text) : default_port;
    if (port < 0 || (host[0] == '\0' && !passive))
        return bad_address(status, text);
    memset(out, 0, sizeof *out); /* no family: every address of this machine */
    int count = host[0] ? find_host(host, passive, ask, out, max, status) : 1;
    wf_address_set_port(&out[0], port); /* also of a name whose addresses are not known */
    for (int i = 1; i < count; i++)
        wf_address_set_port(&out[i], port);
    return count;
}

int wf_address_parse(const char *text, int default_port, bool passive, struct sockaddr_storage *out,
                     struct wf_status *status)
{
    struct sockaddr_storage address;
    int count = parse(text, default_port, passive, true, &address, 1, status);
    if (count < 0)
        return count;
    *out = address;
    return 0;
}

int wf_address_parse_all(const char *text, int default_port, struct sockaddr_storage *out, int max,
                         struct wf_status *status)
{
    return parse(text, default_port, false, true, out, max, status);
}

int wf_address_parse_known(const char *text, int default_port, struct sockaddr_storage *out, int max,
                           struct wf_status *status)
{
    return parse(text, default_port, false, false, out, max, status);
}
