/*
 * address.h: network addresses as text, on the wire, and compared. No family means "every address of this machine".
 */
#ifndef WF_CORE_RAIL_ADDRESS_H
#define WF_CORE_RAIL_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"
#include "wire/hello.h"

/* Reads "ADDR:PORT", "[ADDR]:PORT", "PORT", or "ADDR" with a default port; names are resolved. `passive`: for
 * listening; then a bare number is a port, and a missing address is the wildcard. 0, -EINVAL, -EHOSTUNREACH, or
 * -ENODEV: this machine lacks the interface of a link-local address ("fe80::1%eth0"). */
int wf_address_parse(const char *text, int default_port, bool passive, struct sockaddr_storage *out,
                     struct wf_status *status);
/* The same for dialling: every address of a name, best first, up to `max`. Returns how many (at least 1), or the
 * error. */
int wf_address_parse_all(const char *text, int default_port, struct sockaddr_storage *out, int max,
                         struct wf_status *status);
/* The same without a look-up, so it never waits. 0: the text has a name to be looked up, and `out` its port alone. */
int wf_address_parse_known(const char *text, int default_port, struct sockaddr_storage *out, int max,
                           struct wf_status *status);
/* A numeric host alone: "127.0.0.1", "::1", "[::1]", "fe80::1%eth0". 0, or -EINVAL: not a numeric host; -EDESTADDRREQ:
 * link-local without its interface, so that it could be on any link; -ENODEV: this machine lacks the interface. */
int wf_address_numeric(const char *text, struct sockaddr_storage *out);

/* Copies an address that the system gave. False: it is NULL, or neither IPv4 nor IPv6. */
bool wf_address_read(const struct sockaddr *from, struct sockaddr_storage *out);
void wf_address_set_port(struct sockaddr_storage *address, int port);
int wf_address_port(const struct sockaddr_storage *address);
bool wf_address_is_any(const struct sockaddr_storage *address);
/* Same host part? IPv4-mapped IPv6 counts as IPv4. */
bool wf_address_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Are two addresses of one family alike in their first `prefix` bits? */
bool wf_address_in_subnet(const struct sockaddr_storage *a, const struct sockaddr_storage *b, int prefix);
/* fe80::/10? Such an address is complete only with an interface, whose number is valid on this machine alone. */
bool wf_address_is_link_local(const struct sockaddr_storage *address);
/* Gives a link-local address the interface with this number; does not change other addresses. */
void wf_address_set_scope(struct sockaddr_storage *address, uint32_t interface);
/* 127/8 or ::1? */
bool wf_address_is_loopback(const struct sockaddr_storage *address);
/* Is it one of this machine's own addresses? */
bool wf_address_is_local(const struct sockaddr_storage *address);
/* "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80"; without brackets and port when `port` is false. Returns `buffer`. */
char *wf_address_text(const struct sockaddr_storage *address, bool port, char *buffer, int room);

/* The interface of a link-local address is not sent: its number has no meaning on another machine. */
void wf_address_to_wire(const struct sockaddr_storage *address, const char *name, struct wf_wire_address *wire);
void wf_address_from_wire(const struct wf_wire_address *wire, struct sockaddr_storage *out);

#endif
