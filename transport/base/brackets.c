#include "base/brackets.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool wf_brackets_meant(const char *text, char *meant, size_t room)
{
    char host[INET6_ADDRSTRLEN + 32]; /* with an interface, as in fe80::1%eth0 */
    struct in6_addr ignored;
    const char *colon = strrchr(text, ':');
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    if (!colon || digits < 2 || digits > 5 || colon[1 + digits] || (size_t)(colon - text) >= sizeof host)
        return false;
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - text), text);
    long port = strtol(colon + 1, NULL, 10);
    (void)snprintf(meant, room, "[%s]:%ld", host, port);
    host[strcspn(host, "%")] = '\0';
    return port >= 1 && port <= 65535 && inet_pton(AF_INET6, host, &ignored) == 1;
}
