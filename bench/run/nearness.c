#include "nearness.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

void bench_network_id(char *text, size_t room)
{
    struct stat about;

    text[0] = '\0';
    if (stat("/proc/self/ns/net", &about) == 0)
        snprintf(text, room, "%ju %ju", (uintmax_t)about.st_dev, (uintmax_t)about.st_ino);
}

static bool same_text(const json_t *one, const json_t *other, const char *name)
{
    const char *mine = json_string_value(json_object_get(one, name));
    const char *theirs = json_string_value(json_object_get(other, name));

    return mine && theirs && mine[0] && strcmp(mine, theirs) == 0;
}

enum bench_nearness bench_nearness_of(const json_t *mine, const json_t *theirs)
{
    if (!same_text(mine, theirs, "boot_id"))
        return BENCH_APART;
    return same_text(mine, theirs, "network") ? BENCH_LOOPBACK : BENCH_ONE_MACHINE;
}
